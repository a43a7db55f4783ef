"""Measure DCME's settings: likelihood and time by clusters K, top items Q, beta, samples, prior.

    python scripts/tune_dcme.py [--quick] [--json FILE] [--corpus FILE] [--full]

Changes one setting at a time from the defaults; --full adds all combinations of the extremes. A row
whose figures are already in the --json file is not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import product
from pathlib import Path
from typing import Any

import peers
from reproduce_figure2 import PLAIN, SCORED, SETTING, Text, texts

from dcme_w2v.errors import DivergedError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.options import TrainOptions
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.heldout import HeldOut
from dcme_w2v.words.trainer import Trainer

RANGES: dict[str, tuple[float, ...]] = {
    "clusters": (20, 50, 100, 200, 500),
    "top_items": (0, 5, 10, 20, 50),
    "beta": (0.01, 0.03, 0.1, 0.3, 1.0),
    "negative": (1, 2, 5, 10, 20),
    "prior": (0.0, 0.5, 0.75, 1.0),
    "noise_power": (0.5, 0.75, 1.0),
}
DEFAULTS = resolved(TrainOptions(objective="dcme"))
BASE: dict[str, float] = {name: getattr(DEFAULTS, name) for name in RANGES}


def rows(full: bool) -> list[dict[str, float]]:
    """Return the settings to run: the defaults, one change at a time, and all extremes."""
    found = [dict(BASE)]
    for name, values in RANGES.items():
        found += [{**BASE, name: value} for value in values]
    if full:
        ends = [(values[0], values[-1]) for values in RANGES.values()]
        found += [dict(zip(RANGES, values, strict=True)) for values in product(*ends)]
    return list({json.dumps(row): row for row in found}.values())


def measure(text: Text, row: dict[str, Any], epochs: int) -> dict[str, float] | None:
    """Train with a row's settings; None if it diverged."""
    options = TrainOptions(objective="dcme", **SETTING, epochs=epochs, **row)
    training = Trainer(text.ids, text.vocabulary.counts, resolved(options))
    held, seconds = HeldOut(text.held_out, text.vocabulary.counts, training, SCORED), 0.0
    try:
        for epoch in range(epochs):
            start = time.perf_counter()
            training.epoch(epoch)
            seconds += time.perf_counter() - start
    except DivergedError:
        return None
    return {"seconds": seconds / epochs, **held.score()}


def main() -> None:
    """Run the missing rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="default: the development corpus")
    parser.add_argument("--quick", action="store_true", help="a fifth of the text")
    parser.add_argument("--full", action="store_true", help="all combinations of the extremes, too")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument(
        "--json", type=Path, help="save all figures to this file, and resume from it"
    )
    parser.add_argument("--folder", help="folder for the decompressed corpus")
    given = parser.parse_args()
    folder = peers.work_folder(given.folder)
    corpus = given.corpus or str(peers.plain_corpus(folder))
    results = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    (text,) = texts(corpus, given.quick, "all words")
    figures = "log-probability | log of mean | gap | largest | used | s"
    print(f"| K | Q | beta | draws | prior | noise | {figures} |")
    print("|---" * 12 + "|")
    for row in rows(given.full):
        key = json.dumps(row)
        if key not in results:
            results[key] = measure(text, row, given.epochs)
            if given.json:
                with atomic_write(given.json) as file:
                    file.write(json.dumps(results, indent=2).encode())
        print(table_row(row, results[key]), flush=True)


def table_row(row: dict[str, float], found: dict[str, float] | None) -> str:
    """Return one row of the table."""
    settings = " | ".join(f"{value:g}" for value in row.values())
    if found is None:
        return f"| {settings} | diverged | | | | | |"
    names = (PLAIN, "heldout_log_mean_probability", "heldout_gap", "heldout_largest_cluster")
    cells = [f"{found[name]:.3f}" for name in names]
    cells += [f"{found['heldout_clusters_used']:.0f}", f"{found['seconds']:.1f}"]
    return f"| {settings} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
