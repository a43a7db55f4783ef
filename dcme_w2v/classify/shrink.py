"""Compress linear classifiers by quantizing the weights of highest impact and dropping the rest.

The impact of a weight is how much it changes scores: its square times the sum of squares of its
feature's values. Weights are selected and clustered by impact; no weight is trained again.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dcme_w2v._core.codec import byte_order
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.artifact import Model, load_model, save_model, size_of_model
from dcme_w2v.numeric.arrays import F32, F64, I64, U8, Array, Bools, sealed
from dcme_w2v.numeric.levels import fit_levels, in_equal_ratios
from dcme_w2v.numeric.sparse_rows import MAX_COLUMNS, CompressedRows, fit_columns
from dcme_w2v.platform import PathLike

from . import compact
from .compact import Steps
from .features import TextFeatures
from .levels import BIAS, Evidence
from .model import COLUMNS, NONE, VERSION, Classifier, restore_tag_pairs, restored
from .options import MAX_LEVELS, ClassifyOptions, FeatureOptions, ShrinkOptions, kept_weights
from .trainer import Weights, rows_at_once

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KIND = "shrunk"
MAX_SIZE = 1e30  # maximum magnitude of a level or bias
_BINS, _SHIFT = 1 << 15, 48  # a positive float64's histogram bin is the value of its top 16 bits


@dataclass(frozen=True)
class Shrunk:
    """A matrix whose weights are quantized to levels.

    Attributes
    ----------
    evidence : Evidence
        The levels; a weight is the sign times the value of its level.
    biases : ndarray of float32, shape (classes,)
    loss : float
        The share of the impact of all weights that is lost.
    """

    evidence: Evidence
    biases: F32
    loss: float

    def fill(self, weights: Weights, features: I64) -> None:
        """Copy this matrix's weights for the given features, and all biases, to `weights`."""
        values, step = self.evidence.values, rows_at_once(weights.classes)
        signed = np.concatenate([[0], values, np.zeros(256 - 2 * len(values) - 1), -values[::-1]])
        by_byte = signed.astype(np.float32)
        for begin in range(0, len(features), step):
            own = features[begin : begin + step]
            levels = self.evidence.levels[own]
            weights.table[own, : weights.classes] = 0
            rows = np.repeat(own, np.diff(levels.indptr))
            weights.table[rows, levels.indices] = by_byte[levels.data.view(np.uint8)]
        weights.table[-1, : weights.classes] = self.biases


