"""Find the rows with the highest scores for many queries, exactly; ties are in row order.

The last digits of scores that BLAS computes depend on the block size, so that equal rows may get
different scores. BLAS scores therefore only select candidates, the rows whose upper bound is at
least the k-th best score. Candidates are scored again by operations that do not depend on blocks,
and these scores are returned.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import F32, F64, I8, I32, I64
from .parallel import blocks_of_rows, one_blas_thread, ordered_map

QUERIES, ROWS = 128, 4096  # numbers of queries and rows in a tile of the score matrix (2 MB)
PAIRS = 1 << 21  # maximum number of vector values per block of pairs that are rescored (16 MB)
_LOWEST = np.finfo(np.float32).min
Found = tuple[I64, F32]  # row indices and scores of the results, best first
Bounds = Callable[[slice, slice], F32]
Scores = Callable[[I64, I64], F64]


def top_columns(scores: NDArray[np.floating[Any]], count: int) -> I32:
    """Return the columns with the highest scores in each row, best first.

    If scores are equal, the lower column comes first.

    Parameters
    ----------
    scores : ndarray, shape (n, columns)
    count : int
        At most `columns`.

    Returns
    -------
    ndarray of int32, shape (n, count)
    """
    if count == 1:
        return scores.argmax(axis=1)[:, None].astype(np.int32)
    best = np.sort(np.argpartition(-scores, count - 1, axis=1)[:, :count], axis=1)
    found = np.take_along_axis(scores, best, axis=1)
    tied = np.flatnonzero((scores >= found.min(axis=1, keepdims=True)).sum(axis=1) > count)
    best = np.take_along_axis(best, np.argsort(-found, axis=1, kind="stable"), axis=1)
    if len(tied):
        best[tied] = np.argsort(-scores[tied], axis=1, kind="stable")[:, :count]
    return best.astype(np.int32)


def best_rows(
    shape: tuple[int, int, int],
    bounds: Bounds,
    scores: Scores,
    left_out: Sequence[Sequence[int]],
    k: int,
) -> Iterator[Found]:
    """Yield the k best rows for each query; equal scores are in row order.

    Parameters
    ----------
    shape : (int, int, int)
        Number of queries, rows and dimensions.
    bounds : callable
        Takes slices of queries and rows; returns upper bounds of their scores as a new array.
    scores : callable
        Takes pairs of queries and rows; returns their scores, which are compared as float32.
    left_out : sequence of sequences of int
        Rows to leave out, for each query.
    k : int
    """

    def rescored(query: I64, row: I64) -> F32:
        step = max(1, PAIRS // shape[2])
        parts = [scores(query[some], row[some]) for some in blocks_of_rows(len(row), step)]
        return np.concatenate([np.empty(0), *parts]).astype(np.float32)

    def search(block: slice) -> list[Found]:
        count = block.stop - block.start
        queries = np.arange(count)
        query, row, score = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
        least = np.full(count, _LOWEST)  # each query's k-th best score so far
        for tile in blocks_of_rows(shape[1], ROWS):
            upper = bounds(block, tile)
            for number, left in enumerate(left_out[block]):
                inside = [one - tile.start for one in left if tile.start <= one < tile.stop]
                upper[number, inside] = -np.inf
            # The k-th best score of any k rows is a lower bound for queries with fewer than k
            # results.
            if k < upper.shape[1] and (least == _LOWEST).any():
                first = np.argpartition(-upper, k - 1, axis=1)[:, :k]
                exact = rescored(np.repeat(queries, k) + block.start, first.ravel() + tile.start)
                left = np.take_along_axis(upper, first, axis=1) == -np.inf
                least = np.maximum(least, np.where(left, _LOWEST, exact.reshape(-1, k)).min(axis=1))
            new, column = np.nonzero(upper >= least[:, None])
            score = np.append(score, rescored(new + block.start, column + tile.start))
            query, row = np.append(query, new), np.append(row, column + tile.start)
            order: I64 = np.lexsort([row, -score, query])  # type: ignore[arg-type]
            starts = np.searchsorted(query[order], queries)
            order = order[np.arange(len(order)) - starts[query[order]] < k]
            query, row, score = query[order], row[order], score[order]
            last = np.searchsorted(query, queries, side="right") - 1
            full = np.bincount(query, minlength=count) == k
            least[full] = score[last[full]]
        ends = np.searchsorted(query, queries[1:])
        return list(zip(np.split(row, ends), np.split(score, ends), strict=True))

    blocks = list(blocks_of_rows(shape[0], QUERIES))
    if len(blocks) < 2:
        yield from (found for block in blocks for found in search(block))
        return
    with one_blas_thread():
        for found in ordered_map(search, blocks):
            yield from found


def nearest_rows(
    matrix: F32 | I8,
    inverse: F32,
    queries: F32,
    left_out: Sequence[Sequence[int]],
    k: int,
) -> Iterator[Found]:
    """Yield the k rows with the highest cosine similarity to each query, and their cosines.

    Parameters
    ----------
    matrix : ndarray of float32 or int8, shape (n, d)
    inverse : ndarray of float32, shape (n,)
        1 / length of each row; 0 for a row of zeros.
    queries : ndarray of float32, shape (q, d)
        Rows of unit length, or zeros.
    left_out, k
        See `best_rows`.
    """
    error = error_of_cosines(matrix)

    def bounds(some: slice, tile: slice) -> F32:
        found: F32 = (queries[some] @ matrix[tile].T) * inverse[tile] + error
        return found

    def scores(query: I64, row: I64) -> F64:
        return np.where(inverse[row] > 0, cosines_of(queries[query], matrix[row]), 0.0)

    return best_rows((len(queries), *matrix.shape), bounds, scores, left_out, k)


def error_of_cosines(matrix: F32 | I8) -> np.float32:
    """Return an upper bound on BLAS rounding errors in cosines with the rows of a matrix."""
    return np.float32((matrix.shape[1] + 8) * np.finfo(np.float32).eps)


def cosines_of(some: F32 | I8, others: F32 | I8) -> F64:
    """Return the cosine of each row with the same row of `others`, or 0 if either row is zero.

    Equal rows always have equal cosines, regardless of the other rows.
    """
    a, b = np.asarray(some, dtype=np.float64), np.asarray(others, dtype=np.float64)
    squares = np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b)
    return np.asarray(np.einsum("ij,ij->i", a, b) / np.sqrt(np.where(squares > 0, squares, 1)))
