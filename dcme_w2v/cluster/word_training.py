"""Train word vectors on a cluster, in rounds instead of epochs.

All shards start from the same tables; then their rows are mixed. The tables are divided into B
blocks of rows, which stay on the workers. With p shards, a round runs p tasks that learn; p * B
tasks that pick the rows of one block from the result of one shard, so that only these rows are
sent; and B tasks that mix. Each block is mixed by the same worker in every round, because this
worker has the rows before the round.
"""

import contextlib
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dcme_w2v.declarations import part_of
from dcme_w2v.errors import DivergedError, UsageError
from dcme_w2v.formats.vectors.subwords import WordNgrams
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32, U8
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.cache import IdCache
from dcme_w2v.text.encode import EncodedCorpus, encode
from dcme_w2v.text.select_vocabulary import Given
from dcme_w2v.training import trainer as engine
from dcme_w2v.training.checkpoint_folder import find_checkpoint
from dcme_w2v.training.executor import Executor, Future, given_value, piece_of
from dcme_w2v.training.progress import Reporter
from dcme_w2v.training.trainer import Fingerprint, Progress, hash_of
from dcme_w2v.words import train as run
from dcme_w2v.words.options import TrainOptions
from dcme_w2v.words.train import TrainJob

from .address import open_cluster, parsed
from .mixing import GRAINS
from .shards import Shard, all_figures, check_files, count, cut
from .words import DONE, Data, Plan, check_mixed, rate_at, resolved_for, rounds_of, warning_of

WORKER_TABLES = 5  # estimated number of copies of both vector tables that a worker holds
DASK_BYTES = 80 << 20  # measured memory of a Dask worker process in bytes


