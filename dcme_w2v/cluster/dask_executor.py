"""`DaskExecutor` runs tasks on Dask workers; this is the only module that imports Dask.

Every value is the result of a task, and nothing is scattered: Dask recomputes the results of a lost
worker, but not scattered data. No wait is without a limit: the scheduler has to answer within
`ANSWER_SECONDS`, and the cluster may be without workers for `WORKER_SECONDS`.
"""

import asyncio
import concurrent.futures
import contextlib
import gc
import logging
import signal
import sys
import threading
import time
import uuid
import warnings
import weakref
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import dask
import distributed
import numpy as np
from dask.sizeof import sizeof
from distributed.scheduler import KilledWorker

from dcme_w2v import __version__
from dcme_w2v.errors import ClusterError, DcmeError
from dcme_w2v.files.folders import scratch_folder
from dcme_w2v.platform import SIGNALS
from dcme_w2v.training.executor import Executor, Future, run_task
from dcme_w2v.training.progress import Reporter

WORKER_SECONDS = 60.0  # maximum time without any worker
CONNECT_SECONDS, CLOSE_SECONDS = 10.0, 5.0
ANSWER_SECONDS = 30.0  # maximum time that the scheduler takes for an answer
POLL_SECONDS, LOOK_SECONDS, COUNT_SECONDS = 0.1, 0.5, 5.0
ENDED = (distributed.Status.closing, distributed.Status.closed, distributed.Status.failed)
OVER = ("finished", "error", "cancelled")  # a future that is "lost" is recomputed
CANCELLED = (concurrent.futures.CancelledError, distributed.CancelledError)
LOOPBACK = "127.0.0.1"
SCRATCH = "dcme-w2v-cluster-"  # start of the name of the private temporary folder
CONFIG = {
    "distributed.admin.large-graph-warning-threshold": "1TB",  # a solver's point is an argument
    # Keep replicas: the only copy of a value must not be on a slow worker.
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS:.0f}s",
    # Statistics that local workers would record several times a second, for the dashboard only.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
}

# Local workers keep freed memory (glibc) for the tables of the next round: the kernel takes longer
# to clear new pages than a worker takes to copy the tables. Dask's own defaults release memory.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 40, "MALLOC_MMAP_MAX_": 0, "MALLOC_ARENA_MAX": 1}

Versions = tuple[str, str, str]


class _Task(Future):
    """A future of Dask, the label of the task, and the worker that has the value."""

    def __init__(self, future: Any, label: str) -> None:
        self.future, self.label = future, label
        self.worker: str | None = None

    @property
    def is_over(self) -> bool:
        return self.future.status in OVER


