"""FusedFeatures in scikit-learn's tools: unlabeled rows, names, copies."""

import functools

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from dcme_w2v import FusedFeatures


def problem(known=120):
    """Rows of counts from three classes, and their labels; those behind the known ones are -1."""
    labels = np.arange(120) % 3
    share = np.where(np.arange(30)[None] // 10 == labels[:, None], 0.5, 0.05)
    X = (np.random.default_rng(0).random((120, 30)) < share).astype(np.float32)
    return X, np.where(np.arange(120) < known, labels, -1)


QUICK = {"rounds": 1, "choose": False}


@functools.cache
def plain():
    """A model of numbers, with -1 for rows without a label."""
    return FusedFeatures(threads=1, **QUICK).fit(*problem(12))


@pytest.mark.bits
@pytest.mark.parametrize(
    "spelled",
    [
        lambda names: [float(one) if one else -1.0 for one in names],
        lambda names: [int(one) if one else None for one in names],
        lambda names: names,
        lambda names: [one or -1 for one in names],
        lambda names: pytest.importorskip("pandas").Series(names),
        lambda names: pytest.importorskip("pandas").Series(names, dtype="string"),
    ],
)
def test_minus_one_and_none_mean_unlabeled(spelled):
    X, y = problem(12)
    model = FusedFeatures(threads=1, **QUICK).fit(
        X, spelled([str(one) if one >= 0 else None for one in y])
    )
    assert len(model.classes_) == 3 and -1 not in model.classes_.tolist()
    assert np.mean(model.predict(X) == model.classes_[problem()[1]]) > 0.8
    assert model.coef_.tobytes() == plain().coef_.tobytes()


@pytest.mark.parametrize("final", ["distill", "beside"])
def test_levels_are_columns_with_names(final):
    X, y = problem(20)
    names = [["sun", "rain", "snow", None][label] for label in y]
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
    X, y = problem(30)
    model = FusedFeatures(preset="paper", threads=1).fit(X, y)
    assert (model.predict(X * 7) == model.predict(X)).all()
    assert (model.transform(X * 7) != model.transform(X)).nnz == 0


def test_invalid_training_data():
    X, y = problem(12)
    for rows, labels, options, said in (
        (X, np.full(120, -1), {}, "all labels are -1, which marks unlabeled rows"),
        (X, np.where(np.arange(120) < 9, 0, -1), {}, "1 class"),
        (X, problem(2)[1], {}, "there are only 2 labeled documents, fewer than folds=3"),
        (X - 1, y, {}, "Negative values in data: row 0, column 0"),
        (X, y, {"levels": 0}, "levels=0"),
        (X * (y >= 0)[:, None], y, {}, "no unlabeled document contains any of the"),
    ):
        with pytest.raises(ValueError, match=said):
            FusedFeatures(**options).fit(rows, labels)
    with pytest.raises(ValueError, match="30 features"):
        FusedFeatures().fit(X, y).predict(csr_matrix(np.eye(3, 4)))
