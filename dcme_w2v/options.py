"""Declare options that several subpackages share, for example options for checkpoints.

A field of a frozen dataclass below is one option; see `dcme_w2v.declarations`. Options that only
one subpackage uses are in its own `options.py`.
"""

import os
import re
from dataclasses import dataclass
from typing import Any

from dcme_w2v.declarations import ENCODING_ERRORS, Checked, option
from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import local

# Objectives that train a context vector for every word.
TRAINS_CONTEXT = {"objective": ("ns", "nce", "dcme")}


_RAW = {"tokenize": ("words",)}


@dataclass(frozen=True)
class TokenizerOptions(Checked):
    """Options for splitting text into tokens."""

    group = "Input"

    tokenize: str = option(
        "whitespace",
        "split text at whitespace, or into lowercase words (default: as recorded in VECTORS, "
        "otherwise whitespace)",
        choices=("whitespace", "words"),
    )
    normalize: str = option(
        "nfc",
        "Unicode normalization form to which the text is converted",
        choices=("nfc", "nfkc", "none"),
        only=_RAW,
        advanced=True,
    )
    keep_case: bool = option(
        False,
        "keep uppercase letters instead of converting them to lowercase",
        only=_RAW,
        advanced=True,
    )
    strip_accents: bool = option(
        False, "remove accents and other combining marks from letters", only=_RAW, advanced=True
    )
    digits: str = option(
        "keep",
        "how to treat digits: keep, zero (replace each digit with 0) or drop",
        choices=("keep", "zero", "drop"),
        only=_RAW,
        advanced=True,
    )
    punctuation: str = option(
        "drop",
        "how to treat punctuation and symbols: drop, or keep (each character is a token)",
        choices=("drop", "keep"),
        only=_RAW,
        advanced=True,
    )


_TEXT_COLUMN: dict[str, Any] = {
    "default": None,
    "help": "names of text columns in Parquet, Arrow, JSON or CSV files (comma-separated; a.b: "
    "nested field)",
    "metavar": "NAME",
    "group": "Input",
}


@dataclass(frozen=True)
class ColumnOptions(Checked):
    """Options that select text, label and weight columns in table files.

    The files can be in Parquet, Arrow, JSON lines or CSV format.
    """

    group = "Input"

    text_column: str | None = option(**_TEXT_COLUMN)
    label_column: str | None = option(
        None,
        "column that contains the labels (text, integers or lists)",
        metavar="NAME",
        needs=("text_column",),
        strict=True,
    )
    sample_weight_column: str | None = option(
        None,
        "column that contains nonnegative document weights",
        metavar="NAME",
        needs=("text_column",),
        strict=True,
        advanced=True,
    )
    keep: str | None = option(
        None,
        "comma-separated input columns to copy to the output, before the labels",
        metavar="NAME",
        needs=("text_column",),
        strict=True,
    )


@dataclass(frozen=True)
class VocabularyOptions(TokenizerOptions):
    """Options for splitting text into tokens and selecting the vocabulary."""

    group = "Input"

    min_count: int = option(
        5, "drop words that occur fewer than N times in the corpus", minimum=1, word2vec="min-count"
    )
    max_vocab: int | None = option(
        None, "keep only the N most frequent words", minimum=1, metavar="N"
    )
    text_column: str | None = option(**_TEXT_COLUMN)
    sentences: str = option(
        "lines",
        "sentence end: lines (line break), whole (text end), split (punctuation) or paragraphs "
        "(empty line)",
        choices=("lines", "whole", "split", "paragraphs"),
        advanced=True,
    )
    encoding_errors: str = option(**ENCODING_ERRORS)


def ngram_lengths(subwords: str | None) -> tuple[int, int]:
    """Convert --subwords to the minimum and maximum n-gram length; convert None to 0, 0.

    Raises
    ------
    UsageError
        `subwords` is not a pair of such lengths.
    """
    if subwords is None:
        return 0, 0
    found = re.fullmatch(r"([1-9][0-9]?)-([1-9][0-9]?)", subwords)
    if found is None or int(found[1]) > int(found[2]):
        raise UsageError(
            f"--subwords={subwords} must be the minimum and maximum n-gram length, from 1 to 99 "
            "characters, such as 3-6"
        )
    return int(found[1]), int(found[2])


@dataclass(frozen=True)
class SubwordOptions(Checked):
    """Options for the character n-grams whose vectors contribute to word vectors."""

    group = "Model"

    subwords: str | None = option(
        None,
        "average each word's vector with the vectors of its character n-grams (MIN to MAX "
        "characters)",
        metavar="MIN-MAX",
        only={"objective": ("ns",), "output_vectors": ("input",)},
        unless=("output_tables", "holdout", "word_order", "block", "cluster"),
        strict=True,
        check=ngram_lengths,
    )
    buckets: int = option(
        2_000_000,
        "number of n-gram vectors (a hash function assigns each n-gram to one vector)",
        minimum=1,
        maximum=2**30,
        needs=("subwords",),
        advanced=True,
    )

    @property
    def lengths(self) -> tuple[int, int]:
        """Minimum and maximum n-gram length in characters, or 0, 0 without n-grams."""
        return ngram_lengths(self.subwords)