class DaskExecutor(Executor):
    """Runs tasks on the workers of a Dask scheduler.

    Parameters
    ----------
    client : distributed.Client
    reporter, watch
        See `Executor`.
    local : distributed.SpecCluster, optional
        The cluster of this program, whose nannies restart lost workers.
    """

    def __init__(
        self,
        client: Any,
        reporter: Reporter,
        watch: Callable[[], None] | None = None,
        local: Any = None,
    ) -> None:
        super().__init__(reporter, watch)
        self._client, self._local = client, local
        self._known: set[str] = set()
        self._empty_since: float | None = None  # when the last worker was found to be lost
        self._stuck = False
        self._lost, self._bytes_given, self._looked = 0, 0, 0.0
        self._sent: dict[str, int] = {}
        self._running: dict[str, list[str]] = {}  # keys of tasks by worker, at the last look
        self._labels: dict[str, str] = {}
        self._tasks: weakref.WeakSet[_Task] = weakref.WeakSet()

    @property
    def workers(self) -> int:
        """Current number of workers."""
        self._look(at_once=True)
        return len(self._known)

    def submit(
        self,
        function: Callable[..., Any],
        *args: Any,
        label: str = "",
        worker_hint: Future | int | None = None,
    ) -> Future:
        """Submit a task."""
        worker = worker_hint.worker if isinstance(worker_hint, _Task) else None
        if isinstance(worker_hint, int) and self._known:
            worker = sorted(self._known)[worker_hint % len(self._known)]
        key = f"{function.__name__.strip('_')}-{uuid.uuid4().hex}"
        self._labels[key] = label
        self._bytes_given += sizeof([one for one in args if not isinstance(one, Future)])
        pinned = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        future = self._client.submit(
            _run, function, label, *map(_future, args), key=key, pure=False, **pinned
        )
        task = _Task(future, label)
        self._tasks.add(task)
        return task

    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until all values are computed."""
        tasks = [one for one in futures if isinstance(one, _Task)]
        while pending := [one for one in tasks if not one.is_over]:
            self._raise_errors(tasks)
            self._look()
            self.watch()
            with contextlib.suppress(Exception):  # a lost scheduler is found by `_look`
                self._client.sync(_settled, self._client, [one.future for one in pending])
        self._raise_errors(tasks)
        if tasks:  # note which worker has each value, so that others can be computed there
            keys = [one.future.key for one in tasks]
            has = self._ask(self._client.scheduler.who_has(keys=keys))
            for one in tasks:
                one.worker = min(has.get(one.future.key, ()), default=None)

    def result(self, future: Future) -> Any:
        """Wait for a value and fetch it."""
        self.wait([future])
        assert isinstance(future, _Task)
        try:
            (value,) = self._ask(self._client._gather([future.future]), transfer=True)
        except CANCELLED as error:
            raise _no_answer() from error
        return value

    def figures(self) -> dict[str, int]:
        """Return `workers`, `lost_workers` and `bytes_sent`."""
        self._look(at_once=True)
        with contextlib.suppress(ClusterError):  # a worker does not answer
            self._sent |= self._ask(
                self._client._run(_bytes_sent, on_error="ignore"), COUNT_SECONDS
            )
        sent = sum(self._sent.values()) + self._bytes_given
        return {"workers": len(self._known), "lost_workers": self._lost, "bytes_sent": sent}

    def cancel(self) -> None:
        """Cancel all tasks that are referenced and not over."""
        futures = [one.future for one in self._tasks if not one.is_over]
        with contextlib.suppress(Exception):
            self._client.cancel(futures, force=True)

    def open(self, count: int, error: str) -> None:
        """Wait for the first `count` workers, and check the versions of all workers.

        Raises
        ------
        ClusterError
            No worker has come for `WORKER_SECONDS`, and there are fewer than `count`; the message
            is `error`. Or a worker has other versions than this program.
        """
        since, found = time.monotonic(), 0
        while (now := len(self._scheduler_info("ncores"))) < count:
            if now > found:
                since, found = time.monotonic(), now
            if time.monotonic() - since > WORKER_SECONDS:
                raise ClusterError(error)
            self.watch()
            time.sleep(POLL_SECONDS)
        self._look(at_once=True)
        self.check_versions()

    def check_versions(self) -> None:
        """Raise ClusterError if a worker has other versions than this program."""
        own, found = _versions(), self._ask(self._client._run(_versions, on_error="return"))
        for worker, theirs in sorted(found.items()):
            if isinstance(theirs, BaseException):
                raise ClusterError(
                    f"worker {_name(worker)} cannot import dcme-w2v {own[0]} "
                    f"({' '.join(str(theirs).split())}): install it there"
                )
            if tuple(theirs) != own:
                raise ClusterError(
                    f"worker {_name(worker)} has {_shown(theirs)}, this program has {_shown(own)}: "
                    "install the same versions"
                )

    # ---- faults ----

    def _ask(
        self,
        answer: Coroutine[Any, Any, Any],
        seconds: float | None = None,
        transfer: bool = False,
    ) -> Any:
        """Return the answer of the scheduler, and call `watch` while waiting for it.

        A transfer of a value may take any time as long as the scheduler answers `_look`.

        Raises
        ------
        ClusterError
            There is no answer within `seconds`, by default `ANSWER_SECONDS`.
        """
        seconds = ANSWER_SECONDS if seconds is None else seconds
        asked = asyncio.run_coroutine_threadsafe(answer, self._client.loop.asyncio_loop)
        begun = time.monotonic()
        try:
            while not concurrent.futures.wait([asked], POLL_SECONDS).done:
                self.watch()
                if transfer:
                    self._look()
                elif time.monotonic() - begun > seconds:
                    raise _no_answer()
            return asked.result()
        except OSError as error:
            raise _no_answer() from error
        finally:
            asked.cancel()

    def _scheduler_info(self, operation: str) -> Any:
        if self._client.status != "running":
            raise _no_answer()
        return self._ask(getattr(self._client.scheduler, operation)(workers=None))

    def _look(self, at_once: bool = False) -> None:
        """Report the workers that are lost since the last look.

        Raises
        ------
        ClusterError
            The scheduler is lost, or there has been no worker for `WORKER_SECONDS`.
        """
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS and not at_once:
            return
        self._looked = now
        found = set(self._scheduler_info("ncores"))
        running = self._scheduler_info("processing")
        for worker in sorted(self._known - found):
            self._lost += 1
            keys = self._running.get(worker, ())
            labels = [label for label in map(self._labels.get, keys) if label]
            again = " and ".join(labels[:3]) or "its work"
            self.reporter.message(f"worker {_name(worker)} is lost; {again} is repeated")
        self._check_workers(found, now)
        stuck = bool(found) and not any(running.values())
        if stuck and self._stuck:
            self._ask(self._client._run_on_scheduler(_releasing()))
        self._known, self._stuck = found, stuck and not self._stuck
        self._running = {name: list(keys) for name, keys in running.items()}

    def _check_workers(self, found: set[str], now: float) -> None:
        """Raise ClusterError if all workers are lost, and none will come or has come back."""
        if found:
            self._empty_since = None
            return
        if self._empty_since is None:
            self._empty_since = now
            self.reporter.message(f"no worker is left; waiting up to {WORKER_SECONDS:g} s for one")
        # a nanny gives up when its worker is killed while it starts
        nannies = [] if self._local is None else self._local.workers.values()
        given_up = self._local is not None and all(one.status in ENDED for one in nannies)
        if given_up or now - self._empty_since > WORKER_SECONDS:
            raise ClusterError("all workers are lost, and none has come back")

    def _raise_errors(self, tasks: Sequence[_Task]) -> None:
        for one in tasks:
            if one.future.status == "error":
                raise self._error(one, self._ask(one.future._exception()))
            if one.future.status == "cancelled":
                raise _no_answer()

    def _error(self, task: _Task, error: BaseException) -> BaseException:
        if isinstance(error, KilledWorker):
            label = self._labels.get(str(error.task)) or task.label or "a task"
            return ClusterError(
                f"{label} ended {error.allowed_failures + 1} workers, most likely out of memory: "
                "give more --shards"
            )
        if isinstance(error, DcmeError):
            return error
        return ClusterError(f"{task.label}: {type(error).__name__}: {' '.join(str(error).split())}")


async def _settled(client: Any, futures: list[Any]) -> None:
    """Wait until futures of a client are over, for at most `POLL_SECONDS`.

    Exceptions are suppressed here, inside the event loop: outside, the frames of their tracebacks
    would refer to the futures, whose values would stay in memory until garbage is collected.
    """
    with (
        client.as_current(),  # `distributed.wait` uses the current client
        contextlib.suppress(Exception, asyncio.CancelledError),
    ):
        await distributed.wait(futures, timeout=POLL_SECONDS)  # type: ignore[no-untyped-call]


def _no_answer() -> ClusterError:
    return ClusterError("the scheduler of the cluster is lost or does not answer: restart it")


def _future(one: Any) -> Any:
    if isinstance(one, list):
        return [_future(inner) for inner in one]
    return one.future if isinstance(one, _Task) else one


def _run(function: Callable[..., Any], label: str, *args: Any) -> Any:
    return run_task(function, label, _name(distributed.get_worker().address), *args)


def _releasing() -> Callable[[Any], None]:
    """Return a function for the scheduler that releases tasks pinned to workers that are lost.

    After a loss of all workers at once, Dask forgets that a pinned task may run on other workers.
    The function is local, so that it is sent as code: the scheduler may not have this package.
    """

    def release(dask_scheduler: Any) -> None:
        found = [ts for ts in dask_scheduler.unrunnable if ts.loose_restrictions]
        for ts in found:
            ts.worker_restrictions = None
        keys = {ts.key: "processing" for ts in found}
        dask_scheduler.transitions(keys, stimulus_id="dcme-w2v")

    return release


def _bytes_sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def _versions() -> Versions:
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return __version__, np.__version__, python


def _shown(versions: Versions) -> str:
    return "dcme-w2v {}, numpy {} and Python {}".format(*versions)


def _name(worker: str) -> str:
    return worker.rpartition("://")[2]


# ---- opening ----


@contextlib.contextmanager
def opened(
    address: str,
    local: int | None,
    scheduler: str | None,
    reporter: Reporter,
    watch: Callable[[], None] | None,
) -> Iterator[DaskExecutor]:
    """Connect to a scheduler, or start `local` workers on this machine; see `open_cluster`."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(CONFIG))
        stack.enter_context(_without_logs())
        security, started = None, None
        if local:
            security = _security(reporter)
            started = stack.enter_context(_started(local, security))
            scheduler = started.scheduler_address
        client = stack.enter_context(_client(address, scheduler, security))
        executor = DaskExecutor(client, reporter, watch, started)
        try:
            executor.open(
                local or 1,
                f"--cluster={address}: has no workers after {WORKER_SECONDS:g} s; start some with "
                f"dask worker {scheduler}",
            )
            if local:
                client.register_plugin(_LocalWorker())
            yield executor
        finally:
            executor.cancel()


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Silence the loggers of Dask, which print tracebacks: errors are reported by this module."""
    names = [one for one in logging.root.manager.loggerDict if one.split(".")[0] == "distributed"]
    loggers = [one for one in map(logging.getLogger, names) if not one.disabled]
    for one in loggers:
        one.disabled = True
    try:
        yield
    finally:
        for one in loggers:
            one.disabled = False


def _security(reporter: Reporter) -> Any:
    """Return certificates for one run: without them, other users could send tasks to workers."""
    try:
        return distributed.Security.temporary()  # type: ignore[no-untyped-call]
    except ImportError:
        reporter.message(
            "warning: other users of this machine can connect to the workers; "
            "pip install cryptography for encrypted connections"
        )
        return None


class _NoHttp:
    """A scheduler or worker without Dask's HTTP server, which has no authentication."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        """Open no port."""


