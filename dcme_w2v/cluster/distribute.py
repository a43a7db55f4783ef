"""Training of a classifier on a cluster: `--distribute mixture|vote|gradient|iterate`.

A hash of the number of a document selects its shard, because shards of different kinds of documents
mix badly. The program sends documents to the workers, which need no files.
"""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from dcme_w2v.classify.calibration import likeliest_factors, scores_of
from dcme_w2v.classify.fit import Fit, Labeled
from dcme_w2v.classify.options import ClassifyOptions, DistributeOptions
from dcme_w2v.classify.solver import minimized
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.classify.weight_files import VotingWeights
from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F64, I64
from dcme_w2v.options import CheckpointOptions
from dcme_w2v.text.split import splitmix64
from dcme_w2v.training.executor import Executor, Future, given_value
from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import Reporter
from dcme_w2v.training.run import Checkpointer, interrupted

from .address import check_address, open_cluster
from .classes import TABLE, Gradient, Mixture, Shard
from .rounds import (
    RoundRecord,
    Tables,
    begun,
    blocks_of,
    learn,
    mix,
    notes_of,
    run_rounds,
)


def shards_of(documents: int, shards: int, seed: int) -> I64:
    """Return the shard of each document: a hash of the seed and its number (splitmix64)."""
    numbers = np.arange(documents, dtype=np.uint64) + np.uint64(seed & (2**64 - 1))
    mixed = splitmix64(numbers * np.uint64(0x9E3779B97F4A7C15))
    return np.asarray(mixed % np.uint64(shards), dtype=np.int64)


