"""Training of word vectors on a cluster; `dcme_w2v.words.run` trains them on one machine."""

import contextlib
import dataclasses
import time
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from dcme_w2v.errors import (
    ClusterError,
    DcmeError,
    DivergedError,
    FormatError,
    ResourceError,
    UsageError,
)
from dcme_w2v.files.paths import PARTIAL
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.text.cache import IdCache
from dcme_w2v.text.encode import CountedCorpus, EncodedCorpus
from dcme_w2v.training.checkpoint_folder import (
    Checkpoint,
    CheckpointFolder,
    Position,
    find_checkpoint,
    open_folder,
    record_of,
)
from dcme_w2v.training.executor import Executor, Future
from dcme_w2v.training.interrupts import Interrupted, ReceivedSignal
from dcme_w2v.training.progress import Reporter
from dcme_w2v.training.trainer import Fingerprint, Progress
from dcme_w2v.words import run
from dcme_w2v.words.defaults import vectors_of
from dcme_w2v.words.job import TrainJob, paths_of
from dcme_w2v.words.options import TrainOptions
from dcme_w2v.words.resources import resource_estimate, resource_shortage
from dcme_w2v.words.start import TrainedTables
from dcme_w2v.words.vectors import Vectors

from .address import local_workers, open_cluster
from .mixing import GRAINS
from .rounds import RoundRecord, Tables, blocks_of, run_rounds, shards_of
from .shards import check_files, count, cut
from .words import (
    DONE,
    TABLES,
    Plan,
    WordsWork,
    check_init,
    check_mixed,
    figures_of,
    rate_at,
    resolved_for,
    rounds_of,
    rows_of,
    saved_rows,
    warning_of,
)

KIND = "words on a cluster"
FETCH_SECONDS = 20  # to fetch the tables after a signal
WORKER_TABLES = 5  # copies of both tables: before and after training, in blocks, and mixed
DASK_BYTES = 80 << 20  # of a process with Dask: measured


def train(
    job: TrainJob,
    reporter: Reporter,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
) -> Vectors:
    """Train word vectors on a cluster and write them; see `dcme_w2v.words.run.train`.

    The number of workers does not change the vectors. With one shard, one round an epoch and one
    thread, the vectors equal the vectors of one machine.

    Raises
    ------
    ClusterError
        The cluster cannot be reached, its scheduler or all workers are lost, or a task ended its
        workers.
    """
    start = time.monotonic()
    found = find_checkpoint(job.checkpoints, KIND)
    job = _checked(job, found)
    assert job.cluster.cluster is not None
    with (
        signals or contextlib.nullcontext(ReceivedSignal()) as received,
        open_folder(job.checkpoints) as folder,
    ):
        session = _Session(job, reporter, received, folder, found)
        with open_cluster(job.cluster.cluster, reporter, session.check_signals) as executor:
            try:
                trained = session.train(executor)
            except Interrupted as error:
                raise session.interrupted(error.exit_code) from None
        run.check_trained(session.progress())
        return session.finish(trained, start)


def dry_run(job: TrainJob, reporter: Reporter) -> dict[str, Any]:
    """Read the corpus on this machine and return the resources that training requires.

    Returns
    -------
    dict
        The figures of `dcme_w2v.words.run.dry_run`, and `shards`, `rounds`, `tokens_a_round` of a
        shard, `bytes_a_round` that all workers together send, and `worker_memory_bytes`.
    """
    assert job.cluster.cluster is not None
    check_files(job.cluster.cluster, job.corpus)
    check_mixed(job.options)
    local = local_workers(job.cluster.cluster)
    if job.cluster.shards is None and local is None:
        raise UsageError(f"--cluster={job.cluster.cluster}: --dry-run requires --shards, too")
    shards = job.cluster.shards or max(1, local or 0)
    options = _with_threads(job.options)
    plan = run.dry_run(dataclasses.replace(job, options=options), reporter)
    rounds = rounds_of(job.rounds.rounds, options.epochs, plan["tokens"], shards)
    if warning := warning_of(shards, rounds):
        reporter.message(warning)
    plan = _with_workers(plan, job, options, shards)
    return {
        **plan,
        "refused": resource_shortage(plan),
        "shards": shards,
        "rounds": rounds,
        "tokens_a_round": round(plan["tokens"] * options.epochs / rounds / shards),
        "bytes_a_round": 2 * (shards - 1) * _table_bytes(plan, options),
    }


