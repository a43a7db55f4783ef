"""Declare options for training, writing and converting word vectors, and the presets.

Command lines of word2vec.c get word2vec.c's defaults, so that they reproduce its results. A high
likelihood (all tokens, a wide window, no subsampling) and good similarities need different
settings; docs/decisions/likelihood.md has the measurements.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from dcme_w2v.declarations import SEED, THREADS, Checked, filled_rates, option
from dcme_w2v.errors import UsageError
from dcme_w2v.files.opening import is_utf8
from dcme_w2v.options import TRAINS_CONTEXT
from dcme_w2v.platform import default_threads

_OF_SAMPLES = {"objective": ("ns", "nce")}

_OF_CONTEXT: dict[str, Any] = {"only": TRAINS_CONTEXT, "strict": True}


@dataclass(frozen=True)
class TrainOptions(Checked):
    """Training options, which have the same names as the fields of `dcme_train_options` in C."""

    group = "Model"

    model: str = option(
        "cbow",
        "model: cbow (predict words from their context) or skipgram (predict context words from a "
        "word)",
        choices=("cbow", "skipgram"),
    )
    objective: str = option(
        "ns",
        "objective: ns (negative sampling), nce (noise-contrastive estimation), dcme "
        "(dual-clustering maximum entropy) or hs (hierarchical softmax)",
        choices=("ns", "nce", "dcme", "hs"),
        group="Objective",
    )
    dim: int = option(100, "number of vector dimensions", minimum=1, maximum=16384, word2vec="size")
    window: int = option(
        5,
        "maximum number of context words on each side",
        minimum=1,
        maximum=1000,
        word2vec="window",
    )
    window_mode: str = option(
        "shrink",
        "window width: shrink (random, up to --window) or fixed (always --window)",
        choices=("shrink", "fixed"),
        advanced=True,
    )
    negative: int | None = option(
        None,
        "number of negative or noise samples per target (default: 10 for cbow with ns, "
        "otherwise 5)",
        minimum=1,
        maximum=1000,
        word2vec="negative",
        only=_OF_SAMPLES,
        group="Objective",
    )
    noise_power: float | None = option(
        None,
        "exponent of the word counts in the noise distribution (default: 1 for nce, 0.5 for cbow "
        "with ns, otherwise 0.75)",
        minimum=-2.0,
        maximum=2.0,
        only=_OF_SAMPLES,
        advanced=True,
        group="Objective",
    )
    virtual_samples: float = option(
        1.0,
        "count each noise sample as X samples; unless X=1, steps shrink for large context vectors",
        above=0.0,
        maximum=1000.0,
        only={"objective": ("nce",)},
        advanced=True,
        group="Objective",
    )
    prior: float | None = option(
        None,
        "add X times each word's log frequency to the word's score (default: 1 for dcme, 0 for "
        "nce)",
        minimum=0.0,
        maximum=2.0,
        advanced=True,
        group="Objective",
        only={"objective": ("nce", "dcme")},
        strict=True,
    )
    clusters: int = option(
        20,
        "number of dual clusters for --objective=dcme",
        minimum=1,
        maximum=4096,
        only={"objective": ("dcme",)},
        advanced=True,
        group="Objective",
    )
    # top_items and beta are not options; they are Q and beta in the DCME paper.
    top_items: int = 10
    beta: float = 1.0
    min_lr: float | None = None  # final learning rate; None means 1/10,000 of the initial rate
    epochs: int = option(
        5, "number of passes over the corpus", minimum=1, maximum=100000, word2vec="iter"
    )
    sample: float | None = option(
        None,
        "subsample words whose share of all tokens exceeds X; 0 keeps all tokens (default: at "
        "least 0.0001)",
        minimum=0.0,
        maximum=1.0,
        word2vec="sample",
    )
    lr: float | None = option(
        None,
        "initial learning rate (default: depends on model, objective and data)",
        above=0.0,
        maximum=1000.0,
        word2vec="alpha",
    )
    rates: str | None = option(
        None,
        "learning rate per word: count (higher for rare words) or equal (default: count for cbow)",
        choices=("count", "equal"),
        only={"model": ("cbow",), "objective": ("ns", "nce")},
        advanced=True,
    )
    gradient: str | None = option(
        None,
        "gradient: exact, or word2vec, which omits division by context size (default: depends on "
        "the objective)",
        choices=("exact", "word2vec"),
        only={"model": ("cbow",)},
        advanced=True,
        group="Objective",
    )
    word_order: bool = option(
        False,
        "add separate vectors for the preceding and following words to the context vector",
        advanced=True,
        only={"model": ("cbow",), **TRAINS_CONTEXT},
        unless=("cluster",),
        strict=True,
    )
    block: int = option(
        1,
        "number of adjacent targets that share negative samples; higher values are faster "
        "(requires --window-mode=fixed)",
        minimum=1,
        maximum=16,
        only={"model": ("cbow",), **_OF_SAMPLES, "window_mode": ("fixed",)},
        strict=True,
        advanced=True,
    )
    threads: int | None = option(**THREADS, word2vec="threads")
    seed: int = option(**SEED)
    deterministic: bool = option(
        False,
        "use a single training thread, so the result does not depend on --threads",
        group="Run",
    )


def _check_word(unk: str) -> None:
    word = unk.encode(errors="surrogateescape")
    if word.split() != [word] or b"\0" in word or word == b"</s>" or not is_utf8(word):
        raise UsageError(
            f"--unk={unk!r} must be one word without whitespace or NUL; use a name such as <unk>"
        )


@dataclass(frozen=True)
class NewWordsOptions(Checked):
    """Options that determine which words get vectors."""

    group = "Input"

    init_vocab: str = option(
        "new",
        "words to train: new (in the text), old (in --init) or union (in either)",
        choices=("new", "old", "union"),
        advanced=True,
        needs=("init",),
        unless=("read_vocab",),
        strict=True,
    )
    unk: str | None = option(
        None,
        "train one vector with this name for all out-of-vocabulary words (default name: <unk>)",
        metavar="WORD",
        bare="<unk>",
        advanced=True,
        unless=("subwords", "cluster"),
        strict=True,
        check=_check_word,
    )


@dataclass(frozen=True)
class FileOptions(Checked):
    """Options for the files that training reads and writes."""

    group = "Output"

    output: str | None = option(
        None,
        "write the word vectors to this file (- for standard output)",
        word2vec="output",
        metavar="VECTORS",
        path="writes",
    )
    output_tables: str | None = option(
        None,
        "write input and context vectors to this file, which `eval likelihood` and `--init` can "
        "read",
        metavar="FILE",
        path="writes",
        **_OF_CONTEXT,
    )
    read_vocab: str | None = option(
        None,
        "read the vocabulary from this file instead of counting words",
        word2vec="read-vocab",
        metavar="FILE",
        path="reads",
        advanced=True,
        group="Input",
    )
    init: str | None = option(
        None,
        "file of initial word vectors; a file from --output-tables also provides context vectors",
        metavar="VECTORS",
        path="reads",
        group="Input",
    )


@dataclass(frozen=True)
class RoundsOptions(Checked):
    """The option for how often the shards of a cluster merge their vectors."""

    group = "Cluster"

    rounds: int | None = option(
        None,
        "number of rounds, after each of which shards merge their vectors (default: at least 20)",
        minimum=1,
        needs=("cluster",),
        advanced=True,
    )


ANALOGY_METHODS = ("3cosadd", "3cosmul")


@dataclass(frozen=True)
class OutputOptions(Checked):
    """Options for the kind and the file format of the vectors to write."""

    group = "Output"

    format: str | None = option(
        None,
        "vector format; fasttext also stores n-gram vectors (default: inferred from the file "
        "suffix, otherwise text)",
        choices=("text", "binary", "safetensors", "fasttext"),
        neutral=("text", "binary", "safetensors"),
        only=TRAINS_CONTEXT,
        strict=True,
    )
    output_vectors: str | None = option(
        None,
        "vectors to write: input (skipgram default), context, their sum (cbow default) or unit-sum "
        "(unit vectors)",
        choices=("sum", "input", "context", "unit-sum"),
        neutral=("input",),
        **_OF_CONTEXT,
    )


@dataclass(frozen=True)
class ConvertOptions(Checked):
    """Options that determine how `convert` changes vectors."""

    group = "Output"

    format: str | None = option(
        None,
        "vector format (default: inferred from the suffix .bin or .safetensors, otherwise text)",
        choices=("text", "binary", "safetensors", "tsv"),
    )
    postprocess: str = option(
        "none",
        "postprocessing: center (subtract the mean vector from all vectors) or none",
        choices=("none", "center"),
    )
    limit: int | None = option(
        None,
        "write only the first N rows, normally the most frequent words",
        minimum=1,
    )
    invalid: str = option(
        "error",
        "how to treat invalid rows: error (fail at the first invalid row) or skip",
        choices=("error", "skip"),
    )
    reduce: int | None = option(
        None,
        "reduce the vectors to this many dimensions by PCA, after --postprocess",
        minimum=1,
    )
    unit: bool = option(False, "scale the vectors to unit length after all other steps")
    to: str | None = option(
        None,
        "export a sentence-transformers folder, a model2vec folder, or TSV files for Embedding "
        "Projector",
        choices=("sentence-transformers", "model2vec", "tsv"),
        unless=("format", "no_header"),
    )
    no_header: bool = option(False, "write text without a header line, as in GloVe files")
    quantize: str | None = option(
        None,
        "data type of vectors in the --to folder: int8 (one scale per row) or float16 (default: "
        "float32)",
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
        "output_vectors": "input",
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
    "scdv-2017": {
        "model": "skipgram",
        "dim": 200,
        "window": 10,
        "min_count": 20,
        "negative": 10,
        "epochs": 25,
    },
}
# Values that replace --block in the likelihood preset if blocks are unsupported or too slow.
WITHOUT_BLOCKS = {"negative": 15, "virtual_samples": 2.0}


def _adapted(preset: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the preset values that do not conflict with the user's options."""
    values = dict(preset)
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
    is_nce = values.get("objective") == "nce"
    if is_nce and given.get("objective", "nce") != "nce":
        for name in (*_NCE_WITH_PRIOR, "virtual_samples"):
            values.pop(name)
    elif given.get("model") == "skipgram":
        values.pop("gradient", None)
    return values


