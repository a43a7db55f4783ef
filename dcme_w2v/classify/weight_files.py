"""The weights of a classifier as arrays of a model's file: dense or sparse.

Tables are written and read some rows at a time, so that with many classes there is no second table
in memory.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v.files.space import require_memory
from dcme_w2v.formats.artifact import Model
from dcme_w2v.numeric.arrays import (
    F32,
    F64,
    Array,
    ChunkedArray,
    drop_pages,
)

from .metrics import log_softmax
from .trainer import Weights, rows_at_once


class VotingWeights(Weights):
    """Linear models of the same features and classes.

    Parameters
    ----------
    models : sequence of Weights
        At least one.

    Attributes
    ----------
    models : list of Weights
    """

    def __init__(self, models: Sequence[Weights]) -> None:
        self.models = list(models)
        self.classes, self.bias = models[0].classes, models[0].bias
        self.order = np.arange(self.classes)
        self.place = np.arange(self.classes, dtype=np.int32)
        self.offset = np.zeros(self.classes, dtype=np.float32)

    @property
    def tables(self) -> dict[str, F32]:
        """None: the models are not trained together."""
        return {}

    @property
    def features(self) -> int:
        """Number of features without the bias feature."""
        return self.models[0].features

    @property
    def table(self) -> F32:  # type: ignore[override]
        """Raise TypeError: there is no single table."""
        raise TypeError("a model by vote has several tables of weights")

    def above_mean(self, number: int) -> F32:
        """Return the mean over the models."""
        found = np.mean([one.above_mean(number) for one in self.models], axis=0, dtype=np.float64)
        return np.asarray(found, dtype=np.float32)

    def __getstate__(self) -> dict[str, Any]:
        """Return the models."""
        return {"models": self.models}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def scores(self, documents: core.Documents, begin: int, end: int, threads: int) -> F64:
        """Return the logarithms of the mean probabilities."""
        total = np.zeros((end - begin, self.classes))
        for one in self.models:
            total += np.exp(log_softmax(one.scores(documents, begin, end, threads)))
        total /= len(self.models)
        return np.log(np.maximum(total, np.finfo(np.float64).tiny))


SPARSE_WEIGHTS = ("weights_starts", "weights_columns", "weights_values")
SPARSE_BELOW = 0.5  # share of non-zero weights; a sparse entry takes twice the bytes


def arrays_of(weights: Weights) -> dict[str, Array | ChunkedArray]:
    """Return the weights as arrays for `save_model`."""
    if isinstance(weights, VotingWeights):
        return _of_votes(weights)
    counts = [np.count_nonzero(block, axis=1) for block in weights.blocks()]
    starts = np.zeros(weights.features + 2, dtype=np.int64)
    np.cumsum(np.concatenate(counts), out=starts[1:])
    shape, entries = (weights.features + 1, weights.classes), int(starts[-1])
    if entries >= SPARSE_BELOW * shape[0] * shape[1]:
        return {"weights": ChunkedArray(shape, np.dtype(np.float32), weights.blocks)}

    def of_entries(part: Callable[..., Array]) -> Callable[[], Iterator[Array]]:
        return lambda: (part(block, np.flatnonzero(block != 0)) for block in weights.blocks())

    columns = of_entries(lambda block, at: (at % weights.classes).astype(np.int32))
    values = of_entries(lambda block, at: block.ravel()[at])
    parts = (
        starts,
        ChunkedArray((entries,), np.dtype(np.int32), columns),
        ChunkedArray((entries,), np.dtype(np.float32), values),
    )
    return dict(zip(SPARSE_WEIGHTS, parts, strict=True))


def weights_of(model: Model, classes: int, bias: float | None) -> Weights:
    """Return the weights stored in a model's file."""
    read = _voting if "offsets" in model.arrays else _linear
    return read(model, classes, bias)


def _linear(model: Model, classes: int, bias: float | None, suffix: str = "") -> Weights:
    name = f"weights{suffix}"
    if name in model.arrays:
        stored = model.array(name, "float32", None, classes)
        weights = _of_size(model, name, len(stored), classes, bias)
        weights.set(stored)
        return weights
    starts, columns, values = SPARSE_WEIGHTS
    names = (starts + suffix, columns + suffix, values + suffix)
    matrix = model.rows(names, None, classes)
    count = matrix.shape[0]
    require_memory(4 * count * classes, f"{model.path}: the weights", "train a smaller model")
    weights = _of_size(model, names[0], count, classes, bias)
    step = rows_at_once(classes)
    for begin in range(0, count, step):
        block = matrix[begin : begin + step].toarray()
        weights.table[begin : begin + step, :classes] = block
        drop_pages(matrix.indices)
        drop_pages(matrix.data)
    return weights


def _of_votes(weights: VotingWeights) -> dict[str, Array | ChunkedArray]:
    """Return the arrays of all models, with their numbers in their names."""
    found: dict[str, Array | ChunkedArray] = {}
    for k, one in enumerate(weights.models):
        found |= {f"{name}_{k}": array for name, array in arrays_of(one).items()}
    return found | {"offsets": np.array([one.offset for one in weights.models])}


def _voting(model: Model, classes: int, bias: float | None) -> Weights:
    offsets = model.array("offsets", "float32", None, classes)
    if not len(offsets):
        raise model.fault("offsets", "has no rows")
    models = [_linear(model, classes, bias, f"_{k}") for k in range(len(offsets))]
    for k, (one, offset) in enumerate(zip(models, offsets, strict=True)):
        one.offset[:] = offset
        if one.features != models[0].features:
            raise model.fault(f"weights_{k}", "has other rows than the first")
    return VotingWeights(models)


def _of_size(model: Model, name: str, rows: int, classes: int, bias: float | None) -> Weights:
    if not rows:
        raise model.fault(name, "has no rows")
    return Weights(rows - 1, classes, bias)
