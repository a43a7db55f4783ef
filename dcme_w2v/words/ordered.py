"""Running a function over a stream of items by several threads, results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from dcme_w2v.options import default_threads

T = TypeVar("T")
R = TypeVar("R")


def ordered_map(
    function: Callable[[T], R], items: Iterable[T], threads: int | None = None
) -> Iterator[R]:
    """Yield function(item) for each item in order, a few items ahead of the consumer at most.

    For functions that release the GIL: the next item is taken by the caller's thread while others
    are worked on, and no more than one item a thread waits in memory.
    """
    threads = threads or default_threads()
    running: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            running.append(pool.submit(function, item))
            if len(running) > threads:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
