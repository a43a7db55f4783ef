"""Fit a latent-class model: EM from several starts, the lowest cost is kept.

Called by `dcme_w2v.latent.jobs` and `dcme_w2v.latent.estimator`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.options import resolved as resolved_classifier
from dcme_w2v.classify.solver import solve
from dcme_w2v.classify.trainer import core_documents
from dcme_w2v.latent.cost import OWN, Cost, Observations
from dcme_w2v.latent.em import Solution, expectation_maximisation, finish
from dcme_w2v.latent.options import LatentOptions
from dcme_w2v.latent.starts import Starts, one_hot
from dcme_w2v.progress import Quiet, Reporter

EMPTY = 0.5  # documents, below which a class is reported as empty


@dataclass
class Fit:
    """The best solution, and what there is to know of the others.

    Attributes
    ----------
    solution : Solution
    starts : list of dict
        `init`, `cost`, `rounds` and `seconds` of each start.
    l2 : float
        That was used.
    """

    solution: Solution
    starts: list[dict[str, Any]] = field(default_factory=list)
    l2: float = 0.0

    @property
    def active(self) -> int:
        """Number of classes that are not empty."""
        return int((self.solution.sizes >= EMPTY).sum())


def fit(data: Observations, options: LatentOptions, reporter: Reporter | None = None) -> Fit:
    """Fit a model.

    Parameters
    ----------
    data : Observations
        Without any label, with labels for all, or, for `unlabelled="use"`, for some.
    options : LatentOptions
        Resolved.
    reporter : Reporter, optional
        Hears of each round.

    Raises
    ------
    DivergedError
        The cost is no longer finite.
    """
    reporter = reporter or Quiet()
    if data.classes and (data.labels == OWN).any():
        return _from_labelled(data, options, reporter)
    latent = options.latent or 2
    starts = Starts(data, latent, options)
    l2 = options.l2
    if l2 is None:  # lambda / K, with the lambda of the ridge regression
        l2 = starts.quadratic.ridge / latent
    cost = Cost(data, latent, l2, options.smoothing if data.classes else 0.0, options.threads or 1)
    best: Solution | None = None
    found = Fit(Solution(cost.weights.get(), cost.alpha, cost.sizes, []), l2=l2)
    for kind in starts.kinds():
        for number in range(options.starts or 1):
            begin = time.monotonic()
            reporter.stage(f"EM from {kind} {number + 1}", options.epochs, "rounds")
            xi = starts.start(kind, number)
            one = expectation_maximisation(
                cost, xi, options.epochs, options.tolerance, _watch(reporter)
            )
            found.starts.append(_told(kind, one, begin))
            if best is None or one.cost < best.cost:
                best = one
    assert best is not None
    if options.solver == "lbfgs":
        reporter.stage("L-BFGS", None, "iterations")
        best = finish(cost, best, _watch(reporter))
    found.solution = best
    return found


def _from_labelled(data: Observations, options: LatentOptions, reporter: Reporter) -> Fit:
    """Documents without a label are their own; alpha of the labels is the identity.

    The start is the classifier of the labelled documents, its probabilities where there are no
    labels. xi of a labelled document is its label, and stays, because alpha is 0 elsewhere.
    """
    begin, labelled = time.monotonic(), data.labels != OWN
    weights = labelled_classifier(data, options)
    own = np.flatnonzero(~labelled)
    xi = np.empty((data.count, data.classes))
    xi[labelled] = one_hot(data.labels[labelled].astype(np.int64), data.classes)
    scores = weights.scores(core_documents(data.rows), 0, data.count, options.threads or 1)
    xi[own] = np.exp(log_softmax(scores[own]))
    cost = Cost(data, data.classes, options.l2 or 0.0, 0.0, options.threads or 1)
    reporter.stage("EM from the labelled documents", options.epochs, "rounds")
    solution = expectation_maximisation(
        cost, xi, options.epochs, options.tolerance, _watch(reporter), weights.get()
    )
    identity = Solution(solution.weights, np.eye(data.classes), solution.sizes, solution.costs)
    return Fit(identity, [_told("labelled", solution, begin)], cost.l2)


def labelled_classifier(data: Observations, options: LatentOptions) -> Any:
    """Return the weights of maximum entropy on the labelled documents alone."""
    kept = np.flatnonzero(data.labels != OWN)
    wanted = ClassifyOptions(
        solver="lbfgs", l2=options.l2, bias=1.0, threads=options.threads, seed=options.seed
    )
    return solve(
        data.matrix, data.documents[kept], data.labels[kept], data.classes,
        resolved_classifier(wanted, data.classes),
    )  # fmt: skip


def _watch(reporter: Reporter) -> Any:
    begin = time.monotonic()

    def watch(number: int, cost: float) -> None:
        reporter.advance(number, loss=cost)
        reporter.epoch(
            {"epoch": number, "seconds": round(time.monotonic() - begin, 3), "loss": cost}
        )

    return watch


def _told(kind: str, solution: Solution, begin: float) -> dict[str, Any]:
    seconds = round(time.monotonic() - begin, 3)
    costs: NDArray[np.float64] | list[float] = solution.costs
    return {"init": kind, "cost": solution.cost, "rounds": len(costs), "seconds": seconds}
