"""Where the tasks of a distributed training run: `Executor`, and `Serial`, which is this process.

A task is a pure function: it returns the same value wherever, and however often, it runs. An
executor with worker processes is `dcme_w2v.cluster.dask_executor.DaskExecutor`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from dcme_w2v.errors import ClusterError, DcmeError, OutOfMemoryError

from .progress import Reporter


class Future:
    """The value of a task, now or later; the memory is freed with the last reference."""


class Executor(ABC):
    """Runs tasks.

    Parameters
    ----------
    reporter : Reporter
        Receives messages about lost workers.
    watch : callable, optional
        Called several times a second while waiting, in the thread of the caller. An exception
        from it ends the wait.
    """

    def __init__(self, reporter: Reporter, watch: Callable[[], None] | None) -> None:
        self.reporter, self.watch = reporter, watch or (lambda: None)

    @property
    @abstractmethod
    def workers(self) -> int:
        """Current number of workers; 0 if tasks run in this process."""

    @abstractmethod
    def submit(
        self,
        function: Callable[..., Any],
        *args: Any,
        label: str = "",
        worker_hint: Future | int | None = None,
    ) -> Future:
        """Start a task and return the future of its value at once.

        Parameters
        ----------
        function : callable
            A function of a module, or a method of an object that can be pickled; pure.
        *args
            Values, futures and lists of futures; the task receives the values of the futures. Other
            values pass through the scheduler: give paths and options rather than arrays.
        label : str
            Names the task in messages: "shard 3 of round 2 (part-3.txt)".
        worker_hint : Future or int, optional
            The preferred worker: the worker that has this value, or the worker of this number
            modulo the number of workers.
        """

    @abstractmethod
    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until all values are computed.

        Raises
        ------
        DcmeError
            The error of the first task that failed; an error that is not a DcmeError becomes a
            ClusterError.
        ClusterError
            The scheduler or all workers are lost.
        """

    @abstractmethod
    def result(self, future: Future) -> Any:
        """Wait for a value and return it."""

    @abstractmethod
    def figures(self) -> dict[str, int]:
        """Return `workers`, `lost_workers` and `bytes_sent` since the start."""


class _Value(Future):
    def __init__(self, value: Any) -> None:
        self.value = value


class Serial(Executor):
    """Runs each task in this process when it is submitted."""

    @property
    def workers(self) -> int:
        """Zero."""
        return 0

    def submit(
        self,
        function: Callable[..., Any],
        *args: Any,
        label: str = "",
        worker_hint: Future | int | None = None,
    ) -> Future:
        """Run a task."""
        self.watch()
        return _Value(run_task(function, label, None, *map(_value, args)))

    def wait(self, futures: Sequence[Future]) -> None:
        """Return at once: all values are computed."""
        self.watch()

    def result(self, future: Future) -> Any:
        """Return a value."""
        return _value(future)

    def figures(self) -> dict[str, int]:
        """Return zeros."""
        return {"workers": 0, "lost_workers": 0, "bytes_sent": 0}


def _value(one: Any) -> Any:
    if isinstance(one, list):
        return [_value(inner) for inner in one]
    return one.value if isinstance(one, _Value) else one


def run_task(function: Callable[..., Any], label: str, worker: str | None, *args: Any) -> Any:
    """Run a task and return its value; error messages name the task and the worker.

    Raises
    ------
    DcmeError
        The task raised an error of this class.
    ClusterError
        The task raised any other exception.
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
        message = " ".join(str(error).split()) or "no message"
        raise ClusterError(f"{type(error).__name__}: {message}{where}") from error


def given_value(value: Any) -> Any:
    """Return a value, which a task sends to a worker."""
    return value
