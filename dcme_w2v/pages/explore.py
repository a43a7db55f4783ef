"""Build a self-contained HTML page with vectors, a map, and a script that searches them.

Words, file names and labels are in compressed blocks of base64, and the script shows them as text:
the user's text is never parsed as HTML. The page's Content-Security-Policy
forbids all network access, and allows only the page's own script and style, identified by hashes.

The map shows groups of similar rows. Without given labels they are k-means clusters of the centered
unit vectors, and clusters of their centers for the coarser levels of zoom, so that each fine group
lies in one coarse group. A group of words is labeled by the words with the highest cosine to the
group's mean times their specificity by count. Subtracting the mean of all rows removes the
direction that all words share (Mu and Viswanath 2018, All-but-the-Top).
"""

import base64
import contextlib
import gzip
import hashlib
import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.declarations import check_choice, whole_number
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import atomic_write, suffixes_of
from dcme_w2v.files.opening import read_text
from dcme_w2v.files.paths import READS, WRITES, as_paths, guard
from dcme_w2v.formats.sparse_io import is_vectors, read_sparse_rows
from dcme_w2v.numeric.arrays import F32, F64, I64, U8, Array, specificity
from dcme_w2v.numeric.components import singular_vectors
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.platform import PathLike, path_name
from dcme_w2v.plots.projection import ITERATIONS, METHODS, plane
from dcme_w2v.training.progress import ProgressLike, reporting_to
from dcme_w2v.words.compare import compare, rotation
from dcme_w2v.words.convert import agreement, as_int8
from dcme_w2v.words.neighbors import inverse_lengths
from dcme_w2v.words.vectors import Vectors, counts_by_order, how_made, load_if_path

MIN_ROWS = 3
_COLUMNS = 100  # maximum number of dimensions to which document vectors are reduced
_TITLE = 80  # maximum length of a title in characters
COLORS = 12  # number of colors; all remaining groups share the last color
# Number of groups, and number of words per group label, for each zoom level from coarse to fine.
_LEVELS = ((10, 3), (48, 2), (200, 1))
_GROUP_ROWS = 30  # mean number of points per group at the finest zoom level
_ROUNDS = 20
CHANGES = 100  # maximum number of words that the page lists as changed
_NEAR = 3
EXAMPLES = 6
ANALOGIES = ("+king -man +woman", "+paris -france +italy", "+better -good +bad", "man woman king")
SCRIPTS = ("data.js", "search.js", "map.js", "app.js")


@dataclass(frozen=True)
class Items:
    """The words or documents in a file, and their vectors.

    Attributes
    ----------
    title : str
        Name of the file.
    about : str
        A description of the file.
    names : list of str
        Distinct names of the items.
    matrix : ndarray of float32, shape (n, d)
        Rows of unit length; rows of zeros stay zero.
    groups : list of str
        The group of each item; empty without labels.
    counts : ndarray, shape (n,), or None
        Counts of words; None for documents.
    """

    title: str
    about: str
    names: list[str]
    matrix: F32
    groups: list[str]
    counts: Array | None

    @property
    def of_words(self) -> bool:
        """Whether the items are words, which are sorted by descending frequency."""
        return self.counts is not None


def read_items(
    path: str | Vectors, labels: str | None, column: int, limit: int, seed: int
) -> Items:
    """Read the first `limit` rows of a file as `Items`.

    Parameters
    ----------
    path : str or Vectors
    labels : str, optional
        A file with one line per row, with columns separated by tabs.
    column : int
        The column of groups, from 1; the other columns are the documents' titles.
    limit : int
    seed : int
    """
    counts, of_words = None, isinstance(path, Vectors) or not is_vectors(path)
    if isinstance(path, Vectors) or of_words:
        vectors = load_if_path(path)
        known = vectors.counts
        counts = (counts_by_order(len(vectors)) if known is None else known)[:limit]
        total, found, names = len(vectors), [], list(vectors.words[:limit])
        matrix = np.array(vectors.vectors[:limit])
        about = (made := how_made(vectors)) and f", {made}"
    else:
        rows, own = read_sparse_rows(path, None)
        total, found = rows.shape[0], ["|".join(one) for one in own[:limit]]
        matrix = _reduced(rows[:limit], seed)
        names, about = [str(number) for number in range(1, len(found) + 1)], ""
    if len(names) < MIN_ROWS:
        raise UsageError(
            f"{path} has {len(names)} rows, but a map requires at least {MIN_ROWS} rows; use a "
            "file with more rows"
        )
    groups = found if any(found) else []
    if labels is not None:
        lines = _columns_of(labels, total, column)[:limit]
        groups = [line[column - 1] for line in lines]
        if not of_words:
            names = _titles(" ".join(line[: column - 1] + line[column:]) for line in lines)
    matrix = _unit(matrix)
    shown = f"{len(names):,}" if len(names) == total else f"the first {len(names):,} of {total:,}"
    about = f"{shown} {'words' if of_words else 'documents'} of {matrix.shape[1]} dimensions{about}"
    return Items(str(path), about, names, matrix, groups, counts)


