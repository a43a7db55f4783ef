"""The estimators in scikit-learn's tools."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from data import SMALL_SCDV, make_texts, word_vectors
from helpers import python, transform
from joblib.externals.loky import get_reusable_executor
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from dcme_w2v import (
    SCDV,
    FusedFeatures,
    LatentClassModel,
    MaxentClassifier,
    SentenceEncoder,
    TextClassifier,
    Vectors,
)
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.few_labels.options import FusedOptions
from dcme_w2v.latent.options import LatentOptions
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.options import ScdvOptions

pytestmark = pytest.mark.long

TEXTS = [text.decode() for text in make_texts()]
TOPICS = ["w0 w5 w10 w15", "w1 w6 w11 w16"]


def labeled_texts(count=60):
    """Return texts of two topics, and the topic of each."""
    random = np.random.default_rng(4)
    labels = random.integers(2, size=count)
    texts = [" ".join(random.choice(TOPICS[label].split(), 8)) for label in labels]
    return texts, np.array(["tea", "bus"])[labels]


@pytest.fixture
def processes():
    """New processes of joblib: used ones keep their working folder."""
    yield
    get_reusable_executor().shutdown(wait=True)


class OfNumbers:
    """An estimator of texts that are made of numbers, the input of scikit-learn's checks."""

    def _checked(self, X):
        check_is_fitted(self)
        if isinstance(X, list) and isinstance(X[0], str):
            return X  # of a method that calls another one
        return self._texts(validate_data(self, X, reset=False))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = False, True
        tags.input_tags.one_d_array, tags.no_validation = False, False
        return tags


class RowsOfNumbers(OfNumbers):
    """A transformer of such texts."""

    @staticmethod
    def _texts(rows):
        """Return texts with a word for each number; different numbers give different words."""
        return [" ".join(f"w{int(abs(number) * 8) % 40}" for number in row) for row in rows]

    def fit(self, X, y=None):
        return super().fit(self._texts(validate_data(self, X)), y)

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)

    def transform(self, X):
        return super().transform(self._checked(X))


class VectorsOfNumbers(RowsOfNumbers, SCDV):
    """SCDV of such texts."""


class SentencesOfNumbers(RowsOfNumbers, SentenceEncoder):
    """Sentence vectors of such texts."""


class ClassesOfNumbers(OfNumbers, TextClassifier):
    """A classifier of texts that have a word for each half that a number has passed."""

    @staticmethod
    def _texts(rows):
        steps = np.arange(-4, 8, 0.5)
        passed = [[np.flatnonzero(steps < number) for number in row] for row in rows]
        words = [[f"c{i}s{k}" for i, own in enumerate(row) for k in own] for row in passed]
        return [" ".join(["number", *own]) for own in words]

    def fit(self, X, y, sample_weight=None):
        X, y = validate_data(self, X, y, multi_output=np.asarray(y).shape[1:] > (1,))
        check_classification_targets(y)
        return super().fit(self._texts(X), y, sample_weight)

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        X, y = validate_data(self, X, y, reset=not hasattr(self, "n_features_in_"))
        return super().partial_fit(self._texts(X), y, classes, sample_weight)

    def transform(self, X):
        return super().transform(self._checked(X))

    def predict(self, X):
        return super().predict(self._checked(X))

    def predict_log_proba(self, X):
        return super().predict_log_proba(self._checked(X))

    def decision_function(self, X):
        return super().decision_function(self._checked(X))


def counted_vectors():
    found = word_vectors()
    return Vectors(found.words, found.vectors, counts=np.arange(len(found), 0, -1))


ESTIMATORS = [
    MaxentClassifier(threads=1),
    MaxentClassifier(threads=1, solver="sgd"),
    MaxentClassifier(threads=1, loss="hinge"),
    MaxentClassifier(threads=1, objective="ns"),
    LatentClassModel(threads=1, epochs=20),
    FusedFeatures(threads=1, rounds=1),
    VectorsOfNumbers(word_vectors(), clusters=2, iterations=3, threads=1),
    SentencesOfNumbers(counted_vectors(), threads=1),
    ClassesOfNumbers(threads=1),
]


OF_WEIGHTS = [
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
]
OF_CLASS_WEIGHTS = "check_class_weight_classifiers"


