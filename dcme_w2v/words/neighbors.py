"""Find nearest neighbors, analogies and the odd word out by cosine similarity."""

from __future__ import annotations

import math
import numbers
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.vectors.subwords import Subwords
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.hints import closest
from dcme_w2v.numeric.arrays import F32, check_mapped
from dcme_w2v.numeric.nearest import nearest_rows
from dcme_w2v.numeric.shown import Rows

_SPELLINGS = 20000  # number of most frequent words with which a misspelled word is compared
Term = str | ArrayLike  # a word, or a vector of shape (dim,)


class Searched(Protocol):
    """The attributes of `dcme_w2v.Vectors` that neighbor search uses."""

    words: Words
    vectors: F32
    subwords: Subwords | None

    def __getitem__(self, key: Any) -> Any:
        """Return the vector of a word, or the vectors of several words."""

    def _row(self, word: object) -> int | None: ...

    def _inverse(self, limit: int | None = None) -> F32: ...


class Neighbor(NamedTuple):
    """A word and its cosine similarity to the query."""

    word: str
    similarity: float


class Query(NamedTuple):
    """A query vector: the sum of its positive unit vectors minus its negative unit vectors."""

    positive: Term | Iterable[Term] | None
    negative: Term | Iterable[Term] | None = None


def most_similar(
    vectors: Searched,
    queries: Iterable[str | Query],
    topn: int,
    limit: int | None,
    among: Iterable[str] | None = None,
) -> Iterator[list[Neighbor]]:
    """Yield the words nearest to each query, in the same form as `Vectors.most_similar`."""
    if topn is None:
        raise UsageError("--topn=None must be at least 1; use topn=len(v) for all words")
    whole_number("topn", topn)
    if limit is not None:
        whole_number("limit", limit)
    check_mapped(vectors.vectors, None if vectors.subwords is None else vectors.subwords.rows)
    words: Sequence[str] = vectors.words
    if among is None:
        rows, inverse, place = vectors.vectors[:limit], vectors._inverse(limit), None
    else:
        if limit is not None:
            raise UsageError(
                f"--limit={limit} is not supported with --among; omit one of the two options"
            )
        by_row: dict[int | str, str] = {}
        for word in [among] if isinstance(among, str) else among:
            by_row.setdefault(_row_or_word(vectors, word), word)
        words, place = list(by_row.values()), {row: i for i, row in enumerate(by_row)}
        rows = vectors[words]
        inverse = inverse_lengths(rows)
    units, left_out = [], []
    for query in queries:
        unit, given = _parsed(vectors, query)
        units.append(unit)
        own = [one if place is None else place.get(one) for one in given]
        left_out.append([one for one in own if isinstance(one, int) and one < len(rows)])
    matrix = np.array(units, dtype=np.float32).reshape(-1, rows.shape[1])
    for found, scores in nearest_rows(rows, inverse, matrix, left_out, topn):
        pairs = zip(found.tolist(), scores.tolist(), strict=True)
        yield Rows(Neighbor(words[row], score) for row, score in pairs)


def _row_or_word(vectors: Searched, word: str) -> int | str:
    """Return the row of a word, or the word itself if it has only n-gram vectors."""
    row = vectors._row(word)
    return word if row is None else row


def _parsed(vectors: Searched, given: str | Query) -> tuple[F32, list[int | str]]:
    """Return the unit vector of a query, and the query's words in the form of `_row_or_word`."""
    query = (given,) if isinstance(given, str) else given
    if not (isinstance(query, tuple) and 1 <= len(query) <= 2):
        raise UsageError(
            f"{query!r} must be a word, or a tuple of positive words and negative words"
        )
    added, subtracted = map(terms_of, Query(*query))
    if not added and not subtracted:
        raise UsageError("the query is empty; pass at least one word or vector")
    total = np.zeros(vectors.vectors.shape[1], dtype=np.float32)
    for sign, terms in ((1, added), (-1, subtracted)):
        for term in terms:
            total += sign * unit_vector(vectors, term)
    length = float(np.linalg.norm(total))
    words = (term for term in (*added, *subtracted) if isinstance(term, str))
    unit: F32 = total / np.float32(length or 1.0)
    return unit, [_row_or_word(vectors, word) for word in words]


def doesnt_match(vectors: Searched, words: Iterable[str]) -> str:
    """Return the word least similar to the mean of all words; if several tie, return the first."""
    given = list(words)
    if not given or isinstance(words, str):
        raise UsageError("use a list of words")
    units = np.array([unit_vector(vectors, word) for word in given])
    return given[int(np.argmin(units @ units.mean(axis=0)))]


def nearest_spelling(words: Sequence[str], word: str) -> str | None:
    """Return the vocabulary word with the most similar spelling, or None if none is similar enough.

    A word that differs only in case, Unicode form or separator comes first, then a similarly
    spelled word among the most frequent words.
    """
    for other in (word.lower(), word.capitalize(), word.title(), word.upper(), word.strip(),
                  unicodedata.normalize("NFC", word), "_".join(word.split())):  # fmt: skip
        if other in words:
            return other
    return closest(word, words[:_SPELLINGS])


def terms_of(given: Term | Iterable[Term] | None) -> list[Term]:
    """Convert None, a word, a vector, or an iterable of words and vectors to a list."""
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    terms: list[Any] = list(given)
    return [terms] if terms and all(isinstance(x, numbers.Real) for x in terms) else terms


def unit_vector(vectors: Searched, term: Term) -> F32:
    """Scale a vector, or the vector of a word, to unit length; zero vectors stay zero."""
    try:
        row = vectors[term] if isinstance(term, str) else np.asarray(term, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(
            f"{term!r:.60} must be a word or a vector; write a weighted sum as 2 * v[a] + v[b]"
        ) from None
    if row.shape != (shape := vectors.vectors.shape[1:]):
        raise UsageError(
            f"the query vector has the shape {row.shape}, but must have the shape {shape}"
        )
    square = np.einsum("i,i->", row, row)
    usual = 0 < square < math.inf  # checking one scalar is much faster than checking all values
    return row * (1 / np.sqrt(square) if usual else inverse_lengths(row[None])[0])


def squared_lengths(matrix: F32) -> F32:
    """Return the squared norm of each row of a matrix (n, d), shape (n,)."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares: F32 = np.einsum("ij,ij->i", matrix, matrix)
    return squares


def inverse_lengths(matrix: F32) -> F32:
    """Return ``1 / norm`` of each row of a matrix (n, d), shape (n,), or 0 for zero rows.

    Raises
    ------
    FormatError
        A squared length is not finite.
    """
    squares = squared_lengths(matrix)
    if not np.isfinite(squares).all():
        row = int(np.argmin(np.isfinite(squares))) + 1
        raise FormatError(
            f"cosine similarities cannot be computed, because the norm of vector {row} is not "
            "finite; run dcme-w2v check on the vector file"
        )
    lengths = np.sqrt(squares)
    inverse = np.zeros_like(lengths)
    np.divide(1, lengths, out=inverse, where=lengths > 0)
    return inverse
