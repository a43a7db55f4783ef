"""Experiments of Joulin, Bach & Ponce (NIPS 2010), and others, with our latent classes.

    python scripts/reproduce_latent.py [TASK...] [--seeds 3] [--threads 1] [--json FILE]

Tasks, each of which writes docs/results/latent-TASK.json: expansion (the quadratic (3) against the
bound F), pairs (two newsgroups of 100 or 400 documents, the paper's Figure 2), starts (K 15 from
the relaxation and at random), labels (20 labels, K 20 and 40), clusters (four and all groups
without labels), vectors (four groups by word vectors and SCDV), bumps (Figure 3), few (few labelled
documents of 11,314), balance (`--balance` on whole and short documents), rank (low rank on
wikipara). The paper prints no table. Without TASK all are run, which takes hours on a busy machine.
Needs the development data; see scripts/peers.py.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import document_data as data
import numpy as np
import peers
import results
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegressionCV

from dcme_w2v import LatentClassModel, MaxentClassifier
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.latent.quadratic import Quadratic
from dcme_w2v.latent.reduction import directions, reduced, svd_of_rows
from dcme_w2v.numeric.kmeans import kmeans
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.words.vectors import Vectors

FOUR = ("comp.graphics", "rec.sport.hockey", "sci.space", "talk.politics.mideast")
# The paper's pairs, by their numbers in alphabetical order of the groups.
PAIRS = {"4 v 5": (3, 4), "1 v 20": (0, 19)}
# Document vectors, and the dimensions they are reduced to, with all 20 groups; None: four groups.
FORMS: dict[str, tuple[ScdvOptions, int | None]] = {
    "means of word vectors": (ScdvOptions(features="average"), None),
    "SCDV, 60 clusters": (ScdvOptions(**data.ALONE), None),
    "SCDV, 60 clusters, beside tf-idf, 50 dimensions": (ScdvOptions(**data.BEST), 50),
    "the same, 200 dimensions": (ScdvOptions(**data.BEST), 200),
}
Rows = list[list[str]]
Score = Callable[[Any], float]


class Texts:
    """20 Newsgroups by date: rows of the product's features, and labels."""

    def __init__(self) -> None:
        halves = data.load("20news")
        self.names = sorted({one[0] for one in halves[0].labels})
        self.raw = [half.raw for half in halves]
        self.y = [np.array([self.names.index(one[0]) for one in half.labels]) for half in halves]

    def rows(
        self, chosen: Sequence[int] | NDArray[np.int64] | None = None, **options: Any
    ) -> list[csr_matrix]:
        """Return rows of both halves; features are those of the chosen training documents."""
        text = TextFeatures(FeatureOptions(**options))
        numbers = range(len(self.raw[0])) if chosen is None else chosen
        train = text.fit_transform(self.raw[0][i].encode() for i in numbers)
        return [train, text.transform(one.encode() for one in self.raw[1])]


def shown(values: Sequence[float], factor: float = 100.0, digits: int = 1) -> str:
    """Return mean and standard deviation."""
    scaled = [factor * value for value in values]
    spread = f" ± {statistics.stdev(scaled):.{digits}f}" if len(scaled) > 1 else ""
    return f"{statistics.mean(scaled):.{digits}f}{spread}"


