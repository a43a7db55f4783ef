"""The fitted latent-class model: features, weights and alpha."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core.models import SparseRows
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.model import VERSION, Predictor, restored, text_of
from dcme_w2v.classify.trainer import CHUNK, Weights
from dcme_w2v.declarations import threads_of, whole_number
from dcme_w2v.formats.artifact import Model, load_model
from dcme_w2v.numeric.arrays import F32, F64, Array, specificity, unit_vectors
from dcme_w2v.numeric.parallel import one_blas_thread
from dcme_w2v.numeric.sparse_rows import as_matrix, fit_columns
from dcme_w2v.platform import PathLike

from .options import LatentOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

KIND = "latent"
MIN_ALPHA = 1e-300  # lower bound on the label probabilities in alpha
_SUM = 1e-3  # maximum deviation of a row sum in alpha from 1
ROWS = 4096  # number of document rows that are projected at a time


def reduced(matrix: csr_matrix, right: F32) -> csr_matrix:
    """Project rows onto singular vectors, and scale all nonzero projections to unit length."""
    from scipy.sparse import csr_matrix

    matrix = as_matrix(matrix)
    data = np.empty((matrix.shape[0], right.shape[1]), dtype=np.float32)
    for begin in range(0, len(data), ROWS):
        part = np.asarray(matrix[begin : begin + ROWS] @ right, dtype=np.float64)
        data[begin : begin + ROWS] = unit_vectors(part)
    return csr_matrix(data)


@dataclass(frozen=True, repr=False)
class LatentClassifier(Predictor):
    """A classifier with latent classes k: `p(label | x) = sum_k p(k | x) p(label | k)`.

    `Predictor` describes the other attributes. `classes` are the labels, or names of the latent
    classes if there are no labels.

    Attributes
    ----------
    weights : Weights
        Weights of the latent classes for each column of the (reduced) rows.
    shares : ndarray of float64, shape (latent,)
        The share of each latent class in the training documents.
    alpha : ndarray of float32, shape (latent, classes), or None
        p(label | latent class); None if the latent classes are the classes.
    right : ndarray of float32, shape (features, dimensions), or None
        The reduction of the rows; see `reduced`.
    clusters : bool
        Whether it was fitted without labels.
    """

    _: KW_ONLY
    weights: Weights
    shares: F64
    alpha: F32 | None
    right: F32 | None
    clusters: bool

    @property
    def latent(self) -> int:
        """Number of latent classes."""
        return self.weights.classes

    @property
    def features(self) -> int:
        """Number of columns that input rows must have."""
        return self.weights.features if self.right is None else len(self.right)

    def latent_log_probabilities(
        self, matrix: csr_matrix, threads: int | None = None
    ) -> Iterator[F64]:
        """Yield `log p(latent class | document)` in batches of documents, shape (batch, latent)."""
        threads = threads_of(threads)
        matrix = fit_columns(matrix, self.features)
        for begin in range(0, matrix.shape[0], CHUNK):
            part = matrix[begin : begin + CHUNK]
            part = part if self.right is None else reduced(part, self.right)
            yield log_softmax(self.weights.scores(SparseRows(part), 0, part.shape[0], threads))

    def log_probabilities(self, matrix: csr_matrix, threads: int | None = None) -> Iterator[F64]:
        """Yield `log p(label | document)` in batches of documents, shape (batch, classes)."""
        for log_p in self.latent_log_probabilities(matrix, threads):
            yield log_p if self.alpha is None else through_alpha(log_p, self.alpha)

    def transform(self, matrix: csr_matrix, threads: int | None = None) -> csr_matrix:
        """Return `p(latent class | document)`, shape (documents, latent)."""
        from scipy.sparse import csr_matrix

        parts = list(self.latent_log_probabilities(matrix, threads))
        return csr_matrix(np.exp(np.concatenate(parts)).astype(np.float32))

    def column_names(self) -> list[str]:
        """Return the names of the columns of `transform`."""
        return [f"latent{k}" for k in range(self.latent)]

    def weights_of_class(self, number: int) -> F32:
        """Average the latent classes' feature weights, weighted by `p(latent class | label)`."""
        weights = self.feature_weights()
        if self.alpha is None:
            return weights[:, number]
        chances = self.alpha[:, number] * np.maximum(self.shares, 1e-9)
        with one_blas_thread():
            return weights @ (chances / chances.sum())

    def original_weights(self) -> F32:
        """Return the latent classes' weights for the original, unreduced features."""
        table: F32 = self.weights.get()[:-1]
        if self.right is None:
            return table
        with one_blas_thread():
            return self.right @ table

    def feature_weights(self) -> F32:
        """Return feature weights minus their mean over latent classes, shape (features, latent)."""
        table = self.original_weights()
        return table - table.mean(axis=1, keepdims=True)

    def describe(self, count: int = 10) -> list[dict[str, Any]]:
        """Describe each latent class by its size, label probabilities and most specific words.

        The most specific words have the highest product of a weight that favors this class and the
        word's `specificity`, in which the log of documents / documents with the word is idf - 1.
        """
        found, count = [], whole_number("count", count)
        weights = self.feature_weights()
        if self.text is not None and self.text.options.weighting == "tfidf":
            factors = specificity(self.text.idf - 1) / self.text.idf
            weights = unit_vectors(weights) * np.float32(factors)[:, None]
        for k in range(self.latent):
            labels: list[tuple[str, float]] = []
            if self.alpha is not None:
                best = np.argsort(-self.alpha[k], kind="stable")[:count]
                labels = [(self.classes[m], float(self.alpha[k, m])) for m in best]
            elif not self.clusters:
                labels = [(self.classes[k], 1.0)]
            found.append({
                "class": k + 1,
                "share": float(self.shares[k]),
                "labels": labels,
                "words": self.highest_weighted(weights[:, k], count),
            })  # fmt: skip
        return found

    def save(self, path: PathLike) -> None:
        """Atomically write the model to a file."""
        arrays: dict[str, Array] = {"weights": self.weights.get(), "shares": self.shares}
        if self.alpha is not None:
            arrays["alpha"] = self.alpha
        if self.right is not None:
            arrays["right"] = self.right
        self.write(path, KIND, arrays, clusters=self.clusters)

    @classmethod
    def load(cls, path: PathLike) -> LatentClassifier:
        """Read a model from a file.

        Raises
        ------
        FormatError
            The file is another kind of model, or is damaged.
        """
        model = load_model(path, KIND, VERSION)
        classes, clusters = model.strings("classes"), model.value("clusters", bool)
        shares = model.array("shares", "float64", None)
        stored = model.array("weights", "float32", None, len(shares))
        if len(stored) < 2 or len(shares) < 2:
            raise model.fault("weights", "must have features and at least two latent classes")
        _check_shares(model, "shares", shares[None, :])
        weights = Weights(len(stored) - 1, len(shares), 1.0)
        weights.set(stored)
        alpha = right = None
        if "alpha" in model.arrays:
            alpha = model.array("alpha", "float32", len(shares), len(classes))
            _check_shares(model, "alpha", alpha)
        elif len(classes) != len(shares):
            raise model.fault("alpha", "this array is missing")
        if "right" in model.arrays:
            right = model.array("right", "float32", None, weights.features)
        text = text_of(model, weights.features if right is None else len(right))
        return cls(
            *restored(model, LatentOptions, text), weights=weights, shares=shares, alpha=alpha,
            right=right, clusters=clusters,
        )  # fmt: skip


def through_alpha(log_p: F64, alpha: NDArray[np.floating]) -> F64:
    """Return label log-probabilities per document, given latent-class log-probabilities."""
    # A row's largest probability is at least 1 / (number of latent classes), so it does not
    # underflow.
    largest = log_p.max(axis=1, keepdims=True)
    alpha = alpha.astype(np.float64)
    with one_blas_thread():
        inner = np.exp(log_p - largest) @ (alpha / alpha.sum(axis=1, keepdims=True))
    return np.log(np.maximum(inner, MIN_ALPHA)) + largest


def _check_shares(model: Model, name: str, rows: NDArray[np.floating]) -> None:
    sums = rows.sum(axis=1, dtype=np.float64)
    if not ((rows >= 0).all() and (abs(sums - 1) < _SUM).all()):
        raise model.fault(name, "contains a row that does not sum to 1")