class Distributed:
    """Trains a `Fit` on a cluster.

    Parameters
    ----------
    distribute : DistributeOptions
        The address must be given.

    Attributes
    ----------
    record : dict
        After training: the method, `shards`, and the figures of the executor.
    """

    def __init__(self, distribute: DistributeOptions) -> None:
        self._distribute = distribute
        self._checkpointer: Checkpointer | None = None
        self.record: dict[str, Any] = {}

    def prepare(self, options: ClassifyOptions, checkpoints: CheckpointOptions) -> ClassifyOptions:
        """Return the options of a worker.

        Raises
        ------
        UsageError
            The address is not valid, or an option is not supported on a cluster.
        """
        assert self._distribute.cluster is not None
        check_address(self._distribute.cluster)
        method = self._distribute.distribute
        if method == "gradient" and options.solver != "lbfgs":
            raise UsageError("--distribute=gradient: requires --solver=lbfgs")
        if method == "iterate" and options.solver == "lbfgs":
            raise UsageError("--distribute=iterate: requires --solver=sgd")
        if (folder := checkpoints.folder) is not None:
            flag = "--resume" if checkpoints.checkpoint is None else "--checkpoint"
            raise UsageError(f"{flag}={folder}: is not supported with --cluster; omit one")
        return dataclasses.replace(options, threads=options.threads or 1)

    def train(self, task: Fit, reporter: Reporter, received: ReceivedSignal) -> None:
        """Train to the end.

        Raises
        ------
        Interrupted
            A signal was received.
        DcmeError
            See `dcme_w2v.training.executor`.
        """
        checkpointer = self._checkpointer = Checkpointer(task, reporter)

        def watch() -> None:
            if received.number is not None:
                raise interrupted(task, checkpointer, received)

        address = self._distribute.cluster
        assert address is not None
        reporter.stage("training", None, "rounds")
        with open_cluster(address, reporter, watch) as executor:
            count = self._distribute.shards or max(1, executor.workers)
            data = self._deal(executor, task, count)
            blocks = blocks_of({TABLE: (task.weights.features + 1, task.classes)}, executor.workers)
            sizes = (task.weights.features, task.classes, task.resolved)
            method = self._distribute.distribute
            if method == "gradient":
                self._gradient(executor, Gradient(count, blocks, *sizes), data, task, reporter)
            elif method == "vote":
                self._vote(executor, Mixture(count, blocks, *sizes), data, task, reporter)
            else:
                work = Mixture(count, blocks, *sizes, method == "iterate")
                self._mixture(executor, work, data, task, reporter)
            self.record = {
                "distribute": method,
                "shards": count,
                **executor.figures(),
            }

    def finish(self, weights: Weights, holdout: Labeled | None) -> dict[str, Any]:
        """Scale averaged weights by held-out documents, and return the record of the training."""
        averaged = self.record["distribute"] in ("mixture", "iterate") and self.record["shards"] > 1
        if averaged and holdout is not None:
            # averaged weights are too small: weights of shards that disagree cancel
            scores, labels = scores_of(weights, holdout, 1)
            (factor,), _ = likeliest_factors([scores], labels)
            weights.scale(factor)
            self.record["score_factor"] = float(factor)
        return self.record

    def _deal(self, executor: Executor, task: Fit, count: int) -> list[Future]:
        """Send the documents of each shard as arguments of a task, which can be repeated."""
        data = task.data
        dealt = shards_of(len(data.labels), count, task.resolved.seed)
        futures = []
        for k in range(count):
            chosen = np.flatnonzero(dealt == k) if count > 1 else np.arange(len(dealt))
            if not len(chosen):
                raise UsageError(
                    f"--shards={count}: {len(dealt):,} documents leave shard {k + 1} empty; "
                    "give fewer"
                )
            shard = Shard.of(data, chosen)
            futures.append(
                executor.submit(given_value, shard, label=f"shard {k + 1}", worker_hint=k)
            )
        executor.wait(futures)
        return futures

    def _mixture(
        self,
        executor: Executor,
        work: Mixture,
        data: list[Future],
        task: Fit,
        reporter: Reporter,
    ) -> None:
        rounds = (task.resolved.epochs or 1) if work.iterate else 1

        def end_round(record: RoundRecord, tables: Tables) -> bool:
            task.weights.set(tables.get(TABLE))
            task.weights.offset[:] = _mean_offset(record.notes, work.classes)
            self._end_epoch(task, reporter, record.round, record.seconds, _mean_loss(record.notes))
            return task.is_over()

        run_rounds(executor, work, rounds, data=data, end_round=end_round)

    def _vote(
        self,
        executor: Executor,
        work: Mixture,
        data: list[Future],
        task: Fit,
        reporter: Reporter,
    ) -> None:
        since = time.monotonic()
        models, notes = [], []
        for one in learn(executor, work, 0, data, begun(executor, work)):
            pieces, note = executor.result(one)
            table = np.concatenate(
                [p.dense(work.begin(b)) for p, b in zip(pieces, work.blocks, strict=True)]
            )
            weights = Weights(work.features, work.classes, work.options.bias)
            weights.set(table)
            weights.offset[:] = _mean_offset([note], work.classes)
            models.append(weights)
            notes.append(note)
        task.weights = VotingWeights(models)
        self._end_epoch(task, reporter, 1, time.monotonic() - since, _mean_loss(notes))

    def _gradient(
        self,
        executor: Executor,
        work: Gradient,
        data: list[Future],
        task: Fit,
        reporter: Reporter,
    ) -> None:
        since, calls = time.monotonic(), 0
        weights = task.weights

        def gradient() -> tuple[float, F64]:
            nonlocal calls
            calls += 1
            point = weights.table[:, : work.classes]
            start = [
                executor.submit(given_value, np.ascontiguousarray(point[block.rows]), worker_hint=b)
                for b, block in enumerate(work.blocks)
            ]
            learned = learn(executor, work, calls - 1, data, start)
            summed = mix(executor, work, calls - 1, start, learned)
            loss = sum(note["loss"] for note in notes_of(executor, learned))
            return loss, Tables(executor, work.blocks, summed).get(TABLE)

        def iterated(iteration: int, loss: float) -> bool:
            nonlocal since
            seconds, since = time.monotonic() - since, time.monotonic()
            self._end_epoch(task, reporter, iteration, seconds, loss)
            return task.is_over()

        minimized(gradient, task.total_weight, weights, work.options, iterated)

    def _end_epoch(
        self, task: Fit, reporter: Reporter, number: int, seconds: float, loss: float
    ) -> None:
        record = {"epoch": number, "seconds": round(seconds, 3), "loss": loss, **task.scores()}
        reporter.advance(number, loss=loss)
        task.end_epoch(record)
        reporter.epoch(record)
        assert self._checkpointer is not None
        self._checkpointer.end_epoch()  # its number is in messages


def _mean_loss(notes: Sequence[dict[str, Any]]) -> float:
    total = sum(one["documents"] for one in notes)
    return float(sum(one["loss"] * one["documents"] for one in notes) / total)


def _mean_offset(notes: Sequence[dict[str, Any]], classes: int) -> F64:
    total = sum(one["documents"] for one in notes)
    found = np.zeros(classes)
    for one in notes:
        if "offset" in one:
            found += np.asarray(one["offset"]) * (one["documents"] / total)
    return found
