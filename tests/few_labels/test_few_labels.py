"""Few labels: levels, out-of-fold weights, distillation, sums by cross-validation, folders."""

import copy
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse import csr_matrix
from scipy.special import log_softmax

from dcme_w2v.classify.model import load_classifier
from dcme_w2v.errors import UsageError
from dcme_w2v.few_labels import choose, initial
from dcme_w2v.few_labels.choose import fit_chosen
from dcme_w2v.few_labels.evidence import evidence_of, learn, pairs_of
from dcme_w2v.few_labels.fit import (
    Fitted,
    TrainingRows,
    check_data,
    distill,
    fit_models,
    fit_out_of_fold,
)
from dcme_w2v.few_labels.initial import ScoredRows
from dcme_w2v.few_labels.model import FusedModel
from dcme_w2v.few_labels.options import PRESETS, FusedOptions, resolved
from dcme_w2v.few_labels.statistics import Statistics, sum_over
from dcme_w2v.training.progress import Reporter


def training(rows, labels, others, options, *groups):
    """Return labeled rows and others, with resolved options."""
    options = resolved(FusedOptions(**{"threads": 1} | options))
    rows, others = (csr_matrix(one, dtype=np.float32) for one in (rows, others))
    return TrainingRows(rows, labels, others, CLASSES, options, *groups)


CLASSES, WORDS = 4, 120
PAPER, BESIDE = PRESETS["paper"], {"final": "beside"}
MODELS = {"supervised", "self-training", "distill", "beside"}


class Messages(Reporter):
    """A reporter that keeps its messages."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def message(self, message):
        self.messages.append(message)


def documents(count, seed, labels=None):
    """Rows of term frequencies, with words of their class and of others; and the classes."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % CLASSES if labels is None else labels
    share = np.full((CLASSES, WORDS), 0.01)
    for label in range(CLASSES):
        share[label, label * 25 : label * 25 + 25] = 0.16
    rows = csr_matrix((random.random((count, WORDS)) < share[labels]).astype(np.float32))
    lengths = np.sqrt(np.maximum(1, np.diff(rows.indptr)))
    return csr_matrix(sparse.diags(1 / lengths) @ rows).astype(np.float32), labels


def data_of(few=3, many=300, **options):
    choose = None if "choose" in options else False
    return training(
        *documents(few * CLASSES, 1), documents(many, 2)[0], {"choose": choose, **options}
    )


def accuracy(found):
    rows, labels = documents(400, 3)
    rows = ScoredRows(csr_matrix(rows.sign()) if found.binary else rows, 1)
    return float((rows.decisions(found.weights)[0] == labels).mean())


def model_of(found, classes, options):
    return FusedModel(classes, None, options, weights=found.weights, evidence=found.evidence)


@pytest.mark.bits
@pytest.mark.parametrize(
    "options, final",
    [
        ({}, "distill"),
        ({"initial": "supervised"}, "distill"),
        ({"levels": 127}, "distill"),
        ({"impact": "centered"}, "distill"),
        (BESIDE, "beside"),
        ({"impact": "centered", **BESIDE}, "beside"),
        (PAPER, "levels"),
    ],
    ids=str,
)
def test_every_form_learns_from_unlabeled_rows_and_is_saved(options, final):
    data = data_of(**options)
    assert check_data(data) == []
    few = initial.train(data.labeled.matrix, data.labels, CLASSES, 1e-5, 1)
    found = fit_chosen(data)
    assert found.final == final
    if options != PAPER:  # which loses with so few documents
        assert accuracy(found) > accuracy(Fitted(few, "supervised")) + 0.02
    assert found.record["rounds"]
    for one in found.record["rounds"]:
        assert one["documents"] == 300 and one["pairs"] > 0 and one["loss"] >= 0
    model = model_of(found, ["ä", "b", "c", "d"], data.options)
    model.save("m")
    loaded = FusedModel.load("m")
    rows = documents(50, 9)[0]
    for matrix in (rows, csr_matrix(rows[:, :60])):
        one, other = (np.concatenate(list(m.log_probabilities(matrix, 1))) for m in (model, loaded))
        assert one.tobytes() == other.tobytes()
        assert (loaded.transform(matrix) != model.transform(matrix)).nnz == 0
    assert loaded.options == data.options and loaded.explain(label="ä", count=3) == model.explain(
        label="ä", count=3
    )
    assert loaded.transform(rows).shape == (50, len(loaded.column_names()))


