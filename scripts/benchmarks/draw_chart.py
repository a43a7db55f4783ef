"""Draw the README's bar chart from a table of results, as SVG for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

WIDTH, LABELS, NUMBERS, BAR, STEP, TOP = 570, 214, 120, 20, 30, 36
STYLE = """
  text { font: 14px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .ours { fill: #1a7f64 } .other { fill: #afb8c1 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .ours { fill: #3fb68b } .other { fill: #57606a }
  }
"""

# Maps the settings in the table to their names in the chart.
BARS = {
    "dcme-w2v --epochs 2": "dcme-w2v, 2 epochs",
    "dcme-w2v (5 epochs)": "dcme-w2v, 5 epochs",
    "gensim, alpha .05": "gensim, word2vec's settings",
    "gensim, our settings, both its tables": "gensim, similar settings",
}


def bar_chart(title: str, bars: Sequence[tuple[str, float, str]]) -> str:
    """Return a chart with one bar for each (name, number, text after the bar)."""
    longest = max(number for _, number, _ in bars)
    scale = (WIDTH - LABELS - NUMBERS) / longest
    height = TOP + STEP * len(bars)
    parts = [f'<text class="title" x="0" y="20">{escape(title)}</text>']
    for place, (name, number, text) in enumerate(bars):
        y, length = TOP + STEP * place, round(number * scale, 1)
        kind = "ours" if name.startswith("dcme-w2v") else "other"
        parts += [
            f'<text x="{LABELS - 10}" y="{y + 15}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{LABELS}" y="{y}" width="{length}" height="{BAR}" rx="3"/>',
            f'<text x="{LABELS + length + 8:g}" y="{y + 15}">{escape(text)}</text>',
        ]
    body = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{STYLE}</style>\n  {body}\n</svg>\n'
    )


def readme_chart(table: dict[str, Any]) -> str:
    """Return the chart of CPU seconds by program, with the accuracy on analogies."""
    places = [table["columns"].index(one) for one in ("CPU seconds, --threads 1", "analogies")]
    rows = {row[0]: [row[at].split()[0].rstrip("%") for at in places] for row in table["rows"]}
    bars = [
        (name, float(seconds), f"{float(seconds):.0f} s, {solved}%")
        for setting, name in BARS.items()
        for seconds, solved in [rows[setting]]
    ]
    return bar_chart("CPU seconds to train word vectors, and analogies solved", bars)
