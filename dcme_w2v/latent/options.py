"""Declare the `latent fit` options."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dcme_w2v.declarations import (
    SEED,
    THREADS,
    Checked,
    check_conflicts,
    filled,
    option,
    options_in,
)
from dcme_w2v.errors import UsageError
from dcme_w2v.platform import default_threads

# Random seeds depend on these numbers; do not reuse the number of a removed method.
START_NUMBERS = {"labels": 1, "kmeans": 3, "quadratic": 5, "random": 7}
INITS = ("auto", *START_NUMBERS)


@dataclass(frozen=True)
class LatentOptions(Checked):
    """Options for fitting a latent-class model."""

    group = "Model"

    latent: int | None = option(
        None, "number of latent classes (default: twice the number of labels)", minimum=1
    )
    unsupervised: bool = option(False, "cluster the documents without using their labels")
    init_method: str = option(
        "auto",
        "method for choosing the starting point of EM (default: labels; without labels, the "
        "better of kmeans and quadratic)",
        choices=INITS,
        strict=True,
    )
    starts: int | None = option(
        None,
        "number of EM starting points to try (default: 1 with labels, 10 or 30 without labels)",
        minimum=1,
        maximum=10000,
        advanced=True,
    )
    lsa: int | None = option(
        None,
        "reduce document rows to N dimensions by LSA; 0 keeps all columns (default: 0, or 50 with "
        "--unsupervised)",
        minimum=0,
        maximum=10000,
        advanced=True,
    )
    l2: float | None = option(
        None,
        "L2 regularization: add X/2 times the sum of squared weights to the cost (default: 3e-6, "
        "or estimated with --unsupervised)",
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
        "stop when the cost falls by less than this fraction per E-step",
        minimum=0.0,
        advanced=True,
    )
    threads: int | None = option(**THREADS)
    seed: int = option(**SEED)


L2 = 3e-6
# By default, k-means has STARTS_UNSUPERVISED starts if there are no labels.
# With fewer than FEW_LATENT latent classes, `quadratic` is best, so it has OF_QUADRATIC times as
# many starts.
STARTS_UNSUPERVISED, OF_QUADRATIC, FEW_LATENT = 10, 3, 8
# With fewer than FEW_DOCUMENTS documents, STARTS_OF_FEW starts help to avoid local optima.
STARTS_OF_FEW, FEW_DOCUMENTS = 30, 2000
EPOCHS = 100
DIMENSIONS = 50  # number of LSA dimensions; also the number of singular vectors for `quadratic`


def resolved(options: LatentOptions, labels: int, rows: int, features: int) -> LatentOptions:
    """Fill in the default values of all options, except `l2` if there are no labels.

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
    check_conflicts(options_in(LatentOptions), vars(options))
    if own and options.init_method == "labels":
        raise UsageError(
            "--init-method=labels requires labels, but the documents are clustered without "
            "labels; choose another method"
        )
    if options.latent is None:
        if own:
            raise UsageError(
                "--latent is required with --unsupervised; choose a number of latent classes"
            )
        options = replace(options, latent=min(2 * labels, rows))
    latent = options.latent
    assert latent is not None
    if latent < 2:
        raise UsageError(f"--latent={latent} must be at least 2")
    if latent > rows:
        raise UsageError(
            f"--latent={latent} must be at most {rows}, the number of documents; lower --latent, "
            "or use more documents"
        )
    found: dict[str, Any] = {
        "starts": (STARTS_OF_FEW if rows < FEW_DOCUMENTS else STARTS_UNSUPERVISED) if own else 1,
        "threads": options.threads or default_threads(),
        "epochs": EPOCHS,
        "lsa": DIMENSIONS if own and features > DIMENSIONS else 0,
    }
    if not own:
        found["l2"] = L2
    return filled(options, found)
