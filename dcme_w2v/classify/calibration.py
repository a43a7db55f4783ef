"""Probabilities of labels by themselves, and the threshold of the predicted ones.

With the hinge loss, the score of a label says how far a document is on its side. The logistic
function of a score times a plus b, the same for all labels, is its probability (Platt 1999), and
labels above the probability with the best micro F1 are predicted. Rare labels have too low scores
after few epochs; they gain a multiple of the logarithm of the documents that they lack, if the
order of labels is better then (logit adjustment, Menon et al. 2021). With one label a document, a
and b are the most likely ones of probabilities that sum to 1.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from dcme_w2v._core.models import SparseRows
from dcme_w2v.numeric.arrays import F64, I64
from dcme_w2v.training.progress import Reporter

from .choose import OutOfFold, Problem, Search
from .constants import BALANCES, CERTAIN, CLEARLY, FOLDS, LEARNED
from .fit import Labeled
from .metrics import (
    Calibration,
    best_threshold,
    calibrated,
    calibration_of,
    log_softmax,
    ndcg,
    relevance,
)
from .options import ClassifyOptions
from .trainer import Scorer, Weights

MAX_DOCUMENTS, MAX_SCORES = 5000, 1 << 23

_Scores = tuple[F64, list[Sequence[int]]]
FACTORS, BIASES = (1e-3, 20.0), (-30.0, 30.0)  # ranges of a, or a factor, and of b
PRECISION = 1e-5  # of the log-likelihood, and of the derivatives by log a and b
PLAIN = Calibration("logistic", 1.0, 0.0)
NEVER = -1e9  # score of a class without documents


class Calibrated(NamedTuple):
    """What left-out documents say of the scores of a model.

    Attributes
    ----------
    offsets : ndarray of float64, shape (labels,)
        Added to the scores of documents with several labels; no numbers for none.
    by : Calibration or None
        Of the scores with these offsets; None for the softmax.
    threshold : float
        Of the probabilities of several labels.
    """

    offsets: F64 = np.zeros(0)
    by: Calibration | None = None
    threshold: float = 0.5

    def adjust(self, weights: Scorer) -> None:
        """Shift the scores of a linear model."""
        if isinstance(weights, Weights) and len(self.offsets):
            weights.shift(self.offsets)


def calibration_on(
    weights: Scorer,
    data: Labeled,
    options: ClassifyOptions,
    counts: I64 | None = None,
    may_be_none: bool = False,
) -> Calibrated:
    """Return the calibration of scores by documents.

    Where no document has a label that is a class, scores stay as they are, and the threshold is .5.

    Parameters
    ----------
    weights : Scorer
    data : Labeled
        Documents that the weights were not trained on; some of them are enough.
    options : ClassifyOptions
        Resolved.
    counts : ndarray of int64, shape (labels,), optional
        Training documents of each label; none where documents have one label.
    may_be_none : bool
        Whether documents may have no label above the threshold.
    """
    if counts is not None and not isinstance(weights, Weights):  # no offsets
        counts = np.ones_like(counts)
    return _calibration(
        *scores_of(weights, data, options.threads or 1), options, counts, may_be_none
    )


def scores_of(weights: Scorer, data: Labeled, threads: int) -> _Scores:
    """Return the scores of documents whose labels are known, some if they are many, and these."""
    count = min(MAX_DOCUMENTS, max(1, MAX_SCORES // weights.classes))
    known = [i for i, labels in enumerate(data.labels) if min(labels) >= 0][:count]
    rows, labels = data.matrix[known], [data.labels[i] for i in known]
    return weights.scores(SparseRows(rows), 0, len(known), threads), labels


def _calibration(
    scores: F64,
    labels: Sequence[Sequence[int]],
    options: ClassifyOptions,
    counts: I64 | None,
    may_be_none: bool,
) -> Calibrated:
    if counts is None:
        return Calibrated(by=likeliest(scores, labels) if len(labels) else None)
    size = len(counts)  # a further class is for documents without a label
    scores, labels = scores[:, :size], [[one for one in own if one < size] for own in labels]
    offsets, by = np.zeros(0), None
    if options.loss == "hinge":
        if options.bias != 0:
            offsets = _best_offsets(scores, labels, counts)
            if len(offsets):
                scores += offsets
        by = calibration_of(scores, labels) if any(labels) else PLAIN
    if not any(labels):
        return Calibrated(by=by)
    threshold = best_threshold(calibrated(scores, by), labels, may_be_none)
    return Calibrated(offsets=offsets, by=by, threshold=threshold)


def _best_offsets(scores: F64, labels: Sequence[Sequence[int]], counts: I64) -> F64:
    """Return what labels gain by their number of documents, such that nDCG@5 is highest.

    No numbers if no gain is clear.
    """
    best, relevant = np.zeros(0), relevance(labels, len(counts))
    has = relevant.any(axis=1)
    relevant, scores = relevant[has], scores[has]
    if len(scores) < 2:
        return best
    lacking = math.log(max(counts.max(), 1)) - np.log(np.maximum(counts, 1))
    first, highest = ndcg(scores, relevant), 0.0
    for balance in BALANCES:
        gained = ndcg(scores + balance * lacking, relevant) - first
        mean, error = gained.mean(), gained.std() / math.sqrt(len(gained))
        if mean > max(highest, CLEARLY * error):
            highest, best = mean, balance * lacking
    return best


def likeliest(scores: F64, labels: Sequence[Sequence[int]]) -> Calibration:
    """Return a and b of `calibrated` that give labels, one a document, the highest likelihood.

    As b falls, the probabilities become the softmax of a times the scores. Of each document one
    part in n + 1 has the uniform distribution; see `likeliest_factors`.
    """
    count, classes = scores.shape
    wanted = np.full(scores.shape, 1 / ((1 + count) * classes))
    wanted[np.arange(count), np.ravel(labels)] += count / (1 + count)
    centered = scores - scores.mean(axis=1, keepdims=True)

    def loss(at: F64) -> tuple[float, F64]:
        a, b = math.exp(at[0]), at[1]
        log_p = calibrated(scores, Calibration("normalized", a, b))
        # the derivative of log sigma(x) is sigma(-x)
        slopes = (np.exp(log_p) - wanted) * expit(-(a * centered + b))
        gradient = np.array([a * np.vdot(slopes, centered), slopes.sum()])
        return -float(np.vdot(wanted, log_p)) / count, gradient / count

    bounds = [(math.log(FACTORS[0]), math.log(FACTORS[1])), BIASES]
    found = minimize(loss, np.zeros(2), jac=True, tol=PRECISION, bounds=bounds).x
    return Calibration("normalized", math.exp(found[0]), float(found[1]))


def likeliest_factors(
    parts: Sequence[F64], labels: Sequence[Sequence[int]], weights: F64 | None = None
) -> tuple[F64, float]:
    """Return factors of models' scores whose sum gives labels the highest likelihood, and that.

    The softmax of the sum is the probability. Of each document one part in n + 1 has the uniform
    distribution instead of a label, so that the factors stay finite where all n documents are
    classified correctly. A label whose class a model does not know has such a part of its
    probability.

    Parameters
    ----------
    parts : sequence of ndarray of float64, shape (n, classes)
        Of each model; of classes that it does not know, `NEVER`.
    labels : sequence of sequence of int
        Class indices of each document.
    weights : ndarray of float64, shape (n,), optional
        Weights of the documents, with one label each.
    """
    if not len(labels):
        return np.ones(len(parts)), 0.0
    rows = np.repeat(np.arange(len(labels)), [len(one) for one in labels])
    wanted, uniform = np.concatenate(labels), 1 / (1 + len(labels))
    own = np.ones(len(rows)) if weights is None else weights
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

    found = minimize(loss, np.ones(len(parts)), jac=True, bounds=[FACTORS] * len(parts)).x
    log_p = log_probabilities(found)
    log_p[unknown] = math.log(uniform / unknown.shape[1])
    return found, float(own @ log_p[rows, wanted])


def left_out_of(count: int) -> int:
    """Return how many of many documents are left out for their calibration."""
    return min(count, CERTAIN) // FOLDS


def calibration_data(
    data: Labeled,
    classes: int,
    options: ClassifyOptions,
    reporter: Reporter,
    counts: I64 | None = None,
    may_be_none: bool = False,
    scores: OutOfFold | None = None,
) -> tuple[Labeled, Labeled | None, Calibrated | None]:
    """Return the documents to train on, those left out, or the calibration of another training.

    Parameters
    ----------
    data : Labeled
    classes : int
    options : ClassifyOptions
        Resolved.
    reporter : Reporter
    counts, may_be_none
        See `calibration_on`.
    scores : OutOfFold, optional
        Of these options and documents, if they are known.
    """
    count = len(data.labels)
    order = np.random.default_rng(options.seed).permutation(count)
    if count >= LEARNED:
        left_out = left_out_of(count)
        return data.some(np.sort(order[left_out:])), data.some(np.sort(order[:left_out])), None
    if count < FOLDS:
        return data, None, None
    if scores is None:
        reporter.stage("calibrating the probabilities", None, "documents")
        scores = Search(Problem.of(data, classes, options), reporter=reporter).scores({})
    found = _calibration(scores.scores, scores.labels, options, counts, may_be_none)
    return data, None, found