class WeightRanking:
    """A ranking of a linear model's weights by their impact on scores.

    The weights are read in blocks, and only the requested number of highest weights is copied in
    memory.

    Parameters
    ----------
    weights : Weights
    squares : ndarray of float64, shape (features,)
        The sum of squares of each feature's values over the documents, up to a common factor.
    centered : bool
        Whether to subtract the mean of a feature's weights over the classes, which does not change
        softmax probabilities.

    Attributes
    ----------
    count : int
        Number of weights that can be kept.

    Raises
    ------
    CorpusError
        All weights are 0.
    """

    def __init__(self, weights: Weights, squares: F64, centered: bool) -> None:
        # Features that never occur get this minimum sum of squares, so that their impact is not 0.
        least = 1e-9 * max(float(squares.max(initial=0.0)), 1e-9)
        self._weights, self._squares, self._centered = weights, np.maximum(squares, least), centered
        self._bins, self._total = np.zeros(_BINS, dtype=np.int64), 0.0
        for _, _, impact in self._blocks():
            bins = impact.ravel().view(np.int64) >> _SHIFT
            self._bins += np.bincount(bins, minlength=_BINS)
            self._total += float(impact.sum())
        self._bins[0] = 0  # weights without impact
        self.count = int(self._bins.sum())
        if not self.count:
            raise CorpusError("all weights of the model are 0; train the model on other documents")
        empty = np.zeros(0, dtype=np.float32), np.zeros(0, dtype=np.int32)
        starts = np.zeros(weights.features + 1, dtype=np.int64)
        self._kept = CompressedRows((*empty, starts), (weights.features, weights.classes))

    def shrunk(self, levels: int, count: int) -> Shrunk:
        """Quantize the `count` weights with the highest impact to levels."""
        self._read(min(count, self.count))
        chosen = self._kept if self._kept.nnz <= count else self._highest(count)
        kept = sum(float((w**2 * squares).sum()) for w, squares in self._parts(chosen))
        if levels == MAX_LEVELS:
            ends = [(float(w.max()), float(w.min())) for w, _ in self._parts(chosen)]
            highest, lowest = max(high for high, _ in ends), min(low for _, low in ends)
            found = in_equal_ratios(self._parts(chosen), highest, lowest, levels)
        else:
            squares = np.repeat(self._squares, np.diff(chosen.indptr))
            found = fit_levels(np.abs(chosen.data, dtype=np.float64), squares, levels)
        signed = np.negative(found.numbers, out=found.numbers, where=chosen.data < 0)
        matrix = CompressedRows((signed, chosen.indices, chosen.indptr), chosen.shape)
        if not signed.all():
            matrix = matrix.entries(signed != 0)
        loss = (2 * found.loss + self._total - kept) / max(self._total, 1e-300)
        return Shrunk(Evidence(matrix, found.values, found.loss), self._biases, loss)

    def count_without_impact(self, share: float) -> int:
        """Estimate how many weights to keep if the rest may have at most `share` of the impact."""
        used = np.flatnonzero(self._bins)[::-1]
        impact = np.cumsum(self._bins[used] * (used << _SHIFT).view(np.float64))
        last = int(np.searchsorted(impact, (1 - share) * impact[-1]))
        return int(self._bins[used[: last + 1]].sum())

    def _read(self, count: int) -> None:
        """Read at least the `count` weights with the highest impact into memory."""
        if self._kept.nnz >= count:
            return
        lowest = self._lowest(count)
        size, shape = int(self._bins[lowest:].sum()), self._kept.shape
        del self._kept  # free the memory of the previous selection
        starts, columns = np.zeros(shape[0] + 1, dtype=np.int64), np.empty(size, dtype=np.int32)
        least = np.array(lowest << _SHIFT).view(np.float64)
        weights = np.empty(size, dtype=np.float32)
        for first, rows, impact in self._blocks():
            chosen = np.flatnonzero(impact >= least)
            ends = np.searchsorted(chosen, np.arange(1, len(rows) + 1) * shape[1])
            own = slice(starts[first], starts[first] + len(chosen))
            starts[first + 1 : first + 1 + len(rows)] = starts[first] + ends
            columns[own] = chosen % shape[1]
            weights[own] = rows.ravel()[chosen]
        self._kept = CompressedRows((weights, columns, starts), shape)

    def _lowest(self, count: int) -> int:
        """Return the lowest histogram bin that contains one of the `count` highest impacts."""
        return _BINS - 1 - int(np.searchsorted(np.cumsum(self._bins[::-1]), count))

    def _parts(self, matrix: CompressedRows) -> Iterator[tuple[F64, F64]]:
        """Yield chunks of absolute weights, and the sum of squares for each weight's feature."""
        step = rows_at_once(matrix.shape[1])
        for begin in range(0, matrix.shape[0], step):
            starts = matrix.indptr[begin : begin + step + 1]
            weights = matrix.data[starts[0] : starts[-1]]
            if len(weights):
                squares = self._squares[begin : begin + step]
                yield np.abs(weights, dtype=np.float64), np.repeat(squares, np.diff(starts))

    def _highest(self, count: int) -> CompressedRows:
        """Return the `count` weights with the highest impact among the weights in memory.

        If impacts are equal, the first weights are chosen.
        """
        lowest = self._lowest(count)
        low, high = (np.array([lowest, lowest + 1]) << _SHIFT).view(np.float64)
        chosen, at = np.zeros(self._kept.nnz, dtype=bool), 0
        places, impacts = [], []  # only the weights of highest impact in the lowest bin are kept
        for weights, squares in self._parts(self._kept):
            impact = weights**2 * squares
            chosen[at : at + len(impact)] = impact >= high
            near = np.flatnonzero((impact >= low) & (impact < high))
            places.append(near + at)
            impacts.append(impact[near])
            at += len(impact)
        place, own = np.concatenate(places), np.concatenate(impacts)
        order = np.argsort(-own, kind="stable")
        chosen[place[order[: count - int(chosen.sum())]]] = True
        return self._kept.entries(chosen)

    def _blocks(self) -> Iterator[tuple[int, F64, F64]]:
        """Yield each block's first feature index, its weights, and the weights' impacts."""
        at = 0
        for block in self._weights.blocks():
            rows = block[: self._weights.features - at].astype(np.float64)
            if self._centered:
                rows -= rows.mean(axis=1, keepdims=True)
            yield at, rows, rows**2 * self._squares[at : at + len(rows), None]
            at += len(rows)
        last = block[-1].astype(np.float64)
        self._biases = (last * self._weights.bias + self._weights.offset).astype(np.float32)