def test_impacts_follow_equations_8_to_10(monkeypatch):
    """R = sum (2 r - 1) f, lambda_1 the largest |R| left out, c = (|R| - lambda_1) / (F + 1)."""
    monkeypatch.setattr("dcme_w2v.few_labels.evidence.PAPER_KEPT", 0.5)
    sums = Statistics.zeros(3, 2)
    sums.joint[:] = np.array([[3, 0], [1, 1], [0, 2]]) * 65536**2
    sums.counts[:] = np.array([3, 2, 2]) * 65536
    pairs = pairs_of(sums, "paper")
    r = np.array([3, -3, 0, 0, -2, 2.0])  # of the pairs in order
    assert pairs.place.tolist() == [0, 1, 4] and pairs.sign.tolist() == [1, -1, -1]
    assert_allclose(pairs.weight, [4, 4, 3])
    assert_allclose(pairs.number, (np.abs(r[[0, 1, 4]]) - 2) / pairs.weight)


def test_log_odds_shrink_towards_the_prior():
    sums = Statistics.zeros(2, 2)
    sums.joint[:] = np.array([[8, 2], [1, 1]]) * 65536**2
    sums.counts[:] = np.array([10, 2]) * 65536
    sums.prior[:] = [30 * 65536, 10 * 65536]
    pairs, a, share = pairs_of(sums, "log"), 0.2 * 6, np.array([0.75, 0.25])
    rate = (np.array([[8, 2], [1, 1]]) + a * share) / (np.array([[10], [2]]) + a)
    expected = np.log(rate / share).ravel()
    assert_allclose(pairs.sign * pairs.number, expected, rtol=1e-6)
    assert_allclose(pairs.weight, [10, 10, 2, 2])


def test_a_feature_of_one_labeled_document_gets_no_weight_from_it():
    """Each labeled document has a word of its own, which random unlabeled documents have, too.

    In sample these words are the best evidence; out of fold they are noise.
    """
    data = data_of(few=6, initial="supervised", rounds=1)
    count, others = len(data.labels), len(data.unlabeled)
    spread = np.random.default_rng(7).random((others, count)) < 0.05
    rows = csr_matrix(sparse.hstack([data.labeled.matrix * 0.1, 3 * np.eye(count)]), dtype="f")
    unlabeled = sparse.hstack([data.unlabeled.matrix * 0.1, spread])
    spoilt = training(rows, data.labels, unlabeled, vars(data.options))
    weights = initial.train(rows, data.labels, CLASSES, 1e-5, 1)
    log_p = spoilt.unlabeled.log_probabilities(weights)
    in_sample_sums = sum_over(spoilt.unlabeled.matrix, log_p, CLASSES)
    evidence = evidence_of(in_sample_sums, data.options)
    parts = evidence.parts(rows)
    in_sample = learn(parts, data.labels)
    right = in_sample.scores(parts).argmax(axis=1) == data.labels
    out_of_fold = fit_out_of_fold(spoilt, weights, False, Reporter())
    assert right.mean() > 0.95 and out_of_fold.record["rounds"][0]["fold_accuracy"] < 0.8
    noise = (evidence.weights(in_sample.weights)[WORDS:], out_of_fold.weights.get()[WORDS:-1])
    most, least = (np.abs(weights).mean() for weights in noise)
    assert least < 0.5 * most


def test_a_class_missing_in_a_fold_is_excluded_from_it():
    rows, labels = documents(16, 1)
    kept = np.r_[np.flatnonzero(labels != 3), np.flatnonzero(labels == 3)[:1]]
    given = {"choose": False, **BESIDE}
    data = training(rows[kept], labels[kept], documents(200, 2)[0], given)
    (warning,) = check_data(data, ["a", "b", "c", "lonely"])
    assert "fewer labeled documents than the 3 folds" in warning and warning.endswith(": lonely")
    found = fit_chosen(data)
    assert found.record["left_out"] == 1 and np.isfinite(found.weights.get()).all()


def test_documents_with_several_labels_stay_in_one_fold():
    rows, labels = documents(30, 1)
    groups, numbers = np.repeat(np.arange(30), 2), np.repeat(labels, 2)
    numbers[1::2] = (numbers[1::2] + 1) % CLASSES
    folds = training(rows[groups], numbers, rows, {}, groups).folds()
    assert (folds[::2] == folds[1::2]).all() and set(folds) == {0, 1, 2}


