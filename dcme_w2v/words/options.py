"""Declares the options of word vectors: training, files, output, conversion; and their presets.

word2vec.c's command lines get its defaults, so that they reproduce its results. A high likelihood
(all tokens, a wide window, no subsampling) and good similarities need different settings;
docs/decisions/likelihood.md has the figures.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dcme_w2v.declarations import Checked, option, seed_option, threads_option
from dcme_w2v.errors import UsageError
from dcme_w2v.files.opening import is_utf8
from dcme_w2v.options import TRAINS_CONTEXT

_OF_SAMPLES = {"objective": ("ns", "nce")}

_OF_CONTEXT: dict[str, Any] = {"only": TRAINS_CONTEXT, "advanced": True, "strict": True}


@dataclass(frozen=True)
class TrainOptions(Checked):
    """How vectors are trained; the C core's `dcme_train_options` has the same fields."""

    group = "Model"

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
        "shrink: random width up to --window; fixed: always --window",
        choices=("shrink", "fixed"),
        advanced=True,
    )
    negative: int | None = option(
        None,
        "negative samples (ns) or noise samples (nce) per target (default: 5; cbow ns: 10)",
        minimum=1,
        maximum=1000,
        word2vec="negative",
        only=_OF_SAMPLES,
        group="Objective",
    )
    noise_power: float | None = option(
        None,
        "exponent of the counts in the noise distribution (default: 0.75; cbow ns: 0.5; nce: 1)",
        minimum=-2.0,
        maximum=2.0,
        only=_OF_SAMPLES,
        advanced=True,
        group="Objective",
    )
    virtual_samples: float = option(
        1.0,
        "each noise sample counts as X; steps along long context vectors are shorter unless X is "
        "1 (nce)",
        above=0.0,
        maximum=1000.0,
        only={"objective": ("nce",)},
        advanced=True,
        group="Objective",
    )
    prior: float | None = option(
        None,
        "adds X times log unigram(w) to each score (default: 1 for dcme, 0 for nce)",
        minimum=0.0,
        maximum=2.0,
        advanced=True,
        group="Objective",
        only={"objective": ("nce", "dcme")},
        strict=True,
    )
    clusters: int = option(
        20,
        "number of dual clusters (dcme)",
        minimum=1,
        maximum=4096,
        only={"objective": ("dcme",)},
        advanced=True,
        group="Objective",
    )
    # What no option sets: Q and beta of the paper, and the last learning rate.
    top_items: int = 10
    beta: float = 1.0
    min_lr: float | None = None  # a ten-thousandth of the first
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
        "initial learning rate (default: depends on model, objective, --epochs, vocabulary, "
        "window, samples and --sample)",
        above=0.0,
        maximum=1000.0,
        word2vec="alpha",
    )
    rates: str | None = option(
        None,
        "learning rates of words: the rarer, the higher (count), or all equal (default: count for "
        "cbow ns and nce)",
        choices=("count", "equal"),
        only={"model": ("cbow",), "objective": ("ns", "nce")},
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
    block: int = option(
        1,
        "number of neighboring targets that share their negative samples, which takes less time; "
        "16 is usual, with 32 samples (cbow; requires --window-mode=fixed)",
        minimum=1,
        maximum=16,
        only={"model": ("cbow",), **_OF_SAMPLES, "window_mode": ("fixed",)},
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


def _check_word(unk: str) -> None:
    word = unk.encode(errors="surrogateescape")
    if word.split() != [word] or b"\0" in word or word == b"</s>" or not is_utf8(word):
        raise UsageError(f"--unk={unk!r}: must be one word, such as <unk>")


@dataclass(frozen=True)
class NewWordsOptions(Checked):
    """Which words get a vector: words of the text, of earlier vectors, and one for rare words."""

    group = "Input"

    init_vocab: str = option(
        "new",
        "words that get vectors: words of the text (new), of --init (old) or of both (union); with "
        "old and union, counts of --init are added",
        choices=("new", "old", "union"),
        advanced=True,
        needs=("init",),
        unless=("read_vocab",),
        strict=True,
    )
    unk: str | None = option(
        None,
        "train one vector, of this word, for all words that are not in the vocabulary; <unk> if no "
        "word is given",
        metavar="WORD",
        bare="<unk>",
        advanced=True,
        unless=("subwords", "cluster"),
        strict=True,
        check=_check_word,
    )


@dataclass(frozen=True)
class FileOptions(Checked):
    """The files that training reads and writes."""

    group = "Output"

    output: str | None = option(
        None,
        "write the word vectors to this file; - is stdout",
        word2vec="output",
        metavar="VECTORS",
        path="writes",
    )
    output_tables: str | None = option(
        None,
        "write the model, input and context vectors, to this file, which --init starts from and "
        "eval likelihood reads",
        metavar="FILE",
        path="writes",
        **_OF_CONTEXT,
    )
    read_vocab: str | None = option(
        None,
        "read the vocabulary instead of counting",
        word2vec="read-vocab",
        metavar="FILE",
        path="reads",
        advanced=True,
        group="Input",
    )
    init: str | None = option(
        None,
        "start from these vectors, or from both tables of --output-tables",
        metavar="VECTORS",
        path="reads",
        group="Input",
    )


@dataclass(frozen=True)
class RoundsOptions(Checked):
    """How often the shards of a cluster exchange what they have learned."""

    group = "Cluster"

    rounds: int | None = option(
        None,
        "number of exchanges of the shards' tables: a multiple of --epochs, or a divisor "
        "(--cluster; default: at least 20, or 5 times the shards if fewer; more where a shard has "
        "over 10^7 tokens)",
        minimum=1,
        needs=("cluster",),
        advanced=True,
    )


ANALOGY_METHODS = ("3cosadd", "3cosmul")


@dataclass(frozen=True)
class OutputOptions(Checked):
    """Which vectors are written, and how."""

    group = "Output"

    format: str | None = option(
        None,
        "format of the vectors (default: by suffix, .bin: binary, .safetensors, other: text); "
        "fasttext: a model of words, n-grams and both tables, which fastText and gensim read, too",
        choices=("text", "binary", "safetensors", "fasttext"),
        neutral=("text", "binary", "safetensors"),
        only=TRAINS_CONTEXT,
        strict=True,
    )
    vectors: str | None = option(
        None,
        "the vector of a word: the sum of its input and its context vector, one of them, or the "
        "sum of both at unit length (default: sum; skipgram: input)",
        choices=("sum", "input", "context", "unit-sum"),
        neutral=("input",),
        **_OF_CONTEXT,
    )


@dataclass(frozen=True)
class ConvertOptions(Checked):
    """How `convert` changes the vectors."""

    group = "Output"

    format: str | None = option(
        None,
        "format of the vectors (default: by suffix, .bin: binary, .safetensors, other: text)",
        choices=("text", "binary", "safetensors"),
    )
    postprocess: str = option(
        "none",
        "center: subtract the mean vector",
        choices=("none", "center"),
    )
    limit: int | None = option(
        None,
        "write the first N rows only, the most frequent words",
        minimum=1,
    )
    invalid: str = option(
        "error",
        "rows with faults, as check reports them: an error, or skip them",
        choices=("error", "skip"),
    )
    reduce: int | None = option(
        None,
        "reduce the vectors to this many dimensions by PCA, after --postprocess",
        minimum=1,
    )
    normalize: bool = option(False, "scale the vectors to unit length, as the last step")
    to: str | None = option(
        None,
        "write for another program: sentence-transformers (a folder, which model2vec loads too; "
        "needs counts)",
        choices=("sentence-transformers",),
        unless=("format", "no_header"),
    )
    no_header: bool = option(False, "write text without a header, as GloVe's files")
    quantize: str | None = option(
        None,
        "numbers of --to: 8 bits with a scale for each row, or 16 bits (default: float32)",
        choices=("int8", "float16"),
        needs=("to",),
        strict=True,
    )


_NCE_WITH_PRIOR = {"prior": 1.0, "noise_power": 0.75, "lr": 0.05, "gradient": "word2vec"}
PRESETS: dict[str, dict[str, Any]] = {
    "word2vec": {
        "negative": 5,
        "noise_power": 0.75,
        "sample": 1e-3,
        "rates": "equal",
        "vectors": "input",
    },
    "similarity": {
        "objective": "nce",
        **_NCE_WITH_PRIOR,
        "virtual_samples": 2.0,
        "window": 10,
        "negative": 20,
    },
    "likelihood": {
        "objective": "nce",
        **_NCE_WITH_PRIOR,
        "virtual_samples": 0.5,
        "window": 10,
        "window_mode": "fixed",
        "sample": 0.0,
        "negative": 32,
        "word_order": True,
        "rates": "equal",
        "block": 16,
    },
}
# Of likelihood, where blocks are not supported, or do not pay: without word order.
WITHOUT_BLOCKS = {"negative": 15, "virtual_samples": 2.0}


def preset_values(preset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a preset sets, without those that the given ones do not support."""
    values = dict(PRESETS[preset])
    without_order = (
        given.get("model") == "skipgram" or given.get("objective") == "hs",
        given.get("subwords") is not None,
        given.get("cluster") is not None,
        given.get("word_order") is False,
    )
    if any(without_order):
        values.pop("word_order", None)
    others = (
        given.get("window_mode") == "shrink",
        given.get("block") == 1,
        given.get("objective") == "dcme",
    )
    if "block" in values and any((*without_order, *others)):
        values.pop("block")
        values |= WITHOUT_BLOCKS
    if preset != "word2vec" and given.get("objective", "nce") != "nce":
        for name in (*_NCE_WITH_PRIOR, "virtual_samples"):
            values.pop(name)
    elif given.get("model") == "skipgram":
        values.pop("gradient", None)
    return values


@dataclass(frozen=True)
class PresetOptions(Checked):
    """One of `PRESETS`."""

    group = "Model"

    preset: str | None = option(
        None,
        "a set of defaults: the defaults of word2vec.c (word2vec), or nce with a prior for word "
        "vectors (similarity) or for a language model (likelihood); explicit options override it",
        choices=tuple(PRESETS),
    )
