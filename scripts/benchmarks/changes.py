"""Two halves of a text, in the second of which some words have taken contexts of others."""

import itertools
import random
from collections import Counter

import numpy as np

PLANTED = 20


def planted_halves(path, tokens, alternate, seed, least=100, most=5000):
    """Return the lines of both halves, and the words that are planted in the second.

    Half of the occurrences of a word become another word, of about the same count.
    """
    lines, read = [], 0
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
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
    free, names = sorted(known), {}
    while len(names) < PLANTED:
        word = free.pop(chance.randrange(len(free)))
        near = [one for one in free if 0.7 <= counts[1][one] / counts[1][word] <= 1.5]
        names[chance.choice(near)] = word
        free = [one for one in free if one not in names]
    second = [[names[w] if w in names and chance.random() < 0.5 else w for w in line]
              for line in halves[1]]  # fmt: skip
    return halves[0], second, {*names.values()}


def by_procrustes(a, b, least):
    """Return the words of the lowest cosines after one rotation of all."""
    words = [
        word for word in a.words
        if word in b.words and min(v.counts[v.words.find(word)] for v in (a, b)) >= least
    ]  # fmt: skip
    one, other = (v[words] / np.linalg.norm(v[words], axis=1, keepdims=True) for v in (a, b))
    left, _, right = np.linalg.svd(one.T @ other)
    cosines = np.einsum("ij,ij->i", one @ left @ right, other)
    return [words[i] for i in np.argsort(cosines)[:PLANTED]]
