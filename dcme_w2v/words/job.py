"""A training run of word vectors: its options, and what it reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dcme_w2v.declarations import Checked, check_conflicts, options_in, warn_of_options
from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import Paths, as_paths
from dcme_w2v.formats.artifact import replaces
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
from dcme_w2v.training.checkpoint_folder import paths_in

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
from .tables import KIND
from .vectors import Vectors

OPTIONS = (PresetOptions, VocabularyOptions, TrainOptions, SubwordOptions, NewWordsOptions,
           HoldoutOptions, OutputOptions, ClusterOptions, RoundsOptions, CheckpointOptions,
           FileOptions, ClassesOptions)  # fmt: skip
FIELDS = {item.name: item for cls in OPTIONS for item in options_in(cls)}
T = TypeVar("T")


@dataclass(frozen=True)
class TrainJob(FileOptions, HoldoutOptions, OutputOptions, ClassesOptions):
    """A training run of word vectors: its files, and all of its options.

    Files, held-out text and the format of the output are the fields of its base classes.

    Attributes
    ----------
    corpus : tuple of str
        Files, folders, URLs, or ``-`` for standard input.
    sentences : Sentences, optional
        The corpus if it is not in files.
    read_vocab : str or Vocabulary, optional
        The vocabulary, instead of counting the corpus.
    init, init_context : str or Vectors, optional
        Vectors to start from, see `dcme_w2v.words.start`.
    vocabulary, options, checkpoints, cluster, rounds, subwords, new_words
        The other options, see `dcme_w2v.words.options` and `dcme_w2v.options`.
    """

    corpus: tuple[str, ...] = ()
    sentences: Sentences | None = None
    # In Python, these may be objects.
    read_vocab: str | Vocabulary | None = None  # type: ignore[assignment]
    init: str | Vectors | None = None  # type: ignore[assignment]
    init_context: str | Vectors | None = None  # type: ignore[assignment]
    vocabulary: VocabularyOptions = field(default_factory=VocabularyOptions)
    options: TrainOptions = field(default_factory=TrainOptions)
    checkpoints: CheckpointOptions = field(default_factory=CheckpointOptions)
    cluster: ClusterOptions = field(default_factory=ClusterOptions)
    rounds: RoundsOptions = field(default_factory=RoundsOptions)
    subwords: SubwordOptions = field(default_factory=SubwordOptions)
    new_words: NewWordsOptions = field(default_factory=NewWordsOptions)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "corpus", as_paths(self.corpus))
        if self.classes:
            object.__setattr__(self, "format", "text")

    @classmethod
    def of(
        cls, corpus: Sequence[str], given: Mapping[str, Any], sentences: Sentences | None = None
    ) -> TrainJob:
        """Create a job from the options that the user has given; the others have their defaults.

        Warns of options without effect.

        Parameters
        ----------
        corpus : sequence of str
            Paths.
        given : mapping
            Options by name. `read_vocab` may be a mapping of words to counts.
        sentences : Sentences, optional
            The corpus if it is not in files.

        Raises
        ------
        UsageError
            An option is not valid, or conflicts with another one.
        """
        values = dict(given)
        preset = _made(PresetOptions, values).preset
        if preset is not None:
            values = {**preset_values(preset, values), **values, "preset": preset}
        if isinstance(values.get("read_vocab"), Mapping):
            values["read_vocab"] = Vocabulary.from_counts(values["read_vocab"])
        parts = {name: _made(part, values) for name, part in _PARTS.items()}
        own = [item.name for base in cls.__bases__ for item in options_in(base)]
        job = cls(
            corpus=as_paths(corpus),
            sentences=sentences,
            **{name: values[name] for name in own if name in values},
            **parts,  # type: ignore[arg-type]
        )
        known = {**{name: item.default for name, item in FIELDS.items()}, **values}
        warn_of_options(OPTIONS, given, known)
        check_conflicts(OPTIONS, known)
        warn_of_suffix(job.output, job.format)
        return job


_PARTS: dict[str, type[Checked]] = {
    "vocabulary": VocabularyOptions,
    "options": TrainOptions,
    "checkpoints": CheckpointOptions,
    "cluster": ClusterOptions,
    "rounds": RoundsOptions,
    "subwords": SubwordOptions,
    "new_words": NewWordsOptions,
}


def _made(cls: type[T], values: Mapping[str, Any]) -> T:
    """Return the options of a class among others."""
    return cls(**{item.name: values[item.name] for item in options_in(cls) if item.name in values})


def paths_of(job: TrainJob) -> Paths:
    """Return what a training run reads and writes."""
    vocabulary, init, context = (
        one if isinstance(one, str) else None
        for one in (job.read_vocab, job.init, job.init_context)
    )
    paths = Paths().reads("CORPUS", *job.corpus).reads("--read-vocab", vocabulary)
    paths.reads("--init", init)
    paths.reads("--init-context", context)
    paths.reads("--holdout", HoldoutOptions(job.holdout).file)
    for flag, path in (("--output", job.output), ("--output-context", job.output_context)):
        if path is not None:
            if (job.format or format_of(path)) == "npy":
                raise UsageError(f"{flag}={path}: name .safetensors; convert writes .npy")
            paths.writes(flag, path)
            check_target(path, job.format)
    paths.writes("--output-context", counts_path(job))
    paths.model("--output-tables", job.output_tables, replaces(KIND))
    if job.output_fasttext is not None:
        check_model_name(job.output_fasttext)
    paths.writes("--output-fasttext", job.output_fasttext)
    paths.writes("--save-vocab", job.save_vocab).log("--log-json", job.log_json)
    return paths_in(paths, job.checkpoints).temporary("--cache-dir", job.cache_dir)


def counts_path(job: TrainJob) -> str | None:
    """Return where the vocabulary goes beside both tables: likelihood needs all three."""
    tables = [path for path in (job.output, job.output_context) if path is not None]
    if job.save_vocab is not None or len(tables) < 2 or any(map(is_stream, tables)):
        return None
    if "safetensors" in [job.format or format_of(path) for path in tables]:
        return None
    return f"{job.output_context}{VOCABULARY}"
