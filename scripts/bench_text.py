"""Time counting and encoding a corpus, ours and gensim's in alternation.

    python scripts/bench_text.py [CORPUS] [--threads N...] [--runs 5] [--json FILE]

CORPUS is one uncompressed file, as gensim's corpus_file requires; without one, 20 million tokens
are drawn at random by Zipf's law. Prints a table of medians in million tokens a second and their
ratios to gensim's Word2Vec.build_vocab(corpus_file=), which counts but does not encode. The file is
read from the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from gensim import __version__ as gensim_version
from gensim.models import Word2Vec

from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.encode import count, encode

OPTIONS = VocabularyOptions()


def write_corpus(path: Path, tokens: int = 20_000_000, line: int = 50) -> None:
    """Write random words by Zipf's law, the frequent ones short."""
    ranks = np.random.default_rng(1).zipf(1.2, tokens) % 1_000_000
    words = np.array([np.base_repr(rank, 36).lower() for rank in range(1_000_000)])
    with path.open("w") as file:
        for start in range(0, tokens, line):
            file.write(" ".join(words[ranks[start : start + line]]) + "\n")


def tasks(corpus: str, threads: list[int]) -> dict[str, Callable[[], object]]:
    """Return the timed tasks."""

    def theirs() -> None:
        model = Word2Vec(min_count=OPTIONS.min_count, workers=1)
        model.build_vocab(corpus_file=corpus)

    found: dict[str, Callable[[], object]] = {"gensim build_vocab": theirs}
    for n in threads:
        for function in (count, encode):
            task = partial(function, [corpus], OPTIONS, threads=n)
            found[f"{function.__name__}, {n} threads"] = task
    return found


def measure(work: dict[str, Callable[[], object]], runs: int) -> dict[str, list[float]]:
    """Time each task in turn, `runs` times over."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(runs):
        for name, task in work.items():
            start = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", nargs="?", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write all times to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus or Path(folder, "corpus.txt")
        if options.corpus is None:
            write_corpus(corpus)
        tokens = count([str(corpus)], OPTIONS).tokens
        seconds = measure(tasks(str(corpus), options.threads), options.runs)
    print(f"{tokens} tokens, gensim {gensim_version}, {os.cpu_count()} CPUs\n")
    print("| what | M tokens/s | ratio |\n|---|---|---|")
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        ratio = medians["gensim build_vocab"] / median
        print(f"| {name} | {tokens / median / 1e6:.1f} | {ratio:.1f} |")
    if options.json:
        options.json.write_text(json.dumps(seconds, indent=1) + "\n")


if __name__ == "__main__":
    main()
