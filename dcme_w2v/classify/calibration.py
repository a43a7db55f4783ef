"""Convert scores to probabilities that match the label frequencies in held-out documents.

Softmax scores need no calibration. With the hinge loss, a score only says how far a document lies
on the side of a class. If documents have several labels, a probability is the logistic function of
a piecewise linear, increasing function of the score, which is the same for all labels. Platt (1999)
uses a single piece, but scores cluster at both margins, where their log-odds are not linear. If
documents have one label, a probability is sigma(a s + b), where s is the score minus the mean
score, divided by the sum over the classes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v.numeric.arrays import F64
from dcme_w2v.numeric.parallel import blocks_of_rows, one_blas_thread

from .metrics import check_scores, log_softmax, relevance

# Lower and upper bounds for the fitted slopes and for the fitted constants.
FACTORS, BIASES = (1e-3, 20.0), (-30.0, 30.0)
NOISES = (-9.0, 2.0)  # lower and upper bound for the fitted log-odds of label noise
# Initial values of the fitted parameters: log slope, constant, and log-odds of label noise.
START = (0.0, 0.0, -3.0)
# Fitting stops when the log-likelihood changes by less than this fraction of its value.
PRECISION = 1e-6
# Knots of the piecewise linear calibration, from minus to plus the hinge-loss margin, which is 4.
KNOTS = (-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0)
# Scores are clipped to [-FARTHEST, FARTHEST]; each interval of length 1 is divided into BINS bins.
BINS, FARTHEST = 64, 64.0
# With more than MANY scores, the calibration of every eighth document is the starting point, which
# saves a quarter to half of the time.
MANY, PART = 1 << 18, 8
AT_ONCE = 1 << 14  # scores are processed in batches of this size, which fit into the CPU cache
FARTHEST_ODDS = 700.0  # exp(-x) would overflow for log-odds x below -FARTHEST_ODDS
NEVER = -1e9  # score of classes without documents, so that they are never predicted
KINDS = ("softmax", "normalized", "logistic")


@dataclass(frozen=True)
class Calibration:
    """A fitted function that converts a model's scores to log-probabilities.

    Attributes
    ----------
    kind : {"softmax", "normalized", "logistic"}
        "logistic": each label has a probability of its own. "normalized": documents have one label.
    slopes : tuple of float
        Slopes of the log-odds as a function of the score: a single slope, or one for each piece
        between `KNOTS`.
    constant : float
        Log-odds at a score of 0.
    noise : float
        For "normalized": the share of documents whose label is random, with all classes equally
        probable.
    """

    kind: str = "softmax"
    slopes: tuple[float, ...] = (1.0,)
    constant: float = 0.0
    noise: float = 0.0

    @classmethod
    def fit(
        cls, kind: str, scores: F64, labels: Sequence[Sequence[int]], weights: F64
    ) -> Calibration:
        """Fit the calibration to labeled documents by maximum likelihood.

        Parameters
        ----------
        kind : str
        scores : ndarray of float64, shape (documents, classes)
            Scores of documents outside the training data; without documents, scores stay unchanged.
        labels : sequence of sequence of int
            Class indices of each document; -1 is a label that is not a class.
        weights : ndarray of float64, shape (documents,)
        """
        if kind == "softmax" or not any(labels):
            return cls(kind)
        fitted = _logistic if kind == "logistic" else _normalized
        return fitted(scores, labels, weights)

    def apply(self, scores: F64) -> F64:
        """Convert scores to log-probabilities of shape (documents, classes).

        Raises
        ------
        DivergedError
            A score is NaN or infinite.
        """
        if self.kind == "softmax":
            return log_softmax(scores)
        check_scores(scores)
        if self.kind == "normalized":
            scores = scores - scores.mean(axis=1, keepdims=True)
        found = _log_of_logistic(self._odds(scores))
        if self.kind == "normalized":
            found = log_softmax(found)
        if self.noise:
            uniform = math.log(self.noise / scores.shape[1])
            found = np.logaddexp(found + math.log1p(-self.noise), uniform)
        return found

    def _odds(self, scores: F64) -> F64:
        if len(self.slopes) == 1:
            return self.slopes[0] * scores + self.constant
        found: F64 = np.interp(scores, KNOTS, np.cumsum(_steps(self.slopes)))
        found += self.slopes[0] * np.minimum(scores - KNOTS[0], 0)
        found += self.slopes[-1] * np.maximum(scores - KNOTS[-1], 0)
        return found + self.constant

    def stored(self) -> list[Any]:
        """Return the calibration's kind and parameters, in the form that model files store."""
        return [self.kind, self.constant, *self.slopes, *([self.noise] if self.noise else [])]

    @classmethod
    def restored(cls, stored: Any) -> Calibration:
        """Restore a calibration from its stored form; raise ValueError if the form is invalid."""
        kind, *rest = stored if isinstance(stored, list) and stored else [""]
        numbers: list[Any] = rest
        is_sound = all(type(n) in (int, float) and math.isfinite(n) for n in numbers)
        noise = numbers.pop() if kind == "normalized" and len(numbers) == 3 and is_sound else 0.0
        if kind not in KINDS or len(numbers) not in (2, 2 + len(KNOTS)) or not is_sound:
            raise ValueError(
                "the recorded calibration must consist of a method name and numeric parameters"
            )
        if min(numbers[1:]) <= 0:
            raise ValueError("the calibration slopes must be positive")
        if not 0 <= noise < 1:
            raise ValueError(
                "the noise fraction of the calibration must be at least 0 and less than 1"
            )
        return cls(kind, tuple(map(float, numbers[1:])), float(numbers[0]), float(noise))


