"""Settings that are chosen on held-out documents: by default, with `--tune`, of L-BFGS."""

import csv
import math
import re
import shlex
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data import text_of
from helpers import arrays_in, described
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from dcme_w2v import MaxentClassifier, TextClassifier
from dcme_w2v.classify import choose, constants
from dcme_w2v.classify.choose import (
    REGULARIZED,
    Problem,
    Search,
    Stage,
    decide,
    flags_of,
    folds_of,
    log_likelihood,
    of_losses,
    stages_of,
)
from dcme_w2v.classify.constants import TABLE_CLASSES
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions
from dcme_w2v.cli.classify import INNER
from dcme_w2v.declarations import flag_of, options_in
from dcme_w2v.errors import Interrupted
from dcme_w2v.platform import ReceivedSignal

TRAIN = "classify train d.tsv --threads 1"


def labeled(wrong=0.0, count=600, classes=12, seed=0):
    """Rows of words, few of their class and most common to all; some labels are wrong."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    own = labels[:, None] * 8 + random.integers(0, 8, (count, 3))
    columns = np.sort(np.concatenate([own, random.integers(96, 400, (count, 9))], axis=1))
    values = np.full(columns.size, 1 / np.sqrt(12), dtype=np.float32)
    matrix = csr_matrix((values, columns.ravel(), np.arange(0, columns.size + 1, 12)), (count, 400))
    wrongly = random.random(count) < wrong
    labels[wrongly] = random.integers(0, classes, wrongly.sum())
    matrix.sum_duplicates()
    return Labeled(matrix, labels[:, None].tolist())


def problem(data=None, classes=12, **given):
    given = ClassifyOptions(**{"threads": 1, **given})
    data = data or labeled()
    return Problem(data, classes, given, several=any(len(own) > 1 for own in data.labels))


def several(count=600):
    data = labeled(count=count)
    return Labeled(data.matrix, [[one[0], (one[0] + 1) % 12] for one in data.labels])


def candidates_of(problem):
    """Return the settings that the first stage compares."""
    return stages_of(problem)[0].candidates(problem, {})


# ---- two pure functions ----


@pytest.mark.parametrize("count, classes, given, first, others", [
    (600, 12, {}, {"epochs": 24, "l2": 8.3e-4, "bias": 0.21}, [{"l2": 8.3e-3}, {"l2": 2.8e-4}]),
    (300, 12, {}, {"solver": "dual", "l2": 1.7e-4}, [{"l2": 1.7e-3}]),
    (600, 12, {"epochs": 3, "bias": 1.0}, {"l2": 8.3e-4}, [{"l2": 8.3e-3}, {"l2": 2.8e-4}]),
    (600, 500, {}, {"epochs": 24, "l2": 8.3e-4}, [{"l2": 8.3e-3}, {"l2": 2.8e-4}]),
    (5001, 500, {}, {"epochs": 6, "l2": 1e-4}, [{"l2": 1e-3}, {"l2": 3.3e-5}]),
    (600, 12, {"batch": 9}, {"lr": 0.5, "epochs": 20, "bias": 0.21}, [{"lr": 0.125, "l2": 0}]),
    (300, 12, {"solver": "sgd"}, {"l2": 1.7e-4}, [{"lr": 0.125, "epochs": 5}]),
    (600, 500, {"solver": "sgd"}, {"lr": 1.0, "epochs": 20}, [{"lr": 0.125, "epochs": 5}]),
    (5001, 500, {"solver": "sgd"}, {"lr": 1.0, "epochs": 10}, [{"lr": 0.125, "epochs": 5}]),
])  # fmt: skip
def test_the_default_is_near_linear_svc(count, classes, given, first, others):
    """C is 1, or 10 with few documents; a given option is no part of a setting."""
    found = candidates_of(problem(labeled(count=count), classes, **given))
    assert len(found) == 1 + len(others) and {one["loss"] for one in found} == {"hinge"}
    for one, wanted in zip(found, [first, *others], strict=True):
        assert {**one, **wanted} == one and not set(one) & set(given)
    is_dual = not {"solver", "batch"} & set(given)
    assert ("bias" in found[0]) == ((is_dual or classes < 500) and "bias" not in given)


def test_more_candidates():
    sets = candidates_of(problem(several()))
    assert [one["lr"] for one in sets] == [0.5, 0.125, 1.0]
    assert [one["epochs"] for one in sets] == [10, 5, 5] and "bias" not in sets[0]
    tuned = of_losses(problem(), {})
    rates = [(one["loss"], one.get("lr")) for one in tuned]
    assert rates[0] == ("hinge", None) and rates[1:4] == [("softmax", x) for x in (4, 1, 0.25)]
    assert {one["loss"] for one in of_losses(problem(objective="dcme"), {})} == {"softmax"}
    wide = Labeled(labeled().matrix * 1e6, labeled().labels)
    assert candidates_of(problem(wide))[0]["bias"] == 1e3  # its maximum


@pytest.mark.parametrize("given, data, classes, chosen", [
    ({}, None, 12, 3), ({}, None, 5000, 3), ({}, None, 5001, 0), ({"loss": "hinge"}, None, 12, 3),
    ({"loss": "softmax"}, None, 12, 0), ({"lr": 1.0}, None, 12, 2), ({"min_lr": 0.1}, None, 12, 2),
    ({"objective": "gd"}, None, 12, 0), ({"clusters": 2}, None, 12, 0),
    ({"solver": "lbfgs"}, None, 12, 1), ({}, several(), 12, 2),
    ({}, several(), TABLE_CLASSES + 1, 0), ({}, several(14_000), TABLE_CLASSES, 1),
])  # fmt: skip
def test_settings_are_chosen_only_where_nothing_excludes_it(given, data, classes, chosen):
    assert len(stages_of(problem(data, classes, **given))) == chosen
    assert len(stages_of(problem(data, classes, **given), tuned=True)) >= 2


@pytest.mark.parametrize("ngrams, count", [(1, 1), (2, 4)])
def test_penalties_are_compared_again_with_other_features(ngrams, count):
    own = replace(problem(), features=({"lead_ngrams": 1}, {"lead_ngrams": 2}))
    best = {"lead_ngrams": ngrams, "l2": 1.0}
    first, *others = stages_of(own)[2].candidates(own, best)
    assert first == best and len(others) == count - 1
    assert all(one["l2"] != 1 and one["lead_ngrams"] == ngrams for one in others)


def figures(*parts):
    return [np.repeat(list(one), 25).astype(float) for one in parts]


@pytest.mark.parametrize("scores, wanted", [
    (figures((1, 1, 0, 0), (1, 1, 1, 0)), 1),
    (figures((1, 1, 0, 0), (1, 1, 0, 0)), 0),
    (figures((1, 1, 0, 0), (0, 1, 0, 0)), 0),
    (figures((0, 1, 0, 1), (1, 0, 1, 0)), 0),
    (figures((-math.inf,) * 4, (0, 0, 0, 0)), 1),
    (figures((-3, -2, -2, -1), (-math.inf,) * 4), 0),
    (figures((-3, -2, -2, -1), (-math.inf,) * 4, (-2, -1, -1, -1)), 2),
    # the third one gains two documents and loses one
    ([*figures((1, 0, 0, 0), (1, 1, 1, 0)), np.r_[0, np.ones(74), np.zeros(23), 1, 1]], 1),
    (figures((1, 0, 0, 0), (0, 0, 0, 1), (1, 1, 0, 1)), 2),
    # the error of the difference counts: that of each accuracy is ten times larger
    ([np.arange(1000) % 2, np.arange(1000) % 2 | (np.arange(1000) < 20)], 1),
])  # fmt: skip
def test_another_candidate_has_to_be_clearly_better(scores, wanted):
    """A candidate that diverged has -inf, which is below every likelihood."""
    assert decide(scores, np.ones(len(scores[0]))) == wanted
    # a document of the weight 0 does not count, and neither does the scale of weights
    more = [np.append(one, [9.0 * i, -9.0 * i]) for i, one in enumerate(scores)]
    assert decide(more, np.append(np.full(len(scores[0]), 7.0), [0, 0])) == wanted


@pytest.mark.parametrize("wrong, wanted", [(0, 1), (1, 1), (20, 0)])
def test_the_candidate_against_wrong_labels_wins_unless_it_is_clearly_worse(wrong, wanted):
    first = np.arange(1000) % 2
    other = np.where(np.arange(1000) < 200, 1 - first, first)  # as many gained as lost
    other[201 : 201 + 2 * wrong : 2] = 0
    assert decide([first, other], np.ones(1000), REGULARIZED) == wanted


@pytest.mark.parametrize("size", [1, 3])
def test_folds_have_all_classes_and_whole_groups(size):
    labels = np.repeat(np.arange(100) % 4, size)
    groups = np.repeat(np.arange(100), size)
    found = folds_of(labels, 5, np.random.default_rng(0), groups)
    assert (np.bincount(labels * 5 + found) == 5 * size).all()
    assert all(len(np.unique(found[groups == group])) == 1 for group in range(100))


def test_documents_of_several_labels_are_dealt_by_the_rarest_one():
    labels = [[0, i % 4] if i % 4 else [0] for i in range(100)]
    found = Search(problem(Labeled(csr_matrix((100, 1)), labels), 4))
    counts = [np.bincount(np.arange(100)[held] % 4, minlength=4) for held in found._held]
    assert np.ptp(counts, axis=0).max() <= 1


# ---- the search ----


def trials_of(monkeypatch):
    """Return a list that gets the documents of each trained classifier."""
    trained, made = [], choose.ClassifierTrainer.__init__

    def noted(self, matrix, documents, *more, **named):
        trained.append(len(documents))
        made(self, matrix, documents, *more, **named)

    monkeypatch.setattr(choose.ClassifierTrainer, "__init__", noted)
    return trained


@pytest.mark.bits
def test_the_default_of_text_trains_few_classifiers(cli, monkeypatch):
    """The scores out of fold calibrate it; its flags give the same weights."""
    Path("d.tsv").write_text(text_of(labeled(count=240)))
    trained = trials_of(monkeypatch)
    cli(f"{TRAIN} --output m")
    assert len(trained) == 10 and set(trained) == {160, 240}
    record = described("m")["record"]["choice"]
    assert record["complete"] and record["held_out"] == 240 and len(record["trials"]) == 4
    assert f"settings: {record['flags']}, chosen on 240 held-out documents (" in cli.err
    cli(f"{TRAIN} --output again", *shlex.split(record["flags"]))
    assert arrays_in("m") == arrays_in("again")
    assert described("m")["options"] == described("again")["options"]


@pytest.mark.parametrize("wrong", [0, 0.6])
def test_a_stronger_penalty_is_chosen_where_labels_are_wrong(cli, wrong):
    """A resumed run has the choice."""
    Path("d.tsv").write_text(text_of(labeled(wrong, 1500)))
    train = f"{TRAIN} --output m --subwords none --lead-ngrams 1"
    cli(f"{train} --checkpoint state --checkpoint-every 2")
    own = described("m")["options"]
    assert (own["l2"] > 1e-3) == (wrong > 0) and own["solver"] == "dual"
    cli(f"{train} --resume state")
    assert described("m")["options"] == own and "settings:" not in cli.err


@pytest.mark.bits
def test_tune_searches_what_is_not_given(cli):
    Path("d.tsv").write_text(text_of(labeled(0.3)))
    record = cli.json(f"{TRAIN} --tune --output m --lr 1 --ngrams 1")["choice"]
    searched = {name for trial in record["trials"] for name in trial}
    assert searched == {"loss", "epochs", "l2", "bias", "measure"} and record["complete"]
    cli(f"{TRAIN} --output again --lr 1 --ngrams 1", *shlex.split(record["flags"]))
    assert arrays_in("m") == arrays_in("again")


@pytest.mark.long
@pytest.mark.parametrize("more", ["--hashing 512", "--solver lbfgs", "--holdout 0.1"])
def test_a_tuned_model_predicts(cli, more):
    Path("d.tsv").write_text(text_of(labeled()))
    cli(f"{TRAIN} --tune --output m {more}")
    assert cli.json("classify test m d.tsv")["accuracy"] > 0.9


def test_too_few_documents(cli):
    Path("d.tsv").write_text("a\tone\nb\ttwo\n")
    error = cli.error(f"{TRAIN} --tune --output m --quiet")
    assert "--tune 60: 2 documents or sentences are not enough" in error
    cli(f"{TRAIN} --output m")
    assert "without a comparison" in cli.err


OPTIONS = {
    "objective": ["gd", "dcme", "nce", "ns", "tree"], "loss": ["softmax", "hinge"],
    "solver": ["sgd", "lbfgs"], "clusters": ["9"], "dcme_update": ["paper"],
    "negative": ["9 --objective ns"], "epochs": ["3"], "patience": ["2 --holdout .2"],
    "lr": ["0.25"], "l2": ["1e-05"], "bias": ["0.3"], "threads": ["2"], "seed": ["3"],
    "features": ["10"], "tokens": ["spaces"], "ngrams": ["2"], "lead": ["0", "5"],
    "lead_ngrams": ["1"], "subwords": ["none", "2-3"], "min_df": ["2"], "hashing": ["64"],
    "weighting": ["log", "count"], "norm": ["none"], "encoding_errors": ["skip"],
}  # fmt: skip


def test_an_option_changes_no_other_without_a_line(cli):
    """Rate, epochs and penalty keep the loss; the log names what else an option changes."""
    declared = {one.name for cls in (ClassifyOptions, FeatureOptions) for one in options_in(cls)}
    assert declared == OPTIONS.keys() | {*INNER, "by", "preset"}
    Path("d.tsv").write_text(text_of(labeled(count=60, classes=3)))

    def settings(flags):
        cli(f"classify train d.tsv -o m {flags}")
        found = described("m")
        return found["options"] | found["features"]

    before = settings("")
    for name, value in ((name, value) for name, values in OPTIONS.items() for value in values):
        flags = f"{flag_of(name)} {value}"
        after = settings(flags)
        assert flags.startswith(flags_of({name: after[name]}))
        changed = {one for one in before if after[one] != before[one]} - {name}
        if name in ("lr", "l2", "epochs", "bias"):
            assert after["loss"] == "hinge", flags
        (line,) = [one for one in cli.err.splitlines() if one.startswith("training: ")]
        unused = {"clusters"} if after["objective"] != "dcme" else set()
        unused |= {"lr"} if after["solver"] == "lbfgs" else set()
        unused |= {"solver"} if after["objective"] == "tree" else set()
        for one in changed - unused - {"min_lr", "batch"}:
            assert f"{flags_of({one: after[one]})} " in line.replace(",", " "), (flags, one)


@pytest.mark.bits
def test_the_choice_does_not_depend_on_threads():
    found = [choose.choose(problem(labeled(0.3), threads=n), 60) for n in (1, 3)]
    assert found[0].setting == found[1].setting and found[0].trials == found[1].trials


def test_trials_learn_from_some_of_many_documents(monkeypatch):
    monkeypatch.setattr(choose, "TRIAL_DOCUMENTS", 300)
    trained = trials_of(monkeypatch)
    found = choose.choose(problem())
    assert set(trained) == {300} and found.scores is None


def test_the_time_limit_keeps_the_first_setting():
    found = choose.choose(problem(), 1e-9)
    assert not found.complete and not found.trials and found.setting["solver"] == "dual"
    assert "no trial finished" in found.line and found.record["complete"] is False


def test_a_signal_ends_the_search(monkeypatch):
    received, epoch = ReceivedSignal(), choose.ClassifierTrainer.epoch

    def signalled(*given):
        received.number = signal.SIGINT
        return epoch(*given)

    monkeypatch.setattr(choose.ClassifierTrainer, "epoch", signalled)
    with pytest.raises(
        Interrupted, match="nothing was written; the best settings so far: loss"
    ) as error:
        choose.choose(problem(), received=received)
    assert error.value.exit_code == 130


def test_tags_of_a_sentence_share_a_fold():
    """Their features are their neighbors."""
    data, groups = labeled(), np.repeat(np.arange(100), 6)
    found = Search(Problem(replace(data, groups=groups), 12, ClassifyOptions()))
    assert len(found._held) > 1
    for held in found._held:
        assert (np.bincount(groups[held])[np.unique(groups[held])] == 6).all()


def test_a_trial_that_diverges_does_not_win():
    """Its likelihood would be above those of all others, which are below 0."""
    data = labeled(0.3)
    wild = Labeled(data.matrix * np.inf, data.labels)
    rows = {1.0: data.matrix, np.inf: wild.matrix}
    given = ClassifyOptions(loss="softmax")
    settings = [{"length": np.inf}, {"length": 1.0}]
    one = Problem(data, 12, given, features=settings, under=lambda at: rows[at["length"]])
    stage = Stage(lambda *_: settings, log_likelihood, 0.0)
    assert Search(one).run([stage], {}).setting == {"length": 1.0}


# ---- in Python ----


@pytest.mark.long
@pytest.mark.parametrize("wrong, lower, upper", [(0, 0, 1e-3), (0.5, 1e-3, 1)])
def test_folds_choose_the_penalty_of_few_numbers(wrong, lower, upper):
    """With wrong labels it is strong; without it, L-BFGS would learn them by heart."""
    data, other = labeled(wrong, 450), labeled(wrong, 2000, seed=1)
    wanted, found = np.ravel(other.labels), {}
    for l2 in (None, 1e-6):
        model = MaxentClassifier(threads=1, l2=l2).fit(data.matrix, np.ravel(data.labels))
        found[l2] = np.log(model.predict_proba(other.matrix))[np.arange(2000), wanted].mean()
        assert model.loss_ == "softmax" and model.n_iter_ > 5
    assert found[None] >= found[1e-6] + wrong
    setting = choose.choose(problem(data, solver="lbfgs")).setting
    assert lower <= setting["l2"] <= upper


def test_rows_of_one_document_a_class_have_no_folds():
    """The strongest penalty would be the most likely one: no class of a fold was learned."""
    rows, labels = np.random.default_rng(0).normal(size=(80, 5)), np.arange(80)
    for given in (None, "hinge"):
        with pytest.warns(UserWarning, match="number of unique classes"):
            model = MaxentClassifier(threads=1, loss=given).fit(rows, labels)
        own = model.predict_proba(rows)[labels, labels]
        assert np.median(own) > 2 / 80  # neither are probabilities calibrated by such folds
        assert given or model.score(rows, labels) > 0.95


@pytest.mark.parametrize("count", [600, 20_000])
def test_the_softmax_of_the_hinge_loss_is_calibrated(count):
    """Its likelihood is near the best that a factor gives; some of 20,000 rows are left out."""
    data, other = labeled(0.4, count), labeled(0.4, 2000, seed=1)
    model = MaxentClassifier(loss="hinge", lr=0.5, threads=1)
    model.fit(data.matrix, np.ravel(data.labels))
    wanted = np.ravel(other.labels)
    own = np.log(model.predict_proba(other.matrix))[np.arange(2000), wanted].mean()
    scores = model.decision_function(other.matrix)
    best = max(
        log_softmax(factor * scores)[np.arange(2000), wanted].mean()
        for factor in np.geomspace(0.1, 10, 60)
    )
    assert own > best - 0.02


@pytest.mark.bits
def test_the_estimator_in_scikit_learn():
    data = labeled(0.3)
    labels = np.ravel(data.labels)
    model = MaxentClassifier(tune=True, threads=1, random_state=3)
    found = clone(model).fit(data.matrix, labels)
    assert found.get_params()["tune"] is True and found.loss is None
    assert {"loss", "lr"} <= set(found.tuned_) and found.lr_ == found.tuned_["lr"]
    plain = MaxentClassifier(**found.tuned_, threads=1, random_state=3).fit(data.matrix, labels)
    assert np.array_equal(plain.coef_, found.coef_)
    search = GridSearchCV(model, {"bias": [0.1, 1.0]}, cv=2).fit(data.matrix[:300], labels[:300])
    assert search.best_score_ > 0.3
    data, labels = labeled(), np.ravel(labeled().labels)
    svm = LinearSVC(intercept_scaling=0.2).fit(data.matrix, labels)
    default = MaxentClassifier(loss="hinge", threads=1).fit(data.matrix, labels)
    assert (default.predict(data.matrix) == svm.predict(data.matrix)).mean() > 0.97


def test_each_constant_has_rows_with_other_values_in_the_results():
    names = {name for name in vars(constants) if name.isupper()}
    path = Path(__file__).parents[2] / "scripts" / "benchmarks" / "results.csv"
    with path.open(newline="") as file:
        settings = [row[1] for row in csv.reader(file) if row[0] == "constants"]
    assert len(names) <= 28
    assert names == set(re.findall(r"(\w+) =", " ".join(settings)))


@pytest.mark.parametrize("solver", ["dual", "sgd"])
def test_features_without_training_rows_do_not_shorten_held_out_rows(solver):
    """Each row has a feature of its own, which is unknown where the row is held out."""
    count = 60
    own, shared = np.arange(count), count + np.arange(count) % 2
    indices = np.stack([own, shared], axis=1).ravel()
    values = np.tile(np.float32([0.8, 0.6]), count)
    rows = csr_matrix((values, indices, np.arange(0, 2 * count + 1, 2)), (count, count + 2))
    data = Labeled(rows, [[i % 2] for i in range(count)])
    given = ClassifyOptions(loss="hinge", solver=solver, bias=0.0, l2=1e-3, epochs=5)
    found = [
        Search(Problem(data, 2, given, is_unit=is_unit)).scores({}).scores
        for is_unit in (False, True)
    ]
    assert np.allclose(found[1], found[0] / 0.6, rtol=1e-3) and np.abs(found[0]).min() > 0.1


@pytest.mark.parametrize("given, is_unit", [
    ({}, True), ({"norm": "none"}, False), ({"hashing": 64}, False),
])  # fmt: skip
def test_rows_of_known_words_have_unit_length(monkeypatch, given, is_unit):
    """With hashing, an unknown word takes the column of another."""
    found = []
    monkeypatch.setattr("dcme_w2v.classify.train.fit_linear", lambda *both: found.extend(both))
    with pytest.raises(AttributeError):  # nothing was fitted
        TextClassifier(**given).fit(["green tea", "a red bus"] * 30, ["drink", "traffic"] * 30)
    assert found[0].is_unit == is_unit


@pytest.mark.parametrize("weight, count", [(None, 3), (8.0, 3), (30.0, 5)])
def test_low_strengths_are_tried_for_very_unequal_weights(weight, count):
    rows = csr_matrix(np.eye(2, dtype=np.float32)[np.arange(1200) % 40 // 39])
    data = Labeled(rows, [[i % 40 // 39] for i in range(1200)])
    if weight is not None:
        data = data.weighted(np.where(np.arange(1200) % 40 == 39, weight, 1.0))
    found = candidates_of(Problem(data, 2, ClassifyOptions()))
    assert len({one["l2"] for one in found}) == count
