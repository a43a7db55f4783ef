"""The words nearest to a word, or to the answer of an analogy, by cosine.

Called by the `neighbors` and `analogy` commands; `inverse_lengths` also by words/evaluate.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import DcmeError, UsageError

if TYPE_CHECKING:
    from dcme_w2v.words.vectors import Vectors


class Neighbor(NamedTuple):
    """A word and its cosine to what was asked for."""

    word: str
    similarity: float


def neighbors(vectors: Vectors, word: str, k: int = 10) -> list[Neighbor]:
    """Return the words whose vectors have the highest cosine with a word's vector.

    Parameters
    ----------
    vectors : Vectors
        The words and their vectors.
    word : str
        The word, as it is spelled there; it is not among its own neighbours.
    k : int
        How many to return, best first; among equals the more frequent word comes first.

    Raises
    ------
    DcmeError
        The word is not there.
    """
    number = _number_of(vectors, word)
    return _nearest(vectors, _unit_rows(vectors, [number])[0], [number], k)


def analogy(vectors: Vectors, a: str, b: str, c: str, k: int = 10) -> list[Neighbor]:
    """Return the words x for which "a is to b as c is to x" holds best.

    The query is b - a + c, each of unit length (3CosAdd: Mikolov et al. 2013, Linguistic
    regularities in continuous space word representations); a, b and c are left out.

    Raises
    ------
    DcmeError
        One of the words is not there.
    """
    numbers = [_number_of(vectors, word) for word in (a, b, c)]
    unit = _unit_rows(vectors, numbers)
    return _nearest(vectors, unit[1] + unit[2] - unit[0], numbers, k)


def inverse_lengths(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 1 / length of every row of a matrix (n, d), shape (n,); 0 for a row of zeros."""
    lengths: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", matrix, matrix))
    inverse = np.zeros_like(lengths)
    np.divide(1, lengths, out=inverse, where=lengths > 0)
    return inverse


def _number_of(vectors: Vectors, word: str) -> int:
    number = vectors.words.index(word)
    if number is None:
        raise DcmeError(f"{word}: not among the {len(vectors.words):,} words; check its spelling")
    return number


def _unit_rows(vectors: Vectors, numbers: Sequence[int]) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = vectors.matrix[list(numbers)]
    rows = rows * inverse_lengths(rows)[:, None]
    return rows


def _nearest(
    vectors: Vectors, query: NDArray[np.float32], left_out: Sequence[int], k: int
) -> list[Neighbor]:
    if k < 1:
        raise UsageError(f"-k {k}: must be at least 1")
    length = float(np.linalg.norm(query))
    scores = (vectors.matrix @ query) * inverse_lengths(vectors.matrix) / (length or 1.0)
    scores[list(left_out)] = -np.inf
    k = min(k, len(scores) - len(set(left_out)))
    best = np.argpartition(-scores, k - 1)[:k] if k else np.empty(0, dtype=np.int64)
    best = best[np.lexsort((best, -scores[best]))]
    return [Neighbor(vectors.words[int(i)], float(scores[i])) for i in best]
