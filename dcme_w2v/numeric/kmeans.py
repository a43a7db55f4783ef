"""k-means with k-means++ initialization."""

import numpy as np

from dcme_w2v.errors import UsageError

from .arrays import F32, F64, I64
from .parallel import one_blas_thread, over_blocks

ROUNDS = 50
_MOVED = 1e-3  # k-means stops if less than this fraction of the points changes clusters


def kmeans(
    points: F32,
    clusters: int,
    seed: int,
    threads: int | None = None,
    rounds: int = ROUNDS,
) -> tuple[F64, I64]:
    """Cluster points by Lloyd's algorithm, initialized by k-means++.

    Parameters
    ----------
    points : ndarray of float32, shape (n, d)
    clusters : int
        Number of clusters, at most n.
    seed : int
        Seed of the initialization.
    threads : int, optional
        Number of threads (default: the CPUs that this process may use). The result does not depend
        on it.
    rounds : int
        Maximum iterations of Lloyd's algorithm, at least 1.

    Returns
    -------
    centers : ndarray of float64, shape (clusters, d)
    nearest : ndarray of int64, shape (n,)
        The cluster of each point.

    Raises
    ------
    UsageError
        There are fewer points than clusters.

    References
    ----------
    Arthur and Vassilvitskii 2007, k-means++: The advantages of careful seeding.
    """
    if clusters > len(points):
        raise UsageError(
            f"--clusters={clusters} must be at most {len(points)}, the number of words"
        )
    with one_blas_thread():
        squares = np.einsum("ij,ij->i", points, points)
        random = np.random.default_rng(seed)
        centers = _spread_start(points, squares, clusters, random, threads)
        before = np.full(len(points), -1)
        for _ in range(rounds):
            nearest, distances = _assigned(points, squares, centers, threads)
            if np.count_nonzero(nearest != before) <= _MOVED * len(points):
                break
            centers = _means(points, nearest, distances, clusters, threads)
            before = nearest
    return centers, nearest


def memberships(nearest: I64, clusters: int) -> F32:
    """Return a 0/1 matrix of shape (points, clusters), with a 1 for each point's cluster."""
    chosen = np.zeros((len(nearest), clusters), dtype=np.float32)
    chosen[np.arange(len(nearest)), nearest] = 1
    return chosen


def _spread_start(
    points: F32,
    squares: F32,
    clusters: int,
    random: np.random.Generator,
    threads: int | None,
) -> F64:
    """Draw initial centers from the points, with probabilities proportional to squared distances.

    Several candidates are drawn, and the best one becomes the center, as the authors recommend.
    """
    tries = 2 + int(np.log(clusters))
    chosen = [int(random.integers(len(points)))]
    nearest = _distances_to(points, squares, points[chosen], threads)[:, 0]
    while len(chosen) < clusters:
        total = np.cumsum(nearest, dtype=np.float64)
        drawn = np.searchsorted(total, random.random(tries) * total[-1], side="right")
        drawn = np.minimum(drawn, len(points) - 1)
        distances = _distances_to(points, squares, points[drawn], threads)
        np.minimum(distances, nearest[:, None], out=distances)
        best = int(np.argmin(distances.sum(axis=0, dtype=np.float64)))
        chosen.append(int(drawn[best]))
        nearest = np.ascontiguousarray(distances[:, best])
    return points[chosen].astype(np.float64)


def _distances_to(
    points: F32,
    squares: F32,
    centers: F32,
    threads: int | None,
) -> F32:
    def distances(rows: slice) -> F32:
        return _squared_distances(points[rows], squares[rows], centers)

    return np.concatenate(list(over_blocks(distances, len(points), threads)))


def _squared_distances(points: F32, squares: F32, centers: F32) -> F32:
    """Return the squared distances ||x||^2 - 2 x.c + ||c||^2, shape (points, centers)."""
    distances: F32 = points @ (-2 * centers.T)
    distances += squares[:, None]
    distances += np.einsum("ij,ij->i", centers, centers)
    return np.maximum(distances, 0, out=distances)


def _assigned(
    points: F32,
    squares: F32,
    centers: F64,
    threads: int | None,
) -> tuple[I64, F32]:
    """Return each point's nearest center, and the squared distance to this center."""
    single = centers.astype(np.float32)

    def nearest(rows: slice) -> tuple[I64, F32]:
        found = _squared_distances(points[rows], squares[rows], single)
        best = np.argmin(found, axis=1)
        return best, np.take_along_axis(found, best[:, None], axis=1)[:, 0]

    parts = list(over_blocks(nearest, len(points), threads))
    return np.concatenate([best for best, _ in parts]), np.concatenate([d for _, d in parts])


def _means(
    points: F32,
    nearest: I64,
    distances: F32,
    clusters: int,
    threads: int | None,
) -> F64:
    """Return each cluster's mean; empty clusters get the points farthest from their centers."""

    def sums(rows: slice) -> F32:
        return memberships(nearest[rows], clusters).T @ points[rows]

    counts = np.bincount(nearest, minlength=clusters)
    centers = np.zeros((clusters, points.shape[1]))
    for part in over_blocks(sums, len(points), threads):
        centers += part
    centers /= np.maximum(counts, 1)[:, None]
    empty = np.flatnonzero(counts == 0)
    if len(empty):
        centers[empty] = points[np.argsort(-distances, kind="stable")[: len(empty)]]
    return centers