def _table_bytes(plan: dict[str, Any], options: TrainOptions) -> int:
    return len(TABLES) * 4 * int(plan["vocabulary"]) * options.dim


def _with_workers(
    plan: dict[str, Any], job: TrainJob, options: TrainOptions, shards: int
) -> dict[str, Any]:
    """Return a plan of one process with the memory of a worker, and of workers on this machine."""
    assert job.cluster.cluster is not None
    local, tokens = local_workers(job.cluster.cluster), round(4 * plan["tokens"] / shards)
    process = 0 if local == 0 else DASK_BYTES
    worker = process + WORKER_TABLES * _table_bytes(plan, options) + tokens
    if shards > 1 and job.rounds.mix == "curvature":  # the result of `moments` for both tables
        worker += len(TABLES) * GRAINS * 8 * (options.dim + 1) ** 2
    here = 0 if local is None else max(1, local) * worker
    own = plan["memory_bytes"] + process
    return {**plan, "memory_bytes": own + here, "worker_memory_bytes": worker}


def _with_threads(options: TrainOptions) -> TrainOptions:
    """Return options with the threads of each worker, by default one."""
    return options if options.threads else dataclasses.replace(options, threads=1)


def _checked(job: TrainJob, found: Checkpoint | None) -> TrainJob:
    """Check files and options, and return them as a resumed run needs them."""
    assert job.cluster.cluster is not None
    options = job.options
    check_files(job.cluster.cluster, job.corpus)
    paths_of(job).check()
    check_mixed(options)
    flag = f"--cluster={job.cluster.cluster}"
    if job.sentences is not None:
        raise UsageError(f"{flag}: workers read the corpus from files; give paths")
    check_init(job)
    if found is not None:
        if job.checkpoints.folder != job.checkpoints.resume:
            raise UsageError("--checkpoint: must be the folder of --resume with --cluster")
        options = found.with_run_values(options, "sample", "lr", "min_lr")
        cluster = found.with_run_values(job.cluster, "shards")
        job = dataclasses.replace(
            job, cluster=cluster, rounds=found.with_run_values(job.rounds, "rounds")
        )
    rounds_of(job.rounds.rounds, options.epochs, 0, job.cluster.shards or 1)  # or raise
    job = run.with_counts(job)
    vectors = vectors_of(job.vectors, options, job.output_context)
    return dataclasses.replace(job, vectors=vectors, options=_with_threads(options))


