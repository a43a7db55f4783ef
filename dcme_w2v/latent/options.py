"""Option declarations for `latent fit`; see `dcme_w2v.declarations`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dcme_w2v.declarations import (
    Checked,
    check_conflicts,
    filled,
    option,
    seed_option,
    threads_option,
)
from dcme_w2v.errors import UsageError
from dcme_w2v.platform import default_threads

# Random seeds depend on these numbers, so the numbers of removed methods must not be reused.
START_NUMBERS = {"labels": 1, "kmeans": 3, "quadratic": 5, "random": 7}
INITS = ("auto", *START_NUMBERS)


@dataclass(frozen=True)
class LatentOptions(Checked):
    """How a latent-class model is fitted."""

    group = "Model"

    latent: int | None = option(
        None, "number of latent classes (default: twice the number of labels)", minimum=1
    )
    unsupervised: bool = option(False, "cluster the documents without using their labels")
    init_method: str = option(
        "auto",
        "starting point for EM (default: labels; unsupervised: the better of kmeans and quadratic)",
        choices=INITS,
        strict=True,
    )
    starts: int | None = option(
        None,
        "number of EM starts; the best is kept (default: 1; unsupervised: 10, or 30 for few "
        "documents)",
        minimum=1,
        maximum=10000,
        advanced=True,
    )
    lsa: int | None = option(
        None,
        "reduce rows to N dimensions by latent semantic analysis; 0: off (default: 50 if "
        "unsupervised, otherwise 0)",
        minimum=0,
        maximum=10000,
        advanced=True,
    )
    l2: float | None = option(
        None,
        "L2 regularization: X/2 times the sum of squared weights (default: 3e-6; unsupervised: "
        "estimated from the documents)",
        minimum=0.0,
        maximum=1e6,
    )
    epochs: int | None = option(
        None,
        "maximum number of EM iterations (default: 100)",
        minimum=1,
        maximum=1000000,
    )
    tolerance: float = option(
        1e-5,
        "stop when each E-step reduces the cost by less than this fraction",
        minimum=0.0,
        advanced=True,
    )
    threads: int | None = threads_option()
    seed: int = seed_option()


L2 = 3e-6
# The number of starts without labels, and the factor by which more of them use the quadratic. With
# fewer than FEW_LATENT classes, the quadratic had the lowest cost on nearly all data sets, and with
# more on none (docs/decisions/latent-classes.md).
STARTS_UNSUPERVISED, OF_QUADRATIC, FEW_LATENT = 10, 3, 8
STARTS_OF_FEW, FEW_DOCUMENTS = 30, 2000  # with fewer documents, there are more local optima
EPOCHS = 100
DIMENSIONS = 50  # LSA dimensions, and singular vectors for the quadratic


def resolved(options: LatentOptions, labels: int, rows: int, features: int) -> LatentOptions:
    """Fill in the defaults of all options, except for `l2` without labels.

    Parameters
    ----------
    options : LatentOptions
    labels : int
        Number of labels; ignored if `unsupervised`.
    rows, features : int
        Number of documents and of features.

    Raises
    ------
    UsageError
        Options contradict each other, or do not fit the documents.
    """
    own = options.unsupervised
    check_conflicts([LatentOptions], vars(options))
    if own and options.init_method == "labels":
        raise UsageError("--init-method=labels: cannot be used without labels; give another method")
    if options.latent is None:
        if own:
            raise UsageError(
                "--latent: is required for clustering; give the number of latent classes"
            )
        options = replace(options, latent=min(2 * labels, rows))
    latent = options.latent
    assert latent is not None
    if latent < 2:
        raise UsageError(f"--latent={latent}: must be at least 2")
    if latent > rows:
        raise UsageError(
            f"--latent={latent}: there are only {rows} documents; give fewer latent classes, or "
            "more documents"
        )
    found: dict[str, Any] = {
        "starts": (STARTS_OF_FEW if rows < FEW_DOCUMENTS else STARTS_UNSUPERVISED) if own else 1,
        "threads": default_threads(),
        "epochs": EPOCHS,
        "lsa": DIMENSIONS if own and features > DIMENSIONS else 0,
    }
    if not own:
        found["l2"] = L2
    return filled(options, found)