class ClusterTrainer(engine.Trainer):
    """A trainer that uses an executor's workers and trains one round per call of `epoch`.

    Parameters
    ----------
    executor : Executor
    plan : Plan
    vocabulary : Vocabulary
    data : sequence of Future
        The encoded text of each shard.
    names : sequence of str
        The name of each shard in messages.
    """

    stops_within = False
    subwords = neighbors = None

    def __init__(
        self,
        executor: Executor,
        plan: Plan,
        vocabulary: Vocabulary,
        data: list[Future],
        names: list[str],
    ) -> None:
        self.options, self.kernels, self.round, self.epochs = plan.options, "", 0, plan.rounds
        self._executor, self._plan, self._data, self.names = executor, plan, data, names
        self._begun = False
        self._done: dict[str, Any] = {**dict.fromkeys(DONE, 0), "loss": None}
        self._stopped: int | None = None
        self._counts = [
            executor.submit(given_value, vocabulary.counts[block], number=b)
            for b, block in enumerate(plan.blocks)
        ]
        self._blocks = self._of_blocks(plan.begin)
        # Keep the previous round's blocks, because lost blocks are recomputed from them.
        self._previous = self._blocks
        # `_both` collects the complete tables in this attribute. Tables collected before the first
        # round replace the initial blocks.
        self._collected: F32 | None = None

    def _of_blocks(self, function: Callable[..., Any], *more: list[Any], label: str = "") -> Any:
        """Submit one task per block; pass the block's item from each list to the task."""
        return [
            self._executor.submit(function, block, *(one[b] for one in more), label=label, number=b)
            for b, block in enumerate(self._plan.blocks)
        ]

    @property
    def unfinished(self) -> int | None:
        """Index of the round that a signal stopped and that a resumed run repeats, or None."""
        return self._stopped

    def progress(self) -> Progress:
        """Return the progress at the end of the last round."""
        rate = rate_at(self.options, self.round / self.epochs)
        loss = math.nan if self._done["loss"] is None else self._done["loss"]
        return Progress(**{**self._done, "loss": loss}, lr=rate)

    # ---- the tables ----

    @property
    def input(self) -> F32:
        """The word vectors, collected from the workers."""
        return self._both[0]

    @property
    def output(self) -> F32:
        """The context vectors, collected from the workers."""
        return self._both[1]

    @property
    def tables(self) -> Mapping[str, F32]:  # type: ignore[override]
        """The word and context vectors, by name."""
        return {"vectors": self.input, "context": self.output}

    @property
    def _both(self) -> F32:
        """Word and context vectors, shape (2, words, dim), in a memory-mapped temporary file."""
        if self._collected is None:
            file, plan = IdCache(name="the file of trained tables"), self._plan
            shape = 2, plan.words, self.options.dim
            for block, future in zip(plan.blocks, self._blocks, strict=True):
                for i, rows in enumerate(self._executor.result(future)):
                    place = (i * plan.words + block.start) * self.options.dim
                    file.write(place, np.ascontiguousarray(rows).reshape(-1).view(np.uint32))
            numbers = np.asarray(file.finished(int(np.prod(shape)), "r+")).view(np.float32)
            self._collected = numbers.reshape(shape)
        return self._collected

    def check_finite(self) -> None:
        """Raise `DivergedError` if a table contains NaN or infinity."""
        if not np.isfinite(self._both).all():
            raise DivergedError(
                f"training diverged in round {self.round} (a vector is NaN or infinite); use a "
                "lower --lr"
            )

    def state(self) -> list[U8]:
        """Return an empty list, because resuming requires no state besides the tables."""
        return []

    def record(self) -> dict[str, Any]:
        """Return the statistics so far, in the form that `restore` accepts."""
        of_epoch = {"loss": 0.0, "losses": 0, "state": []}
        return {**of_epoch, "round": self.round, "kernels": self.kernels, "done": self._done}

    def restore(self, state: U8, record: Mapping[str, Any]) -> None:
        """Restore the statistics from a checkpoint."""
        self.round, self.kernels = record["round"], record["kernels"]
        self._done = {name: record["done"][name] for name in self._done}

    # ---- a round ----

    def epoch(
        self, number: int, watch: Callable[[Progress], bool | None] | None = None
    ) -> Progress:
        """Train one round and combine its tables; discard the round if `watch` returns True."""
        self._stopped = None

        def check() -> None:
            if watch and watch(self.progress()):
                raise _Stopped

        self._executor.watch = check
        try:
            rows, notes = self._round(number)
        except _Stopped:
            self._stopped = number
            return self.progress()
        finally:
            self._executor.watch = lambda: None
        self._previous, self._blocks, self._collected = self._blocks, rows, None
        self.round, self._begun = number + 1, True
        self._count(notes)
        return self.progress()

    def _round(self, number: int) -> tuple[list[Future], list[dict[str, Any]]]:
        plan, executor = self._plan, self._executor
        # Tables from the caller or from a checkpoint replace the initial blocks.
        if self._collected is not None and not self._begun:
            self._blocks = [
                executor.submit(given_value, np.array(self._collected[:, block]), number=b)
                for b, block in enumerate(plan.blocks)
            ]
        learned = [
            executor.submit(
                plan.learn, number, k, one, self._blocks, number=k,
                label=f"shard {k + 1} of round {number + 1} ({self.names[k]})",
            )
            for k, one in enumerate(self._data)
        ]  # fmt: skip
        executor.wait(learned)  # raise errors of failed tasks before combining tables
        # Submit these short tasks first, so that Dask can measure how long they take.
        # Dask would move tasks of unknown duration to idle workers, which transfers data slowly.
        notes = all_figures(executor, learned)
        blocks, numbers = range(len(plan.blocks)), [number] * len(plan.blocks)
        picked = [[executor.submit(piece_of, one, b) for one in learned] for b in blocks]
        found: Future = None
        if plan.shards > 1:
            moments = self._of_blocks(plan.moments, numbers, self._counts, picked)
            found = executor.submit(plan.directions, moments)
        mixed = self._of_blocks(
            plan.mix, numbers, self._counts, self._blocks, picked, [found] * len(blocks),
            label=f"the tables of round {number + 1}",
        )  # fmt: skip
        executor.wait(mixed)
        return mixed, notes

    def _count(self, notes: list[dict[str, Any]]) -> None:
        """Add the shards' statistics from one round to the totals."""
        for name in DONE:
            self._done[name] += sum(note[name] for note in notes)
        some = [note for note in notes if note["loss"] is not None]
        trained = sum(note["trained"] for note in some)
        loss = sum(note["loss"] * note["trained"] for note in some)
        self._done["loss"] = loss / trained if trained else None
        self.kernels = notes[0].get("kernels", self.kernels)


