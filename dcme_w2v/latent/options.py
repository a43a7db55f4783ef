"""The options of `latent fit`; see `dcme_w2v.declarations`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dcme_w2v.declarations import (
    Checked,
    check_conflicts,
    default_threads,
    filled,
    option,
    seed_option,
    threads_option,
)
from dcme_w2v.errors import UsageError

# The numbers of the starts are part of their random seeds: starts that were removed keep theirs.
START_NUMBERS = {"labels": 1, "kmeans": 3, "quadratic": 5, "random": 7}
INITS = ("auto", *START_NUMBERS)
# Unlabeled documents are learned from the classifier of the labeled ones, by EM.
LABELED = {"unlabeled": ("ignore",)}


@dataclass(frozen=True)
class LatentOptions(Checked, group="Model"):
    """How a latent-class model is fitted."""

    latent: int | None = option(
        None, "number of latent classes (default: twice the number of labels)", minimum=1
    )
    unsupervised: bool = option(False, "cluster the documents; their labels are not used")
    unlabeled: str = option(
        "ignore",
        "documents without a label: leave them out (ignore), learn from them (use), or choose "
        "between both by cross-validation (auto); with use, the latent classes are the labels",
        choices=("ignore", "use", "auto"),
        unless=("unsupervised",),
        strict=True,
    )
    init: str = option(
        "auto",
        "where EM starts: at the labels, at k-means of the documents, at a local minimum of the "
        "quadratic approximation (quadratic), or at random; auto: labels; "
        "unsupervised: the lowest cost of kmeans and, below 20 latent classes, quadratic",
        choices=INITS,
        only=LABELED,
        strict=True,
    )
    solver: str = option(
        "em",
        "expectation maximization (em), followed by L-BFGS on all parameters together (lbfgs)",
        choices=("em", "lbfgs"),
        advanced=True,
        only=LABELED,
        unless=("unsupervised",),
        strict=True,
    )
    starts: int | None = option(
        None,
        "number of starts, with --init auto a third as many of quadratic; the lowest cost is kept "
        "(default: 1; unsupervised: 3)",
        minimum=1,
        maximum=10000,
        advanced=True,
    )
    freedom: float = option(
        0.3,
        "degrees of freedom of the ridge regression behind the starts, as a share of --rank",
        above=0.0,
        maximum=1.0,
        advanced=True,
    )
    rank: int = option(
        100,
        "singular vectors of the documents that the starts use",
        minimum=1,
        maximum=10000,
        advanced=True,
    )
    lsa: int | None = option(
        None,
        "first reduce the rows to N dimensions of unit length, by latent semantic analysis; 0: no "
        "reduction (default: unsupervised, with more than 50 features: 50; otherwise 0)",
        minimum=0,
        maximum=10000,
        advanced=True,
    )
    l2: float | None = option(
        None,
        "L2 regularization, X/2 times the squared weights (default: 3e-6; with --unlabeled use: "
        "1e-4; unsupervised: by --freedom)",
        minimum=0.0,
        maximum=1e6,
    )
    balance: float = option(
        2.0,
        "weight of the divergence of the shares of the classes from the shares of the labeled "
        "documents (--unlabeled use, auto); paper: 1",
        minimum=1.0,
        maximum=1e6,
        advanced=True,
    )
    smoothing: float = option(
        0.1,
        "count added to each label in each latent class",
        minimum=0.0,
        maximum=1e6,
        advanced=True,
    )
    epochs: int | None = option(
        None,
        "maximum number of EM iterations (default: 100; with --unlabeled use: 10)",
        minimum=1,
        maximum=1000000,
    )
    tolerance: float = option(
        1e-5,
        "stop when an iteration reduces the cost by less than this share for each E-step "
        "(unsupervised: 3 in an iteration)",
        minimum=0.0,
        advanced=True,
    )
    threads: int | None = threads_option()
    seed: int = seed_option()


L2, L2_UNLABELED = 3e-6, 1e-4
STARTS_UNSUPERVISED = 3
EPOCHS, EPOCHS_UNLABELED = 100, 10
DIMENSIONS = 50  # of latent semantic analysis


def resolved(options: LatentOptions, labels: int, rows: int, features: int) -> LatentOptions:
    """Return the options with every default filled in but an unsupervised `l2`.

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
        Options contradict each other or the documents.
    """
    own = options.unsupervised
    check_conflicts([LatentOptions], vars(options))
    if own and options.init == "labels":
        raise UsageError("--init=labels: needs labels; give another start")
    use = options.unlabeled != "ignore"
    if options.latent is None:
        if own:
            raise UsageError("--latent is needed to cluster: give the number of classes")
        options = replace(options, latent=labels if use else min(2 * labels, rows))
    latent = options.latent
    assert latent is not None
    if latent < 2:
        raise UsageError(f"--latent={latent}: must be at least 2, as one class separates nothing")
    if latent > rows:
        raise UsageError(
            f"--latent={latent}: there are {rows} documents; give fewer classes, or more documents"
        )
    if use and latent != labels:
        raise UsageError(
            f"--latent={latent}: with --unlabeled={options.unlabeled} the latent classes are the "
            f"{labels} labels; leave it out"
        )
    found: dict[str, Any] = {
        "starts": STARTS_UNSUPERVISED if own else 1,
        "threads": default_threads(),
        "epochs": EPOCHS_UNLABELED if use else EPOCHS,
        "lsa": DIMENSIONS if own and features > DIMENSIONS else 0,
    }
    if not own:
        found["l2"] = L2_UNLABELED if use else L2
    return filled(options, found)