def expected_failures(estimator):
    """Return the checks that must fail, and why.

    Weighted and repeated rows must agree to 7 digits; test_classify_weights.py requires 5.
    """
    labels = {"check_classifiers_classes": "takes -1 for a label; here it is an unlabeled row"}
    if isinstance(estimator, LatentClassModel):
        return labels
    if isinstance(estimator, FusedFeatures):
        negative = "gives negative rows, whatever the tag says"
        return labels | {"check_decision_proba_consistency": negative}
    if isinstance(estimator, TextClassifier):
        return dict.fromkeys(OF_WEIGHTS, STEPS)
    if not isinstance(estimator, MaxentClassifier):
        return {}
    if estimator.objective == "ns":
        slow = "50 rows with weights of 1e7 to 1 take 200 epochs of negative sampling, not 5"
        return dict.fromkeys(OF_WEIGHTS, STEPS) | {OF_CLASS_WEIGHTS: slow}
    if estimator.solver == "sgd":
        bias = "beside rows of length 30, a bias of 0.1 learns nothing; with bias=20 it passes"
        return dict.fromkeys(OF_WEIGHTS, STEPS) | {OF_CLASS_WEIGHTS: bias}
    if estimator.loss == "hinge":
        return dict.fromkeys(OF_WEIGHTS, STEPS)
    return dict.fromkeys(OF_WEIGHTS, "scores are sums in single precision")


STEPS = "copies are visited in another order than one row as often"


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator, options, others",
    [
        (
            MaxentClassifier,
            ClassifyOptions,
            {"patience", "class_weight", "cluster", "shards", "distribute", "tune", "verbose"},
        ),
        (LatentClassModel, LatentOptions, {"unsupervised", "verbose"}),
        (FusedFeatures, FusedOptions, {"verbose"}),
        (SCDV, ScdvOptions, {"vectors", "tokenize", "threads", "sparse_output", "verbose"}),
    ],
)
def test_parameters_are_the_declared_options(estimator, options, others):
    found = estimator().get_params()
    declared = vars(options())
    names = {"random_state" if name == "seed" else name for name in declared}
    assert names ^ set(found) == others
    for name in names - others:
        assert found[name] == declared["seed" if name == "random_state" else name]
        assert f"\n{name} : " in estimator.__doc__


def test_wrong_parameters():
    with pytest.raises(TypeError, match=r"epoch'; use epochs"):
        MaxentClassifier(epoch=3)
    with pytest.raises(TypeError, match="'seed'"):
        SCDV(seed=3)
    with pytest.raises(ValueError, match="Invalid parameter 'epoch'"):
        MaxentClassifier().set_params(epoch=3)
    for name, value in [
        ("lr", 0),
        ("objective", "x"),
        ("epochs", "3"),
        ("random_state", -1),
        ("random_state", 2**63),
    ]:
        with pytest.raises(ValueError, match=name):
            MaxentClassifier(**{name: value}).fit([[1.0], [0.0]], [0, 1])
    for X in (TEXTS, np.array(TEXTS), [["w1"], ["w2"]]):
        with pytest.raises(ValueError, match=r"make_pipeline\(TfidfVectorizer\(\), MaxentClassif"):
            MaxentClassifier().fit(X, range(len(X)))
    with pytest.raises(ValueError, match=r"X: a value is too large"):
        MaxentClassifier().fit([[10**400], [0]], [0, 1])
    for options, texts, message in (
        ({"representation": "x"}, TEXTS, "representation must be scdv, average or tfidf"),
        ({"vectors": None}, TEXTS, "vectors is None"),
    ):
        with pytest.raises(ValueError, match=message):
            SCDV(**{"vectors": word_vectors(), **options}).fit(texts)


@pytest.mark.parametrize("y", [3, csr_matrix(np.eye(2))])
def test_labels_of_another_shape_get_scikit_learns_message(y):
    with pytest.raises((TypeError, ValueError), match=r"y should be|passed for y"):
        LatentClassModel().fit([[1.0], [0.0]], y)


@pytest.mark.bits
def test_the_estimator_of_documents_equals_the_model():
    word_vectors().save("v.bin")
    model = SCDV("v.bin", clusters=5, iterations=20, preset="paper").fit(TEXTS)
    wanted = transform(fit_documents(make_texts(), word_vectors(), SMALL_SCDV), make_texts()[:9])
    assert (model.transform(TEXTS[:9]) != wanted).nnz == 0
    assert model.transform([]).shape == (0, 35)


def test_grid_search_in_two_processes(processes):
    texts, labels = labeled_texts()
    word_vectors().save("v.bin")
    # Processes that an earlier test started have another current folder.
    pipeline = make_pipeline(SCDV(Path("v.bin").absolute()), MaxentClassifier(threads=1))
    grid = {"scdv__clusters": [1, 3], "maxentclassifier__l2": list(np.logspace(-6, -3, 2))}
    search = GridSearchCV(pipeline, grid, cv=2, n_jobs=2, error_score="raise").fit(texts, labels)
    assert search.score(texts, labels) > 0.9
    assert len(search.best_estimator_[:-1].get_feature_names_out()) in (7 + 8, 21 + 8)


