"""Label trees that score documents, in memory and as arrays in model files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v.formats.artifact import Model
from dcme_w2v.numeric.arrays import F32, F64, Array, ChunkedArray
from dcme_w2v.numeric.parallel import ordered_map

from .label_tree import ARRAYS, Tree, coded, decoded
from .metrics import Top, best_classes
from .trainer import Scorer, documents_at_once

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

CANDIDATES = 100  # number of labels that a tree returns for a document
STORED = (
    "children",
    "rows",
    "features",
    "columns",
    "labels",
)  # ARRAYS that are stored without conversion
LARGEST = 1e30  # largest absolute weight
LOWEST = -20.0  # log-probability of labels that no tree returns


class Forest(Scorer):
    """Several trees over the same labels; scores are logarithms of their mean probability.

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
        """Number of columns of the documents."""
        return self.trees[0].features

    def _label_probabilities(self, documents: core.SparseRows, begin: int, end: int) -> csr_matrix:
        """Return the mean probabilities of the labels that the trees find."""
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
        """Return the logarithms of the mean probabilities."""
        return _log(self._label_probabilities(documents, begin, end).toarray())

    def batches(self, documents: core.SparseRows, threads: int) -> Iterator[F64]:
        """Yield the scores of documents in batches."""
        return (_log(found.toarray()) for found in self._batches(documents, threads))

    def best(self, documents: core.SparseRows, count: int, threads: int) -> Iterator[Top]:
        """Yield the best classes and their scores, without computing the scores of all classes."""
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
    """Convert a tree to the arrays that `save_model` stores."""
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
        raise model.fault("features_0", "are not of as many columns as those of other trees")
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
            raise ValueError("the sizes of weights are out of range")
        arrays["starts"] = np.append(0, np.cumsum(lengths, dtype=np.int64))
        arrays["values"] = decoded(levels, ends)
        if not np.array_equal(np.sort(arrays["labels"]), np.arange(classes)):
            raise ValueError("the labels of a tree are not all classes")
        # the last row of each node has the bias, whose column follows the features
        tree = Tree(arrays, int(arrays["features"].max(initial=0)), bias)
        if arrays["children"][-1] != len(arrays["children"]) - 1 + classes:
            raise ValueError("the number of leaves in the trees is not the number of classes")
    except ValueError as error:
        raise model.fault(f"children{suffix}", str(error)) from None
    return tree
