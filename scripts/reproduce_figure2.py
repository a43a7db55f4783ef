"""Reproduce figure 2 of the paper: held-out likelihood of every objective by epochs and seconds.

    python scripts/reproduce_figure2.py [--quick] [--json FILE] [--rates FILE] [--folder FOLDER]

Two panels: all words of the corpus, and 3,000 words of its beginning, where the exact softmax is
the upper curve. Each method's rate is found by the same search: of rates a factor of two apart, the
best by likelihood after all epochs on a part of the text, and further while the best is at an edge
(one epoch on more text prefers higher rates, which are worse after five). Rates are kept in the
output (--json); --rates FILE takes them from there. A method whose results are already in the
--json file is not run again. Prints tables and draws figure2.png into --folder. Dimension 100,
windows of exactly 10 words to each side, no subsampling (held-out text is not subsampled), 20
clusters.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import peers
from numpy.typing import NDArray
from softmax import Softmax

from dcme_w2v.declarations import default_threads
from dcme_w2v.errors import DivergedError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.options import TrainOptions, VocabularyOptions
from dcme_w2v.text.encode import encode
from dcme_w2v.text.split import HeldOutLines
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.evaluate import eval_analogies as analogies
from dcme_w2v.words.evaluate import eval_similarity as similarity
from dcme_w2v.words.heldout import HeldOut, biases_of
from dcme_w2v.words.language_model import LanguageModel
from dcme_w2v.words.likelihood import likelihood, pieces
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors import Vectors

SCORED = 35_000  # held-out tokens
SETTING: dict[str, Any] = {
    "dim": 100,
    "window": 10,
    "window_mode": "fixed",
    "sample": 0.0,
}
DCME = resolved(TrainOptions(objective="dcme"))
DCME_LIKE = {name: getattr(DCME, name) for name in ("prior", "noise_power", "gradient")}
METHODS: dict[str, dict[str, Any]] = {
    "NS": {"objective": "ns", "negative": 20, "noise_power": 0.75},
    "NCE": {"objective": "nce", "negative": 20},
    "NCE, 10 draws": {"objective": "nce", "negative": 10},
    "NCE, as DCME": {"objective": "nce", "negative": 20, **DCME_LIKE},
    "DCME-Q0": {"objective": "dcme", "negative": 15, "top_items": 0},
    "DCME-Q10": {"objective": "dcme", "negative": 10, "top_items": 10},
    "DCME-Q10, paper": {"objective": "dcme", "top_items": 10, "dcme_update": "paper"},
    "softmax": {"objective": "softmax"},
}
FIRST_RATES = {  # where the search starts
    "NS": (0.05, 0.1),
    "NCE, as DCME": (0.05, 0.1),
    "DCME-Q0": (0.05, 0.1),
    "DCME-Q10": (0.05, 0.1),
    "DCME-Q10, paper": (0.0005, 0.001),
}
OTHER_RATES = (0.1, 0.2)
MOST_RATES = 6
SMALL = {"max_vocab": 3000, "tokens": 1_000_000}
NOISE = "heldout_log_probability_with_noise"
PLAIN = "heldout_log_probability"


@dataclass
class Text:
    """One panel's text."""

    name: str
    vocabulary: Vocabulary
    ids: NDArray[np.uint32]
    held_out: NDArray[np.uint32]
    figures: dict[str, Any] = field(default_factory=dict)

    def beginning(self, words: int) -> NDArray[np.uint32]:
        """Return the first sentences with a given number of tokens."""
        return next(pieces(self.ids, words)) if len(self.ids) else self.ids


def texts(corpus: str, quick: bool, only: str | None) -> Iterator[Text]:
    """Yield the panels' texts; --quick ones are a fifth as long."""
    held = HeldOutLines(0.02, 1)
    for name, limits in (("3,000 words", SMALL), ("all words", {})):
        if only and only != name:
            continue
        options = VocabularyOptions(max_vocab=limits.get("max_vocab"))
        with encode([corpus], options, threads=default_threads(), holdout=held) as found:
            ids = np.array(found.ids)
            length = limits.get("tokens", len(ids)) // (5 if quick else 1)
            ids = next(pieces(ids, length))
            yield Text(name, found.vocabulary, ids, found.held_out)


