"""Whether the labeled documents are of the same domain as the unlabeled ones.

A classifier learns to separate labeled from unlabeled documents. Where both are similar, its area
under the ROC curve is about 0.5 out of fold. Each class has the same share on both sides, so that
labeled documents that were selected by class do not differ for this reason.
"""

import numpy as np
from scipy import sparse

from dcme_w2v.numeric.arrays import F64, I64, Bools

from . import initial
from .fit import TrainingRows
from .initial import ScoredRows

FOLDS, L2 = 3, 1e-4
MARGIN = 0.15  # above 0.5: documents of one domain were below 0.06, of two mostly above 0.18
ERRORS = 3.0  # standard errors above 0.5, where documents are few


def separability(data: TrainingRows, decided: I64) -> tuple[float, int]:
    """Return how well labeled and unlabeled documents can be separated.

    Parameters
    ----------
    data : TrainingRows
    decided : ndarray of int64
        The estimated classes of the unlabeled documents.

    Returns
    -------
    area : float
        Area under the ROC curve, out of fold; 0.5 where there are too few documents.
    count : int
        Number of labeled documents that were used, with as many unlabeled ones.
    """
    random = np.random.default_rng(data.options.seed)
    _, first = np.unique(data.groups, return_index=True)  # a document with two labels once
    labeled, unlabeled = [], []
    for label in range(data.classes):
        own = first[data.labels[first] == label]
        others = np.flatnonzero(decided == label)
        count = min(len(own), len(others))
        labeled.append(random.permutation(own)[:count])
        unlabeled.append(random.permutation(others)[:count])
    ours, theirs = np.concatenate(labeled), np.concatenate(unlabeled)
    count = len(ours)
    if count < FOLDS:
        return 0.5, count
    pieces = [data.labeled.matrix[ours], data.unlabeled.matrix[theirs]]
    rows = sparse.vstack(pieces, format="csr")
    sides = np.repeat(np.arange(2), count)
    folds = initial.folds_of(sides, FOLDS, random)
    areas = []
    for fold in range(FOLDS):
        out = folds == fold
        weights = initial.train(rows[~out], sides[~out], 2, L2, data.threads)
        tested = ScoredRows(rows[out], data.threads)
        scores = np.concatenate(list(tested.scores(weights)))
        areas.append(area_under_curve(scores[:, 1] - scores[:, 0], sides[out] == 1))
    return float(np.mean(areas)), count


def differs(area: float, count: int) -> bool:
    """Return whether an area from `separability` is significantly above 0.5."""
    return count >= FOLDS and area > 0.5 + max(MARGIN, ERRORS / np.sqrt(6 * count))


def area_under_curve(scores: F64, positive: Bools) -> float:
    """Return how often a positive has a higher score than a negative; ties count half."""
    many, few = int(positive.sum()), int((~positive).sum())
    _, place, equal = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(equal) - (equal - 1) / 2)[place]
    return float((ranks[positive].sum() - many * (many + 1) / 2) / (many * few))
