"""Label trees with sparse weights, for many thousands of labels.

Similar labels are clustered into nodes of a tree (Prabhu et al. 2018, Parabel; Khandagale et al.
2020, Bonsai). Each node has a linear model that scores its children, trained with the squared hinge
loss on the documents that have a label below the node; small weights are dropped. Prediction is a
beam search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v.formats.artifact import Model
from dcme_w2v.numeric.arrays import F32, F64, I8, I32, I64, Array, ChunkedArray, unit_vectors
from dcme_w2v.numeric.parallel import one_blas_thread, ordered_map
from dcme_w2v.numeric.sparse_rows import as_matrix

from .metrics import Top, best_classes
from .options import TREES, ClassifyOptions, resolved
from .trainer import ClassifierTrainer, Scorer, documents_at_once

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    _Rows = tuple[I32, csr_matrix]  # a node's features, and its weights (features x children)


if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LEAF = 64  # maximum number of labels in a leaf of the tree
ROOT, BRANCH = 1024, 64  # maximum number of children of the root, and of other inner nodes
BEAM = 10  # beam width: number of nodes that the search keeps per tree level
# Weights whose magnitude is below this limit are dropped.
# On EURLEX57K, a limit of 0.4 would keep twice as many weights but raise P@5 by only 0.4 points.
SMALLEST = 0.6
# Number of dimensions of a label centroid, and maximum number of documents that it averages.
DIMENSIONS, OF_A_LABEL = 256, 32
ROUNDS = 20  # maximum number of 2-means iterations
BLOCK = 1024  # label centroids are projected in blocks of this size

# Weights are quantized to this many levels on a logarithmic scale with steps of about 6%.
LEVELS = 127

ARRAYS = {"children": "int64", "rows": "int64", "features": "int32", "starts": "int64",
          "columns": "uint16", "values": "float32", "labels": "int32"}  # fmt: skip


@dataclass(frozen=True)
class Tree:
    """A label tree: arrays in the layout of csrc/classify/label_tree.h, and the leaves' labels.

    Attributes
    ----------
    arrays : dict of ndarray
        See `ARRAYS`.
    features : int
        Number of features, without the bias.
    bias : float
        Value of the bias feature.
    """

    arrays: dict[str, Array]
    features: int
    bias: float

    def __post_init__(self) -> None:
        arrays = {name: self.arrays[name] for name in ARRAYS if name != "labels"}
        made = core.LabelTree(**arrays, bias_feature=self.features, bias=self.bias)
        object.__setattr__(self, "core", made)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self.arrays), self.features, self.bias)

    def best(self, documents: core.SparseRows, begin: int, end: int, count: int) -> tuple[I32, F32]:
        """Return each document's most probable labels (-1 as padding) and log-probabilities."""
        places = np.empty((end - begin, count), dtype=np.int32)
        scores = np.empty((end - begin, count), dtype=np.float32)
        self.core.best(documents, begin, end, BEAM, places, scores)  # type: ignore[attr-defined]
        labels = np.append(self.arrays["labels"], np.int32(-1))[places]
        return labels.astype(np.int32), scores

    def weights(self, label: int) -> F32:
        """Return a label's weights in its leaf, shape (features,)."""
        children, starts = self.arrays["children"], self.arrays["starts"]
        nodes = len(children) - 1
        place = nodes + int(np.flatnonzero(self.arrays["labels"] == label)[0])
        node = int(np.searchsorted(children, place, side="right")) - 1
        begin, end = self.arrays["rows"][node], self.arrays["rows"][node + 1]
        entries = np.arange(starts[begin], starts[end])
        own = self.arrays["columns"][entries] == place - children[node]
        rows = np.repeat(np.arange(begin, end), np.diff(starts[begin : end + 1]))[own]
        found = np.zeros(self.features + 1, dtype=np.float32)
        found[self.arrays["features"][rows]] = self.arrays["values"][entries[own]]
        return found[:-1]


def coded(
    values: F32,
) -> tuple[I8, F64]:
    """Quantize nonzero weights to signed levels; return the levels and the range of magnitudes."""
    sizes = np.abs(values.astype(np.float64))
    ends = np.array([sizes.min(), sizes.max()]) if len(sizes) else np.ones(2)
    step = max(float(np.log(ends[1] / ends[0])) / (LEVELS - 1), 1e-9)
    levels = np.rint(np.log(sizes / ends[0]) / step) + 1
    return (levels * np.sign(values)).astype(np.int8), ends