@dataclass(frozen=True)
class ClusterOptions(Checked):
    """Options that determine where training runs, and into how many parts its data is divided."""

    group = "Cluster"

    cluster: str | None = option(
        None,
        "use a Dask cluster: local:N (N local workers) or a scheduler address (tcp://HOST:PORT)",
        metavar="ADDRESS",
    )
    shards: int | None = option(
        None,
        "number of data shards to process in parallel (default: number of workers)",
        minimum=1,
        maximum=100_000,
        needs=("cluster",),
        strict=True,
        advanced=True,
    )


@dataclass(frozen=True)
class SeedsOptions(Checked):
    """Options for repeated runs with different seeds, and for the table of their measures."""

    group = "Run"

    seeds: int | None = option(
        None,
        "for N seeds, read or write numbered files (v-1.bin, v-2.bin); print a table of measures",
        minimum=1,
        maximum=1000,
    )
    table: str | None = option(
        None,
        "format of the table of measures, with means and standard deviations over all runs",
        choices=("markdown", "csv", "latex"),
    )


@dataclass(frozen=True)
class LogOptions(Checked):
    """The option for writing a log of the run."""

    group = "Run"

    log_json: str | None = option(
        None,
        "log the run's events and progress to this file, one JSON object per line",
        metavar="FILE",
        path="log",
    )


def _check_interval(given: str) -> None:
    if not re.fullmatch(r"[1-9][0-9]{0,5}|[0-9]{1,6}(\.[0-9]{1,3})?[smh]", given):
        raise UsageError(
            f"--checkpoint-every={given} must be a number of epochs, or a time such as 30s, 10m "
            "or 2h"
        )


@dataclass(frozen=True)
class CheckpointOptions(Checked):
    """Options for saving checkpoints, and for resuming a run from a checkpoint."""

    group = "Run"

    checkpoint: str | None = option(
        None,
        "save the training state at regular intervals to this folder, for use with --resume",
        metavar="FOLDER",
        path="folder",
    )
    checkpoint_every: str = option(
        "10m",
        "checkpoint interval: a number of epochs, or a time such as 30s, 10m or 2h",
        metavar="N|Nm",
        needs=("checkpoint", "resume"),
        advanced=True,
        check=_check_interval,
    )
    resume: str | None = option(
        None, "resume from the last checkpoint in this folder", metavar="FOLDER", path="folder"
    )

    @property
    def folder(self) -> str | None:
        """The folder for new checkpoints: `checkpoint` if given, otherwise `resume`."""
        return self.resume if self.checkpoint is None else self.checkpoint

    @property
    def continues(self) -> bool:
        """Whether new checkpoints go to the folder that the run resumes from."""
        folders = (os.path.realpath(one) for one in (self.folder, self.resume) if one is not None)
        return self.resume is not None and len({*folders}) == 1

    @property
    def every_epochs(self) -> int | None:
        """Number of epochs between checkpoints, or None if the interval is in seconds."""
        return int(self.checkpoint_every) if self.checkpoint_every.isdigit() else None

    @property
    def every_seconds(self) -> float | None:
        """Number of seconds between checkpoints, or None if the interval is in epochs."""
        if self.every_epochs is not None:
            return None
        unit = {"s": 1, "m": 60, "h": 3600}[self.checkpoint_every[-1]]
        return float(self.checkpoint_every[:-1]) * unit


def _check_share(given: str) -> None:
    try:
        share = float(given)
    except ValueError:  # the name of a file
        return
    if not 0 < share < 1:
        raise UsageError(
            f"--holdout={given} must be a fraction between 0 and 1, or a file; if {given} is a "
            f"file, write ./{given}"
        )


@dataclass(frozen=True)
class HoldoutOptions(Checked):
    """The option for held-out text, which is not used for training but scored after each epoch."""

    group = "Input"

    holdout: str | None = option(
        None,
        "held-out text for evaluation after every epoch: a fraction of the lines, or a file",
        metavar="X|FILE",
        path="reads",
        only=TRAINS_CONTEXT,
        strict=True,
        unless=("cluster",),
        check=_check_share,
    )

    @property
    def fraction(self) -> float | None:
        """The fraction of lines to hold out, or None if --holdout names a file or is not given."""
        try:
            return None if self.holdout is None else float(self.holdout)
        except ValueError:
            return None

    @property
    def file(self) -> str | None:
        """The file of held-out text, or None if --holdout is a fraction or is not given."""
        whole = self.holdout if self.fraction is None else None
        return None if whole is None else local(whole)
