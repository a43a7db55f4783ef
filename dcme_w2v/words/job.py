"""A training run of word vectors: all of its options, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dcme_w2v.declarations import check_conflicts, filled, options_in
from dcme_w2v.errors import UsageError
from dcme_w2v.formats.columns import Source
from dcme_w2v.formats.sentences import Sentences
from dcme_w2v.formats.vectors.fasttext import check_model_name
from dcme_w2v.formats.vectors.vectors_io import check_target, warn_of_suffix
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.options import (
    CheckpointOptions,
    ClusterOptions,
    HoldoutOptions,
    LogOptions,
    SubwordOptions,
    VocabularyOptions,
)

from .options import (
    FASTTEXT,
    FileOptions,
    NewWordsOptions,
    OutputOptions,
    PresetOptions,
    RoundsOptions,
    TrainOptions,
    preset_values,
)


@dataclass(frozen=True)
class TrainJob(
    PresetOptions,
    VocabularyOptions,
    TrainOptions,
    SubwordOptions,
    NewWordsOptions,
    HoldoutOptions,
    OutputOptions,
    ClusterOptions,
    RoundsOptions,
    CheckpointOptions,
    FileOptions,
    LogOptions,
):
    """A training run of word vectors: all of its options, and the corpus.

    Attributes
    ----------
    corpus : tuple of str
        Files, folders, URLs, or ``-`` for standard input.
    text : Sentences, optional
        The corpus if it is not in files.
    read_vocab : str or Vocabulary, optional
        The vocabulary, instead of counting the corpus.
    init : str or Vectors, optional
        Vectors to start from, see `dcme_w2v.words.start`.
    """

    corpus: tuple[Source, ...] = ()
    text: Sentences | None = None

    @classmethod
    def of(
        cls, corpus: Sequence[Source], given: Mapping[str, Any], text: Sentences | None = None
    ) -> TrainJob:
        """Create a job from the options that the user has given; the others have their defaults.

        Warns of options without effect.

        Parameters
        ----------
        corpus : sequence of str
            Paths.
        given : mapping
            Options by name. `read_vocab` may be a mapping of words to counts.
        text : Sentences, optional
            The corpus if it is not in files.

        Raises
        ------
        UsageError
            An option is not valid, or conflicts with another one.
        """
        values = dict(given)
        if (preset := PresetOptions(values.get("preset")).preset) is not None:
            values = {**preset_values(preset, values), **values}
        if isinstance(values.get("read_vocab"), Mapping):
            values["read_vocab"] = Vocabulary.from_counts(values["read_vocab"])
        job = cls(corpus=tuple(corpus), text=text, **values)
        check_conflicts(OPTIONS, vars(job), given)
        path = job.output
        if path is None:
            return job
        if job.format == FASTTEXT:
            check_model_name(path)
            return job
        chosen = check_target(path, job.format)
        if chosen == "npy":
            raise UsageError(f"--output={path}: name .safetensors; convert writes .npy")
        warn_of_suffix(path, job.format)
        return filled(job, {"format": chosen})


OPTIONS = TrainJob.__bases__
FIELDS = {item.name: item for cls in OPTIONS for item in options_in(cls)}
