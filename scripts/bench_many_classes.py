"""Compare objectives from 200 to 100,000 classes: time, accuracy, log-likelihood, memory.

    python scripts/bench_many_classes.py [--classes 200 1000 5000 24001 100000] [--documents N]
        [--held-out 2000] [--epochs 2] [--threads 2] [--seeds 1] [--only METHOD ...] [--json FILE]

Up to 24,001 classes, a class is an article of the development corpus `enwiki17` and a document one
of its paragraphs; of each article with four paragraphs or more, one is held out. Above, a class is
a word and a document the four words before it, hashed. The runs of a number of classes alternate,
each in a process of its own; seconds are CPU seconds: of set-up (before the first epoch and after
the last) and of the epochs, which give the documents a second. A FILE that exists keeps its rows of
other numbers of classes. fastText runs where it is
installed (`pip install dcme-w2v[bench]`), on the words, with 100 dimensions, in 25 epochs.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import peers
import results

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.fit import Labelled, fit, measure
from dcme_w2v.classify.metrics import Measures
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions, resolved
from dcme_w2v.classify.top import most_probable
from dcme_w2v.classify.trainer import core_documents
from dcme_w2v.training.progress import Options, Quiet

ARTICLES, PARAGRAPHS = 24_001, 4  # minimum number of paragraphs of an article
WORDS_BEFORE, BUCKETS = 4, 4096
HELD_OUT = 2000  # maximum number of measured documents, by default
METHODS: dict[str, dict[str, Any]] = {
    "gd": {"objective": "gd"},
    "dcme, 80 clusters": {"objective": "dcme"},
    "dcme, 2√classes": {"objective": "auto", "exact_clusters": 10},
    "nce": {"objective": "nce"},
    "ns": {"objective": "ns"},
    "fastText, hs": {"loss": "hs"},
    "fastText, softmax": {"loss": "softmax"},
}
FASTTEXT = {"epoch": 25, "lr": 0.25, "dim": 100}  # with two epochs it has learned nothing
SOFTMAX_CLASSES = 1000  # maximum for fastText, which takes hours above
Texts = list[tuple[str, bytes]]  # label and text
COLUMNS = ("classes", "documents", "epochs", "method", "set-up, CPU s", "epochs, CPU s",
           "documents/s: it / gd", "writing, CPU s", "accuracy", "top 5", "log-likelihood",
           "peak, tables")  # fmt: skip


class Clock(Quiet):
    """Notes the CPU seconds of the process at the beginning and after every epoch."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def stage(
        self, name: str, total: int | None, unit: str, options: Options | None = None
    ) -> None:
        """Note the time at which the epochs begin."""
        self.times.append(time.process_time())

    def epoch(self, record: Mapping[str, Any]) -> None:
        """Note the end of an epoch."""
        self.times.append(time.process_time())


def lines(name: str) -> Iterator[bytes]:
    """Yield the lines of a file of the corpora."""
    with lzma.open(peers.development_data() / "corpora" / name) as file:
        for line in file:
            yield line.rstrip(b"\n")


def articles(classes: int) -> tuple[Texts, Texts]:
    """Return paragraphs of the first `classes` articles that have enough, and one held out each."""
    names = [line.decode() for line in lines("enwiki17.articles.xz")]
    counts = Counter(names)
    eligible = [name for name in dict.fromkeys(names) if counts[name] >= PARAGRAPHS][:classes]
    chosen, seen = set(eligible), Counter[str]()
    names = names[: len(names) - names[::-1].index(eligible[-1])]
    train: Texts = []
    test: Texts = []
    for name, text in zip(names, lines("enwiki17.txt.xz"), strict=False):
        if name in chosen:
            seen[name] += 1
            (test if seen[name] == PARAGRAPHS - 1 else train).append((name, text))
    return train, test


