"""One self-contained page of HTML: vectors as int8, a map, and the script that searches them.

Words, file names and labels are in compressed blocks of base64, and the script shows them as text:
no text of the user is ever read as HTML. The page forbids all network by its
Content-Security-Policy, and allows only its own script and style by their hashes.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.explore.groups import Label, given_groups, similar_groups
from dcme_w2v.explore.items import Items
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.plots.layout import DIMENSIONS, tsne
from dcme_w2v.words.quantize import as_int8

EXAMPLES = 6
ANALOGIES = ("+king -man +woman", "+paris -france +italy", "+better -good +bad", "man woman king")
SCRIPTS = ("data.js", "search.js", "map.js", "app.js")
Progress = Callable[[int], None]


def write_page(
    path: str, every: Sequence[Items], layouts: Sequence[NDArray[np.float64]], seed: int
) -> int:
    """Write the page; ``-`` is standard output. Return its size in bytes."""
    page = page_of(every, layouts, seed).encode()
    with atomic_write(path) as file:
        file.write(page)
    return len(page)


def page_of(every: Sequence[Items], layouts: Sequence[NDArray[np.float64]], seed: int) -> str:
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


def layout_of(
    items: Items, method: str, seed: int, progress: Progress = lambda done: None
) -> NDArray[np.float64]:
    """Return points of all items in a plane: t-SNE, or the first two principal components."""
    centered = items.matrix - items.matrix.mean(axis=0)
    _, directions = np.linalg.eigh((centered.T @ centered).astype(np.float64))
    width = min(DIMENSIONS if method == "tsne" else 2, centered.shape[1])
    components = centered @ directions[:, ::-1][:, :width].astype(np.float32)
    if width < 2:
        components = np.column_stack([components, np.zeros(len(components))])
    points = np.ascontiguousarray(components, dtype=np.float64)
    return tsne(points, seed, progress) if method == "tsne" else points


def _blocks_of(
    items: Items, layout: NDArray[np.float64], seed: int
) -> tuple[dict[str, Any], dict[str, bytes]]:
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


def _as_int16(points: NDArray[np.float64]) -> NDArray[np.int16]:
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