class Exact:
    """The exact softmax with the interface of `Trainer` that this script uses."""

    def __init__(self, text: Text, ids: NDArray[np.uint32], epochs: int, lr: float) -> None:
        setting = {name: SETTING[name] for name in ("dim", "window", "sample")}
        counts = text.vocabulary.counts
        self._model = Softmax(ids, counts, epochs=epochs, lr=lr, **setting)
        self._held = next(pieces(text.held_out, 35_000))
        self.input, self.output, self.epoch = (
            self._model.input,
            self._model.output,
            self._model.epoch,
        )

    def score(self) -> dict[str, float]:
        """Return the figures that `HeldOut` would."""
        found = likelihood(self._held, self.input, self.output, SETTING["window"])
        mean = "heldout_log_mean_probability"
        return {PLAIN: found.log_probability, mean: found.log_mean_probability}


def trainer(text: Text, ids: NDArray[np.uint32], method: str, epochs: int, lr: float) -> Any:
    """Return a trainer and its held-out scorer."""
    if method == "softmax":
        exact = Exact(text, ids, epochs, lr)
        return exact, exact
    options = resolved(TrainOptions(**SETTING, **METHODS[method], epochs=epochs, lr=lr))
    training = Trainer(ids, np.maximum(text.vocabulary.counts, 1), options)
    return training, HeldOut(text.held_out, text.vocabulary.counts, training, SCORED)


def run(text: Text, ids: NDArray[np.uint32], method: str, epochs: int, lr: float) -> Any:
    """Train; return the epochs' figures and the training, or None if it diverged.

    A likelihood far below that of the uniform distribution also counts as divergence.
    """
    training, held = trainer(text, ids, method, epochs, lr)
    figures, seconds = [], 0.0
    try:
        for epoch in range(epochs):
            start = time.perf_counter()
            training.epoch(epoch)
            seconds += time.perf_counter() - start
            figures.append({"epoch": epoch + 1, "seconds": seconds, **held.score()})
            if not best_of(figures[-1]) > -2 * np.log(len(text.vocabulary)):
                return None
    except DivergedError:
        return None
    return figures, training


def best_of(figures: dict[str, float]) -> float:
    """Return the likelihood by which rates are compared: for ns, the higher of the two."""
    return max(figures[PLAIN], figures.get(NOISE, figures[PLAIN]))


def search(text: Text, method: str, words: int, epochs: int) -> dict[str, float | None]:
    """Return the likelihood by rate; stops when the best is not at an edge, or at `MOST_RATES`."""
    ids, found = text.beginning(words), {}
    wanted = list(FIRST_RATES.get(method, OTHER_RATES))
    while wanted and len(found) < MOST_RATES:
        for rate in wanted:
            done = run(text, ids, method, epochs, rate)
            found[rate] = best_of(done[0][-1]) if done else None
            print(f"# {text.name}, {method}, lr {rate:g}: {found[rate]}", flush=True)
        good = {rate: value for rate, value in found.items() if value is not None}
        if not good:
            wanted = [min(found) / 2]
            continue
        best = max(good, key=lambda rate: good[rate])
        wanted = [rate for rate in (best / 2, best * 2) if rate not in found]
    return {f"{rate:g}": value for rate, value in sorted(found.items())}


def measure(text: Text, training: Any, method: str, data: Path) -> dict[str, float]:
    """Return the figures of the vectors at the end."""
    input, output = (np.ascontiguousarray(part) for part in (training.input, training.output))
    vectors, questions = Vectors(text.vocabulary, input), data / "analogies" / "questions-words.txt"
    chosen = {} if method == "softmax" else dataclasses.asdict(training.options)
    biases = biases_of(text.vocabulary.counts, chosen)
    model = LanguageModel(text.vocabulary, input, output, SETTING["window"], biases)
    found = model.analogy_likelihood(questions)
    found["analogies"] = analogies(vectors, questions).total.accuracy or 0.0
    try:
        found["ws353"] = similarity(vectors, data / "wordsim" / "ws353.txt").spearman
    except Exception:  # too few pairs among the words of a quick run
        found["ws353"] = float("nan")
    return found


