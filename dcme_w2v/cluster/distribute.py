"""Train a classifier on a cluster with the method that the option `--distribute` selects.

The methods of Mann et al. (2009), with a mixture weighted by row: the weights of a feature are
averaged by the number of documents that have the feature in each shard. A hash of a document's
index selects its shard, because shards of different kinds of documents mix badly. The program sends
documents to the workers, which need no files, and mixes the tables that the workers return.
"""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v.classify.calibration import likeliest_factors
from dcme_w2v.classify.fit import TASKS, EndIteration, SgdTask, Task, scores_of
from dcme_w2v.classify.labeled import Labeled, instances_of
from dcme_w2v.classify.options import ClassifyOptions, DistributeOptions
from dcme_w2v.classify.solver import loss_and_gradient_at, minimized
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.classify.weight_files import Votes
from dcme_w2v.errors import DivergedError, UsageError
from dcme_w2v.numeric.arrays import F32, F64, I64, Array, mean_by_counts
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.text.cache import splitmix64
from dcme_w2v.training.executor import Executor, Future, given_value

from .address import open_cluster, parsed
from .mixing import in_turn
from .words import rate_at, seed_of


def shards_of(documents: int, shards: int, seed: int) -> I64:
    """Assign each document to a shard by a hash of the seed and the document's index."""
    numbers = np.arange(documents, dtype=np.uint64) + np.uint64(seed & (2**64 - 1))
    mixed = splitmix64(numbers * np.uint64(0x9E3779B97F4A7C15))
    return np.asarray(mixed % np.uint64(shards), dtype=np.int64)


@dataclass(frozen=True)
class Shard:
    """A shard's documents on a worker, with the values that combining the shards requires.

    Attributes
    ----------
    at : ndarray of int64
        The rows of the weights whose features occur in the documents, and of the bias.
    counts : ndarray of float64, shape (features + 1,)
        Documents with each feature, and all documents.
    square : float
        Mean square of the values that are not zero.
    """

    data: Future
    at: I64
    counts: F64
    square: float


Piece = tuple[Array, F64, float]  # a shard's trained rows, class offsets and loss


def learn(
    data: Labeled, classes: int, options: ClassifyOptions, number: int, start: F32 | None
) -> Piece:
    """Train on a shard, either for all epochs from zero weights or for one epoch from `start`."""
    task = TASKS[options.learner](data, classes, options)
    if start is None:
        task.train()
        loss = task.records[-1]["loss"] if task.records else 0.0
    else:
        assert isinstance(task, SgdTask)
        task.weights.set(start)
        loss = task.training.epoch(number).loss
    weights, table = task.weights, task.weights.get()
    if not np.isfinite(table).all():
        raise DivergedError("training diverged (a weight is NaN or infinite); use a lower --lr")
    return table[_rows_of(data)], weights.offset.astype(np.float64), loss


def gradient(data: Labeled, classes: int, options: ClassifyOptions, point: F32) -> Piece:
    """Return the gradient and the loss of the given weights on a shard's documents."""
    weights = Weights(data.matrix.shape[1], classes, options.bias)
    weights.table[:, :classes] = point
    documents, labels = instances_of(data.labels)
    by_instance = data.instance_weights()
    loss, found = loss_and_gradient_at(
        weights, data.matrix, documents, labels, options, by_instance
    )()
    return found[_rows_of(data)], np.zeros(classes), loss


def _rows_of(data: Labeled) -> I64:
    return np.append(np.unique(data.matrix.indices), data.matrix.shape[1])


class Distributed:
    """An implementation of `RemoteTraining` that trains a `Task` on a cluster.

    Parameters
    ----------
    distribute : DistributeOptions
        The address must be given.

    Attributes
    ----------
    record : dict
        After training: the method, `shards`, the figures of the executor, and `document_bytes`,
        how many of the bytes sent were documents.
    """

    def __init__(self, distribute: DistributeOptions) -> None:
        self._distribute = distribute
        self.record: dict[str, Any] = {}

    def prepare(self, options: ClassifyOptions, checkpoints: CheckpointOptions) -> ClassifyOptions:
        """Check the options, and return the options for each worker.

        Raises
        ------
        UsageError
            The address is not valid, or an option is not supported on a cluster.
        """
        assert self._distribute.cluster is not None
        parsed(self._distribute.cluster)
        method = self._distribute.distribute
        if method == "gradient" and options.solver != "lbfgs":
            raise UsageError("--distribute=gradient requires --solver=lbfgs; add --solver=lbfgs")
        if method == "iterate" and options.solver == "lbfgs":
            raise UsageError(
                "--distribute=iterate is supported only with --solver=sgd; add --solver=sgd"
            )
        if (folder := checkpoints.folder) is not None:
            flag = "--resume" if checkpoints.checkpoint is None else "--checkpoint"
            raise UsageError(
                f"{flag}={folder} is not supported with --cluster; omit one of the two options"
            )
        return dataclasses.replace(options, threads=options.threads or 1)

    def train(self, task: Task) -> None:
        """Train on the cluster until all epochs or iterations are done.

        Raises
        ------
        Interrupted
            A signal was received.
        DcmeError
            See `dcme_w2v.training.executor`.
        """
        assert self._distribute.cluster is not None
        with open_cluster(self._distribute.cluster, task.job.reporter) as executor:

            def run(end: EndIteration, check_signals: Callable[[], None]) -> None:
                executor.watch = check_signals
                shards = _dealt(executor, task, self._distribute.shards or max(1, executor.workers))
                method = self._distribute.distribute
                documents = executor.figures()["bytes_sent"]
                _Work(executor, task, shards).train(method, end)
                self.record = {
                    "distribute": method,
                    "shards": len(shards),
                    "document_bytes": documents,
                    **executor.report(documents),
                }

            task.iterate(run)

    def finish(self, weights: Weights, holdout: Labeled | None) -> dict[str, Any]:
        """Rescale averaged weights on held-out documents, and return the training record."""
        averaged = self.record["distribute"] in ("mixture", "iterate") and self.record["shards"] > 1
        if averaged and holdout is not None:
            # Averaged weights are too small, because weights on which shards disagree cancel out.
            held = scores_of(weights, holdout, 1)
            (factor,), _ = likeliest_factors([held.scores], held.labels, held.weights)
            weights.scale(factor)
            self.record["score_factor"] = float(factor)
        return self.record


