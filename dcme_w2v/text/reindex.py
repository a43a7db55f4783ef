"""Conversion of the provisional ids in the cache to word ids, without held-out lines."""

from typing import Any

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.numeric.arrays import I64, U32

from .cache import NUMBER, IdCache
from .split import Choice, HeldOutLines


def held_out_counts(cache: IdCache, words: int, lines: HeldOutLines) -> I64:
    """Return the counts of words in held-out lines."""
    counts, choice = np.zeros(words, dtype=np.int64), Choice(lines)
    for ids in cache.pieces():
        counts += np.bincount(ids[choice.mask(ids)] & NUMBER, minlength=words)
    return counts


def compact(cache: IdCache, ranks: U32, lines: int, holdout: HeldOutLines | None) -> dict[str, Any]:
    """Renumber and compact the cache of some lines in place; return fields of `EncodedCorpus`."""
    trained, apart = core.Renumbering(), core.Renumbering()
    choice = Choice(holdout) if holdout else None
    held_out = [np.empty(0, dtype=np.uint32)]
    length = 0
    for ids in cache.pieces():
        to = np.empty(1 + len(ids), dtype=np.uint32)
        if choice:
            mask = choice.mask(ids)
            written = apart.add(ids[mask], ranks, False, to)
            held_out.append(to[:written].copy())
            ids = ids[~mask]
        written = trained.add(ids, ranks, False, to)
        cache.write(length, to[:written])
        length += written
    return {
        "ids": cache.finished(length),
        "lines": lines - apart.lines,
        "held_out": np.concatenate(held_out),
    }