def decoded(levels: I8, ends: F64) -> F32:
    """Convert signed levels back to weights."""
    sizes = np.append(0.0, np.geomspace(ends[0], ends[1], LEVELS)).astype(np.float32)
    own: F32 = sizes[np.minimum(np.abs(levels.astype(np.int16)), LEVELS)]
    return np.where(levels < 0, -own, own)


def train_trees(
    matrix: csr_matrix,
    documents: I64,
    labels: I32,
    classes: int,
    options: ClassifyOptions,
    watch: Callable[[int], None],
    sample_weight: F32 | None = None,
) -> list[Tree]:
    """Train several label trees, whose probabilities are averaged.

    Parameters
    ----------
    matrix, documents, labels, classes
        See `dcme_w2v.classify.trainer.ClassifierTrainer`.
    options : ClassifyOptions
        `threads`, `seed`, and of the nodes `epochs`, `lr`, `min_lr`, `l2`, `bias`.
    watch : callable
        Called with the number of documents learned so far; a document counts once per node it
        reaches.
    sample_weight : ndarray of float32, shape (instances,), optional
        Weights of the instances; all instances of a document have the same weight.
    """
    matrix = as_matrix(matrix)
    matrix.sort_indices()
    done, found, weights = 0, [], None
    if sample_weight is not None:
        weights = np.ones(matrix.shape[0], dtype=np.float32)
        weights[documents] = sample_weight

    def advance(count: int) -> None:
        nonlocal done
        done += count
        watch(done)

    for number in range(TREES):
        random = np.random.default_rng((options.seed, number))
        watch(done)
        with one_blas_thread():
            points = centroids(matrix, documents, labels, classes, random, weights)
            groups = balanced_groups(points, random)
        found.append(_train(matrix, documents, labels, groups, options, advance, weights))
    return found


def centroids(
    matrix: csr_matrix,
    documents: I64,
    labels: I32,
    classes: int,
    random: np.random.Generator,
    weights: F32 | None = None,
) -> F32:
    """Return a unit vector per label: the projected and normalized sum of the label's documents."""
    from scipy.sparse import csr_matrix

    order = np.lexsort((random.random(len(labels)), labels))
    sorted_labels = labels[order]
    starts = np.searchsorted(sorted_labels, np.arange(classes + 1))
    some = order[np.arange(len(order)) - starts[sorted_labels] < OF_A_LABEL]
    often = np.ones(len(some), np.float32) if weights is None else weights[documents[some]]
    own = csr_matrix((often, (labels[some], documents[some])), (classes, matrix.shape[0]))
    signs = random.integers(0, 2, (matrix.shape[1], DIMENSIONS), dtype=np.int8)
    signs = signs * np.float32(2) - np.float32(1)
    points = np.empty((classes, DIMENSIONS), dtype=np.float32)
    for begin in range(0, classes, BLOCK):
        points[begin : begin + BLOCK] = (own[begin : begin + BLOCK] @ matrix) @ signs
    return unit_vectors(points)


def balanced_groups(points: F32, random: np.random.Generator) -> list[I64]:
    """Divide points into groups of at most LEAF points by recursive balanced 2-means."""
    found: list[I64] = []
    waiting = [np.arange(len(points))]
    while waiting:
        members = waiting.pop()
        if len(members) <= LEAF:
            found.append(members)
            continue
        own, half = points[members], len(members) // 2
        first, second = own[random.choice(len(members), 2, replace=False)]
        before = members
        for _ in range(ROUNDS):
            order = np.argsort(own @ (second - first), kind="stable")
            left, right = members[order[:half]], members[order[half:]]
            if np.array_equal(left, before):
                break
            first, second = own[order[:half]].sum(axis=0), own[order[half:]].sum(axis=0)
            first /= max(float(np.linalg.norm(first)), 1e-30)
            second /= max(float(np.linalg.norm(second)), 1e-30)
            before = left
        waiting += [right, left]
    return found


