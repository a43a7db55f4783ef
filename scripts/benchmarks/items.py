"""Generate sequences of items in known groups: sessions of visits, or random walks on a graph.

Item i belongs to group i modulo the number of groups, and its token is i.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]

GROUPS = {"sessions": 1000, "popular items": 1000, "walks": 100}


def _session(chance: np.random.Generator, group: int, size: int, popular: FloatArray) -> list[int]:
    """Return the visits in one session of a group.

    Three tenths of the visits are to any item, and one tenth to an item in the next group. Of the
    others, a quarter are to the item after the last one, and the rest to any item in the group.
    """
    place, visits = None, list[int]()
    for kind in chance.random(4 + chance.poisson(8)):
        if kind < 0.3:
            visits.append(int(chance.integers(1000 * size)))
            continue
        drawn = int(np.searchsorted(popular, chance.random()))
        if kind < 0.4:
            visits.append((group + 1) % 1000 + 1000 * drawn)
            continue
        place = (place + 1) % size if place is not None and kind < 0.55 else drawn
        visits.append(group + 1000 * place)
    return visits


def sessions(exponent: float, count: int = 110_000, size: int = 20) -> Iterator[list[int]]:
    """Yield sessions; the popularity of items in a group is a power of their rank."""
    chance = np.random.default_rng(0)
    groups = chance.choice(1000, count, p=chance.dirichlet(np.full(1000, 5.0)))
    popular = np.cumsum((1.0 + np.arange(size)) ** -exponent)
    for group in groups:
        yield _session(chance, group, size, popular / popular[-1])


def walks(
    nodes: int = 10_000, edges: int = 60_000, starts: int = 10, length: int = 40
) -> Iterator[list[int]]:
    """Yield random walks; four of five edges stay within a group, and degrees differ."""
    chance = np.random.default_rng(0)
    pull = chance.pareto(2.0, nodes) + 0.5
    near: list[list[int]] = [[] for _ in range(nodes)]
    for a in chance.choice(nodes, edges, p=pull / pull.sum()):
        b = a % 100 + 100 * chance.integers(100)
        b = b if chance.random() < 0.8 else chance.integers(nodes)
        near[a].append(b)
        near[b].append(a)
    for at in np.repeat([node for node in range(nodes) if near[node]], starts):
        walk = [at]
        for step in chance.random(length - 1):
            own = near[walk[-1]]
            walk.append(own[int(step * len(own))])
        yield walk


def write_items(kind: str, path: str, test: str) -> None:
    """Write the sequences of a kind with numbers as tokens; one in fifty goes to `test`."""
    made = walks() if kind == "walks" else sessions(1.0 if kind == "popular items" else 0.0)
    with (
        Path(path).open("w", encoding="utf-8") as train,
        Path(test).open("w", encoding="utf-8") as held,
    ):
        for number, items in enumerate(made):
            (train if number % 50 else held).write(" ".join(map(str, items)) + "\n")


def of_same_group(words: Sequence[str], vectors: FloatArray, kind: str) -> float:
    """Return the share of the ten nearest items in the item's own group, for 2,000 items."""
    numbers = np.array(words, dtype=int)
    rows = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = np.random.default_rng(0).choice(len(rows), 2000, replace=False)
    scores = rows[asked] @ rows.T
    scores[np.arange(len(asked)), asked] = -np.inf
    nearest = np.argpartition(-scores, 10, axis=1)[:, :10]
    groups = numbers % GROUPS[kind]
    return (groups[nearest] == groups[asked][:, None]).mean()


def found_next(
    words: Sequence[str], vectors: FloatArray, context: FloatArray, test: Sequence[str]
) -> float:
    """Return the share of sequences whose last item is among 50 predicted from the five before."""
    places = {word: i for i, word in enumerate(words)}
    found = []
    for line in test:
        items = [places[word] for word in line.split() if word in places]
        if len(items) > 2:
            scores = context @ (vectors - context)[items[-6:-1]].mean(axis=0)
            scores[items[-6:-1]] = -np.inf
            found.append((scores > scores[items[-1]]).sum() < 50)
    return np.mean(found)
