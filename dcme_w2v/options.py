"""Declares every option of word vectors, and the options that several commands have.

A field of a frozen dataclass below is one option; see `dcme_w2v.declarations`. Options of one
package only are in its `options.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from dcme_w2v.declarations import (
    Checked,
    encoding_errors_option,
    option,
    seed_option,
    strict_option,
    threads_option,
)
from dcme_w2v.errors import UsageError

TRAINS_CONTEXT = {"objective": ("ns", "nce", "dcme")}  # a context vector for each word


_RAW = {"tokenize": ("words",)}


@dataclass(frozen=True)
class TokenizerOptions(Checked, group="Input"):
    """How text is split into tokens."""

    tokenize: str = option(
        "whitespace",
        "tokens are separated by whitespace; or runs of letters, marks and digits of raw text, in "
        "lower case",
        choices=("whitespace", "words"),
    )
    normalize: str = option(
        "nfc",
        "Unicode normal form of the text",
        choices=("nfc", "nfkc", "none"),
        only=_RAW,
        advanced=True,
    )
    keep_case: bool = option(False, "do not convert to lower case", only=_RAW, advanced=True)
    strip_accents: bool = option(False, "remove accents and other marks", only=_RAW, advanced=True)
    digits: str = option(
        "keep",
        "digits as they are, as 0 (1984 is 0000), or dropped as punctuation is",
        choices=("keep", "zero", "drop"),
        only=_RAW,
        advanced=True,
    )
    punctuation: str = option(
        "drop",
        "drop punctuation and symbols, or keep each as a token",
        choices=("drop", "keep"),
        only=_RAW,
        advanced=True,
    )


def _text_column_option() -> Any:
    return option(
        None,
        "read this column of Parquet, Arrow, JSON lines or CSV; several, separated by commas, are "
        "joined; a.b is a field",
        metavar="NAME",
        group="Input",
    )


@dataclass(frozen=True)
class ColumnOptions(Checked, group="Input"):
    """The columns of documents in Parquet, Arrow, JSON lines or CSV."""

    text_column: str | None = _text_column_option()
    label_column: str | None = option(
        None,
        "column of the labels: text, numbers or lists",
        metavar="NAME",
        needs=("text_column",),
        advanced=True,
    )


@dataclass(frozen=True)
class VocabularyOptions(TokenizerOptions, group="Input"):
    """How text is split into tokens, and which words are kept."""

    min_count: int = option(
        5, "drop words that occur fewer than N times", minimum=1, word2vec="min-count"
    )
    max_vocab: int | None = option(
        None, "keep only the N most frequent words", minimum=1, metavar="N", advanced=True
    )
    text_column: str | None = _text_column_option()
    sentences: str = option(
        "lines",
        "a sentence is a line of the text, the whole value of a column, or a part of a line that "
        "ends with . ! or ?",
        choices=("lines", "whole", "split"),
        advanced=True,
    )
    encoding_errors: str = encoding_errors_option()
    allow_truncated: bool = option(
        False,
        "read truncated compressed files as far as possible instead of failing",
        advanced=True,
    )
    allow_binary: bool = option(
        False,
        "read files with NUL bytes; --encoding-errors applies to tokens with NUL",
        advanced=True,
    )
    strict: bool = strict_option()


@dataclass(frozen=True)
class PhraseOptions(Checked, group="Model"):
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
    connectors: str | None = option(
        None,
        "words that may be inside of a phrase, as of in university_of_california, but not at its "
        "ends: english, or a file of words",
        metavar="english|FILE",
        unless=("read_table",),
    )
    memory: float = option(
        1.0,
        "memory for the counts of pairs in GB; if they need more, the text is read several times, "
        "with the same result",
        minimum=0.001,
        maximum=1e6,
        unless=("read_table",),
        advanced=True,
        group="Run",
    )


@dataclass(frozen=True)
class TrainOptions(Checked, group="Model"):
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
        group="Objective",
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
        advanced=True,
    )
    negative: int | None = option(
        None,
        "negative samples (ns) or noise samples (nce, dcme) per target (default: 5; cbow ns, dcme: "
        "10)",
        minimum=0,
        maximum=1000,
        word2vec="negative",
        only={"objective": ("ns", "nce", "dcme")},
        group="Objective",
    )
    noise_power: float | None = option(
        None,
        "exponent of the counts in the noise distribution (default: 0.75; cbow ns: 0.5; nce: 1)",
        minimum=-2.0,
        maximum=2.0,
        only={"objective": ("ns", "nce", "dcme")},
        advanced=True,
        group="Objective",
    )
    prior: float | None = option(
        None,
        "adds X times log unigram(w) to each score (nce, dcme; default: 0; dcme: 1)",
        minimum=0.0,
        maximum=2.0,
        advanced=True,
        group="Objective",
        only={"objective": ("nce", "dcme")},
        strict=True,
        neutral=(0.0,),
    )
    clusters: int = option(
        20,
        "number of dual clusters (dcme)",
        minimum=1,
        maximum=4096,
        only={"objective": ("dcme",), "block": (1,)},
        advanced=True,
        group="Objective",
    )
    top_items: int = option(
        10,
        "most probable words of a cluster, updated at each target (dcme)",
        minimum=0,
        maximum=4096,
        only={"objective": ("dcme",), "block": (1,)},
        advanced=True,
        group="Objective",
    )
    beta: float = option(
        1.0,
        "update a cluster's centre after X times as many targets as there are words (dcme)",
        above=0.0,
        only={"objective": ("dcme",), "block": (1,)},
        advanced=True,
        group="Objective",
    )
    dcme_update: str = option(
        "robust",
        "robust: bounded weights and noise samples; paper: exactly Algorithm 1 (dcme)",
        choices=("robust", "paper"),
        only={"objective": ("dcme",)},
        advanced=True,
        group="Objective",
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
        advanced=True,
    )
    input_rate: float | None = option(
        None,
        "learning-rate multiplier of the word vectors (default: depends on the objective)",
        above=0.0,
        maximum=1000.0,
        advanced=True,
    )
    gradient: str | None = option(
        None,
        "cbow: exact gradient of the word vectors, or as in word2vec.c, not divided by the number "
        "of context words (default: depends on the objective)",
        choices=("exact", "word2vec"),
        only={"model": ("cbow",)},
        advanced=True,
        group="Objective",
    )
    word_order: bool = option(
        False,
        "add two vectors to the context vector: of the word just before the target, and of the "
        "word just after it (cbow)",
        advanced=True,
        only={"model": ("cbow",), **TRAINS_CONTEXT},
        unless=("cluster",),
        strict=True,
    )
    neighbor_classes: int = option(
        0,
        "count how often each word stands beside N classes of left neighbours and N of right ones, "
        "and add the log odds to its score; 63 is usual, 0: none (requires --word-order)",
        minimum=0,
        maximum=255,
        advanced=True,
        needs=("word_order",),
        only={"dcme_update": ("robust",)},
        strict=True,
    )
    block: int = option(
        1,
        "number of neighbouring targets that share their negative samples, which takes less time; "
        "16 is usual, with 32 samples (cbow; requires --window-mode=fixed or linear)",
        minimum=1,
        maximum=16,
        only={
            "model": ("cbow",),
            "objective": ("ns", "nce", "dcme"),
            "window_mode": ("fixed", "linear"),
            "dcme_update": ("robust",),
        },
        strict=True,
        advanced=True,
    )
    threads: int | None = threads_option(word2vec="threads")
    seed: int = seed_option()
    deterministic: bool = option(
        False,
        "bit-identical results for any --threads: all threads read, one trains",
        group="Run",
    )


@dataclass(frozen=True)
class SubwordOptions(Checked, group="Model"):
    """Character n-grams that words are made of; see `dcme_w2v.formats.vectors.subwords`."""

    subwords: str | None = option(
        None,
        "the vector of a word is the mean of its own and those of its character n-grams of MIN to "
        "MAX characters, as 3-6 (ns)",
        metavar="MIN-MAX",
        only={"objective": ("ns",), "vectors": ("input",)},
        unless=("output_tables", "holdout", "word_order", "block", "cluster"),
        strict=True,
    )
    buckets: int = option(
        2_000_000,
        "number of vectors of character n-grams, which are numbered by hashing",
        minimum=1,
        maximum=2**30,
        needs=("subwords",),
        advanced=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.subwords is None:
            return
        found = re.fullmatch(r"([1-9][0-9]?)-([1-9][0-9]?)", self.subwords)
        if found is None or int(found[1]) > int(found[2]):
            raise UsageError(
                f"--subwords={self.subwords}: must be the shortest and the longest n-gram, from 1 "
                "to 99 characters, as 3-6"
            )

    @property
    def lengths(self) -> tuple[int, int]:
        """The shortest and the longest n-gram in characters; 0, 0 without subwords."""
        shortest, longest = (self.subwords or "0-0").split("-")
        return int(shortest), int(longest)


@dataclass(frozen=True)
class FileOptions(Checked, group="Output"):
    """The files that training reads and writes."""

    output: str | None = option(
        None,
        "write the word vectors to this file; - is stdout",
        word2vec="output",
        metavar="VECTORS",
        short="-o",
    )
    output_context: str | None = option(
        None,
        "write the context vectors (output embeddings) to this file",
        metavar="FILE",
        advanced=True,
        only=TRAINS_CONTEXT,
        strict=True,
    )
    output_tables: str | None = option(
        None,
        "write both tables, input and context vectors, to this folder, which --init starts from",
        metavar="FOLDER",
        advanced=True,
        only=TRAINS_CONTEXT,
        strict=True,
    )
    output_fasttext: str | None = option(
        None,
        "write words, n-grams and both tables to this file, a model that fastText (.bin) and "
        "gensim read, too",
        metavar="FILE",
        advanced=True,
        only=TRAINS_CONTEXT,
        strict=True,
    )
    save_vocab: str | None = option(
        None,
        'write the vocabulary, lines "word count"',
        word2vec="save-vocab",
        metavar="FILE",
        advanced=True,
    )
    read_vocab: str | None = option(
        None,
        "read the vocabulary instead of counting",
        word2vec="read-vocab",
        metavar="FILE",
        advanced=True,
        group="Input",
    )
    init: str | None = option(
        None,
        "start from these vectors, or from both tables of a folder of --output-tables",
        metavar="VECTORS",
        group="Input",
    )
    init_context: str | None = option(
        None,
        "start from these context vectors; needs --init",
        metavar="FILE",
        advanced=True,
        group="Input",
        only=TRAINS_CONTEXT,
        strict=True,
        needs=("init",),
    )
    cache_dir: str | None = option(
        None,
        "folder for the encoded corpus (default: for temporary files)",
        metavar="FOLDER",
        advanced=True,
        group="Run",
    )
    log_json: str | None = option(
        None,
        "log start, progress, epochs and end, one JSON object a line",
        metavar="FILE",
        advanced=True,
        group="Run",
    )


@dataclass(frozen=True)
class ClusterOptions(Checked, group="Cluster"):
    """Where a training runs, and into how many parts its data is divided."""

    cluster: str | None = option(
        None,
        "train on a cluster: local:N starts N worker processes here (local:0: none, the shards one "
        "after another), tcp://HOST:PORT or tls://HOST:PORT is a Dask scheduler, a path its file",
        metavar="ADDRESS",
    )
    shards: int | None = option(
        None,
        "parts of the data, trained separately; the result depends on it, not on the workers "
        "(--cluster; default: the workers at the start)",
        minimum=1,
        maximum=100_000,
        needs=("cluster",),
        strict=True,
        advanced=True,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shards is not None and self.cluster is None:
            raise UsageError(f"--shards={self.shards}: requires --cluster; give both")


@dataclass(frozen=True)
class RoundsOptions(Checked, group="Cluster"):
    """How often the shards of a cluster exchange what they have learned, and how it is mixed."""

    rounds: int | None = option(
        None,
        "number of exchanges of the shards' tables: a multiple of --epochs, or a divisor "
        "(--cluster; default: at least 20, or 5 times the shards if fewer; more where a shard has "
        "over 10^7 tokens)",
        minimum=1,
        needs=("cluster",),
        advanced=True,
    )
    mix: str = option(
        "curvature",
        "mixing rule of the shards' tables: the sum of their updates, corrected "
        "where all have learned the same, or the mean of the tables (--cluster)",
        choices=("curvature", "mean"),
        needs=("cluster",),
        advanced=True,
    )


@dataclass(frozen=True)
class CheckpointOptions(Checked, group="Run"):
    """Where and how often the state of a run is saved, and what it is resumed from."""

    checkpoint: str | None = option(
        None, "save the whole state to this folder, to resume from", metavar="FOLDER"
    )
    checkpoint_every: str = option(
        "10m",
        "interval of checkpoints: a number of epochs, or a time such as 30s, 10m, 2h",
        metavar="N|Nm",
        needs=("checkpoint", "resume"),
        unless=("cluster",),  # a checkpoint is written after every round,
        advanced=True,
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
class HoldoutOptions(Checked, group="Input"):
    """Text that is excluded from training and scored after each epoch."""

    holdout: str | None = option(
        None,
        "exclude this share of the lines from training, or use this file, and report its "
        "log-likelihood after each epoch",
        metavar="X|FILE",
        only=TRAINS_CONTEXT,
        strict=True,
        unless=("cluster",),
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
class OutputOptions(Checked, group="Output"):
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
        advanced=True,
        only=TRAINS_CONTEXT,
        strict=True,
        neutral=("input",),
    )


@dataclass(frozen=True)
class PostprocessOptions(Checked, group="Output"):
    """How `convert` changes the vectors."""

    postprocess: str = option(
        "none",
        "center: subtract the mean vector",
        choices=("none", "center"),
        former_values={"centre": "center"},
    )
    limit: int | None = option(
        None, "write the first N rows only, the most frequent words", minimum=1
    )
    invalid: str = option(
        "error",
        "rows with faults, as check reports them: an error; skip them; or replace what can be "
        "corrected (separators in words by _, invalid UTF-8 by U+FFFD, NaN by 0)",
        choices=("error", "skip", "replace"),
    )
    reduce: int | None = option(
        None, "reduce the vectors to this many dimensions by PCA, after --postprocess", minimum=1
    )
    normalize: bool = option(False, "scale the vectors to unit length, after all else")
    to: str | None = option(
        None,
        "write for another program: projector (TensorFlow's Embedding Projector: OUT and its "
        ".metadata.tsv), safetensors (tensors vectors, words, counts), sentence-transformers "
        "(a folder, which model2vec loads too; needs counts)",
        choices=("projector", "safetensors", "sentence-transformers"),
        unless=("format", "no_header"),
    )
    no_header: bool = option(False, "write text without a header, as GloVe's files")
    quantize: str | None = option(
        None,
        "write safetensors with 8 bits per number and a scale per row, a quarter of the size; "
        "reports the loss. Folders of sentence-transformers can also have float16",
        choices=("int8", "float16"),
    )
