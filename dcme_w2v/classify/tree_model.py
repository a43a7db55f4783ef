"""A classifier by trees of labels, in memory and as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.declarations import threads_of
from dcme_w2v.formats.artifact import Model, load_model
from dcme_w2v.numeric.arrays import F32, F64, Array
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.numeric.sparse_rows import truncate_columns
from dcme_w2v.platform import PathLike

from .calibration import PLAIN, likeliest
from .features import TextFeatures
from .fit import Labeled
from .label_tree import ARRAYS, Tree, coded, decoded, train_trees
from .metrics import Calibration, best_threshold, calibrated, calibration_of
from .model import VERSION, Predictor, Top, best_classes, restored, text_of
from .options import ClassifyOptions
from .trainer import core_documents, documents_at_once

KIND = "label-trees"
LEAST = 64  # documents of a batch
CANDIDATES = 100  # labels that a tree finds for a document
STORED = ("children", "rows", "features", "columns", "labels")  # of ARRAYS, as they are
LARGEST = 1e30  # size of a weight
LOWEST = -20.0  # log-probability of a label that no tree finds
# Documents left out for the calibration: one in SHARE, between ENOUGH and CALIBRATED of them, but
# never more than one in five.
SHARE, ENOUGH, CALIBRATED = 50, 200, 1000


@dataclass
class TreeClassifier(Predictor):
    """A classifier by trees of labels; see `dcme_w2v.classify.label_tree` and `Predictor`.

    Scores are log p with the mean p over the trees.

    Attributes
    ----------
    trees : list of Tree
    """

    calibration: Calibration | None = PLAIN
    trees: list[Tree] = field(kw_only=True)

    @property
    def features(self) -> int:
        """Number of columns of the rows that the model takes."""
        return self.trees[0].features

    def align_features(self, matrix: csr_matrix) -> csr_matrix:
        """Return vectors of documents in the form that the trees take."""
        rows = truncate_columns(matrix, self.features)
        return rows if rows.has_sorted_indices else rows.sorted_indices()

    def _found(self, matrix: csr_matrix, threads: int | None) -> Iterator[csr_matrix]:
        """Yield the probabilities of the labels that trees find, for batches of documents."""
        threads, classes = threads_of(threads), len(self.classes)
        documents, count = core_documents(self.align_features(matrix)), min(CANDIDATES, classes)

        def batch(rows: slice) -> csr_matrix:
            size = rows.stop - rows.start
            found = csr_matrix((size, classes))
            for tree in self.trees:
                labels, scores = tree.best(documents, rows.start, rows.stop, count)
                known = labels >= 0
                place = np.repeat(np.arange(size), known.sum(axis=1)), labels[known]
                p = np.exp(scores[known].astype(np.float64)) / len(self.trees)
                found = found + csr_matrix((p, place), (size, classes))
            return found

        count_at_once = max(LEAST, min(documents_at_once(classes), -(-matrix.shape[0] // threads)))
        starts = range(0, matrix.shape[0], count_at_once)
        batches = (slice(i, min(i + count_at_once, matrix.shape[0])) for i in starts)
        return ordered_map(batch, batches, threads)

    def scores(self, matrix: csr_matrix, threads: int | None) -> Iterator[F64]:
        """Yield the logarithms of the mean probabilities, shape (documents, classes)."""
        for found in self._found(matrix, threads):
            step = documents_at_once(len(self.classes))
            for begin in range(0, found.shape[0], step):
                part = found[begin : begin + step].toarray()
                yield np.log(np.maximum(part, np.exp(LOWEST)))

    def log_probabilities(self, matrix: csr_matrix, threads: int | None = None) -> Iterator[F64]:
        """Yield the log-probabilities of all classes for batches of documents."""
        return (calibrated(part, self.calibration) for part in self.scores(matrix, threads))

    def most_probable(
        self, matrix: csr_matrix, count: int, threads: int | None = None
    ) -> Iterator[Top]:
        """Yield the most probable classes and their log-probabilities for batches of documents."""
        if not self.multilabel:  # probabilities need the scores of all labels
            yield from super().most_probable(matrix, count, threads)
            return
        for found in self._found(matrix, threads):
            sizes = np.diff(found.indptr)
            if sizes.min(initial=count) < count:
                part = np.log(np.maximum(found.toarray(), np.exp(LOWEST)))
                yield best_classes(calibrated(part, self.calibration), count)
                continue
            rows = np.repeat(np.arange(len(sizes)), sizes)
            order = np.lexsort((found.indices, -found.data, rows))
            chosen = order[found.indptr[:-1, None] + np.arange(count)]
            log_p = np.log(np.maximum(found.data[chosen], np.exp(LOWEST)))
            yield found.indices[chosen].astype(np.int32), calibrated(log_p, self.calibration)

    def weights_of_class(self, number: int) -> F32:
        """Return the mean weights of a class."""
        return np.mean([tree.weights(number) for tree in self.trees], axis=0)

    def calibrate(self, data: Labeled, threads: int | None) -> None:
        """Choose calibration and threshold by documents that the trees were not trained on."""
        scores = next(self.scores(data.matrix, threads), np.empty((0, len(self.classes))))
        if not (count := len(scores)):
            return
        if not self.multilabel:
            self.calibration = likeliest(scores, data.labels[:count])
            return
        self.calibration = calibration_of(scores, data.labels[:count])
        self.threshold = best_threshold(calibrated(scores, self.calibration), data.labels[:count])

    def save(self, path: PathLike) -> None:
        """Write the model's file."""
        arrays: dict[str, Any] = {}
        for k, tree in enumerate(self.trees):
            arrays |= {f"{name}_{k}": tree.arrays[name] for name in STORED}
            levels, ends = coded(tree.arrays["values"])
            lengths = np.diff(tree.arrays["starts"]).astype(np.uint16)
            arrays |= {f"levels_{k}": levels, f"ends_{k}": ends, f"lengths_{k}": lengths}
        self.write(path, KIND, arrays, width=self.features, trees=len(self.trees))

    @classmethod
    def load(cls, path: PathLike) -> TreeClassifier:
        """Load a model's file.

        Raises
        ------
        FormatError
            It is not such a model, or is corrupt.
        """
        model = load_model(path, KIND, VERSION)
        classes, bias = model.strings("classes"), model.options("options", ClassifyOptions).bias
        width, count = (int(model.number(n, 1, 2**31 - 2)) for n in ("width", "trees"))
        trees = [_tree(model, k, width, bias or 0.0, len(classes)) for k in range(count)]
        return cls(*restored(model, ClassifyOptions, text_of(model, width)), trees=trees)


