"""Project rows onto a plane with t-SNE or the first two principal components."""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.declarations import check_choice
from dcme_w2v.errors import import_optional
from dcme_w2v.numeric.arrays import F64, Array
from dcme_w2v.numeric.components import singular_vectors
from dcme_w2v.platform import default_threads

Progress = Callable[[int], None]
METHODS = ("tsne", "pca")
DIMENSIONS = 50  # number of principal components to which vectors are reduced before t-SNE
PERPLEXITY = 30.0
_A_THREAD = 1000  # minimum number of rows per thread; threads for fewer rows save no time
_EARLY, _LATE = 250, 500  # numbers of t-SNE iterations with and without early exaggeration
ITERATIONS = _EARLY + _LATE


def plane(
    rows: csr_matrix | Array, method: str, seed: int, progress: Progress = lambda done: None
) -> F64:
    """Project each row to a point in the plane; the result has shape (n, 2).

    Parameters
    ----------
    rows : csr_matrix or ndarray, shape (n, d)
    method : {"tsne", "pca"}
        t-SNE of the first 50 principal components, or only the first two components.
    seed : int
    progress : callable
        Called with the number of t-SNE iterations done.
    """
    check_choice("--method", method, METHODS)
    width = DIMENSIONS if method == "tsne" else 2
    left, values, _ = singular_vectors(rows, width, seed, centered=True)
    components = np.zeros((len(left), max(2, len(values))))
    components[:, : len(values)] = left * values
    return tsne(components, seed, progress) if method == "tsne" else components


def tsne(
    components: Array,
    seed: int,
    progress: Progress,
) -> F64:
    """Run t-SNE, which places similar rows close to each other in the plane; return the points.

    Parameters
    ----------
    components : ndarray of shape (n, d)
        The first two columns are the start.
    seed : int
    progress : callable
        Called with the number of iterations done.

    Returns
    -------
    ndarray of float64, shape (n, 2)

    References
    ----------
    van der Maaten and Hinton 2008, Visualizing Data using t-SNE, JMLR. Poličar et al. 2024,
    openTSNE, Journal of Statistical Software.
    """
    package = import_optional("openTSNE", ", or use --method=pca")
    start = components[:, :2] / max(float(np.std(components[:, 0])), 1e-12) * 1e-4
    done = 0

    def report(iteration: int, error: float, embedding: Any) -> None:
        nonlocal done
        done += 50
        progress(min(done, ITERATIONS))

    with warnings.catch_warnings(), contextlib.redirect_stdout(None):
        warnings.simplefilter("ignore")
        model = package.TSNE(
            perplexity=min(PERPLEXITY, (len(components) - 1) / 3), initialization=start,
            early_exaggeration_iter=_EARLY, n_iter=_LATE, random_state=seed,
            n_jobs=min(default_threads(), 1 + len(components) // _A_THREAD),
            callbacks=report, callbacks_every_iters=50,
        )  # fmt: skip
        return np.array(model.fit(components), dtype=np.float64)