def expansion(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """(F(1/K + eps D) - F(1/K)) / eps^2 against J(D)."""
    random = np.random.default_rng(given.seeds)
    count, k, ridge = 60, 4, 0.05
    labels = np.arange(count) % 3
    x = random.normal(size=(3, 8))[labels] + random.normal(size=(count, 8))
    matrix = csr_matrix(x.astype(np.float32))
    x = matrix.toarray().astype(np.float64)
    left, squares, _ = svd_of_rows(matrix, 8, 0, centred=True)
    quadratic = Quadratic(left, squares, ridge, labels.astype(np.int32), 3)
    direction = random.normal(size=(count, k)) / k
    direction -= direction.mean(axis=1, keepdims=True)
    flat = np.full((count, k), 1 / k)
    wanted, zero = quadratic.value(direction), _bound(x, labels, flat, ridge)
    rows = []
    for eps in (0.1, 0.05, 0.025, 0.0125):
        found = (_bound(x, labels, flat + eps * direction, ridge) - zero) / eps**2
        rows.append([f"{eps:g}", f"{found:.4f}", f"{wanted:.4f}", f"{found / wanted:.5f}"])
    return "The bound near ξ = 1/K", ["ε", "(F - F(1/K)) / ε²", "J by (3)", "ratio"], rows


def _bound(
    x: NDArray[np.float64], labels: NDArray[np.int64], xi: NDArray[np.float64], ridge: float
) -> float:
    """Return F at the best weights and alpha for xi."""
    n, k = xi.shape
    counts = np.zeros((labels.max() + 1, k))
    np.add.at(counts, labels, xi)
    alpha = counts / counts.sum(axis=0)
    fixed = -(xi * (np.log(alpha[labels]) - np.log(xi))).sum() / n

    def function(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        w, b = flat[:-k].reshape(-1, k), flat[-k:]
        scores = x @ w + b
        scores -= scores.max(axis=1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        g = (np.exp(log_p) - xi) / n
        value = -(xi * log_p).sum() / n + ridge / (2 * k) * np.square(w).sum()
        return value, np.concatenate([(x.T @ g + ridge / k * w).ravel(), g.sum(axis=0)])

    options = {"maxiter": 5000, "ftol": 1e-16, "gtol": 1e-12}
    start = np.zeros((x.shape[1] + 1) * k)
    return float(
        fixed + minimize(function, start, jac=True, method="L-BFGS-B", options=options).fun
    )


def problem(
    texts: Texts, pair: tuple[int, int], count: int, seed: int
) -> tuple[csr_matrix, NDArray[np.int64], csr_matrix, NDArray[np.int64]]:
    """Return `count` documents of two groups to learn from, and the others, both halves pooled."""
    own = [np.flatnonzero(np.isin(y, pair)) for y in texts.y]
    raw = [texts.raw[h][i] for h in (0, 1) for i in own[h]]
    y = np.concatenate([texts.y[h][own[h]] for h in (0, 1)])
    order = np.random.default_rng(seed).permutation(len(y))
    text = TextFeatures(FeatureOptions())
    train = text.fit_transform(raw[i].encode() for i in order[:count])
    test = text.transform(raw[i].encode() for i in order[count:])
    return train, y[order[:count]], test, y[order[count:]]


def pairs(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Accuracy of two labels from few documents."""
    texts = Texts()
    models: dict[str, Callable[[int], Any]] = {
        "logistic regression, C by CV": lambda seed: LogisticRegressionCV(
            Cs=8, cv=5, max_iter=500, random_state=seed
        ),
        "`classify train --solver lbfgs`": lambda seed: MaxentClassifier(
            solver="lbfgs", l2=1e-4, threads=given.threads
        ),
    }
    for k in (3, 15):
        for init in ("relaxed", "quadratic", "random"):
            models[f"latent classes, K {k}, start {init}"] = _pair_model(given, k, init)
    kept, columns = data.Results(given.json), ["method"]
    for name, pair in PAIRS.items():
        for count in (100, 400):
            columns.append(f"{name}, N {count}")
            for seed in range(given.seeds):
                own = problem(texts, pair, count, seed)
                for one, make in models.items():
                    kept.get(f"{one}: {columns[-1]}", seed, partial(_accuracy, make, seed, *own))
    rows = [[one, *(_cell(kept, one, name) for name in columns[1:])] for one in models]
    return "Two newsgroups, accuracy on the rest", columns, rows


def _accuracy(
    make: Callable[[int], Any],
    seed: int,
    train: csr_matrix,
    y: NDArray[np.int64],
    test: csr_matrix,
    wanted: NDArray[np.int64],
) -> dict[str, float]:
    return {"accuracy": make(seed).fit(train, y).score(test, wanted)}


def _cell(kept: data.Results, row: str, column: str) -> str:
    return shown([one["accuracy"] for one in kept.figures[f"{row}: {column}"].values()])


def _pair_model(
    given: argparse.Namespace, k: int, init: str, rounding: str = "avg"
) -> Callable[[int], Any]:
    return lambda seed: LatentClassModel(
        latent=k, init=init, rounding=rounding, starts=3, l2=1e-4, rank=400, freedom=0.95,
        smoothing=0.1, random_state=seed, threads=given.threads,
    )  # fmt: skip


def starts(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Cost and accuracy of 10 problems at K 15, by start."""
    texts = Texts()
    kinds = ("relaxed", "relaxed, min", "quadratic", "scores", "labels", "random")
    costs: dict[str, list[float]] = {kind: [] for kind in kinds}
    scores: dict[str, list[float]] = {kind: [] for kind in kinds}
    for seed in range(10):
        train, y, test, wanted = problem(texts, PAIRS["4 v 5"], 100, seed)
        for kind in kinds:
            init, _, rounding = kind.partition(", ")
            model = _pair_model(given, 15, init, rounding or "avg")(seed).fit(train, y)
            costs[kind].append(model.cost_)
            scores[kind].append(model.score(test, wanted))
    rows = [
        [
            kind, shown(scores[kind]), shown(costs[kind], 1, 4),
            str(sum(a < b for a, b in zip(costs[kind], costs["random"], strict=True))),
        ]
        for kind in kinds
    ]  # fmt: skip
    columns = ["start", "accuracy", "cost", "lower than random, of 10"]
    return "Starts at K 15, groups 4 v 5, N 100, 10 problems", columns, rows


def labels(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Twenty labels, 2,000 training documents."""
    texts = Texts()
    found: dict[str, list[list[float]]] = {}
    for seed in range(given.seeds):
        chosen = np.random.default_rng(seed).permutation(len(texts.y[0]))[:2000]
        (train, test), y = texts.rows(chosen), texts.y[0][chosen]
        models: dict[str, Any] = {
            "`classify train --solver lbfgs`": MaxentClassifier(
                solver="lbfgs", l2=3e-6, bias=1.0, threads=given.threads
            )
        }
        for k in (10, 20, 40):
            for init in ("labels", "scores", "random"):
                models[f"latent classes, K {k}, start {init}"] = LatentClassModel(
                    latent=k, init=init, epochs=12, tolerance=0.0, threads=given.threads,
                    random_state=seed,
                )  # fmt: skip
        for name, model in models.items():
            model.fit(train, y)
            log_p = model.predict_log_proba(test)
            own = log_p[np.arange(len(log_p)), texts.y[1]]
            score = float((log_p.argmax(axis=1) == texts.y[1]).mean())
            cost = getattr(model, "cost_", float("nan"))
            found.setdefault(name, []).append([score, float(own.mean()), cost])
            print(name, found[name][-1], flush=True)
    rows = []
    for name, values in found.items():
        score, likelihood, cost = zip(*values, strict=True)
        text = "" if np.isnan(cost[0]) else shown(cost, 1, 2)
        rows.append([name, shown(score), shown(likelihood, 1, 3), text])
    columns = ["method", "accuracy", "log-likelihood", "cost"]
    return "Twenty labels, 2,000 training documents", columns, rows


def clusters(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Clusters of training documents against their groups."""
    texts = Texts()
    four = np.flatnonzero(np.isin(texts.y[0], [texts.names.index(name) for name in FOUR]))
    rows = []
    for name, chosen, k in (("4 groups", four, 4), ("20 groups", None, 20)):
        matrix = texts.rows(chosen, min_df=5, max_df=0.2)[0]
        y = texts.y[0] if chosen is None else texts.y[0][chosen]
        found: dict[str, list[list[float]]] = {}
        for seed in range(given.seeds):
            unit = reduced(matrix, directions(matrix, 50, seed))
            dense = np.asarray(unit.toarray(), dtype=np.float32)
            _, nearest = kmeans(dense, k, seed, given.threads)
            found.setdefault("k-means", []).append([*data.against(y, nearest), float("nan")])
            for init in ("auto",):
                model = LatentClassModel(
                    latent=k,
                    init=init,
                    starts=3 if k == 4 else 1,
                    threads=given.threads,
                    random_state=seed,
                ).fit(matrix)
                one = [*data.against(y, model.labels_), model.cost_]
                found.setdefault(f"latent classes, start {init}", []).append(one)
                print(name, init, one, flush=True)
        for method, values in found.items():
            nmi, matching, cost = zip(*values, strict=True)
            text = "" if np.isnan(cost[0]) else shown(cost, 1, 3)
            rows.append([name, method, shown(nmi, 1, 3), shown(matching), text])
    columns = ["documents", "method", "NMI", "matching accuracy", "cost"]
    return (
        "Clusters of newsgroups, tf-idf (`--min-df 5 --max-df 0.2`) in 50 dimensions",
        columns,
        rows,
    )


def vectors(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Clusters by document vectors: means of word vectors, SCDV, SCDV beside tf-idf."""
    train = data.load("20news")[0]
    names = np.array([one[0] for one in train.labels])
    four = np.flatnonzero(np.isin(names, FOUR))
    found: dict[tuple[str, ...], list[list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seeds):
            path = data.vectors_of(
                Path(folder), "vectors", train.words, seed + 1, dim=100, epochs=10
            )
            for name, (options, dims) in FORMS.items():
                scdv = fit_documents(train.words, Vectors.load(path), options)
                made = csr_matrix(vstack(list(scdv.transform(train.words))))
                chosen = four if dims is None else np.arange(len(names))
                rows = data.unit_rows(csr_matrix(made[chosen]), dims, seed)
                y = np.unique(names[chosen], return_inverse=True)[1]
                k, groups = int(y.max()) + 1, f"{y.max() + 1} groups"
                _, nearest = kmeans(rows, k, seed, given.threads)
                fit = LatentClassModel(
                    latent=k, starts=3 if k == 4 else 1, threads=given.threads, random_state=seed
                ).fit(rows)
                for method, labels in (("k-means", nearest), ("latent classes", fit.labels_)):
                    found.setdefault((groups, name, method), []).append(
                        list(data.against(y, labels))
                    )
                    print(groups, name, method, found[groups, name, method][-1], flush=True)
    rows_of_table = []
    for key, values in found.items():
        nmi, matching = zip(*values, strict=True)
        rows_of_table.append([*key, shown(nmi, 1, 3), shown(matching)])
    title = "Clusters of newsgroups by document vectors"
    columns = ["documents", "as", "method", "NMI", "matching accuracy"]
    return title, columns, rows_of_table


def bumps(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Return the share of points in the wrong cluster for the paper's bumps, with noise."""
    rows = []
    for k, count, problems in ((2, 100, 8), (5, 250, 4)):
        methods = ("auto", "kmeans", "sdp", "quadratic", "random")
        found = {name: [f"K {k}", name] for name in ("k-means", *methods)}
        for noise in (0, 2, 5, 10, 20):
            errors: dict[str, list[float]] = {name: [] for name in found}
            for seed in range(problems):
                x, y = data.bumps(k, count, noise, seed)
                _, nearest = kmeans(x.astype(np.float32), k, seed, given.threads)
                errors["k-means"].append(1 - data.against(y, nearest)[1])
                for init in methods:
                    model = LatentClassModel(
                        latent=k, init=init, l2=1e-2 / k, freedom=0.95, lsa=0, columns=5,
                        random_state=seed, threads=given.threads,
                    )  # fmt: skip
                    errors[init].append(1 - data.against(y, model.fit_predict(x))[1])
            for name, values in errors.items():
                found[name].append(f"{statistics.mean(values):.2f}")
            print(k, noise, {name: row[-1] for name, row in found.items()}, flush=True)
        rows += list(found.values())
    columns = ["", "start", *[f"{noise} noise dimensions" for noise in (0, 2, 5, 10, 20)]]
    return "Bumps: share of points in the wrong cluster", columns, rows


def few(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Few labelled documents a class, the rest of the 11,314 without a label."""
    texts = Texts()
    train, test = texts.rows()
    counts = (5, 20, 50)
    methods = ("labelled documents alone", "`--unlabelled use`")
    found: dict[str, list[list[float]]] = {name: [[] for _ in counts] for name in methods}
    for column, count in enumerate(counts):
        for seed in range(given.seeds):
            random, y = np.random.default_rng(seed), texts.y[0]
            given_y = np.full(len(y), -1)
            for label in range(20):
                given_y[random.permutation(np.flatnonzero(y == label))[:count]] = label
            has = given_y >= 0
            begin = time.monotonic()
            alone = MaxentClassifier(solver="lbfgs", l2=1e-4, bias=1.0, threads=given.threads)
            score = alone.fit(csr_matrix(train[has]), given_y[has]).score(test, texts.y[1])
            found[methods[0]][column].append(score)
            model = LatentClassModel(unlabelled="use", threads=given.threads, random_state=seed)
            found[methods[1]][column].append(model.fit(train, given_y).score(test, texts.y[1]))
            print(count, seed, [one[column][-1] for one in found.values()],
                  f"{time.monotonic() - begin:.0f} s", flush=True)  # fmt: skip
    rows = [[name, *map(shown, values)] for name, values in found.items()]
    columns = ["method", *[f"{count} labelled a class" for count in counts]]
    return "20 Newsgroups, few labelled documents of 11,314, accuracy", columns, rows


def balance(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Few labels of 3,000 documents, whole or cut to their first 15 words, by --balance."""
    texts = Texts()
    values = (1.0, 2.0, 4.0)
    rows = []
    for words in (None, 15):
        raw = [[" ".join(one.split()[:words]) for one in half] for half in texts.raw]
        text = TextFeatures(FeatureOptions())
        train = text.fit_transform(one.encode() for one in raw[0])
        test = text.transform(one.encode() for one in raw[1])
        for count in (5, 20):
            found: dict[str, list[float]] = {}
            for seed in range(given.seeds):
                random = np.random.default_rng(seed)
                chosen = random.permutation(len(texts.y[0]))[:3000]
                y, part = texts.y[0][chosen], csr_matrix(train[chosen])
                given_y = np.full(len(y), -1)
                for label in range(20):
                    given_y[random.permutation(np.flatnonzero(y == label))[:count]] = label
                has = given_y >= 0
                alone = MaxentClassifier(solver="lbfgs", l2=1e-4, bias=1.0, threads=given.threads)
                alone.fit(csr_matrix(part[has]), given_y[has])
                found.setdefault("alone", []).append(alone.score(test, texts.y[1]))
                for value in values:
                    model = LatentClassModel(
                        unlabelled="use", balance=value, threads=given.threads, random_state=seed
                    ).fit(part, given_y)
                    score = model.score(test, texts.y[1])
                    found.setdefault(str(value), []).append(score)
            length = "whole" if words is None else f"first {words} words"
            rows.append([length, str(count), *map(shown, found.values())])
            print(rows[-1], flush=True)
    columns = ["documents", "labelled a class", "labelled documents alone"]
    columns += [f"`--balance {value:g}`" for value in values]
    return "Few labels of 3,000 documents, accuracy", columns, rows


def rank(given: argparse.Namespace) -> tuple[str, list[str], Rows]:
    """Classifiers of low rank: the first 300 classes of wikipara, and all 1,236."""
    halves = data.load("wikipara")
    every = list(dict.fromkeys(one[0] for one in halves[0].labels))
    rows = []
    for count, ranks in ((300, (50, 100)), (len(every), (200,))):
        names = sorted(every[:count])
        number = {name: i for i, name in enumerate(names)}
        kept = [[i for i, one in enumerate(h.labels) if one[0] in number] for h in halves]
        text = TextFeatures(FeatureOptions())
        train = text.fit_transform(halves[0].raw[i].encode() for i in kept[0])
        test = text.transform(halves[1].raw[i].encode() for i in kept[1])
        y, wanted = (
            np.array([number[half.labels[i][0]] for i in own])
            for half, own in zip(halves, kept, strict=True)
        )
        for name, options in [("full", {}), *((str(r), {"rank": r}) for r in ranks)]:
            found: list[list[float]] = []
            for seed in range(given.seeds):
                model = MaxentClassifier(
                    objective="gd", threads=given.threads, random_state=seed, **options
                )
                begin = time.process_time()
                model.fit(train, y)
                middle = time.process_time()
                log_p = model.predict_log_proba(test)
                end = time.process_time()
                score = float((log_p.argmax(axis=1) == wanted).mean())
                own = float(log_p[np.arange(len(wanted)), wanted].mean())
                found.append([score, own, middle - begin, end - middle])
            size = sum(table.nbytes for table in model._weights.tables.values()) / 1e6
            score, own, fitting, predicting = zip(*found, strict=True)
            rows.append([
                f"{count:,}", name, shown(score), shown(own, 1, 3), f"{size:.1f}",
                shown(fitting, 1, 1), shown(predicting, 1, 2),
            ])  # fmt: skip
            print(rows[-1], flush=True)
    columns = [
        "classes", "rank", "accuracy", "log-likelihood", "MB", "training, CPU s",
        "prediction, CPU s",
    ]  # fmt: skip
    return "Exact softmax of low rank, wikipara", columns, rows


TASKS = {
    "expansion": expansion, "pairs": pairs, "starts": starts, "labels": labels,
    "clusters": clusters, "vectors": vectors, "bumps": bumps, "few": few,
    "balance": balance,
    "rank": rank,
}  # fmt: skip


def main() -> None:
    """Run the tasks that are named, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--seeds", type=int, default=3, help="runs of each row")
    parser.add_argument("--threads", type=int, default=1, help="figures do not depend on it")
    parser.add_argument("--json", type=Path, help="keep the figures of pairs here, and resume")
    given = parser.parse_args()
    for name in given.tasks or TASKS:
        if name not in TASKS:
            parser.error(f"{name}: must be one of {', '.join(TASKS)}")
        if name not in ("expansion", "bumps"):
            peers.development_data()
        title, columns, rows = TASKS[name](given)
        made = "made by the script" if name in ("expansion", "bumps") else "20 Newsgroups by date"
        made = "wikipara" if name == "rank" else made
        path = results.RESULTS / f"latent-{name}.json"
        seeds = ", ".join(str(seed) for seed in range(given.seeds))
        seeds = "0 to 9" if name == "starts" else seeds
        results.record(path, title, columns, rows, seeds=seeds, data=made)
        print(results.markdown_table(results.load(path.stem)))


if __name__ == "__main__":
    main()
