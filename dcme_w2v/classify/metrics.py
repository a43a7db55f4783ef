"""Compute metrics of classifiers and clusterings over batches of documents."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import DivergedError, UsageError, import_optional
from dcme_w2v.numeric.arrays import F64, I32, I64, Bools
from dcme_w2v.numeric.nearest import top_columns

RANKS = (1, 3, 5)
# RANGES is the number of probability bins. For multilabel data, probabilities below LEAST_SHOWN are
# ignored.
RANGES, LEAST_SHOWN = 10, 0.01
Top = tuple[I32, F64]  # class indices and scores, both of shape (documents, count)
# Constants A and B of the propensity model by Jain, Prabhu and Varma (2016).
PROPENSITY = 0.55, 1.5


def log_softmax(scores: F64) -> F64:
    """Return the log-softmax of scores, in double precision.

    Raises
    ------
    DivergedError
        A score is NaN or infinite.
    """
    with np.errstate(invalid="ignore"):
        found: F64 = scores - scores.max(axis=1, keepdims=True)
        found -= np.log(np.exp(found).sum(axis=1, keepdims=True))
    if not np.isfinite(found).all():
        check_scores(scores)
    return found


def log_of_probability(least: float) -> float:
    """Return the log of a minimum probability; raise UsageError if it is not between 0 and 1."""
    if not isinstance(least, Real) or not 0 <= least <= 1:
        raise UsageError(f"--min-probability={least!r:.40} must be a number from 0 to 1")
    return math.log(least or math.ulp(0.0))


def best_classes(scores: F64, count: int) -> Top:
    """Return the highest-scoring classes of each document, best first, and their scores.

    The lower class number comes first among equal scores.
    """
    best = top_columns(scores, count)
    return best, np.take_along_axis(scores, best, axis=1)


def relevance(labels: Sequence[Sequence[int]], classes: int) -> Bools:
    """Return whether each document has each class as a label, shape (documents, classes)."""
    found = np.zeros((len(labels), classes), dtype=bool)
    for row, wanted in enumerate(labels):
        found[row, [label for label in wanted if label >= 0]] = True
    return found


def ndcg(scores: F64, relevant: Bools) -> F64:
    """Return the nDCG@5 of each document; every document must have at least one relevant class."""
    k = min(max(RANKS), scores.shape[1])
    hits = np.take_along_axis(relevant, top_columns(scores, k), axis=1)
    discounts = 1 / np.log2(np.arange(2, k + 2))
    ideal = np.cumsum(discounts)[np.minimum(relevant.sum(axis=1), k) - 1]
    return hits @ discounts / ideal


def check_scores(scores: NDArray[np.floating]) -> None:
    """Raise `DivergedError` if a score is NaN or infinite."""
    wrong = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(wrong):
        raise DivergedError(
            f"{len(wrong)} of {len(scores)} documents have a score that is NaN or infinite; scale "
            "the feature values down, or train again with a lower --lr"
        )


class Reliability:
    """A comparison of predicted probabilities with observed frequencies in ten bins.

    If each document has one label, the probability of the best class is compared with its accuracy.
    If documents have several labels, each probability of at least `LEAST_SHOWN` is compared with
    how often documents have the label. The expected calibration error is the mean difference,
    weighted by the number of probabilities in a bin.
    """

    def __init__(self) -> None:
        # Each row sums weights, probabilities or correct predictions; each column is a bin.
        self._sums = np.zeros((3, RANGES))

    def add(self, p: F64, is_right: Bools, weights: F64) -> None:
        """Add predictions, given each one's probability, correctness and weight."""
        ranges = np.minimum((p * RANGES).astype(np.int64), RANGES - 1)
        for sums, values in zip(
            self._sums, (weights, weights * p, weights * is_right), strict=True
        ):
            sums += np.bincount(ranges, values, RANGES)

    def result(self) -> dict[str, Any]:
        """Return the calibration error and each bin's mean probability, frequency and count."""
        counts, expected, observed = self._sums
        used = np.flatnonzero(counts)
        rows = [
            {"from": i / RANGES, "to": (i + 1) / RANGES, "count": float(counts[i]),
             "predicted": float(expected[i] / counts[i]),
             "observed": float(observed[i] / counts[i])}
            for i in used.tolist()
        ]  # fmt: skip
        error = float(np.abs(expected - observed).sum() / (counts.sum() or 1.0))
        return {"expected_calibration_error": error, "calibration": rows}


