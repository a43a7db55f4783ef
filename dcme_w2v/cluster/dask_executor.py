"""`DaskExecutor` runs tasks on Dask workers; the only module that imports Dask.

Every value is the result of a task and nothing is scattered: Dask recomputes the results of a lost
worker, but not scattered data.
"""

from __future__ import annotations

import asyncio
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
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dask
import distributed
import numpy as np
from dask.sizeof import sizeof
from distributed.scheduler import KilledWorker

from dcme_w2v import __version__
from dcme_w2v.errors import ClusterError, DcmeError
from dcme_w2v.files.folders import scratch_folder
from dcme_w2v.training.executor import Executor, Future, run_task
from dcme_w2v.training.progress import Reporter

WORKER_SECONDS = 60.0  # that the first worker of a cluster may take
CONNECT_SECONDS = 10.0
POLL_SECONDS, LOOK_SECONDS, ASK_SECONDS = 0.1, 0.5, 5.0
OVER = ("finished", "error", "cancelled")  # a future that is lost is computed again
LOOPBACK = "127.0.0.1"
SCRATCH = "dcme-w2v-cluster-"  # start of the name of the folder that workers write to
CONFIG = {
    "distributed.admin.large-graph-warning-threshold": "1TB",  # a solver's point is an argument
    # Keep copies: a value must not be on one worker alone, which may be slow.
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS:.0f}s",
    # What workers of local:N record of themselves many times a second is shown to nobody.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "2s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
}

# Freed memory of a worker is kept for the tables of the next round: every round needs several, and
# getting the pages of new memory takes longer than copying them. For glibc; Dask sets the opposite.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": 1 << 40, "MALLOC_MMAP_MAX_": 0, "MALLOC_ARENA_MAX": 1}

Versions = tuple[str, str, str]


class _Task(Future):
    """A future of Dask, its label, and the worker that has its value."""

    def __init__(self, future: Any, label: str) -> None:
        self.future, self.label = future, label
        self.worker: str | None = None

    @property
    def is_over(self) -> bool:
        return self.future.status in OVER


class DaskExecutor(Executor):
    """Workers that a Dask scheduler has.

    Parameters
    ----------
    client : distributed.Client
    reporter, watch
        See `Executor`.
    """

    def __init__(
        self, client: Any, reporter: Reporter, watch: Callable[[], None] | None = None
    ) -> None:
        super().__init__(reporter, watch)
        self._client = client
        self._known: set[str] = set(client.nthreads())
        self._stuck = False
        self._lost, self._bytes_given, self._looked = 0, 0, 0.0
        self._sent: dict[str, int] = {}
        self._running: dict[str, list[str]] = {}  # keys by worker, when last looked at
        self._labels: dict[str, str] = {}
        self._tasks: weakref.WeakSet[_Task] = weakref.WeakSet()

    @property
    def workers(self) -> int:
        """How many workers the scheduler has now."""
        return len(self._client.nthreads())

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
        while True:
            pending = [one for one in tasks if not one.is_over]
            self._raise_errors(tasks)
            if not pending:
                break
            self._look(time.monotonic())
            self.watch()
            self._pause(pending)
        self._locate(tasks)

    def _pause(self, tasks: Sequence[_Task]) -> None:
        """Return when all tasks are over, or a tenth of a second has passed."""
        with contextlib.suppress(Exception):  # a lost scheduler: see `_look`
            self._client.sync(_settled, self._client, [one.future for one in tasks])

    def result(self, future: Future) -> Any:
        """Wait for a value and fetch it."""
        self.wait([future])
        assert isinstance(future, _Task)
        try:
            return future.future.result()
        except (distributed.CancelledError, OSError) as error:
            raise self._gone() from error

    def figures(self) -> dict[str, int]:
        """Return `workers`, `lost_workers` and `bytes_sent`."""
        self._look(time.monotonic(), at_once=True)
        with contextlib.suppress(OSError, distributed.TimeoutError):
            found = self._client.sync(
                self._client._run, _bytes_sent, on_error="ignore", callback_timeout=ASK_SECONDS
            )
            self._sent |= found
        sent = sum(self._sent.values()) + self._bytes_given
        return {"workers": len(self._known), "lost_workers": self._lost, "bytes_sent": sent}

    def cancel(self) -> None:
        """Cancel all tasks that are referenced and not over."""
        futures = [one.future for one in self._tasks if not one.is_over]
        with contextlib.suppress(Exception):
            self._client.cancel(futures, force=True)

    def check_versions(self) -> None:
        """Raise ClusterError if a worker has other versions than this process."""
        own, found = _versions(), self._client.run(_versions, on_error="return")
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

    def _look(self, now: float, at_once: bool = False) -> None:
        """Report the workers that are gone since the last look."""
        if now - self._looked < LOOK_SECONDS and not at_once:
            return
        self._looked = now
        if self._client.status != "running":
            raise self._gone()
        try:
            found = set(self._client.nthreads())
            running = self._client.processing()
        except (OSError, distributed.TimeoutError) as error:
            raise self._gone() from error
        for worker in sorted(self._known - found):
            self._lost += 1
            keys = self._running.get(worker, ())
            labels = [label for label in map(self._labels.get, keys) if label]
            again = " and ".join(labels[:3]) or "its work"
            self.reporter.message(f"worker {_name(worker)} is lost; {again} is repeated")
        stuck = bool(found) and not any(running.values())
        if stuck and self._stuck:
            self._client.run_on_scheduler(_releasing())
        self._known, self._stuck = found, stuck and not self._stuck
        self._running = {name: list(keys) for name, keys in running.items()}

    def _raise_errors(self, tasks: Sequence[_Task]) -> None:
        for one in tasks:
            if one.future.status == "error":
                raise self._error(one, one.future.exception())
            if one.future.status == "cancelled":
                raise self._gone()

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

    def _gone(self) -> ClusterError:
        return ClusterError("the scheduler of the cluster is lost: restart it")

    def _locate(self, tasks: Sequence[_Task]) -> None:
        """Note which worker has each value, so that others can be computed near it."""
        if tasks:
            has = self._client.who_has([one.future for one in tasks])
            for one in tasks:
                one.worker = min(has.get(one.future.key, ()), default=None)


