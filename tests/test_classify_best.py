"""The most probable classes by bounds equal those of all scores, ties included."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.sparse import csr_matrix, random_array, save_npz

from dcme_w2v import MaxentClassifier
from dcme_w2v._core import classify as core_classify
from dcme_w2v.classify import best
from dcme_w2v.classify.best import TopKSearch
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.trainer import LowRankWeights, Weights
from dcme_w2v.classify.voting import VotingWeights
from dcme_w2v.cli.main import program, run
from dcme_w2v.errors import DivergedError
from dcme_w2v.numeric.core import INSTRUCTION_SETS, core

SETS = [name for name in INSTRUCTION_SETS if core.has_kernels(name)]
CLASSES, FEATURES = 2500, 60  # no multiple of the 16, 32 or 256 classes that are taken together


def linear(kind="plain", classes=CLASSES, features=FEATURES):
    random = np.random.default_rng(3)
    weights = Weights(features, classes, 0.1, random.permutation(classes))
    table = random.normal(size=(features + 1, classes)) ** 3
    if kind == "ties":
        table = np.rint(table / 4)
    if kind == "constant":
        table[1:] = 2.5
    weights.set(table.astype(np.float32))
    return weights


def rows(kind="plain", count=150, features=FEATURES):
    random = np.random.default_rng(4)
    found = csr_matrix(random_array((count, features), density=0.2, rng=random), dtype=np.float32)
    if kind == "signed":
        found.data *= random.choice([-1, 1], len(found.data)).astype(np.float32)
    if kind == "ties":
        found.data = np.rint(found.data * 4).astype(np.float32)
    return found


def of_all_scores(weights, X, count):
    scores = weights.scores(core_documents(X), 0, X.shape[0], 1)
    return np.argsort(-scores, axis=1, kind="stable")[:, :count]


core_documents = best.core_documents


@pytest.mark.parametrize("kernels", SETS)
@pytest.mark.parametrize("kind", ["plain", "signed", "ties", "constant"])
def test_they_are_the_first_of_all_classes_sorted(monkeypatch, kind, kernels):
    monkeypatch.setenv("DCME_W2V_KERNELS", kernels)
    monkeypatch.setattr(best, "MIN_CLASSES", 1)
    monkeypatch.setattr(best, "MAX_SHARE", 1)
    for classes in (1, 15, 16, 33, 300, CLASSES):
        weights, X = linear(kind, classes), rows(kind)
        for count in {1, min(5, classes), min(40, classes)}:
            wanted = of_all_scores(weights, X, count)
            for threads in (1, 3):
                search = TopKSearch(weights)
                np.testing.assert_array_equal(search.top_k(X, count, threads), wanted)
                assert search.scored > 0


@pytest.mark.parametrize("kind", ["plain", "signed"])
def test_scores_are_computed_of_few_classes(kind):
    search, X = TopKSearch(linear(kind)), rows(kind)
    search.top_k(X, 5, 2)
    assert 16 * X.shape[0] <= search.scored < 0.15 * CLASSES * X.shape[0]


def test_documents_may_come_in_parts():
    weights, X, search = linear(), rows(), TopKSearch(linear())
    half = X.copy()
    half.data[half.indices >= FEATURES // 2] = 0
    half.eliminate_zeros()
    for part, coded in [(half, FEATURES // 2), (X, FEATURES), (X[:0], FEATURES), (X[:1], FEATURES)]:
        found = search.top_k(part, 3, 1)
        np.testing.assert_array_equal(found, of_all_scores(weights, part, 3))
        assert search._is_coded.sum() == coded + 1  # the bias
    empty = csr_matrix((2, FEATURES), dtype=np.float32)
    np.testing.assert_array_equal(search.top_k(empty, 3, 1), of_all_scores(weights, empty, 3))


def test_a_document_with_more_features_than_sums_have_room_for():
    features = 70_000
    weights = linear(classes=40, features=features)
    X = csr_matrix(np.ones((2, features), dtype=np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(best, "MIN_CLASSES", 1)
        patch.setattr(best, "MAX_SHARE", 1)
        patch.setattr(best, "MIN_USES", 1)
        search = TopKSearch(weights)
        np.testing.assert_array_equal(search.top_k(X, 2, 1), of_all_scores(weights, X, 2))
    assert search.scored == 2 * 40  # every class: no bounds


def test_where_bounds_do_not_pay_all_scores_are_computed():
    X = rows()
    few, many = linear(classes=300), linear()
    offset = linear()
    offset.offset[:] = np.arange(CLASSES)
    low_rank = LowRankWeights(FEATURES, CLASSES, 7, 0.1, seed=1)
    vote = VotingWeights([linear(), linear("ties")])
    for weights, matrix, count in [
        (few, X, 1), (many, X, 100), (many, X[:3], 1), (offset, X, 2), (low_rank, X, 2),
        (vote, X, 2),
    ]:  # fmt: skip
        search = TopKSearch(weights)
        wanted = of_all_scores(weights, matrix, count)
        np.testing.assert_array_equal(search.top_k(matrix, count, 1), wanted)
        assert search.scored == 0


def test_without_memory_for_codes_all_scores_are_computed(monkeypatch):
    def none(*_):
        raise MemoryError

    monkeypatch.setattr(best, "new_codes", none)
    weights, X = linear(), rows()
    search = TopKSearch(weights)
    for _ in range(2):
        np.testing.assert_array_equal(search.top_k(X, 3, 1), of_all_scores(weights, X, 3))
    assert search.scored == 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_weights_and_scores_that_are_not_finite_are_an_error(wrong):
    weights, X = linear(), rows()
    weights.table[3, 5] = wrong
    with pytest.raises(DivergedError, match=r"NaN or infinite.*lower (--)?lr"):
        TopKSearch(weights).top_k(X, 2, 1)
    for value in (3e38, wrong):
        X.data[:] = value
        with pytest.raises(DivergedError, match=r"NaN or infinite.*lower (--)?lr"):
            TopKSearch(linear()).top_k(X, 2, 1)


def test_the_model_and_the_estimator_use_them():
    weights, X = linear(), rows()
    model = Classifier([f"c{i}" for i in range(CLASSES)], weights, None, ClassifyOptions())
    wanted = of_all_scores(weights, X, 4)
    np.testing.assert_array_equal(model.best_classes(X, 4, 2), wanted)
    random = np.random.default_rng(0)
    X = csr_matrix(random_array((2 * 2048, 90), density=0.1, rng=random))
    fitted = MaxentClassifier(threads=1, epochs=1).fit(X, np.arange(len(X.indptr) - 1) % 2048)
    found = fitted.classes_[fitted.decision_function(X).argmax(axis=1)]
    np.testing.assert_array_equal(fitted.predict(X), found)


def output(*arguments):
    found = CliRunner().invoke(program, ["classify", *arguments])
    assert found.exit_code == 0, found.output
    return found.stdout.splitlines()


def test_predict_prints_the_same_labels_without_probabilities(tmp_path):
    weights, X = linear(), rows()
    model, file = str(tmp_path / "model"), str(tmp_path / "X.npz")
    names = [f"c{i}" for i in range(CLASSES)]
    Classifier(names, weights, None, ClassifyOptions()).save(model)
    save_npz(file, X)
    given = ["predict", model, file, "-k", "3"]
    with_p = [line.split("\t")[::2] for line in output(*given)]
    assert [line.split("\t") for line in output(*given, "--no-probabilities")] == with_p
    assert [json.loads(line) for line in output(*given, "--no-probabilities", "--json")] == with_p


def test_arrays_of_wrong_sizes_and_features_without_codes_are_errors():
    weights, X = linear(), rows()
    search = TopKSearch(weights)
    search.top_k(X, 1, 1)
    codes, documents = search._codes, core_documents(X)
    with pytest.raises(ValueError, match="do not fit"):
        codes.best(documents, 0, 2, np.empty((1, 1), dtype=np.int32))
    with pytest.raises(ValueError, match="do not fit"):
        codes.best(documents, 0, 2, np.empty((2, CLASSES + 1), dtype=np.int32))
    with pytest.raises(ValueError, match="out of range"):
        codes.add(np.array([FEATURES + 1], dtype=np.int32), False)
    search._is_coded[4] = 0
    with pytest.raises(ValueError, match="no codes"):
        codes.best(documents, 0, X.shape[0], np.empty((X.shape[0], 1), dtype=np.int32))
    with pytest.raises(ValueError, match="do not fit"):
        core_classify.ClassCodes(
            weights.linear, np.arange(3, dtype=np.int32), np.empty((2, 2), np.uint8),
            np.empty((2, 17), np.float32), np.zeros(2, np.uint8),
        )  # fmt: skip


def test_models_of_other_kinds_give_labels_too(tmp_path, capsys):
    docs, model = tmp_path / "docs.tsv", str(tmp_path / "m")
    docs.write_text("a\tred\nb\tblue\n" * 20)
    output("train", str(docs), "--output", model, "--rank", "2", "--quiet")
    labels = [line.split("\t")[0] for line in output("predict", model, str(docs))]
    assert output("predict", model, str(docs), "--no-probabilities") == labels
    tokens, model = tmp_path / "tokens.conll", str(tmp_path / "t")
    tokens.write_text("a\tX\nb\tY\n\n" * 20)
    output("train", str(tokens), "--output", model, "--by", "token", "--quiet")
    assert run(["classify", "predict", model, str(tokens), "--no-probabilities"]) == 2
    assert "--no-probabilities: is not for a model --by token" in capsys.readouterr().err
