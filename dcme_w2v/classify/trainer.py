"""Train linear classifiers, and store their weights.

The core may use another order of classes (`dcme_w2v.classify.trainer`); arguments and results
here are in the order of the caller.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v.errors import warn
from dcme_w2v.numeric.arrays import F32, F64, I32, I64, drop_pages, unit_vectors
from dcme_w2v.numeric.sparse_rows import as_matrix, squared_lengths, with_values
from dcme_w2v.training.trainer import Progress, Trainer, core_options, kernels_named, new_table

from .metrics import log_softmax, relevance
from .options import BIAS, INNER, NOISE_POWER, ClassifyOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

DOCUMENTS_A_CLASS = 16
DIMENSIONS = 64
POWERS = 20  # number of power iterations, enough to find the first eigenvector
CLASSES_PER_CACHE_LINE = 16  # same value as DCME_PAD in csrc/kernels/kernels.h


def similar_neighbors(
    matrix: csr_matrix,
    documents: I64,
    labels: I32,
    classes: int,
    seed: int,
) -> I64:
    """Order the classes so that similar classes are adjacent.

    Parameters
    ----------
    matrix : csr_matrix, shape (documents, features)
        The documents.
    documents, labels : ndarray, shape (instances,)
        Pairs of a document and its label.
    """
    if classes <= CLASSES_PER_CACHE_LINE:
        return np.arange(classes)
    by_class = np.argsort(labels, kind="stable")
    ordered = labels[by_class]
    place = np.arange(len(ordered)) - np.searchsorted(ordered, ordered)
    some = by_class[place < DOCUMENTS_A_CLASS]
    random = np.random.default_rng(seed)
    signs = random.integers(0, 2, (matrix.shape[1], DIMENSIONS), dtype=np.int8)
    projected = as_matrix(matrix[documents[some]]) @ (signs * np.float32(2) - np.float32(1))
    points = np.zeros((classes, DIMENSIONS), dtype=np.float64)
    np.add.at(points, labels[some], projected)
    return _split(unit_vectors(points), np.arange(classes))


def _split(points: F64, members: I64) -> I64:
    if len(members) <= CLASSES_PER_CACHE_LINE:
        return members
    centered = points[members] - points[members].mean(axis=0)
    spread = centered.T @ centered
    direction = spread[np.argmax(np.diag(spread))]
    for _ in range(POWERS):
        direction = spread @ direction
        direction /= np.linalg.norm(direction) or 1
    ordered = members[np.argsort(centered @ direction, kind="stable")]
    half = max(
        CLASSES_PER_CACHE_LINE, len(members) // 2 // CLASSES_PER_CACHE_LINE * CLASSES_PER_CACHE_LINE
    )  # round the size of the left half down to whole cache lines
    left, right = _split(points, ordered[:half]), _split(points, ordered[half:])
    return np.concatenate([left, right])


PAD = 16  # each row of weights is padded to a multiple of this length (DCME_PAD)
CHUNK = 2048  # documents are scored in batches of at most this size
SCORES_AT_ONCE = 1 << 23  # maximum number of scores to compute per batch
SHORT_TRAINING = 1 << 33  # training with at most this many multiplications uses one thread
# If row norms are below this fraction of the bias, training with hinge loss can diverge.
SHORT = 0.1
WEIGHTS_AT_ONCE = 1 << 18  # weights are copied in chunks of this size
MARGIN = 4.0  # margin of the hinge loss; same value as in csrc/classify/hinge.c
DIVERGED = 10.0  # training has diverged if the loss exceeds the untrained loss by this factor
# tolerance for rounding errors when weights are rounded up to whole numbers of visits
ROUNDED = 1e-4


def documents_at_once(classes: int) -> int:
    """Return the batch size for scoring documents, given the number of classes."""
    return max(1, min(CHUNK, SCORES_AT_ONCE // classes))


def rows_at_once(classes: int) -> int:
    """Return the batch size for copying weight rows, given the number of classes."""
    return max(1, WEIGHTS_AT_ONCE // classes)


class Scorer(ABC):
    """Protocol for trained models that score documents.

    Attributes
    ----------
    classes : int
    """

    classes: int

    @property
    @abstractmethod
    def features(self) -> int:
        """Number of columns that documents must have."""

    @abstractmethod
    def scores(self, documents: core.SparseRows, begin: int, end: int, threads: int) -> F64:
        """Return the scores of documents `begin` to `end` for all classes."""

    @abstractmethod
    def above_mean(self, number: int) -> F32:
        """Return a class's weights minus the mean weights over all classes, shape (features,)."""

    def batches(self, documents: core.SparseRows, threads: int) -> Iterator[F64]:
        """Yield the scores of all classes for one batch of documents at a time."""
        step = documents_at_once(self.classes)
        for begin in range(0, len(documents), step):
            yield self.scores(documents, begin, min(begin + step, len(documents)), threads)


