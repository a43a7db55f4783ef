"""Cosine similarities: nearest neighbours, analogies, the odd word out.

`dcme_w2v.words.vectors.Vectors` and, through it, the `neighbors` and `analogy` commands call this.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dcme_w2v.errors import FormatError, UsageError

if TYPE_CHECKING:
    from dcme_w2v.words.vectors import Vectors

Term = str | ArrayLike  # a word, or a vector of shape (d,)


class Neighbor(NamedTuple):
    """A word and its cosine similarity to the query."""

    word: str
    similarity: float


def most_similar(
    vectors: Vectors,
    positive: Term | Iterable[Term] | None,
    negative: Term | Iterable[Term] | None,
    topn: int,
    restrict: int | None,
) -> list[Neighbor]:
    """Return the words nearest to a sum of unit vectors; see `Vectors.most_similar`."""
    for name, number in (("topn", topn), ("restrict", restrict)):
        if number is not None and number < 1:
            raise UsageError(f"--{name}={number}: must be at least 1")
    added, subtracted = terms_of(positive), terms_of(negative)
    if not added and not subtracted:
        raise UsageError("no query; give words or vectors as positive or negative")
    query = np.zeros(vectors.dim, dtype=np.float32)
    for sign, terms in ((1, added), (-1, subtracted)):
        for term in terms:
            query += sign * unit_vector(vectors, term)
    found = (vectors.words.find(term) for term in (*added, *subtracted))
    given = {row for row in found if row is not None}  # others are vectors or of n-grams
    return _nearest(vectors, query, given, topn, restrict)


def similarity(vectors: Vectors, one: Term, other: Term) -> float:
    """Return the cosine of two words or vectors."""
    return float(unit_vector(vectors, one) @ unit_vector(vectors, other))


def doesnt_match(vectors: Vectors, words: Iterable[str]) -> str:
    """Return the word with the lowest cosine to the mean of all; the first of ties."""
    given = list(words)
    if not given or isinstance(words, str):
        raise UsageError("give a list of words")
    units = np.array([unit_vector(vectors, word) for word in given])
    return given[int(np.argmin(units @ units.mean(axis=0)))]


def terms_of(given: Term | Iterable[Term] | None) -> list[Term]:
    """Return one word or vector, several, or None as a list."""
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    terms: list[Any] = list(given)  # type: ignore[arg-type]
    return [terms] if terms and all(isinstance(x, numbers.Real) for x in terms) else terms


def unit_vector(vectors: Vectors, term: Term) -> NDArray[np.float32]:
    """Return a vector, or that of a word, scaled to unit length; zeros are unchanged."""
    row = vectors[term] if isinstance(term, str) else np.asarray(term, dtype=np.float32)
    if row.shape != (vectors.dim,):
        raise UsageError(f"a vector of shape {row.shape}: must be of shape ({vectors.dim},)")
    unit: NDArray[np.float32] = row * inverse_lengths(row[None])[0]
    return unit


def squared_lengths(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the squared length of every row of a matrix (n, d), shape (n,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares: NDArray[np.float32] = np.einsum("ij,ij->i", matrix, matrix)
    return squares


def inverse_lengths(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 1 / length of every row of a matrix (n, d), shape (n,); 0 for a row of zeros.

    Raises
    ------
    FormatError
        A squared length is not finite.
    """
    squares = squared_lengths(matrix)
    if not np.isfinite(squares).all():
        row = int(np.argmin(np.isfinite(squares))) + 1
        raise FormatError(
            f"vector {row} has a length that is not finite: cosines cannot be computed; run "
            "dcme-w2v check on the vectors"
        )
    lengths = np.sqrt(squares)
    inverse = np.zeros_like(lengths)
    np.divide(1, lengths, out=inverse, where=lengths > 0)
    return inverse


def _nearest(
    vectors: Vectors,
    query: NDArray[np.float32],
    left_out: Iterable[int],
    topn: int,
    restrict: int | None,
) -> list[Neighbor]:
    rows = vectors.vectors[:restrict]
    length = float(np.linalg.norm(query))
    inverse = vectors.inverse_lengths(restrict)
    scores = (rows @ query) * inverse / (length or 1.0)
    excluded: Sequence[int] = [number for number in left_out if number < len(scores)]
    scores[excluded] = -np.inf
    k = min(topn, len(scores) - len(excluded))
    best = np.argpartition(-scores, k - 1)[:k] if k else np.empty(0, dtype=np.int64)
    best = best[np.lexsort((best, -scores[best]))]
    return [Neighbor(vectors.words[int(i)], float(scores[i])) for i in best]
