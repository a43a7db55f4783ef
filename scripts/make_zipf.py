"""Write a synthetic corpus whose word frequencies follow Zipf's law.

    python scripts/make_zipf.py OUTPUT [--words 1000000] [--tokens 20000000] [--seed 1]

Every word occurs at least `--min-count` times; lines have 20 words. For measuring what a large
vocabulary costs: such text has no structure to learn.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

LINE = 20


def main() -> None:
    """Write the corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--min-count", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write(given.output, given.words, given.tokens, given.min_count, given.seed)


def write(output: Path, words: int, tokens: int, min_count: int, seed: int) -> None:
    """Write `tokens` tokens, or as many as `min_count` of each word need."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, words + 1)
    free = max(tokens - words * min_count, 0)
    drawn = np.searchsorted(np.cumsum(shares / shares.sum()), random.random(free))
    ids = np.concatenate([np.repeat(np.arange(words), min_count), np.minimum(drawn, words - 1)])
    random.shuffle(ids)
    with output.open("w", encoding="ascii") as file:
        for start in range(0, len(ids), LINE):
            file.write(" ".join(f"w{word}" for word in ids[start : start + LINE]) + "\n")


if __name__ == "__main__":
    main()
