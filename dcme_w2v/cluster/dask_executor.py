"""`DaskExecutor`, which runs tasks on Dask workers; no other module imports Dask.

Every value is the result of a task, and nothing is scattered: Dask recomputes the results of a lost
worker, but not scattered data. No wait is without a limit: the scheduler has to answer within
`ANSWER_SECONDS`, and the loss of all workers ends the run.
"""

import asyncio
import contextlib
import logging
import math
import multiprocessing
import signal
import sys
import tempfile
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cryptography  # noqa: F401 - the connections to local workers are encrypted
import dask
import distributed
import numpy as np
from distributed.scheduler import KilledWorker

from dcme_w2v import __version__
from dcme_w2v.errors import ClusterError, DcmeError, ResourceError
from dcme_w2v.files.atomic import temporary_folder
from dcme_w2v.platform import SIGNALS
from dcme_w2v.training.executor import Executor, Future, run_task
from dcme_w2v.training.progress import Reporter

START_SECONDS, CONNECT_SECONDS, CLOSE_SECONDS = 60.0, 10.0, 5.0
ANSWER_SECONDS, TRANSFER_SECONDS = (
    30.0,
    600.0,
)  # time limits in seconds, for scheduler responses and for data transfers
POLL_SECONDS, LOOK_SECONDS = 0.1, 0.5
SILENT_SECONDS, TTL_MINUTES = 20.0, 5
FAILED = (OSError, distributed.TimeoutError)
SCRATCH = "dcme-w2v-cluster-"  # prefix of temporary folder names
CONFIG = {
    # Do not warn about large task arguments, because solvers pass arrays of weights.
    "distributed.admin.large-graph-warning-threshold": "1TB",
    # Keep replicas of values, so that no value exists only on a slow worker.
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS:.0f}s",
    "distributed.scheduler.worker-ttl": f"{TTL_MINUTES} minutes",
    "distributed.worker.profile.enabled": False,
}

# Local workers keep freed memory, because the kernel is slow to clear new pages.
# With Dask's default settings, glibc would release memory that the next round needs again.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 40, "MALLOC_MMAP_MAX_": 0, "MALLOC_ARENA_MAX": 1}


