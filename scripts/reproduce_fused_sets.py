"""Few labels on sets built by this script: headings, code, languages; 4 to 150 classes.

    python scripts/reproduce_fused_sets.py [--seeds 3] [--json FILE] [--sets NAME ...] [--publish]

Maximum entropy, self-training, `fuse fit` at its defaults ("teach" up to 49 labels a class, the
choice from 50 on) and its `teach`, with 10 and 50 labels a class; the other training documents, at
most 6,000, are unlabelled. No option was tuned on these sets. They are made from the development
data, from the source of Python's library and from the translations that are installed on this
machine; a set that cannot be made is skipped with a message.
"""

from __future__ import annotations

import argparse
import functools
import gettext
import lzma
import re
import statistics
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import document_data as data
import numpy as np
import peers
import reproduce_fused as fused
import results

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.few_labels.fit import fit, fit_final

UNLABELLED, TESTED = 6000, 3000
COUNTS = (10, 50)
METHODS = ("maxent", "self-training", "teach", "fuse fit")
LOCALES = Path("/usr/share/locale")

Texts = list[tuple[str, str]]  # label and text


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="keep the figures here, and continue from them")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--counts", nargs="+", type=int, default=COUNTS, help="labels a class")
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--publish", action="store_true", help="write docs/results/")
    given = parser.parse_args()
    kept = data.Results(given.json)
    made = {} if given.publish else {name: SETS[name]() for name in given.sets}
    for name in [name for name, texts in made.items() if not texts]:
        print(f"# {name}: skipped, its data is missing")
        del made[name]
    for seed in range(given.seeds):
        for name, texts in made.items():
            for count in given.counts:
                run(kept, name, texts, count, seed, given.methods)
    rows = [row for name in SETS for row in table(kept, name)]
    columns = ["set", "classes", "labels a class", *METHODS]
    path = results.RESULTS / "fused-sets.json"
    if given.publish:
        rows = results.with_published(path, columns, rows, keys=3)
    print("\n".join(" | ".join(row) for row in rows))
    if given.publish:
        results.record(
            path,
            "Few labels on sets made here: accuracy, %",
            columns,
            rows,
            seeds="0, 1, 2 (mean ± standard deviation); 0 where there is none",
            data="20 Newsgroups, Reuters, wikipara; Python's library; installed translations",
        )


def run(
    kept: data.Results, name: str, texts: Texts, count: int, seed: int, methods: Sequence[str]
) -> None:
    """Compute the figures of one set, number of labels and seed."""
    problem = problem_of(texts, count, seed)

    def right(method: str) -> dict[str, float]:
        start = time.monotonic()
        if method in ("maxent", "self-training"):
            found = fit_final(fused.data_of(problem, seed, {}), method)
        else:
            options = {} if method == "teach" else {"choose": None}
            found = fit(fused.data_of(problem, seed, options))
        figure = fused.decide(problem, found.weights, found.predicts_binary)
        seconds = round(time.monotonic() - start, 1)
        return {"right": figure, "seconds": seconds, "classes": problem.classes}

    for method in methods:
        kept.get(f"{name}: {count}: {method}", seed, functools.partial(right, method))


def table(kept: data.Results, name: str) -> list[list[str]]:
    """Return the rows of a set."""
    rows = []
    for count in COUNTS:
        cells, classes = [], 0
        for method in METHODS:
            own = list(kept.figures.get(f"{name}: {count}: {method}", {}).values())
            if not own:
                cells.append("-")
                continue
            classes = int(own[0]["classes"])
            values = [one["right"] for one in own]
            spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
            cells.append(f"{statistics.mean(values):.1f}{spread}")
        if set(cells) != {"-"}:
            rows.append([name, str(classes), str(count), *cells])
    return rows


