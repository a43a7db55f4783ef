"""Run the tasks of distributed training in this process, using an `Executor`.

A task is a pure function: it returns the same value wherever and however often it runs. An
executor with worker processes is `dcme_w2v.cluster.dask_executor.DaskExecutor`.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from dcme_w2v.errors import ClusterError, DcmeError, OutOfMemoryError

from .progress import Reporter

# The result of a task that may still be running; its memory is freed with the last reference.
Future = Any


class Executor:
    """Run tasks in this process, each as soon as it is submitted.

    Parameters
    ----------
    reporter : Reporter
        Receives messages about lost workers.

    Attributes
    ----------
    watch : callable
        Called several times a second in the caller's thread while it waits. An exception
        from it ends the wait.
    workers : int
        Current number of workers; 0 if tasks run in this process.
    """

    workers = 0

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.watch: Callable[[], object] = lambda: None

    def submit(
        self, function: Callable[..., Any], *args: Any, label: str = "", number: int | None = None
    ) -> Future:
        """Start a task, and immediately return the future for its value.

        Parameters
        ----------
        function : callable
            A pure module-level function, or a method of an object that can be pickled.
        *args
            Values, futures and lists of futures; the task receives the values of the futures. Other
            values pass through the scheduler.
        label : str
            Names the task in messages: "shard 3 of round 2 (part-3.txt)".
        number : int, optional
            The number of the preferred worker, modulo the number of workers.
        """
        self.watch()
        return run_task(function, label, None, *args)

    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until the values of all futures are available.

        Raises
        ------
        DcmeError
            The error of the first task that failed; an error that is not a DcmeError becomes a
            ClusterError.
        ClusterError
            The scheduler or all workers are lost.
        """

    def result(self, future: Future) -> Any:
        """Wait for the value of a future and return it."""
        return future

    def all(self, futures: Sequence[Future]) -> list[Any]:
        """Wait for several futures and return their values; raise an error if any task failed."""
        self.wait(futures)
        return [self.result(one) for one in futures]

    def report(self, documents: int = 0) -> dict[str, int]:
        """Report the number of bytes sent over the network; return the result of `figures`."""
        found = self.figures()
        if sent := found["bytes_sent"]:
            part = f", including {documents / 1e6:,.2f} MB of documents" if documents else ""
            self.reporter.message(f"network: {sent / 1e6:,.2f} MB sent{part}", **found)
        return found

    def figures(self) -> dict[str, int]:
        """Return the numbers of workers, lost workers and bytes sent since the start."""
        return {"workers": 0, "lost_workers": 0, "bytes_sent": 0}


def on_cluster(name: str) -> Any:
    """Import a function or class of `dcme_w2v.cluster`, given a name like ``"shards:count_on"``.

    The cluster modules import the modules for one machine. The modules for one machine therefore
    import the cluster modules only when a cluster is used.
    """
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"dcme_w2v.cluster.{module}"), attribute)


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
        raise OutOfMemoryError(f"a task ran out of memory{where}; raise --shards") from error
    except Exception as error:
        message = " ".join(str(error).split()) or "no message"
        raise ClusterError(f"{type(error).__name__}: {message}{where}") from error


def given_value(value: Any) -> Any:
    """Return the argument unchanged; submitting this task sends the argument to a worker."""
    return value


def piece_of(value: tuple[list[Any], Any], number: int) -> Any:
    """Return one piece from a task's result, which consists of a list of pieces and statistics."""
    return value[0][number]


def figures_of(value: tuple[Any, Any]) -> Any:
    """Return the statistics from a task's result, which consists of a value and statistics."""
    return value[1]
