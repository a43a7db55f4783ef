"""Measure time and memory of parts of a run, and how they scale; see also bench_speed.py.

    python scripts/bench_costs.py [--part whole|dcme|dcme-million|threads|window|tokens|memory ...]
        [--runs 5] [--folder FOLDER] [--json FILE]

whole: text to vectors on disk, five epochs, against gensim. dcme: speed against negative sampling
with 20 samples; dcme-million: on a synthetic text of a million words. threads: two against one, for
long lines and lines of ten words. window, tokens: scaling. memory: peak resident memory against two
tables and the words. Rows alternate; figures are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import peers

WIDE = peers.Setting(window=10, negative=20, epochs=1)
Row = tuple[str, Callable[[], float]]


def main() -> None:
    """Measure the requested parts and print a table of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="may be given repeatedly")
    parser.add_argument("--corpus", type=Path, help="plain text; default: the development corpus")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", help="folder for vectors and corpora")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    given = parser.parse_args()
    folder = peers.work_folder(given.folder)
    corpus = given.corpus or peers.plain_corpus(folder)
    found: dict[str, Any] = {}
    for part in given.part or PARTS:
        found[part] = table(part, PARTS[part](corpus, folder), given.runs)
        if given.json:
            given.json.write_text(json.dumps(found, indent=2) + "\n")


def table(part: str, rows: list[Row], runs: int) -> dict[str, list[float]]:
    """Run the rows in alternation; print medians, and ratios to the last row's."""
    figures: dict[str, list[float]] = {name: [] for name, _ in rows}
    for _ in range(runs):
        for name, measure in rows:
            figures[name].append(measure())
    last = statistics.median(figures[rows[-1][0]])
    print(f"\n| {part} | median | / last row |\n|---|---|---|")
    for name, values in figures.items():
        middle = statistics.median(values)
        print(f"| {name} | {middle:.2f} | {middle / last:.2f} |", flush=True)
    return figures


def speed(corpus: Path, folder: Path, setting: peers.Setting, **options: Any) -> float:
    """Return million raw tokens a second of training."""
    run = peers.train_ours(corpus, folder / "vectors.bin", setting, **options)
    return run.tokens * setting.epochs / run.train_seconds / 1e6


def whole(corpus: Path, folder: Path) -> list[Row]:
    """Seconds of the whole command, gensim's last."""
    output, setting = folder / "vectors.txt", peers.Setting()
    return [
        ("ours, s", lambda: peers.train_ours(corpus, output, setting).total_seconds),
        ("gensim, s", lambda: peers.train_gensim(corpus, output, setting).total_seconds),
    ]


def dcme(corpus: Path, folder: Path) -> list[Row]:
    """DCME in both forms, with 10 and no top items, and those that draw 20 samples."""
    few = replace(WIDE, negative=10)  # of the robust form; the paper's draws none
    rows: list[Row] = []
    for update in ("robust", "paper"):
        rows += [
            (
                f"dcme {update}, Q = {top}, M/s",
                lambda u=update, q=top: speed(
                    corpus, folder, few, objective="dcme", dcme_update=u, top_items=q
                ),
            )
            for top in (10, 0)
        ]
    return [
        *rows,
        ("nce 20, M/s", lambda: speed(corpus, folder, WIDE, objective="nce")),
        ("ns 20, M/s", lambda: speed(corpus, folder, WIDE)),
    ]


def dcme_million(corpus: Path, folder: Path) -> list[Row]:
    """Do the same with a vocabulary of a million words."""
    return dcme(_zipf(folder), folder)


def threads(corpus: Path, folder: Path) -> list[Row]:
    """One thread and two."""
    short = folder / "short.txt"
    if not short.exists():
        words = corpus.read_text(encoding="utf-8").split()
        lines = (" ".join(words[i : i + 10]) for i in range(0, len(words), 10))
        short.write_text("\n".join(lines) + "\n", encoding="utf-8")
    setting = peers.Setting(epochs=1)
    return [
        (
            f"{name}, {count} threads, M/s",
            lambda t=text, n=count: speed(t, folder, replace(setting, threads=n)),
        )
        for name, text in (("lines of ten", short), ("long lines", corpus))
        for count in (2, 1)
    ]


def window(corpus: Path, folder: Path) -> list[Row]:
    """Windows of 2 to 40 words; one thread, whose speed varies less."""
    setting = peers.Setting(epochs=1, threads=1)
    return [
        (
            f"{mode} {size}, M/s",
            lambda m=mode, s=size: speed(corpus, folder, replace(setting, window=s), window_mode=m),
        )
        for mode in ("shrink", "linear", "fixed")
        for size in (40, 20, 10, 5, 2)
    ]


def tokens(corpus: Path, folder: Path) -> list[Row]:
    """Train on a quarter, half and all of the corpus: speed stays where cost is linear."""
    setting = peers.Setting(epochs=1, threads=1)
    lines = corpus.read_bytes().splitlines(keepends=True)
    rows: list[Row] = []
    for parts in (4, 2, 1):
        text = folder / f"part{parts}.txt"
        text.write_bytes(b"".join(lines[: len(lines) // parts]))
        rows.append((f"1/{parts}, M/s", lambda t=text: speed(t, folder, setting)))
    return rows


def memory(corpus: Path, folder: Path) -> list[Row]:
    """Megabytes of peak memory above two tables of float32 and the words."""

    def above(text: Path) -> float:
        output = folder / "vectors.npy"
        peak = peers.train_ours(text, output, peers.Setting(epochs=1)).peak_memory_bytes
        words = output.with_suffix(".vocab").read_bytes().splitlines()
        spelled = sum(len(line.split(b" ")[0]) for line in words)
        return (peak - 2 * len(words) * 100 * 4 - spelled) / 1e6

    return [
        ("a million words, MB above", lambda: above(_zipf(folder))),
        ("the corpus, MB above", lambda: above(corpus)),
    ]


def _zipf(folder: Path) -> Path:
    text = folder / "zipf.txt"
    if not text.exists():
        script = Path(__file__).with_name("make_zipf.py")
        subprocess.run([sys.executable, str(script), str(text)], check=True)
    return text


PARTS: dict[str, Callable[[Path, Path], list[Row]]] = {
    "whole": whole,
    "dcme": dcme,
    "dcme-million": dcme_million,
    "threads": threads,
    "window": window,
    "tokens": tokens,
    "memory": memory,
}

if __name__ == "__main__":
    main()