def problem_of(texts: Texts, count: int, seed: int) -> fused.Problem:
    """Divide texts into labelled, unlabelled and test documents."""
    random = np.random.default_rng(seed)
    order = random.permutation(len(texts))
    chosen = order[: TESTED + UNLABELLED + count * len({label for label, _ in texts})]
    names = sorted({texts[i][0] for i in chosen})
    labels = np.array([names.index(texts[i][0]) for i in chosen])
    tested = min(TESTED, len(chosen) // 4)
    place = np.arange(tested, len(chosen))
    own = [place[labels[place] == c][:count] for c in range(len(names))]
    labelled = np.concatenate(own)
    unlabelled = np.setdiff1d(place, labelled)[:UNLABELLED]
    rows = TextFeatures(FeatureOptions()).fit_transform(
        texts[chosen[i]][1].encode() for i in (*range(tested), *labelled, *unlabelled)
    )
    every = [[int(label)] for label in labels]
    test = rows[:tested], every[:tested]
    train = rows[tested:], [every[i] for i in (*labelled, *unlabelled)]
    return fused.problem_of(
        train, test, np.arange(len(labelled)), np.arange(len(labelled), len(train[1]))
    )


# ---- the sets ----


def newsgroups() -> Texts:
    """Return group and text of 20 Newsgroups, both halves."""
    halves = data.load("20news")
    return [
        (own[0], text) for half in halves for own, text in zip(half.labels, half.raw, strict=True)
    ]


def headings() -> Texts:
    """Return the subjects of 20 Newsgroups, of 20 classes: a few words each."""
    found = []
    for label, text in newsgroups():
        subject = re.search(r"Subject: *(?:Re: *)*(.*?) (?:[A-Z][A-Za-z-]+: |$)", text)
        if subject and subject[1].strip():
            found.append((label, subject[1]))
    return found


def long_texts() -> Texts:
    """Return texts of four fields of 20 Newsgroups, without the first 50 words."""
    fields = ("comp", "rec", "sci", "talk")
    texts = ((label.split(".")[0], " ".join(text.split()[50:])) for label, text in newsgroups())
    return [(label, text) for label, text in texts if label in fields and text]


def skewed() -> Texts:
    """Return the documents of Reuters that have one of the eight most frequent topics alone."""
    halves = data.load("reuters21578")
    found = [
        (own[0], text)
        for half in halves
        for own, text in zip(half.labels, half.raw, strict=True)
        if len(own) == 1
    ]
    most = {label for label, _ in Counter(label for label, _ in found).most_common(8)}
    return [(label, text) for label, text in found if label in most]


def paragraphs(classes: int, words: int | None = None) -> Texts:
    """Return paragraphs of the longest articles of wikipara, or their first words."""
    found = []
    with lzma.open(peers.development_data() / "wikipara" / "train.tsv.xz", "rt") as lines:
        for line in lines:
            label, _, text = line.rstrip("\n").partition("\t")
            found.append((label, " ".join(text.split()[:words])))
    most = {label for label, _ in Counter(label for label, _ in found).most_common(classes)}
    return [(label, text) for label, text in found if label in most]


def source_code() -> Texts:
    """Return pieces of ten lines of Python's library, by package."""
    folder, found = Path(sysconfig.get_paths()["stdlib"]), []
    packages = ("asyncio", "ctypes", "distutils", "email", "encodings", "http", "idlelib",
                "importlib", "json", "lib2to3", "logging", "multiprocessing", "tkinter",
                "unittest", "xml")  # fmt: skip
    for package in packages:
        for path in sorted((folder / package).rglob("*.py")):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            lines = [line for line in lines if package not in line]
            pieces = (" ".join(lines[i : i + 10]) for i in range(0, len(lines), 10))
            found += [(package, piece) for piece in pieces if piece.strip()]
    counts = Counter(label for label, _ in found)
    return [(label, text) for label, text in found if counts[label] >= 150]


def languages() -> Texts:
    """Return translated messages of this machine's programs, by language: a few words each."""
    found: Texts = []
    for path in sorted(LOCALES.glob("*/LC_MESSAGES/*.mo")):
        language = path.parts[-3]
        if re.fullmatch("[a-z]{2,3}", language):
            with path.open("rb") as file:
                try:
                    messages = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
                except (OSError, LookupError, ValueError):  # damaged, or of an unknown form
                    continue
            texts = {text for key, text in messages.items() if key and isinstance(text, str)}
            found += [(language, " ".join(text.split()[:12])) for text in sorted(texts)[:400]]
    found = [(label, text) for label, text in dict.fromkeys(found) if len(text.split()) > 1]
    most = {label for label, _ in Counter(label for label, _ in found).most_common(40)}
    return [(label, text) for label, text in found if label in most]


SETS: dict[str, Callable[[], Texts]] = {
    "headings": headings,
    "long texts": long_texts,
    "skewed news": skewed,
    "paragraphs": functools.partial(paragraphs, 150),
    "beginnings of paragraphs": functools.partial(paragraphs, 20, 10),
    "source code": source_code,
    "languages": languages,
}


if __name__ == "__main__":
    main()