class Measures:
    """Sums over documents, from which `result` computes the classification metrics.

    Parameters
    ----------
    classes : int
        Number of classes.
    multilabel : bool
        Whether documents may have several labels.
    threshold : float
        Minimum probability of a predicted label; the most probable is always predicted.
    gains : ndarray of float64, shape (classes + 1,), optional
        The gain of each label in the propensity-scored precision, the last one for unknown labels;
        see `propensity_gains`.
    min_probability : float, optional
        Only labels with at least this probability are predicted, so that a document may get none.
        If documents have one label, the share of answered documents and their accuracy are also
        measured.
    """

    def __init__(
        self,
        classes: int,
        multilabel: bool,
        threshold: float = 0.5,
        gains: F64 | None = None,
        min_probability: float | None = None,
    ) -> None:
        self._multilabel, self._classes = multilabel, classes
        self.reliability = Reliability()
        self._may_be_none = min_probability is not None
        self._least = log_of_probability(threshold if min_probability is None else min_probability)
        self._gains = gains
        self._gained = {
            k: np.zeros(2) for k in RANKS
        }  # the total gain and the maximum possible gain at each rank k
        self._documents = self._unknown = 0
        self._total = 0.0  # sum of the documents' weights
        self._sums: dict[str, float] = {}
        self._right, self._predicted = np.zeros(classes), np.zeros(classes)
        self._wanted = np.zeros(classes + 1)  # the last item counts labels unknown to the model

    def add(
        self,
        log_p: F64,
        labels: Sequence[Sequence[int]],
        weights: NDArray[np.floating] | None = None,
    ) -> None:
        """Add documents with their log-probabilities, labels and weights.

        The label -1 is unknown to the model, so that it counts as true but is never predicted.
        """
        own = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
        self._documents += len(labels)
        self._total += float(own.sum())
        for wanted, weight in zip(labels, own, strict=True):
            self._unknown += -1 in wanted
            np.add.at(self._wanted, list(wanted), weight)
        if self._multilabel:
            for row, wanted, weight in zip(log_p, labels, own, strict=True):
                known = [label for label in wanted if label >= 0]
                self._add_several(row, known, len(wanted), float(weight))
                if self._gains is not None:
                    self._add_gains(row, wanted, weight * self._gains)
        else:
            self._add_single(log_p, np.array([one[0] for one in labels], dtype=np.int64), own)

    def _count(self, weight: float = 1.0, **values: float) -> None:
        for name, value in values.items():
            self._sums[name] = self._sums.get(name, 0.0) + weight * float(value)

    def _add_single(self, log_p: F64, wanted: I64, weights: F64) -> None:
        best, known = log_p.argmax(axis=1), wanted >= 0
        is_right = best == wanted
        self.reliability.add(np.exp(log_p.max(axis=1)), is_right, weights)
        np.add.at(self._predicted, best, weights)
        np.add.at(self._right, best[is_right], weights[is_right])
        reached = log_p[known, wanted[known]]
        above = (log_p[known] > reached[:, None]).sum(axis=1)
        self._count(
            accuracy=weights @ is_right, top5_accuracy=weights[known] @ (above < 5),
            log_likelihood=(weights[known] * reached).sum(), known=weights[known].sum(),
        )  # fmt: skip
        if self._may_be_none:
            answered = log_p.max(axis=1) >= self._least
            right = weights @ (is_right & answered)
            self._count(answered=weights @ answered, answered_accuracy=right)

    def _add_several(self, row: F64, known: list[int], wanted: int, weight: float) -> None:
        order = np.argsort(-row, kind="stable")
        relevant = np.zeros(self._classes, dtype=bool)
        relevant[known] = True
        hits = relevant[order]
        shown = np.flatnonzero(row >= math.log(LEAST_SHOWN))
        self.reliability.add(np.exp(row[shown]), relevant[shown], np.full(len(shown), weight))
        chosen = row >= self._least
        chosen[order[0]] |= not self._may_be_none
        self._predicted += weight * chosen
        self._right += weight * (chosen & relevant)
        discounts = 1 / np.log2(np.arange(2, max(RANKS) + 2))
        self._count(weight, labeled=wanted > 0)
        for k in RANKS:
            ideal = discounts[: min(k, max(wanted, 1))].sum()
            gained = (hits[:k] * discounts[: len(hits[:k])]).sum()
            found = float(hits[:k].sum())
            self._count(weight, **{f"precision_at_{k}": found / k, f"ndcg_at_{k}": gained / ideal})
            if k > 1:
                self._count(weight, **{f"r_precision_at_{k}": found / min(k, max(wanted, 1))})
        is_exact = set(np.flatnonzero(chosen)) == set(known) and len(known) == wanted
        self._count(weight, exact_match=is_exact)
        if known:
            # All labels that tie get the worst rank among these labels.
            ranks = np.array([(row >= row[label]).sum() for label in known])
            among = np.array([(row[known] >= row[label]).sum() for label in known])
            self._count(
                weight, coverage=ranks.max(), known=1,
                label_ranking_average_precision=(among / ranks).mean(),
            )  # fmt: skip

    def _add_gains(self, row: F64, wanted: Sequence[int], gains: F64) -> None:
        order = np.argsort(-row, kind="stable")[: max(RANKS)]
        found = np.where(np.isin(order, wanted), gains[order], 0.0)
        possible = -np.sort(-gains[list(wanted)])
        for k, sums in self._gained.items():
            sums += found[:k].sum(), possible[:k].sum()

    def per_class(self) -> list[tuple[float, ...]]:
        """Return precision, recall, F1 and the number of documents for each class."""
        wanted = self._wanted[:-1]
        counts = np.rint(wanted).astype(np.int64)
        figures = (*_f1(self._right, self._predicted, wanted), counts)
        return list(zip(*(one.tolist() for one in figures), strict=True))

    def result(self) -> dict[str, Any]:
        """Return the metrics by name."""
        sums, total = dict(self._sums), self._total or 1.0
        known, labeled = sums.pop("known", 0.0), sums.pop("labeled", total)
        over_known = ("log_likelihood", "coverage", "label_ranking_average_precision")
        found: dict[str, Any] = {
            "documents": self._documents,
            "unknown_label_documents": self._unknown,
        }
        for name, value in sums.items():
            if name == "answered_accuracy":
                found[name] = value / (sums["answered"] or 1.0)
            # R-precision and nDCG are undefined for documents without labels.
            elif name.startswith(("r_precision", "ndcg")):
                found[name] = value / (labeled or 1.0)
            elif name not in over_known:
                found[name] = value / total
            # Log-likelihood, coverage and ranking precision require documents with known labels.
            elif known:
                found[name] = value / known
        if self._multilabel and self._gains is not None:
            for k, (gained, possible) in self._gained.items():
                found[f"propensity_precision_at_{k}"] = float(gained / max(possible, 1e-300))
        return {**found, **self._precision_and_recall()}

    def _precision_and_recall(self) -> dict[str, float]:
        """Return micro- and macro-averaged precision, recall and F1."""
        wanted, unknown = self._wanted[:-1], self._wanted[-1]
        precision, recall, f1 = _f1(self._right, self._predicted, wanted)
        seen = (wanted > 0) | (self._predicted > 0)
        micro = _f1(self._right.sum(), self._predicted.sum(), wanted.sum() + unknown)
        macro = (figures[seen].mean() if seen.any() else 0.0 for figures in (precision, recall, f1))
        names = ("precision", "recall", "f1")
        return {
            **{f"micro_{name}": float(value) for name, value in zip(names, micro, strict=True)},
            **{f"macro_{name}": float(value) for name, value in zip(names, macro, strict=True)},
        }


