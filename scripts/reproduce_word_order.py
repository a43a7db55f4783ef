"""Measure the effect of word order and classes of neighbours on held-out likelihood and time.

    python scripts/reproduce_word_order.py [--quick] [--publish] [--corpus FILE] [--epochs N]

Trains each objective without --word-order, with it, and with 63 --neighbor-classes as well, in
turn: a window of exactly 10 words to each side, no subsampling, 20 negative samples for `ns` and
`nce` and 15 for `dcme`, default rates, one thread, three seeds. Scores the same sample of held-out
lines, of a fiftieth of the corpus, after each epoch. Seconds are CPU time of an epoch, the median
of all.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import peers
from reproduce_figure2 import NOISE, PLAIN, SETTING, Text, texts
from results import RESULTS, record

from dcme_w2v.options import TrainOptions
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.heldout import HeldOut
from dcme_w2v.words.trainer import Trainer

OBJECTIVES: dict[str, dict[str, Any]] = {
    "ns, with noise": {"objective": "ns", "negative": 20, "noise_power": 0.75},
    "nce": {"objective": "nce", "negative": 20},
    "dcme": {"objective": "dcme", "negative": 15, "top_items": 0},
}
CONTEXTS: dict[str, dict[str, Any]] = {
    "mean of the window": {},
    "and neighbours": {"word_order": True},
    "and their classes": {"word_order": True, "neighbor_classes": 63},
}
SEEDS = (1, 2, 3)


def measure(text: Text, options: TrainOptions) -> tuple[list[float], list[float]]:
    """Return the log-probability after each epoch, and the epochs' CPU seconds."""
    training = Trainer(text.ids, text.vocabulary.counts, resolved(options))
    held, figures, seconds = HeldOut(text.held_out, text.vocabulary.counts, training), [], []
    for epoch in range(options.epochs):
        start = time.process_time()
        training.epoch(epoch)
        seconds.append(time.process_time() - start)
        found = held.score()
        figures.append(found.get(NOISE, found[PLAIN]))
    return figures, seconds


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="default: the development corpus")
    parser.add_argument("--quick", action="store_true", help="a fifth of the text")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--publish", action="store_true", help="write docs/results/word-order.json")
    parser.add_argument("--folder", help="folder for the decompressed corpus")
    given = parser.parse_args()
    corpus = given.corpus or str(peers.plain_corpus(peers.work_folder(given.folder)))
    (text,) = texts(corpus, given.quick, "all words")
    figures: dict[tuple[str, str], list[list[float]]] = {}
    seconds: dict[tuple[str, str], list[float]] = {}
    for seed in SEEDS:
        for name, objective in OBJECTIVES.items():
            for context, more in CONTEXTS.items():
                options = TrainOptions(
                    **SETTING, **objective, **more, seed=seed, threads=1, epochs=given.epochs
                )
                found, spent = measure(text, options)
                print(name, context, seed, found, spent, flush=True)
                figures.setdefault((name, context), []).append(found)
                seconds.setdefault((name, context), []).extend(spent)
    columns = ["objective", "context", *(f"epoch {i + 1}" for i in range(given.epochs)), "time"]
    rows = []
    for (name, context), runs in figures.items():
        cells = [
            f"{statistics.mean(one):.3f} ({min(one):.3f} to {max(one):.3f})"
            for one in zip(*runs, strict=True)
        ]
        first = seconds[name, next(iter(CONTEXTS))]
        ratio = statistics.median(seconds[name, context]) / statistics.median(first)
        rows.append([f"`{name}`", context, *cells, f"{ratio:.2f}"])
        print(" | ".join(rows[-1]))
    if given.publish:
        record(
            RESULTS / "word-order.json",
            "Mean log-probability of held-out tokens by what the context has",
            columns, rows,
            seeds="1, 2, 3 (mean, and the range); CPU time of an epoch relative to the first "
            "row of the objective, without counting classes, on a machine with other work",
            data=f"the first {len(text.ids):,} tokens of the development corpus, "
            f"{len(text.vocabulary):,} words",
        )  # fmt: skip


if __name__ == "__main__":
    main()
