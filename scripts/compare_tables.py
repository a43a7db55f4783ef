"""Lengths of vectors by the count of their words, in tables that were trained in several ways.

    dcme-w2v train CORPUS --output v.bin --output-tables one ...
    python scripts/compare_tables.py one shards ...

For each folder, the mean length of input and output vectors in bands of counts, the length of the
mean context (of the input vectors, by their tokens after subsampling), and the mean score of the
words of a band in that context.
"""

from __future__ import annotations

import argparse
import itertools

import numpy as np

from dcme_w2v.cluster.words import keep_shares
from dcme_w2v.words.tables import load_tables

BANDS = (1, 10, 20, 50, 200, 1000, 10_000, np.inf)
SAMPLE = 1e-3


def main() -> None:
    """Print a table of each folder."""
    parser = argparse.ArgumentParser(description="lengths of vectors by the count of words")
    parser.add_argument("tables", nargs="+")
    for folder in parser.parse_args().tables:
        found = load_tables(folder)
        counts = np.asarray(found.vocabulary.counts)
        rows = [np.asarray(table, dtype=np.float64) for table in (found.input, found.output)]
        kept = counts * keep_shares(counts, float(counts.sum()), SAMPLE)
        context = kept @ rows[0] / kept.sum()
        print(f"{folder}: mean context {np.linalg.norm(context):.2f}")
        print("count from | words | input | output | score in the mean context")
        for low, high in itertools.pairwise(BANDS):
            chosen = (counts >= low) & (counts < high)
            if chosen.any():
                lengths = [np.linalg.norm(table[chosen], axis=1).mean() for table in rows]
                score = (rows[1][chosen] @ context).mean()
                print(f"{low} | {chosen.sum()} | {lengths[0]:.2f} | {lengths[1]:.2f} | {score:.2f}")


if __name__ == "__main__":
    main()
