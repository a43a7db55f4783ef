"""How document vectors are made: the options of `scdv fit`; see `dcme_w2v.options`."""

from __future__ import annotations

from dataclasses import dataclass

from dcme_w2v.options import Checked, option

COVARIANCES = ("tied", "spherical", "diag")
DIRICHLET_PRIOR = 2000.0  # of query likelihood

FEATURES = ("scdv", "bowv", "weighted-average", "average", "bag-of-words", "tfidf")


@dataclass(frozen=True)
class ScdvOptions(Checked):
    """Which vectors documents get; the defaults are those of the paper."""

    features: str = option(
        "scdv",
        "the paper's vectors, or a rival: hard clusters with their idf (bowv), means of word "
        "vectors, counts of words, tf-idf",
        choices=FEATURES,
    )
    clusters: int = option(60, "components of the mixture (scdv, bowv)", minimum=1, maximum=65536)
    covariance: str = option(
        "tied",
        "one matrix for all components; one variance for all; variances by component",
        choices=COVARIANCES,
    )
    sparsity: float = option(
        4.0,
        "leave out numbers below this percentage of the training documents' mean extremes",
        minimum=0.0,
        maximum=100.0,
    )
    weighting: str = option(
        "idf",
        "weight of a word (scdv): smooth inverse document frequency, smooth inverse frequency "
        "0.001 / (0.001 + share of the tokens), or 1",
        choices=("idf", "sif", "none"),
    )
    term_frequency: str = option(
        "count",
        "a word that stands n times in a document counts n, or 1 + ln n",
        choices=("count", "log"),
    )
    centre: bool = option(
        False, "subtract the words' mean vector first, and bring the rest to unit length again"
    )
    power: float = option(
        1.0,
        "raise the size of each number of the vectors to this power, and bring them to unit length "
        "again; 0.5 keeps a few frequent words from outweighing the rest",
        minimum=0.0,
        maximum=1.0,
    )
    tfidf: float = option(
        0.0,
        "put tf-idf of all words beside the vectors, this many times as long as these",
        minimum=0.0,
        maximum=1e6,
    )
    min_df: int = option(
        1,
        "leave out words of fewer training documents; 0 keeps all that have a vector",
        minimum=0,
    )
    tolerance: float = option(
        1e-4, "stop when a round raises the mean log-likelihood by less", minimum=0.0
    )
    iterations: int = option(
        100, "rounds of expectation maximisation at most", minimum=1, maximum=100000
    )
    seed: int = option(1, "seed of every random choice", minimum=0, maximum=2**63 - 1)
