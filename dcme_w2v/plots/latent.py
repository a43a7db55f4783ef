"""A picture of documents in two dimensions, colored by their latent class.

Needs the extra `[plot]`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.classify.dataset import pieces
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.sparse_io import join
from dcme_w2v.latent.jobs import DOCUMENTS_AT_ONCE
from dcme_w2v.latent.model import LatentClassifier
from dcme_w2v.latent.reduction import svd_of_rows
from dcme_w2v.plots.points import draw, plane

COMPONENTS, WORDS = 50, 2


def plot_files(
    model: LatentClassifier,
    docs: Sequence[str],
    output: str,
    *,
    method: str = "tsne",
    limit: int = 2000,
    seed: int = 1,
) -> None:
    """Draw documents; the legend names each latent class by specific words, or by its label.

    Parameters
    ----------
    model : LatentClassifier
    docs : sequence of str
    output : str
        PNG; ``-`` is standard output.
    method : {"tsne", "pca"}
    limit : int
        Maximum number of documents, sampled at random.
    seed : int
    """
    parts = [csr_matrix(part) for part, _ in pieces(model, docs, None, DOCUMENTS_AT_ONCE)]
    if not parts:
        raise CorpusError(f"{docs[0]}: has no documents; a picture needs 3")
    rows = join(parts)
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(rows.shape[0], min(limit, rows.shape[0]), replace=False))
    rows = csr_matrix(rows[chosen])
    if min(rows.shape) < 3:
        count, width = rows.shape
        raise UsageError(
            f"{docs[0]}: {count} rows of {width} numbers; a picture needs 3 at least of each"
        )
    left, squares, _ = svd_of_rows(rows, COMPONENTS, seed, centered=True)
    components = np.zeros((len(left), max(3, left.shape[1])))
    components[:, : left.shape[1]] = left * np.sqrt(squares)
    _, points = plane(csr_matrix(components), method, len(components), seed)
    classes = np.concatenate([p.argmax(axis=1) for p in model.latent_log_probabilities(rows)])
    names = class_names(model)
    draw(output, points, [names[int(k)] for k in classes])


def class_names(model: LatentClassifier) -> list[str]:
    """Return a name for each latent class: its number, and its first words or its label."""
    found = []
    for one in model.describe(WORDS):
        words = [name for name, _ in (one["words"] if model.clusters else one["labels"][:1])]
        found.append(" ".join([f"{one['class']}:", *words]))
    return found