class _Scheduler(_NoHttp, distributed.Scheduler):
    pass


class _Worker(_NoHttp, distributed.Worker):
    pass


@contextlib.contextmanager
def _started(workers: int, security: Any) -> Iterator[Any]:
    """Start a scheduler, and worker processes that end with this program.

    They listen on the loopback interface only and write to a private folder only.
    """
    common = {
        "host": LOOPBACK,
        "protocol": "tcp://" if security is None else "tls://",
        "security": security,
    }
    options = {
        **common,
        "nthreads": 1,
        "memory_limit": 0,  # no spilling to disk, and no killing below the limit of the system
        "silence_logs": logging.CRITICAL,
        "worker_class": _Worker,
        "death_timeout": WORKER_SECONDS,  # of the start
    }
    environment = {**dask.config.get("distributed.nanny.pre-spawn-environ"), **KEEP_MEMORY}
    with scratch_folder(SCRATCH) as folder, contextlib.ExitStack() as stack:
        settings = {
            "distributed.nanny.pre-spawn-environ": environment,
            "temporary-directory": folder,
        }
        stack.enter_context(dask.config.set(settings))
        try:
            cluster = distributed.SpecCluster(  # type: ignore[no-untyped-call]
                scheduler={"cls": _Scheduler, "options": {**common, "dashboard": False}},
                workers={k: {"cls": distributed.Nanny, "options": options} for k in range(workers)},
                security=security,
                silence_logs=logging.CRITICAL,
            )
        except (OSError, distributed.TimeoutError, RuntimeError) as error:
            raise ClusterError(
                f"--cluster=local:{workers}: cannot start workers ({error}); a script that trains "
                'has to do so under if __name__ == "__main__"'
            ) from error
        try:
            yield cluster
        finally:
            with contextlib.suppress(distributed.TimeoutError):
                cluster.close(timeout=CLOSE_SECONDS)


