"""Rows of a matrix taken a block at a time by several threads.

BLAS is kept to one thread meanwhile: its own threads wait for each other at every product, which on
a machine that has other work takes longer than the products. Results come in the order of the
blocks and these do not depend on the number of threads, nor do sums over them. Called by
`dcme_w2v.documents.kmeans`, `dcme_w2v.documents.mixture` and `dcme_w2v.documents.fitting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from dcme_w2v.words.ordered import ordered_map

R = TypeVar("R")
_BLOCK_ROWS = 4096


def blocks_of_rows(count: int) -> Iterator[slice]:
    """Yield slices that cover `count` rows."""
    for first in range(0, count, _BLOCK_ROWS):
        yield slice(first, min(first + _BLOCK_ROWS, count))


def over_blocks(function: Callable[[slice], R], count: int, threads: int | None) -> Iterator[R]:
    """Yield function(rows) for blocks that cover `count` rows, in order."""
    return ordered_map(function, blocks_of_rows(count), threads)


def one_blas_thread() -> Any:
    """Return a context in which a matrix product uses one thread."""
    return threadpool_limits(1, "blas")
