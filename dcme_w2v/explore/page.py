"""One self-contained page of HTML: vectors as int8, a map, and the script that searches them.

Words, file names and labels are in compressed blocks of base64, and the script shows them as text:
no text of the user is ever read as HTML. The page forbids all network by its
Content-Security-Policy, and allows only its own script and style by their hashes.

The map has groups of similar rows: without given labels k-means clusters of the centered unit
vectors, and clusters of their centers for the coarser levels of zoom, so that each fine group lies
in one coarse group. A group of words is labeled by its most specific words: of its more frequent
members, those with the highest cosines to the group's mean. Subtracting the mean of all rows
removes the direction that all words share (Mu and Viswanath 2018, All-but-the-Top).
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.numeric.arrays import F32, F64, I64, U8
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.plots.layout import DIMENSIONS, tsne
from dcme_w2v.words.neighbors import inverse_lengths
from dcme_w2v.words.quantize import as_int8

from .items import Items

COLORS = 12  # the last one is for all other groups
_LEVELS = ((10, 3), (48, 2), (200, 1))  # groups, and words of a label, from coarse to fine
_MIN_ROWS = 30  # of a fine group, on average
_CANDIDATES = 12  # most frequent members of a group that can label it, or a tenth of all
_ROUNDS = 20


class Label(NamedTuple):
    """A label on the map: words, the row where it stands, level of zoom and number of color."""

    words: list[str]
    row: int
    level: int
    color: int


Groups = tuple[U8, list[Label]]  # a color for each row, and labels


def given_groups(groups: Sequence[str], points: F64) -> Groups:
    """Return colors and labels of the groups of a file of labels, the largest first."""
    own = _by_size(np.unique(np.array(groups, dtype=object), return_inverse=True)[1])
    colors, labels = np.minimum(own, COLORS - 1), []
    for group in range(min(int(own.max()) + 1, _LEVELS[-1][0])):
        rows = np.flatnonzero(own == group)
        row = _middle(rows, points)
        labels.append(Label([groups[row]], row, 0, int(colors[row])))
    return colors.astype(np.uint8), labels


def similar_groups(
    matrix: F32,
    names: Sequence[str] | None,
    points: F64,
    seed: int,
) -> Groups:
    """Return colors and labels of groups of similar rows.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)
        Rows of unit length, the most frequent words first.
    names : sequence of str, optional
        The words; without them labels have no words.
    points : ndarray of float64, shape (n, 2)
        The map.
    seed : int
    """
    fine = min(_LEVELS[-1][0], len(matrix) // _MIN_ROWS)
    if fine < 2:
        return np.zeros(len(matrix), dtype=np.uint8), []
    unit = _unit(matrix - matrix.mean(axis=0))
    centers, own = kmeans(unit, fine, seed, rounds=_ROUNDS)
    starts = _unit(centers.astype(np.float32))
    counts = [count for count, _ in _LEVELS if count < fine]
    at_level = [_by_size(kmeans(starts, count, seed)[1][own]) for count in counts]
    at_level.append(_by_size(own))
    colors = at_level[0].astype(np.uint8)
    labels: list[Label] = []
    for level, groups in enumerate(at_level):
        width = _LEVELS[level][1]
        for group in range(int(groups.max()) + 1):
            rows = np.flatnonzero(groups == group)
            words = [names[row] for row in _specific(unit, rows)[:width]] if names else []
            labels.append(Label(words, _middle(rows, points), level, int(colors[rows[0]])))
    return colors, labels


def _by_size(groups: I64) -> I64:
    """Return the groups numbered by size, the largest first, without empty ones."""
    found, own, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    rank = np.empty(len(found), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(found))
    return np.asarray(rank[own])


def _specific(unit: F32, rows: I64) -> list[int]:
    """Return the frequent rows of a group, the nearest to the group's mean first."""
    frequent = rows[: max(_CANDIDATES, len(rows) // 10)]
    cosines = unit[frequent] @ unit[rows].mean(axis=0)
    return [int(row) for row in frequent[np.argsort(-cosines, kind="stable")]]


def _middle(rows: I64, points: F64) -> int:
    """Return the row nearest to the median of a group's points on the map."""
    apart = points[rows] - np.median(points[rows], axis=0)
    return int(rows[np.argmin((apart**2).sum(axis=1))])


def _unit(matrix: F32) -> F32:
    return np.asarray(matrix * inverse_lengths(matrix)[:, None], dtype=np.float32)


EXAMPLES = 6
ANALOGIES = ("+king -man +woman", "+paris -france +italy", "+better -good +bad", "man woman king")
SCRIPTS = ("data.js", "search.js", "map.js", "app.js")
Progress = Callable[[int], None]


def write_page(path: str, every: Sequence[Items], layouts: Sequence[F64], seed: int) -> int:
    """Write the page; ``-`` is standard output. Return its size in bytes."""
    page = page_of(every, layouts, seed).encode()
    with atomic_write(path) as file:
        file.write(page)
    return len(page)


def page_of(every: Sequence[Items], layouts: Sequence[F64], seed: int) -> str:
    """Return the page of one or two files."""
    files = resources.files("dcme_w2v.explore").joinpath("page")
    script = "\n".join(files.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    style = files.joinpath("page.css").read_text(encoding="utf-8")
    described, blocks = [], []
    for number, (items, layout) in enumerate(zip(every, layouts, strict=True)):
        description, arrays = _blocks_of(items, layout, seed)
        described.append(description)
        blocks += [_block(f"{name}{number}", data) for name, data in arrays.items()]
    blocks.insert(0, _block("about", json.dumps(described).encode()))
    page = files.joinpath("page.html").read_text(encoding="utf-8")
    for name, text in (
        ("POLICY", _policy(script, style)), ("STYLE", style), ("DATA", "\n".join(blocks)),
        ("SCRIPT", script),
    ):  # fmt: skip
        page = page.replace(f"%{name}%", text)
    return page


def layout_of(items: Items, method: str, seed: int, progress: Progress = lambda done: None) -> F64:
    """Return points of all items in a plane: t-SNE, or the first two principal components."""
    centered = items.matrix - items.matrix.mean(axis=0)
    _, directions = np.linalg.eigh((centered.T @ centered).astype(np.float64))
    width = min(DIMENSIONS if method == "tsne" else 2, centered.shape[1])
    components = centered @ directions[:, ::-1][:, :width].astype(np.float32)
    if width < 2:
        components = np.column_stack([components, np.zeros(len(components))])
    points = np.ascontiguousarray(components, dtype=np.float64)
    return tsne(points, seed, progress) if method == "tsne" else points


def _blocks_of(items: Items, layout: F64, seed: int) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the description of a file, and its arrays as bytes."""
    names = items.names if items.of_words else None
    given = bool(items.groups)
    colors, labels = (
        given_groups(items.groups, layout)
        if given
        else similar_groups(items.matrix, names, layout, seed)
    )
    description = {
        "title": items.title, "about": items.about, "rows": len(items.names),
        "dim": items.matrix.shape[1], "ofWords": items.of_words, "given": given, "labels": labels,
        "examples": examples_of(items, labels),
    }  # fmt: skip
    arrays = {
        "names": json.dumps(items.names).encode(),
        "vectors": as_int8(items.matrix)[0].tobytes(),
        "points": _as_int16(layout).astype("<i2").tobytes(),
        "groups": colors.tobytes(),
    }
    return description, arrays


def examples_of(items: Items, labels: Sequence[Label]) -> list[str]:
    """Return queries to begin with: words of groups, and analogies whose words are known."""
    coarse = [label for label in labels if label.level == 0]
    if not items.of_words or items.groups:
        return [items.names[label.row] for label in coarse[:EXAMPLES]]
    found = [label.words[0] for label in coarse[:EXAMPLES]] or items.names[:EXAMPLES]
    known = [
        line for line in ANALOGIES if {word.lstrip("+-") for word in line.split()} <= {*items.names}
    ]
    return [*found, *known]


def _as_int16(points: F64) -> NDArray[np.int16]:
    """Return points centered and scaled to the range of int16, both axes by the same factor."""
    center = (points.max(axis=0) + points.min(axis=0)) / 2
    extent = float(np.abs(points - center).max()) or 1.0
    scaled: NDArray[np.int16] = np.rint((points - center) / extent * 32767).astype(np.int16)
    return scaled


def _block(name: str, data: bytes) -> str:
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return f'<script type="application/octet-stream" id="{name}">{packed}</script>'


def _policy(script: str, style: str) -> str:
    """Return the Content-Security-Policy: no network, no other script or style."""
    return (
        f"default-src 'none'; script-src {_hash_of(script)}; style-src {_hash_of(style)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
