"""SCDV's Table 1: 20 Newsgroups by date, our rows beside the paper's.

    python scripts/reproduce_scdv_20news.py [--seeds 3] [--json FILE] [--folder FOLDER] [--quick]

Word vectors, idf, clusters and threshold are learnt from the training documents only. C is chosen
by 5-fold cross-validation with the first seed's vectors, and kept for the others; --quick takes
C = 1 and one seed. With --json a run that was stopped is taken up again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import document_data as data
import peers
from sklearn.feature_extraction.text import TfidfVectorizer

from dcme_w2v.documents.fitting import fit_documents
from dcme_w2v.documents.options import ScdvOptions
from dcme_w2v.documents.scdv import BAGS
from dcme_w2v.documents.topics import topics
from dcme_w2v.words.vectors import Vectors

SKIPGRAM: dict[str, Any] = {}
CBOW = {"model": "cbow"}
BEST = {"centre": True, "term_frequency": "log"}
# Row -> the paper's accuracy, precision, recall, F1; how word vectors are trained; fit's options.
ROWS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "SCDV": ("84.6 84.6 84.5 84.6", SKIPGRAM, {}),
    "SCDV, spherical": ("", SKIPGRAM, {"covariance": "spherical"}),
    "SCDV, SIF weights": ("", SKIPGRAM, {"weighting": "sif"}),
    "SCDV, 1 + ln n": ("", SKIPGRAM, {"term_frequency": "log"}),
    "SCDV, centred, 1 + ln n": ("", SKIPGRAM, BEST),
    "SCDV, centred, 1 + ln n, tf-idf x 2": ("", SKIPGRAM, {**BEST, "tfidf": 2.0}),
    "BoWV": ("81.6 81.1 81.1 80.9", SKIPGRAM, {"features": "bowv"}),
    "tf-idf weighted average": ("81.9 81.7 81.9 81.7", SKIPGRAM, {"features": "weighted-average"}),
    "average": ("", SKIPGRAM, {"features": "average"}),
    "bag of words": ("79.7 79.5 79.0 79.0", SKIPGRAM, {"features": "bag-of-words"}),
    "tf-idf, 1 + ln n": ("", SKIPGRAM, {"features": "tfidf", "term_frequency": "log"}),
    "SCDV, CBOW ns": ("", CBOW, {}),
    "SCDV, CBOW nce": ("", {**CBOW, "objective": "nce"}, {}),
    "SCDV, CBOW dcme": ("", {**CBOW, "objective": "dcme"}, {}),
}
TFIDF = {"tf-idf of scikit-learn": False, "tf-idf of scikit-learn, 1 + ln n": True}
SCORES = ("accuracy", "precision", "recall", "f1")
COHERENCE = "mean coherence of 80 topics"


def main() -> None:
    """Run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs of each row")
    parser.add_argument("--only", nargs="+", help="only rows of these names")
    parser.add_argument("--threads", type=int, default=1, help="figures repeat exactly with one")
    parser.add_argument("--json", type=Path, help="keep the figures here, and go on from them")
    parser.add_argument("--folder", help="keep word vectors here")
    parser.add_argument("--quick", action="store_true", help="one seed, C = 1")
    given = parser.parse_args()
    folder = peers.work_folder(given.folder)
    results = data.Results(given.json)
    train, test = data.load("20news")
    y, truth = ([labels[0] for labels in half.labels] for half in (train, test))
    seeds = 1 if given.quick else given.seeds

    def wanted(name: str) -> bool:
        return not given.only or name in given.only

    def scores(name: str, features: tuple[Any, Any]) -> dict[str, float]:
        chosen = 1.0 if given.quick else results.first(name, "C")
        return data.classify(*features, y, truth, chosen, given.threads)

    for name, log in TFIDF.items():
        if wanted(name):
            results.get(name, 1, lambda n=name, log=log: scores(n, tfidf(train, test, log)))
    for seed in range(1, seeds + 1):
        for name, (_, training, options) in ROWS.items():
            fit = ScdvOptions(**options, seed=seed)
            if not wanted(name) or (seed > 1 and fit.features in BAGS):
                continue
            kind = "-".join(["20news", *training.values()])
            vectors = data.vectors_of(
                folder, kind, train.words, seed, threads=given.threads, **training
            )
            results.get(name, seed, lambda n=name, v=vectors, o=fit: scores(
                n, data.rows_of(v, train, test, o)))  # fmt: skip
        if wanted(COHERENCE):
            vectors = data.vectors_of(folder, "20news", train.words, seed, threads=given.threads)
            results.get(COHERENCE, seed, lambda v=vectors, s=seed: coherence(v, train, s))
    print_tables(results)


def tfidf(train: data.Split, test: data.Split, log: bool) -> tuple[Any, Any]:
    """Return scikit-learn's tf-idf of the raw texts."""
    vectorizer = TfidfVectorizer(sublinear_tf=log)
    return vectorizer.fit_transform(train.raw), vectorizer.transform(test.raw)


def coherence(vectors: Path, train: data.Split, seed: int) -> dict[str, float]:
    """Return the mean coherence of 80 topics, top 10 words, on the training documents."""
    options = ScdvOptions(clusters=80, seed=seed)
    model = fit_documents(train.words, Vectors.load(vectors), options)
    found = topics(model, 10, train.words)
    return {"coherence": sum(t.coherence or 0.0 for t in found) / len(found)}


def print_tables(results: data.Results) -> None:
    """Print the means over the seeds beside the paper's figures."""
    print("| | accuracy | precision | recall | F1 | the paper's |\n|---|---|---|---|---|---|")
    for name in [*TFIDF, *ROWS]:
        if name in results.figures:
            cells = " | ".join(results.cell(name, figure) for figure in SCORES)
            told = ROWS[name][0].replace(" ", " / ") if name in ROWS else ""
            print(f"| {name} | {cells} | {told} |")
    if COHERENCE in results.figures:
        print(f"\n{COHERENCE}: {results.cell(COHERENCE, 'coherence')}; the paper's -85.23")
        print(
            "sum over the 45 pairs of a topic's 10 most probable words of ln((D(w, v) + 1) / D(v))"
        )


if __name__ == "__main__":
    main()
