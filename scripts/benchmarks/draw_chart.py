"""The bar chart of the README as SVG, for light and dark pages, from results.csv."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from tables import read

WIDTH, LABELS, BAR, STEP, TOP = 760, 250, 22, 34, 46
STYLE = """
  text { font: 14px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
  .title { font-weight: 600 }
  .ours { fill: #1a7f64 } .other { fill: #afb8c1 }
  @media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .ours { fill: #3fb68b } .other { fill: #57606a } }
"""

SUITE, METRIC = "quality_time", "CPU seconds, --threads 1"
# Settings of the suite, and how the chart names them.
BARS = {
    "dcme-w2v --epochs 2": "dcme-w2v, 2 epochs",
    "dcme-w2v (5 epochs)": "dcme-w2v, 5 epochs",
    "gensim, alpha .05": "gensim, 5 epochs",
    "gensim, our settings, both its tables": "gensim, settings of dcme-w2v",
}


def bar_chart(title: str, bars: Sequence[tuple[str, float, str]]) -> str:
    """Return a chart with a bar for each (name, number, text behind the bar)."""
    longest = max(number for _, number, _ in bars)
    scale = (WIDTH - LABELS - 230) / longest
    height = TOP + STEP * len(bars)
    parts = [f'<text class="title" x="0" y="20">{escape(title)}</text>']
    for place, (name, number, text) in enumerate(bars):
        y, length = TOP + STEP * place, round(number * scale, 1)
        kind = "ours" if name.startswith("dcme-w2v") else "other"
        parts += [
            f'<text x="{LABELS - 10}" y="{y + 16}" text-anchor="end">{escape(name)}</text>',
            f'<rect class="{kind}" x="{LABELS}" y="{y}" width="{length}" height="{BAR}" rx="3"/>',
            f'<text x="{LABELS + length + 8:g}" y="{y + 16}">{escape(text)}</text>',
        ]
    body = "\n  ".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{escape(title)}">\n<style>{STYLE}</style>\n  {body}\n</svg>\n'
    )


def readme_chart() -> str:
    """Return the chart of seconds by program, with the analogies that the vectors solve."""
    found = {
        (line["setting"], line["metric"]): float(line["number"])
        for line in read()
        if line["suite"] == SUITE
    }
    bars = []
    for setting, name in BARS.items():
        seconds, solved = found[setting, METRIC], found[setting, "analogies"]
        bars.append((name, seconds, f"{seconds:.0f} s, {solved:.0f} % of analogies"))
    return bar_chart("CPU seconds to train vectors of 17 million words, and what they solve", bars)
