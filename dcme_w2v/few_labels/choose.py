"""Choose models by cross-validation on labeled documents, then fit and combine them.

The probabilities of most of these models are too close to 0 and 1, because the models learn
predictions as if they were labels. Factors chosen on the folds correct them (Guo et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dcme_w2v.classify.calibration import likeliest_factors
from dcme_w2v.classify.choose import folds_of
from dcme_w2v.classify.constants import SEPARABLE
from dcme_w2v.numeric.arrays import F64, I64, Bools
from dcme_w2v.training.progress import QUIET, Reporter

from . import initial
from .fit import Fitted, TrainingRows, combined, fit_models
from .initial import ScoredRows


def separability(data: TrainingRows, decided: I64) -> tuple[float, int]:
    """Measure how well a classifier can tell labeled from unlabeled documents.

    Parameters
    ----------
    data : TrainingRows
    decided : ndarray of int64
        The estimated classes of the unlabeled documents.

    Returns
    -------
    area : float
        Out-of-fold area under the ROC curve; 0.5 if there are too few documents.
    count : int
        Number of labeled documents that were used; as many unlabeled documents were used.
    """
    random = np.random.default_rng(data.options.seed)
    # Count a document with several labels only once.
    _, first = np.unique(data.documents, return_index=True)
    labeled, unlabeled = [], []
    for label in range(data.classes):
        own = first[data.labels[first] == label]
        others = np.flatnonzero(decided == label)
        count = min(len(own), len(others))
        labeled.append(random.permutation(own)[:count])
        unlabeled.append(random.permutation(others)[:count])
    ours, theirs = np.concatenate(labeled), np.concatenate(unlabeled)
    count, most = len(ours), data.options.folds
    if count < most:
        return 0.5, count
    pieces = [data.labeled.matrix[ours], data.unlabeled.matrix[theirs]]
    rows = sparse.vstack(pieces, format="csr")
    sides = np.repeat(np.arange(2), count)
    folds = folds_of(sides, most, random)
    areas = []
    for fold in range(most):
        out = folds == fold
        weights = initial.train(rows[~out], sides[~out], 2, initial.L2, data.threads)
        tested = ScoredRows(rows[out], data.threads)
        scores = tested.all_scores(weights)
        areas.append(area_under_curve(scores[:, 1] - scores[:, 0], sides[out] == 1))
    return float(np.mean(areas)), count


def differs(area: float, count: int) -> bool:
    """Return whether the area under the ROC curve is significantly above `SEPARABLE`."""
    return area - 1 / np.sqrt(6 * max(count, 1)) > SEPARABLE


def area_under_curve(scores: F64, positive: Bools) -> float:
    """Return the fraction of pairs in which the positive example has the higher score."""
    ours, others = scores[positive], np.sort(scores[~positive])
    below = [np.searchsorted(others, ours, side) for side in ("left", "right")]
    return float(np.sum(below) / (2 * len(ours) * len(others)))


def choose(data: TrainingRows, reporter: Reporter) -> tuple[dict[str, float], dict[str, Any]]:
    """Choose models to combine and their score factors; also return a record of the choice.

    Models that learn from unlabeled documents are far better than the supervised model on most sets
    of texts, but worse on some. The weighted sum with the highest likelihood is seldom worse than
    any single model (stacking, Wolpert 1992). If the unlabeled documents come from another domain
    than the labeled documents, cross-validation on the labeled documents does not show which model
    is best for the unlabeled documents, so the model that the options select is used.
    """
    options = data.options
    given = str(options.final)
    if options.choose is False:
        return {given: 1.0}, {}
    area, count = separability(data, data.unlabeled.decisions(data.supervised())[0])
    record: dict[str, Any] = {"separability": round(area, 6)}
    if is_other := differs(area, count):
        reporter.message(
            "warning: the unlabeled documents differ from the labeled documents (a classifier "
            f"separates the two sets with an ROC AUC of {area:.2f}), so cross-validation cannot "
            f"choose the model, and {given} is used; if the documents to be classified resemble "
            "the labeled documents, use classify train instead"
        )
    of_all = bool(options.choose) and not is_other and _has_enough(data)
    measured = _measured(data, lambda part: fit_models(part, of_all), reporter)
    if measured is None:
        return {given: 1.0}, record
    scores, labels, weights = measured
    factors, log_likelihood = likeliest_factors(
        list(scores.values()), labels[:, None].tolist(), weights
    )
    found = dict(zip(scores, factors.tolist(), strict=True))
    accuracy = {
        name: round(float(weights @ (own.argmax(axis=1) == labels)), 6)
        for name, own in scores.items()
    }
    shown = ", ".join(f"{name} {accuracy[name]:.4f} ({found[name]:.3g})" for name in found)
    reporter.message(
        f"cross-validation accuracy (and weight) per model: {shown}; log-likelihood: "
        f"{log_likelihood:.4f} for the weighted sum, {-np.log(data.classes):.4f} for a uniform "
        "guess"
    )
    if line := _too_many_labels(accuracy):
        reporter.message(line)
    record |= {"fold_accuracy": accuracy, "factors": found}
    return found, record | {"fold_log_likelihood": round(log_likelihood, 6)}


def _too_many_labels(accuracy: Mapping[str, float]) -> str | None:
    """Return a message if the supervised model is better than all other models, or else None."""
    others = {**accuracy}
    own, best = others.pop("supervised", 0.0), max(others.values(), default=1.0)
    if own <= best:
        return None
    return (
        "unlabeled documents do not help here: in cross-validation, the best model that uses them "
        f"has an accuracy of {best:.4f}, and the much faster classify train has {own:.4f}"
    )


def _has_enough(data: TrainingRows) -> bool:
    """Return whether each fold leaves at least two training documents for the largest class."""
    _, first = np.unique(data.groups, return_index=True)
    most = int(np.bincount(data.labels[first]).max())
    return most - -(-most // data.options.folds) >= 2


def _measured(
    data: TrainingRows, models: Callable[[TrainingRows], dict[str, Fitted]], reporter: Reporter
) -> tuple[dict[str, F64], I64, F64] | None:
    """Return each model's out-of-fold scores, and the labeled documents' classes and weights.

    The weights sum to 1. If most classes have the same number of labeled documents, the documents
    were probably drawn separately for each class. A document's weight is then the share of its
    class in the models' predictions for the unlabeled documents. Otherwise, the labeled documents
    show the shares of the classes better than predictions do. Return None if each fold has a single
    class.
    """
    folds, scores = data.folds(), dict[str, F64]()
    tested, decided = np.zeros(len(folds), dtype=bool), np.zeros(data.classes)
    reporter.stage("cross-validation", data.options.folds, "folds")
    for fold in np.unique(folds):
        out = folds == fold
        if len(np.unique(data.labels[~out])) < 2 or len(np.unique(data.groups[~out])) < 2:
            continue
        tested |= out
        for name, found in models(data.part(~out)).items():
            own = scores.setdefault(name, np.zeros((len(folds), data.classes)))
            own[out] = found.scores(data.labeled.matrix[out], data.threads)
            best, _ = data.unlabeled.decisions(found.weights)
            decided += np.bincount(best, minlength=data.classes)
        reporter.advance(int(fold) + 1)
    if not tested.any():
        return None
    labels, all_counts = data.labels[tested], np.bincount(data.labels, minlength=data.classes)
    weights = np.ones(len(labels))
    if all_counts.max() == np.median(all_counts):
        weights = ((decided + 1) / np.maximum(np.bincount(labels, minlength=data.classes), 1))[
            labels
        ]
    return {name: own[tested] for name, own in scores.items()}, labels, weights / weights.sum()


def fit_chosen(data: TrainingRows, reporter: Reporter = QUIET) -> Fitted:
    """Fit the model that the options select, or a sum of models that cross-validation chooses.

    Parameters
    ----------
    data : TrainingRows
        Checked by `check_data`.
    reporter : Reporter, optional
        Takes the progress.
    """
    factors, record = choose(data, reporter)
    models = fit_models(data, len(factors) > 1, reporter)
    found = models["distill"] if len(models) > 1 else next(iter(models.values()))
    if len(models) > 1:
        parts = [(factors[name], one.weights) for name, one in models.items()]
        found = replace(found, weights=combined(parts), final="sum")
    else:
        found.scale(factors[found.final])
    found.record = ({"choice": record} if record else {}) | found.record
    return found
