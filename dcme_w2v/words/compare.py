"""Find the words whose vectors differ most between two texts.

The vectors of each file are aligned with the vectors of the first file by orthogonal Procrustes on
frequent shared words (Hamilton et al. 2016, Diachronic word embeddings reveal statistical laws of
semantic change, ACL). Vectors of one text also differ between seeds, especially for rare words. A
change is therefore divided by the difference between seeds, and this ratio is compared with the
ratios of words that have similar counts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.ndimage import median_filter

from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.arrays import F32, F64, I64, unit_vectors
from dcme_w2v.numeric.parallel import one_blas_thread
from dcme_w2v.numeric.shown import Rows
from dcme_w2v.platform import PathLike

from .neighbors import Neighbor
from .vectors import Vectors, counts_by_order, load_if_path

MIN_COUNT, NEIGHBORS = 100, 5
_ANCHORS = 5000  # number of frequent words used to align the vectors
# Number of words with similar counts; a word's score is compared with their median score.
_SIMILAR = 201
_SMALLEST = 1e-6  # cosine distances below this limit can be rounding errors
Files = PathLike | Vectors | Sequence[PathLike | Vectors]


class Change(NamedTuple):
    """A word that two texts use differently.

    Attributes
    ----------
    word : str
    change : float
        1 - cosine of its aligned vectors of both texts, the mean over pairs of files.
    noise : float or None
        The mean change between two files of one text; None if each text has one file.
    before, after : list of (word, similarity)
        Its nearest words in the first and in the second text, among the words compared.
    """

    word: str
    change: float
    noise: float | None
    before: list[Neighbor]
    after: list[Neighbor]


def compare(a: Files, b: Files, *, topn: int = 20, min_count: int = MIN_COUNT) -> list[Change]:
    """Return the words whose vectors differ most between two texts, after aligning the vectors.

    Parameters
    ----------
    a, b : path, Vectors, or list of these
        Vectors trained on the first text (`a`) and on the second text (`b`). A list contains
        vectors trained with different seeds.
    topn : int
        Maximum number of words to return. With several files per text, only words that differ more
        between the texts than between any two files of one text are returned.
    min_count : int
        Omit words that occur fewer than `min_count` times in either text. If a file has no word
        counts, the counts are estimated from the order of the words by Zipf's law.

    Returns
    -------
    list of Change
        The changes in descending order. With several files per text, the order is by change /
        noise; otherwise, by change, compared with words that have similar counts.

    Raises
    ------
    UsageError
        The vectors have different numbers of dimensions, or too few words in common.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> rows = np.random.default_rng(0).normal(size=(40, 3))
    >>> a = dw.Vectors([f"w{i}" for i in range(40)], rows)
    >>> rows[7] = -rows[7]
    >>> dw.compare(a, dw.Vectors(a.words, rows), min_count=1)[0].word
    'w7'
    """
    for name, number in (("topn", topn), ("min-count", min_count)):
        whole_number(name, number)
    given: Any = (a, b)
    sides = [
        [load_if_path(one) for one in (side if isinstance(side, list | tuple) else [side])]
        for side in given
    ]
    every = [one for side in sides for one in side]
    words, places = _shared(every, min_count)
    turned = _aligned(every, places)
    own, other = turned[: len(sides[0])], turned[len(sides[0]) :]
    between = _differences(own, other)
    within = np.concatenate([_differences(side, side) for side in (own, other)])
    change, noise = between.mean(axis=0), within.mean(axis=0) if len(within) else None
    score = _among_similar(change if noise is None else change / np.maximum(noise, _SMALLEST))
    least = within.max(axis=0) if len(within) else _SMALLEST
    has_place = np.all([rows.any(axis=1) for rows in turned], axis=0)
    score[(between.min(axis=0) <= least) | ~has_place] = -np.inf
    best = np.argsort(-score, kind="stable")[:topn]
    best = best[score[best] > -np.inf]
    lists = [
        Vectors(words, sum(side)).most_similar_batch([words[i] for i in best], NEIGHBORS)
        for side in (own, other)
    ]
    return Rows(
        Change(words[i], float(change[i]), None if noise is None else float(noise[i]), *near)
        for i, *near in zip(best, *lists, strict=True)
    )


def _shared(every: Sequence[Vectors], min_count: int) -> tuple[list[str], list[I64]]:
    """Return the words that all files share, by descending frequency, and their row indices."""
    first, *others = every
    if len({one.dim for one in every}) > 1:
        dims = " and ".join(str(dim) for dim in sorted({one.dim for one in every}))
        raise UsageError(
            f"the vectors have different numbers of dimensions ({dims}); compare vectors with the "
            "same number of dimensions"
        )
    words = [word for word in first.words if all(word in one.words for one in others)]
    rows = [np.array([one.words.find(word) for word in words], dtype=np.int64) for one in every]
    known = [counts_by_order(len(one)) if one.counts is None else one.counts for one in every]
    counts = np.min([own[row] for own, row in zip(known, rows, strict=True)], axis=0)
    kept = np.argsort(-counts, kind="stable")[: int((counts >= min_count).sum())]
    if len(kept) <= first.dim:
        raise UsageError(
            f"only {len(kept):,} words occur at least {min_count} times in both texts, which is "
            f"not enough for {first.dim} dimensions; lower --min-count, or use more text"
        )
    return [words[i] for i in kept], [row[kept] for row in rows]


def _aligned(every: Sequence[Vectors], rows: Sequence[I64]) -> list[F32]:
    """Return unit vectors, rotated to align with the vectors in the first file."""
    units = [unit_vectors(one.vectors[row]) for one, row in zip(every, rows, strict=True)]
    base = units[0][:_ANCHORS]
    with one_blas_thread():
        return [own @ rotation(own[:_ANCHORS], base) for own in units]


def rotation(rows: F32, others: F32) -> F32:
    """Return the rotation that best maps one set of rows to another (Schönemann 1966)."""
    left, _, right = np.linalg.svd(rows.T @ others)
    return np.asarray(left @ right)


def _differences(some: Sequence[F32], others: Sequence[F32]) -> F64:
    """Return the cosine distance of each word in each pair of files, shape (pairs, words)."""
    found = [
        1 - np.einsum("ij,ij->i", one, other)
        for number, one in enumerate(some)
        for other in (some[:number] if some is others else others)
    ]
    return np.array(found, dtype=np.float64).reshape(len(found), len(some[0]))


def _among_similar(values: F64) -> F64:
    """Return each value's logarithm minus the median logarithm over words with similar counts."""
    logs = np.log(np.maximum(values, _SMALLEST))
    return np.asarray(logs - median_filter(logs, _SIMILAR, mode="nearest"))
