"""Apply functions to items or blocks of rows in several threads; return results in order.

Results, and sums over them in block order, do not depend on the number of threads.
"""

import contextlib
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from dcme_w2v.declarations import threads_of

T = TypeVar("T")
R = TypeVar("R")
_BLOCK_ROWS = 4096


def ordered_map(
    function: Callable[[T], R], items: Iterable[T], threads: int | None = None
) -> Iterator[R]:
    """Yield function(item) for each item, in order; threads compute only a few items in advance.

    The function should release the GIL. The caller's thread takes the next item while the workers
    run, and at most one item per thread waits in memory.
    """
    threads = threads_of(threads)
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            running.append(pool.submit(function, item))
            if len(running) > threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def blocks_of_rows(count: int, step: int = _BLOCK_ROWS) -> Iterator[slice]:
    """Yield slices of at most `step` rows that cover `count` rows."""
    for first in range(0, count, step):
        yield slice(first, min(first + step, count))


def over_blocks(function: Callable[[slice], R], count: int, threads: int | None) -> Iterator[R]:
    """Yield function(rows) for blocks that cover `count` rows, in order."""
    return ordered_map(function, blocks_of_rows(count), threads)


class _Blas:
    """A process-wide limit of one BLAS thread, in force while at least one caller requires it."""

    _lock, _users = threading.Lock(), 0
    _control: Any = None
    _has_scipy, _limits = False, contextlib.ExitStack()

    @contextlib.contextmanager
    def one_thread(self) -> Iterator[None]:
        """Return a context manager or decorator that limits BLAS to one thread.

        BLAS threads synchronize at every product, which takes longer than the products themselves
        if several Python threads use BLAS or the machine is busy. Besides, the last bits of a
        product depend on the number of threads. The number is restored when no Python thread is in
        such a context.
        """
        with self._lock:
            # Searching for BLAS libraries takes milliseconds, so search only once, and again after
            # `scipy.linalg` has been imported, which loads another copy of BLAS.
            has_scipy = "scipy.linalg" in sys.modules
            has_more = self._control is None or self._has_scipy != has_scipy
            if has_more:
                if has_scipy:
                    import scipy.linalg  # noqa: F401  waits until another thread has imported it
                self._has_scipy = has_scipy
                from threadpoolctl import ThreadpoolController

                self._control = ThreadpoolController()
            if has_more or not self._users:
                self._take_control()
                limit = self._control.limit(limits=1, user_api="blas")
                self._limits.callback(limit.restore_original_limits)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._take_control()
                    self._limits.close()
                    # From now on, let any thread change the number of BLAS threads.
                    self._take_control()

    def _take_control(self) -> None:
        """Allow only the current thread to change the number of BLAS threads.

        Since version 3.8, threadpoolctl ignores every thread but the first that sets a number.
        """
        for library in self._control.lib_controllers:
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)


one_blas_thread = _Blas().one_thread
