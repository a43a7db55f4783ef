"""Render the tables in the documentation from results.csv.

`python scripts/benchmarks/tables.py` renders all tables in the README and docs/, and the README's
chart; with --check, it fails if one of them is out of date. Each line of results.csv is one number:
suite, setting, metric, number, spread (a standard deviation, or a range), unit, seeds, commit,
machine. A table has the settings of a suite as rows and its metrics as columns; a record is a table
with its origin.
"""

from __future__ import annotations

import csv
import math
import re
import sys
from pathlib import Path
from typing import Any

from draw_chart import readme_chart

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("results.csv")
CHART = ROOT / "docs" / "speed.svg"
COLUMNS = ("suite", "setting", "metric", "number", "spread", "unit", "seeds", "commit", "machine")
BLOCK = re.compile(
    r"(<!-- results: (table|record) (\S+)(?: ([^\n]+))? -->\n).*?(<!-- end of results -->)",
    re.DOTALL,
)


def read(path: Path = RESULTS) -> list[dict[str, str]]:
    """Return the lines of results.csv.

    Raises
    ------
    ValueError
        A line is malformed.
    """
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file, strict=True))
    for number, line in enumerate(lines, 2):
        if tuple(line) != COLUMNS or None in line.values():
            raise ValueError(f"{path.name}, line {number}: needs the columns {', '.join(COLUMNS)}")
        float(line["number"])
    return lines


def table_of(suite: str, lines: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """Return a table: its columns, its rows of text, and the commits, machines and seeds.

    Raises
    ------
    ValueError
        There is no such suite, or two of its cells have the same name.
    """
    lines = [line for line in lines or read() if line["suite"] == suite]
    if not lines:
        raise ValueError(f"{RESULTS.name}: contains no suite named {suite}; run it with --record")
    metrics = list(dict.fromkeys(line["metric"] for line in lines))
    rows: dict[str, dict[str, str]] = {}
    for line in lines:
        row = rows.setdefault(line["setting"], {})
        if line["metric"] in row:
            raise ValueError(f"{suite}: {line['setting']} has {line['metric']} twice; remove one")
        row[line["metric"]] = _shown(line)
    return {
        "columns": ["setting", *metrics],
        "rows": [[name, *(row.get(one, "") for one in metrics)] for name, row in rows.items()],
        **{key: sorted({line[key] for line in lines}) for key in ("seeds", "commit", "machine")},
    }


def _shown(line: dict[str, str]) -> str:
    """Return a number with its spread, unless the spread is smaller than the last digit."""
    number, spread = line["number"], line["spread"]
    if number.isdigit() and len(number) > 4:
        number = f"{int(number):,}"
    if " to " in spread:
        number += f" ({spread})"
    elif spread and float(spread):
        digits = max(0, -math.floor(math.log10(float(spread))))
        shown = max(0, 3 - math.floor(math.log10(abs(float(number.replace(",", ""))))))
        if digits <= shown:  # numbers are shown with four digits
            number = f"{float(number):,.{digits}f} ± {float(spread):,.{digits}f}"
    space = "" if line["unit"] in ("", "%") else " "
    return f"{number}{space}{line['unit']}"


def markdown_table(table: dict[str, Any], chosen: str = "") -> str:
    """Return a table as Markdown.

    Parameters
    ----------
    table : dict
    chosen : str
        Rows, ``|``, columns, each list separated by ``;``. ``old -> new`` shows another name.
        If the rows are empty, all rows are shown.
    """
    columns = [(place, name) for place, name in enumerate(table["columns"])]
    rows = [list(row) for row in table["rows"]]
    if chosen:
        wanted, shown = (_names(part) for part in chosen.split("|"))
        if wanted != {"": ""}:
            by_name = {row[0]: row[1:] for row in rows}
            rows = [[new, *by_name[old]] for old, new in wanted.items()]
        columns = [(0, shown.pop("setting", ""))]
        columns += [(table["columns"].index(old), new) for old, new in shown.items()]
    lines = [[name for _, name in columns], ["---"] * len(columns)]
    lines += [[row[place] for place, _ in columns] for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _names(text: str) -> dict[str, str]:
    pairs = [one.strip().partition(" -> ") for one in text.split(";")]
    return {old: new or old for old, _, new in pairs}


def with_results(text: str) -> str:
    """Return a Markdown text in which every block of results is rendered anew."""

    def rendered(match: re.Match[str]) -> str:
        table, what = table_of(match[3]), match[4] or ""
        origin = _origin(table) if match[2] == "record" else ""
        return match[1] + markdown_table(table, what) + origin + match[5]

    return BLOCK.sub(rendered, text)


def _origin(table: dict[str, Any]) -> str:
    seeds, commits, machines = ("; ".join(table[key]) for key in ("seeds", "commit", "machine"))
    return f"\n<sub>Seeds: {seeds}. Commit: {commits}. Machine: {machines}.</sub>\n"


def main() -> None:
    """Render all pages and the chart, or with --check fail if one is out of date."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    made = {page: with_results(page.read_text(encoding="utf-8")) for page in pages}
    made[CHART] = readme_chart(table_of("quality_time"))
    for page, new in made.items():
        if page.exists() and page.read_text(encoding="utf-8") == new:
            continue
        if sys.argv[1:] == ["--check"]:
            name = page.relative_to(ROOT)
            sys.exit(f"error: {name}: results are out of date; run scripts/benchmarks/tables.py")
        page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
