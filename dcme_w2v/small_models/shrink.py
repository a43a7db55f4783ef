"""Small models: the weights of any linear classifier in a few levels, most of them left out.

Weights are clustered by how much they move scores: by the sum of the squares of their feature. No
weight is learnt again. Called by the command ``fuse shrink`` and by `dcme_w2v.classify.model`.
"""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.model import (
    COLUMNS,
    Classifier,
    described,
    restore_tag_pairs,
    store_tag_pairs,
)
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.errors import CorpusError
from dcme_w2v.few_labels.evidence import Evidence, Pairs, assembled, highest_weighted
from dcme_w2v.few_labels.fit import linear, ones
from dcme_w2v.few_labels.options import ShrinkOptions
from dcme_w2v.few_labels.tied import Tied
from dcme_w2v.formats.model_entries import Model
from dcme_w2v.formats.model_folder import load_model, save_model, size_of_model
from dcme_w2v.numeric.levels import fit_levels
from dcme_w2v.numeric.sparse_check import MAX_COLUMNS
from dcme_w2v.numeric.sparse_rows import truncate_columns
from dcme_w2v.small_models import compact
from dcme_w2v.small_models.compact import Steps

KIND, VERSION = "shrunk", 1
LARGEST = 1e30  # of a value or a bias


@dataclass(frozen=True)
class Shrunk:
    """Weights in levels.

    Attributes
    ----------
    evidence : Evidence
        The levels; weight = sign times value.
    biases : ndarray of float32, shape (classes,)
    loss : float
        The share of the weighted squares of the weights that is lost.
    """

    evidence: Evidence
    biases: NDArray[np.float32]
    loss: float

    def weights(self) -> Weights:
        """Return the linear model."""
        ones_of_levels = np.ones(len(self.evidence.values))
        return linear(self.evidence, Tied(ones_of_levels, self.biases.astype(np.float64)))


