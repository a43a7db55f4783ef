"""Where the tasks of a distributed training run: workers of a cluster, or this process.

A task is a pure function of its arguments: done again elsewhere, it returns the same. Nothing here
imports Dask; `dcme_w2v.cluster.dask_engine` does, when a cluster is opened. Called by
`dcme_w2v.cluster.rounds` and by every training that has shards.
"""

from __future__ import annotations

import contextlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcme_w2v.declarations import Checked, option
from dcme_w2v.errors import ClusterError, DcmeError, OutOfMemoryError, UsageError
from dcme_w2v.training.progress import Quiet, Reporter

STDIN = "-"
WORKERS_MAX = 1024  # of local:N


@dataclass(frozen=True)
class ClusterOptions(Checked):
    """Where a training runs, and into how many parts its data is divided."""

    cluster: str | None = option(
        None,
        "train on a cluster: local:N starts N worker processes here (local:0: none, the shards one "
        "after another), tcp://HOST:PORT or tls://HOST:PORT is a Dask scheduler, a path its file",
        metavar="ADDRESS",
    )
    shards: int | None = option(
        None,
        "parts of the data, trained separately; the result depends on it, not on the workers "
        "(--cluster; default: the workers at the start)",
        minimum=1,
        maximum=100_000,
    )


class Handle:
    """The value of a task, which may not be there yet; its memory is freed with the last handle."""


class Cluster(ABC):
    """Runs tasks; see `open_cluster`.

    Parameters
    ----------
    reporter : Reporter
        Reports lost workers.
    watch : callable, optional
        Called several times a second while waiting, in the thread of the caller. What it raises
        cancels all tasks.
    """

    def __init__(self, reporter: Reporter, watch: Callable[[], None] | None) -> None:
        self.reporter, self.watch = reporter, watch or (lambda: None)

    @property
    @abstractmethod
    def workers(self) -> int:
        """How many workers there are now; 0 for this process alone."""

    @abstractmethod
    def submit(
        self,
        function: Callable[..., Any],
        *args: Any,
        label: str = "",
        near: Handle | int | None = None,
        again: Sequence[Any] | None = None,
    ) -> Handle:
        """Run a function and return a handle of its value at once.

        Parameters
        ----------
        function : callable
            Of a module, or a method of an object that can be pickled; pure.
        *args
            Values, handles and lists of handles, which arrive as their values. Values pass through
            the scheduler: give paths and options, not data.
        label : str
            Names the task in messages: "shard 3 of round 2 (part-3.txt)".
        near : Handle or int, optional
            Run where this value is, or on the worker of this number modulo their number, if that
            worker is there.
        again : sequence, optional
            The arguments of a twin, see `wait`; by default those of the task.
        """

    @abstractmethod
    def wait(self, handles: Sequence[Handle], twins: bool = False) -> None:
        """Wait until all values are there.

        Parameters
        ----------
        handles : sequence of Handle
        twins : bool
            Where the others take three times as long as the values that are there, run their tasks
            a second time on idle workers; the first value is taken.

        Raises
        ------
        DcmeError
            Of the first task that failed. What is not a DcmeError becomes a ClusterError.
        """

    @abstractmethod
    def result(self, handle: Handle) -> Any:
        """Wait for a value and return it."""

    @abstractmethod
    def figures(self) -> dict[str, int]:
        """Return `workers`, `lost_workers` and `bytes_sent`, all since the start."""


class _Value(Handle):
    def __init__(self, value: Any) -> None:
        self.value = value


class Serial(Cluster):
    """The program alone, without an engine: each task runs when it is submitted."""

    @property
    def workers(self) -> int:
        """None."""
        return 0

    def submit(
        self,
        function: Callable[..., Any],
        *args: Any,
        label: str = "",
        near: Handle | int | None = None,
        again: Sequence[Any] | None = None,
    ) -> Handle:
        """Run a function."""
        self.watch()
        return _Value(run_task(function, label, None, *map(_value, args)))

    def wait(self, handles: Sequence[Handle], twins: bool = False) -> None:
        """All values are there."""
        self.watch()

    def result(self, handle: Handle) -> Any:
        """Return a value."""
        return _value(handle)

    def figures(self) -> dict[str, int]:
        """Return zeros."""
        return {"workers": 0, "lost_workers": 0, "bytes_sent": 0}