def squares_of(model: Classifier) -> F64:
    """Estimate the sum of each feature's squared values over all documents.

    The sums follow from idf = log(n / df) + 1; without idf, from the order of the words, the most
    frequent first.
    """
    count = model.weights.features
    if model.text is None:
        return np.ones(count)
    idf = model.text.idf.astype(np.float64)
    if model.text.options.weighting == "tfidf":
        return np.exp(-idf) * idf**2
    return np.ones(count) if model.text.names is None else 1.0 / (1 + np.arange(count))


@dataclass(frozen=True, repr=False)
class ShrunkModel(Classifier):
    """A compressed classifier that has quantized weights for only some of the features.

    Attributes
    ----------
    options : ClassifyOptions or None
        Options of `classify train`; None if the model was trained otherwise, with options in the
        record.
    coding : ShrinkOptions
    weights : Weights
        The linear model, which is built when it is first used; scoring rows does not need it.
    shrunk : Shrunk
        Levels of the features that have a weight, in the order of the columns of this model.
    columns : ndarray of int64 or None
        For vectors: the input columns that have weights, ascending.
    binary : bool
        Whether all nonzero feature values count as 1.
    origin : ndarray of int64 or None
        The columns in the model that was compressed; None if this model was loaded.
    """

    weights: Weights = field(init=False, repr=False)
    _: KW_ONLY
    coding: ShrinkOptions
    shrunk: Shrunk
    columns: I64 | None
    binary: bool
    origin: I64 | None = None

    def __getattr__(self, name: str) -> Any:
        """Build the attribute `weights` when it is first used."""
        if name != "weights":
            raise AttributeError(name)
        found = self._empty()
        self.shrunk.fill(found, np.arange(found.features))
        vars(self)["weights"] = sealed(found)
        return found

    def _empty(self) -> Weights:
        features, classes = self.shrunk.evidence.levels.shape
        return Weights(features, classes, BIAS)

    @functools.cached_property
    def _filled(self) -> tuple[Weights, Bools]:
        """The linear model, whose rows are filled when they are used, and a mask of filled rows."""
        weights = self._empty()
        return weights, np.zeros(weights.features, dtype=bool)

    def scorer_of(self, rows: csr_matrix) -> Weights:
        """Return a linear model that has weights for at least the features that occur in `rows`."""
        if "weights" in vars(self):
            return self.weights
        weights, filled = self._filled
        needed = np.zeros_like(filled)
        needed[rows.indices] = True
        self.shrunk.fill(weights, np.flatnonzero(needed & ~filled))
        filled |= needed
        return weights

    @property
    def evidence(self) -> Evidence:
        """The quantized levels of the weights."""
        return self.shrunk.evidence

    @property
    def is_binary(self) -> bool:
        """Whether all nonzero feature values count as 1."""
        return self.binary

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model in its file format, which is ten times smaller."""
        arrays, description = self.parts()
        return _unpickled, (arrays, json.dumps(description))

    @property
    def features(self) -> int:
        """Number of input columns, or an upper limit if the model selects columns."""
        return MAX_COLUMNS if self.columns is not None else self.shrunk.evidence.levels.shape[0]

    def align_features(self, matrix: csr_matrix) -> csr_matrix:
        """Select the columns of document vectors that have weights."""
        if self.columns is not None:
            matrix = _chosen_columns(matrix, self.columns)
        return super().align_features(matrix)

    def feature_name(self, column: int) -> str:
        """Return the name of a feature."""
        return super().feature_name(column if self.columns is None else self.columns[column])

    def parts(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Return the arrays and the description to be stored in the model file."""
        levels, values = self.shrunk.evidence.levels, self.shrunk.evidence.values
        arrays: dict[str, Array] = {
            "values": values.astype(np.float32), "biases": self.shrunk.biases,
        }  # fmt: skip
        description = self.described(
            coding=asdict(self.coding), binary=self.binary, features=None, rows=levels.shape[0],
            entries=int(levels.nnz),
        )  # fmt: skip
        kinds = np.zeros(levels.shape[0], dtype=np.uint8)
        if self.text is not None:
            steps = Steps.of(self.text.idf)
            kinds = steps.codes
            arrays["idf"] = compact.pack(kinds)
            description |= {"idf_lowest": steps.lowest, "idf_step": steps.step}
            description["features"] = asdict(self.text.options)
            if self.text.names is not None:
                arrays["words"] = compact.pack_words(self.text.names)
                description["words_length"] = len(self.text.names.text)
            else:
                assert self.text.buckets is not None
                arrays["buckets"] = compact.pack_ascending(self.text.buckets)
                description["width"] = self.text.options.hashing
            if self.text.tag_pairs is not None:
                arrays["tag_pairs"] = self.text.tag_pairs
        elif self.columns is not None:
            arrays["columns"] = compact.pack_ascending(self.columns)
        arrays["places"], arrays["levels"] = compact.pack_levels(levels, kinds)
        return arrays, description

    def size(self) -> int:
        """Return the size of the model file in bytes."""
        return size_of_model(KIND, VERSION, *self.parts())

    def save(self, path: PathLike) -> None:
        """Write the model to a file, atomically."""
        save_model(path, KIND, VERSION, *self.parts())

    @classmethod
    def load(cls, path: PathLike) -> ShrunkModel:
        """Read a model from a file.

        Raises
        ------
        FormatError
            The file is not a shrunk model, is corrupt, or uses a coding that is no longer
            supported.
        """
        return cls.restored(load_model(path, KIND, VERSION))

    @classmethod
    def restored(cls, model: Model) -> ShrunkModel:
        """Restore a model from the contents of a file."""
        classes = model.strings("classes")
        rows = int(model.number("rows", 0, compact.MAX_ROWS))
        entries = int(model.number("entries", 0, float(rows) * len(classes)))
        text, kinds, columns = _features(model, rows)
        values = model.array("values", "float32", None).astype(np.float64)
        levels = compact.unpack_levels(model, kinds, len(classes), entries)
        data = levels.data
        if max(int(data.max(initial=0)), -int(data.min(initial=0))) > len(values):
            raise model.fault(
                "values", f"cover {len(values)} levels, but some weights have a higher level"
            )
        biases = model.array("biases", "float32", len(classes))
        shrunk = Shrunk(Evidence(levels, values, 0.0), biases, 0.0)
        is_known = model.description.get("options") is not None
        own = restored(model, ClassifyOptions if is_known else None, text)
        coding, binary = model.options("coding", ShrinkOptions), model.value("binary", bool)
        return cls(*own, coding=coding, shrunk=shrunk, columns=columns, binary=binary)


