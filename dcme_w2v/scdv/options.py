"""The options of `scdv fit`; see `dcme_w2v.declarations`."""

from dataclasses import dataclass
from typing import Any

from dcme_w2v.declarations import Checked, filled, option, seed_option

COVARIANCES = ("tied", "spherical")

FEATURES = ("scdv", "average", "tfidf")
MIXTURE, COMPOSED = {"features": FEATURES[:1]}, {"features": FEATURES[:2]}  # for `option`'s `only`


@dataclass(frozen=True)
class ScdvOptions(Checked):
    """How document vectors are computed."""

    group = "Model"

    features: str = option(
        "scdv",
        "scdv, or a baseline: average (the mean of the word vectors) or tfidf",
        choices=FEATURES,
    )
    clusters: int = option(
        60,
        "components of the Gaussian mixture",
        minimum=1,
        maximum=65536,
        only=MIXTURE,
    )
    covariance: str = option(
        "tied",
        "one covariance matrix for all components, or one variance",
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
    term_frequency: str | None = option(
        None,
        "a word that occurs n times in a document counts n (count), or 1 + ln n (log) (default: "
        "log for scdv, otherwise count)",
        choices=("count", "log"),
        advanced=True,
    )
    center: bool | None = option(
        None,
        "subtract the mean word vector, then rescale to unit length (default: for scdv)",
        only=COMPOSED,
        advanced=True,
    )
    power: float | None = option(
        None,
        "raise the absolute value of each entry to this power, then rescale to unit length; 0.5 "
        "reduces the weight of frequent words (default: 0.5 for scdv, otherwise 1)",
        minimum=0.0,
        maximum=1.0,
        only=COMPOSED,
    )
    tfidf: float | None = option(
        None,
        "concatenate tf-idf vectors, X times as long, to the document vectors (default: 2 for "
        "scdv, otherwise 0)",
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
        "stop when an iteration raises the mean log-likelihood by less than X",
        minimum=0.0,
        only=MIXTURE,
        advanced=True,
    )
    iterations: int = option(
        100,
        "iterations of expectation maximization, at most",
        minimum=1,
        maximum=100000,
        only=MIXTURE,
        advanced=True,
    )
    preset: str | None = option(
        None,
        "paper: the document vectors of Mekala et al. 2017: --term-frequency count, --power 1, "
        "--tfidf 0, word vectors that are not centered",
        choices=("paper",),
    )
    seed: int = seed_option()


PLAIN: dict[str, Any] = {"term_frequency": "count", "center": False, "power": 1.0, "tfidf": 0.0}
BETTER: dict[str, Any] = {"term_frequency": "log", "center": True, "power": 0.5, "tfidf": 2.0}


def resolved(options: ScdvOptions) -> ScdvOptions:
    """Return the options with every default filled in: `PLAIN` for the paper and its baselines."""
    defaults = BETTER if options.features == "scdv" and options.preset is None else PLAIN
    return filled(options, defaults)
