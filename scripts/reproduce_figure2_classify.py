"""Figures 2a and 2c of Wang, Wang & Zhai (AAAI 2017) on a task of the same shape.

    python scripts/reproduce_figure2_classify.py [--quick] [--epochs 5] [--lbfgs] [--search]

Trains exact softmax (gd), DCME-Q10 and DCME-Q0, exactly Algorithm 1, NCE and NS on the development
data `wikipara` (162,460 documents of 1,236 classes, the top 30,000 words), and prints accuracy and
mean log-likelihood on the test documents by epoch and by seconds, and the seconds per epoch, with
those of the paper. `--lbfgs` adds the exact optimum, which takes minutes. `--search` tunes the
learning rates instead, in the same way for every objective: on a tenth of the training documents
held out, by accuracy after the last epoch.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import peers
from scipy.sparse import csr_matrix

from dcme_w2v.classify.dataset import numbers_of
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.fit import Labelled, fit
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions, resolved
from dcme_w2v.formats.documents import read_documents
from dcme_w2v.training.progress import Quiet

ROWS: dict[str, dict[str, Any]] = {
    "gd": {"objective": "gd"},
    "dcme-q10": {"objective": "dcme", "exact_clusters": 10},
    "dcme-q0": {"objective": "dcme", "exact_clusters": 0},
    "nce": {"objective": "nce"},
    "ns": {"objective": "ns"},
    "paper-q10": {"objective": "dcme", "dcme_update": "paper", "top_items": 10},
    "paper-q0": {"objective": "dcme", "dcme_update": "paper", "top_items": 0},
}
PAPER_SECONDS = {"dcme-q10": 9.50, "dcme-q0": 7.94, "nce": 6.21, "ns": 6.16, "gd": 165.91}
SEARCHED = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


class EpochLines(Quiet):
    """Prints every epoch."""

    def epoch(self, record: Any) -> None:
        """Print the figures."""
        print(f"#   {dict(record)}", flush=True)


def load(quick: bool) -> tuple[Labelled, Labelled, int]:
    """Return the training and the test documents and the number of classes."""
    data, parts = peers.development_data() / "wikipara", []
    text = TextFeatures(FeatureOptions())
    for name in ("train", "test"):
        documents = list(read_documents([str(data / f"{name}.tsv.xz")], form="tab"))
        if quick:
            documents = documents[::8]
        make = text.fit_transform if name == "train" else text.transform
        rows = make(document.text for document in documents)
        parts.append((rows, [document.labels for document in documents]))
    classes = sorted({label for labels in parts[0][1] for label in labels})
    train, test = (Labelled(rows, numbers_of(labels, classes)) for rows, labels in parts)
    return train, test, len(classes)


def run(train: Labelled, test: Labelled, classes: int, **options: Any) -> list[dict[str, Any]]:
    """Train and return every epoch's figures, with the seconds of learning up to its end."""
    chosen = resolved(ClassifyOptions(**options), classes)
    print(f"# {options}: lr {chosen.lr:g}", flush=True)
    _, epochs = fit(train, classes, chosen, test, reporter=EpochLines())
    total = 0.0
    for record in epochs:
        total += record["seconds"]
        record["total_seconds"] = total
    return epochs


def search(train: Labelled, classes: int, common: dict[str, Any]) -> dict[str, dict[float, float]]:
    """Return each objective's held-out accuracy by learning rate."""
    held = np.random.default_rng(1).random(len(train.labels)) < 0.1
    learn, test = (
        Labelled(csr_matrix(train.matrix[part]), [train.labels[i] for i in np.flatnonzero(part)])
        for part in (~held, held)
    )
    found: dict[str, dict[float, float]] = {}
    for name, options in ROWS.items():
        found[name] = {}
        for rate in SEARCHED:
            epochs = run(learn, test, classes, lr=rate, **options, **common)
            found[name][rate] = epochs[-1]["heldout_accuracy"]
    return found


def print_search(found: dict[str, dict[float, float]]) -> None:
    """Print accuracies by rate."""
    print("| rate | " + " | ".join(found) + " |\n|" + "---|" * (len(found) + 1))
    for rate in SEARCHED:
        print(f"| {rate:g} | " + " | ".join(f"{found[n][rate]:.4f}" for n in found) + " |")


def print_results(results: dict[str, list[dict[str, Any]]]) -> None:
    """Print the tables of 2a and 2c, and the seconds to the accuracy of the exact softmax."""
    count = len(results["gd"])
    print(
        "\n| accuracy (log-likelihood) after epoch |" + "".join(f" {i + 1} |" for i in range(count))
    )
    print("|" + "---|" * (count + 1))
    for name, epochs in results.items():
        cells = [f"{e['heldout_accuracy']:.4f} ({e['heldout_log_likelihood']:.3f})" for e in epochs]
        shown = cells if len(cells) <= count else [*cells[: count - 2], "…", cells[-1]]
        print(f"| {name} | " + " | ".join(shown) + " |")
    base = {name: _seconds(results[name]) for name in ("gd", "ns")}
    goal = results["gd"][-1]["heldout_accuracy"] - 0.005
    print("\n| | seconds an epoch | gd's over it | it over ns's | the paper's (two ratios) "
          "| seconds to gd's accuracy - 0.005 |\n|---|---|---|---|---|---|")  # fmt: skip
    for name, epochs in results.items():
        seconds, paper, published = _seconds(epochs), PAPER_SECONDS.get(name), ""
        if paper:
            published = (
                f"{paper} ({PAPER_SECONDS['gd'] / paper:.1f}, {paper / PAPER_SECONDS['ns']:.2f})"
            )
        there = [e["total_seconds"] for e in epochs if e["heldout_accuracy"] >= goal]
        shown = [
            f"{seconds:.2f}",
            f"{base['gd'] / seconds:.1f}",
            f"{seconds / base['ns']:.2f}",
            published,
        ]
        print(f"| {name} | {' | '.join(shown)} | {f'{there[0]:.2f}' if there else 'never'} |")


def _seconds(epochs: list[dict[str, Any]]) -> float:
    """Return the median seconds of an epoch; the first one orders the classes as well."""
    return float(np.median([record["seconds"] for record in epochs[1:] or epochs]))


def main() -> None:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="*", help="these rows (gd and ns always)")
    parser.add_argument("--quick", action="store_true", help="an eighth of the documents")
    parser.add_argument("--lbfgs", action="store_true", help="the exact optimum as well")
    parser.add_argument("--l2", type=float, default=1e-7, help="of --lbfgs")
    parser.add_argument("--search", action="store_true", help="search learning rates")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    given = parser.parse_args()
    train, test, classes = load(given.quick)
    common = {"epochs": given.epochs, "threads": given.threads, "seed": 1}
    if given.search:
        found: Any = search(train, classes, common)
        print_search(found)
    else:
        chosen = {n: o for n, o in ROWS.items() if not given.only or n in (*given.only, "gd", "ns")}
        found = {name: run(train, test, classes, **o, **common) for name, o in chosen.items()}
        if given.lbfgs:
            exact = {**common, "epochs": 100, "solver": "lbfgs", "l2": given.l2}
            found["lbfgs"] = run(train, test, classes, **exact)
        print_results(found)
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