def _unpickled(arrays: dict[str, Array], description: str) -> ShrunkModel:
    return sealed(ShrunkModel.restored(Model(Path("a pickle"), json.loads(description), arrays)))


def _chosen_columns(matrix: csr_matrix, columns: I64) -> csr_matrix:
    """Select columns from a matrix; columns that the matrix lacks are filled with zeros."""
    width = int(columns[-1]) + 1 if len(columns) else 0
    return fit_columns(matrix, max(matrix.shape[1], width))[:, columns]


def _features(model: Model, rows: int) -> tuple[TextFeatures | None, U8, I64 | None]:
    """Restore text features and their quantized idf, or the selected columns of vector input."""
    if model.description.get("features") is None:
        columns = compact.unpack_ascending(model, "columns", rows, 1 << 31)
        return None, np.zeros(rows, dtype=np.uint8), columns
    options = model.options("features", FeatureOptions)
    kinds = compact.unpack(model, "idf", np.uint8, rows)
    lowest, step = (model.number(f"idf_{name}", -MAX_SIZE, MAX_SIZE) for name in ("lowest", "step"))
    idf = Steps(kinds, lowest, step).numbers()
    if "buckets" in model.arrays:
        buckets = compact.unpack_ascending(model, "buckets", rows, options.hashing or 0)
        text = TextFeatures.restored(options, None, idf, buckets)
    else:
        text = TextFeatures.restored(options, compact.unpack_words(model, rows), idf)
    restore_tag_pairs(model, text)
    return text, kinds, None