@dataclass(frozen=True)
class PresetOptions(Checked):
    """The option that chooses a preset from `PRESETS`."""

    group = "Model"

    preset: str | None = option(
        None,
        "preset: word2vec.c settings, SCDV paper settings, or settings tuned for similarity or "
        "likelihood",
        presets=PRESETS,
        adapted=_adapted,
    )


Options = TypeVar("Options", bound=TrainOptions)

# Default options: first for all objectives, then by objective, then by objective with CBOW.
# docs/decisions/word-defaults.md reports the measurements behind the defaults.
# With CBOW and ns, the exact gradient lowers analogy accuracy by at least two points at all rates.
# With nce, the default gradient is exact, because vectors also represent word frequencies (see
# --prior).
# Training with dcme diverges at learning rates above a few thousandths; without a prior, it
# diverges at nearly every learning rate.
# CBOW with ns outputs the sum of input and context vectors, and draws ten samples from a flatter
# distribution.
# Stronger subsampling of frequent words compensates for the time that ten samples take.
DEFAULTS: dict[str, Any] = {
    "lr": 0.05, "gradient": "exact", "prior": 0.0, "negative": 5, "noise_power": 0.75,
    "sample": 1e-3,
}  # fmt: skip
OF_OBJECTIVE: dict[str, dict[str, Any]] = {
    "ns": {},
    "nce": {"noise_power": 1.0},
    "dcme": {"prior": 1.0, "negative": 0},
    "hs": {"negative": 0},
}
OF_CBOW: dict[str, dict[str, Any]] = {
    "ns": {"gradient": "word2vec", "rates": "count", "negative": 10, "noise_power": 0.5},
    "nce": {"lr": 0.2, "rates": "count"},
    "dcme": {},
    "hs": {"gradient": "word2vec"},
}

