"""Choosing initial model, rounds and final model by cross-validation on the labelled documents.

Called by `dcme_w2v.few_labels.fit`.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.few_labels import domain, initial
from dcme_w2v.few_labels.fit import Data, Fitted, finished, fit_out_of_fold, fit_rounds
from dcme_w2v.few_labels.initial import Rows
from dcme_w2v.few_labels.options import ROUNDS, FusedOptions
from dcme_w2v.training.progress import Reporter

# Name -> initial model, rounds, final model; of equal accuracy the first.
CANDIDATES = {
    "teach": ("self-training", ROUNDS, "teach"),
    "self-training": ("self-training", 1, "self-training"),
    "maxent": ("supervised", 1, "maxent"),
    "beside": ("supervised", 1, "beside"),
    "tied": ("supervised", 1, "tied"),
    "self-trained, tied": ("self-training", ROUNDS, "tied"),
}

DEFAULT = "teach"


def choose(data: Data, reporter: Reporter) -> tuple[FusedOptions, str, dict[str, Any]]:
    """Return the options and the final model with the best accuracy on the folds, and all of them.

    Maxent and self-training are among the candidates, so that what is chosen is not below them on
    the folds. Classes count as their shares of the unlabelled documents, by the mean of all
    candidates' decisions. Where the unlabelled documents are of another domain, folds of the
    labelled ones do not show what is best for them, and the default is taken.
    """
    area, count = _separability(data)
    if domain.differs(area, count):
        reporter.message(
            "warning: the unlabelled documents differ from the labelled ones (separated with an "
            f"area under the curve of {area:.2f}): folds cannot choose; {DEFAULT} is taken. If "
            "they are not of the kind to be classified, leave them out: classify train"
        )
        start, rounds, final = CANDIDATES[DEFAULT]
        options = dataclasses.replace(data.options, initial=start, rounds=rounds)
        return options, final, {"chosen": DEFAULT, "separability": round(area, 6)}
    folds = data.folds(data.options.seed)
    right = {name: np.zeros(data.classes) for name in CANDIDATES}
    tested, decided = np.zeros(data.classes), np.zeros(data.classes)
    for fold in np.unique(folds):
        out = folds == fold
        if len(np.unique(data.labels[~out])) < 2:
            continue
        reporter.message(f"choosing: fold {int(fold) + 1} of {int(folds.max()) + 1}")
        tested += np.bincount(data.labels[out], minlength=data.classes)
        for name, found in _candidates(data.part(~out), reporter).items():
            right[name] += _correct(data, found, out)
            others = data.fused if found.predicts_binary else data.unlabelled
            decided += np.bincount(others.decisions(found.weights)[0], minlength=data.classes)
    # Labelled documents may have other shares of the classes than the unlabelled ones.
    weights = np.where(tested > 0, (decided + 1) / np.maximum(tested, 1), 0)
    total = float(tested @ weights)
    accuracy = {name: round(float(hits @ weights) / total, 6) for name, hits in right.items()}
    best = max(accuracy, key=lambda name: accuracy[name])
    reporter.message(f"chosen: {best} (accuracy on the folds: {accuracy[best]:.4f})")
    start, rounds, final = CANDIDATES[best]
    options = dataclasses.replace(data.options, initial=start, rounds=rounds)
    record = {"chosen": best, "fold_accuracy": accuracy, "separability": round(area, 6)}
    return options, final, record


def _separability(data: Data) -> tuple[float, int]:
    """Return how well labelled and unlabelled documents can be separated."""
    matrix, labels = data.labelled.matrix, data.labels
    weights = initial.train(matrix, labels, data.classes, initial.L2_OF_MANY, data.threads)
    decided, _ = data.unlabelled.decisions(weights)
    return domain.separability(data, decided)


def _correct(data: Data, found: Fitted, out: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many labelled documents of a fold are decided rightly, by class."""
    own = data.fused_labelled if found.predicts_binary else data.labelled
    tested = Rows(csr_matrix(own.matrix[out]), data.threads)
    decided, _ = tested.decisions(found.weights)
    labels = data.labels[out]
    return np.bincount(labels[decided == labels], minlength=data.classes)


def _candidates(data: Data, reporter: Reporter) -> dict[str, Fitted]:
    """Return the models of all candidates; what they have in common is learnt once."""
    folds = data.folds(data.options.seed + 1)
    matrix, labels, classes = data.labelled.matrix, data.labels, data.classes
    l2 = initial.chosen_l2(matrix, labels, classes, folds, data.threads)
    maxent = initial.train(matrix, labels, classes, l2, data.threads)
    trained = initial.self_train(matrix, labels, data.unlabelled, maxent)
    found = {"maxent": Fitted(maxent, "maxent"), "self-training": Fitted(trained, "self-training")}
    once, more = (_with(data, rounds) for rounds in (1, ROUNDS))
    found["tied"] = fit_out_of_fold(once, maxent, l2, False, reporter)
    found["beside"] = fit_out_of_fold(once, maxent, l2, True, reporter)
    found["self-trained, tied"] = fit_rounds(more, trained, reporter)
    found["teach"] = finished(more, found["self-trained, tied"], "teach", reporter)
    return found


def _with(data: Data, rounds: int) -> Data:
    found = data.part(np.ones(len(data.labels), dtype=bool))
    found.options = dataclasses.replace(data.options, rounds=rounds)
    return found