def _dealt(executor: Executor, task: Task, count: int) -> list[Shard]:
    """Send each shard's documents to a worker, in a task that can run again on another worker."""
    data, found = task.data, []
    dealt = shards_of(len(data.labels), count, task.options.seed)
    for k in range(count):
        own = data if count == 1 else data.some(np.flatnonzero(dealt == k))
        if not own.labels:
            raise UsageError(
                f"--shards={count}: with {len(dealt):,} documents, shard {k + 1} would be empty; "
                "lower --shards"
            )
        matrix, weights = own.matrix, own.weights
        if weights is None:
            weights = np.ones(len(own.labels), dtype=np.float32)
        by_entry = np.repeat(weights, np.diff(matrix.indptr))
        counts = np.append(
            np.bincount(matrix.indices, by_entry, matrix.shape[1]), weights.sum(dtype=np.float64)
        )
        square = float(np.vdot(np.square(matrix.data), by_entry) / max(1, matrix.nnz))
        sent = executor.submit(given_value, own, label=f"shard {k + 1}", number=k)
        found.append(Shard(sent, _rows_of(own), counts, square))
    executor.wait([one.data for one in found])
    return found


class _Work:
    """The training of a task's weights on all shards."""

    def __init__(self, executor: Executor, task: Task, shards: list[Shard]) -> None:
        self._executor, self._task, self._shards = executor, task, shards
        self._options, self._counts = task.options, [one.counts for one in shards]

    def train(self, method: str, end: EndIteration) -> None:
        """Train with the method that `DistributeOptions` selects.

        The mean over p shards has only 1 / p of the change that a single shard makes to the
        weights of a rare feature; see `dcme_w2v.cluster.mixing.in_turn`.
        """
        task, options, iterates = self._task, self._options, method == "iterate"
        if method == "gradient":
            minimized(self._gradient, task.total_weight, task.weights, options, end)
            return
        epochs = options.epochs or 1
        for number in range(epochs if iterates else 1):
            start = task.weights.get()
            sent = self._executor.submit(given_value, start) if iterates else None
            pieces, tables = self._all(learn, number, sent), []
            for shard, (rows, _, _) in zip(self._shards, pieces, strict=True):
                # Features that do not occur in the shard keep their initial weights.
                tables.append(start.copy())
                tables[-1][shard.at] = rows
            if method == "vote":
                models = [Weights(len(start) - 1, task.classes, options.bias) for _ in tables]
                for model, table, (_, offset, _) in zip(models, tables, pieces, strict=True):
                    model.set(table)
                    model.offset[:] = offset
                task.scorer = Votes(models)
            else:
                learned = (number,) if iterates else range(epochs)
                task.weights.set(self._mixed(start, tables, learned))
                task.weights.offset[:] = self._mean([offset for _, offset, _ in pieces])
            if end(number + 1, self._mean([loss for _, _, loss in pieces])):
                break

    def _mixed(self, start: F32, tables: list[F32], learned: Iterable[int]) -> F32:
        """Combine the weight tables that the shards trained in the given epochs."""
        options, count = self._options, len(self._shards)
        if options.solver == "lbfgs" or count == 1:
            return mean_by_counts(start, tables, self._counts)
        epochs = options.epochs or 1
        rates = sum(rate_at(options, (number + 0.5) / epochs) for number in learned)
        square = sum(one.square for one in self._shards) / count
        # `in_turn` assumes that the loss curvature along each document's row is about 1.
        return in_turn(start, tables, self._counts, rates * square)

    def _gradient(self) -> tuple[float, F64]:
        """Return the loss and the gradient, summed over shards in a fixed order."""
        point = np.ascontiguousarray(self._task.weights.table[:, : self._task.classes])
        pieces = self._all(gradient, self._executor.submit(given_value, point))
        total = np.zeros(point.shape)
        for shard, (rows, _, _) in zip(self._shards, pieces, strict=True):
            total[shard.at] += rows
        return sum(loss for _, _, loss in pieces), total

    def _all(self, function: Callable[..., Piece], *more: Any) -> list[Piece]:
        """Call a function for each shard on the workers; raise an error if any call fails."""
        options, classes = self._options, self._task.classes
        return self._executor.all([
            self._executor.submit(
                function, shard.data, classes,
                dataclasses.replace(options, seed=seed_of(options.seed, k)), *more,
                label=f"shard {k + 1}", number=k,
            )
            for k, shard in enumerate(self._shards)
        ])  # fmt: skip

    def _mean(self, values: list[Any]) -> Any:
        """Return the mean of the shards' values, weighted by document counts."""
        return np.average(values, axis=0, weights=[counts[-1] for counts in self._counts])
