"""Conversion of the provisional ids in the cache to word ids, line by line.

Held-out lines are removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.numeric.arrays import I64, U32

from .cache import NUMBER, IdCache
from .split import Choice, HeldOutLines


@dataclass(frozen=True)
class Segment:
    """An encoded block: its new words in its worker's table, and its position in the cache."""

    table: int
    first: int
    last: int
    tokens: int
    newlines: int
    newline_first: bool
    bad: int


def held_out_counts(
    cache: IdCache,
    segments: Sequence[Segment],
    maps: Mapping[int, U32],
    words: int,
    lines: HeldOutLines,
) -> tuple[I64, int]:
    """Return the counts of words in held-out lines, and the number of tokens of these lines."""
    counts, tokens = np.zeros(words, dtype=np.int64), 0
    choice, position = Choice(lines), 0
    for part in segments:
        ids = cache.read(position, part.tokens)
        held = ids[choice.mask(ids, part.newline_first)] & NUMBER
        found = maps[part.table][held]
        counts += np.bincount(found[found != core.NONE], minlength=words)
        tokens += len(held)
        position += part.tokens
    return counts, tokens


def compact(
    cache: IdCache,
    segments: Sequence[Segment],
    maps: dict[int, U32],
    ranks: U32,
    holdout: HeldOutLines | None,
) -> dict[str, Any]:
    """Renumber and compact the cache and the maps in place; return fields of `EncodedCorpus`."""
    ranks = np.append(ranks, np.uint32(core.NONE))
    for ids in maps.values():
        ids[:] = ranks[np.minimum(ids, len(ranks) - 1)]
    to = np.empty(1 + max(part.tokens for part in segments), dtype=np.uint32)
    trained, apart = core.Renumbering(), core.Renumbering()
    choice = Choice(holdout) if holdout else None
    held_out = [to[:0].copy()]
    position = length = 0
    for part in segments:
        ids = cache.read(position, part.tokens)
        if choice:
            mask = choice.mask(ids, part.newline_first)
            written = apart.add(ids[mask], maps[part.table], part.newline_first, to)
            held_out.append(to[:written].copy())
            ids = ids[~mask]
        written = trained.add(ids, maps[part.table], part.newline_first, to)
        cache.write(length, to[:written])
        position += part.tokens
        length += written
    return {
        "ids": cache.finished(length),
        "lines": trained.lines,
        "held_out": np.concatenate(held_out),
    }
