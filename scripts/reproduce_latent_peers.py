"""Baselines on two newsgroups with few documents: a linear SVM on components and on topics.

    python scripts/reproduce_latent_peers.py [--seeds 3]

What the paper compares latent classes with (Joulin, Bach & Ponce 2010, Figure 2), by scikit-learn
and on the documents of `reproduce_latent.py pairs`: the SVM on tf-idf, on principal components, and
on the topics of LDA, its C by cross-validation. Writes docs/results/latent-peers.json. scikit-learn
has no supervised LDA.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import reproduce_latent
import results
from reproduce_latent import PAIRS, Texts, shown
from sklearn.decomposition import PCA, LatentDirichletAllocation
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import LinearSVC


def svm() -> Any:
    """Return a linear SVM."""
    return GridSearchCV(LinearSVC(), {"C": [0.01, 0.1, 1, 10, 100]}, cv=5)


def on_components(k: int, seed: int) -> Any:
    """Return an SVM on principal components."""
    return make_pipeline(PCA(k, svd_solver="arpack", random_state=seed), svm())


def on_topics(k: int, seed: int) -> Any:
    """Return an SVM on topics of the distinct words of a document, as rows are tf-idf."""
    words = FunctionTransformer(lambda rows: (rows > 0).astype(float))
    topics = LatentDirichletAllocation(k, max_iter=50, random_state=seed)
    return make_pipeline(words, topics, svm())


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, help="runs of each row")
    given = parser.parse_args()
    models: dict[str, Callable[[int], Any]] = {"linear SVM on tf-idf": lambda seed: svm()}
    for k in (3, 15):
        models[f"SVM on {k} principal components"] = partial(on_components, k)
        models[f"SVM on {k} topics of LDA"] = partial(on_topics, k)
    texts, rows = Texts(), {name: [name] for name in models}
    columns = ["method"]
    for name, pair in PAIRS.items():
        for count in (100, 400):
            columns.append(f"{name}, N {count}")
            for one, make in models.items():
                scores = []
                for seed in range(given.seeds):
                    train, y, test, wanted = reproduce_latent.problem(texts, pair, count, seed)
                    scores.append(make(seed).fit(train, y).score(test, wanted))
                rows[one].append(shown(scores))
                print(one, columns[-1], rows[one][-1], flush=True)
    results.record(
        results.RESULTS / "latent-peers.json",
        "Two newsgroups, accuracy of an SVM on components and on topics",
        columns,
        list(rows.values()),
        seeds=", ".join(str(seed) for seed in range(given.seeds)),
        data="20 Newsgroups by date",
    )


if __name__ == "__main__":
    main()
