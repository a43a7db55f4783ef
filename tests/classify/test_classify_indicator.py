"""`MaxentClassifier.fit` with an indicator matrix: a column for each label."""

import json

import numpy as np
import pytest
from helpers import unit_rows
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from dcme_w2v import MaxentClassifier
from dcme_w2v.classify.estimator import label_sets
from dcme_w2v.errors import OutOfMemoryError, UsageError

ROWS = np.eye(4)[[0, 1, 2, 3] * 10]
SETS = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 0, 0]] * 10)


def documents(seed=1):
    rows, sets = make_multilabel_classification(1500, 40, n_classes=6, random_state=seed)
    return unit_rows(rows), sets


@pytest.mark.bits
@pytest.mark.parametrize(
    "kind", [np.asarray, csr_matrix, csc_matrix, coo_matrix, np.ndarray.tolist]
)
def test_labels_are_learned_and_predicted_in_the_format_given(kind):
    model = MaxentClassifier(threads=1, bias=0.0, epochs=40).fit(ROWS, kind(SETS))
    found, p = model.predict(ROWS), model.predict_proba(ROWS)
    is_sparse = kind in (csr_matrix, csc_matrix, coo_matrix)
    assert isinstance(found, csr_matrix if is_sparse else np.ndarray)
    assert found.dtype == SETS.dtype
    assert np.array_equal(found.toarray() if is_sparse else found, SETS)
    assert np.array_equal(p >= model.threshold_, SETS)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.coef_.shape == (3, 4) and model.decision_function(ROWS).shape == (40, 3)
    assert model.score(ROWS, kind(SETS)) == 1


def test_rows_without_a_label_count_against_every_label():
    """With half of the rows empty, a constant feature says no."""
    rows, sets = np.ones((400, 1)), np.zeros((400, 2), dtype=int)
    sets[:100, 0] = sets[100:140, 1] = 1
    model = MaxentClassifier(threads=1, bias=0.0, epochs=30).fit(rows, sets)
    assert model.predict_proba(rows[:1])[0] == pytest.approx([0.25, 0.1], abs=0.12)
    assert model.coef_.shape == (2, 1)


def test_labels_that_all_rows_or_no_rows_have():
    sets = np.hstack([SETS, np.ones((40, 1)), np.zeros((40, 1))])
    found = MaxentClassifier(threads=1, epochs=20).fit(ROWS, sets).predict(ROWS)
    assert found[:, 3].all() and not found[:, 4].any()


def test_a_model_is_fitted_again_with_one_label_a_row():
    again = MaxentClassifier(threads=1).fit(ROWS, SETS)
    with pytest.raises(UsageError, match="partial_fit"):
        again.partial_fit(ROWS, ["a", "b"] * 20)
    again.fit(ROWS, ["a", "b"] * 20)
    assert again.predict(ROWS).tolist() == ["a", "b"] * 20
    assert again.predict_proba(ROWS).sum(axis=1) == pytest.approx(1)
    assert again.decision_function(ROWS).shape == (40,)


