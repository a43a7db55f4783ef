"""Training of a classifier on one shard of the documents, and the rules that mix all shards.

The methods of Mann et al. (2009), with a mixture weighted by row: the weights of a
feature are averaged by the number of documents that have the feature in each shard.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v._core import classify as core
from dcme_w2v.classify.fit import Labeled, fit
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.trainer import ClassifierTrainer, Weights, core_documents, similar_neighbors
from dcme_w2v.errors import DivergedError
from dcme_w2v.numeric.arrays import F32, F64, I64, Array, mean_by_counts

from .mixing import in_turn
from .rounds import Block, Learned, Work
from .words import rate_at, seed_of

TABLE = "weights"
SLOPE = 1.0  # curvature of the loss along a document, fitted; 1 to 4 work, 0.25 fails


@dataclass(frozen=True)
class Shard:
    """The labeled documents of a shard."""

    data: Labeled
    counts: F64  # documents with each feature, and all documents
    square: float  # mean square of the values that are not zero

    @classmethod
    def of(cls, data: Labeled, chosen: I64) -> Shard:
        """Return some of the documents."""
        matrix = csr_matrix(data.matrix[chosen])
        weights = None if data.weights is None else data.weights[chosen]
        labels = [data.labels[i] for i in chosen]
        by_entry = None if weights is None else np.repeat(weights, np.diff(matrix.indptr))
        found = np.bincount(matrix.indices, by_entry, matrix.shape[1])
        total = len(labels) if weights is None else weights.sum(dtype=np.float64)
        values = matrix.data
        square = float(np.vdot(values, values)) / max(1, len(values))
        counts = np.append(found, total).astype(np.float64)
        return cls(Labeled(matrix, labels, weights), counts, square)

    def rows(self, block: Block) -> I64:
        """Return the rows of a block whose features occur in the shard."""
        return np.flatnonzero(self.counts[block.rows])


@dataclass(frozen=True)
class Sparse:
    """The rows of a block that a shard has learned; other rows are unchanged and have count 0."""

    at: I64
    rows: Array
    counts: F64
    square: float

    @classmethod
    def of(cls, shard: Shard, block: Block, table: Array) -> Sparse:
        """Select the rows of a block whose features occur in the shard."""
        at = shard.rows(block)
        return cls(at, table[block.rows][at], shard.counts[block.rows][at], shard.square)

    def __sizeof__(self) -> int:
        """Return the bytes of all arrays, which Dask counts as sent."""
        return self.at.nbytes + self.rows.nbytes + self.counts.nbytes

    def dense(self, start: Array) -> Array:
        """Return all rows of the block."""
        found: Array = start.copy()
        found[self.at] = self.rows
        return found

    def all_counts(self, size: int) -> F64:
        """Return the counts of all rows of the block."""
        found = np.zeros(size)
        found[self.at] = self.counts
        return found


@dataclass(frozen=True)
class Mixture(Work):
    """Trains shards separately and averages rows by their counts.

    With `iterate`, every epoch starts from the mixed weights: iterative mixing (McDonald et al.
    2010). The mean over p shards has only 1 / p of the change that a single shard makes to the
    weights of a rare feature; see `dcme_w2v.cluster.mixing.in_turn`.
    """

    shards: int
    blocks: tuple[Block, ...]
    features: int
    classes: int
    options: ClassifyOptions
    iterate: bool = False
    has_parts: bool = False
    begins_anywhere: bool = True

    def begin(self, block: Block) -> F32:
        """Return zeros."""
        return np.zeros((block.rows.stop - block.rows.start, self.classes), dtype=np.float32)

    def learn(self, number: int, shard: int, data: Shard, tables: dict[str, Any]) -> Learned:
        """Train on a shard: all epochs, or with `iterate` the epoch of this number."""
        options = dataclasses.replace(self.options, seed=seed_of(self.options.seed, shard))
        if self.iterate:
            weights, loss = self._one_epoch(number, data.data, tables[TABLE], options)
        else:
            weights, records = fit(data.data, self.classes, options)
            loss = records[-1]["loss"] if records else 0.0
        table = weights.get()
        if not np.isfinite(table).all():
            raise DivergedError("training diverged (NaN or infinity); lower --lr")
        note = {"documents": float(data.counts[-1]), "loss": loss}
        if weights.offset.any():
            note["offset"] = weights.offset.astype(np.float64).tolist()
        return Learned([Sparse.of(data, block, table) for block in self.blocks], note)

    def _one_epoch(
        self, number: int, data: Labeled, start: F32, options: ClassifyOptions
    ) -> tuple[Weights, float]:
        documents, labels = data.instances()
        order = None
        if options.objective == "dcme" and options.dcme_update == "robust":
            order = similar_neighbors(data.matrix, documents, labels, self.classes, options.seed)
        weights = Weights(self.features, self.classes, options.bias, order)
        weights.set(start)
        by_instance = None if data.weights is None else data.weights[documents]
        training = ClassifierTrainer(
            data.matrix, documents, labels, self.classes, options, weights, by_instance
        )
        return weights, training.epoch(number).loss

    def mix(self, number: int, block: Block, start: Array, pieces: list[Any], joined: Any) -> Array:
        """Return the mean of the rows, weighted by the documents that have the feature."""
        counts = [one.all_counts(len(start)) for one in pieces]
        learned = [one.dense(start) for one in pieces]
        if not self.iterate or self.shards == 1:
            return mean_by_counts(start, learned, counts)
        assert self.options.epochs is not None
        rate = rate_at(self.options, (number + 0.5) / self.options.epochs)
        square = sum(one.square for one in pieces) / len(pieces)
        return in_turn(start, learned, counts, SLOPE * rate * square)


@dataclass(frozen=True)
class Gradient(Mixture):
    """Sums the loss and its gradient over the shards, in order and in double precision."""

    def learn(self, number: int, shard: int, data: Shard, tables: dict[str, Any]) -> Learned:
        """Return the gradient of a shard at a point."""
        weights = Weights(self.features, self.classes, self.options.bias)
        weights.table[:, : self.classes] = tables[TABLE]
        own = data.data
        documents, labels = own.instances()
        by_instance = None if own.weights is None else own.weights[documents]
        instances = core.Instances(
            documents, labels, own.matrix.shape[0], self.classes, by_instance
        )
        gradient = np.empty(tables[TABLE].shape)
        rows = core_documents(own.matrix)
        loss = weights.linear.gradient(
            rows, instances, core.Columns(rows, instances), gradient, self.options.threads or 1
        )
        return Learned([Sparse.of(data, block, gradient) for block in self.blocks], {"loss": loss})

    def mix(self, number: int, block: Block, start: Array, pieces: list[Any], joined: Any) -> Array:
        """Return the sum of the gradients."""
        total = np.zeros(start.shape)
        for one in pieces:
            total[one.at] += one.rows
        return total
