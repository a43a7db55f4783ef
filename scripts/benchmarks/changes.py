"""Split a text into two halves, and plant words in the second that take over contexts of others."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import numpy as np

import dcme_w2v as dw

Lines = list[list[str]]

PLANTED = 20


def planted_halves(
    path: str, tokens: int, alternate: bool, seed: int, least: int = 100, most: int = 5000
) -> tuple[Lines, Lines, set[str]]:
    """Return the lines of both halves, and the words that were planted in the second.

    Half of the occurrences of a word are replaced by a planted word with a similar count.
    """
    lines: Lines = []
    read = 0
    with Path(path).open(encoding="utf-8") as file:
        for line in file:
            lines.append(line.split())
            read += len(lines[-1])
            if read >= 2 * tokens:
                break
    middle = int(np.searchsorted(np.cumsum([len(line) for line in lines]), tokens))
    halves = (lines[::2], lines[1::2]) if alternate else (lines[:middle], lines[middle:])
    counts = [Counter(itertools.chain.from_iterable(half)) for half in halves]
    chance = random.Random(seed)
    known = [
        word for word in counts[0]
        if min(own[word] for own in counts) >= least and max(own[word] for own in counts) <= most
    ]  # fmt: skip
    free, names = sorted(known), dict[str, str]()
    while len(names) < PLANTED:
        word = free.pop(chance.randrange(len(free)))
        near = [one for one in free if 0.7 <= counts[1][one] / counts[1][word] <= 1.5]
        names[chance.choice(near)] = word
        free = [one for one in free if one not in names]
    second = [[names[w] if w in names and chance.random() < 0.5 else w for w in line]
              for line in halves[1]]  # fmt: skip
    return halves[0], second, {*names.values()}


def by_procrustes(a: dw.Vectors, b: dw.Vectors, least: int) -> list[str]:
    """Return the words with the lowest cosines after one rotation that aligns the halves."""
    counts = [dict(zip(v.words, v.counts, strict=True)) for v in (a, b) if v.counts is not None]
    words = [word for word in a.words if min(own.get(word, 0) for own in counts) >= least]
    one, other = (v[words] / np.linalg.norm(v[words], axis=1, keepdims=True) for v in (a, b))
    left, _, right = np.linalg.svd(one.T @ other)
    cosines = np.einsum("ij,ij->i", one @ left @ right, other)
    return [words[i] for i in np.argsort(cosines)[:PLANTED]]
