"""Words on a plane: the projections of their vectors, each with its word."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.sparse import csr_matrix

from dcme_w2v.errors import UsageError
from dcme_w2v.plots.figure import COLOURS, new_figure, write_figure
from dcme_w2v.plots.points import plane
from dcme_w2v.words.vectors import Vectors

LEAST = 3


def draw_words(
    vectors: Vectors,
    output: str,
    words: Sequence[str] = (),
    *,
    method: str = "tsne",
    limit: int = 200,
    seed: int = 1,
) -> None:
    """Draw words as points with labels, close together where their vectors have a high cosine.

    Parameters
    ----------
    vectors : Vectors
    output : str
        Picture; ``-`` is standard output.
    words : sequence of str
        These words; by default the `limit` most frequent ones.
    method : {"tsne", "pca"}
    limit : int
    seed : int
    """
    chosen = list(dict.fromkeys(words)) or list(vectors.words[:limit])
    rows = vectors[chosen]
    if len(chosen) < LEAST:
        raise UsageError(f"{len(chosen)} words; a picture needs {LEAST} at least")
    lengths = (rows**2).sum(axis=1, keepdims=True) ** 0.5
    rows = rows / (lengths + (lengths == 0))
    _, points = plane(csr_matrix(rows), method, len(rows), seed)
    figure = new_figure(10, 10)
    axes = figure.add_subplot()
    axes.scatter(*points.T, s=8, color=COLOURS[0])
    for word, (x, y) in zip(chosen, points.tolist(), strict=True):
        axes.annotate(
            word, (x, y), xytext=(2, 2), textcoords="offset points", fontsize=8, parse_math=False
        )
    axes.set_axis_off()
    write_figure(figure, output)