# With CBOW and ns, the default subsampling threshold is at least MIN_SAMPLE.
# The default threshold is also at least MEAN_SHARES times the mean relative word frequency.
# With a lower threshold, subsampling would drop nearly all tokens if the vocabulary is small.
MIN_SAMPLE, MEAN_SHARES = 1e-4, 10

# With CBOW and ns, the median token's default rate is min(MAX_RATE, RATE_OF_EPOCH / sqrt(epochs)).
# With --rates=equal, the default rate is EQUAL_RATE (docs/decisions/learning-rates.md).
# With fewer than MANY_WORDS words, rates are scaled by max(LEAST_SHARE, sqrt(words / MANY_WORDS)).
RATE_OF_EPOCH, MAX_RATE, EQUAL_RATE = 0.14, 0.125, 0.06
MANY_WORDS, LEAST_SHARE = 1000, 0.25

# The word2vec gradient diverges if lr * context size * sqrt(1 + negative samples) exceeds LOAD.
# With little subsampling, the median token is more frequent, so rates are at most FREQUENT_RATE.
LOAD, FREQUENT_RATE, FREQUENT = 6.0, 0.063, 10

# Nothing bounds dcme vectors, so training steps can add up until the loss diverges.
# At these dcme rates, 20 epochs on 17M tokens do not diverge (docs/decisions/learning-rates.md).
# The default dcme learning rate falls with more epochs, small contexts and no subsampling.
DCME_RATE, DCME_EPOCHS, FULL_CONTEXT, KEPT_FREQUENT = 5e-4, 5, 6.0, 0.25