def ranking_of(model: Classifier, squares: F64 | None = None) -> WeightRanking:
    """Rank a classifier's weights; if `squares` is None, estimate each feature's sum of squares.

    The means of the weights are kept if each label has a probability of its own, which they affect.
    """
    if not isinstance(model.weights, Weights):
        raise UsageError(
            "voting models and label trees cannot be shrunk, because they have no single weight "
            "table; train a linear model"
        )
    centered = model.calibration.kind == "softmax" or not model.multilabel
    found = squares_of(model) if squares is None else squares
    return WeightRanking(model.weights, found, centered=centered)


def shrink(model: Classifier, options: ShrinkOptions, shrunk: Shrunk | None = None) -> ShrunkModel:
    """Compress a classifier, and drop features that have no weights."""
    if shrunk is None:
        count = kept_weights(options.keep, model.weights.features * model.weights.classes)
        shrunk = ranking_of(model).shrunk(options.levels, count)
    rows = np.flatnonzero(np.diff(shrunk.evidence.levels.indptr))
    text, columns = model.text, None
    if text is None:
        before = getattr(model, "columns", None)
        columns = rows if before is None else before[rows]
    else:
        text, rows = _small_text(text, rows)
    levels = shrunk.evidence.levels[rows]
    evidence = replace(shrunk.evidence, levels=levels)
    shrunk = replace(shrunk, evidence=evidence)
    record = {
        "loss": shrunk.loss,
        "pairs": int(levels.nnz),
        "features": len(rows),
        COLUMNS: model.record.get(COLUMNS),
        NONE: model.record.get(NONE),
    }
    kept = ("class_weight", "documents")
    record |= {name: model.record[name] for name in kept if name in model.record}
    trained = model.options
    if trained is not None and not isinstance(trained, ClassifyOptions):
        record["options"], trained = asdict(trained), None
    return ShrunkModel(
        model.classes, text, trained, model.multilabel, model.threshold, record, model.calibration,
        model.label_kind, coding=options, shrunk=shrunk, columns=columns,
        binary=model.is_binary, origin=rows,
    )  # fmt: skip


def _small_text(text: TextFeatures, rows: I64) -> tuple[TextFeatures, I64]:
    """Restrict text features to some columns, quantize the idf, and sort words by their bytes."""
    words, buckets = None, None
    if text.names is not None:
        words = text.names.chosen(rows)
        order = byte_order(words.text, words.offsets)
        words, rows = words.chosen(order), rows[order]
    else:
        buckets = rows if text.buckets is None else text.buckets[rows]
    idf = Steps.of(text.idf[rows]).numbers()
    small = TextFeatures.restored(text.options, words, idf, buckets)
    small.tag_pairs = text.tag_pairs
    return small, rows