def _titles(texts: Iterable[str]) -> list[str]:
    """Shorten texts to titles, and number equal or empty titles so that all are distinct."""
    titles: dict[str, None] = {}
    for number, text in enumerate(texts, 1):
        title = textwrap.shorten(text, _TITLE, placeholder=" ...") or str(number)
        while title in titles:
            title += f" ({number})"
        titles[title] = None
    return list(titles)


def _reduced(rows: csr_matrix, seed: int) -> F32:
    """Project sparse rows onto their first singular vectors, which hardly changes the cosines."""
    if rows.shape[1] <= _COLUMNS:
        return np.asarray(rows.toarray(), dtype=np.float32)
    left, values, _ = singular_vectors(rows, _COLUMNS, seed, centered=False)
    return (left * values).astype(np.float32)


def _columns_of(path: str, rows: int, column: int) -> list[list[str]]:
    """Read the columns of each line in a labels file."""
    found: list[list[str]] = []
    for number, line in read_text(path):
        found.append(line.rstrip("\r\n").split("\t"))
        if len(found[-1]) < column:
            raise FormatError(
                f"{path}:{number} has only {len(found[-1])} columns, but --color={column}; lower "
                "--color"
            )
    if len(found) != rows:
        raise FormatError(
            f"{path} has {len(found)} lines, but there are {rows} rows; write one line per row"
        )
    return found


class Label(NamedTuple):
    """A label on the map: its words, color and zoom level, and the row next to which it appears."""

    words: list[str]
    row: int
    level: int
    color: int


Groups = tuple[U8, list[Label]]  # each row's color, and the labels on the map


def given_groups(groups: Sequence[str], points: F64) -> Groups:
    """Return row colors and map labels for a labels file's groups, in descending order of size."""
    own = _by_size(np.unique(np.array(groups, dtype=object), return_inverse=True)[1])
    colors, labels = np.minimum(own, COLORS - 1), []
    for group in range(min(int(own.max()) + 1, _LEVELS[-1][0])):
        rows = np.flatnonzero(own == group)
        row = _middle(rows, points)
        labels.append(Label([groups[row]], row, 0, int(colors[row])))
    return colors.astype(np.uint8), labels


