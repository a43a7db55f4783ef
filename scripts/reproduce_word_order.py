"""Measure the effect of word order, classes of neighbours and blocks on likelihood and time.

    python scripts/reproduce_word_order.py [--quick] [--publish] [--corpus FILE] [--epochs N]
        [--seeds N ...] [--only OBJECTIVE ...] [--contexts CONTEXT ...] [--lr X ...]

Trains each objective without --word-order, with it, with 63 --neighbor-classes as well, and in
blocks of 16 targets, in turn: a window of exactly 10 words to each side, no subsampling, 20
negative samples for `ns` and `nce`, 15 for `dcme`, 16 and 32 in blocks, default rates or those of
--lr, one thread. Scores the same sample of held-out lines, of a fiftieth of the corpus, after each
epoch. Seconds are CPU time of an epoch, the median of all. Published are the rows of this call, and
those of earlier ones on the same text that it does not have.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
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
IN_BLOCKS: dict[str, Any] = {"word_order": True, "block": 16}
CONTEXTS: dict[str, dict[str, Any]] = {
    "mean of the window": {},
    "and neighbours": {"word_order": True},
    "and their classes": {"word_order": True, "neighbor_classes": 63},
    "blocks, 16 samples": {**IN_BLOCKS, "negative": 16, "neighbor_classes": 63},
    "blocks, 32 samples": {**IN_BLOCKS, "negative": 32, "neighbor_classes": 63},
    "the same without classes": {**IN_BLOCKS, "negative": 32},
}
FIRST = "ns, with noise", "mean of the window"  # what times are relative to


def measure(text: Text, options: TrainOptions) -> tuple[list[float], list[float], float]:
    """Return the log-probability after each epoch, the epochs' CPU seconds, and those before."""
    begin = time.process_time()
    training = Trainer(text.ids, text.vocabulary.counts, resolved(options))
    before = time.process_time() - begin
    held, figures, seconds = HeldOut(text.held_out, text.vocabulary.counts, training), [], []
    for epoch in range(options.epochs):
        start = time.process_time()
        training.epoch(epoch)
        seconds.append(time.process_time() - start)
        found = held.score()
        figures.append(found.get(NOISE, found[PLAIN]))
    return figures, seconds, before


@dataclass
class Runs:
    """All runs of a row."""

    figures: list[list[float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)

    def cells(self, first: float | None) -> list[str]:
        """Return the means and ranges, and the median time of an epoch relative to `first`."""
        found = [
            f"{statistics.mean(one):.3f} ({min(one):.3f} to {max(one):.3f})"
            for one in zip(*self.figures, strict=True)
        ]
        epoch = statistics.median(self.seconds)
        relative = f"{epoch / first:.2f}" if first else ""
        return [*found, str(len(self.figures)), relative, f"{statistics.median(self.before):.1f}"]


def train_all(text: Text, given: argparse.Namespace) -> dict[tuple[str, str], Runs]:
    """Train all rows by turns, seed by seed."""
    found: dict[tuple[str, str], Runs] = {}
    for seed in given.seeds:
        for name in given.only:
            for context in given.contexts:
                for rate in given.lr or [None]:
                    options = {**SETTING, **OBJECTIVES[name], **CONTEXTS[context], "lr": rate}
                    if options.get("block"):
                        options.pop("top_items", None)
                    runs = found.setdefault(
                        (name, context + (f", lr {rate:g}" if rate else "")), Runs()
                    )
                    every = TrainOptions(**options, seed=seed, threads=1, epochs=given.epochs)
                    figures, seconds, before = measure(text, every)
                    print(name, context, rate, seed, figures, seconds, before, flush=True)
                    runs.figures.append(figures), runs.seconds.extend(seconds)
                    runs.before.append(before)
    return found


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="default: the development corpus")
    parser.add_argument("--quick", action="store_true", help="a fifth of the text")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--only", nargs="+", choices=OBJECTIVES, default=list(OBJECTIVES))
    parser.add_argument("--contexts", nargs="+", choices=CONTEXTS, default=list(CONTEXTS))
    parser.add_argument("--lr", type=float, nargs="+", help="default: those of the program")
    parser.add_argument("--publish", metavar="NAME", help="write docs/results/NAME.json")
    parser.add_argument("--folder", help="folder for the decompressed corpus")
    given = parser.parse_args()
    corpus = given.corpus or str(peers.plain_corpus(peers.work_folder(given.folder)))
    (text,) = texts(corpus, given.quick, "all words")
    found = train_all(text, given)
    first = statistics.median(found[FIRST].seconds) if FIRST in found else None
    rows = [[f"`{name}`", context, *runs.cells(first)] for (name, context), runs in found.items()]
    for row in rows:
        print(" | ".join(row))
    if given.publish:
        path = RESULTS / f"{given.publish}.json"
        columns = ["objective", "context", *(f"epoch {i + 1}" for i in range(given.epochs))]
        columns += ["seeds", "time", "before, s"]
        data = f"the first {len(text.ids):,} tokens of the development corpus, "
        data += f"{len(text.vocabulary):,} words"
        record(
            path, "Mean log-probability of held-out tokens by what the context has", columns,
            [*kept_rows(path, columns, data, rows), *rows],
            seeds="mean, and the range; CPU time of an epoch relative to `ns`, 20 samples, mean of "
            "the window, and CPU seconds of counting and clustering neighbours, by turns on a "
            "machine with other work",
            data=data,
        )  # fmt: skip


def kept_rows(path: Path, columns: list[str], data: str, rows: list[list[str]]) -> list[list[str]]:
    """Return the rows of earlier calls on the same text that are not among the new ones."""
    if not path.exists():
        return []
    before = json.loads(path.read_text())
    if before["columns"] != columns or before["data"] != data:
        return []
    new = {tuple(row[:2]) for row in rows}
    return [row for row in before["rows"] if tuple(row[:2]) not in new]


if __name__ == "__main__":
    main()
