"""Hold out lines of a corpus, which are scored but not trained on, from the ID cache.

A line is chosen from the seed and the line's number among the lines with tokens, so that the choice
does not depend on the number of threads or on block boundaries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import text as core
from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.formats.columns import Source
from dcme_w2v.formats.corpus import expand
from dcme_w2v.numeric.arrays import I64, U32, Bools, without_warnings

from .cache import LAST, NUMBER, IdCache


@dataclass(frozen=True)
class HeldOutLines:
    """Chooses each line independently with a given probability.

    Attributes
    ----------
    fraction : float
        Between 0 and 1.
    seed : int
    """

    fraction: float
    seed: int

    def chosen(self, first: int, count: int) -> Bools:
        """Return whether each of the lines first .. first + count - 1 is held out."""
        numbers = np.arange(first, first + count, dtype=np.uint64)
        mixed = splitmix64(numbers + splitmix64(np.array([self.seed], dtype=np.uint64)))
        return mixed < np.uint64(self.fraction * 2.0**64)


class Choice:
    """Finds the provisional IDs of held-out lines in a stream of blocks."""

    def __init__(self, lines: HeldOutLines) -> None:
        self._lines = lines
        self._line = 0  # number of the current line

    def mask(self, ids: U32) -> Bools:
        """Return which of the next IDs are held out."""
        last = (ids & LAST) != 0
        line = np.cumsum(last) - last
        ended = int(last.sum())
        mask: Bools = self._lines.chosen(self._line, ended + 1)[line]
        self._line += ended
        return mask


def held_out_counts(cache: IdCache, words: int, lines: HeldOutLines) -> I64:
    """Count the words in held-out lines."""
    counts, choice = np.zeros(words, dtype=np.int64), Choice(lines)
    for ids in cache.pieces():
        counts += np.bincount(ids[choice.mask(ids)] & NUMBER, minlength=words)
    return counts


def compact(cache: IdCache, ranks: U32, lines: int, holdout: HeldOutLines | None) -> dict[str, Any]:
    """Renumber and compact the cache in place; return fields of `EncodedCorpus`."""
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


def check_file(holdout: str, corpus: Sequence[Source]) -> None:
    """Raise, before any work, if the --holdout file is missing or part of the corpus."""
    with without_warnings():  # the corpus reader reports the warnings
        held, trained = (list(map(str, expand(one))) if one else [] for one in ([holdout], corpus))
    for path in trained:
        same = [Path(path).samefile(one) for one in held if _are_files(path, one)]
        if path in held or any(same):
            raise UsageError(
                f"--holdout={path}: is also part of the corpus; remove it from the corpus"
            )


def _are_files(*paths: str) -> bool:
    return all(path != STANDARD and Path(path).exists() for path in paths)


def splitmix64(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the splitmix64 hash (Steele, Lea and Flood 2014) of numbers."""
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        numbers = numbers ^ (numbers >> np.uint64(31))
    return numbers