class _Stopped(Exception):
    """Exception with which `watch` ends a round early."""


class ClusterRun(run.WordsRun):
    """A word-vector training run on a cluster, for use with `dcme_w2v.training.run`."""

    kind, step = "words on a cluster", "round"

    def __init__(
        self,
        job: TrainJob,
        corpus: EncodedCorpus,
        training: ClusterTrainer,
        fingerprint: Fingerprint,
        executor: Executor,
    ) -> None:
        super().__init__(job, corpus, training, None)
        self._fingerprint, self._executor, self._cluster = fingerprint, executor, training
        self._own = {"shards": len(training.names), "rounds": training.epochs}
        self.settings = {**self.settings, **self._own}

    def fingerprint(self) -> Fingerprint:
        """Return a hash of the token IDs and a hash of the vocabulary."""
        return self._fingerprint

    def done(self, progress: Progress) -> int:
        """Return the number of corpus tokens processed so far."""
        return self.total * self._cluster.round // self._cluster.epochs

    def final_figures(self) -> dict[str, Any]:
        """Return the statistics of the cluster for the manifest."""
        return {"cluster": {**self._own, **self._executor.report()}}

    def save_partial(self) -> str | None:
        """Save the vectors of the last round beside each output file; skip streams."""
        return super().save_partial() if self._cluster.round else None


class Cluster(run.Machine):
    """A cluster that trains word vectors or, without an executor, only plans a dry run."""

    kind = ClusterRun.kind

    def __init__(self, shards: int, executor: Executor | None) -> None:
        self._shards, self._executor, self._hashes = shards, executor, ""
        self._data: list[Future] = []
        self._names: list[str] = []

    def encode(self, job: TrainJob, known: Given, reporter: Reporter) -> EncodedCorpus:
        """Count and encode the corpus on the workers."""
        if (executor := self._executor) is None:
            return super().encode(job, known, reporter)
        assert known is None or isinstance(known, Vocabulary)
        reporter.stage("reading", None, "bytes")
        options = part_of(job, VocabularyOptions)
        parts = cut(job.corpus, self._shards, options)
        self._names = [one.name for one in parts]
        counted, vocabulary = count(executor, parts, options, known)
        self._data = [
            executor.submit(
                load, one, options, vocabulary, number=k,
                label=f"shard {k + 1} ({one.name})",
            )
            for k, one in enumerate(parts)
        ]  # fmt: skip
        executor.wait(self._data)  # waiting here raises input errors before the first round
        found = all_figures(executor, self._data)
        counts = np.sum([one["counts"] for one in found], axis=0)
        ids = sum(one["ids"] for one in found)
        self._hashes = " ".join(one["hash"] for one in found)
        empty = np.zeros(0, dtype=np.uint32)
        return EncodedCorpus(
            **{**vars(counted), "out_of_vocabulary": counted.tokens - ids},
            ids=empty, counts=counts, lines=sum(one["lines"] for one in found),
            held_out=empty, held_out_tokens=0,
        )  # fmt: skip

    def resolved(self, job: TrainJob, words: int) -> TrainJob:
        """Return the options with all defaults filled in."""
        return resolved_for(job, words, self._shards)

    def plan(
        self, job: TrainJob, corpus: EncodedCorpus, ngrams: WordNgrams | None
    ) -> dict[str, Any]:
        """Return the resources that training requires, and the numbers of shards and rounds.

        The result also has `tokens_a_round` (per shard), `bytes_a_round` (sent by all workers
        together) and `worker_memory_bytes`.
        """
        plan, shards = super().plan(job, corpus, ngrams), self._shards
        where = parsed(job.cluster or "")
        process = 0 if where == 0 else DASK_BYTES
        tables = 8 * len(corpus.vocabulary) * job.dim
        worker = process + WORKER_TABLES * tables + round(4 * corpus.tokens / shards)
        if shards > 1:  # the results of `moments` take additional memory
            worker += 2 * GRAINS * 8 * (job.dim + 1) ** 2
        here = max(1, where) * worker if isinstance(where, int) else 0
        rounds = rounds_of(job.rounds, job.epochs, corpus.tokens, shards)
        return {
            **plan,
            "memory_bytes": plan["memory_bytes"] + process + here,
            "worker_memory_bytes": worker,
            "shards": shards,
            "rounds": rounds,
            "tokens_a_round": round(corpus.tokens * job.epochs / rounds / shards),
            "bytes_a_round": 2 * (shards - 1) * tables,
        }

    def run(
        self, job: TrainJob, corpus: EncodedCorpus, ngrams: WordNgrams | None, reporter: Reporter
    ) -> run.WordsRun:
        """Create the training run for `run_epochs`."""
        executor, words = self._executor, corpus.vocabulary
        assert executor is not None
        rounds = rounds_of(job.rounds, job.epochs, corpus.tokens, self._shards)
        if warning := warning_of(self._shards, rounds):
            reporter.message(warning)
        plan = Plan.of(part_of(job, TrainOptions), self._shards, rounds, words.counts)
        training = ClusterTrainer(executor, plan, words, self._data, self._names)
        fingerprint = run.fingerprint_of(self._hashes, words, corpus.tokens, job.corpus)
        return ClusterRun(job, corpus, training, fingerprint, executor)