WRONG = {
    "rows": (SETS[:30], {}, "X has 40 rows, but y has 30"),
    "two": (SETS * 2, {}, "entry 2"),
    "negative": (csr_matrix(-SETS), {}, "entry -1"),
    "nan": (np.where(SETS, np.nan, 0), {}, "entry nan"),
    "half": (SETS / 2, {}, "entry 0.5"),
    "duplicates": (coo_matrix(([1, 1], ([0, 0], [1, 1])), (40, 2)), {}, "entry 2"),
    "empty": (np.zeros((40, 3)), {}, "no row has a label"),
    "one column": (csr_matrix(SETS[:, :1]), {}, "1 columns"),
    "lists": ([["a"], ["a", "b"]] * 20, {}, "MultiLabelBinarizer"),
    "names": (np.array([["a", "b"]] * 40), {}, "several columns"),
    "cube": (np.ones((40, 2, 2)), {}, "several columns"),
    "softmax": (SETS, {"loss": "softmax"}, 'loss="hinge"'),
    "lbfgs": (SETS, {"solver": "lbfgs"}, "solver"),
    "dcme": (SETS, {"objective": "dcme"}, "objective"),
    "tune": (SETS, {"tune": True}, "tune=True"),
    "class_weight": (SETS, {"class_weight": {"a": 2}}, "class_weight: "),
    "cluster": (SETS, {"cluster": "local:1"}, "cluster=local:1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_matrices_and_parameters_end_in_one_line(case):
    y, parameters, message = WRONG[case]
    with pytest.raises(UsageError, match=message):
        MaxentClassifier(threads=1, **parameters).fit(ROWS, y)


def test_more_labels_than_memory_are_refused_before_training():
    y = csr_matrix(([1], ([0], [5])), (40, 2**31 - 2))
    with pytest.raises(OutOfMemoryError, match="classes"):
        MaxentClassifier(threads=1).fit(ROWS, y)


def test_large_sets_keep_rows_for_the_calibration(monkeypatch):
    from dcme_w2v.classify import fit

    monkeypatch.setattr(fit, "TRIAL_DOCUMENTS", 100)
    monkeypatch.setattr(fit, "LEFT_OUT_OF_SETS", 300)
    rows, sets = documents()
    model = MaxentClassifier(threads=1).fit(rows[:700], sets[:700])
    assert 0 < model.threshold_ < 1
    assert model._calibration.kind == "logistic" and len(model._calibration.slopes) > 1
    assert label_sets(sets[:2], 2)[1] == 6


@pytest.mark.parametrize(
    "class_weight, means",
    [({0: 2.0, 2: 3.0}, [1.5, 3, 2.5, 1]), ("balanced", [1.25, 5 / 6, 5 / 6, 1])],
)
def test_a_row_has_the_mean_weight_of_its_classes(class_weight, means):
    given = {"threads": 1, "epochs": 20, "l2": 1e-4}
    own = np.arange(40) % 7 + 1.0
    if class_weight == "balanced":
        own[:] = 1
    weighted = MaxentClassifier(**given, class_weight=class_weight).fit(ROWS, SETS, own)
    same = MaxentClassifier(**given).fit(ROWS, SETS, own * (means * 10))
    assert weighted.coef_ == pytest.approx(same.coef_, rel=1e-6)
    plain = MaxentClassifier(**given).fit(ROWS, SETS, own)
    assert weighted.coef_ != pytest.approx(plain.coef_, rel=1e-6)


@pytest.mark.bits
@pytest.mark.parametrize("kind, is_fitted", [(np.asarray, True), (csr_matrix, False)])
def test_blocks_of_rows_are_learned_one_after_the_other(kind, is_fitted):
    """Also blocks without a label, which lower the scores of all."""
    model = MaxentClassifier(threads=1, lr=1.0)
    if is_fitted:
        model.fit(ROWS[:20], SETS[:20, [1, 2, 0]])
        assert not np.array_equal(model.predict(ROWS), SETS)
    for _ in range(40):
        for begin, end in ((0, 3), (3, 4), (4, 12)):
            model.partial_fit(ROWS[begin:end], kind(SETS[begin:end]))
    found = model.predict(ROWS)
    assert np.array_equal(found if kind is np.asarray else found.toarray(), SETS)
    assert model.coef_.shape == (3, 4) and model.classes_.tolist() == [0, 1, 2]
    p = model.predict_proba(ROWS)
    model.partial_fit(ROWS, np.zeros_like(SETS), classes=[0, 1, 2])
    assert (model.predict_proba(ROWS) <= p).all() and model.n_iter_ > 100
    for y, message in ((SETS[:, :2], "2 columns"), (["a", "b"] * 20, "indicator matrix")):
        with pytest.raises(UsageError, match=message):
            model.partial_fit(ROWS, y)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_labels_are_predicted_as_well_as_by_one_against_the_rest(seed):
    rows, sets = documents(seed)
    assert (sets.sum(axis=1) == 0).any()
    model = MaxentClassifier(threads=1).fit(rows[:1000], sets[:1000])
    assert sets[:1000].any(axis=0).all()
    other = OneVsRestClassifier(LinearSVC()).fit(rows[:1000], sets[:1000])
    ours, peer = (
        f1_score(sets[1000:], one.predict(rows[1000:]), average="micro") for one in (model, other)
    )
    assert ours > peer - 0.01
    p = model.predict_proba(rows[1000:])
    assert p.mean() == pytest.approx(sets.mean(), abs=0.05)  # calibrated


NONE_WORDS = {"royal": "king queen crown", "food": "bread cake tea", "": "car road wheel"}


def none_documents(seed, form, count=240):
    """Return lines of documents of one label, two, none of them, or unlabeled, and their labels."""
    random, lines = np.random.default_rng(seed), []
    for number in range(count):
        own = [*NONE_WORDS][number % 3]
        words, labels = [*random.choice(NONE_WORDS[own].split(), 5)], [own] if own else []
        if number % 4 == 0:
            words += random.choice(NONE_WORDS["food"].split(), 3).tolist()
            labels = sorted({*labels, "food"})
        if number % 50 == 7:
            labels = None
        text = " ".join(words)
        if form == "jsonl":
            lines.append(json.dumps({"t": text, "y": labels}))
        else:
            told = "" if labels is None else "|".join(labels) or "[]"
            numbers = " ".join(f"{ord(word[0]) - 97}:1" for word in sorted({*words}))
            own = "" if labels is None else ",".join(labels) or "[]"
            lines.append(f"{told}\t{text}" if form == "tsv" else f"{own} {numbers}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("form", ["jsonl", "tsv", "svm"])
@pytest.mark.parametrize("options", ["", "--holdout 0.2", "--max-bytes 4000"])
def test_documents_with_none_of_the_labels_are_learned_and_measured(cli, here, form, options):
    names = ["a." + form, "b." + form]
    for seed, name in enumerate(names):
        (here / name).write_text(none_documents(seed, form))
    columns = "--text-column t --label-column y" if form == "jsonl" else ""
    cli(f"classify train {names[0]} --output m --threads 1 {columns} {options}")
    assert "with none of the labels, 5 without a label left out" in cli.err
    found = cli.json(f"classify test m {names[1]} {columns}")
    assert found["documents"] == 235 and found["exact_match"] > 0.97
    assert found["micro_precision"] > 0.97 and 0.97 < found["ndcg_at_3"] <= 1


def test_none_of_the_labels_is_a_warning_without_hinge(cli, here):
    (here / "d.tsv").write_text(none_documents(0, "tsv", 60))
    for options in ("--loss softmax", "--objective tree"):
        cli(f"classify train d.tsv --output m --threads 1 {options}")
        assert "to train on them as well, use --loss hinge" in cli.err
    cli("latent fit d.tsv --output l --latent 2")
    cli("fuse fit d.tsv --unlabeled d.tsv --output f")
