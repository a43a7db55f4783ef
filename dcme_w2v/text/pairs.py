"""Counting and joining pairs of adjacent word ids in a stream of pieces of text.

Bit 31 of an id marks the end of a line. Results do not depend on where pieces end. Called by
`dcme_w2v.text.phrases`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.text.cache import NUMBER

_MERGED_AT_ONCE = 1 << 22  # minimum number of pairs

Ids = NDArray[np.uint32]


class PairJoins:
    """The pairs that one pass joins, and the ids of the joined words.

    Parameters
    ----------
    left, right, joined : ndarray of uint32, shape (n,)
        Word ids.
    words : int
        All ids in the text are below this.
    """

    def __init__(self, left: Ids, right: Ids, joined: Ids, words: int) -> None:
        keys = _keys(left, right)
        order = np.argsort(keys)
        self._keys, self._joined = keys[order], joined[order]
        self._left, self._right = np.zeros((2, words), dtype=bool)
        self._left[left] = self._right[right] = True

    def applied(self, pieces: Iterable[Ids]) -> Iterator[Ids]:
        """Yield the text with pairs joined from left to right."""
        held = np.zeros(0, dtype=np.uint32)
        for piece in pieces:
            ids = np.concatenate([held, piece])
            size = len(ids)
            left, places = self._found(ids)
            ids[left] = self._joined[places] | (ids[left + 1] & ~NUMBER)
            ids = np.delete(ids, left + 1)
            # The last token may be the left side of a pair that continues in the next piece.
            taken = len(left) and left[-1] + 2 == size
            free = len(ids) and not taken and not ids[-1] & ~NUMBER
            end = len(ids) - 1 if free else len(ids)
            held = ids[end:]
            yield ids[:end]
        yield held

    def _found(self, ids: Ids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of the pairs to be joined, and the indices of the pairs."""
        numbers = ids & NUMBER
        left = np.flatnonzero(self._left[numbers[:-1]] & self._right[numbers[1:]])
        left = left[numbers[left] == ids[left]]  # not at the end of a line
        keys = _keys(numbers[left], numbers[left + 1])
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = self._keys[places] == keys
        left, places = left[known], places[known]
        # Of overlapping pairs, the first, the third and so on are joined.
        first = np.ones(len(left), dtype=bool)
        first[1:] = np.diff(left) > 1
        order = np.arange(len(left))
        chosen = (order - np.maximum.accumulate(np.where(first, order, 0))) % 2 == 0
        return left[chosen], places[chosen]


def inner_pairs(pieces: Iterable[Ids]) -> Iterator[tuple[Ids, Ids]]:
    """Yield the left and right sides of all pairs within lines."""
    held = np.zeros(0, dtype=np.uint32)
    for piece in pieces:
        ids = np.concatenate([held, piece])
        left = np.flatnonzero((ids[:-1] & ~NUMBER) == 0)
        yield ids[left], ids[left + 1] & NUMBER
        held = ids[-1:]


def count_pairs(
    pairs: Iterable[tuple[Ids, Ids]], wanted: NDArray[np.bool_]
) -> tuple[Ids, Ids, NDArray[np.int64]]:
    """Count the pairs whose sides are both accepted; return left sides, right sides, counts."""
    keys, counts = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)
    pending: list[NDArray[np.uint64]] = []
    waiting = 0
    for left, right in pairs:
        both = wanted[left] & wanted[right]
        pending.append(_keys(left[both], right[both]))
        waiting += len(pending[-1])
        if waiting > max(_MERGED_AT_ONCE, len(keys)):
            keys, counts = _merged(keys, counts, pending)
            pending, waiting = [], 0
    keys, counts = _merged(keys, counts, pending)
    return (keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32), counts


def _merged(
    keys: NDArray[np.uint64], counts: NDArray[np.int64], more: list[NDArray[np.uint64]]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Add one to the count of each further key; keys are sorted."""
    fresh, times = _tally([keys[:0], *more])
    merged, _ = _tally([keys, fresh])
    total = np.zeros(len(merged), dtype=np.int64)
    total[np.searchsorted(merged, keys)] = counts
    total[np.searchsorted(merged, fresh)] += times
    return merged, total


def _tally(parts: list[NDArray[np.uint64]]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the distinct keys, sorted, with their counts; faster than numpy.unique."""
    keys = np.sort(np.concatenate(parts))
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])[: len(keys)])
    return keys[starts], np.diff(np.append(starts, len(keys)))


def _keys(left: Ids, right: Ids) -> NDArray[np.uint64]:
    keys: NDArray[np.uint64] = left.astype(np.uint64) << np.uint64(32) | right
    return keys
