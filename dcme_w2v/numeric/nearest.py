"""Exact search for the rows with the highest cosines, for many queries at once."""

from collections.abc import Iterator, Sequence

import numpy as np

from .arrays import F32, I8, I64
from .parallel import blocks_of_rows, one_blas_thread, ordered_map

QUERIES, ROWS = 128, 4096  # in a tile of scores, 2 MB
Found = tuple[I64, F32]  # rows and cosines, the best first


def nearest_rows(
    matrix: F32 | I8,
    inverse: F32,
    queries: F32,
    left_out: Sequence[Sequence[int]],
    k: int,
) -> Iterator[Found]:
    """Yield the best rows of each query in order; equal ones are in order of rows.

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

    def search(block: slice) -> list[Found]:
        some, excluded = queries[block], left_out[block]
        scores = np.empty((len(some), 0), dtype=np.float32)
        rows = np.empty((len(some), 0), dtype=np.int64)
        for tile in blocks_of_rows(len(matrix), ROWS):
            new = (some @ matrix[tile].T) * inverse[tile]
            for query, left in enumerate(excluded):
                inside = [row - tile.start for row in left if tile.start <= row < tile.stop]
                new[query, inside] = -np.inf
            best = np.argpartition(-new, min(k, new.shape[1]) - 1, axis=1)[:, :k]
            best.sort(axis=1)
            scores = np.concatenate([scores, np.take_along_axis(new, best, 1)], axis=1)
            rows = np.concatenate([rows, best + tile.start], axis=1)
            order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
            scores = np.take_along_axis(scores, order, 1)
            rows = np.take_along_axis(rows, order, 1)
        pairs = zip(rows, scores, strict=True)
        return [(row[score > -np.inf], score[score > -np.inf]) for row, score in pairs]

    blocks = list(blocks_of_rows(len(queries), QUERIES))
    if len(blocks) < 2:
        yield from (found for block in blocks for found in search(block))
        return
    with one_blas_thread():
        for found in ordered_map(search, blocks):
            yield from found
