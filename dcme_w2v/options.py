"""The single declaration of every option.

A field of a frozen dataclass below is one option: type, default, bounds, help text, spellings on
the command line. The click option, ``--help``, the reference in the documentation, the manifest and
the C struct of the same name are derived from it, so that they cannot disagree.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import numbers
import os
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dcme_w2v.errors import UnknownOptionError, UsageError, warn

T = TypeVar("T")


@dataclass(frozen=True)
class Declaration:
    """What one option is, beside its name, type and default.

    `only`, `needs` and `unless` are when it has an effect: all of these other options have one of
    the values; one of them is given; none of them is. `sets` are the values of other options that
    follow from one of its own; `usual` are the lowest and the highest value of a sensible number.
    See `warn_of_options`.
    """

    help: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    choices: tuple[str, ...] = ()
    word2vec: str | None = None
    metavar: str | None = None
    only: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    sets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    usual: tuple[float, float] | None = None


def option(default: Any, help: str, **declaration: Any) -> Any:
    """Declare a field as an option.

    Parameters
    ----------
    default : object
        The default value; ``None`` means that the value is derived when training starts.
    help : str
        One line for ``--help`` and the reference.
    **declaration
        The other fields of `Declaration`: `minimum` and `maximum` (inclusive), `above`
        (exclusive lower bound), `choices`, `word2vec` (word2vec.c's spelling), `metavar`, and
        `only`, `needs`, `unless`, `usual`.
    """
    return field(default=default, metadata={"option": Declaration(help, **declaration)})


def declaration_of(item: dataclasses.Field[Any]) -> Declaration:
    """Return the declaration of a dataclass field."""
    declared = item.metadata["option"]
    assert isinstance(declared, Declaration)
    return declared


def flag_of(name: str) -> str:
    """Return the command-line flag of an option: ``min_count`` is ``--min-count``."""
    return "--" + name.replace("_", "-")


@functools.cache
def types_of(cls: type) -> dict[str, tuple[type, bool]]:
    """Return each option's type and whether ``None`` is allowed."""
    found = {}
    for name, hint in typing.get_type_hints(cls).items():
        parts = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        plain = [part for part in parts if part is not type(None)]
        found[name] = (plain[0], len(plain) < len(parts))
    return found


def default_threads() -> int:
    """Return the number of CPUs that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Checked:
    """Base class that checks every field against its declaration.

    Numbers, including numpy's, are converted to the declared Python type.
    """

    def __post_init__(self) -> None:
        cls: type = type(self)
        kinds = types_of(cls)
        for item in dataclasses.fields(self):  # type: ignore[arg-type]
            kind, optional = kinds[item.name]
            value = getattr(self, item.name)
            if value is None and optional:
                continue
            checked = _checked(item.name, value, kind, declaration_of(item))
            object.__setattr__(self, item.name, checked)

    @classmethod
    def from_mapping(cls: type[T], values: Mapping[str, Any]) -> T:
        """Create options from a mapping; an unknown name is an error that suggests the nearest."""
        check_names(values, [item.name for item in dataclasses.fields(cls)])  # type: ignore[arg-type]
        return cls(**values)


def check_names(given: Iterable[str], known: Sequence[str]) -> None:
    """Raise `UnknownOptionError`, with the nearest name, if a name is not known."""
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise UnknownOptionError(f"unknown option {name}{hint}")


def _checked(name: str, value: Any, kind: Any, declared: Declaration) -> Any:
    """Return a value converted to its type, or raise if it is not valid."""
    shown = repr(value)
    if isinstance(value, _ACCEPTED[kind]) and (kind is bool or not isinstance(value, bool)):
        value = kind(value)
        shown = str(value)
    given = f"{flag_of(name)}={shown}"
    if type(value) is not kind:
        raise UsageError(f"{given}: must be {_article(kind)}")
    if declared.choices and value not in declared.choices:
        raise UsageError(f"{given}: must be one of {', '.join(declared.choices)}")
    if kind is float and not math.isfinite(value):
        raise UsageError(f"{given}: must be a finite number")
    if declared.minimum is not None and value < declared.minimum:
        raise UsageError(f"{given}: must be at least {declared.minimum:g}")
    if declared.maximum is not None and value > declared.maximum:
        raise UsageError(f"{given}: must be at most {declared.maximum:g}")
    if declared.above is not None and value <= declared.above:
        raise UsageError(f"{given}: must be more than {declared.above:g}")
    return value


def warn_of_options(
    classes: Iterable[type], given: Iterable[str], values: Mapping[str, Any]
) -> None:
    """Warn of options that were given and have no effect, or an unusual value.

    Parameters
    ----------
    classes : iterable of type
        Dataclasses of options.
    given : iterable of str
        The names of the options that somebody has given.
    values : mapping
        Options and other arguments by name: as given, or their defaults.
    """
    names = set(given)
    for cls in classes:
        for item in dataclasses.fields(cls):
            if item.name in names and values[item.name] is not None:
                for message in _objections(item, values):
                    warn(message)


def _objections(item: dataclasses.Field[Any], values: Mapping[str, Any]) -> Iterator[str]:
    """Yield why an option has no effect with the values of others, or is unusual."""
    declared, flag, value = declaration_of(item), flag_of(item.name), values[item.name]
    others = {name: values[name] for name in declared.only if name in values}
    for name, other in others.items():
        if other not in declared.only[name]:
            wanted = " or ".join(f"{flag_of(name)}={one}" for one in declared.only[name])
            yield f"{flag} has no effect with {flag_of(name)}={other}; it is for {wanted}"
            return
    if declared.needs and all(_is_absent(values.get(name)) for name in declared.needs):
        wanted = " or ".join(map(flag_of, declared.needs))
        yield f"{flag} has no effect without {wanted}"
    for name in declared.unless:
        if not _is_absent(values.get(name)):
            yield f"{flag} has no effect with {flag_of(name)}"
    objective = declared.sets.get(value, {}).get("objective")
    if objective not in (None, values.get("objective")):
        yield (
            f"{flag}={value} is for --objective={objective}; only part of it has an effect with "
            f"--objective={values['objective']}"
        )
    if declared.usual is not None and isinstance(value, int | float):
        low, high = declared.usual
        if 0 < value < low or high < value < math.inf:
            yield f"{flag}={value:g} is unusual: {low:g} to {high:g} is the sensible range"


def _is_absent(value: Any) -> bool:
    return value is None or value is False


_ACCEPTED = {int: numbers.Integral, float: numbers.Real, str: str, bool: bool}


def _article(kind: type) -> str:
    return {int: "an integer", float: "a number", str: "a string", bool: "True or False"}[kind]


@dataclass(frozen=True)
class VocabularyOptions(Checked):
    """Which words are kept, and how text is split into tokens."""

    min_count: int = option(
        5, "drop words that occur fewer than N times", minimum=1, word2vec="min-count"
    )
    max_vocab: int | None = option(
        None, "keep only the N most frequent words", minimum=1, metavar="N"
    )
    encoding_errors: str = option(
        "strict",
        "tokens that are not UTF-8: fail, replace the bytes by U+FFFD, or skip the token",
        choices=("strict", "replace", "skip"),
    )
    allow_truncated: bool = option(
        False, "read truncated compressed files as far as possible instead of failing"
    )
    allow_binary: bool = option(
        False, "read files with NUL bytes; --encoding-errors applies to tokens with NUL"
    )
    strict: bool = option(
        False, "fail on dangling links, pipes and binary files in folders instead of skipping them"
    )


@dataclass(frozen=True)
class PhraseOptions(Checked):
    """Which pairs of words are joined to phrases."""

    passes: int = option(
        1,
        "number of passes: two give phrases of up to four words",
        minimum=1,
        maximum=9,
        unless=("read_table",),
    )
    threshold: float | None = option(
        None,
        "join pairs that score above this (default: 100; npmi: 0.5)",
        word2vec="threshold",
        unless=("read_table",),
    )
    scorer: str = option(
        "default",
        "word2phrase's score, or normalised pointwise mutual information",
        choices=("default", "npmi"),
        unless=("read_table",),
    )
    min_count: int = option(
        5,
        "join only words and pairs that occur at least N times",
        minimum=1,
        word2vec="min-count",
        unless=("read_table",),
    )


@dataclass(frozen=True)
class TrainOptions(Checked):
    """How vectors are trained; the C core's `dcme_train_options` has the same fields."""

    model: str = option(
        "cbow",
        "predict a word from its context (cbow), or the context from the word (skipgram)",
        choices=("cbow", "skipgram"),
    )
    objective: str = option(
        "ns",
        "negative sampling, noise-contrastive estimation, dual-clustering maximum entropy or "
        "hierarchical softmax",
        choices=("ns", "nce", "dcme", "hs"),
    )
    dim: int = option(100, "dimensions of a vector", minimum=1, maximum=16384, word2vec="size")
    window: int = option(
        5, "context words on each side, at most", minimum=1, maximum=1000, word2vec="window"
    )
    window_mode: str = option(
        "shrink",
        "shrink: random width up to --window; fixed: always --window; linear: weight decreases "
        "with distance",
        choices=("shrink", "fixed", "linear"),
    )
    negative: int | None = option(
        None,
        "negative samples (ns) or noise samples (nce, dcme) per target (default: 5; cbow ns, dcme: "
        "10)",
        minimum=0,
        maximum=1000,
        word2vec="negative",
        only={"objective": ("ns", "nce", "dcme")},
    )
    noise_power: float | None = option(
        None,
        "exponent of the counts in the noise distribution (default: 0.75; cbow ns: 0.5; nce: 1)",
        minimum=-2.0,
        maximum=2.0,
        only={"objective": ("ns", "nce", "dcme")},
    )
    prior: float | None = option(
        None,
        "adds X times log unigram(w) to each score (nce, dcme; default: 0; dcme: 1)",
        minimum=0.0,
        maximum=2.0,
    )
    clusters: int = option(
        20, "number of dual clusters (dcme)", minimum=1, maximum=4096, only={"objective": ("dcme",)}
    )
    top_items: int = option(
        10,
        "most probable words of a cluster, updated at each target (dcme)",
        minimum=0,
        maximum=4096,
        only={"objective": ("dcme",)},
    )
    beta: float = option(
        1.0,
        "update a cluster's centre after X times as many targets as there are words (dcme)",
        above=0.0,
        only={"objective": ("dcme",)},
    )
    dcme_update: str = option(
        "robust",
        "robust: bounded weights and noise samples; paper: exactly Algorithm 1 (dcme)",
        choices=("robust", "paper"),
        only={"objective": ("dcme",)},
    )
    epochs: int = option(5, "passes over the corpus", minimum=1, maximum=100000, word2vec="iter")
    sample: float | None = option(
        None,
        "subsampling: drop occurrences of words above this share of the tokens at random; 0: keep "
        "all (default: 0.001; cbow ns: 0.0001, or 10 / vocabulary size if that is more)",
        minimum=0.0,
        maximum=1.0,
        word2vec="sample",
    )
    lr: float | None = option(
        None,
        "initial learning rate (default: depends on model, objective, --negative and --sample)",
        above=0.0,
        maximum=1000.0,
        word2vec="alpha",
        usual=(1e-5, 1.0),
    )
    min_lr: float | None = option(
        None,
        "final learning rate of the linear decay (default: lr / 10,000)",
        minimum=0.0,
        maximum=1000.0,
    )
    input_rate: float | None = option(
        None,
        "learning-rate multiplier of the word vectors (default: depends on the objective)",
        above=0.0,
        maximum=1000.0,
    )
    gradient: str | None = option(
        None,
        "cbow: exact gradient of the word vectors, or as in word2vec.c, not divided by the number "
        "of context words (default: depends on the objective)",
        choices=("exact", "word2vec"),
        only={"model": ("cbow",)},
    )
    threads: int | None = option(
        None,
        "number of threads (default: the CPUs that this process may use)",
        minimum=1,
        maximum=1024,
        word2vec="threads",
    )
    seed: int = option(1, "random seed", minimum=0, maximum=2**63 - 1)
    deterministic: bool = option(
        False, "bit-identical results for any --threads: all threads read, one trains"
    )


# Sets of defaults for TrainOptions and --vectors. word2vec.c's command lines get its defaults, so
# that they reproduce its results. A high likelihood (all tokens, a wide
# window, no subsampling) and good similarities need different settings; docs/results/likelihood.md
# has the figures.
PRESETS: dict[str, dict[str, Any]] = {
    "word2vec": {"negative": 5, "noise_power": 0.75, "sample": 1e-3, "vectors": "input"},
    "vectors": {"objective": "dcme", "window": 10, "negative": 20, "top_items": 0},
    "likelihood": {
        "objective": "dcme",
        "window": 10,
        "window_mode": "fixed",
        "sample": 0.0,
        "negative": 15,
        "top_items": 0,
    },
}


@dataclass(frozen=True)
class PresetOptions(Checked):
    """One of `PRESETS`."""

    preset: str | None = option(
        None,
        "a set of defaults: word2vec: those of word2vec.c, also what -train gets; vectors, "
        "likelihood: for dcme; explicit options override it",
        choices=tuple(PRESETS),
        sets=PRESETS,
    )


@dataclass(frozen=True)
class FileOptions(Checked):
    """The files that training reads and writes."""

    output: str | None = option(
        None,
        "write the word vectors to this file; - is stdout",
        word2vec="output",
        metavar="VECTORS",
    )
    output_context: str | None = option(
        None, "write the context vectors (output embeddings) to this file", metavar="FILE"
    )
    output_tables: str | None = option(
        None,
        "write both tables, input and context vectors, to this folder, which --init starts from",
        metavar="FOLDER",
    )
    save_vocab: str | None = option(
        None, 'write the vocabulary, lines "word count"', word2vec="save-vocab", metavar="FILE"
    )
    read_vocab: str | None = option(
        None, "read the vocabulary instead of counting", word2vec="read-vocab", metavar="FILE"
    )
    init: str | None = option(
        None,
        "start from these vectors, or from both tables of a folder of --output-tables",
        metavar="VECTORS",
    )
    init_context: str | None = option(
        None, "start from these context vectors; needs --init", metavar="FILE"
    )
    cache_dir: str | None = option(
        None, "folder for the encoded corpus (default: for temporary files)", metavar="FOLDER"
    )
    log_json: str | None = option(
        None, "log start, progress, epochs and end, one JSON object a line", metavar="FILE"
    )


@dataclass(frozen=True)
class CheckpointOptions(Checked):
    """Where and how often the state of a run is saved, and what it is resumed from."""

    checkpoint: str | None = option(
        None, "save the whole state to this folder, to resume from", metavar="FOLDER"
    )
    checkpoint_every: str = option(
        "10m",
        "interval of checkpoints: a number of epochs, or a time such as 30s, 10m, 2h",
        metavar="N|Nm",
        needs=("checkpoint", "resume"),
    )
    resume: str | None = option(
        None, "resume from the last checkpoint in this folder", metavar="FOLDER"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        form = r"[1-9][0-9]{0,5}|[0-9]{1,6}(\.[0-9]{1,3})?[smh]"
        if not re.fullmatch(form, self.checkpoint_every):
            raise UsageError(
                f"--checkpoint-every={self.checkpoint_every}: must be a number of epochs, or a "
                "time such as 30s, 10m, 2h"
            )

    @property
    def folder(self) -> str | None:
        """The folder that checkpoints are written to: `checkpoint`, or else `resume`."""
        return self.resume if self.checkpoint is None else self.checkpoint

    @property
    def epochs(self) -> int | None:
        """Epochs between checkpoints; None if the interval is a time."""
        return int(self.checkpoint_every) if self.checkpoint_every.isdigit() else None

    @property
    def seconds(self) -> float | None:
        """Seconds between checkpoints; None if the interval is in epochs."""
        if self.epochs is not None:
            return None
        unit = {"s": 1, "m": 60, "h": 3600}[self.checkpoint_every[-1]]
        return float(self.checkpoint_every[:-1]) * unit


@dataclass(frozen=True)
class HoldoutOptions(Checked):
    """Text that is excluded from training and scored after each epoch."""

    holdout: str | None = option(
        None,
        "exclude this share of the lines from training, or use this file, and report its "
        "log-likelihood after each epoch",
        metavar="X|FILE",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fraction is not None and not 0 < self.fraction < 1:
            raise UsageError(
                f"--holdout={self.holdout}: must be a share between 0 and 1, or a file (as "
                f"./{self.holdout} if that is its name)"
            )

    @property
    def fraction(self) -> float | None:
        """The share of the lines; None for a file or without held-out text."""
        try:
            return None if self.holdout is None else float(self.holdout)
        except ValueError:
            return None

    @property
    def file(self) -> str | None:
        """The file; None for a share or without held-out text."""
        return self.holdout if self.fraction is None else None


ANALOGY_METHODS = ("3cosadd", "3cosmul")


@dataclass(frozen=True)
class OutputOptions(Checked):
    """The format of the output."""

    format: str | None = option(
        None,
        "format of the vectors (default: by suffix, .bin: binary, .npy: npy, other: text)",
        choices=("text", "binary", "npy"),
    )
    vectors: str | None = option(
        None,
        "the vector of a word: the sum of its input and its context vector, one of them, or the "
        "sum of both at unit length (default: sum; skipgram, or with --output-context: input)",
        choices=("sum", "input", "context", "unit-sum"),
    )


POSTPROCESSES = ("none", "centre", "damp")


@dataclass(frozen=True)
class PostprocessOptions(Checked):
    """How `convert` changes the vectors."""

    postprocess: str = option(
        "none",
        "centre: subtract the mean vector; damp: also scale down the 5 directions of most variance "
        "(better for relatedness, worse for strict similarity)",
        choices=POSTPROCESSES,
    )
