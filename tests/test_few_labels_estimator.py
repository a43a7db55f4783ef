"""FusedFeatures in scikit-learn's tools: unlabeled rows, names, copies."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from dcme_w2v import FusedFeatures
from dcme_w2v.few_labels.options import FusedOptions

EXPECTED = {
    "check_classifiers_classes": "takes -1 for a label; here a row without one has it",
    "check_decision_proba_consistency": "gives negative rows, whatever the tag says",
}


@parametrize_with_checks([FusedFeatures(threads=1)], expected_failed_checks=lambda _: EXPECTED)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def problem(rows=120, seed=0):
    """Rows of counts from three classes, and their labels."""
    random = np.random.default_rng(seed)
    labels = np.arange(rows) % 3
    share = np.where(np.arange(30)[None] // 10 == labels[:, None], 0.5, 0.05)
    return (random.random((rows, 30)) < share).astype(np.float32), labels


def test_parameters_are_the_declared_options():
    found = FusedFeatures().get_params()
    assert found.pop("progress") is False
    declared = vars(FusedOptions())
    assert found.pop("random_state") == declared.pop("seed") and found == declared
    for name in found:
        assert f"\n{name} : " in FusedFeatures.__doc__


@pytest.mark.parametrize(
    "spelled",
    [
        lambda y, known: np.where(known, y, -1),
        lambda y, known: np.where(known, y, -1).astype(float),
        lambda y, known: [int(one) if k else None for one, k in zip(y, known, strict=True)],
        lambda y, known: [f"c{one}" if k else None for one, k in zip(y, known, strict=True)],
        lambda y, known: [f"c{one}" if k else -1 for one, k in zip(y, known, strict=True)],
        lambda y, known: pytest.importorskip("pandas").Series(
            [f"c{one}" if k else None for one, k in zip(y, known, strict=True)]
        ),
    ],
)  # fmt: skip
def test_minus_one_and_none_mean_unlabeled(spelled):
    X, y = problem()
    known = np.arange(len(y)) < 12
    model = FusedFeatures(threads=1).fit(X, spelled(y, known))
    assert len(model.classes_) == 3 and -1 not in model.classes_.tolist()
    assert np.mean(model.predict(X) == model.classes_[y]) > 0.8
    other = FusedFeatures(threads=1).fit(X, np.where(known, y, -1))
    assert model.coef_.tobytes() == other.coef_.tobytes()


@pytest.mark.parametrize("final", ["distill", "beside"])
def test_levels_are_columns_with_names(final):
    X, y = problem()
    names = np.array(["sun", "rain", "snow"])[y].tolist()
    for i in range(20, 120):
        names[i] = None
    model = FusedFeatures(final=final, levels=4, threads=1).fit(csr_matrix(X), names)
    rows = model.transform(csr_matrix(X))
    columns = model.get_feature_names_out()
    assert rows.shape == (120, 12) == (120, len(columns))
    assert columns[0] == "fusedfeatures_rain_1" and columns[-1] == "fusedfeatures_sun_4"
    assert model.levels_.shape == (30, 3) and (np.diff(model.values_) <= 0).all()
    assert model.weights_.shape == (4 + (final == "beside"),)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_the_papers_form_binarises_values():
    X, y = problem()
    y[30:] = -1
    model = FusedFeatures(preset="paper", threads=1).fit(X, y)
    assert (model.predict(X * 7) == model.predict(X)).all()
    assert (model.transform(X * 7) != model.transform(X)).nnz == 0


def test_copies_pipelines_and_frames():
    X, y = problem()
    y[12:] = -1
    frame = pytest.importorskip("pandas").DataFrame(X, columns=[f"w{i}" for i in range(30)])
    model = FusedFeatures(threads=1, random_state=3).fit(frame, y)
    assert model.feature_names_in_[0] == "w0"
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.predict_proba(frame) == model.predict_proba(frame)).all()
    with pytest.raises(NotFittedError):
        clone(model).predict(frame)
    texts = ["tea cup", "tea leaf", "bus road", "bus stop", "cup leaf", "road stop"]
    labels = ["a", "a", "b", "b", None, None]
    pipeline = make_pipeline(TfidfVectorizer(), FusedFeatures(folds=2, threads=1))
    assert pipeline.fit(texts, labels).predict(["cup leaf", "road"]).tolist() == ["a", "b"]


def test_invalid_training_data():
    X, y = problem()
    for labels, said in (
        (np.full(120, -1), "no row has a label"),
        (np.where(np.arange(120) < 9, 0, -1), "1 class"),
        (np.where(np.arange(120) < 2, y, -1), "there are 2 labeled documents, fewer than folds=3"),
    ):
        with pytest.raises(ValueError, match=said):
            FusedFeatures().fit(X, labels)
    y[12:] = -1
    with pytest.raises(ValueError, match="Negative values in data: row 0, column 0"):
        FusedFeatures().fit(X - 1, y)
    with pytest.raises(ValueError, match="levels=0"):
        FusedFeatures(levels=0).fit(X, y)
    with pytest.raises(ValueError, match="have 0 of the"):
        FusedFeatures().fit(X * (y >= 0)[:, None], y)
    with pytest.raises(ValueError, match="30 features"):
        FusedFeatures().fit(X, y).predict(random_array((3, 4), format="csr"))