def _value(one: Any) -> Any:
    if isinstance(one, list):
        return [_value(inner) for inner in one]
    return one.value if isinstance(one, _Value) else one


def run_task(function: Callable[..., Any], label: str, worker: str | None, *args: Any) -> Any:
    """Run a task and return its value; errors name the task and the worker.

    Raises
    ------
    DcmeError
        Of the class that the task has raised; ClusterError for any other exception.
    """
    where = ", ".join(one for one in (label, worker and f"worker {worker}") if one)
    where = f" ({where})" if where else ""
    try:
        return function(*args)
    except DcmeError as error:
        raise type(error)(f"{error.message}{where}") from error
    except MemoryError as error:
        raise OutOfMemoryError(f"not enough memory{where}: give more --shards") from error
    except Exception as error:
        said = " ".join(str(error).split()) or "no message"
        raise ClusterError(f"{type(error).__name__}: {said}{where}") from error


@contextlib.contextmanager
def open_cluster(
    address: str,
    reporter: Reporter | None = None,
    watch: Callable[[], None] | None = None,
    dashboard: bool = False,
) -> Iterator[Cluster]:
    """Connect to a cluster, or start one here that ends with the block.

    Parameters
    ----------
    address : str
        ``local:N``, ``tcp://HOST:PORT``, ``tls://HOST:PORT`` or the path of a scheduler file.
        ``local:0`` is this process alone and needs no engine.
    reporter, watch
        See `Cluster`.
    dashboard : bool
        With ``local:N``, serve Dask's dashboard on a port of this machine.

    Raises
    ------
    UsageError
        The address is none, or the engine is not installed.
    ClusterError
        No scheduler or worker answers, or a worker has other versions.
    """
    reporter = reporter or Quiet()
    local = local_workers(address)
    if local == 0:
        yield Serial(reporter, watch)
        return
    target = None if local else _scheduler(address)
    try:
        from dcme_w2v.cluster.dask_engine import opened
    except ImportError as error:
        raise UsageError(
            f"--cluster={address}: needs the package distributed ({error}); install "
            "'dcme-w2v[cluster]'"
        ) from error
    with opened(address, local, target, reporter, watch, dashboard) as cluster:
        yield cluster


def check_address(options: ClusterOptions, inputs: Sequence[str]) -> None:
    """Raise UsageError for options that cannot be used together, or an address that is none."""
    if options.cluster is None:
        if options.shards is not None:
            raise UsageError(f"--shards={options.shards}: is of --cluster; give both")
        return
    if local_workers(options.cluster) is None:
        _scheduler(options.cluster)
    if STDIN in inputs:
        raise UsageError(
            f"--cluster={options.cluster}: workers cannot read standard input; give files"
        )


def local_workers(address: str) -> int | None:
    """Return N of ``local:N``, or None for other addresses."""
    if not address.startswith("local"):
        return None
    found = re.fullmatch(r"local:([0-9]{1,4})", address)
    if found is None and Path(address).exists():
        return None
    if found is None or int(found[1]) > WORKERS_MAX:
        raise UsageError(f"--cluster={address}: give local:N with N from 0 to {WORKERS_MAX}")
    return int(found[1])


def _scheduler(address: str) -> str:
    """Return the address of a scheduler, which may be in a file."""
    if re.fullmatch(r"(tcp|tls)://[^\s/]+", address):
        return address
    refused = f"--cluster={address}: is not local:N, tcp://HOST:PORT, tls://HOST:PORT or a file"
    if "://" in address or not Path(address).is_file():
        raise UsageError(f"{refused} of a scheduler")
    try:
        found = json.loads(Path(address).read_text())["address"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{refused} that a Dask scheduler has written") from error
    return str(found)