def logistic(odds: Any) -> Any:
    """Convert log-odds to probabilities."""
    return np.exp(-np.logaddexp(0.0, -odds))


def _log_of_logistic(odds: F64) -> F64:
    """Return the logarithm of `logistic`, several times faster than with `logaddexp`."""
    found: F64 = np.minimum(odds, 0.0) - np.log1p(np.exp(-np.abs(odds)))
    return found


def _steps(slopes: Sequence[float]) -> F64:
    """Return the log-odds at the first knot, followed by their increase in each segment.

    The log-odds at score 0 are set to 0.
    """
    gains = np.diff(KNOTS) * slopes[1:-1]
    below = gains[: KNOTS.index(0.0)].sum()
    return np.append(-below, gains)


def _pieces(scores: F64) -> F64:
    """Return the length of each segment's overlap with the interval from 0 to each score."""
    ends = [-np.inf, *KNOTS, np.inf]
    parts = [
        np.clip(scores, low, high) - min(max(0.0, low), high)
        for low, high in itertools.pairwise(ends)
    ]
    return np.stack(parts, axis=1)


def _logistic(scores: F64, labels: Sequence[Sequence[int]], weights: F64) -> Calibration:
    """Fit the slopes and the constant of a logistic calibration to binned document-label pairs.

    As in Platt's paper, the targets are (n + 1) / (n + 2) for the n relevant pairs and 1 / (m + 2)
    for the m other pairs. The slopes of neighboring pieces differ only if the pairs support it.
    """
    relevant = relevance(labels, scores.shape[1])
    bins = np.rint(np.clip(scores, -FARTHEST, FARTHEST) * BINS).astype(np.int64)
    bins -= (first := int(bins.min()))
    by_pair = np.broadcast_to(weights[:, None], scores.shape)
    ours = np.bincount(bins[relevant], by_pair[relevant], int(bins.max()) + 1)
    all_pairs = np.bincount(bins.ravel(), by_pair.ravel())
    used = np.flatnonzero(all_pairs)
    ours, others = ours[used], (all_pairs - ours)[used]
    n, m = ours.sum(), others.sum()
    wanted = ours * (n + 1) / (n + 2) + others / (m + 2)
    pairs, count = ours + others, len(KNOTS) + 1
    features = np.append(_pieces((used + first) / BINS), np.ones((len(used), 1)), axis=1)

    def loss(at: F64) -> tuple[float, F64]:
        odds, bends = features @ at, np.diff(at[:count])
        gradient = features.T @ (pairs * logistic(odds) - wanted)
        gradient[1:count] += 2 * bends
        gradient[: count - 1] -= 2 * bends
        value = pairs @ np.logaddexp(0.0, odds) - wanted @ odds + bends @ bends
        return float(value) / n, gradient / n

    bounds = np.array([FACTORS] * count + [BIASES]).T
    found = minimize(loss, np.append(np.ones(count), 0.0), *bounds)
    return Calibration("logistic", tuple(map(float, found[:count])), float(found[count]))