def similar_groups(every: Sequence[Items], layouts: Sequence[F64], seed: int) -> list[Groups]:
    """Group similar rows of all files together; return the row colors and map labels of each file.

    For documents, the labels have no words.
    """
    matrix = np.concatenate([items.matrix for items in every])
    fine = min(_LEVELS[-1][0], len(matrix) // _GROUP_ROWS)
    if fine < 2:
        return [(np.zeros(len(items.names), dtype=np.uint8), []) for items in every]
    unit = _unit(matrix - matrix.mean(axis=0))
    centers, own = kmeans(unit, fine, seed, rounds=_ROUNDS)
    starts = _unit(centers.astype(np.float32))
    counts = [count for count, _ in _LEVELS if count < fine]
    at_level = [_by_size(kmeans(starts, count, seed)[1][own]) for count in counts]
    at_level.append(_by_size(own))
    ends = np.cumsum([len(items.names) for items in every]).tolist()
    return [
        _labeled(items, unit[first:end], [groups[first:end] for groups in at_level], points)
        for items, points, first, end in zip(every, layouts, [0, *ends], ends, strict=False)
    ]


def _labeled(items: Items, unit: F32, at_level: Sequence[I64], points: F64) -> Groups:
    """Return the colors and map labels of a file's rows, given their groups at each level."""
    colors, labels, specific = at_level[0].astype(np.uint8), list[Label](), None
    if items.counts is not None:
        known = np.maximum(items.counts, 1)
        specific = specificity(np.log(known.max() / known))
    for level, groups in enumerate(at_level):
        for group in np.unique(groups):
            rows, words = np.flatnonzero(groups == group), list[str]()
            if specific is not None:
                scores = unit[rows] @ unit[rows].mean(axis=0) * specific[rows]
                order = np.argsort(-scores, kind="stable")[: _LEVELS[level][1]]
                words = [items.names[row] for row in rows[order].tolist()]
            labels.append(Label(words, _middle(rows, points), level, int(colors[rows[0]])))
    return colors, labels


def together(every: Sequence[Items]) -> list[list[Items]]:
    """Align the second file's vectors with the first file's vectors if they share enough words."""
    apart = [[items] for items in every]
    if len(every) < 2 or not (every[0].of_words and every[1].of_words):
        return apart
    first, second = every
    places = {name: row for row, name in enumerate(first.names)}
    shared = [(row, places[name]) for row, name in enumerate(second.names) if name in places]
    dim = first.matrix.shape[1]
    if second.matrix.shape[1] != dim or len(shared) <= dim:
        return apart
    own, other = np.array(shared).T
    turned = second.matrix @ rotation(second.matrix[own], first.matrix[other])
    return [[first, replace(second, matrix=turned)]]


def changes(first: Items, second: Items) -> list[list[str | float]]:
    """Return words whose vectors differ between two files, with their changes and neighbors.

    The list is empty if too few words are frequent enough to be compared.
    """
    a, b = (
        Vectors(items.names, items.matrix, np.asarray(items.counts, dtype=np.int64))
        for items in (first, second)
    )
    with contextlib.suppress(UsageError):
        return [
            [one.word, round(one.change, 3), *(
                " ".join(word for word, _ in near[:_NEAR]) for near in (one.before, one.after)
            )]
            for one in compare(a, b, topn=CHANGES)
        ]  # fmt: skip
    return []


def _by_size(groups: I64) -> I64:
    """Renumber groups by descending size, and drop empty groups."""
    found, own, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    rank = np.empty(len(found), dtype=np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(found))
    return np.asarray(rank[own])


def _middle(rows: I64, points: F64) -> int:
    """Return the group member that is nearest to the median point of its group on the map."""
    apart = points[rows] - np.median(points[rows], axis=0)
    return int(rows[np.argmin((apart**2).sum(axis=1))])


def _unit(matrix: F32) -> F32:
    return np.asarray(matrix * inverse_lengths(matrix)[:, None], dtype=np.float32)


def page_of(
    every: Sequence[Items],
    layouts: Sequence[F64],
    groups: Sequence[Groups],
    changed: Sequence[Sequence[str | float]],
) -> str:
    """Build the HTML page for one or two files from their maps, groups and changed words."""
    files = resources.files("dcme_w2v.pages").joinpath("page")
    script = "\n".join(files.joinpath(name).read_text(encoding="utf-8") for name in SCRIPTS)
    style = files.joinpath("page.css").read_text(encoding="utf-8")
    described, blocks = [], []
    for number, found in enumerate(zip(every, layouts, groups, strict=True)):
        description, arrays = _blocks_of(*found)
        described.append(description)
        blocks += [_block(f"{name}{number}", data) for name, data in arrays.items()]
    described[0]["changes"] = changed
    blocks.insert(0, _block("about", json.dumps(described).encode()))
    # Content security policy: no network, and no scripts or styles except the page's own.
    policy = (
        f"default-src 'none'; script-src {_hash_of(script)}; style-src {_hash_of(style)}; "
        "base-uri 'none'; form-action 'none'"
    )
    page = files.joinpath("page.html").read_text(encoding="utf-8")
    for name, text in (
        ("POLICY", policy), ("STYLE", style), ("DATA", "\n".join(blocks)), ("SCRIPT", script),
    ):  # fmt: skip
        page = page.replace(f"%{name}%", text)
    return page


def _blocks_of(
    items: Items, layout: F64, groups: Groups
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a file's description for the page, and its arrays as bytes."""
    given = bool(items.groups)
    colors, labels = given_groups(items.groups, layout) if given else groups
    description = {
        "title": items.title, "about": items.about, "rows": len(items.names),
        "dim": items.matrix.shape[1], "ofWords": items.of_words, "given": given, "labels": labels,
        "examples": examples_of(items, labels),
    }  # fmt: skip
    arrays = {
        "names": json.dumps(items.names).encode(),
        "vectors": as_int8(items.matrix)[0].tobytes(),
        "points": np.rint(layout).astype("<i2").tobytes(),
        "groups": colors.tobytes(),
    }
    return description, arrays


def examples_of(items: Items, labels: Sequence[Label]) -> list[str]:
    """Return example queries: words from the groups, and analogies of words in the vocabulary."""
    coarse = [label for label in labels if label.level == 0]
    if not items.of_words or items.groups:
        return [items.names[label.row] for label in coarse[:EXAMPLES]]
    found = [label.words[0] for label in coarse[:EXAMPLES]] or items.names[:EXAMPLES]
    known = [
        line for line in ANALOGIES if {word.lstrip("+-") for word in line.split()} <= {*items.names}
    ]
    return [*found, *known]


def _in_range(points: F64) -> F64:
    """Center points, and scale both axes by the same factor to the range of int16."""
    center = (points.max(axis=0) + points.min(axis=0)) / 2
    extent = float(np.abs(points - center).max()) or 1.0
    return np.asarray((points - center) / extent * 32767)


def _block(name: str, data: bytes) -> str:
    packed = base64.b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return f'<script type="application/octet-stream" id="{name}">{packed}</script>'


def _hash_of(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


MAX_FILES = 2


def explore(
    files: PathLike | Vectors | Sequence[PathLike | Vectors],
    output: PathLike | None = None,
    *,
    labels: str | None = None,
    color: int = 1,
    limit: int = 50_000,
    method: str = "tsne",
    seed: int = 1,
    progress: ProgressLike = False,
) -> str:
    """Make an HTML page for exploring vectors: neighbors, analogies and a map.

    Parameters
    ----------
    files : path, Vectors or sequence of these
        Word vectors, or files with document rows (.npz, .svm): one set, or two to compare.
    output : path, optional
        File to write the page to; ``-`` is standard output.
    labels : str, optional
        File with labels: one line per row, with columns separated by tabs.
    color, limit : int
        `color` is the column of `labels`, counted from 1, that determines the colors. `limit` is
        the maximum number of rows to show from each file.
    method : {"tsne", "pca"}
        Projection method for the map.
    seed : int
    progress : bool or callable
        As in `train`.

    Returns
    -------
    str
        The HTML text of the page.

    Raises
    ------
    UsageError
        There are more than two files, or `output` has the suffix of another format.
    DcmeError
        openTSNE is not installed and the method is t-SNE.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", dim=8, epochs=1, threads=1, output="v.safetensors")
    >>> dw.explore("v.safetensors", "page.html", method="pca")[:15]
    '<!DOCTYPE html>'
    """
    given: Any = files if isinstance(files, list | tuple) else [files]
    sources = [one if isinstance(one, Vectors) else as_paths(one)[0] for one in given]
    name = "" if output is None else path_name(output, "output")
    guard((READS, "VECTORS", sources), (READS, "--labels", labels), (WRITES, "--output", output))
    check_choice("--method", method, METHODS)
    for option, value, least in (("color", color, 1), ("limit", limit, 3), ("seed", seed, 0)):
        whole_number(option, value, least)
    if not 1 <= len(sources) <= MAX_FILES:
        raise UsageError(
            f"one or two files are required, not {len(sources)}; pass one file, or two files to "
            "compare"
        )
    if suffixes_of(name)[0] not in ("", ".html", ".htm"):
        raise UsageError(
            f"{name} is not an HTML file name; use a name ending in .html, or - for standard output"
        )
    every = [read_items(path, labels, color, limit, seed) for path in sources]
    with reporting_to(progress) as reporter:
        layouts, groups, changed = list[F64](), list[Groups](), list[list[str | float]]()
        for batch in together(every):
            names = " and ".join(items.title for items in batch)
            reporter.stage(
                f"map of {names}", ITERATIONS if method == "tsne" else None, "iterations"
            )
            matrix = np.concatenate([items.matrix for items in batch])
            points = _in_range(plane(matrix, method, seed, reporter.advance))
            maps = np.split(points, np.cumsum([len(items.names) for items in batch])[:-1])
            groups += similar_groups(batch, maps, seed)
            layouts += maps
            if len(batch) > 1:
                changed = changes(*batch)
        page = page_of(every, layouts, groups, changed)
        for items in every:
            share = 100 * agreement(items.matrix, as_int8(items.matrix)[0], seed)
            reporter.message(
                f"{items.title}: {len(items.names):,} rows; {share:.1f}% of the 10 nearest "
                "neighbors stay the same when the page stores vectors with 8 bits per number"
            )
        if name:
            with atomic_write(name) as file:
                file.write(page.encode())
            reporter.message(f"page: {name}, {len(page) / 1e6:.1f} MB")
    return page
