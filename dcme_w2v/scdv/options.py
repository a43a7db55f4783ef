"""Declare the `scdv fit` options."""

from dataclasses import dataclass
from typing import Any

from dcme_w2v.declarations import SEED, Checked, filled, option

COVARIANCES = ("tied", "spherical")

REPRESENTATIONS = ("scdv", "average", "tfidf")
# Values of --representation to which an option applies: with a mixture, or with word vectors.
MIXTURE = {"representation": REPRESENTATIONS[:1]}
COMPOSED = {"representation": REPRESENTATIONS[:2]}


PLAIN: dict[str, Any] = {"term_frequency": "count", "center": False, "power": 1.0, "tfidf": 0.0}
BETTER: dict[str, Any] = {"term_frequency": "log", "center": True, "power": 0.5, "tfidf": 2.0}
PAPER: dict[str, Any] = {**PLAIN, "covariance": "spherical"}


@dataclass(frozen=True)
class ScdvOptions(Checked):
    """Options for computing document vectors."""

    group = "Model"

    representation: str = option(
        "scdv",
        "document vectors: scdv (word vectors weighted by topic), average (mean word vectors) or "
        "tfidf",
        choices=REPRESENTATIONS,
    )
    clusters: int = option(
        60,
        "number of topics (components of the Gaussian mixture)",
        minimum=1,
        maximum=65536,
        only=MIXTURE,
    )
    covariance: str = option(
        "tied",
        "covariance shared by all components: tied (a full matrix) or spherical (one variance)",
        choices=COVARIANCES,
        only=MIXTURE,
    )
    sparsity: float = option(
        4.0,
        "sparsity threshold, in percent of the mean magnitude of the documents' extreme entries",
        minimum=0.0,
        maximum=100.0,
        only=MIXTURE,
    )
    term_frequency: str | None = option(
        None,
        "weight of a word: its count, or log, which is 1 + ln(count) (default: log for scdv, "
        "otherwise count)",
        choices=("count", "log"),
        advanced=True,
    )
    center: bool | None = option(
        None,
        "center word vectors and rescale them to unit length (default: yes for scdv, otherwise no)",
        only=COMPOSED,
        advanced=True,
    )
    power: float | None = option(
        None,
        "raise the magnitude of each entry to this power, and rescale vectors to unit length "
        "(default: 0.5 for scdv, otherwise 1)",
        minimum=0.0,
        maximum=1.0,
        only=COMPOSED,
    )
    tfidf: float | None = option(
        None,
        "append a tf-idf vector, scaled to X times the norm of the document vector (default: 2 "
        "for scdv, otherwise 0)",
        minimum=0.0,
        maximum=1e6,
        only=COMPOSED,
    )
    min_df: int = option(
        1,
        "drop words that occur in fewer than N training documents",
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
        "maximum number of expectation-maximization iterations",
        minimum=1,
        maximum=100000,
        only=MIXTURE,
        advanced=True,
    )
    preset: str | None = option(
        None, "use the settings of Mekala et al. (2017)", presets={"paper": PAPER}
    )
    seed: int = option(**SEED)


def resolved(options: ScdvOptions) -> ScdvOptions:
    """Set unset options to their values in `BETTER` for scdv, or in `PLAIN` for the baselines."""
    return filled(options, BETTER if options.representation == "scdv" else PLAIN)