class DaskExecutor(Executor):
    """An executor that runs tasks on the workers of a Dask scheduler.

    Parameters
    ----------
    client : distributed.Client
    reporter
        See `Executor`.
    """

    def __init__(self, client: Any, reporter: Reporter) -> None:
        super().__init__(reporter)
        self._client = client
        self._known: set[str] = set()
        self._lost, self._looked = 0, 0.0
        # Maps each worker to its last heartbeat and the heartbeat's arrival time.
        self._seen: dict[str, tuple[float, float]] = {}

    @property
    def workers(self) -> int:  # type: ignore[override]
        """Current number of workers."""
        self._looked = 0.0
        self._look()
        return len(self._known)

    def submit(
        self, function: Callable[..., Any], *args: Any, label: str = "", number: int | None = None
    ) -> Future:
        """Submit a task to the scheduler, which runs it on any worker or on a preferred worker."""
        pinned: dict[str, Any] = {}
        if number is not None and self._known:
            worker = sorted(self._known)[number % len(self._known)]
            pinned = {"workers": [worker], "allow_other_workers": True}
        key = (function.__name__.strip("_"), label, uuid.uuid4().hex)
        return self._client.submit(_run, function, label, *args, key=key, pure=False, **pinned)

    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until all futures have values."""
        while True:
            for one in futures:
                if one.status == "error":
                    raise _error(self._ask(one._exception))
                if one.status == "cancelled":
                    raise _no_answer()
            if all(one.status == "finished" for one in futures):
                return
            self._look()
            self.watch()
            with contextlib.suppress(Exception):  # a lost scheduler is reported by `_look`
                self._client.sync(_settled, self._client, futures)

    def result(self, future: Future) -> Any:
        """Wait for a future to finish, and return its value."""
        self.wait([future])
        return self._ask(self._client._gather, [future], seconds=TRANSFER_SECONDS)[0]

    def figures(self) -> dict[str, int]:
        """Return the numbers of workers, of lost workers, and of bytes sent."""
        sent = self._ask(self._client._run, _bytes_sent, on_error="ignore")
        total = sum(sent.values()) + self._client.scheduler_comm.byte_count
        return {"workers": self.workers, "lost_workers": self._lost, "bytes_sent": total}

    def check_versions(self) -> None:
        """Raise ClusterError if a worker's versions differ from this program's versions."""
        try:
            own, found = _versions(), self._ask(self._client._run, _versions, on_error="return")
        except ClusterError as error:
            raise ClusterError(
                f"a worker or the scheduler did not answer within {ANSWER_SECONDS:g} s and may "
                "have stopped or lost its connection; restart the cluster"
            ) from error
        for worker, theirs in sorted(found.items()):
            if theirs != own:
                raise ClusterError(
                    f"worker {_name(worker)} has {' '.join(str(theirs).split())}, but this "
                    f"program has {own}; install the same versions on all machines"
                )

    # ---- faults ----

    def _ask(self, function: Any, *args: Any, seconds: float | None = None, **more: Any) -> Any:
        """Call the scheduler and return its answer; raise ClusterError if it does not answer."""
        try:
            if self._client.status != "running":
                raise _no_answer()
            seconds = seconds or ANSWER_SECONDS
            return self._client.sync(function, *args, callback_timeout=seconds, **more)
        except (*FAILED, distributed.CancelledError) as error:
            raise _no_answer() from error

    def _look(self) -> None:
        """Report workers that are silent, and workers lost since the last call.

        Raises
        ------
        ClusterError
            The scheduler or all workers are lost. If all workers are lost at once, Dask forgets
            that a task with a preferred worker may also run on other workers.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS:
            return
        workers = self._ask(self._client.scheduler.identity)["workers"]
        found = set(workers)
        for worker, about in workers.items():
            sign, since = self._seen.get(worker, (0.0, 0.0))
            if sign != about["last_seen"]:
                self._seen[worker] = about["last_seen"], now
            elif now - since > SILENT_SECONDS:
                self._seen[worker] = sign, math.inf  # report a silent worker only once
                self.reporter.message(
                    f"worker {_name(worker)} has not responded for {SILENT_SECONDS:g} s and may "
                    "have stopped or lost its connection; if it does not respond for "
                    f"{TTL_MINUTES} minutes, its tasks will be run again on other workers"
                )
        for worker in sorted(self._known - found):
            self._lost += 1
            self.reporter.message(
                f"worker {_name(worker)} was lost; its tasks will be run again on other workers"
            )
        if self._known and not self._known & found:
            raise ClusterError("all workers were lost; if they ran out of memory, raise --shards")
        self._known, self._looked = found, now


async def _settled(client: Any, futures: Sequence[Any]) -> None:
    """Wait at most `POLL_SECONDS` for futures to finish.

    Exceptions are suppressed here, inside the event loop: outside, the frames of their tracebacks
    would refer to the futures, whose values would stay in memory until garbage is collected.
    """
    with (
        client.as_current(),  # `distributed.wait` requires a current client
        contextlib.suppress(Exception, asyncio.CancelledError),
    ):
        await distributed.wait(futures, timeout=POLL_SECONDS)  # type: ignore[no-untyped-call]


def _error(error: BaseException) -> BaseException:
    if isinstance(error, KilledWorker):
        key: Any = error.task
        return ClusterError(
            f"the task {key[1] or key[0]} stopped {error.allowed_failures + 1} workers, probably "
            "because they ran out of memory; raise --shards"
        )
    if isinstance(error, DcmeError):
        return error
    return ClusterError(f"{type(error).__name__}: {' '.join(str(error).split())}")


def _no_answer() -> ClusterError:
    return ClusterError("the cluster's scheduler does not answer; restart the cluster")


def _run(function: Callable[..., Any], label: str, *args: Any) -> Any:
    return run_task(function, label, _name(distributed.get_worker().address), *args)


def _bytes_sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def _versions() -> str:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return f"dcme-w2v {__version__}, numpy {np.__version__} and Python {python}"


def _name(worker: str) -> str:
    return worker.rpartition("://")[2]


# ---- opening ----


