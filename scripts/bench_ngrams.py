"""Compare held-out likelihoods of --preset likelihood with those of n-gram models.

    python scripts/bench_ngrams.py [--quick] [--publish] [--corpus FILE] [--epochs N] [--seeds N]

An n-gram model predicts a word from the words before it, `dcme` from both sides: this shows how far
apart they are, not which is better. All score the same held-out tokens, of a fiftieth of the
corpus, over the same vocabulary; out-of-vocabulary tokens are dropped. `dcme` has the options of
--preset likelihood and one thread, and is scored after each epoch.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
import peers
from kneser_ney import KneserNey
from numpy.typing import NDArray
from reproduce_figure2 import SETTING, Text, texts
from results import RESULTS, record

from dcme_w2v.options import TrainOptions
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.heldout import HeldOut, evenly_spaced
from dcme_w2v.words.likelihood import pieces
from dcme_w2v.words.presets import PRESETS, WITHOUT_BLOCKS
from dcme_w2v.words.trainer import Trainer

SCORED = 20_000
ORDERS = (2, 3, 5)
ALONE: dict[str, Any] = {"block": 1, **WITHOUT_BLOCKS}
CONTEXTS: dict[str, dict[str, Any]] = {
    "mean of 10 words to each side": {"word_order": False, "neighbor_classes": 0, **ALONE},
    "and both neighbours": {"neighbor_classes": 0, **ALONE},
    "and their classes": ALONE,
    "in blocks of 16, 16 samples": {"negative": 16},
    "in blocks of 16, 32 samples": {},  # the preset
    "the same without classes": {"neighbor_classes": 0},
}


def main() -> None:
    """Run all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="default: the development corpus")
    parser.add_argument("--quick", action="store_true", help="a fifth of the text")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--publish", action="store_true", help="write docs/results/ngrams.json")
    parser.add_argument("--folder", help="where the decompressed corpus goes")
    given = parser.parse_args()
    corpus = given.corpus or str(peers.plain_corpus(peers.work_folder(given.folder)))
    (text,) = texts(corpus, given.quick, "all words")
    counts, chosen = text.vocabulary.counts, evenly_spaced(text.held_out, SCORED)
    held = np.concatenate([one for one in pieces(chosen, 1) if len(one) > 1])
    rows = []
    for order in ORDERS:
        logs = np.log(KneserNey(text.ids, len(counts), order).probabilities(held))
        blank = [""] * (given.epochs - 1)
        rows.append([f"Kneser-Ney, {order}-gram", f"{order - 1} words before", *blank])
        rows[-1] += [f"{logs.mean():.3f}", ""]
        print(" | ".join(rows[-1]), flush=True)
    figures: dict[str, list[list[float]]] = {name: [] for name in CONTEXTS}
    seconds: dict[str, list[float]] = {name: [] for name in CONTEXTS}
    for seed in range(1, given.seeds + 1):
        for name, found in alternating(text, held, seed, given.epochs, seconds).items():
            figures[name].append(found)
    for name, runs in figures.items():
        cells = [
            f"{statistics.mean(one):.3f} ({min(one):.3f} to {max(one):.3f})"
            for one in zip(*runs, strict=True)
        ]
        ratio = statistics.median(seconds[name]) / statistics.median(next(iter(seconds.values())))
        rows.append(["`dcme`", name, *cells, f"{ratio:.2f}"])
        print(" | ".join(rows[-1]), flush=True)
    if given.publish:
        epochs = [f"epoch {number + 1}" for number in range(given.epochs)]
        record(
            RESULTS / "ngrams.json",
            "Mean log-probability of held-out tokens: n-grams and --preset likelihood",
            ["model", "sees", *epochs, "time"], rows,
            seeds=f"1 to {given.seeds} (mean, and the range); CPU time of an epoch relative to the "
            "first row of dcme, by turns on a machine with other work, without counting classes",
            data=f"the first {len(text.ids):,} tokens of the development corpus, "
            f"{len(text.vocabulary):,} words; {len(held):,} held-out tokens",
        )  # fmt: skip


def alternating(
    text: Text,
    held: NDArray[np.uint32],
    seed: int,
    epochs: int,
    seconds: dict[str, list[float]],
) -> dict[str, list[float]]:
    """Train all contexts by turns, epoch by epoch; return figures and append CPU seconds."""
    counts = text.vocabulary.counts
    preset = {**PRESETS["likelihood"], **SETTING, "seed": seed, "threads": 1, "epochs": epochs}
    trainings = {
        name: Trainer(text.ids, counts, resolved(TrainOptions(**{**preset, **more})))
        for name, more in CONTEXTS.items()
    }
    figures: dict[str, list[float]] = {name: [] for name in CONTEXTS}
    for epoch in range(epochs):
        for name, training in trainings.items():
            start = time.process_time()
            training.epoch(epoch)
            seconds[name].append(time.process_time() - start)
            scored = HeldOut(held, counts, training, len(held)).score()
            figures[name].append(scored["heldout_log_probability"])
            print(name, seed, epoch + 1, figures[name][-1], seconds[name][-1], flush=True)
    return figures


if __name__ == "__main__":
    main()
