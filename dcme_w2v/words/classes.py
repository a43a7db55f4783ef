"""Compute word classes by k-means on word vectors, like word2vec.c's option -classes."""

import numpy as np

from dcme_w2v._core.text import format_counts
from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, I64, infinite_row, unit_vectors
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.platform import PathLike

from .vectors import Vectors, load_if_path


def classes(
    vectors: Vectors | PathLike | F32,
    classes: int,
    *,
    seed: int = 1,
    threads: int | None = None,
) -> I64:
    """Cluster word vectors with k-means, after scaling them to unit length.

    Parameters
    ----------
    vectors : Vectors, path, or ndarray of float32, shape (n, d)
    classes : int
        Number of classes, at most n.
    seed : int
        Seed of the initial centers.
    threads : int, optional
        Number of threads (default: the number of CPUs available to this process). The result does
        not depend on this number.

    Returns
    -------
    ndarray of int64, shape (n,)
        The class of each word, counted from 0. Classes are numbered in the order of their first
        words, so the first word is in class 0.

    Raises
    ------
    UsageError
        There are fewer words than classes.
    FormatError
        A vector contains a NaN or infinite number.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.Vectors(["tea", "coffee", "car"], [[1, 0], [2, 0.1], [-1, 1]])
    >>> dw.classes(v, 2).tolist()
    [0, 0, 1]
    """
    if not isinstance(vectors, np.ndarray):
        vectors = load_if_path(vectors).vectors
    whole_number("classes", classes)
    if classes > (words := len(vectors)):
        raise UsageError(f"--classes={classes}: there are only {words:,} words; use fewer classes")
    if (wrong := infinite_row(vectors)) is not None:
        raise FormatError(
            f"the vector of word {wrong + 1} contains NaN or infinity; run dcme-w2v check on the "
            "vector file"
        )
    points = unit_vectors(vectors).astype(np.float32)
    _, nearest = kmeans(points, classes, seed, threads)
    _, first, numbers = np.unique(nearest, return_index=True, return_inverse=True)
    places = np.empty(len(first), dtype=np.int64)
    places[np.argsort(first)] = np.arange(len(first))
    return np.asarray(places[numbers])


def save_classes(path: PathLike, words: Words, classes: I64) -> None:
    """Atomically write one "word class" line per word, in vocabulary order."""
    with atomic_write(path) as file:
        file.write(format_counts(words.text, words.offsets, classes).data)