@contextlib.contextmanager
def opened(address: str, where: int | str, reporter: Reporter) -> Iterator[DaskExecutor]:
    """Connect to a scheduler, or start workers on this machine; see `open_cluster`."""
    loggers = [one for one in logging.root.manager.loggerDict if one.startswith("distributed")]
    security, advice, least = None, f"start workers with dask worker {where}", 1
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(CONFIG))
        # Disable loggers that would print tracebacks.
        for one in map(logging.getLogger, loggers):
            stack.callback(setattr, one, "disabled", one.disabled)
            one.disabled = True
        try:
            if isinstance(where, int):
                least, advice = (
                    where,
                    'in a script, start training under if __name__ == "__main__"',
                )
                security = distributed.Security.temporary()  # type: ignore[no-untyped-call]
                where = stack.enter_context(_started(least, security)).scheduler_address
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `check_versions` checks the versions instead
                client = _connected(where, security)
        except ResourceError:
            raise
        except (*FAILED, ValueError, RuntimeError, TypeError) as error:
            raise ClusterError(
                f"--cluster={address}: no scheduler answered ({' '.join(str(error).split())}); "
                "run the command dask scheduler on that machine (for tls://, with certificates); "
                f"{advice}"
            ) from error
        stack.callback(_close, client)
        try:
            client.wait_for_workers(least, timeout=START_SECONDS)
        except FAILED as error:
            raise ClusterError(
                f"--cluster={address}: too few workers connected within {START_SECONDS:g} s; "
                f"{advice}"
            ) from error
        executor = DaskExecutor(client, reporter)
        executor.check_versions()
        if security:
            client.register_plugin(_LocalWorker())
        yield executor


class _Client(distributed.Client):
    """A Dask client without a destructor, because closing an unconnected client fails at exit."""

    def __del__(self) -> None:
        """Do nothing, because closing an unconnected client would fail at exit."""


def _connected(scheduler: Any, security: Any) -> Any:
    """Connect a client to the scheduler, or raise an error after a time limit."""
    found: list[Any] = []

    def connect() -> None:
        try:
            client = _Client(  # type: ignore[no-untyped-call]
                scheduler, timeout=CONNECT_SECONDS, set_as_default=False, security=security
            )
            found.append(client)
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(CONNECT_SECONDS + CLOSE_SECONDS)
    [client] = found or [OSError("it is silent")]
    if isinstance(client, Exception):
        raise client
    return client


def _close(owner: Any) -> None:
    with contextlib.suppress(*FAILED):
        owner.close(timeout=CLOSE_SECONDS)


class _NoHttp:
    """A mixin that disables the unprotected HTTP server of Dask schedulers and workers."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing, so that Dask opens no HTTP port."""


class _Scheduler(_NoHttp, distributed.Scheduler):
    pass


class _Worker(_NoHttp, distributed.Worker):
    pass


@contextlib.contextmanager
def _started(workers: int, security: Any) -> Iterator[Any]:
    """Start a scheduler and workers on this machine; all of them stop when this program ends.

    The processes listen only on the loopback interface, with certificates that are made for this
    run, because other users could otherwise send tasks to them. The processes write only to a
    private folder.
    """
    common = {"host": "127.0.0.1", "protocol": "tls://", "security": security}
    options = {
        **common,
        "nthreads": 1,
        "memory_limit": 0,  # workers have no memory limit, so they neither spill to disk nor stop
        "silence_logs": logging.CRITICAL,
        "worker_class": _Worker,
        "death_timeout": START_SECONDS,
    }
    environment = {**dask.config.get("distributed.nanny.pre-spawn-environ"), **KEEP_MEMORY}
    name = "distributed.nanny.pre-spawn-environ"
    with (
        tempfile.TemporaryDirectory(prefix=SCRATCH, dir=temporary_folder()) as folder,
        dask.config.set({name: environment, "temporary-directory": folder}),
    ):
        cluster = distributed.SpecCluster(  # type: ignore[no-untyped-call]
            scheduler={"cls": _Scheduler, "options": {**common, "dashboard": False}},
            workers={k: {"cls": distributed.Nanny, "options": options} for k in range(workers)},
            security=security,
            silence_logs=logging.CRITICAL,
        )
        try:
            yield cluster
        finally:
            nannies = list(cluster.workers.values())
            for nanny in nannies:
                nanny.auto_restart = False
            own = _processes(nannies)
            _close(cluster)
            own |= _processes(nannies)  # a worker that was starting has a process now
            # Workers ignore SIGTERM, so Python would wait for a worker that is still running.
            for process in multiprocessing.active_children():
                if process.pid in own:
                    process.kill()


def _processes(nannies: Sequence[Any]) -> set[int]:
    """Return the IDs of the worker processes that nannies have started."""
    found = set()
    for nanny in nannies:
        with contextlib.suppress(ValueError):  # the process has just ended
            found.add(nanny.pid)
    return found


class _LocalWorker(distributed.WorkerPlugin):
    """A plugin that makes a worker ignore signals sent to its process group, such as by Ctrl-C."""

    def setup(self, worker: Any) -> None:
        """Make the worker process ignore signals to the process group."""
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
