"""Exact search for the rows with the highest cosines, for many queries at once.

Rows are read in tiles that stay in the cache, so that a memory-mapped table is neither copied nor
scaled. A tile adds only scores above the k-th best so far of each query, which are few after the
first tile.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from .arrays import F32, I8, I64
from .parallel import blocks_of_rows, one_blas_thread, ordered_map

QUERIES, ROWS = 128, 4096  # in a tile of scores, 2 MB
ROWS_OF_ONE = 32768  # in a tile of one query, which takes longer to begin than to score
Found = tuple[I64, F32]  # rows and cosines, the best first


def nearest_rows(
    matrix: F32 | I8,
    inverse: F32,
    queries: F32,
    left_out: Sequence[Sequence[int]],
    k: int,
) -> Iterator[Found]:
    """Yield the best rows of each query in order; ties are in order of rows.

    Parameters
    ----------
    matrix : ndarray of float32 or int8, shape (n, d)
    inverse : ndarray of float32, shape (n,)
        1 / length of each row; 0 for zeros.
    queries : ndarray of float32, shape (q, d)
        Of unit length.
    left_out : sequence of sequences of int
        Rows that are not returned, for each query.
    k : int
        At most this many rows are returned.
    """
    blocks = list(blocks_of_rows(len(queries), QUERIES))
    if len(blocks) < 2:
        for block in blocks:
            yield from _search(matrix, inverse, queries[block], left_out[block], k)
        return
    with one_blas_thread():
        for found in ordered_map(
            lambda block: _search(matrix, inverse, queries[block], left_out[block], k), blocks
        ):
            yield from found


def _search(
    matrix: F32 | I8,
    inverse: F32,
    queries: F32,
    left_out: Sequence[Sequence[int]],
    k: int,
) -> list[Found]:
    """Return the best rows of a block of queries."""
    pairs = [(query, row) for query, rows in enumerate(left_out) for row in rows]
    excluded = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    best, rows = _Best(len(queries), k), ROWS if len(queries) > 1 else ROWS_OF_ONE
    for tile in blocks_of_rows(len(matrix), rows):
        scores = queries @ matrix[tile].T
        scores *= inverse[tile]
        here = excluded[(excluded[:, 1] >= tile.start) & (excluded[:, 1] < tile.stop)]
        scores[here[:, 0], here[:, 1] - tile.start] = -np.inf
        best.add(scores, tile.start)
    return best.found()


class _Best:
    """The k best rows so far of each query, as flat arrays in order of query, then of rank."""

    def __init__(self, count: int, k: int) -> None:
        self._count, self._k = count, k
        self._query = np.empty(0, dtype=np.int64)
        self._row = np.empty(0, dtype=np.int64)
        self._score = np.empty(0, dtype=np.float32)
        self._least = np.full(count, -np.inf, dtype=np.float32)  # score of the k-th best

    def add(self, scores: F32, first: int) -> None:
        """Add the scores (count, rows) of a tile whose first row is `first`."""
        least = self._least[:, None]
        if self._k < scores.shape[1] and np.isneginf(self._least).any():
            at = scores.shape[1] - self._k
            floor = np.partition(scores, at, axis=1)[:, at : at + 1]
            chosen = (scores > least) & (scores >= floor)  # ties may be more than k
        else:
            chosen = scores > least
        query, row = np.divmod(np.flatnonzero(chosen), scores.shape[1])
        if not len(query):
            return
        self._merge(query, row + first, scores[query, row])

    def _merge(self, query: I64, row: I64, score: F32) -> None:
        query = np.concatenate([self._query, query])
        row = np.concatenate([self._row, row])
        score = np.concatenate([self._score, score])
        order = np.lexsort((row, -score, query))
        query, row, score = query[order], row[order], score[order]
        starts = np.searchsorted(query, np.arange(self._count))
        rank = np.arange(len(query)) - starts[query]
        kept = rank < self._k
        self._query, self._row, self._score = query[kept], row[kept], score[kept]
        last = rank == self._k - 1
        self._least[query[last]] = score[last]

    def found(self) -> list[Found]:
        """Return rows and scores of each query."""
        ends = np.searchsorted(self._query, np.arange(self._count + 1))
        return [
            (self._row[start:end], self._score[start:end])
            for start, end in itertools.pairwise(ends.tolist())
        ]