def load(
    shard: Shard, options: VocabularyOptions, words: Vocabulary
) -> tuple[Data, dict[str, Any]]:
    """Encode the text of a shard; return the encoded text, and its size, hash and word counts."""
    found = encode(shard.corpus(), options, vocabulary=words)
    figures = {"ids": len(found.ids), "lines": found.lines, "hash": hash_of([found.ids])}
    return Data(found.ids, words.counts), {**figures, "counts": found.counts}


@contextlib.contextmanager
def cluster_of(
    job: TrainJob, reporter: Reporter, dry_run: bool
) -> Iterator[tuple[TrainJob, Cluster]]:
    """Open a job's cluster; yield the job, with values from its checkpoint, and the cluster.

    The number of workers does not change the vectors. With one shard, one round an epoch and one
    thread, the vectors equal the vectors of one machine. A dry run reads the corpus on this
    machine, and returns the resources: see `Cluster.plan`.

    Raises
    ------
    ClusterError
        The cluster cannot be reached, its scheduler or all workers are lost, or a task ended its
        workers.
    """
    job = _checked(job)
    assert job.cluster is not None
    if not dry_run:
        with open_cluster(job.cluster, reporter) as executor:
            yield job, Cluster(job.shards or max(1, executor.workers), executor)
        return
    where = parsed(job.cluster)
    if job.shards is None and isinstance(where, str):
        raise UsageError(
            "--dry-run requires --shards, because the number of workers at "
            f"--cluster={job.cluster} is unknown; add --shards"
        )
    yield job, Cluster(job.shards or max(1, int(where)), None)


def _checked(job: TrainJob) -> TrainJob:
    """Check a job's files and options; fill in values from a checkpoint if there is one."""
    assert job.cluster is not None
    check_files(job.cluster, job.corpus)
    check_mixed(job)
    if job.text is not None:
        raise UsageError(
            f"--cluster={job.cluster} is not supported for sentences in memory; save the "
            "sentences to files"
        )
    if job.init_vocab != "new":
        raise UsageError(
            f"--init-vocab={job.init_vocab} is not supported with --cluster; omit --init-vocab"
        )
    found = find_checkpoint(job, ClusterRun.kind)
    if found is not None:
        job = found.with_run_values(job, "shards", "rounds")
    # `rounds_of` is called only to check --rounds.
    rounds_of(job.rounds, job.epochs, 0, job.shards or 1)
    if job.threads is None:
        job = dataclasses.replace(job, threads=1)
    return job