def test_series_of_texts_and_output_in_frames():
    texts = pytest.importorskip("pandas").Series(TEXTS, index=range(5, 85), name="text")
    model = SCDV(word_vectors(), clusters=3, iterations=5, tfidf=0, sparse_output=False)
    rows = model.set_output(transform="pandas").fit_transform(texts)
    assert (
        list(rows.columns) == [f"scdv{i}" for i in range(21)] == list(model.get_feature_names_out())
    )
    assert list(rows.index) == list(texts.index)
    sparse = clone(model).set_params(sparse_output=True).set_output(transform="default")
    assert (sparse.fit_transform(TEXTS).toarray() == rows.to_numpy()).all()
    with pytest.raises(ValueError, match="one column"):
        model.fit(texts.to_frame())


WITHOUT = """
import sys
sys.modules["sklearn"] = None
import dcme_w2v as dw
from dcme_w2v.cli.main import run
for i in range(9):
    print("a\\tgreen tea", "b\\tred car", sep="\\n", file=open("docs.tsv", "a"))
    print("1\\tgreen tea\\tred car", "2\\ttea\\tgreen", sep="\\n", file=open("pairs.tsv", "a"))
for line in (
    "train docs.tsv --output v.bin --min-count 1 --dim 4",
    "classify train docs.tsv --output c", "classify predict c docs.tsv",
    "latent fit docs.tsv --output l --latent 2", "transform l docs.tsv --output l.npz",
    "scdv fit docs.tsv --vectors v.bin --clusters 2 --output s",
    "fuse fit docs.tsv --unlabeled docs.tsv --no-choose --output f",
    "encode v.bin docs.tsv --output e.npy", "eval sts v.bin pairs.tsv --pooling mean",
):
    assert run(line.split()) == 0, line
try:
    dw.SCDV
except ImportError as error:
    assert "pip install -U scikit-learn" in str(error)
"""


def test_columns_of_tfidf_are_named_by_their_words():
    model = SCDV(word_vectors(), clusters=2, iterations=3, threads=1, tfidf=0.5).fit(TEXTS)
    names = model.get_feature_names_out()
    column = names.tolist().index("w1")
    assert names[0] == "scdv0" and len({*names}) == model.n_features_out_
    rows = model.transform(["w1 w1", "w2"]).toarray()
    assert (rows[:, column] > 0).tolist() == [True, False]


def test_only_estimators_require_scikit_learn():
    python("-c", WITHOUT, check=True)


@pytest.mark.bits
@pytest.mark.parametrize("objective", ["dcme", "ns"])
def test_a_pickled_classifier_learns_as_the_original(objective):
    X, y = make_blobs(200, centers=40, random_state=2)
    model = MaxentClassifier(objective=objective, bias=0.3, threads=1).fit(X, y)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.partial_fit(X, y).coef_, model.partial_fit(X, y).coef_)


ROWS = np.kron(np.eye(2), np.ones((20, 3))) + np.random.default_rng(1).random((40, 6)) / 4
TRUTH = np.repeat(["tea", "bus"], 20)
SHOWN = np.isin(np.arange(40) % 20, [0, 1, 2])


def test_token_lists_are_documents_of_scdv():
    texts = [text.decode() for text in make_texts()]
    wanted = SCDV(word_vectors(), clusters=2).fit_transform(texts)
    tokens = [text.split() for text in texts]
    for documents in (tokens, [tuple(one) for one in tokens], [np.array(one) for one in tokens]):
        found = SCDV(word_vectors(), clusters=2).fit(documents).transform(documents)
        assert (found != wanted).nnz == 0
    read_once = SCDV(word_vectors(), clusters=2).fit_transform(text for text in texts)
    assert (read_once != wanted).nnz == 0


def test_estimators_report_progress():
    updates = []
    labels = np.arange(len(ROWS)) % 2
    for targets in (labels, np.eye(2, dtype=int)[labels]):
        MaxentClassifier(verbose=updates.append).fit(ROWS, targets)
        assert any(one.stage in ("training", "choosing the settings") for one in updates)
        updates.clear()
    LatentClassModel(latent=2, verbose=updates.append).fit(ROWS)
    assert {one.stage for one in updates} >= {"singular vectors", "EM from kmeans 1"}
    assert any(one.done for one in updates)
    updates.clear()
    FusedFeatures(verbose=updates.append).fit(ROWS, np.where(SHOWN, TRUTH, "-1"))
    assert any(one.stage == "self-training" for one in updates)
    updates.clear()
    SCDV(word_vectors(), clusters=2, verbose=updates.append).fit(make_texts())
    assert {one.stage for one in updates} >= {"reading", "Gaussian mixture"}
