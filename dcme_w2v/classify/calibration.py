"""Probabilities of labels by themselves, and the threshold of the predicted ones.

With the hinge loss, the score of a label says how far a document is on its side. The logistic
function of a score times a plus b, the same for all labels, is its probability (Platt 1999), and
labels above the probability with the best micro F1 are predicted.
"""

from collections.abc import Sequence

import numpy as np

from dcme_w2v.numeric.arrays import F64
from dcme_w2v.training.progress import Reporter

from .fit import Labelled, fit
from .metrics import Calibration, best_threshold, calibrated, calibration_of
from .options import ClassifyOptions
from .trainer import Weights, core_documents

MAX_DOCUMENTS, MAX_SCORES = 5000, 1 << 23
SHORT = 20_000  # documents: below, a training of its own leaves some out; above, one in SHARE
FOLD, SHARE = 5, 50
CERTAIN = 1500  # documents left out, in several folds; so many are enough

_Scores = tuple[F64, list[Sequence[int]]]
Calibrated = tuple[Calibration | None, float]  # and the threshold


def calibration_on(
    weights: Weights, data: Labelled, options: ClassifyOptions, may_be_none: bool = False
) -> Calibrated:
    """Return the calibration of scores, None for the softmax, and the threshold of probabilities.

    Where no document has a label that is a class, scores stay as they are, and the threshold is .5.

    Parameters
    ----------
    weights : Weights
    data : Labelled
        Documents that the weights were not trained on; some of them are enough.
    options : ClassifyOptions
        Resolved.
    may_be_none : bool
        Whether documents may have no label above the threshold.
    """
    return _calibration(*_scores(weights, data, options), options, may_be_none)


def _scores(weights: Weights, data: Labelled, options: ClassifyOptions) -> _Scores:
    """Return the scores of documents, some if they are many, and their labels."""
    count = min(MAX_DOCUMENTS, max(1, MAX_SCORES // weights.classes))
    known = [i for i, labels in enumerate(data.labels) if min(labels) >= 0][:count]
    rows, labels = data.matrix[known], [data.labels[i] for i in known]
    return weights.scores(core_documents(rows), 0, len(known), options.threads or 1), labels


def _calibration(
    scores: F64,
    labels: Sequence[Sequence[int]],
    options: ClassifyOptions,
    may_be_none: bool,
) -> Calibrated:
    if not len(labels):
        return (1.0, 0.0) if options.loss == "hinge" else None, 0.5
    by = calibration_of(scores, labels) if options.loss == "hinge" else None
    return by, best_threshold(calibrated(scores, by), labels, may_be_none)


def calibration_data(
    data: Labelled,
    classes: int,
    options: ClassifyOptions,
    reporter: Reporter,
    may_be_none: bool = False,
) -> tuple[Labelled, Labelled | None, Calibrated | None]:
    """Return the documents to train on, those left out, or the calibration of another training.

    Parameters
    ----------
    data : Labelled
    classes : int
    options : ClassifyOptions
        Resolved.
    reporter : Reporter
    may_be_none : bool
        See `calibration_on`.
    """
    count = len(data.labels)
    order = np.random.default_rng(options.seed).permutation(count)
    if count >= SHORT:
        left_out = min(count // SHARE, max(1, MAX_SCORES // classes))
        return data.some(np.sort(order[left_out:])), data.some(np.sort(order[:left_out])), None
    left_out = count // FOLD
    if not left_out:
        return data, None, None
    reporter.stage("choosing the threshold of labels", None, "documents")
    parts, labels = [], list[Sequence[int]]()
    for begin in range(0, min(FOLD * left_out, CERTAIN), left_out):
        out = order[begin : begin + left_out]
        weights, _ = fit(data.some(np.setdiff1d(order, out)), classes, options)
        scores, own = _scores(weights, data.some(np.sort(out)), options)
        parts.append(scores)
        labels += own
    return data, None, _calibration(np.concatenate(parts), labels, options, may_be_none)