# Word-order vectors are updated at four times the learning rate, so this rate must be lower.
RATES_OF_WORD_ORDER = {"nce": 0.05, "ns": 0.025}


def resolved(options: Options, words: int | None = None) -> Options:
    """Return the options with all defaults filled in.

    Parameters
    ----------
    options : TrainOptions, or a class with more options
    words : int, optional
        Size of the vocabulary, which the default of `sample` depends on; by default a large one.
    """
    if options.objective in ("dcme", "hs") and options.negative is not None:
        options = dataclasses.replace(options, negative=None)
    objective, is_cbow = options.objective, options.model == "cbow"
    found = {**DEFAULTS, "threads": options.threads or default_threads(), **OF_OBJECTIVE[objective]}
    found |= OF_CBOW[objective] if is_cbow else {}
    if objective == "dcme":
        found["lr"] = _rate_of_dcme(options)
    if is_cbow and objective == "ns":
        found["sample"] = min(1.0, max(MIN_SAMPLE, MEAN_SHARES / words)) if words else MIN_SAMPLE
        sample = found["sample"] if options.sample is None else options.sample
        keeps_frequent = sample == 0 or sample > FREQUENT * found["sample"]
        most = FREQUENT_RATE if keeps_frequent else MAX_RATE
        by_epochs = min(most, RATE_OF_EPOCH / options.epochs**0.5)
        share = max(LEAST_SHARE, min(1.0, (words or MANY_WORDS) / MANY_WORDS) ** 0.5)
        found["lr"] = round(share * (EQUAL_RATE if options.rates == "equal" else by_epochs), 4)
    takes_whole_step = is_cbow and (options.gradient or found["gradient"]) == "word2vec"
    if takes_whole_step and objective in ("ns", "nce"):
        negative = found["negative"] if options.negative is None else options.negative
        highest = round(LOAD / (_context_of(options) * (1 + negative) ** 0.5), 4)
        found["lr"] = min(found["lr"], highest)
    if "rates" not in found:
        options = dataclasses.replace(options, rates="equal")
    if options.word_order:
        found["lr"] = RATES_OF_WORD_ORDER.get(objective, found["lr"])
    if isinstance(options, OutputOptions):
        found["output_vectors"] = vectors_of(options)
    return filled_rates(options, found)


def _context_of(options: TrainOptions) -> float:
    """Return the mean number of context vectors that are added up for one prediction."""
    if options.model == "skipgram":
        return 1.0
    return 2.0 * options.window if options.window_mode == "fixed" else options.window + 1.0


def _rate_of_dcme(options: TrainOptions) -> float:
    """Return a learning rate at which dcme vectors stay bounded."""
    by_epochs = min(1.0, DCME_EPOCHS / options.epochs)
    by_context = min(1.0, _context_of(options) / FULL_CONTEXT)
    sample = DEFAULTS["sample"] if options.sample is None else options.sample
    by_sample = 1.0 if 0 < sample <= DEFAULTS["sample"] else KEPT_FREQUENT
    return round(DCME_RATE * by_epochs * by_context * by_sample, 7)


def vectors_of(options: TrainOptions) -> str:
    """Return the default kind of vectors to write, which is the best kind for the model.

    The sum is better than the input vectors for CBOW on every set that was tried, and worse for
    skip-gram (docs/decisions/learning-rates.md).
    """
    has_both = has_context(options) and vars(options).get("subwords") is None
    # fastText files store input and output vectors separately, so write unchanged input vectors
    # instead of the sum of the two.
    has_both &= vars(options).get("format") != "fasttext"
    return "sum" if options.model == "cbow" and has_both else "input"


def has_context(options: TrainOptions) -> bool:
    """Return whether the objective trains a context vector for each word.

    The output table of hierarchical softmax has vectors for the inner nodes of the tree instead.
    """
    return options.objective != "hs"