class Weights(Scorer):
    """A linear model: a matrix of weights with one row per feature and one column per class.

    Parameters
    ----------
    features, classes : int
        Size of the matrix; initial weights are 0.
    bias : float or None
        Value of the bias feature, whose weights are in the last row (default: 0.1).
    order : ndarray of int64, shape (classes,), optional
        The class of each column in the core.

    Attributes
    ----------
    table : ndarray of float32, shape (features + 1, stride)
        The weights in the layout of the core.
    offset : ndarray of float32, shape (classes,)
        Added to the scores: the log noise distribution for negative sampling, otherwise 0.
    """

    def __init__(
        self,
        features: int,
        classes: int,
        bias: float | None,
        order: I64 | None = None,
    ) -> None:
        self.classes, self.bias = classes, BIAS if bias is None else bias
        self.order = np.arange(classes) if order is None else order
        self.place = np.empty(classes, dtype=np.int32)
        self.place[self.order] = np.arange(classes, dtype=np.int32)
        self.offset = np.zeros(classes, dtype=np.float32)
        # Rows are padded to the length that dcme_stride(classes) in the C core returns.
        self.table = new_table(features + 1, -(-classes // PAD) * PAD)
        self.linear = core.Linear(self.table, classes, self.bias, kernels_named())

    @property
    def tables(self) -> dict[str, F32]:
        """The parameters of the model, by name, as views without padding."""
        return {"weights": self.table[:, : self.classes]}

    @property
    def features(self) -> int:
        """Number of features, excluding the bias."""
        return len(self.table) - 1

    def get(self) -> F32:
        """Return the weights in the caller's class order, shape (features + 1, classes)."""
        return np.take(self.table, self.place, axis=1)

    def set(self, weights: F32) -> None:
        """Set the weights from a matrix, possibly memory-mapped, in the layout of `get`."""
        drop_pages(weights)
        step = rows_at_once(self.classes)
        for begin in range(0, len(weights), step):
            block = np.take(weights[begin : begin + step], self.order, axis=1)
            self.table[begin : begin + step, : self.classes] = block
            drop_pages(weights)

    @property
    def intercepts(self) -> F64:
        """The scores of a document that has no features, shape (classes,)."""
        found = self.table[-1, self.place].astype(np.float64) * self.bias
        return found + self.offset

    def copy(self) -> Weights:
        """Return a copy of the weights."""
        found = Weights(self.features, self.classes, self.bias, self.order)
        found.table[:], found.offset[:] = self.table, self.offset
        return found

    def scale(self, factor: float) -> None:
        """Multiply all scores by a factor."""
        self.table *= np.float32(factor)
        self.offset *= np.float32(factor)

    def shift(self, offsets: F64) -> None:
        """Add one offset per class to the scores, by changing the biases of the classes."""
        self.table[-1, : self.classes] += (offsets / self.bias)[self.order].astype(np.float32)

    def blocks(self) -> Iterator[F32]:
        """Yield the rows that `get` returns, in blocks."""
        step = rows_at_once(self.classes)
        for begin in range(0, len(self.table), step):
            yield np.take(self.table[begin : begin + step], self.place, axis=1)

    def above_mean(self, number: int) -> F32:
        """Return a class's weights minus the mean weights over all classes, shape (features,)."""
        table = self.table[:-1, : self.classes]
        return table[:, self.place[number]] - table.mean(axis=1)

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters for pickling, without the padding that the core adds."""
        state = {"features": self.features, "classes": self.classes, "bias": self.bias}
        return state | {"order": self.order, "weights": self.get(), "offset": self.offset}

    def __setstate__(self, state: dict[str, Any]) -> None:
        weights, offset = state.pop("weights"), state.pop("offset")
        self.__init__(**state)  # type: ignore[misc]
        self.set(weights)
        self.offset[:] = offset

    def scores(self, documents: core.SparseRows, begin: int, end: int, threads: int) -> F64:
        """Return the scores of documents `begin` to `end` for all classes."""
        out = np.empty((end - begin, self.table.shape[1]), dtype=np.float32)
        self.linear.scores(documents, begin, end, out, threads)
        # `np.take` returns an array in C order, so that sums over classes are bit-identical.
        found: F64 = np.take(out, self.place, axis=1).astype(np.float64)
        found += self.offset
        return found


def resized(weights: Weights, classes: int) -> Weights:
    """Change the number of classes in a weight matrix; new classes get weights of zero."""
    if weights.classes == classes:
        return weights
    found = Weights(weights.features, classes, weights.bias)
    table = weights.get()[:, :classes]
    found.set(np.pad(table, ((0, 0), (0, classes - table.shape[1]))))
    return found


class Start:
    """Initial weights for training, and a learning-rate scale for each feature.

    Columns are multiplied by a scale, and their weights are divided by it.

    Parameters
    ----------
    weights : Weights
    scale : ndarray of float32, shape (features,)
        Positive factors of the columns; learning rates are multiplied by their squares.
    share : float
        The factor of the bias feature.
    has_one_label : bool
        Whether all new documents have the same label.
    """

    def __init__(
        self, weights: Weights, scale: F32, share: float, has_one_label: bool = False
    ) -> None:
        self.weights, self._scale, self.share = weights, scale, np.float32(share)
        self.has_one_label = has_one_label

    def rows(self, matrix: csr_matrix) -> csr_matrix:
        """Multiply each column of the document rows by the column's scale."""
        return with_values(matrix, matrix.data * self._scale[matrix.indices])

    def begun(self, classes: int) -> Weights:
        """Return the initial weights for scaled documents, with weights of zero for new classes."""
        return self._times(
            resized(self.weights, classes), np.float32(1) / self._scale, 1 / self.share
        )

    def finished(self, weights: Weights) -> Weights:
        """Convert weights for scaled documents to weights for the original documents."""
        return self._times(weights, self._scale, self.share)

    @staticmethod
    def _times(weights: Weights, scale: F32, share: np.float32) -> Weights:
        bias = float(weights.bias / share)
        found = Weights(weights.features, weights.classes, bias, weights.order)
        np.multiply(weights.table, np.append(scale, share)[:, None], out=found.table)
        found.offset[:] = weights.offset
        return found


def _as_sets(
    documents: I64,
    labels: I32,
    sample_weight: F32 | None,
) -> tuple[I64, I32, F32 | None, I64]:
    """Merge each document's instances into one instance with a set of labels.

    The labels of a document ascend, as the core requires.
    """
    is_first = np.append(True, documents[1:] != documents[:-1])
    first = np.flatnonzero(is_first)
    labels = labels[np.lexsort((labels, np.cumsum(is_first)))]
    weights = None if sample_weight is None else sample_weight[first]
    return documents[first], labels, weights, np.append(first, len(labels))


def untrained_loss(options: ClassifyOptions, classes: int) -> float:
    """Return the loss of an untrained model, whose weights are zero."""
    if options.loss == "hinge":
        return classes / 2
    if options.objective in ("nce", "ns"):
        return math.inf  # the untrained loss of nce and ns depends on random samples
    return math.log(classes)


def losses_of(scores: F64, labels: Sequence[Sequence[int]], options: ClassifyOptions) -> F64:
    """Compute each document's loss from its scores, for objectives without sampling."""
    relevant = relevance(labels, scores.shape[1])
    if options.loss == "hinge":
        missing = np.maximum(0, 1 - np.where(relevant, scores, -scores) / MARGIN)
        return np.square(missing).sum(axis=1) / 2
    return -(log_softmax(scores) * relevant).sum(axis=1) / relevant.sum(axis=1)


def visits_of(weights: F32) -> tuple[I64, F32]:
    """Return the instances that an epoch visits, some of them repeatedly, and each visit's weight.

    A step with a weight far above 1 would be too long. An instance with weight 2.5 is therefore
    visited three times, with weight 2.5 / 3 each time.
    """
    visits = np.maximum(np.ceil(weights - ROUNDED), 1).astype(np.int64)
    rows = np.repeat(np.arange(len(weights)), visits)
    return rows, (weights / visits)[rows].astype(np.float32)


def _repeated(labels: I32, sets: I64, rows: I64) -> tuple[I32, I64]:
    """Return the label sets of rows, given row indices that can contain duplicates."""
    sizes = np.diff(sets)[rows]
    ends = np.append(0, np.cumsum(sizes))
    return labels[np.repeat(sets[rows] - ends[:-1], sizes) + np.arange(ends[-1])], ends


def length_and_steps(
    matrix: csr_matrix, documents: I64, sample_weight: F32 | None
) -> tuple[float, F32 | None]:
    """Return the squared row norm that scales learning rates, and the instance weights (or None).

    A step changes the scores of a document by the rate times its squared length. If any squared
    length is more than four times the median, the rate refers to the median, and the steps of
    longer documents are bounded (normalized least mean squares: Nagumo and Noda 1967), so that they
    neither diverge nor slow down the others. Otherwise, the rate refers to the mean length, and the
    weights are None.
    """
    found = squared_lengths(matrix)[documents]
    counts = np.ones(len(found)) if sample_weight is None else sample_weight.astype(np.float64)
    order = np.argsort(found)
    total = np.cumsum(np.where(found > 0, counts, 0.0)[order])
    median = found[order[np.searchsorted(total, total[-1] / 2)]]
    if found.max() > (most := 4 * median) > 0:
        return float(median), (most / np.maximum(found, most)).astype(np.float32)
    return float((found * counts).sum() / counts.sum()), None


def core_values(options: ClassifyOptions) -> dict[str, Any]:
    """Convert options to the settings of the C core."""
    values = {
        name: value or 0 for name, value in core_options(options, ClassifyOptions).items()
    } | INNER
    values["class_clusters"] = values["clusters"]
    # Clusters whose classes are scored for each document: the best ones, and random other ones.
    values["exact_clusters"] = round(values["clusters"] ** 0.5)
    values["draws"] = round(values["clusters"] ** 0.5 / 3)
    values["dual"] = options.solver == "dual"
    values["noise_power"] = 1.0 if options.objective == "nce" else NOISE_POWER
    return values


def is_short(matrix: csr_matrix, instances: int, classes: int, options: ClassifyOptions) -> bool:
    """Return whether training is so short that one thread suffices and makes it deterministic."""
    entries = matrix.nnz * instances / max(1, matrix.shape[0])
    return entries * classes * (options.epochs or 1) <= SHORT_TRAINING


def warn_of_short_rows(matrix: csr_matrix, bias: float | None) -> None:
    """Warn if row norms are so small that training would learn little more than class biases."""
    bias = BIAS if bias is None else bias
    squares = float(squared_lengths(matrix).sum())
    length = math.sqrt(squares / max(1, matrix.shape[0]))
    if 0 < length < bias * SHORT:
        warn(
            f"the rows have a mean norm of {length:.1g}, which is far below the bias of {bias:g}, "
            "so training can diverge or ignore the features; scale the rows to a norm of about 1"
        )


class ClassifierTrainer(Trainer):
    """A trainer that fits weights to labeled documents, epoch by epoch.

    Parameters
    ----------
    matrix : csr_matrix of float32, shape (documents, features)
        The documents.
    documents, labels : ndarray, shape (instances,)
        Index of the document and class of each instance; a document's instances are adjacent.
    classes : int
        Number of classes.
    options : ClassifyOptions
        Options with all defaults filled in.
    weights : Weights, optional
        Initial weights; zeros by default.
    sample_weight : ndarray of float32, shape (instances,), optional
        Positive weights of the instances, with a mean near 1 (default: 1). An instance is visited
        as often as its weight says; see `visits_of`.

    Attributes
    ----------
    count : int
        Number of visits per epoch: to instances, or with the hinge loss to documents, each with all
        of its labels.
    """

    def __init__(
        self,
        matrix: csr_matrix,
        documents: I64,
        labels: I32,
        classes: int,
        options: ClassifyOptions,
        weights: Weights | None = None,
        sample_weight: F32 | None = None,
    ) -> None:
        if options.solver == "dual" or is_short(matrix, len(documents), classes, options):
            options = replace(options, threads=1)  # several threads would change the order of sums
        has_sets = options.loss == "hinge" and bool((documents[1:] == documents[:-1]).any())
        if weights is None:
            is_robust = options.objective == "dcme" and options.dcme_update == "robust"
            is_ordered = is_robust or has_sets
            own = (matrix, documents, labels, classes, options.seed)
            order = similar_neighbors(*own) if is_ordered else None
            weights = Weights(matrix.shape[1], classes, options.bias, order)
        self.weights = weights
        self.documents = core.SparseRows(matrix)
        placed = weights.place[labels]
        sums = np.bincount(placed, sample_weight, minlength=classes)
        counts = np.maximum(np.rint(sums), 1).astype(np.int64)  # at least 1 per class
        # For class and noise probabilities p and q, ns learns log(p / q) + constant, so add log q.
        if options.objective == "ns" and options.solver == "sgd":
            noise = counts[weights.place] ** NOISE_POWER
            weights.offset[:] = np.log(noise / noise.mean())
        is_dual, squares, sets = options.solver == "dual", 1.0, None
        if has_sets:
            documents, placed, sample_weight, sets = _as_sets(documents, placed, sample_weight)
        if not is_dual:
            squares, steps = length_and_steps(matrix, documents, sample_weight)
            if steps is not None:
                sample_weight = steps if sample_weight is None else sample_weight * steps
        self._weight = 1.0  # mean weight of the instances that an epoch visits
        self._untrained = untrained_loss(options, classes)
        if sample_weight is not None and is_dual:
            self._weight = float(sample_weight.mean(dtype=np.float64))
        elif sample_weight is not None:
            rows, visited = visits_of(sample_weight)
            self._weight = float(visited.mean(dtype=np.float64))
            if len(rows) > len(documents):  # batches must be smaller if instances are repeated
                often = 2 * len(rows) // int(np.bincount(rows).max())
                options = replace(options, batch=max(1, min(options.batch or 1, often)))
                if sets is None:
                    placed = placed[rows]
                else:
                    placed, sets = _repeated(placed, sets, rows)
                documents = documents[rows]
            sample_weight = visited
        self.count = len(documents)
        self.instances = core.Instances(
            documents, placed, matrix.shape[0], classes, sample_weight, sets
        )
        values = core_values(options)
        for name in ("lr", "min_lr"):  # the options' learning rates assume rows of unit length
            values[name] /= squares or 1.0
        learner = core.Learner(values, self.documents, self.instances, counts, weights.linear)
        super().__init__(learner, options, weights.tables, kernels_named())

    def progress(self) -> Progress:
        """Return the training progress; its loss is a weighted mean over instances."""
        found = super().progress()
        return replace(found, loss=found.loss / self._weight)

    def epoch(
        self, number: int, watch: Callable[[Progress], bool | None] | None = None
    ) -> Progress:
        """Train one epoch; raise DivergedError if the loss far exceeds the untrained loss."""
        found = super().epoch(number, watch)
        if self.unfinished is None and found.loss > DIVERGED * self._untrained:
            what = (
                f"the loss is {found.loss:.4g}, compared with {self._untrained:.4g} before training"
            )
            raise self._diverged(number, what)
        return found