def _normalized(scores: F64, labels: Sequence[Sequence[int]], weights: F64) -> Calibration:
    """Fit a slope, a constant and a label-noise fraction to single-label documents.

    As b falls, the probabilities become the softmax of a times the scores. One part in n + 1 of
    each document's target is the uniform distribution; see `likeliest_factors`. Without a share of
    noise, wrong labels in the training documents would make all probabilities too even.
    """
    (count, classes), own = scores.shape, weights / weights.sum()
    centered = scores - scores.mean(axis=1, keepdims=True)
    label, step = np.array([one[0] for one in labels]), max(1, AT_ONCE // classes)

    def of_some(rows: slice, a: float, b: float, noise: float) -> F64:
        """Return the loss and gradient terms of a batch of documents."""
        some, share = centered[rows], own[rows, None]
        chosen = np.arange(len(some)), label[rows]
        odds = np.maximum(a * some + b, -FARTHEST_ODDS)
        sigma = 1 / (1 + np.exp(-odds))
        clean = sigma / sigma.sum(axis=1, keepdims=True)
        p = (1 - noise) * clean + noise / classes
        of_clean = (1 - noise) / ((1 + count) * classes) * share * clean / p
        of_clean[chosen] *= 1 + count * classes
        # `of_clean` is the target probability times the posterior probability of a correct label.
        total = of_clean.sum(axis=1, keepdims=True)
        # The derivative of log sigma(x) is 1 - sigma(x), where sigma is the logistic function.
        slopes = (total * clean - of_clean) * (1 - sigma)
        log_p = np.log(p)
        target = share[:, 0] * (log_p.sum(axis=1) / classes + count * log_p[chosen]) / (1 + count)
        rest = total.sum() - (1 - noise) * share.sum()
        return np.array([-target.sum(), a * np.vdot(slopes, some), slopes.sum(), rest])

    def loss(at: F64) -> tuple[float, F64]:
        own = math.exp(at[0]), float(at[1]), float(logistic(at[2]))
        parts = [of_some(rows, *own) for rows in blocks_of_rows(count, step)]
        value, *gradient = np.sum(parts, axis=0)
        return float(value), np.array(gradient)

    lowest, highest = np.array([np.log(FACTORS), BIASES, NOISES]).T
    start = np.array(START)
    if scores.size > MANY:
        part = _normalized(scores[::PART], labels[::PART], weights[::PART])
        # The noise does not start from its lower bound, where the likelihood hardly changes.
        start[:2] = math.log(part.slopes[0]), part.constant
    a, b, noise = minimize(loss, start, lowest, highest, PRECISION)
    return Calibration("normalized", (math.exp(a),), float(b), float(logistic(noise)))


@one_blas_thread()
def likeliest_factors(
    parts: Sequence[F64], labels: Sequence[Sequence[int]], weights: F64 | None = None
) -> tuple[F64, float]:
    """Fit weights for summing several models' scores; return the weights and the log-likelihood.

    The probability is the softmax of the sum. One part in n + 1 of each document's target is the
    uniform distribution instead of the label, so that the factors stay finite if all n documents
    are classified correctly. If a model does not know one of the C classes, a
    label of this class gets the probability 1 / ((n + 1) C).

    Parameters
    ----------
    parts : sequence of ndarray of float64, shape (n, classes)
        Scores of each model, which are `NEVER` for classes that the model does not know.
    labels : sequence of sequence of int
        Class indices of each document.
    weights : ndarray of float64, shape (n,), optional
        Weights of the documents.
    """
    if not len(labels):
        return np.ones(len(parts)), 0.0
    rows = np.repeat(np.arange(len(labels)), [len(one) for one in labels])
    wanted, uniform = np.concatenate(labels), 1 / (1 + len(labels))
    own = np.ones(len(rows)) if weights is None else weights[rows]
    own = own / own.sum()
    unknown = np.any([scores <= NEVER / 2 for scores in parts], axis=0)
    target = np.bincount(rows, own)[:, None] * np.where(unknown, 0.0, uniform / unknown.shape[1])
    np.add.at(target, (rows, wanted), (1 - uniform) * own * ~unknown[rows, wanted])
    known = [np.where(unknown, 0.0, scores) for scores in parts]
    expected = np.array([np.vdot(target, scores) for scores in known])
    sums = target.sum(axis=1, keepdims=True)

    def log_probabilities(factors: F64) -> F64:
        scores = sum(factor * one for factor, one in zip(factors, known, strict=True))
        return log_softmax(np.where(unknown, NEVER, scores))

    def loss(factors: F64) -> tuple[float, F64]:
        log_p = log_probabilities(factors)
        p = sums * np.exp(log_p)
        gradient = np.array([np.vdot(p, scores) for scores in known]) - expected
        return -float(np.vdot(target, log_p)), gradient

    found = minimize(loss, np.ones(len(parts)), *np.array([FACTORS] * len(parts)).T)
    log_p = log_probabilities(found)
    log_p[unknown] = math.log(uniform / unknown.shape[1])
    return found, float(own @ log_p[rows, wanted])


# ---- minimization without importing scipy ----

# Minimum decrease of the objective per step, as a fraction of the expected decrease (Armijo 1966).
SUFFICIENT = 1e-4
SHORTEST = 1e-12  # minimum step size, at which the line search stops
ITERATIONS = 200


def minimize(
    function: Callable[[F64], tuple[float, F64]],
    start: F64,
    lowest: F64,
    highest: F64,
    precision: float = 1e-9,
) -> F64:
    """Minimize a function by projected BFGS steps with backtracking.

    A parameter at a bound is fixed while the gradient points outward (Bertsekas 1982).

    Parameters
    ----------
    function : callable
        Takes a point; returns the value and the gradient.
    start, lowest, highest : ndarray of float64, shape (parameters,)
        The starting point and the bounds.
    precision : float
        Stop when a step reduces the value by less than this share of it.
    """
    point = np.clip(start, lowest, highest)
    value, gradient = function(point)
    curvature = np.eye(len(point)) * max(float(np.linalg.norm(gradient)), 1e-9)
    for _ in range(ITERATIONS):
        is_out = ((point <= lowest) & (gradient > 0)) | ((point >= highest) & (gradient < 0))
        free = np.flatnonzero(~is_out)
        direction = np.zeros_like(point)
        direction[free] = np.linalg.solve(curvature[np.ix_(free, free)], -gradient[free])
        length = 1.0
        while length > SHORTEST:
            there = np.clip(point + length * direction, lowest, highest)
            found, slope = function(there)
            if found <= value + SUFFICIENT * float(gradient @ (there - point)):
                break
            length /= 2
        else:
            return point
        step, change, gained = there - point, slope - gradient, value - found
        point, value, gradient = there, found, slope
        if gained <= precision * max(abs(value), 1e-9):
            return point
        bend, along = float(step @ change), curvature @ step
        if bend > 1e-10 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            curvature += np.outer(change, change) / bend - np.outer(along, along) / (step @ along)
    return point
