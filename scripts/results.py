"""Read, check and write docs/results/*.json, and render the README's table and chart from them.

    python scripts/results.py          # render the README's table and chart
    python scripts/results.py --check  # fail if a file is malformed or the README is out of date

One file contains one table of the documentation: the origin of its numbers (command, commit,
machine, seeds, data), its columns and its rows as text. A script that measures something writes its
file with `record`. docs/_ext/results_directive.py renders the files.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dcme_w2v.plots.tables import chart_values

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
README = ROOT / "README.md"

TEXTS = ("title", "command", "commit", "machine", "seeds", "data")
BLOCK = re.compile(r"(<!-- results: (\w+) (\S+) -->\n).*?(<!-- end of results -->)", re.DOTALL)
BAR_WIDTH = 40


def main() -> None:
    """Render the README, or with --check fail if anything is malformed or out of date."""
    for path in sorted(RESULTS.glob("*.json")):
        load(path.stem)
    old = README.read_text(encoding="utf-8")
    new = with_results(old)
    if sys.argv[1:] == ["--check"]:
        if new != old:
            sys.exit("error: README.md: results are out of date; run scripts/results.py")
    else:
        README.write_text(new, encoding="utf-8")


def load(name: str) -> dict[str, Any]:
    """Return a table of results, or raise ValueError where it is malformed."""
    path = RESULTS / f"{name}.json"
    table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    for key in TEXTS:
        if not isinstance(table.get(key), str) or not table[key]:
            raise ValueError(f"{path.name}: no {key}")
    width = len(table["columns"])
    for row in table["rows"]:
        if len(row) != width or not all(isinstance(cell, str) for cell in row):
            raise ValueError(f"{path.name}: {row}: {width} texts are required")
    return table


def record(
    path: Path,
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    runs: Sequence[dict[str, Any]] = (),
    **facts: Any,
) -> None:
    """Write a table of results with its origin.

    Parameters
    ----------
    path : pathlib.Path
        The file; in docs/results/ to publish it.
    title : str
        What the table shows.
    columns, rows
        The table, as text.
    runs : sequence of dict, optional
        The figures of each run, from which `runs_of` lets a later measurement continue.
    **facts
        `seeds` and `data`, which describe the runs; `chart`, if there is one.
    """
    table = {
        "title": title,
        "command": shlex.join(["python", *sys.argv]),
        "commit": commit(),
        "machine": machine(),
        "seeds": "1",
        "data": "",
        **facts,
        "columns": list(columns),
    }
    head = json.dumps(table, indent=2, ensure_ascii=False)
    lists = {"rows": [list(row) for row in rows], **({"runs": runs} if runs else {})}
    body = "".join(f',\n  "{name}": [\n{_lines(found)}\n  ]' for name, found in lists.items())
    path.write_text(f"{head[:-2]}{body}\n}}\n", encoding="utf-8")


def runs_of(path: Path | None) -> list[dict[str, Any]]:
    """Return the runs of a table that was written with them; none where there is no file."""
    if path is None or not path.exists():
        return []
    return list(json.loads(path.read_text(encoding="utf-8")).get("runs", []))


def with_published(
    path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]], keys: int = 1
) -> list[list[str]]:
    """Return the rows of a published table with new figures in the place of old ones.

    A row is the same where its first `keys` cells are. New cells without a figure ("-") leave the
    old ones as they are, if the columns are the same.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    if path.exists():
        table = json.loads(path.read_text(encoding="utf-8"))
        old = table["rows"] if table["columns"] == list(columns) else []
        found = {tuple(row[:keys]): row for row in old}
    for row in rows:
        before = found.get(tuple(row[:keys]), row)
        pairs = zip(row, before, strict=True)
        found[tuple(row[:keys])] = [old if new == "-" else new for new, old in pairs]
    return list(found.values())


def _lines(found: Sequence[Any]) -> str:
    return ",\n".join("    " + json.dumps(one, ensure_ascii=False) for one in found)


def commit() -> str:
    """Return the commit of the working tree, marked where files other than results are changed."""

    def git(*arguments: str) -> str:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/results")
    found = git("describe", "--always") or "unknown"
    return f"{found}-dirty" if changed else found


def machine() -> str:
    """Return the kind of machine: architecture, CPUs, instruction sets."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    info = Path("/proc/cpuinfo")
    flags = info.read_text(encoding="utf-8") if info.exists() else ""
    sets = [name for name in ("avx512f", "avx2", "asimd") if name in flags]
    return f"{platform.machine()}, {cpus} CPUs{', ' + sets[0] if sets else ''}"


def with_results(text: str) -> str:
    """Return a Markdown text with every block of results rendered again."""
    forms = {"table": markdown_table, "chart": text_chart}
    return BLOCK.sub(lambda match: match[1] + forms[match[2]](load(match[3])) + match[4], text)


def markdown_table(table: dict[str, Any]) -> str:
    """Return a table in Markdown."""
    lines = [table["columns"], ["---"] * len(table["columns"]), *table["rows"]]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def text_chart(table: dict[str, Any]) -> str:
    """Return a bar chart in block characters, as a fenced Markdown block."""
    bars = chart_values(table, table["chart"]["x"])
    longest, widest = max(value for _, value in bars), max(len(name) for name, _ in bars)
    lines = [table["chart"]["x"]]
    for name, value in bars:
        lines.append(f"{name:{widest}}  {'█' * max(1, round(BAR_WIDTH * value / longest))} {value}")
    return "```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    main()