class _Session:
    """The state of one run."""

    def __init__(
        self,
        job: TrainJob,
        reporter: Reporter,
        received: ReceivedSignal,
        folder: CheckpointFolder | None,
        found: Checkpoint | None,
    ) -> None:
        self.job, self.reporter = job, reporter
        self.received, self.folder, self.found = received, folder, found
        self.done: dict[str, Any] = {**dict.fromkeys(DONE, 0), "loss": None, "kernels": ""}
        self.round, self.seconds, self.figures = 0, 0.0, dict[str, Any]()
        self.named: dict[str, Any] = {}  # the options that a checkpoint has
        self.tables: Tables | None = None  # of the last round
        self.deadline = 0.0  # signals before this time are ignored
        self.corpus: EncodedCorpus
        self.plan: Plan
        self.fingerprint: Fingerprint

    # ---- signals ----

    def check_signals(self) -> None:
        """Raise `Interrupted` if a signal has arrived."""
        number = self.received.number
        if number is not None and time.monotonic() > self.deadline:
            raise Interrupted("", number)

    def interrupted(self, code: int) -> Interrupted:
        """Save the vectors so far if there is no checkpoint; return the error of a signal."""
        self.deadline = time.monotonic() + FETCH_SECONDS  # the tables are fetched from the workers
        said = f"stopped by {self.received.name} in round {self.round + 1}: "
        if self.folder is not None and self.folder.generations():
            said += f"the state is in {self.folder.path}; resume with --resume={self.folder.path}"
        else:
            said += self._partial() or "nothing saved"
        return Interrupted(said, code - 128)

    def _partial(self) -> str | None:
        """Save the vectors of the last round beside the outputs."""
        if self.tables is None:
            return None
        with contextlib.suppress(DcmeError):
            written = run.save_results(self.job, self._trained(), self.corpus, suffix=PARTIAL)
            return f"the vectors so far are in {' and '.join(written)}" if written else None
        return None

    # ---- training ----

    def train(self, executor: Executor) -> TrainedTables:
        """Read the corpus and train all rounds."""
        shards = self.job.cluster.shards or max(1, executor.workers)
        parts = cut(self.job.corpus, shards, self.job.vocabulary)
        known = self.job.read_vocab
        known = Vocabulary.load(known) if isinstance(known, str) else known
        self.reporter.stage("reading", None, "bytes")
        counted, vocabulary = count(executor, parts, self.job.vocabulary, known)
        options = resolved_for(self.job.options, len(counted.vocabulary), shards)
        rounds = rounds_of(self.job.rounds.rounds, options.epochs, counted.tokens, shards)
        if warning := warning_of(shards, rounds):
            self.reporter.message(warning)
        self.plan = Plan(options, shards, rounds)
        words = len(counted.vocabulary)
        shapes = dict.fromkeys(TABLES, (words, options.dim))
        work = WordsWork(
            plan=self.plan, totals=self.plan.totals(counted.vocabulary.counts), parts=parts,
            vocabulary=self.job.vocabulary, cache_dir=self.job.cache_dir, rule=self.job.rounds.mix,
            words=words, shards=shards, blocks=blocks_of(shapes, executor.workers),
        )  # fmt: skip
        data = shards_of(executor, work, vocabulary)
        self.fingerprint = self._read(executor, counted, data)
        self._prepare(work)
        self.reporter.stage("training", counted.tokens * options.epochs, "words")
        try:
            self.tables = run_rounds(
                executor, work, rounds, first=self.round, data=data, end_round=self._end_round,
                start=self._start(executor, work, vocabulary),
            )  # fmt: skip
        except (DivergedError, ClusterError) as error:
            raise type(error)(f"{error.message}{self._last_state()}") from error
        self.figures |= {"shards": shards, "rounds": rounds, "mix": self.job.rounds.mix}
        self.figures |= executor.figures()
        return self._trained()

    def _read(self, executor: Executor, counted: CountedCorpus, data: list[Future]) -> Fingerprint:
        """Collect the figures of the encoded shards; return the fingerprint of the text."""
        given = self.job.read_vocab is not None
        figures = [executor.submit(figures_of, one, given, worker_hint=one) for one in data]
        executor.wait(figures)
        found = [executor.result(one) for one in figures]
        words = counted.vocabulary
        counts = np.sum([one["counts"] for one in found], axis=0) if given else words.counts
        ids = sum(one["ids"] for one in found)
        empty = np.zeros(0, dtype=np.uint32)
        self.corpus = EncodedCorpus(
            **{**vars(counted), "out_of_vocabulary": counted.tokens - ids},
            ids=empty, counts=counts, lines=sum(one["lines"] for one in found),
            held_out=empty, held_out_tokens=0,
        )  # fmt: skip
        run.report_corpus(self.job, self.corpus, self.reporter)
        hashes = " ".join(one["hash"] for one in found)
        return run.fingerprint_of(hashes, words, counted.tokens, self.job.corpus)

    def _prepare(self, work: WordsWork) -> None:
        """Check memory and disk, save the vocabulary, and read the checkpoint to resume from."""
        options, job = self.plan.options, self.job
        plan = resource_estimate(job, self.corpus, options)
        resources = _with_workers(plan, job, options, work.shards)
        run.begin(job, resources, self.corpus.vocabulary, self.reporter)
        self.named = {
            **dataclasses.asdict(job.vocabulary), **dataclasses.asdict(options),
            "shards": work.shards, "rounds": self.plan.rounds, "mix": work.rule,
        }  # fmt: skip
        if self.found is not None:
            self.found.check_options(self.named, ("threads",) if options.deterministic else ())
            self.found.check_data(self.fingerprint)
            self.round = self.found.record["position"]["epoch"]
            self._take_notes(self.found)
            self.reporter.message(f"resuming {self.found.folder}, in round {self.round + 1}")

    def _take_notes(self, found: Checkpoint) -> None:
        try:
            notes = found.record["notes"]
            self.seconds = float(notes["seconds"])
            self.done = {name: notes["done"][name] for name in self.done}
            counts = [int(self.done[name]) for name in DONE]
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{found.folder}: its notes are corrupt; remove it") from error
        if not 0 <= self.round <= self.plan.rounds or min(counts) < 0:
            raise FormatError(f"{found.folder}: is of round {self.round}; remove it")
        if "blocks" in notes:
            raise FormatError(
                f"{found.folder}: has files of blocks; resume with the version that wrote it, "
                f"{found.record.get('version')}"
            )

    def _start(
        self, executor: Executor, work: WordsWork, vocabulary: Future
    ) -> list[Future] | None:
        """Let workers read the tables of the checkpoint, or of --init."""
        options, init = self.plan.options, self.job.init
        if self.found is not None:
            for name in TABLES:
                self.found.table(f"{name}.npy", (work.words, options.dim))  # or raise
            folder = str(self.found.folder.absolute())
            return [
                executor.submit(saved_rows, folder, block, label="--resume", worker_hint=b)
                for b, block in enumerate(work.blocks)
            ]
        if init is None:
            return None
        return [
            executor.submit(
                rows_of, block, options, init, self.job.init_context, vocabulary, label="--init"
            )
            for block in work.blocks
        ]

    def _count(self, notes: list[dict[str, Any]]) -> None:
        """Add the figures of the shards in a round."""
        for name in DONE:
            self.done[name] += sum(note[name] for note in notes)
        some = [note for note in notes if note["loss"] is not None]
        trained = sum(note["trained"] for note in some)
        loss = sum(note["loss"] * note["trained"] for note in some)
        self.done["loss"] = loss / trained if trained else None
        self.done["kernels"] = notes[0].get("kernels", self.done["kernels"])

    def _save(self, tables: Tables) -> None:
        """Write a checkpoint; if that fails, training continues, as on one machine."""
        if self.folder is None:
            return
        record = record_of(
            KIND, self.named, self.fingerprint, Position(self.round, self.seconds), kernels="",
            training={"loss": 0.0, "losses": 0, "state": []},
            notes={"done": self.done, "seconds": self.seconds},
        )  # fmt: skip
        try:
            found = {name: self._fetched(tables, name) for name in TABLES}
            self.folder.save(record, found, {}, [])
        except ResourceError as error:
            self.reporter.message(f"warning: {error.message}; training continues")

    def _end_round(self, record: RoundRecord, tables: Tables) -> None:
        """Save and report a round."""
        self._count(record.notes)
        self.round, self.tables = record.round, tables
        self.seconds += record.seconds
        self._save(tables)
        progress = self.progress()
        total = self.corpus.tokens * self.plan.options.epochs
        share = self.round / self.plan.rounds
        self.reporter.advance(int(total * share), loss=progress.loss, lr=progress.lr)
        figures = {"seconds": round(record.seconds, 3), "loss": progress.loss, "lr": progress.lr}
        more = {"slowest": record.slowest, "median": record.median, "bytes": record.bytes}
        self.reporter.epoch({"round": record.round, **figures, **more})

    def _last_state(self) -> str:
        """Return the end of an error message: where the last checkpoint is."""
        if self.folder is None:
            return "; no checkpoint was written (see --checkpoint)"
        path = self.folder.path
        last = f"; the last checkpoint is in {path}, resume with --resume={path}"
        return last if self.folder.generations() else ""

    def progress(self) -> Progress:
        """Return the progress over all rounds."""
        rate = rate_at(self.plan.options, self.round / self.plan.rounds)
        loss = float("nan") if self.done["loss"] is None else self.done["loss"]
        counts = {name: self.done[name] for name in DONE}
        return Progress(**counts, loss=loss, lr=rate)

    def _fetched(self, tables: Tables, name: str) -> F32:
        """Fetch a table into a temporary file, which takes no memory that others need."""
        file = IdCache(self.job.cache_dir, name="the file of trained tables")
        length, dim = 0, self.plan.options.dim
        for _, rows in tables.pieces(name):
            file.write(length, rows.reshape(-1).view(np.uint32))
            length += rows.size
        return np.asarray(file.finished(length, "r+")).view(np.float32).reshape(-1, dim)

    def _trained(self) -> TrainedTables:
        assert self.tables is not None
        input, output = (self._fetched(self.tables, name) for name in TABLES)
        return TrainedTables(self.plan.options, input, output, self.done["kernels"])

    def finish(self, trained: TrainedTables, start: float) -> Vectors:
        """Write the vectors with their manifest, and return them."""
        job = self.job
        total, more = time.monotonic() - start, {"cluster": self.figures}
        manifest = run.manifest_for(
            job, self.corpus, trained, self.progress(), self.seconds, total, more
        )
        run.save_results(job, trained, self.corpus, manifest=manifest)
        return run.as_vectors(job, trained, self.corpus.vocabulary, manifest)
