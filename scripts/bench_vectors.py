"""Time reading and writing word vectors, ours and gensim's in alternation.

    python scripts/bench_vectors.py [--rows 1000000] [--dim 100] [--runs 5] [--json FILE]

Prints a table of medians in seconds and their ratios. gensim's text takes minutes at full size:
`--gensim-text-runs` says how often it is timed. All files are in a temporary folder (--folder) and
are read from the page cache; writing includes our flush to the disk, which gensim does not do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from gensim import __version__ as gensim_version
from gensim.models import KeyedVectors

from dcme_w2v.formats.word_list import Words
from dcme_w2v.words.vectors import Vectors

Task = tuple[str, str, Callable[[], object]]


def tasks(folder: Path, ours: Vectors, theirs: KeyedVectors) -> list[Task]:
    """Return the timed tasks: name, program and function; files are written before being read."""
    load = KeyedVectors.load_word2vec_format
    found: list[Task] = []
    for format in ("text", "binary"):
        binary = format == "binary"
        mine, other = str(folder / f"ours.{format}"), str(folder / f"gensim.{format}")
        found += [
            (f"{format} write", "ours", lambda p=mine, f=format: ours.save(p, f)),
            (f"{format} write", "gensim", lambda p=other, b=binary: save(theirs, p, b)),
            (f"{format} read", "ours", lambda p=mine: Vectors.load(p)),
            (f"{format} read", "gensim", lambda p=mine, b=binary: load(p, binary=b)),
        ]
    npy, native = str(folder / "ours.npy"), str(folder / "gensim.kv")
    return [
        *found,
        ("npy write", "ours", lambda: ours.save(npy)),
        ("npy open", "ours", lambda: Vectors.load(npy)),
        ("native write", "gensim", lambda: theirs.save(native)),
        ("native open (mmap)", "gensim", lambda: KeyedVectors.load(native, mmap="r")),
    ]


def save(vectors: KeyedVectors, path: str, binary: bool) -> None:
    """Write gensim's vectors."""
    vectors.save_word2vec_format(path, binary=binary)


def make(rows: int, dim: int) -> tuple[Vectors, KeyedVectors]:
    """Make the same random vectors for both."""
    matrix = np.random.default_rng(1).standard_normal((rows, dim), dtype=np.float32) * 0.3
    names = [f"word{number}" for number in range(rows)]
    theirs = KeyedVectors(dim)
    theirs.add_vectors(names, matrix)
    return Vectors(Words.from_words(names), matrix), theirs


def measure(work: list[Task], runs: int, text_runs: int) -> dict[tuple[str, str], list[float]]:
    """Time each task in turn, `runs` times over."""
    seconds: dict[tuple[str, str], list[float]] = {}
    for run in range(runs):
        for name, whose, task in work:
            if whose == "gensim" and name.startswith("text") and run >= text_runs:
                continue
            start = time.perf_counter()
            task()
            seconds.setdefault((name, whose), []).append(time.perf_counter() - start)
    return seconds


def table(seconds: dict[tuple[str, str], list[float]]) -> list[str]:
    """Return the medians as a markdown table."""
    lines = ["| what | ours, s | gensim, s | ratio |", "|---|---|---|---|"]
    for name in dict.fromkeys(name for name, _ in seconds):
        ours, theirs = seconds.get((name, "ours")), seconds.get((name, "gensim"))
        cells = [f"{statistics.median(times):.3f}" if times else "" for times in (ours, theirs)]
        both = ours and theirs and statistics.median(theirs) / statistics.median(ours)
        lines.append(f"| {name} | {cells[0]} | {cells[1]} | {f'{both:.1f}' if both else ''} |")
    return lines


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--gensim-text-runs", type=int, default=1)
    parser.add_argument("--folder", help="where the files are written (default: a temporary one)")
    parser.add_argument("--json", type=Path, help="write all times to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        work = tasks(Path(folder), *make(options.rows, options.dim))
        seconds = measure(work, options.runs, options.gensim_text_runs)
    print(f"{options.rows} x {options.dim}, gensim {gensim_version}, {os.cpu_count()} CPUs\n")
    print("\n".join(table(seconds)))
    if options.json:
        found = {f"{name}, {whose}": times for (name, whose), times in seconds.items()}
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
