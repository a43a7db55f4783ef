"""Defaults that depend on model and objective, with their justification."""

import dataclasses
from typing import Any, TypeVar

from dcme_w2v.declarations import filled_rates
from dcme_w2v.platform import default_threads

from .options import OutputOptions, TrainOptions

Options = TypeVar("Options", bound=TrainOptions)

# Defaults, and different defaults of objectives and CBOW. See docs/decisions/word-defaults.md.
#
# For ns with CBOW, word2vec's gradient (not divided by the size of the context) is the default:
# with the exact gradient, analogies were at least two points worse for all pairs of rates. For nce,
# whose vectors also represent word frequencies (see --prior), the exact gradient is the default.
# Algorithm 1 (dcme) diverges at rates above a few thousandths; without a prior, it diverges at most
# rates that are high enough to learn.
# For the sum of both tables, CBOW with ns uses ten samples from a flatter noise distribution, and
# drops more of the frequent words, which saves the time that the samples take.
DEFAULTS: dict[str, Any] = {
    "lr": 0.05, "gradient": "exact", "prior": 0.0, "negative": 5, "noise_power": 0.75,
    "sample": 1e-3,
}  # fmt: skip
OF_OBJECTIVE: dict[str, dict[str, Any]] = {
    "ns": {},
    "nce": {"noise_power": 1.0},
    "dcme": {"lr": 0.001, "prior": 1.0, "negative": 0},
    "hs": {"negative": 0},
}
OF_CBOW: dict[str, dict[str, Any]] = {
    "ns": {"gradient": "word2vec", "rates": "count", "negative": 10, "noise_power": 0.5},
    "nce": {"lr": 0.2, "rates": "count"},
    "dcme": {},
    "hs": {"gradient": "word2vec"},
}

# For CBOW with ns and a large vocabulary. In a small vocabulary each word has a larger share, and
# nearly all tokens would be dropped; the threshold is then ten times the mean share of a word.
MIN_SAMPLE, MEAN_SHARES = 1e-4, 10

# CBOW with ns: the rate of the median token by the square root of the epochs, and the rate of all
# words where rates are equal (docs/decisions/learning-rates.md). Below MANY_WORDS it falls with the
# square root of their number, since a step moves a large part of all rows.
RATE_OF_EPOCH, MAX_RATE, EQUAL_RATE = 0.14, 0.125, 0.06
MANY_WORDS, LEAST_SHARE = 1000, 0.25

# Where all rows of a context take the whole step, both tables diverge unless the product of the
# rate, the context size and the square root of a target's number of rows is at most LOAD. If few
# frequent words are dropped, they raise the median count, and with it the rates of all other words,
# so the rate is then at most FREQUENT_RATE (docs/decisions/learning-rates.md).
LOAD, FREQUENT_RATE, FREQUENT = 6.0, 0.063, 10

# Vectors of adjacent words move by four times the learning rate; at the usual rates they diverge.
RATES_OF_WORD_ORDER = {"nce": 0.05, "ns": 0.025}


def resolved(options: Options, words: int | None = None) -> Options:
    """Return the options with every default filled in.

    Parameters
    ----------
    options : TrainOptions, or a class with more options
    words : int, optional
        Size of the vocabulary, which the default of `sample` depends on; by default a large one.
    """
    if options.objective in ("dcme", "hs") and options.negative is not None:
        options = dataclasses.replace(options, negative=None)
    objective, is_cbow = options.objective, options.model == "cbow"
    found = {**DEFAULTS, "threads": default_threads(), **OF_OBJECTIVE[objective]}
    found |= OF_CBOW[objective] if is_cbow else {}
    if is_cbow and objective == "ns":
        found["sample"] = min(1.0, max(MIN_SAMPLE, MEAN_SHARES / words)) if words else MIN_SAMPLE
        most = FREQUENT_RATE if _keeps_frequent(options, found["sample"]) else MAX_RATE
        by_epochs = min(most, RATE_OF_EPOCH / options.epochs**0.5)
        share = max(LEAST_SHARE, min(1.0, (words or MANY_WORDS) / MANY_WORDS) ** 0.5)
        found["lr"] = round(share * (EQUAL_RATE if options.rates == "equal" else by_epochs), 4)
    takes_whole_step = is_cbow and (options.gradient or found["gradient"]) == "word2vec"
    if takes_whole_step and objective in ("ns", "nce"):
        found["lr"] = min(found["lr"], _rate_of_load(options, found["negative"]))
    if "rates" not in found:
        options = dataclasses.replace(options, rates="equal")
    if options.word_order:
        found["lr"] = RATES_OF_WORD_ORDER.get(objective, found["lr"])
    if isinstance(options, OutputOptions):
        found["vectors"] = vectors_of(options)
    return filled_rates(options, found)


def _keeps_frequent(options: TrainOptions, default: float) -> bool:
    """Return whether subsampling drops fewer words than by default (0: none)."""
    sample = default if options.sample is None else options.sample
    return sample == 0 or sample > FREQUENT * default


def _rate_of_load(options: TrainOptions, default: int) -> float:
    """Return the highest stable learning rate for this window and number of samples."""
    negative = default if options.negative is None else options.negative
    is_fixed = options.window_mode == "fixed"
    context = 2 * options.window if is_fixed else options.window + 1  # mean number of context words
    return round(LOAD / (context * (1 + negative) ** 0.5), 4)


def vectors_of(options: TrainOptions) -> str:
    """Return the default kind of vectors to write, which is the best one for the model.

    The sum is better than the input vectors for CBOW on every set that was tried, and worse for
    skip-gram (docs/decisions/learning-rates.md).
    """
    has_both = has_context(options) and vars(options).get("subwords") is None
    has_both &= (
        vars(options).get("format") != "fasttext"
    )  # its two tables must be stored separately
    return "sum" if options.model == "cbow" and has_both else "input"


def has_context(options: TrainOptions) -> bool:
    """Return whether the output table has a vector for each word.

    The output table of hierarchical softmax has vectors for the inner nodes of the tree instead.
    """
    return options.objective != "hs"
