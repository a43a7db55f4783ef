"""How document vectors are computed: the options of `scdv fit`; see `dcme_w2v.options`."""

from __future__ import annotations

from dataclasses import dataclass

from dcme_w2v.declarations import Checked, option, seed_option

COVARIANCES = ("tied", "spherical", "diag")
DIRICHLET_PRIOR = 2000.0  # of query likelihood

FEATURES = ("scdv", "bowv", "weighted-average", "average", "bag-of-words", "tfidf")
MIXTURE, COMPOSED = {"features": FEATURES[:1]}, {"features": FEATURES[:4]}  # for `option`'s `only`


@dataclass(frozen=True)
class ScdvOptions(Checked, group="Model"):
    """How document vectors are computed; the defaults are those of the paper."""

    features: str = option(
        "scdv",
        "scdv, or a baseline: hard clusters (bowv), means of word vectors, bag of words, tf-idf",
        choices=FEATURES,
    )
    clusters: int = option(
        60,
        "components of the Gaussian mixture (scdv), or clusters (bowv)",
        minimum=1,
        maximum=65536,
        only={"features": ("scdv", "bowv")},
    )
    covariance: str = option(
        "tied",
        "one covariance matrix for all components; one variance; a diagonal for each component",
        choices=COVARIANCES,
        only=MIXTURE,
    )
    sparsity: float = option(
        4.0,
        "set entries below this percentage of the training documents' mean extremes to zero",
        minimum=0.0,
        maximum=100.0,
        only=MIXTURE,
    )
    weighting: str = option(
        "idf",
        "weight of a word (scdv): smooth inverse document frequency (idf), smooth inverse "
        "frequency 0.001 / (0.001 + p(w)) (sif), or 1",
        choices=("idf", "sif", "none"),
        only=MIXTURE,
        advanced=True,
    )
    term_frequency: str = option(
        "count",
        "a word that occurs n times in a document counts n, or 1 + ln n",
        choices=("count", "log"),
        advanced=True,
    )
    centre: bool = option(
        False,
        "subtract the mean word vector, then rescale to unit length",
        only=COMPOSED,
        advanced=True,
    )
    power: float = option(
        1.0,
        "raise the absolute value of each entry to this power, then rescale to unit length; 0.5 "
        "reduces the weight of frequent words",
        minimum=0.0,
        maximum=1.0,
        only=COMPOSED,
    )
    tfidf: float = option(
        0.0,
        "concatenate tf-idf vectors, X times as long, to the document vectors",
        minimum=0.0,
        maximum=1e6,
        only=COMPOSED,
    )
    min_df: int = option(
        1,
        "drop words that occur in fewer training documents; 0 keeps all words with a vector",
        minimum=0,
    )
    tolerance: float = option(
        1e-4,
        "stop when an iteration raises the mean log-likelihood by less",
        minimum=0.0,
        only=MIXTURE,
        advanced=True,
    )
    iterations: int = option(
        100,
        "iterations of expectation maximisation, at most",
        minimum=1,
        maximum=100000,
        only=MIXTURE,
        advanced=True,
    )
    seed: int = seed_option()


@dataclass(frozen=True)
class ScdvTuneOptions(Checked, group="Model"):
    """Whether options that are not given are searched."""

    tune: float | None = option(
        None,
        "choose clusters and power, as far as not given, by classifying held-out documents of "
        "DOCS, which have labels, for about X seconds at most (default of X: 60)",
        metavar="SECONDS",
        above=0.0,
        maximum=1e9,
        bare="60",
    )