def shrink_weights(
    weights: Weights, squares: NDArray[np.float64], levels: int, keep: str | None
) -> Shrunk:
    """Return the weights of a linear model in levels.

    Parameters
    ----------
    weights : Weights
    squares : ndarray of float64, shape (features,)
        Of each feature the sum of the squares of its values over documents, up to a factor.
    levels : int
    keep : str or None
        How many weights stay, or which share.
    """
    table = weights.get().astype(np.float64)
    biases = (table[-1] * weights.bias + weights.offset).astype(np.float32)
    centred = _centred(table)
    squares = np.maximum(squares, 1e-9 * max(float(squares.max(initial=0.0)), 1e-9))
    if not centred.any():
        raise CorpusError("all weights are 0; train the model on other documents")
    size = np.abs(centred).ravel()
    impact = size**2 * np.repeat(squares, weights.classes)
    place = highest_weighted(impact, keep)
    signs = np.where(centred.ravel()[place] < 0, -1, 1).astype(np.int8)
    pairs = Pairs(place, signs, size[place], squares[place // weights.classes])
    found = fit_levels(pairs.number, pairs.weight, levels)
    left_out = float(impact.sum() - impact[place].sum())
    loss = (2 * found.loss + left_out) / max(float(impact.sum()), 1e-300)
    return Shrunk(assembled(pairs, found, centred.shape), biases, loss)


def _centred(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights less their means over the classes, which do not matter; without the biases."""
    found: NDArray[np.float64] = table[:-1] - table[:-1].mean(axis=1, keepdims=True)
    return found


def count_above(weights: Weights) -> int:
    """Return how many weights could be kept."""
    return max(1, int(np.count_nonzero(_centred(weights.get().astype(np.float64)))))


def squares_of(model: Classifier, matrix: csr_matrix | None = None) -> NDArray[np.float64]:
    """Return the sums of the squares of each feature, of documents or as the features suggest.

    Without documents they follow from idf, log((1 + n) / (1 + df)) + 1; where there is none, from
    the order of the words, most frequent first.
    """
    count = model.weights.features
    if matrix is not None:
        rows = truncate_columns(ones(matrix) if _is_binary(model) else matrix, count)
        sums: NDArray[np.float64] = np.bincount(
            rows.indices, np.square(rows.data, dtype=np.float64), count
        ).astype(np.float64)
        return sums
    if model.text is None:
        return np.ones(count)
    idf = model.text.idf.astype(np.float64)
    if model.text.options.weighting == "tfidf":
        found: NDArray[np.float64] = np.exp(-idf) * idf**2
        return found
    if model.text.names is None:
        return np.ones(count)
    return 1.0 / (1 + np.arange(count))


def _is_binary(model: Classifier) -> bool:
    return bool(getattr(model, "predicts_binary", getattr(model, "binary", False)))


@dataclass
class ShrunkModel(Classifier):
    """A classifier whose weights are levels, of some features only.

    Attributes
    ----------
    shrunk : Shrunk
        Of the features that have a weight, in the order of their columns here.
    coding : ShrinkOptions
        How its arrays are written.
    columns : ndarray of int64 or None
        For vectors: the columns of the rows that have weights, ascending.
    binary : bool
        Whether values of features count as 1.
    """

    shrunk: Shrunk | None = None
    coding: ShrinkOptions = field(default_factory=ShrinkOptions)
    columns: NDArray[np.int64] | None = None
    binary: bool = False

    @property
    def features(self) -> int:
        """Number of columns of the rows that the model takes: any, where it chooses from them."""
        return self.weights.features if self.columns is None else MAX_COLUMNS

    def align_features(self, matrix: csr_matrix) -> csr_matrix:
        """Return vectors of documents in the form that the weights were trained on."""
        if self.columns is not None:
            matrix = _chosen_columns(matrix, self.columns)
        return super().align_features(ones(matrix) if self.binary else matrix)

    def explain(self, label: str, count: int = 20) -> list[tuple[str, float]]:
        """Return the highest-weighted features of a class, and their weights."""
        found = super().explain(label, count)
        if self.columns is None:
            return found
        number = {f"column {i}": f"column {column}" for i, column in enumerate(self.columns)}
        return [(number[name], weight) for name, weight in found]

    def parts(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return the arrays and the description that are written."""
        assert self.shrunk is not None
        evidence, o = self.shrunk.evidence, self.coding
        levels, values = evidence.levels, evidence.values
        arrays: dict[str, NDArray[Any]] = {
            "values": values.astype(np.float32), "biases": self.shrunk.biases,
        }  # fmt: skip
        description: dict[str, Any] = {
            "classes": self.classes,
            "several_labels": self.multilabel,
            "threshold": self.threshold,
            "binary": self.binary,
            "features": None,
            "rows": levels.shape[0],
            "entries": int(levels.nnz),
            "highest_level": int(np.abs(levels.data.astype(np.int64)).max(initial=1)),
            "coding": dataclasses.asdict(o),
            "record": self.record,
        }
        kinds = np.zeros(levels.shape[0], dtype=np.uint8)
        if self.text is not None:
            steps = Steps.of(self.text.idf)
            kinds = steps.codes
            arrays["idf"] = compact.pack_bytes(kinds)
            description |= {"idf_lowest": steps.lowest, "idf_step": steps.step}
            description["features"] = dataclasses.asdict(self.text.options)
            if self.text.names is not None:
                arrays |= compact.pack_words(self.text.names, o.words)
                description["words_length"] = len(self.text.names.text)
            else:
                assert self.text.buckets is not None
                arrays["buckets"] = compact.pack_numbers(self.text.buckets)
                description["width"] = self.text.width
            store_tag_pairs(self.text, arrays)
        elif self.columns is not None:
            arrays["columns"] = compact.pack_numbers(self.columns)
        arrays |= compact.pack_levels(levels, kinds, o.coding)
        return arrays, description

    def size(self) -> int:
        """Return the bytes that the folder's files will have."""
        return size_of_model(KIND, VERSION, *self.parts())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model's folder."""
        save_model(path, KIND, VERSION, *self.parts())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ShrunkModel:
        """Open a model's folder.

        Raises
        ------
        FormatError
            It is not a shrunk model, or damaged.
        """
        model = load_model(path, KIND, VERSION)
        classes, coding = model.strings("classes"), model.options("coding", ShrinkOptions)
        multilabel, threshold, record = described(model)
        rows = int(model.number("rows", 0, compact.MAX_ROWS))
        entries = int(model.number("entries", 0, float(rows) * len(classes)))
        text, kinds, columns = _features(model, rows)
        values = np.asarray(model.array("values", "float32", None)).astype(np.float64)
        levels = compact.unpack_levels(model, kinds, rows, len(classes), entries)
        if int(np.abs(levels.data.astype(np.int64)).max(initial=0)) > len(values):
            raise model.fault("values", f"are {len(values)}, and levels are higher")
        biases = np.asarray(model.array("biases", "float32", len(classes)))
        shrunk = Shrunk(Evidence(levels, values, 0.0), biases, 0.0)
        return cls(
            classes, shrunk.weights(), text, ClassifyOptions(solver="lbfgs"), multilabel, threshold,
            record, shrunk, coding, columns, model.value("binary", bool),
        )  # fmt: skip


def _chosen_columns(matrix: csr_matrix, columns: NDArray[np.int64]) -> csr_matrix:
    """Return some columns of rows, which may be narrower."""
    width = int(columns[-1]) + 1 if len(columns) else 0
    wide = (matrix.shape[0], max(matrix.shape[1], width))
    rows = csr_matrix((matrix.data, matrix.indices, matrix.indptr), shape=wide)
    return csr_matrix(rows[:, columns])


def _features(
    model: Model, rows: int
) -> tuple[TextFeatures | None, NDArray[np.uint8], NDArray[np.int64] | None]:
    """Return what turns text into rows, the steps of idf, and the columns of vectors."""
    if model.description.get("features") is None:
        columns = compact.unpack_numbers(model, "columns", rows, 1 << 31)
        return None, np.zeros(rows, dtype=np.uint8), columns
    options = model.options("features", FeatureOptions)
    kinds = compact.unpack_bytes(model, "idf", rows)
    lowest, step = (model.number(name, -LARGEST, LARGEST) for name in ("idf_lowest", "idf_step"))
    idf = Steps(kinds, lowest, step).numbers()
    if "buckets" in model.arrays:
        width = int(model.number("width", 1, 1 << 31))
        buckets = compact.unpack_numbers(model, "buckets", rows, width)
        text = TextFeatures.restored(options, None, idf, buckets, width)
    else:
        text = TextFeatures.restored(options, compact.unpack_words(model, rows), idf)
    restore_tag_pairs(model, text)
    return text, kinds, None


def shrink(model: Classifier, options: ShrinkOptions, squares: NDArray[np.float64]) -> ShrunkModel:
    """Return a classifier in levels, with the features that keep a weight only."""
    shrunk = shrink_weights(model.weights, squares, options.levels, options.keep)
    rows = np.flatnonzero(np.diff(shrunk.evidence.levels.indptr))
    text, columns = model.text, None
    if text is None:
        before = getattr(model, "columns", None)
        columns = rows if before is None else before[rows]
    else:
        text, rows = _small_text(text, rows, options, shrunk)
    levels = csr_matrix(shrunk.evidence.levels[rows])
    evidence = dataclasses.replace(shrunk.evidence, levels=levels)
    shrunk = dataclasses.replace(shrunk, evidence=evidence)
    record = {
        "loss": shrunk.loss,
        "pairs": int(levels.nnz),
        "features": len(rows),
        COLUMNS: model.record.get(COLUMNS),
    }
    return ShrunkModel(
        model.classes, shrunk.weights(), text, model.options, model.multilabel, model.threshold,
        record, shrunk, options, columns, _is_binary(model),
    )  # fmt: skip


def _small_text(
    text: TextFeatures, rows: NDArray[np.int64], options: ShrinkOptions, shrunk: Shrunk
) -> tuple[TextFeatures, NDArray[np.int64]]:
    """Return the features of some columns, in an order that is written in few bytes."""
    if text.names is not None and options.words != "hashed":
        words = compact.shuffled_words(text.names, rows)
        order = compact.sorted_places(words)
        rows, words = rows[order], compact.shuffled_words(words, order)
        return _rounded(text, words, rows, None, None), rows
    if text.names is not None:
        width = compact.width_for(len(rows))
        buckets = compact.buckets_of(compact.shuffled_words(text.names, rows), width)
        heavy = np.abs(shrunk.evidence.weights(np.ones(len(shrunk.evidence.values)))[rows])
        order = np.lexsort((-heavy.max(axis=1, initial=0), buckets))
        first = np.append(True, np.diff(buckets[order]) > 0)[: len(order)]
        rows, buckets = rows[order][first], buckets[order][first]
        return _rounded(text, None, rows, buckets, width), rows
    given = rows if text.buckets is None else text.buckets[rows]
    return _rounded(text, None, rows, given, text.width), rows


def _rounded(
    text: TextFeatures,
    words: Any,
    rows: NDArray[np.int64],
    buckets: NDArray[np.int64] | None,
    width: int | None,
) -> TextFeatures:
    """Return features with the idf that a file will have."""
    idf = Steps.of(text.idf[rows]).numbers()
    small = TextFeatures.restored(text.options, words, idf, buckets, width)
    small.tag_pairs = text.tag_pairs
    return small