def _tree(model: Model, number: int, features: int, bias: float, classes: int) -> Tree:
    arrays: dict[str, Array] = {
        name: np.ascontiguousarray(model.array(f"{name}_{number}", ARRAYS[name], None))
        for name in STORED
    }
    lengths = model.array(f"lengths_{number}", "uint16", None)
    levels = model.array(f"levels_{number}", "int8", None)
    ends = model.array(f"ends_{number}", "float64", 2)
    try:
        if not 0 < ends[0] <= ends[1] < LARGEST:
            raise ValueError("the sizes of weights are out of range")
        arrays["starts"] = np.append(0, np.cumsum(lengths, dtype=np.int64))
        arrays["values"] = decoded(levels, ends)
        if not np.array_equal(np.sort(arrays["labels"]), np.arange(classes)):
            raise ValueError("the labels of a tree are not all classes")
        tree = Tree(arrays, features, bias)
        if arrays["children"][-1] != len(arrays["children"]) - 1 + classes:
            raise ValueError("the places of a tree are not as many as classes")
    except ValueError as error:
        raise model.fault(f"children_{number}", str(error)) from None
    return tree


def trained(
    data: Labeled,
    classes: list[str],
    text: TextFeatures | None,
    options: ClassifyOptions,
    multilabel: bool,
    watch: Callable[[int], None],
) -> TreeClassifier:
    """Train trees, and calibrate them on documents that are left out."""
    left_out = None
    if len(data.labels) >= 2 * SHARE:
        order = np.random.default_rng(options.seed).permutation(len(data.labels))
        count = min(max(len(order) // SHARE, ENOUGH), len(order) // 5, CALIBRATED)
        left_out, data = data.some(np.sort(order[:count])), data.some(np.sort(order[count:]))
    trees = train_trees(data, len(classes), options, watch)
    model = TreeClassifier(classes, text, options, multilabel, trees=trees)
    if not multilabel:
        model.calibration = PLAIN._replace(kind="normalized")
    if left_out is not None:
        model.calibrate(left_out, options.threads)
    return model
