"""Compute a pooled row for each word; sentence vectors are means of pooled rows.

``static`` whitens the vectors, scales them to unit length, moves each row toward the row of its
longest known prefix (king for kings), and multiplies it by SIF weights (Arora et al. 2017) and by
the square root of the idf. All steps are applied to the rows, so that any program that averages
rows benefits. Whitening weights a word by the square root of its frequency, a compromise between
plain whitening and Zipf whitening, which uses the frequency itself (Yokoi et al. 2024). ``usif``
(Ethayarajh 2018) uses the same rows with different weights, and removes common components of the
compared sentences; see `Components`. Both have rows for pieces of out-of-vocabulary words; see
`dcme_w2v.text.tokenizer`. docs/decisions/sentence-pooling.md shows the effect of each step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dcme_w2v.errors import UsageError, warn
from dcme_w2v.numeric.arrays import F32, F64, I64, unit_vectors
from dcme_w2v.numeric.parallel import blocks_of_rows, one_blas_thread
from dcme_w2v.words.vectors import counts_by_order

# The constant a of the SIF paper: a word with probability p has the weight a / (a + p).
SIF_A = 1e-3
USIF_COMPONENTS = 5
# Weight of the direction of a word's longest known prefix, relative to the word's own direction.
BEGINNING = 2
PIECE = 0.3  # norm of a single character's vector, relative to the norm of an unseen word's vector
SENTENCE_WORDS = 11  # average number of words per sentence, as assumed in the uSIF paper
_BLOCK = 1 << 14  # maximum number of rows that are converted to float64 at a time


@dataclass(frozen=True)
class Pooling:
    """The transformation from word vectors to pooled rows.

    Attributes
    ----------
    mean : ndarray of float64, shape (d,), or None
        The mean that is subtracted from a vector, before it is multiplied by `axes` and scaled to
        unit length.
    axes : ndarray of float64, shape (d, k), or None
        The whitening axes. If they, `mean` and `weights` are None, the rows are the unchanged
        vectors.
    weights : ndarray of float64, shape (n,), or None
        Factor for the row of each vocabulary word.
    unseen_weight : float
        Factor for the row of a word with count 0, whose vector is computed from its subwords.
    """

    mean: F64 | None = None
    axes: F64 | None = None
    weights: F64 | None = None
    unseen_weight: float = 1.0

    @classmethod
    def of(
        cls,
        kind: str,
        vectors: F32,
        counts: I64 | None,
        dim: int | None = None,
    ) -> Pooling:
        """Compute the pooling transformation from the vectors and counts of a vocabulary.

        Parameters
        ----------
        kind : {"static", "usif", "mean"}
        vectors : ndarray of float32, shape (n, d)
        counts : ndarray of int64, shape (n,), or None
            Counts of the words; a count of 0 is replaced by 1. If None, counts follow from Zipf's
            law, with a warning.
        dim : int, optional
            Keep only this many dimensions, those with the most variance; requires ``static``.

        Raises
        ------
        UsageError
            `dim` is not valid, or the vectors are empty or not finite.
        """
        if dim is not None and (kind != "static" or dim > vectors.shape[1]):
            most = vectors.shape[1]
            raise UsageError(f"--dim={dim} must be at most {most}, and requires --pooling=static")
        if kind == "mean":
            return cls()
        if not len(vectors) or not np.isfinite(vectors).all():
            raise UsageError(
                f"--pooling={kind}: the vectors are empty, or contain NaN or infinity; use other "
                "vectors"
            )
        if counts is None:
            warn(
                "the vectors have no word counts, so they are assumed to be sorted by frequency; "
                "use a .safetensors file, which contains counts"
            )
            tokens = counts_by_order(len(vectors))
        else:
            tokens = np.maximum(counts, 1).astype(np.float64)
        total = tokens.sum()
        p = tokens / total
        with one_blas_thread():
            mean, axes = _whitening(vectors, np.sqrt(p), dim)
        if kind == "usif":
            a = _usif_a(p)
            return cls(mean, axes, a / (a / 2 + p), unseen_weight=2.0)
        weights = SIF_A / (SIF_A + p) * np.sqrt(-np.log(p))
        return cls(mean, axes, weights, unseen_weight=float(np.sqrt(np.log(total))))

    def rows(self, vectors: F32, beginnings: I64 | None = None) -> F32:
        """Return the pooled rows of the vocabulary words, shape (n, k).

        Parameters
        ----------
        vectors : ndarray of float32, shape (n, d)
        beginnings : ndarray of int64, shape (n,), optional
            Index of the longest word that each word begins with, or -1.
        """
        if self.weights is None:
            return vectors
        blocks = list(blocks_of_rows(len(vectors), _BLOCK))
        with one_blas_thread():
            parts = [self._shaped(vectors[part]).astype(np.float32) for part in blocks]
        shaped = np.concatenate(parts)
        rows = np.empty_like(shaped)
        for part in blocks:
            rows[part] = shaped[part]
            if beginnings is not None:
                _draw(rows[part], shaped, beginnings[part])
            rows[part] *= self.weights[part, None]
        return rows

    def piece_rows(self, count: int, columns: int) -> F32:
        """Return rows with random directions for word pieces, which have no vectors."""
        # Use RandomState, which generates the same numbers in all NumPy versions.
        rows = np.random.RandomState(0).standard_normal((count, columns))
        rows *= PIECE * self.unseen_weight / np.linalg.norm(rows, axis=1, keepdims=True)
        return rows.astype(np.float32)

    def unseen_rows(self, vectors: F32) -> F32:
        """Return the pooled rows of out-of-vocabulary words, given the vectors of these words."""
        with one_blas_thread():
            return (self._shaped(vectors) * self.unseen_weight).astype(np.float32)

    def _shaped(self, vectors: F32) -> F64:
        shaped = vectors.astype(np.float64)
        if self.mean is None or self.axes is None:
            return shaped
        return unit_vectors((shaped - self.mean) @ self.axes)


def _draw(rows: F32, table: F32, beginnings: I64) -> None:
    """Move the unit rows of words (in place) toward the rows of their longest known prefixes."""
    some = beginnings >= 0
    own, others = rows[some], table[beginnings[some]]
    cosines = np.einsum("ij,ij->i", own, others)
    own += BEGINNING * np.maximum(cosines, 0)[:, None] * others
    rows[some] = unit_vectors(own)


def _usif_a(p: F64) -> float:
    """Return the parameter a of uSIF (Ethayarajh 2018, section 3.1)."""
    threshold = 1 - (1 - 1 / len(p)) ** SENTENCE_WORDS
    alpha = np.clip(np.mean(p > threshold), 1 / (2 * len(p)), 1 - 1 / (2 * len(p)))
    return float((1 - alpha) / (alpha * len(p) / 2))


def _whitening(vectors: F32, shares: F64, dim: int | None) -> tuple[F64, F64]:
    """Return the mean and the whitening axes of vectors, given the weights of the vectors.

    The axes are in descending order of variance; axes without variance are 0.
    """
    p = shares / shares.sum()
    blocks = list(blocks_of_rows(len(vectors), _BLOCK))
    mean = np.sum([p[part] @ vectors[part].astype(np.float64) for part in blocks], axis=0)
    covariance = np.zeros((vectors.shape[1], vectors.shape[1]))
    for part in blocks:
        centered = vectors[part] - mean
        covariance += (centered * p[part, None]).T @ centered
    variances, axes = np.linalg.eigh(covariance)
    variances, axes = variances[::-1][:dim], axes[:, ::-1][:, :dim]
    # The sign of an eigenvector is arbitrary, so make the entry of largest magnitude positive.
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    some = variances > variances[0] * np.finfo(np.float32).eps
    return mean, axes * np.where(some, 1 / np.sqrt(np.where(some, variances, 1)), 0)


@dataclass(frozen=True)
class Components:
    """The common directions of sentence vectors, and the fraction of each direction to remove.

    Attributes
    ----------
    axes : ndarray of float32, shape (m, d)
        The first singular vectors of the sentences.
    weights : ndarray of float32, shape (m,)
        The share of each direction in the sum of the squared singular values.
    """

    axes: F32
    weights: F32

    @classmethod
    def of(cls, sentences: F32) -> Components:
        """Compute the common components of sentence vectors."""
        with one_blas_thread():
            return cls.of_products(sentences.T.astype(np.float64) @ sentences)

    @classmethod
    def of_products(cls, products: F64) -> Components:
        """Compute the common components from XᵀX, where each row of X is a sentence vector."""
        with one_blas_thread():
            values, axes = np.linalg.eigh(products)
        most = USIF_COMPONENTS
        values, axes = np.maximum(values[::-1][:most], 0), axes[:, ::-1][:, :most]
        weights = values / max(values.sum(), np.finfo(np.float64).tiny)
        return cls(np.ascontiguousarray(axes.T, np.float32), weights.astype(np.float32))

    def removed_from(self, sentences: F32) -> F32:
        """Subtract weighted projections onto the common components from sentence vectors."""
        with one_blas_thread():
            return sentences - (sentences @ self.axes.T * self.weights) @ self.axes
