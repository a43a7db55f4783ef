"""Draw the README's picture of `dcme-w2v explore` as SVG for light and dark pages.

    dcme-w2v demo --collect text.txt && dcme-w2v train text.txt --output vectors.safetensors
    python scripts/draw_explore.py vectors.safetensors --output docs/explore.svg

The map and its groups are those of `dcme_w2v.explore`; the list shows the neighbors of the word.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

import dcme_w2v.pages.explore as page
from dcme_w2v import Vectors
from dcme_w2v.plots.projection import plane

WIDTH, HEIGHT, LIST, BAR, EDGE, TOPN = 760, 400, 190, 44, 14, 12
STYLE = """
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1b1b1b }
  .back { fill: #ffffff; stroke: #d6d6d6 } .field { fill: #f4f4f4; stroke: #d6d6d6 }
  .line { stroke: #d6d6d6 } .soft { fill: #5b5b5b } .hit { fill: none; stroke: #c2410c }
  .group { font-weight: 600; font-size: 12px; stroke: #ffffff; stroke-width: 3; paint-order: stroke;
    text-anchor: middle }
  path { fill: none; stroke-width: 3; stroke-linecap: round; stroke-opacity: .7 }
"""
DARK = """
    text { fill: #ececec } .back { fill: #14171a; stroke: #394048 } .group { stroke: #14171a }
    .field { fill: #20252a; stroke: #394048 } .line { stroke: #394048 } .soft { fill: #a4abb3 }
"""


def colors_of(name: str) -> list[str]:
    """Return the colors that the page's script uses on light or dark pages."""
    script = Path(page.__file__).with_name("page").joinpath("map.js").read_text(encoding="utf-8")
    found = re.search(rf"const {name} = (\[.*?\]);", script, re.DOTALL)
    assert found is not None
    return re.findall(r"#\w+", found[1])


def style() -> str:
    """Return the style sheet, with the page's colors for the groups."""
    light, dark = (
        " ".join(
            f".p{i} {{ stroke: {one} }} .t{i} {{ fill: {one} }}" for i, one in enumerate(colors)
        )
        for colors in (colors_of("LIGHT"), colors_of("DARK"))
    )
    return f"{STYLE}  {light}\n  @media (prefers-color-scheme: dark) {{{DARK}    {dark}\n  }}\n"


def picture(vectors: Vectors, word: str, limit: int) -> str:
    """Return the picture of the map and of a word's nearest neighbors."""
    items = page.read_items(vectors, None, 1, limit, 1)
    layout = plane(items.matrix, "tsne", 1)
    [(colors, labels)] = page.similar_groups([items], [layout], 1)
    low, high = layout.min(axis=0), layout.max(axis=0)
    corners = np.array([[LIST + EDGE, HEIGHT - EDGE], [WIDTH - EDGE, BAR + EDGE]])
    place = np.rint(corners[0] + (layout - low) / (high - low) * (corners[1] - corners[0]))
    place = place.astype(int)
    parts = [
        f'<rect class="back" x=".5" y=".5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="6"/>',
        f'<rect class="field" x="12" y="9" width="{WIDTH - 24}" height="26" rx="6"/>',
        f'<text x="22" y="27">{escape(word)}</text>',
        f'<line class="line" x1="0" x2="{WIDTH}" y1="{BAR}" y2="{BAR}"/>',
        f'<line class="line" x1="{LIST}" x2="{LIST}" y1="{BAR}" y2="{HEIGHT}"/>',
    ]
    for color in range(page.COLORS):
        points = np.unique(place[colors == color], axis=0).tolist()
        parts.append(f'<path class="p{color}" d="{"".join(f"M{x} {y}h0" for x, y in points)}"/>')
    for row, near in enumerate(vectors.most_similar(word, topn=TOPN)):
        y = BAR + 30 + 27 * row
        parts.append(f'<text x="16" y="{y}">{escape(near.word)}</text>')
        parts.append(f'<text class="soft" x="{LIST - 46}" y="{y}">{near.similarity:.3f}</text>')
        if near.word in items.names:
            x, y = place[items.names.index(near.word)].tolist()
            parts.append(f'<circle class="hit" cx="{x}" cy="{y}" r="4"/>')
    taken: list[tuple[int, int]] = []
    for label in (one for one in labels if one.level == 0):
        x, y = place[label.row].tolist()
        x = min(max(x, LIST + 75), WIDTH - 75)
        if any(abs(x - left) < 130 and abs(y - top) < 16 for left, top in taken):
            continue
        taken.append((x, y))
        words = escape(", ".join(label.words[:2]))
        parts.append(f'<text class="group t{label.color}" x="{x}" y="{y}">{words}</text>')
    body = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-label="A map of words, and the neighbors of one">\n'
        f"<style>{style()}</style>\n  {body}\n</svg>\n"
    )


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vectors")
    parser.add_argument("--word", default="matrix")
    parser.add_argument("--limit", type=int, default=2500)
    parser.add_argument("--output", default="docs/explore.svg")
    given = parser.parse_args()
    text = picture(Vectors.load(given.vectors), given.word, given.limit)
    Path(given.output).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
