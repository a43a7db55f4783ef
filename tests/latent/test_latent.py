"""Latent-class models in Python: the estimator, the folder, errors, odd inputs."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn import metrics
from sklearn.datasets import make_blobs

from dcme_w2v import LatentClassModel, MaxentClassifier
from dcme_w2v.classify.metrics import ClusterMeasures, cluster_measures
from dcme_w2v.classify.model import load_classifier
from dcme_w2v.errors import DivergedError, UsageError
from dcme_w2v.latent.cost import Observations
from dcme_w2v.latent.fit import fit, learn
from dcme_w2v.latent.model import LatentClassifier, through_alpha
from dcme_w2v.latent.options import LatentOptions, resolved
from dcme_w2v.training.progress import Reporter


def blobs(count=120, centers=3, features=5, spread=1.0):
    return make_blobs(count, features, centers=centers, random_state=0, cluster_std=spread)


def quick(**more):
    return LatentClassModel(**{"threads": 1, "epochs": 15} | more)


@pytest.mark.parametrize("init", ["auto", "kmeans", "quadratic"])
def test_clusters_of_blobs(init):
    X, y = blobs()
    model = quick(latent=3, init_method=init, starts=5)
    found = model.fit_predict(X)
    assert metrics.normalized_mutual_info_score(y, found) > 0.99
    assert np.array_equal(found, model.labels_) and np.array_equal(found, model.predict(X))
    assert model.transform(X).sum(axis=1) == pytest.approx(np.ones(len(X)))
    assert np.array_equal(model.classes_, np.arange(3))
    assert model.costs_[-1] == model.cost_ and len(model.costs_) == model.n_iter_


def test_labels_with_sub_topics():
    """Two labels of two opposite blobs each (XOR): four classes separate them, a line does not."""
    X, y = blobs(200, np.array([[4, 0], [-4, 0], [0, 4], [0, -4]]), 2)
    labels = np.array(["a", "b"])[y // 2]
    model = quick(latent=4, init_method="kmeans", starts=5, l2=1e-4, epochs=60).fit(X, labels)
    line = MaxentClassifier(solver="lbfgs").fit(X, labels)
    assert model.score(X, labels) > 0.97 > line.score(X, labels)
    assert model.alpha_.shape == (4, 2)
    assert model.alpha_.max(axis=1).min() > 0.9


# ---- invariances ----


@pytest.mark.bits
@pytest.mark.parametrize("labeled", [False, True])
def test_sparse_and_dense_rows_are_the_same(labeled):
    X, y = blobs(150, 4, 60)
    one, other = (
        quick(latent=4, starts=2).fit(rows, y if labeled else None) for rows in (X, csr_matrix(X))
    )
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.transform(X), other.transform(X))


# ---- the folder ----


def saved(options, labels=True, multilabel=False, features=70):
    X, y = blobs(80, 3, features)
    matrix = csr_matrix(X.astype(np.float32))
    given = [(int(label), (int(label) + 1) % 3) if multilabel else (int(label),) for label in y]
    names = ["a", "b", "c"] if labels else []
    model = learn(matrix, given if labels else None, names, options, multilabel=multilabel)
    model.save("model")
    return model, matrix


@pytest.mark.parametrize("rows, unsupervised, wanted", [
    (1999, True, 30), (2000, True, 10), (1999, False, 1),
])  # fmt: skip
def test_few_documents_have_more_starts(rows, unsupervised, wanted):
    assert resolved(LatentOptions(latent=4, unsupervised=unsupervised), 2, rows, 9).starts == wanted


@pytest.mark.parametrize("latent, of_quadratic", [(5, 90), (8, 0)])
def test_several_starts_are_tried_shortly_and_the_best_is_continued(latent, of_quadratic):
    X, _ = blobs(200, 5, 8, spread=5.0)
    options = LatentOptions(latent=latent, unsupervised=True, threads=1, tolerance=0.0, epochs=20)
    data = Observations.of(csr_matrix(X.astype(np.float32)), None, 0)
    said, quiet = [], Reporter()
    quiet.message = said.append
    solution, record = fit(data, resolved(options, 0, *X.shape), quiet)
    starts = record["starts"]
    assert [one["iterations"] for one in starts] == [1] * (30 + of_quadratic)
    wanted = ["kmeans"] * 30 + ["quadratic"] * of_quadratic
    assert [one["init"] for one in starts] == wanted
    for init in {*wanted}:  # each has random numbers of its own
        assert len({one["cost"] for one in starts if one["init"] == init}) > 1
    assert len(solution.costs) == 20
    lowest = min(starts, key=lambda one: one["cost"])
    assert solution.costs[0] == lowest["cost"] and said[0].endswith(record["chosen"])


@pytest.mark.bits
@pytest.mark.parametrize("labels", [False, True])
def test_a_saved_model_is_loaded_bit_identically(labels):
    options = LatentOptions(latent=4, unsupervised=not labels, threads=1, epochs=5)
    model, matrix = saved(options, labels)
    for again in (LatentClassifier.load("model"), load_classifier("model")):
        for one, other in (
            (model.log_probabilities(matrix), again.log_probabilities(matrix)),
            (model.latent_log_probabilities(matrix), again.latent_log_probabilities(matrix)),
        ):
            assert np.array_equal(np.concatenate(list(one)), np.concatenate(list(other)))
        assert model.describe() == again.describe()
    assert (model.right is None) is labels
    for label, described in zip(model.classes, model.describe(3), strict=False):
        assert len(model.explain(label=label, count=3)) == 3
        if not labels:
            assert model.explain(label=label, count=3) == [tuple(one) for one in described["words"]]


def test_several_labels_a_document():
    model, matrix = saved(LatentOptions(latent=5, threads=1), multilabel=True)
    assert model.multilabel
    p = np.exp(np.concatenate(list(model.log_probabilities(matrix))))
    assert p.sum(axis=1) == pytest.approx(np.ones(80))
    assert np.sort(p, axis=1)[:, 1].mean() > 0.25  # two labels share the mass


def test_one_label_is_an_error():
    with pytest.raises(UsageError, match="the labels contain 1 class"):
        quick().fit(np.arange(12.0).reshape(6, 2), [1] * 6)


def test_divergence_is_reported(monkeypatch):
    monkeypatch.setattr("dcme_w2v.latent.cost.Cost.fit_posterior", lambda self: float("nan"))
    X, y = blobs(20)
    with pytest.raises(DivergedError, match=r"iteration 1 with l2=3e-06"):
        quick().fit(X, y)


# ---- clusters against labels ----


@pytest.mark.parametrize("seed", range(5))
def test_measures_of_clusters_equal_scikit_learns(seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, 4, 200)
    clusters = np.where(random.random(200) < 0.5, labels, random.integers(0, 6, 200))
    measures = ClusterMeasures()
    for part in (slice(0, 70), slice(70, 200)):
        measures.add(np.eye(6)[clusters[part]], [(str(one),) for one in labels[part]])
    found = measures.result()
    assert found["nmi"] == pytest.approx(metrics.normalized_mutual_info_score(labels, clusters))
    assert found["ari"] == pytest.approx(metrics.adjusted_rand_score(labels, clusters))
    orders = np.array(list(itertools.permutations(range(6), 4)))
    best = (orders[:, labels] == clusters).mean(axis=1).max()
    assert found["matching_accuracy"] == pytest.approx(best)
    assert (found["documents"], found["labels"], found["clusters"]) == (200, 4, 6)


def test_measures_of_odd_clusterings():
    one = cluster_measures(np.array([[5]]))
    assert (one["nmi"], one["ari"], one["matching_accuracy"]) == (1, 1, 1)
    assert cluster_measures(np.array([[5], [5]]))["nmi"] == 0
    assert cluster_measures(np.zeros((0, 0), dtype=np.int64)) == {"documents": 0}
    single = cluster_measures(np.array([[1]]))
    assert single["ari"] == metrics.adjusted_rand_score([0], [0])


@pytest.mark.parametrize("noise", [0, 3])
def test_stretched_bumps(noise):
    """The paper's Figure 3, K = 2: k-means splits both bumps."""
    random = np.random.default_rng(noise)
    y = np.repeat([0, 1], 50)
    X = np.c_[random.normal(size=100) * 5, (2 * y - 1) * 2 + random.normal(size=100) * 0.4]
    X = np.c_[X, random.normal(size=(100, noise))]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = quick(latent=2, l2=5e-3).fit_predict(X)
    assert metrics.normalized_mutual_info_score(y, found) > 0.9


def test_label_probabilities_are_sums_over_classes():
    random = np.random.default_rng(0)
    log_p = np.log(random.dirichlet(np.ones(4), 6))
    alpha = random.dirichlet(np.ones(3), 4)
    assert np.exp(through_alpha(log_p, alpha)) == pytest.approx(np.exp(log_p) @ alpha)
    never = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert np.isfinite(through_alpha(np.log([[0.5, 0.5]]), never)).all()
