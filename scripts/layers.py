"""The order of the rooms in the package, and the diagram that write_reference.py draws from it.

A room is a folder or module directly in dcme_w2v/. It may import only rooms that come before it in
LAYERS, even inside functions. test_architecture.py checks this.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "dcme_w2v"

# From the lowest layer to the highest; in a layer, from left to right. __init__ is above all.
LAYERS = [
    ["platform"],
    ["errors"],
    ["hints"],
    ["declarations"],
    ["_core"],
    ["files"],
    ["options"],
    ["numeric"],
    ["formats"],
    ["training"],
    ["text"],
    ["words", "classify"],
    ["sentences", "scdv", "few_labels", "latent", "search"],
    ["cluster"],
    ["plots", "pages", "contents"],
    ["cli"],
    ["__main__"],
]


def room_of(module: str) -> str:
    """Return the room of a module such as ``dcme_w2v.words.train``."""
    return module.split(".")[1] if "." in module else "__init__"


def arrows() -> Iterator[tuple[str, str, str]]:
    """Yield each import between rooms: the importing room, the imported room, and the place.

    Imports for type checkers only are included.
    """
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        own = room_of(".".join(parts))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                above = [*parts[: -node.level], ""] if node.level else []
                module = ".".join(above) + (node.module or "")
                found = [f"{module}.{alias.name}" for alias in node.names]
            for name in found:
                if name.startswith("dcme_w2v.") and room_of(name) != own:
                    where = f"{path.relative_to(PACKAGE.parent)}:{getattr(node, 'lineno', 0)}"
                    yield own, room_of(name), where


def wrong_arrows() -> dict[tuple[str, str], list[str]]:
    """Return the imports that violate the order of the layers, with their places."""
    level = {room: number for number, room in enumerate(room for line in LAYERS for room in line)}
    found: dict[tuple[str, str], list[str]] = {}
    for own, other, where in arrows():
        if own == "__init__" or other not in level:  # the import is of a public name
            continue
        if level.get(own, -1) <= level[other]:
            found.setdefault((own, other), []).append(where)
    return found


def picture() -> str:
    """Return an SVG diagram: a row of boxes for each layer, and a line for each import."""
    width, height, step = 130, 26, 52
    total = max(map(len, LAYERS)) * (width + 24)
    places = {}
    for number, rooms in enumerate(reversed(LAYERS)):
        for place, room in enumerate(rooms):
            x = total / 2 + (place - (len(rooms) - 1) / 2) * (width + 24)
            places[room] = (x, 20 + number * step)
    shapes = []
    pairs = {(own, other) for own, other, _ in arrows() if own in places and other in places}
    for own, other in sorted(pairs):
        (x, y), (to_x, to_y) = places[own], places[other]
        bend = 0 if to_y - y <= step or x != to_x else (to_y - y) * 0.35
        middle = f"{x + bend + (to_x - x) / 2:.0f} {(y + to_y + height) / 2:.0f}"
        shapes.append(f'<path d="M{x:.0f} {y + height} Q{middle} {to_x:.0f} {to_y}"/>')
    for room, (x, y) in places.items():
        shapes.append(f'<rect x="{x - width / 2:.0f}" y="{y}" width="{width}" height="{height}"/>')
        shapes.append(f'<text x="{x:.0f}" y="{y + 18}">{room}</text>')
    style = (
        "path{fill:none;stroke:#888;stroke-width:1;opacity:.5}"
        "rect{fill:#fff;stroke:#0072b2;rx:4}"
        "text{font:14px sans-serif;text-anchor:middle}"
    )
    size = f'viewBox="0 0 {total} {20 + len(LAYERS) * step}"'
    body = "\n".join(shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n<style>{style}</style>\n{body}\n</svg>\n'
    )