def next_words(classes: int, count: int, held_out: int) -> tuple[Texts, Texts]:
    """Return the words before one of the `classes` most frequent, some thousand held out."""
    frequent = Counter[bytes]()
    for line in lines("enwiki17.txt.xz"):
        frequent.update(line.split())
    known = {word for word, _ in frequent.most_common(classes)}
    found: Texts = []
    for line in lines("enwiki17.txt.xz"):
        words = line.split()
        for i in range(WORDS_BEFORE, len(words), 7):
            if words[i] in known:
                before = words[i - WORDS_BEFORE : i]
                text = b" ".join(b"%d_%s" % (j, word) for j, word in enumerate(before))
                found.append((words[i].decode(), text))
    # a document of each class, so that all classes occur
    first = dict(reversed(found))
    order = np.random.default_rng(0).permutation(len(found))
    some = [found[i] for i in order[: max(0, count - len(first)) + held_out]]
    return [*first.items(), *some[held_out:]], some[:held_out]


def read(
    classes: int, count: int | None, seed: int, held_out: int = HELD_OUT
) -> tuple[Texts, Texts]:
    """Return documents to learn from, and documents to measure by."""
    train, test = (
        articles(classes) if classes <= ARTICLES else next_words(classes, count or 10**6, held_out)
    )
    order = np.random.default_rng(seed).permutation(len(train))
    train = [train[i] for i in order[: count if classes <= ARTICLES else None]]
    names = {label for label, _ in train}
    test = [one for one in test if one[0] in names]
    step = max(1, len(test) // held_out)
    return train, list(islice(test[::step], held_out))


def vectors(
    train: Texts, test: Texts, classes: int
) -> tuple[TextFeatures, list[str], Labelled, Labelled]:
    """Return the features, the names of the classes, and both sets of documents as vectors."""
    names = sorted({label for label, _ in train})
    number = {name: i for i, name in enumerate(names)}
    hashing = None if classes <= ARTICLES else BUCKETS
    tokens = "words" if hashing is None else "spaces"
    text = TextFeatures(FeatureOptions(hashing=hashing, tokens=tokens))
    learned = Labelled(
        text.fit_transform(one for _, one in train), [[number[label]] for label, _ in train]
    )
    held = Labelled(text.transform(one for _, one in test), [[number[label]] for label, _ in test])
    return text, names, learned, held


def one_run(method: str, args: argparse.Namespace) -> dict[str, Any]:
    """Train and measure in this process."""
    classes, seed = args.classes[0], args.seeds[0]
    train, test = read(classes, args.documents, seed, args.held_out)
    found: dict[str, Any] = {"documents": len(train)}
    found["classes"] = len({label for label, _ in train})
    if method.startswith("fastText"):
        return found | fasttext_run(METHODS[method], train, test, args)
    text, names, learned, held = vectors(train, test, classes)
    given = ClassifyOptions(epochs=args.epochs, threads=args.threads, seed=seed, **METHODS[method])
    options = resolved(given, len(names))
    if method == "dcme, 2√classes" and options.class_clusters == 80:
        return found | {"same": "dcme, 80 clusters"}
    del train, test
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    clock = Clock()
    weights, _ = fit(learned, len(names), options, reporter=clock)
    found["epochs"] = clock.times[-1] - clock.times[0]
    found["setup"] = time.process_time() - start - found["epochs"]
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    found["tables"] = peak / sum(table.nbytes for table in weights.tables.values())
    start = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        Classifier(names, weights, text, options, False).save(Path(folder) / "model")
    found["writing"] = time.process_time() - start
    start = time.process_time()
    for _ in most_probable(weights, core_documents(held.matrix), 5, args.threads):
        pass
    found["prediction"] = (time.process_time() - start) / len(held.labels) * 1000
    return measure(weights, held, Measures(len(names), False), args.threads) | found


def fasttext_run(
    options: dict[str, Any], train: Texts, test: Texts, args: argparse.Namespace
) -> dict[str, Any]:
    """Train and measure fastText; its labels have no spaces."""
    import fasttext

    if options["loss"] == "softmax" and args.classes[0] > SOFTMAX_CLASSES:
        return {}
    number = {label: f"__label__{i}" for i, label in enumerate(dict.fromkeys(a for a, _ in train))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.txt"
        path.write_bytes(b"".join(number[a].encode() + b" " + t + b"\n" for a, t in train))
        start = time.process_time()
        model = fasttext.train_supervised(
            str(path), thread=args.threads, verbose=0, **FASTTEXT, **options
        )
        seconds = time.process_time() - start
    accuracy, top, log_p = [], [], []
    for label, text in test:
        # its Python interface uses an argument that numpy 2 rejects
        found = model.f.predict(text.decode() + "\n", min(len(number), 5000), 0.0, "strict")
        p, labels = zip(*found, strict=True)
        accuracy.append(labels[0] == number[label])
        top.append(number[label] in labels[:5])
        if len(labels) == len(number):
            log_p.append(np.log(max(1e-12, p[labels.index(number[label])])))
    mean = {"log_likelihood": float(np.mean(log_p))} if log_p else {}
    return {"epochs": seconds, "accuracy": np.mean(accuracy), "top5_accuracy": np.mean(top)} | mean


def run_apart(method: str, classes: int, seed: int, args: argparse.Namespace) -> dict[str, Any]:
    """Return what `one_run` returns in a process of its own."""
    flags = ["--one", method, "--classes", classes, "--seeds", seed, "--epochs", args.epochs]
    flags += ["--threads", args.threads, "--held-out", args.held_out]
    flags += ["--documents", args.documents] if args.documents else []
    command = [sys.executable, __file__, *map(str, flags)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"ended with {done.returncode}"]
        print(f"{method}: {said[-1]}", file=sys.stderr)
        return {}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rows_of(runs: dict[str, list[dict[str, Any]]], epochs: int) -> list[list[str]]:
    """Return the medians of one number of classes as rows of the table."""
    rows = []

    def median(method: str, name: str) -> float | None:
        found = [run[name] for run in runs.get(method, []) if name in run]
        return statistics.median(found) if found else None

    exact = median("gd", "epochs")
    for method, found in runs.items():
        seconds, setup = median(method, "epochs"), median(method, "setup")
        if seconds is None:
            continue
        cells = [f"{found[0]['classes']:,}", f"{found[0]['documents']:,}", f"{epochs}", method]
        cells += ["" if setup is None else f"{setup:.2f}", f"{seconds:.2f}"]
        cells.append(f"{exact / seconds:.1f}" if exact else "")
        for name, form in (
            ("writing", ".1f"), ("accuracy", ".3f"), ("top5_accuracy", ".3f"),
            ("log_likelihood", ".2f"), ("tables", ".2f"),
        ):  # fmt: skip
            value = median(method, name)
            cells.append("" if value is None else format(value, form))
        rows.append(cells)
    return rows


def kept(path: Path, classes: set[str]) -> tuple[list[list[str]], dict[str, str]]:
    """Return the rows of other numbers of classes of a file, and the commands of all its rows."""
    if not path.exists():
        return [], {}
    table = json.loads(path.read_text(encoding="utf-8"))
    rows = [row for row in table["rows"] if row[0] not in classes]
    own = shlex.join(["python", *sys.argv])
    commands = [one for one in table["command"].split("; ") if one != own]
    return rows, {"command": "; ".join([*commands, own])}


def main() -> None:
    """Run all methods at each number of classes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", type=int, nargs="+", default=[200, 1000, 5000, 24001, 100_000])
    parser.add_argument(
        "--documents",
        type=int,
        help="learn from so many, drawn at random (above 24,001 classes: and one of each class)",
    )
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--held-out", type=int, default=HELD_OUT, help="maximum of documents")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--one", choices=METHODS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(one_run(args.one, args)))
        return
    table: list[list[str]] = []
    for classes in args.classes:
        runs: dict[str, list[dict[str, Any]]] = {}
        for seed in args.seeds:
            for method in args.only:
                found = run_apart(method, classes, seed, args)
                if found:
                    runs.setdefault(method, []).append(found)
                    print(classes, seed, method, found, file=sys.stderr, flush=True)
        table += rows_of(runs, args.epochs)
        if args.json:
            known, before = kept(args.json, {row[0] for row in table})
            results.record(
                args.json, "Classification: objectives by the number of classes",
                COLUMNS, known + table,
                seeds=", ".join(map(str, args.seeds)), **before,
                data=f"paragraphs of enwiki17 by article, above {ARTICLES:,} classes the next word",
            )  # fmt: skip
    print(results.markdown_table({"columns": list(COLUMNS), "rows": table}))


if __name__ == "__main__":
    main()
