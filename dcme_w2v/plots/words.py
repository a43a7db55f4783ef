"""Words on a plane: the projections of their vectors, each with its word."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.sparse import csr_matrix

from dcme_w2v.errors import UsageError
from dcme_w2v.plots.figure import COLORS, new_figure, write_figure
from dcme_w2v.plots.points import GRAY, plane
from dcme_w2v.words.vectors import Vectors

MIN_WORDS = 3
_LETTER, _HEIGHT = 6.4, 12.0  # pixels of a letter and of a line of 8 points
_DISTANCES = (4.0, 9.0, 16.0, 25.0, 36.0, 50.0, 66.0)
_DIRECTIONS = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 0), (-1, 1), (-1, -1))
_FAR = 20.0  # from which a line joins a label to its point


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
    if len(chosen) < MIN_WORDS:
        raise UsageError(f"{len(chosen)} words; a picture needs {MIN_WORDS} at least")
    lengths = (rows**2).sum(axis=1, keepdims=True) ** 0.5
    rows = rows / (lengths + (lengths == 0))
    _, points = plane(csr_matrix(rows), method, len(rows), seed)
    figure = new_figure(10, 10)
    axes = figure.add_subplot()
    axes.scatter(*points.T, s=8, color=COLORS[0])
    axes.margins(0.06)
    axes.set_axis_off()
    figure.draw_without_rendering()  # sets the scale
    pixels = axes.transData.transform(points)
    widths = [_LETTER * (len(word) + 0.5) for word in chosen]
    places = free_places(pixels.tolist(), widths)
    for word, point, (x, y), width in zip(chosen, points.tolist(), places, widths, strict=True):
        is_far = max(x, -x - width, abs(y)) > _FAR
        line = {"arrowstyle": "-", "lw": 0.4, "color": GRAY} if is_far else None
        axes.annotate(
            word, point, xytext=(x, y), textcoords="offset pixels", fontsize=8, va="center",
            parse_math=False, arrowprops=line,
        )  # fmt: skip
    write_figure(figure, output)


def free_places(
    points: Sequence[Sequence[float]], widths: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the offset of each label from its point, such that labels do not overlap.

    Offsets are tried from near to far in eight directions; a label that has no place nearby stands
    at the right of its point.

    Parameters
    ----------
    points : sequence of (x, y)
        In pixels.
    widths : sequence of float
        Of the labels, in pixels.
    """
    taken = [(x - 2.0, y - 2.0, x + 2.0, y + 2.0) for x, y in points]
    offsets = []
    for (x, y), width in zip(points, widths, strict=True):
        ways = (
            (
                distance * right - (width if right < 0 else width / 2 if not right else 0),
                distance * up,
            )
            for distance in _DISTANCES
            for right, up in _DIRECTIONS
        )
        for dx, dy in ways:
            left, low = x + dx, y + dy - _HEIGHT / 2
            box = (left, low, left + width, low + _HEIGHT)
            if not any(_overlap(box, other) for other in taken):
                break
        else:
            dx, dy = 4.0, 0.0
            box = (x + dx, y - _HEIGHT / 2, x + dx + width, y + _HEIGHT / 2)
        taken.append(box)
        offsets.append((dx, dy))
    return offsets


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return (one[0] < other[2] and other[0] < one[2]) and (one[1] < other[3] and other[1] < one[3])