def result(
    text: Text, method: str, searched: dict[str, float | None], epochs: int, data: Path
) -> dict[str, Any]:
    """Train at the best rate that does not diverge, and measure."""
    scored = {rate: value for rate, value in searched.items() if value is not None}
    lr = float(max(scored, key=lambda rate: scored[rate]))
    done = run(text, text.ids, method, epochs, lr)
    while done is None:
        lr /= 2
        print(f"# {text.name}: {method}: diverged, now with lr {lr:g}", flush=True)
        done = run(text, text.ids, method, epochs, lr)
    last = measure(text, done[1], method, data)
    return {"lr": lr, "search": searched, "epochs": done[0], "vectors": last}


def main() -> None:
    """Run the missing methods, print the tables, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", help="default: the development corpus")
    parser.add_argument("--quick", action="store_true", help="a fifth of the text, fewer epochs")
    parser.add_argument("--epochs", type=int, help="default: 5, quick: 2")
    parser.add_argument("--panel", choices=("3,000 words", "all words"), help="only this panel")
    parser.add_argument("--only", default="", help="only methods whose name contains this text")
    parser.add_argument("--search-words", type=int, default=2_000_000, help="words of the search")
    parser.add_argument(
        "--json", type=Path, help="save all figures to this file, and resume from it"
    )
    parser.add_argument("--rates", type=Path, help="take the rates from this output of --json")
    parser.add_argument("--folder", help="folder for figure2.png")
    given = parser.parse_args()
    data, folder = peers.development_data(), peers.work_folder(given.folder)
    corpus = given.corpus or str(peers.plain_corpus(folder))
    epochs = given.epochs or (2 if given.quick else 5)
    words = given.search_words // (5 if given.quick else 1)
    results = json.loads(given.json.read_text()) if given.json and given.json.exists() else {}
    rates = json.loads(given.rates.read_text()) if given.rates else results
    for text in texts(corpus, given.quick, given.panel):
        for method in METHODS:
            if given.only not in method or (method == "softmax" and text.name == "all words"):
                continue
            key = f"{text.name}: {method}"
            if key in results:
                continue
            searched = rates[key]["search"] if key in rates else search(text, method, words, epochs)
            results[key] = result(text, method, searched, epochs, data)
            print(f"# {key}: {results[key]['epochs'][-1]}", flush=True)
            if given.json:
                with atomic_write(given.json) as file:
                    file.write(json.dumps(results, indent=2).encode())
    print_tables(results)
    draw(results, folder / "figure2.png")


def print_tables(results: dict[str, Any]) -> None:
    """Print one row a method."""
    columns = "lr | epoch 1 | last epoch | log of mean | with noise | surrogate"
    print(f"| method | {columns} | seconds an epoch | on analogies | analogies | WS-353 |")
    print("|---" * 11 + "|")
    for name, found in results.items():
        first, last, vectors = found["epochs"][0], found["epochs"][-1], found["vectors"]
        values = [first[PLAIN], last[PLAIN], last["heldout_log_mean_probability"]]
        values += [last.get(NOISE), last.get("heldout_surrogate")]
        cells = ["" if value is None else f"{value:.3f}" for value in values]
        cells = [f"{found['lr']:g}", *cells, f"{last['seconds'] / last['epoch']:.1f}"]
        cells.append(f"{vectors['analogy_log_probability']:.3f}")
        cells += [f"{100 * vectors['analogies']:.1f} %", f"{vectors['ws353']:.3f}"]
        print(f"| {name} | {' | '.join(cells)} |")


def draw(results: dict[str, Any], path: Path) -> None:
    """Draw likelihood against epochs and against seconds, a row a panel."""
    try:
        import matplotlib
    except ImportError:
        print("no matplotlib: nothing drawn; pip install matplotlib")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys(name.partition(": ")[0] for name in results))
    figure, axes = plt.subplots(len(panels), 2, figsize=(11, 4 * len(panels)), squeeze=False)
    for name, found in results.items():
        panel, _, method = name.partition(": ")
        for axis, across in zip(axes[panels.index(panel)], ("epoch", "seconds"), strict=True):
            for key, style in ((PLAIN, "-"), (NOISE, "--")):
                points = [(row[across], row[key]) for row in found["epochs"] if key in row]
                label = method + (", noise added back" if key == NOISE else "")
                if points:
                    axis.plot(*zip(*points, strict=True), style, marker="o", label=label)
            axis.set(xlabel=across, ylabel="held-out log-probability", title=panel)
    axes[0][0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(f"drawn: {path}")


if __name__ == "__main__":
    main()