def _f1(right: Any, predicted: Any, wanted: Any) -> tuple[Any, Any, Any]:
    """Return precision, recall and F1, each of which is 0 where it is undefined."""
    precision, recall = (right / np.where(one > 0, one, 1.0) for one in (predicted, wanted))
    both = predicted + wanted
    return precision, recall, 2 * right / np.where(both > 0, both, 1.0)


def propensity_gains(counts: Sequence[int], documents: int) -> F64:
    """Return the labels' inverse propensities, which favor rare labels (Jain et al. 2016).

    The propensity, the probability that a relevant document is marked with a label, is 1 / (1 + C /
    (n + B)^A) for a label of n training documents, where C = (log N - 1) (B + 1)^A and N is the
    number of documents.

    Parameters
    ----------
    counts : sequence of int
        Training documents of each label.
    documents : int
        All training documents.

    Returns
    -------
    ndarray of float64, shape (labels + 1,)
        Gain of each label; the last one is for labels without training documents.
    """
    a, b = PROPENSITY
    scale = max(0.0, np.log(max(documents, 1)) - 1) * (b + 1) ** a
    return 1 + scale * (np.append(counts, 0) + b) ** -a


def best_threshold(
    log_p: F64, labels: Sequence[Sequence[int]], weights: F64, may_be_none: bool = False
) -> float:
    """Return the probability threshold that maximizes the weighted micro F1.

    The most probable label of a document is always predicted, unless `may_be_none` is set.
    """
    relevant, least = relevance(labels, log_p.shape[1]), 1
    flat, by_pair = log_p.ravel(), np.repeat(weights, log_p.shape[1])
    if not may_be_none:
        first = np.zeros(log_p.shape, dtype=bool)
        first[np.arange(len(log_p)), log_p.argmax(axis=1)] = True
        flat, least = np.where(first.ravel(), 0.0, flat), len(log_p)
    order = np.argsort(-flat, kind="stable")
    right = np.cumsum((relevant.ravel() * by_pair)[order])
    f1 = 2 * right / (np.cumsum(by_pair[order]) + right[-1])
    best = least - 1 + int(f1[least - 1 :].argmax())
    ends = np.exp(flat[order[[best, min(best + 1, len(order) - 1)]]])
    # The threshold is midway between the lowest accepted and the highest rejected probability.
    return float(ends.mean())


