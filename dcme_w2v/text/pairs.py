"""Counting and joining pairs of adjacent words in a stream of pieces of encoded text.

Both hold at most a table of pairs, never the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import text as core

Ids = NDArray[np.uint32]
Roles = NDArray[np.uint8]


@dataclass(frozen=True)
class CountedPairs:
    """Pairs of words, by left and right side, and how often they occur.

    Attributes
    ----------
    left, right : ndarray of uint32, shape (n,)
        Word ids.
    runs : ndarray of uint32, shape (n,)
        The connectors between them; see `dcme_w2v.text.connectors.numbers_of`.
    counts : ndarray of int64, shape (n,)
    reads : int
        How many times the text was read.
    """

    left: Ids
    right: Ids
    runs: Ids
    counts: NDArray[np.int64]
    reads: int


def count_pairs(
    text: Callable[[], Iterable[Ids]], roles: Roles, least: int, size: int
) -> CountedPairs:
    """Count the pairs of a text within lines, in a table of bounded size.

    Where the table is full, the pairs with a one in one more bit of their hashes are dropped, to be
    counted when the text is read again. So the counts are exact for any size.

    Parameters
    ----------
    text : callable
        Returns the pieces of the text, each time from the start.
    roles : ndarray of uint8
        By word id: 255 for words of pairs, the number of a connector, otherwise 0.
    least : int
        Pairs that occur less often are not returned.
    size : int
        Bytes for the table.
    """
    parts, waiting = [], [(0, 0)]
    while waiting:
        bits, value = waiting.pop()
        table = core.Pairs(size, bits, value)
        for ids in text():
            table.count(ids, roles)
        waiting += [(bit + 1, value | 1 << bit) for bit in range(bits, table.bits)]
        parts.append(table.counted(least))
        del table  # before the next one is made
    left, right, runs, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((runs, right, left))
    return CountedPairs(left[order], right[order], runs[order], counts[order], len(parts))


class PairJoins:
    """The pairs that one pass joins.

    Parameters
    ----------
    left, right, runs, joined : ndarray of uint32, shape (n,)
        The pairs, and the ids of the joined words.
    roles : ndarray of uint8
        See `count_pairs`; by all ids of the text.
    """

    def __init__(self, left: Ids, right: Ids, runs: Ids, joined: Ids, roles: Roles) -> None:
        self._pairs = left, right, runs, joined
        self._roles = roles

    def applied(self, pieces: Iterable[Ids]) -> Iterator[Ids]:
        """Yield the text with pairs joined from left to right."""
        table = core.Pairs(0)
        table.add(*self._pairs)
        for piece in pieces:
            yield table.join(piece, self._roles)
        yield table.join(np.zeros(0, dtype=np.uint32), self._roles, last=True)
