"""Measure the effect of word order, classes of neighbours and blocks on likelihood and time.

    python scripts/reproduce_word_order.py [--quick] [--publish NAME] [--corpus FILE] [--epochs N]
        [--seeds N ...] [--only OBJECTIVE ...] [--contexts CONTEXT ...] [--lr X ...]

Trains each objective without --word-order, with it, with 63 --neighbor-classes as well, and in
blocks of 16 targets, in turn: a window of exactly 10 words to each side, no subsampling, 20
negative samples for `ns` and `nce`, 15 for `dcme`, 16 and 32 in blocks, default rates or those of
--lr, one thread. Scores the same sample of held-out lines, of a fiftieth of the corpus, after each
epoch, by the mean log-probability and by the log of the mean probability. Seconds are CPU time of
an epoch, the median of all. --publish keeps the runs in the file, too: a later call on the same
text with as many epochs adds its rows, rates and seeds, or replaces those that it repeats.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Sequence
from typing import Any

import peers
from reproduce_figure2 import NOISE, PLAIN, SETTING, Text, texts
from results import RESULTS, record, runs_of

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
FIRST = "`ns, with noise`", "mean of the window"  # what times are relative to
MEAN, MEAN_NOISE = "heldout_log_mean_probability", "heldout_log_mean_probability_with_noise"

Run = dict[str, Any]  # one training, as it stands in the published file


def measure(text: Text, options: TrainOptions) -> Run:
    """Return both likelihoods after each epoch, the epochs' CPU seconds, and those before."""
    begin = time.process_time()
    training = Trainer(text.ids, text.vocabulary.counts, resolved(options))
    before = time.process_time() - begin
    held = HeldOut(text.held_out, text.vocabulary.counts, training)
    epochs: list[tuple[float, float, float]] = []
    for epoch in range(options.epochs):
        start = time.process_time()
        training.epoch(epoch)
        spent = time.process_time() - start
        found = held.score()
        epochs.append((found.get(NOISE, found[PLAIN]), found.get(MEAN_NOISE, found[MEAN]), spent))
    mean_log, log_mean, seconds = ([round(x, 4) for x in one] for one in zip(*epochs, strict=True))
    return {"mean_log": mean_log, "log_mean": log_mean, "seconds": seconds, "before": before}


def train_all(text: Text, given: argparse.Namespace) -> list[Run]:
    """Train all rows by turns, seed by seed."""
    found = []
    for seed, name, context, rate in itertools.product(
        given.seeds, given.only, given.contexts, given.lr or [None]
    ):
        options = {**SETTING, **OBJECTIVES[name], **CONTEXTS[context], "lr": rate}
        if options.get("block"):
            options.pop("top_items", None)
        every = TrainOptions(**options, seed=seed, threads=1, epochs=given.epochs)
        row = [f"`{name}`", context + (f", lr {rate:g}" if rate else "")]
        found.append({"row": row, "seed": seed, "data": described(text), **measure(text, every)})
        print(found[-1], flush=True)
    return found


def described(text: Text) -> str:
    """Return what was trained on."""
    words = f"{len(text.vocabulary):,} words"
    return f"the first {len(text.ids):,} tokens of the development corpus, {words}"


def merged(old: list[Run], new: list[Run]) -> list[Run]:
    """Return the new runs after those old ones that they do not repeat.

    Old runs on other text, or with another number of epochs, are left out.
    """
    text, epochs = new[0]["data"], len(new[0]["seconds"])
    done = [(one["row"], one["seed"]) for one in new]
    like = [one for one in old if one["data"] == text and len(one["seconds"]) == epochs]
    return [one for one in like if (one["row"], one["seed"]) not in done] + new


def table(runs: list[Run]) -> tuple[list[str], list[list[str]]]:
    """Return the columns, and a row for each objective, context and rate."""
    by_row: dict[tuple[str, ...], list[Run]] = {}
    for one in runs:
        by_row.setdefault(tuple(one["row"]), []).append(one)
    spent = {
        name: statistics.median(s for one in found for s in one["seconds"])
        for name, found in by_row.items()
    }
    first, rows = spent.get(FIRST), []
    for name, found in by_row.items():
        mean_logs = [ranged(one) for one in zip(*(x["mean_log"] for x in found), strict=True)]
        log_mean = ranged([one["log_mean"][-1] for one in found])
        relative = f"{spent[name] / first:.2f}" if first else "-"
        before = statistics.median(one["before"] for one in found)
        cells = [str(len(found)), f"{spent[name]:.2f}", relative, f"{before:.1f}"]
        rows.append([*name, *mean_logs, log_mean, *cells])
    epochs = [f"epoch {i + 1}" for i in range(len(runs[0]["seconds"]))]
    measured = [*epochs, "log of the mean, last"]
    return ["objective", "context", *measured, "seeds", "CPU s", "time", "before, s"], rows


def ranged(figures: Sequence[float]) -> str:
    """Return the mean of the seeds, and the range if there is more than one."""
    mean = f"{statistics.mean(figures):.3f}"
    return f"{mean} ({min(figures):.3f} to {max(figures):.3f})" if len(figures) > 1 else mean


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
    path = RESULTS / f"{given.publish}.json" if given.publish else None
    found = train_all(text, given)
    runs = merged(runs_of(path), found)
    columns, rows = table(runs)
    for row in rows:
        print(" | ".join(row))
    if path:
        record(
            path, "Held-out likelihood by what the context has", columns, rows, runs,
            seeds="mean, and the range; median CPU seconds of an epoch, the same relative to `ns`, "
            "20 samples, mean of the window, and CPU seconds of counting and clustering "
            "neighbours, on a machine with other work",
            data=described(text),
        )  # fmt: skip


if __name__ == "__main__":
    main()