class ClusterMeasures:
    """Counts of documents by label and cluster, from which `result` computes the metrics."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], int] = {}

    def add(self, log_p: F64, labels: Sequence[Sequence[str]]) -> None:
        """Add documents, given each document's most probable cluster and first label."""
        for own, cluster in zip(labels, log_p.argmax(axis=1).tolist(), strict=True):
            self._counts[own[0], cluster] = self._counts.get((own[0], cluster), 0) + 1

    def result(self) -> dict[str, Any]:
        """Return the metrics by name; see `cluster_measures`."""
        labels = sorted({label for label, _ in self._counts})
        clusters = sorted({cluster for _, cluster in self._counts})
        table = np.zeros((len(labels), len(clusters)), dtype=np.int64)
        for (label, cluster), count in self._counts.items():
            table[labels.index(label), clusters.index(cluster)] = count
        return cluster_measures(table)


def cluster_measures(table: I64) -> dict[str, Any]:
    """Compute metrics that compare clusters with labels.

    Parameters
    ----------
    table : ndarray of int64, shape (labels, clusters)
        Number of documents of each label in each cluster.

    Returns
    -------
    dict
        `documents`, `labels`, `clusters` (that have documents); `nmi`, the mutual information
        divided by the mean of both entropies, 1 where both are 0; `ari`, the adjusted Rand index
        (Hubert and Arabie 1985); `matching_accuracy`, the share of documents whose cluster is that
        of their label in the best one-to-one matching (Kuhn 1955).
    """
    from scipy.optimize import linear_sum_assignment

    total = int(table.sum())
    if not total:
        return {"documents": 0}
    measures = import_optional("sklearn.metrics", " to compare clusters with labels")
    own = [np.repeat(numbers, table.ravel()) for numbers in np.indices(table.shape).reshape(2, -1)]
    rows, columns = linear_sum_assignment(-table)
    return {
        "documents": total,
        "labels": int(table.any(axis=1).sum()),
        "clusters": int(table.any(axis=0).sum()),
        "nmi": float(measures.normalized_mutual_info_score(*own)),
        "ari": float(measures.adjusted_rand_score(*own)),
        "matching_accuracy": int(table[rows, columns].sum()) / total,
    }
