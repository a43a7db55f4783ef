"""Search the default learning rates: each model and objective over a small grid, on one corpus.

    python scripts/search_rates.py [--corpus FILE] [--only TEXT] [--epochs 5]

Every fiftieth sentence is held out. Prints, for each rate, analogies and word similarity and the
held-out log-probability of the exact softmax (for ns with its noise added back).
"""

from __future__ import annotations

import argparse
import dataclasses
from itertools import product
from pathlib import Path

import numpy as np
import peers
from numpy.typing import NDArray

from dcme_w2v.declarations import default_threads
from dcme_w2v.errors import DivergedError
from dcme_w2v.options import TrainOptions, VocabularyOptions
from dcme_w2v.text.encode import encode
from dcme_w2v.words.defaults import has_context, resolved
from dcme_w2v.words.evaluate import eval_analogies as analogies
from dcme_w2v.words.evaluate import eval_similarity as similarity
from dcme_w2v.words.heldout import biases_of
from dcme_w2v.words.likelihood import likelihood
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors import Vectors

GRID = {
    "ns": {"lr": (0.025, 0.05, 0.075, 0.1), "gradient": ("word2vec",)},
    "nce": {"lr": (0.1, 0.2, 0.4), "gradient": ("exact", "word2vec")},
    "dcme": {"lr": (0.1, 0.2, 0.4), "gradient": ("exact", "word2vec")},
    "hs": {"lr": (0.025, 0.05, 0.1), "gradient": ("word2vec", "exact")},
}
HELD_EVERY = 50


def split(ids: NDArray[np.uint32]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the text without, and only, every fiftieth sentence."""
    ends = np.cumsum(ids >> np.uint32(31))
    held = (ends - (ids >> np.uint32(31))) % HELD_EVERY == HELD_EVERY - 1
    return ids[~held], ids[held]


def main() -> None:
    """Run the search and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="text in any form that `dcme-w2v train` reads")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")
    parser.add_argument("--epochs", type=int, default=5)
    given = parser.parse_args()
    data = peers.development_data()
    corpus = given.corpus or str(data / "corpora" / "enwiki17.txt.xz")
    print("| model | gradient | lr | analogies | WS-353 | SimLex | held-out log-probability |")
    print("|---|---|---|---|---|---|---|")
    with encode([corpus], VocabularyOptions(), threads=default_threads()) as encoded:
        train, held = split(np.asarray(encoded.ids))
        for model, objective in product(("cbow", "skipgram"), GRID):
            for gradient, lr in product(GRID[objective]["gradient"], GRID[objective]["lr"]):
                name = f"{model} {objective}"
                if given.only in name and (model == "cbow" or gradient == "word2vec"):
                    options = TrainOptions(
                        model=model, objective=objective, gradient=str(gradient), lr=float(lr),
                        epochs=given.epochs,
                    )  # fmt: skip
                    figures = measure(encoded.vocabulary, train, held, resolved(options), data)
                    print(f"| {name} | {gradient} | {lr} | {figures} |", flush=True)


def measure(words, train, held, options: TrainOptions, data: Path) -> str:  # type: ignore[no-untyped-def]
    """Train with these options and return the figures as cells of a table."""
    counts = np.maximum(words.counts, 1)
    training = Trainer(train, counts, options)
    try:
        for epoch in range(options.epochs):
            training.epoch(epoch)
    except DivergedError:
        return "diverged | | |"
    vectors = Vectors(words, np.ascontiguousarray(training.input))
    right = analogies(vectors, data / "analogies" / "questions-words.txt").total.accuracy
    pairs = [
        similarity(vectors, data / "wordsim" / f"{name}.txt").spearman
        for name in ("ws353", "simlex999")
    ]
    quality = f"{100 * right:.1f} % | {pairs[0]:.3f} | {pairs[1]:.3f}"
    if not has_context(options):
        return f"{quality} | -"
    bias = biases_of(counts, dataclasses.asdict(options))[-1]
    found = likelihood(held[:35_000], training.input, training.output, options.window, bias)
    return f"{quality} | {found.log_probability:.3f}"


if __name__ == "__main__":
    main()
