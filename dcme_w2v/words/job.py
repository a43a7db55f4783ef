"""A training run of word vectors: all of its options, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dcme_w2v.declarations import check_conflicts, options_in, paths_in, warn_of_options
from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import READS, WRITES, as_paths, guard
from dcme_w2v.formats.sentences import Sentences
from dcme_w2v.formats.vectors.fasttext import check_model_name
from dcme_w2v.formats.vectors.vectors_io import (
    VOCABULARY,
    check_target,
    format_of,
    warn_of_suffix,
)
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.options import (
    CheckpointOptions,
    ClusterOptions,
    HoldoutOptions,
    SubwordOptions,
    VocabularyOptions,
)

from .options import (
    ClassesOptions,
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
    ClassesOptions,
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
    init, init_context : str or Vectors, optional
        Vectors to start from, see `dcme_w2v.words.start`.
    """

    corpus: tuple[str, ...] = ()
    text: Sentences | None = None

    @classmethod
    def of(
        cls, corpus: Sequence[str], given: Mapping[str, Any], text: Sentences | None = None
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
        job = cls(corpus=as_paths(corpus), text=text, **values)
        warn_of_options(OPTIONS, given, vars(job))
        check_conflicts(OPTIONS, vars(job))
        if job.classes:
            job = replace(job, format="text")
        warn_of_suffix(job.output, job.format)
        return job


def check_paths(job: TrainJob) -> None:
    """Raise if what a training run reads and writes conflicts, or cannot be written."""
    for flag, path in (("--output", job.output), ("--output-context", job.output_context)):
        if path is not None:
            if (job.format or format_of(path)) == "npy":
                raise UsageError(f"{flag}={path}: name .safetensors; convert writes .npy")
            check_target(path, job.format)
    guard(
        (READS, "CORPUS", job.corpus),
        *paths_in(job),
        (WRITES, "--output-context", counts_path(job)),
    )
    if job.output_tables is not None:
        check_target(job.output_tables, "safetensors")
    if job.output_fasttext is not None:
        check_model_name(job.output_fasttext)


def output_format(job: TrainJob) -> str | None:
    """Return the format of --output."""
    return job.format or (None if job.output is None else format_of(job.output))


def counts_path(job: TrainJob) -> str | None:
    """Return where the vocabulary goes beside both tables: likelihood needs all three."""
    tables = [path for path in (job.output, job.output_context) if path is not None]
    if job.save_vocab is not None or len(tables) < 2 or any(map(is_stream, tables)):
        return None
    if "safetensors" in [job.format or format_of(path) for path in tables]:
        return None
    return f"{job.output_context}{VOCABULARY}"


OPTIONS = TrainJob.__bases__
FIELDS = {item.name: item for cls in OPTIONS for item in options_in(cls)}
