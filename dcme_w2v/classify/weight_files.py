"""Store weights, voting models and label trees as arrays in model files.

Tables are written and read some rows at a time, so that no second copy of a large table is in
memory.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dcme_w2v._core import models as core
from dcme_w2v.files.space import require_memory
from dcme_w2v.formats.artifact import Model
from dcme_w2v.numeric.arrays import F32, F64, Array, ChunkedArray, drop_pages

from .label_tree import Forest, Tree, forest_of, tree_arrays
from .metrics import log_softmax
from .trainer import Scorer, Weights, rows_at_once


class Votes(Scorer):
    """An ensemble of linear models: a class's score is the log of its mean probability.

    Parameters
    ----------
    models : sequence of Weights
        At least one model; all have the same features and classes.
    """

    def __init__(self, models: Sequence[Weights]) -> None:
        self.models, self.classes = list(models), models[0].classes

    @property
    def features(self) -> int:
        """Number of columns that documents must have."""
        return self.models[0].features

    def above_mean(self, number: int) -> F32:
        """Return a class's weights minus the mean weights of all classes, averaged over models."""
        found = np.mean([one.above_mean(number) for one in self.models], axis=0, dtype=np.float64)
        return np.asarray(found, dtype=np.float32)

    def scores(self, documents: core.SparseRows, begin: int, end: int, threads: int) -> F64:
        """Return the logs of the models' mean probabilities."""
        total = np.zeros((end - begin, self.classes))
        for one in self.models:
            total += np.exp(log_softmax(one.scores(documents, begin, end, threads)))
        total /= len(self.models)
        return np.log(np.maximum(total, np.finfo(np.float64).tiny))


SPARSE_WEIGHTS = ("weights_starts", "weights_columns", "weights_values")
# Weights are stored as a sparse matrix if less than this fraction of them is nonzero.
SPARSE_BELOW = 0.5


def arrays_of(scorer: Scorer | Tree) -> dict[str, Array | ChunkedArray]:
    """Convert a scorer to arrays for `save_model`; append numbers to names of several models."""
    if isinstance(scorer, Votes | Forest):
        parts: Any = scorer.models if isinstance(scorer, Votes) else scorer.trees
        return {
            f"{name}_{k}": array
            for k, one in enumerate(parts)
            for name, array in arrays_of(one).items()
        }
    if isinstance(scorer, Tree):
        return tree_arrays(scorer)
    assert isinstance(scorer, Weights)
    found: dict[str, Array | ChunkedArray] = {"offset": scorer.offset}
    return (found if scorer.offset.any() else {}) | _table_arrays(scorer)


def _table_arrays(weights: Weights) -> dict[str, Array | ChunkedArray]:
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


def scorer_of(model: Model, classes: int, bias: float | None) -> Scorer:
    """Restore the scorer that `arrays_of` stored."""
    if "children_0" in model.arrays:
        return forest_of(model, classes, bias or 0.0)
    models: list[Weights] = []
    while model.arrays.keys() & {f"{SPARSE_WEIGHTS[0]}_{len(models)}", f"weights_{len(models)}"}:
        models.append(weights_of(model, classes, bias, f"_{len(models)}"))
        if models[-1].features != models[0].features:
            raise model.fault(
                f"weights_{len(models) - 1}", "does not have as many rows as the first table"
            )
    return Votes(models) if models else weights_of(model, classes, bias)


def weights_of(model: Model, classes: int, bias: float | None, suffix: str = "") -> Weights:
    """Restore the weights of a linear model from arrays whose names end with `suffix`."""
    weights = _table_of(model, classes, bias, suffix)
    if f"offset{suffix}" in model.arrays:
        weights.offset[:] = model.array(f"offset{suffix}", "float32", classes)
    return weights


def _table_of(model: Model, classes: int, bias: float | None, suffix: str) -> Weights:
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


def _of_size(model: Model, name: str, rows: int, classes: int, bias: float | None) -> Weights:
    if not rows:
        raise model.fault(name, "has no rows")
    return Weights(rows - 1, classes, bias)