async def _settled(client: Any, futures: list[Any]) -> None:
    """Wait for futures of a client, but not long.

    An error that left the event loop would have a frame in its traceback that has the error: the
    futures of that frame would stay, and their values with them, until garbage is collected.
    """
    with (
        client.as_current(),  # which is not the default; `wait` uses that
        contextlib.suppress(Exception, asyncio.CancelledError),  # errors: see the futures
    ):
        await distributed.wait(futures, timeout=POLL_SECONDS)  # type: ignore[no-untyped-call]


def _future(one: Any) -> Any:
    if isinstance(one, list):
        return [_future(inner) for inner in one]
    return one.future if isinstance(one, _Task) else one


def _run(function: Callable[..., Any], label: str, *args: Any) -> Any:
    return run_task(function, label, _name(distributed.get_worker().address), *args)


def _releasing() -> Callable[[Any], None]:
    """Return what makes a scheduler run tasks that wait for a worker that will not come back.

    Where all workers were gone at once, Dask forgets that tasks may run on others than where they
    were pinned. It is sent by its code, since no module has it.
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
    target: str | None,
    reporter: Reporter,
    watch: Callable[[], None] | None,
) -> Iterator[DaskExecutor]:
    """Connect to the scheduler `target`, or start `local` workers here; see `open_cluster`."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(dask.config.set(CONFIG))
        stack.callback(logging.getLogger("distributed").setLevel, _quiet_logs())
        security = None
        if local:
            security = _security(reporter)
            started = stack.enter_context(_started(local, security))
            target = started.scheduler_address
        client = stack.enter_context(_client(address, target, security))
        if local:
            client.register_plugin(_Own())
        cluster = DaskExecutor(client, reporter, watch)
        cluster.check_versions()
        try:
            yield cluster
        finally:
            cluster.cancel()


def _quiet_logs() -> int:
    """Silence Dask's log, whose matters are reported in our own words; return the old level."""
    log = logging.getLogger("distributed")
    before = log.level
    log.setLevel(logging.CRITICAL)
    return before


def _security(reporter: Reporter) -> Any:
    """Return certificates for one run, without which other users could give workers tasks."""
    try:
        return distributed.Security.temporary()  # type: ignore[no-untyped-call]
    except ImportError:
        reporter.message(
            "warning: other users of this machine can connect to the workers; install "
            "'dcme-w2v[cluster]' for encrypted connections"
        )
        return None


@contextlib.contextmanager
def _started(workers: int, security: Any) -> Iterator[Any]:
    """Start worker processes that listen on the loopback interface only and die with this one."""
    try:
        with (
            dask.config.set({"distributed.nanny.pre-spawn-environ": _environ()}),
            scratch_folder(SCRATCH) as folder,
            distributed.LocalCluster(  # type: ignore[no-untyped-call]
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                host=LOOPBACK,
                security=security,
                dashboard_address=f"{LOOPBACK}:0",
                scheduler_kwargs={"dashboard": False},
                memory_limit=0,  # no spilling to disk, and no killing below the system's limit
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            ) as started,
        ):
            yield started
    except (OSError, distributed.TimeoutError, RuntimeError) as error:
        raise ClusterError(
            f"--cluster=local:{workers}: cannot start workers ({error}); a script that trains has "
            'to do so under if __name__ == "__main__"'
        ) from error


def _environ() -> dict[str, Any]:
    """Return the environment of worker processes: what Dask gives them, and `KEEP_MEMORY`."""
    return {**dask.config.get("distributed.nanny.pre-spawn-environ"), **KEEP_MEMORY}


class _Own(distributed.WorkerPlugin):
    """Makes a worker of this program ignore signals to the whole process group, such as Ctrl-C.

    What it has imported is no garbage: collections in every round and at its end leave that out.
    """

    def setup(self, worker: Any) -> None:
        """Prepare a worker, which has the main thread of its process for itself."""
        gc.freeze()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def _client(address: str, target: str | None, security: Any) -> Iterator[Any]:
    certificates = security or dask.config.get("distributed.comm.tls.client.cert")
    if str(target).startswith("tls:") and not certificates:
        raise ClusterError(
            f"--cluster={address}: needs certificates; set distributed.comm.tls in the "
            "configuration of Dask"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of versions, which are checked below
            client = distributed.Client(  # type: ignore[no-untyped-call]
                target, timeout=CONNECT_SECONDS, set_as_default=False, security=security
            )
    except (OSError, distributed.TimeoutError, ValueError) as error:
        raise ClusterError(
            f"--cluster={address}: no scheduler answers at {target}; start dask scheduler there"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except distributed.TimeoutError as error:
            raise ClusterError(
                f"--cluster={address}: has no workers after {WORKER_SECONDS:g} s; start some with "
                f"dask worker {target}"
            ) from error
        yield client