class _LocalWorker(distributed.WorkerPlugin):
    """Makes a local worker ignore Ctrl-C and other signals to the process group.

    Imported modules are no garbage: garbage collection, which runs in every round, skips them.
    """

    def setup(self, worker: Any) -> None:
        """Prepare a worker, which has the main thread of its process for itself."""
        gc.freeze()
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)


def _connected(scheduler: str | None, security: Any) -> Any:
    """Return a client; Dask's own limit does not cover a scheduler that accepts and is silent."""
    found: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def connect() -> None:
        try:
            found.set_result(
                distributed.Client(  # type: ignore[no-untyped-call]
                    scheduler, timeout=CONNECT_SECONDS, set_as_default=False, security=security
                )
            )
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=connect, daemon=True).start()
    return found.result(CONNECT_SECONDS + CLOSE_SECONDS)


@contextlib.contextmanager
def _client(address: str, scheduler: str | None, security: Any) -> Iterator[Any]:
    certificates = security or dask.config.get("distributed.comm.tls.client.cert")
    if str(scheduler).startswith("tls:") and not certificates:
        raise ClusterError(
            f"--cluster={address}: needs certificates; set distributed.comm.tls in the "
            "configuration of Dask"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about versions, which `check_versions` checks
            client = _connected(scheduler, security)
    except (
        OSError,
        distributed.TimeoutError,
        concurrent.futures.TimeoutError,
        ValueError,
    ) as error:
        raise ClusterError(
            f"--cluster={address}: no scheduler answers at {scheduler}; start dask scheduler there"
        ) from error
    try:
        yield client
    finally:
        with contextlib.suppress(OSError, distributed.TimeoutError):
            client.close(timeout=CLOSE_SECONDS)
