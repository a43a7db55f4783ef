"""The contents of a word-vector file: words, their vectors and additional tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F32, I64, Immutable, read_only, sealed

from ..vocabulary import Words
from .subwords import Subwords

T = TypeVar("T", bound="WordTables")
PARTS = ("words", "vectors", "counts", "context", "neighbors", "manifest", "subwords")
NEIGHBORS = ("left", "right")  # names of the additional tables that --word-order trains
_WRITTEN_AT_ONCE = 1 << 21  # maximum block size in bytes for writing matrices


class WordTables(Immutable):
    """Words with vectors, counts and other tables; `dcme_w2v.Vectors` adds query methods.

    Parameters
    ----------
    words, vectors, counts, context, neighbors, manifest, subwords
        As in `dcme_w2v.Vectors`.

    Raises
    ------
    UsageError
        The parts do not fit together.
    """

    def __init__(
        self,
        words: Iterable[str],
        vectors: ArrayLike,
        counts: ArrayLike | None = None,
        *,
        context: WordTables | None = None,
        neighbors: tuple[ArrayLike, ArrayLike] | None = None,
        manifest: Mapping[str, Any] | None = None,
        subwords: Subwords | None = None,
    ) -> None:
        self.words = words if isinstance(words, Words) else _distinct(words)
        self.vectors: F32 = read_only(vectors, np.float32)
        self.counts = None if counts is None else _whole_counts(counts)
        # The context vectors as an object of the same class, or None.
        self.context: Any = context
        sides = [read_only(rows, np.float32) for rows in neighbors or ()]
        self.neighbors: tuple[F32, F32] | None = (sides[0], sides[1]) if sides else None
        self.manifest = None if manifest is None else sealed(dict(manifest))
        self.subwords = subwords and subwords.frozen()
        self._check()

    def _check(self) -> None:
        shape, n = self.vectors.shape, len(self.words)
        if len(shape) != 2 or shape[1] < 1:
            raise UsageError(
                f"vectors has the shape {shape}, but must have the shape (words, dimensions)"
            )
        counts = n if self.counts is None else len(self.counts)
        context = n if self.context is None else len(self.context.words)
        if not n == shape[0] == counts == context:
            raise UsageError(
                f"there are {n} words, {shape[0]} vectors, {counts} counts and {context} context "
                "vectors; pass the same number of each"
            )
        others = [] if self.context is None else [self.context.vectors]
        if self.subwords is not None and self.subwords.own is not None:
            others.append(self.subwords.own)
        for rows in (*others, *(self.neighbors or ())):
            if rows.shape != shape:
                raise UsageError(
                    f"additional vectors have the shape {rows.shape}, but must have the shape "
                    f"{shape}, like the word vectors"
                )
        if self.subwords is not None and self.subwords.rows.shape[1] != shape[1]:
            raise UsageError(
                f"the subword vectors must have {shape[1]} dimensions, like the word vectors"
            )
        if self.context is not None and not self.context.words.equals(self.words):
            raise UsageError(
                "the context vectors are for different words; pass vectors and context vectors of "
                "the same words"
            )
        if not np.diff(self.words.offsets).all():
            row = int(np.argmin(np.diff(self.words.offsets)))
            raise UsageError(f"word {row + 1} is empty; remove or replace this word")

    def arrays(self) -> dict[str, F32]:
        """Return all arrays by name; ``own`` contains word vectors without n-gram contributions."""
        named: dict[str, F32 | None] = {"vectors": self.vectors}
        if self.context is not None:
            named["context"] = self.context.vectors
        named |= dict(zip(NEIGHBORS, self.neighbors or (), strict=False))
        if self.subwords is not None:
            named |= {"own": self.subwords.own, "ngrams": self.subwords.rows}
        return {name: rows for name, rows in named.items() if rows is not None}

    def changed(self: T, **parts: Any) -> T:
        """Return a copy with the given parameters replaced."""
        return type(self)(**{name: getattr(self, name) for name in PARTS} | parts)

    def _slice(self: T, key: slice) -> T:
        sides, subwords = self.neighbors, self.subwords
        if subwords is not None and subwords.own is not None:
            subwords = replace(subwords, own=subwords.own[key])
        return self.changed(
            words=self.words[key],
            vectors=self.vectors[key],
            counts=None if self.counts is None else self.counts[key],
            context=None if self.context is None else self.context._slice(key),
            neighbors=None if sides is None else (sides[0][key], sides[1][key]),
            subwords=subwords,
        )

    def __getstate__(self) -> dict[str, Any]:
        # Pickle memory-mapped arrays as ordinary arrays, and leave out cached values.
        state = {name: getattr(self, name) for name in PARTS}
        return {**state, "vectors": np.asarray(self.vectors)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def blocks_of(matrix: F32) -> Iterator[tuple[int, F32]]:
    """Split a matrix into blocks of rows; yield each with the index of its first row."""
    step = max(1, _WRITTEN_AT_ONCE // (4 * max(1, matrix.shape[1])))
    for first in range(0, len(matrix), step):
        yield first, np.ascontiguousarray(matrix[first : first + step])


def _distinct(words: Iterable[str]) -> Words:
    seen: dict[str, int] = {}
    for number, word in enumerate(words):
        if seen.setdefault(word, number) != number:
            raise UsageError(
                f"the word {word!r} occurs twice, at positions {seen[word]} and {number}; pass "
                "each word once"
            )
    try:
        return Words.from_words(seen)
    except TypeError:
        raise UsageError("words must be strings; pass a list of str") from None


def _whole_counts(counts: ArrayLike) -> I64:
    """Convert word counts to a read-only array of integers; raise `UsageError` if invalid."""
    given = np.asanyarray(counts)
    with np.errstate(invalid="ignore"):
        is_number = given.dtype.kind in "iuf"
        whole = given.astype(np.int64, copy=False) if is_number else np.zeros(0, dtype=np.int64)
    if given.ndim != 1 or not np.array_equal(given, whole) or whole.min(initial=0) < 0:
        raise UsageError("counts must be a list of nonnegative integers")
    return read_only(whole)