def _levels(groups: int) -> list[I64]:
    """Return the parent of each node, level by level from the leaves to the root."""
    found: list[I64] = []
    while groups > ROOT:
        found.append(np.arange(groups) // BRANCH)
        groups = -(-groups // BRANCH)
    return [*found, np.zeros(groups, dtype=np.int64)]


def _train(
    matrix: csr_matrix,
    documents: I64,
    labels: I32,
    groups: Sequence[I64],
    options: ClassifyOptions,
    advance: Callable[[int], None],
    weights: F32 | None,
) -> Tree:
    """Train the nodes of a tree whose leaves are the given groups of labels."""
    order = np.concatenate(groups)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    parents = [np.repeat(np.arange(len(groups)), [len(one) for one in groups])]
    parents += _levels(len(groups))
    child, jobs = place[labels], []
    pairs = []  # for each tree level, the child and the parent of each document-label pair
    for parent in parents:
        pairs.append((child, parent[child]))
        child = parent[child]
    given = replace(options, objective="gd", threads=1, batch=options.batch or LEAF // 16)
    own = resolved(given, LEAF)
    parts: list[tuple[I32, csr_matrix]] = []
    counts = []
    for (number, above), parent in zip(reversed(pairs), reversed(parents), strict=True):
        counts.append(np.bincount(parent))
        jobs.append(_nodes(documents, number, above, parent))

    def train(job: tuple[I64, I64, int]) -> tuple[int, _Rows]:
        return len(job[0]), _train_node(matrix, *job, own, weights)

    nodes = (job for level in jobs for job in level)
    for count, rows in ordered_map(train, nodes, options.threads):
        parts.append(rows)
        advance(count)
    sizes = np.concatenate(counts)
    tables = [table for _, table in parts]
    entries = np.concatenate([np.diff(table.indptr) for table in tables])
    arrays = {
        "children": 1 + np.append(0, np.cumsum(sizes)),
        "rows": np.append(0, np.cumsum([len(one) for one, _ in parts])),
        "features": np.concatenate([one for one, _ in parts]),
        "starts": np.append(0, np.cumsum(entries)),
        "columns": np.concatenate([table.indices.astype(np.uint16) for table in tables]),
        "values": decoded(*coded(np.concatenate([table.data for table in tables]))),
        "labels": order,
    }
    typed = {name: arrays[name].astype(dtype) for name, dtype in ARRAYS.items()}
    return Tree(typed, matrix.shape[1], options.bias or 0.0)


def _nodes(
    documents: I64,
    child: I64,
    parent: I64,
    parents: I64,
) -> Iterator[tuple[I64, I64, int]]:
    """Yield each node's documents, each document's child node, and the number of child nodes."""
    order = np.lexsort((child, documents, parent))
    starts = np.searchsorted(parent[order], np.arange(parents[-1] + 2))
    first = np.searchsorted(parents, np.arange(parents[-1] + 2))
    for node in range(len(starts) - 1):
        chosen = order[starts[node] : starts[node + 1]]
        own, number = documents[chosen], child[chosen] - first[node]
        is_new = np.ones(len(own), dtype=bool)  # stays empty if the node has no documents
        is_new[1:] = (np.diff(own) != 0) | (np.diff(number) != 0)
        yield own[is_new], number[is_new], int(first[node + 1] - first[node])


def _train_node(
    matrix: csr_matrix,
    documents: I64,
    child: I64,
    children: int,
    options: ClassifyOptions,
    weights: F32 | None,
) -> _Rows:
    """Train a node; return its weights, with small weights and empty rows dropped."""
    from scipy.sparse import csr_matrix

    if not len(documents):
        return np.array([matrix.shape[1]], np.int32), csr_matrix((1, children), dtype=np.float32)
    own, number = np.unique(documents, return_inverse=True)
    rows = matrix if len(own) == matrix.shape[0] else matrix[own]
    used = np.zeros(matrix.shape[1], dtype=bool)
    used[rows.indices] = True
    columns = np.flatnonzero(used).astype(np.int32)
    place = np.cumsum(used, dtype=np.int32) - 1
    rows = csr_matrix((rows.data, place[rows.indices], rows.indptr), (len(own), len(columns)))
    task = (rows, number, child.astype(np.int32), children, options)
    of_instances = None if weights is None else weights[documents]
    training = ClassifierTrainer(*task, sample_weight=of_instances)
    for epoch in range(training.epochs):
        training.epoch(epoch)
    learned = training.weights.get()
    learned[:-1][np.abs(learned[:-1]) < SMALLEST] = 0
    is_kept = np.asarray(learned.any(axis=1))
    is_kept[-1] = True
    table = csr_matrix(learned[is_kept])
    return np.append(columns, np.int32(matrix.shape[1]))[is_kept], table


CANDIDATES = 100  # number of labels that a tree returns per document
STORED = (
    "children",
    "rows",
    "features",
    "columns",
    "labels",
)  # arrays that are stored unchanged in model files
LARGEST = 1e30  # maximum magnitude of a weight in a valid file
LOWEST = -20.0  # log-probability of a label that no tree returns


class Forest(Scorer):
    """Several trees over the same labels; a score is the log of the trees' mean probability.

    Parameters
    ----------
    trees : list of Tree
        At least one.
    classes : int
    """

    def __init__(self, trees: list[Tree], classes: int) -> None:
        self.trees, self.classes = trees, classes

    @property
    def features(self) -> int:
        """Number of columns that documents must have."""
        return self.trees[0].features

    def _label_probabilities(self, documents: core.SparseRows, begin: int, end: int) -> csr_matrix:
        """Return the candidate labels of all trees, with probabilities averaged over the trees."""
        from scipy.sparse import csr_matrix

        shape, count = (end - begin, self.classes), min(CANDIDATES, self.classes)
        found = csr_matrix(shape)
        for tree in self.trees:
            labels, scores = tree.best(documents, begin, end, count)
            known = labels >= 0
            place = np.repeat(np.arange(end - begin), known.sum(axis=1)), labels[known]
            p = np.exp(scores[known].astype(np.float64)) / len(self.trees)
            found = found + csr_matrix((p, place), shape)
        return found

    def _batches(self, documents: core.SparseRows, threads: int) -> Iterator[csr_matrix]:
        step = max(1, min(documents_at_once(self.classes), -(-len(documents) // threads)))
        spans = ((i, min(i + step, len(documents))) for i in range(0, len(documents), step))
        return ordered_map(lambda span: self._label_probabilities(documents, *span), spans, threads)

    def scores(self, documents: core.SparseRows, begin: int, end: int, threads: int) -> F64:
        """Return the logs of the trees' mean probabilities, shape (documents, classes)."""
        return _log(self._label_probabilities(documents, begin, end).toarray())

    def batches(self, documents: core.SparseRows, threads: int) -> Iterator[F64]:
        """Yield the log-probabilities of all classes for one batch of documents at a time."""
        return (_log(found.toarray()) for found in self._batches(documents, threads))

    def best(self, documents: core.SparseRows, count: int, threads: int) -> Iterator[Top]:
        """Yield each document's best classes, without computing the scores of all classes."""
        for found in self._batches(documents, threads):
            sizes = np.diff(found.indptr)
            if sizes.min(initial=count) < count:
                yield best_classes(_log(found.toarray()), count)
                continue
            rows = np.repeat(np.arange(len(sizes)), sizes)
            order = np.lexsort((found.indices, -found.data, rows))
            chosen = order[found.indptr[:-1, None] + np.arange(count)]
            yield found.indices[chosen].astype(np.int32), _log(found.data[chosen])

    def above_mean(self, number: int) -> F32:
        """Return a class's weights, averaged over the trees."""
        return np.mean([tree.weights(number) for tree in self.trees], axis=0)


def _log(p: F64) -> F64:
    return np.log(np.maximum(p, np.exp(LOWEST)))


def tree_arrays(tree: Tree) -> dict[str, Array | ChunkedArray]:
    """Convert a tree to arrays for `save_model`."""
    levels, ends = coded(tree.arrays["values"])
    lengths = np.diff(tree.arrays["starts"]).astype(np.uint16)
    coding: dict[str, Array | ChunkedArray] = {"levels": levels, "ends": ends, "lengths": lengths}
    return coding | {name: tree.arrays[name] for name in STORED}


def forest_of(model: Model, classes: int, bias: float) -> Forest:
    """Restore the trees from a model file."""
    trees: list[Tree] = []
    while f"children_{len(trees)}" in model.arrays:
        trees.append(_tree(model, f"_{len(trees)}", classes, bias))
    if len({tree.features for tree in trees}) > 1:
        raise model.fault("features_0", "do not have as many columns as in the other trees")
    return Forest(trees, classes)


def _tree(model: Model, suffix: str, classes: int, bias: float) -> Tree:
    arrays: dict[str, Array] = {
        name: np.ascontiguousarray(model.array(f"{name}{suffix}", ARRAYS[name], None))
        for name in STORED
    }
    lengths = model.array(f"lengths{suffix}", "uint16", None)
    levels = model.array(f"levels{suffix}", "int8", None)
    ends = model.array(f"ends{suffix}", "float64", 2)
    try:
        if not 0 < ends[0] <= ends[1] < LARGEST:
            raise ValueError("the range of the weight magnitudes is not valid")
        arrays["starts"] = np.append(0, np.cumsum(lengths, dtype=np.int64))
        arrays["values"] = decoded(levels, ends)
        if not np.array_equal(np.sort(arrays["labels"]), np.arange(classes)):
            raise ValueError("a label tree must contain each class exactly once")
        # The last row of each node belongs to the bias feature, which has the highest index.
        tree = Tree(arrays, int(arrays["features"].max(initial=0)), bias)
        if arrays["children"][-1] != len(arrays["children"]) - 1 + classes:
            raise ValueError("a label tree must have one leaf per class")
    except ValueError as error:
        raise model.fault(f"children{suffix}", str(error)) from None
    return tree