def test_the_tokens_of_a_sentence_are_all_learned():
    rows, labels = documents(40, 1)
    data = training(rows, labels, rows, {}, np.arange(40), np.arange(40) // 4)
    found, folds = data.with_all_labels(), data.folds().reshape(-1, 4)
    assert (found.matrix != rows).nnz == 0 and found.labels == labels[:, None].tolist()
    assert (folds == folds[:, :1]).all()


@pytest.mark.bits
@pytest.mark.parametrize("several", [False, True])
def test_the_supervised_candidate_is_the_classifier_of_classify_train(cli, several):
    """It was maximum entropy, which had 6 points less with 60 documents."""
    rows, labels = documents(70, 1, np.arange(70) % 11 % CLASSES)
    groups = np.repeat(np.arange(70), 1 + several)
    numbers = np.repeat(labels, 1 + several)
    numbers[several::2] = (numbers[several::2] + several) % CLASSES
    data = training(rows[groups], numbers, rows, {}, groups)
    names = ["|".join(map(str, numbers[groups == i])) for i in range(70)]
    sparse.save_npz("d.npz", rows)
    Path("d.labels").write_text("".join(f"{one}\n" for one in names))
    cli("classify train d.npz --labels d.labels --threads 1 --output m")
    found = load_classifier("m").weights.get()
    assert data.supervised().get().tobytes() == found.tobytes()


@pytest.mark.parametrize(
    "options, final", [({}, "sum"), ({"rounds": 2}, "distill"), ({"choose": False}, "distill")]
)
def test_the_sum_is_near_the_supervised_model_where_the_others_are_worse(
    options, final, monkeypatch
):
    """The words of the unlabeled documents go together across the classes."""
    monkeypatch.setattr(choose, "differs", lambda area, count: False)
    mixed = csr_matrix(documents(300, 2)[0][:, np.random.default_rng(3).permutation(WORDS)])
    mixed.sort_indices()
    data, said = training(*documents(80, 1), mixed, options), Messages()
    found = fit_chosen(data, said)
    assert found.final == final
    supervised = accuracy(Fitted(data.supervised(), "supervised"))
    if data.options.choose is False:
        assert accuracy(found) < supervised - 0.1
        assert not said.messages and "choice" not in found.record
        return
    choice = found.record["choice"]
    assert set(choice["factors"]) == ({"distill"} if final == "distill" else MODELS)
    assert set(choice["fold_accuracy"]) == set(choice["factors"])
    for name, figure in choice["fold_accuracy"].items():
        shown = f"{name} {figure:.4f} ({choice['factors'][name]:.3g})"
        assert any(shown in line for line in said.messages)
    assert ("unlabeled documents do not help" in said.messages[-1]) == (final == "sum")
    assert choice["fold_log_likelihood"] > -np.log(CLASSES)
    assert (accuracy(found) > supervised - 0.02) == (final == "sum")


@pytest.mark.bits
def test_confident_decisions_are_learnt_and_scores_of_the_teacher_are_added():
    # Feature 0 is only in documents of which the fused model is not sure, feature 1 in none.
    labels = np.arange(120) % CLASSES
    rows = np.zeros((120, CLASSES + 2))
    rows[np.arange(120), labels + 2] = 1
    unsure = np.random.default_rng(4).permutation(np.arange(20, 120))[:25]
    rows[unsure, 2:], rows[unsure, 0] = 0, 1
    data = training(rows[:20], labels[:20], rows[20:], {})
    fused = initial.train(data.labeled.matrix, labels[:20], CLASSES, 1e-5, 1)
    table = np.zeros((CLASSES + 3, CLASSES), dtype=np.float32)
    table[1], table[2:-1] = np.arange(CLASSES), 9 * np.eye(CLASSES)
    fused.set(table)
    found = distill(data, Fitted(fused, "levels")).weights.get()
    assert_array_equal(found[0], 0)
    assert_allclose(found[1], table[1] / 2, rtol=1e-6)
    assert (found[2:-1].argmax(axis=1) == np.arange(CLASSES)).all()


def test_the_default_is_taken_where_the_unlabeled_documents_are_of_another_domain():
    data, said = data_of(few=20, many=200, choose=True), Messages()
    assert choose.separability(data, np.full(200, -1)) == (0.5, 0)
    same, count = choose.separability(data, documents(200, 2)[1])
    assert count > 50 and abs(same - 0.5) < 0.15 and not choose.differs(same, count)
    marked = sparse.hstack([data.labeled.matrix, np.ones((len(data.labels), 1))])
    others = sparse.hstack([data.unlabeled.matrix, np.zeros((200, 1))])
    found = fit_chosen(training(marked, data.labels, others, {"choose": True}), said)
    assert found.final == "distill" and set(found.record["choice"]["factors"]) == {"distill"}
    assert found.record["choice"]["separability"] > 0.9
    assert "cross-validation cannot choose" in said.messages[0]
    for area, count, expected in ((0.9, 2, 0), (0.8, 12, 0), (0.8, 100, 1), (0.64, 10_000, 0)):
        assert choose.differs(area, count) == bool(expected)


@pytest.mark.parametrize(
    "options, chosen",
    [
        ({}, True), ({"levels": 3}, True), ({"choose": True}, True), ({"choose": False}, False),
        ({"final": "distill"}, None), ({"rounds": 3}, None), (PAPER, False),
        ({"choose": True, "rounds": 2}, "choose is not supported with options"),
        ({"initial": "self-training", **BESIDE}, "use initial=supervised"),
        ({**PAPER, "choose": True}, "choose is not supported with options"),
        ({**PAPER, "final": "distill"}, "impact=paper requires"),
    ],
)  # fmt: skip
def test_when_models_are_added(options, chosen):
    if isinstance(chosen, str):
        with pytest.raises(UsageError, match=chosen):
            resolved(FusedOptions(**options))
    else:
        assert resolved(FusedOptions(**options)).choose is chosen


def test_weights_of_levels_are_at_the_minimum():
    random = np.random.default_rng(0)
    parts, labels = random.normal(size=(60, 3, 2)), random.integers(0, 3, 60)
    parts[np.arange(60), labels] += [0.5, 2.0]
    found = learn(parts, labels)
    base = np.log((np.bincount(labels, minlength=3) + 0.5) / 61.5)
    scales = np.sqrt(np.mean(parts**2, axis=(0, 1)))

    def loss(weights, biases):
        scores = parts @ weights + biases
        log_p = log_softmax(scores, axis=1)
        penalty = 0.5e-4 * np.sum((weights * scales) ** 2) + 0.005 * np.sum((biases - base) ** 2)
        return penalty - log_p[np.arange(60), labels].mean()

    least = loss(found.weights, found.biases)
    for step in (-0.02, 0.02):
        for i in range(2):
            assert loss(found.weights + step * np.eye(2)[i], found.biases) > least
        for i in range(3):
            assert loss(found.weights, found.biases + step * np.eye(3)[i]) > least


@pytest.mark.bits
def test_the_sum_of_all_models_is_saved():
    data, said = data_of(few=8, many=200, choose=True), Messages()
    found = fit_chosen(data, said)
    assert found.final == "sum" and accuracy(found) > 0.8
    rows, factors = documents(50, 9)[0], found.record["choice"]["factors"]
    models = fit_models(data, True)
    expected = sum(factors[name] * one.scores(rows, 1) for name, one in models.items())
    assert set(models) == MODELS
    assert_allclose(found.scores(rows, 1), expected, rtol=1e-4, atol=1e-4)
    model_of(found, list("abcd"), data.options).save("m")
    loaded = FusedModel.load("m")
    assert loaded.transform(rows).shape == (50, 8 * CLASSES)
    assert loaded.weights.get().tobytes() == found.weights.get().tobytes()


@pytest.mark.parametrize("few, final", [(1, "distill"), (2, "distill"), (3, "sum")])
def test_very_few_documents_have_no_levels_out_of_fold(few, final):
    found = fit_chosen(data_of(few=few, choose=True))
    assert found.final == final and accuracy(found) > 0.4


@pytest.mark.parametrize("counts", [(8, 2), (20, 1), (4, 1, 1)])
def test_folds_may_leave_out_all_classes_but_one(counts):
    labels = np.repeat(np.arange(len(counts)), counts)
    others, _ = documents(100, 2, np.arange(100) % len(counts))
    found = fit_chosen(training(*documents(len(labels), 1, labels), others, {}))
    assert found.final == "sum" and set(found.record["choice"]["factors"]) == MODELS


def test_class_priors_come_from_the_unlabeled_documents_if_each_class_has_as_many_labels(
    monkeypatch,
):
    """Unequal numbers are shares themselves; decisions would make large classes larger."""
    good = initial.train(*documents(200, 8), CLASSES, 1e-5, 1)
    always = copy.deepcopy(good)
    always.table[:] = 0
    always.table[-1, 2] = 1
    models = {"supervised": Fitted(always, "supervised"), "distill": Fitted(good, "distill")}
    monkeypatch.setattr(choose, "fit_models", lambda part, of_all: models)
    # of 400 predictions, one model makes 200 of class 2, the other about 50
    _, found = choose.choose(data_of(few=6, many=200, choose=True), Reporter())
    assert found["fold_accuracy"]["supervised"] == pytest.approx(250 / 400, abs=0.05)
    labels = np.repeat(np.arange(CLASSES), [12, 6, 3, 3])
    data = training(*documents(24, 1, labels), documents(200, 2)[0], {})
    _, found = choose.choose(data, Reporter())
    assert found["fold_accuracy"]["supervised"] == pytest.approx(3 / 24)
