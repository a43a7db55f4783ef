"""Fused features: learning from unlabelled rows, out-of-fold scores, model folders."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_matrix

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.few_labels import choose, domain, initial
from dcme_w2v.few_labels.evidence import evidence_of, pairs_of
from dcme_w2v.few_labels.fit import Data, Fitted, check_data, distill, fit, fit_out_of_fold
from dcme_w2v.few_labels.initial import Rows
from dcme_w2v.few_labels.model import FusedModel
from dcme_w2v.few_labels.options import FusedOptions, ShrinkOptions, kept_pairs, resolved
from dcme_w2v.few_labels.statistics import Statistics, sum_over
from dcme_w2v.few_labels.tied import learn

CLASSES, WORDS = 4, 120


def documents(count, seed, classes=CLASSES):
    """Rows of term frequencies, with words of their class and of others; and the classes."""
    random = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    share = np.full((classes, WORDS), 0.01)
    for label in range(classes):
        share[label, label * 25 : label * 25 + 25] = 0.16
    rows = csr_matrix((random.random((count, WORDS)) < share[labels]).astype(np.float32))
    lengths = np.sqrt(np.maximum(1, np.diff(rows.indptr)))
    return csr_matrix(sparse.diags(1 / lengths) @ rows).astype(np.float32), labels


def data_of(few=3, many=300, **options):
    rows, labels = documents(few * CLASSES, 1)
    options = resolved(FusedOptions(threads=1, **options), len(labels), CLASSES)
    return Data(rows, labels.astype(np.int64), documents(many, 2)[0], CLASSES, options)


def accuracy(found, count=400):
    rows, labels = documents(count, 3)
    decided, _ = Rows(rows, 1).decisions(found.weights)
    return float((decided == labels).mean())


SUPERVISED = {"initial": "supervised"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"final": "tied"},
        {"final": "tied", **SUPERVISED},
        {"final": "beside", **SUPERVISED},
        {"final": "columns", "rounds": 1},
        {"impact": "centred", "final": "tied"},
        {"impact": "centred", "keep": "0.5", **SUPERVISED},
        {"levels": 1, "final": "tied"},
        {"levels": 127, "final": "tied"},
        {"final": "tied", "shrinkage": 10.0, **SUPERVISED},
        {"optimiser": "admm", "final": "tied"},
    ],
    ids=str,
)
def test_every_form_learns_from_unlabelled_rows(options):
    data = data_of(**options)
    assert check_data(data) == []
    few = initial.train(data.labelled.matrix, data.labels, CLASSES, 1e-5, 1)
    rows, labels = documents(400, 3)
    base = float((Rows(rows, 1).decisions(few)[0] == labels).mean())
    found = fit(data)
    assert found.final == data.options.final
    assert accuracy(found) > (base if options.get("levels") == 1 else base + 0.02)
    for one in found.record["rounds"]:
        assert one["documents"] == 300 and one["pairs"] > 0 and one["loss"] >= 0


def test_the_papers_form_uses_binary_features_and_a_tenth_of_the_pairs():
    data = data_of(impact="paper", optimiser="admm", levels=2)
    o = data.options
    assert (o.initial, o.rounds, o.final, o.keep) == ("supervised", 1, "tied", "0.1")
    found = fit(data)
    assert found.binary and found.evidence.levels.nnz <= CLASSES * WORDS // 10
    assert len(found.evidence.values) == 2 and len(found.tied.weights) == 2
    assert set(np.unique(data.fused.matrix.data)) == {1}


def test_impacts_follow_equations_8_to_10():
    """R = sum (2 r - 1) f, lambda_1 the largest |R| left out, c = (|R| - lambda_1) / (F + 1)."""
    sums = Statistics.zeros(3, 2)
    sums.joint[:] = np.array([[3, 0], [1, 1], [0, 2]]) * 65536**2
    sums.counts[:] = np.array([3, 2, 2]) * 65536
    sums.prior[:] = [4 * 65536, 3 * 65536]
    pairs = pairs_of(sums, "paper", "3")
    r = np.array([3, -3, 0, 0, -2, 2.0])  # of the pairs in order
    assert pairs.place.tolist() == [0, 1, 4]
    assert pairs.sign.tolist() == [1, -1, -1]
    np.testing.assert_allclose(pairs.weight, [4, 4, 3])
    np.testing.assert_allclose(pairs.number, (np.abs(r[[0, 1, 4]]) - 2) / pairs.weight)


def test_log_odds_shrink_towards_the_prior():
    sums = Statistics.zeros(2, 2)
    sums.joint[:] = np.array([[8, 2], [1, 1]]) * 65536**2
    sums.counts[:] = np.array([10, 2]) * 65536
    sums.prior[:] = [30 * 65536, 10 * 65536]
    pairs = pairs_of(sums, "log", None)
    a = 0.2 * 6
    share = np.array([0.75, 0.25])
    rate = (np.array([[8, 2], [1, 1]]) + a * share) / (np.array([[10], [2]]) + a)
    expected = np.log(rate / share).ravel()
    np.testing.assert_allclose(pairs.sign * pairs.number, expected, rtol=1e-6)
    np.testing.assert_allclose(pairs.weight, [10, 10, 2, 2])


def test_evidence_is_a_linear_model_of_levels():
    data = data_of(final="tied", **SUPERVISED)
    found = fit(data)
    evidence, tied = found.evidence, found.tied
    rows = documents(20, 5)[0]
    parts = evidence.parts(rows)
    dense = np.zeros((20, CLASSES, 8))
    table = evidence.levels.toarray().astype(int)
    for level in range(1, 9):
        signs = np.where(np.abs(table) == level, np.sign(table), 0)
        dense[:, :, level - 1] = rows @ signs * evidence.values[level - 1]
    np.testing.assert_allclose(parts, dense, atol=1e-5)
    scores = np.concatenate(list(Rows(rows, 1).scores(found.weights)))
    np.testing.assert_allclose(scores, tied.scores(dense), atol=1e-3)


def test_weights_of_levels_are_at_the_minimum():
    random = np.random.default_rng(0)
    parts, labels = random.normal(size=(60, 3, 2)), random.integers(0, 3, 60)
    parts[np.arange(60), labels] += [0.5, 2.0]
    found = learn(parts, labels)
    base = np.log((np.bincount(labels, minlength=3) + 0.5) / 61.5)
    scales = np.sqrt(np.mean(parts**2, axis=(0, 1)))

    def loss(weights, biases):
        scores = parts @ weights + biases
        scores -= scores.max(axis=1, keepdims=True)
        log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        penalty = 0.5e-4 * np.sum((weights * scales) ** 2) + 0.005 * np.sum((biases - base) ** 2)
        return penalty - log_p[np.arange(60), labels].mean()

    least = loss(found.weights, found.biases)
    for step in (-0.02, 0.02):
        for i in range(2):
            assert loss(found.weights + step * np.eye(2)[i], found.biases) > least
        for i in range(3):
            assert loss(found.weights, found.biases + step * np.eye(3)[i]) > least
    assert np.ptp(learn(parts, labels, 1e9).weights) < 1e-3 < np.ptp(found.weights)


def test_a_feature_of_one_labelled_document_gets_no_weight_from_it():
    """Each labelled document has a word of its own, which random unlabelled documents have, too.

    In sample these words are the best evidence; out of fold they are noise.
    """
    data = data_of(few=6, final="tied", rounds=1, **SUPERVISED)
    random = np.random.default_rng(7)
    count, others = len(data.labels), len(data.unlabelled)
    own = sparse.identity(count, format="csr", dtype=np.float32) * 3
    spread = csr_matrix((random.random((others, count)) < 0.05).astype(np.float32))
    rows = csr_matrix(sparse.hstack([data.labelled.matrix * 0.1, own]), dtype=np.float32)
    unlabelled = csr_matrix(sparse.hstack([data.unlabelled.matrix * 0.1, spread]), dtype=np.float32)
    spoilt = Data(rows, data.labels, unlabelled, CLASSES, data.options)
    weights = initial.train(rows, data.labels, CLASSES, 1e-5, 1)
    in_sample_sums = sum_over(unlabelled, spoilt.unlabelled.log_probabilities(weights), CLASSES, 1)
    parts = evidence_of(in_sample_sums, data.options).parts(rows)
    in_sample = learn(parts, data.labels)
    right = in_sample.scores(parts).argmax(axis=1) == data.labels
    out_of_fold = fit_out_of_fold(spoilt, weights, 1e-5, False, reporter=_quiet())
    assert right.mean() > 0.95
    assert out_of_fold.record["rounds"][0]["fold_accuracy"] < 0.8
    assert np.abs(out_of_fold.tied.weights).max() < 0.5 * np.abs(in_sample.weights).max()


def _quiet():
    from dcme_w2v.training.progress import Quiet

    return Quiet()


def test_a_class_missing_in_a_fold_is_excluded_from_it():
    rows, labels = documents(16, 1)
    kept = np.r_[np.flatnonzero(labels != 3), np.flatnonzero(labels == 3)[:1]]
    options = resolved(FusedOptions(threads=1, final="tied", **SUPERVISED), len(kept), CLASSES)
    data = Data(csr_matrix(rows[kept]), labels[kept], documents(200, 2)[0], CLASSES, options)
    (warning,) = check_data(data, ["a", "b", "c", "lonely"])
    assert warning.startswith("warning: fewer labelled documents than 3 folds: lonely;")
    found = fit(data)
    assert found.record["left_out"] == 1 and np.isfinite(found.weights.get()).all()


def test_documents_with_several_labels_stay_in_one_fold():
    rows, labels = documents(30, 1)
    groups = np.repeat(np.arange(30), 2)
    numbers = np.repeat(labels, 2)
    numbers[1::2] = (numbers[1::2] + 1) % CLASSES
    options = resolved(FusedOptions(threads=1), 30, CLASSES)
    data = Data(csr_matrix(rows[groups]), numbers, rows, CLASSES, options, groups)
    folds = data.folds(1)
    assert (folds[::2] == folds[1::2]).all() and set(folds) == {0, 1, 2}


def test_cross_validation_chooses_the_best_candidate():
    data = data_of(few=8, many=200, choose=True)
    found = fit(data)
    choice = found.record["choice"]
    assert set(choice["fold_accuracy"]) == set(choose.CANDIDATES) >= {"maxent", "self-training"}
    assert choice["fold_accuracy"][choice["chosen"]] == max(choice["fold_accuracy"].values())
    assert found.final == choose.CANDIDATES[choice["chosen"]][2]
    assert accuracy(found) > 0.7


@pytest.mark.parametrize("impact", ["log", "paper"])
def test_the_surest_decisions_teach_and_the_fused_models_scores_are_added(impact):
    # Feature 0 is only in documents of which the fused model is not sure, feature 1 in none.
    random = np.random.default_rng(4)
    labels = np.arange(120) % CLASSES
    rows = np.zeros((120, CLASSES + 2), dtype=np.float32)
    rows[np.arange(120), labels + 2] = 1
    unsure = np.sort(random.permutation(np.arange(20, 120))[:25])
    rows[unsure, 2:], rows[unsure, 0] = 0, 1
    labelled, others = csr_matrix(rows[:20]), csr_matrix(rows[20:])
    options = resolved(FusedOptions(threads=1, impact=impact), 20, CLASSES)
    data = Data(labelled, labels[:20], others, CLASSES, options)
    fused = initial.train(labelled, labels[:20], CLASSES, 1e-5, 1)
    table = np.zeros((CLASSES + 3, CLASSES), dtype=np.float32)
    table[1], table[2:-1] = np.arange(CLASSES), 9 * np.eye(CLASSES)
    fused.set(table)
    found = distill(data, Fitted(fused, "tied", binary=impact == "paper")).weights.get()
    np.testing.assert_array_equal(found[0], 0)
    added = table[1] / 2 if impact == "log" else np.zeros(CLASSES)
    np.testing.assert_allclose(found[1], added, rtol=1e-6)
    assert (found[2:-1].argmax(axis=1) == np.arange(CLASSES)).all()


def test_the_default_is_taken_where_the_unlabelled_documents_are_of_another_domain():
    data = data_of(few=20, many=200, choose=True)
    same, count = domain.separability(data, documents(200, 2)[1])
    assert count > 50 and abs(same - 0.5) < 0.15 and not domain.differs(same, count)
    mark = csr_matrix(np.repeat([[1.0], [0.0]], [len(data.labels), 200], axis=0), dtype=np.float32)
    both = sparse.vstack([data.labelled.matrix, data.unlabelled.matrix])
    marked = csr_matrix(sparse.hstack([both, mark], format="csr"))
    other = Data(
        marked[: len(data.labels)], data.labels, marked[len(data.labels) :], CLASSES, data.options
    )
    found = fit(other)
    assert found.final == "teach" and "fold_accuracy" not in found.record["choice"]
    assert found.record["choice"]["separability"] > 0.9


def test_few_documents_show_no_other_domain():
    assert not domain.differs(0.9, 2) and not domain.differs(0.8, 12)
    assert domain.differs(0.8, 100) and not domain.differs(0.64, 10_000)


def test_area_under_the_curve():
    random = np.random.default_rng(1)
    scores, positive = random.integers(0, 9, 60).astype(float), random.random(60) < 0.4
    pairs = np.subtract.outer(scores[positive], scores[~positive])
    expected = np.mean((pairs > 0) + 0.5 * (pairs == 0))
    assert domain.area_under_curve(scores, positive) == pytest.approx(expected)


def test_class_priors_come_from_the_unlabelled_documents(monkeypatch):
    """Classes are balanced among labelled documents, but not among unlabelled ones."""
    data = data_of(few=6, many=200, choose=True)
    always = initial.train(data.labelled.matrix, data.labels, CLASSES, 1e-5, 1)
    always.table[:] = 0
    always.table[-1, 2] = 1
    good = initial.train(*documents(200, 8), CLASSES, 1e-5, 1)
    found = {"maxent": Fitted(always, "maxent"), "teach": Fitted(good, "teach")}
    monkeypatch.setattr(choose, "CANDIDATES", {name: ("supervised", 1, name) for name in found})
    monkeypatch.setattr(choose, "_candidates", lambda part, reporter: found)
    _, final, record = choose.choose(data, _quiet())
    assert final == "teach"
    # of 400 predictions, one model makes 200 of class 2, the other about 50
    assert record["fold_accuracy"]["maxent"] == pytest.approx(250 / 400, abs=0.05)


def test_when_cross_validation_is_used():
    def choosing(documents, classes, **options):
        return resolved(FusedOptions(**options), documents, classes).choose

    assert choosing(1000, 20) and choosing(300, 2)
    assert not choosing(999, 20) and not choosing(200, 4)
    assert not choosing(1000, 20, final="teach") and not choosing(1000, 20, impact="paper")
    assert not choosing(1000, 20, choose=False) and choosing(10, 2, choose=True)
    with pytest.raises(UsageError, match="choose: chooses"):
        choosing(1000, 20, choose=True, rounds=2)
    with pytest.raises(UsageError, match="out of fold"):
        choosing(10, 2, final="beside", initial="self-training")


@pytest.mark.parametrize(
    ("keep", "pairs", "expected"),
    [(None, 50, 50), ("7", 50, 7), ("1", 50, 1), ("0.1", 50, 5), ("1/20", 100, 5), ("1.0", 9, 9)],
)
def test_how_many_pairs_are_kept(keep, pairs, expected):
    assert kept_pairs(keep, pairs) == expected


@pytest.mark.parametrize("keep", ["0", "-1", "2.5", "x", "1/0", "nan", "0.0", "1/2/3", ""])
def test_invalid_numbers_of_pairs(keep):
    for options in (FusedOptions, ShrinkOptions):
        with pytest.raises(UsageError, match="keep="):
            options(keep=keep)
    with pytest.raises(UsageError, match="50 pairs"):
        kept_pairs("51", 50)


def test_invalid_training_data():
    good = data_of(final="tied")

    def wrong(**parts):
        values = {
            "labelled": good.labelled.matrix, "labels": good.labels,
            "unlabelled": good.unlabelled.matrix, **parts,
        }  # fmt: skip
        options = values.pop("options", good.options)
        return Data(values["labelled"], values["labels"], values["unlabelled"], CLASSES, options)

    with pytest.raises(CorpusError, match="no unlabelled documents; give unlabelled"):
        check_data(wrong(unlabelled=csr_matrix((0, WORDS), dtype=np.float32)))
    with pytest.raises(CorpusError, match=r"have 0 of the \d+ features"):
        check_data(wrong(unlabelled=csr_matrix((5, WORDS), dtype=np.float32)))
    with pytest.raises(CorpusError, match="1 labelled document"):
        check_data(wrong(labelled=csr_matrix(good.labelled.matrix[:1]), labels=good.labels[:1]))
    with pytest.raises(UsageError, match="folds=50: there are 12"):
        check_data(wrong(options=dataclasses.replace(good.options, folds=50)))
    negative = good.unlabelled.matrix.copy()
    negative.data[0] = -1
    with pytest.raises(UsageError, match="row 0, column"):
        check_data(wrong(unlabelled=negative))


def test_empty_documents_are_counted_and_ignored():
    data = data_of(final="tied")
    empty = csr_matrix((7, WORDS), dtype=np.float32)
    more = Data(
        data.labelled.matrix, data.labels,
        csr_matrix(sparse.vstack([data.unlabelled.matrix, empty])), CLASSES, data.options,
    )  # fmt: skip
    found = fit(more)
    assert found.record["rounds"][0]["without_features"] >= 7
    assert abs(accuracy(found) - accuracy(fit(data))) < 0.05


@pytest.mark.parametrize("threads", [1, 3])
def test_the_result_does_not_depend_on_threads(threads):
    data = data_of(final="tied", seed=5)
    data.options = dataclasses.replace(data.options, threads=threads)
    other = Data(data.labelled.matrix, data.labels, data.unlabelled.matrix, CLASSES, data.options)
    one = fit(data_of(final="tied", seed=5))
    assert fit(other).weights.get().tobytes() == one.weights.get().tobytes()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"final": "tied"},
        {"final": "beside", **SUPERVISED},
        {"final": "columns"},
        {"impact": "paper"},
        {"levels": 127, "final": "tied"},
    ],
    ids=str,
)
def test_a_saved_model_predicts_bit_identically(options, tmp_path):
    data = data_of(**options)
    names = ["ä", "b", "c", "d"]
    model = FusedModel.of(fit(data), names, data.options)
    model.save(tmp_path / "m")
    loaded = FusedModel.load(tmp_path / "m")
    rows = documents(50, 9)[0]
    for matrix in (rows, csr_matrix(rows[:, :60])):
        one, other = (np.concatenate(list(m.log_probabilities(matrix, 1))) for m in (model, loaded))
        assert one.tobytes() == other.tobytes()
    assert loaded.classes == names and loaded.fused == data.options
    assert loaded.explain("ä", 3) == model.explain("ä", 3)
    if loaded.evidence is not None:
        assert (loaded.transform(rows) != model.transform(rows)).nnz == 0
        assert loaded.transform(rows).shape == (50, 4 * data.options.levels)
        assert len(loaded.column_names()) == 4 * data.options.levels


def test_self_training_labels_the_most_probable_first():
    data = data_of()
    first = initial.train(data.labelled.matrix, data.labels, CLASSES, 1e-5, 1)
    found = initial.self_train(data.labelled.matrix, data.labels, data.unlabelled, first)
    decided, sure = data.unlabelled.decisions(found)
    assert decided.shape == sure.shape == (300,) and (sure <= 0).all()
    truth = np.arange(300) % CLASSES
    before = (data.unlabelled.decisions(first)[0] == truth).mean()
    assert (decided == truth).mean() > before


def test_a_class_without_documents_is_never_predicted():
    rows, labels = documents(40, 1)
    kept = labels != 2
    found = initial.train(csr_matrix(rows[kept]), labels[kept], CLASSES, 1e-5, 1)
    assert 2 not in set(Rows(rows, 1).decisions(found)[0])
    alone = initial.train(csr_matrix(rows[labels == 1]), labels[labels == 1], CLASSES, 1e-5, 1)
    assert set(Rows(rows, 1).decisions(alone)[0]) == {1}
