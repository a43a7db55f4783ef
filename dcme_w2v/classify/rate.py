"""The default learning rate, looked at on a held-out tenth of the documents."""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dcme_w2v.errors import DivergedError
from dcme_w2v.numeric.arrays import F64

from .fit import Labelled
from .metrics import log_softmax
from .options import ClassifyOptions
from .trainer import (
    ClassifierTrainer,
    core_documents,
    documents_at_once,
    new_weights,
    order_of,
)

SHARE = 14  # a trial learns from one document in SHARE: three take 30 % of the training's time
# The best rate of a tenth of the documents is four times the rate of all, of a fifth twice: so on
# 20 Newsgroups, Reuters and titles, with and without wrong labels.
FACTOR = 5.0
STEP = 4.0  # from one trial's rate to the next
MIN_INSTANCES, MIN_OF_A_CLASS = 10_000, 150  # else some of them say little
HELD_OUT = 5000  # documents at most
CERTAIN = 2.0  # standard errors by which a lower rate has to be better


@dataclass(frozen=True)
class Choice:
    """A learning rate and why.

    Attributes
    ----------
    options : ClassifyOptions
        With the rate that was chosen.
    trials : list of dict
        Of each trial `lr` and the `log_likelihood` of the documents held out.
    documents, held_out : int
        Documents that a trial learned from, and those held out.
    """

    options: ClassifyOptions
    trials: list[dict[str, Any]]
    documents: int
    held_out: int

    @property
    def record(self) -> dict[str, Any]:
        """For the model's JSON file."""
        sizes = {"documents": self.documents, "held_out": self.held_out}
        return {"lr": self.options.lr, **sizes, "trials": self.trials}

    @property
    def line(self) -> str:
        """The choice in words."""
        tried = ", ".join(
            f"{trial['lr']:g}: {trial['log_likelihood']:.3f}" for trial in self.trials
        )
        return (
            f"--lr {self.options.lr:g}, by the log-likelihood of {self.held_out:,} documents held "
            f"out ({tried})"
        )


def is_open(given: ClassifyOptions, options: ClassifyOptions, data: Labelled, classes: int) -> bool:
    """Return whether `chosen_rate` may choose the rate: `options` are `given`, resolved."""
    linear = options.solver == "sgd" and options.rank is None
    exact = options.objective == "gd" and options.loss == "softmax"
    robust = options.objective == "dcme" and options.dcme_update == "robust"
    instances = sum(map(len, data.labels))  # a label each
    enough = instances >= max(MIN_INSTANCES, MIN_OF_A_CLASS * classes)
    return given.lr is None and given.min_lr is None and linear and (exact or robust) and enough


def chosen_rate(data: Labelled, classes: int, options: ClassifyOptions) -> Choice:
    """Return the learning rate for documents, at most the default.

    Trials with the default rate and a quarter of it learn from some of the documents, and are
    measured on a tenth, 5,000 at most. Where the lower one is better, a third has a sixteenth, and
    a parabola through the three log-likelihoods has its maximum at the rate.

    Parameters
    ----------
    data : Labelled
    classes : int
    options : ClassifyOptions
        Resolved.
    """
    count = len(data.labels)
    order = np.random.default_rng(options.seed).permutation(count)
    part, rest = count // SHARE, min(count // 10, HELD_OUT)
    learned = data.some(np.sort(order[:part]))
    held = data.some(np.sort(order[part : part + rest]))
    measured = _Trials(learned, held, classes, options)
    assert options.lr is not None
    default, trials = options.lr, []

    def trial(power: int) -> F64:
        rate = default * STEP**power
        found = measured.log_likelihoods(_at(options, rate * FACTOR))
        trials.append({"lr": rate, "log_likelihood": float(found.mean())})
        return found

    power = _best_power(trial)
    rate = float(f"{default * STEP**power:.1g}") if power else default
    return Choice(_at(options, rate), trials, part, len(held.labels))


def _best_power(trial: Callable[[int], F64]) -> float:
    """Return the power of STEP, 0 to -2, at which the mean of `trial` is the largest."""
    high, middle = trial(0), trial(-1)
    if np.isfinite(high).all():
        gain = middle - high
        if not gain.mean() > CERTAIN * float(gain.std()) / math.sqrt(len(gain)):
            return 0.0
    low = trial(-2)
    first, second, third = (float(one.mean()) for one in (high, middle, low))
    if not math.isfinite(first + second + third) or (bend := first - 2 * second + third) >= 0:
        return -1.0 if second >= third else -2.0
    return min(0.0, max(-2.0, -1 - (first - third) / (2 * bend)))


def _at(options: ClassifyOptions, rate: float) -> ClassifyOptions:
    return replace(options, lr=rate, min_lr=rate / 10_000)


class _Trials:
    """Trainings on the same documents, measured on the same others."""

    def __init__(
        self, learned: Labelled, held: Labelled, classes: int, options: ClassifyOptions
    ) -> None:
        documents, labels = learned.instances()
        self._learned = (learned.matrix, documents, labels, classes)
        self._sample_weight = None if learned.weights is None else learned.weights[documents]
        self._order = order_of(*self._learned, options)
        documents, self._labels = held.instances()
        self._rows = core_documents(held.matrix[documents])

    def log_likelihoods(self, options: ClassifyOptions) -> F64:
        """Return the log-likelihood of each label held out; -infinity if training diverges."""
        matrix, _, _, classes = self._learned
        weights = new_weights(matrix.shape[1], classes, options, self._order)
        training = ClassifierTrainer(*self._learned, options, weights, self._sample_weight)
        found = np.full(len(self._labels), -np.inf)
        threads, step = options.threads or 1, documents_at_once(classes)
        with contextlib.suppress(DivergedError):
            for number in range(training.epochs):
                training.epoch(number)
            for begin in range(0, len(found), step):
                labels = self._labels[begin : begin + step]
                scores = weights.scores(self._rows, begin, begin + len(labels), threads)
                found[begin : begin + step] = log_softmax(scores)[np.arange(len(labels)), labels]
        return found
