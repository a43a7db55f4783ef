"""Loss and learning rate are chosen on held-out documents."""

from pathlib import Path

import numpy as np
import pytest
from helpers import described
from scipy.sparse import csr_matrix

from dcme_w2v import MaxentClassifier
from dcme_w2v.classify import calibration, loss
from dcme_w2v.classify.fit import Labeled
from dcme_w2v.classify.loss import LossSearch, PenaltySearch, is_loss_open, loss_line
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.options import ClassifyOptions, resolved


def problem(wrong, count=2400, classes=12, seed=0):
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
    return matrix, labels


def labelled(wrong, **more):
    matrix, labels = problem(wrong, **more)
    return Labeled(matrix, labels[:, None].tolist())


@pytest.mark.parametrize(
    "objective, loss", [("gd", "softmax"), ("dcme", "softmax"), ("auto", "hinge")]
)
def test_a_lower_rate_is_chosen_where_labels_are_wrong(objective, loss):
    """The loss is given, so that only its rate is chosen."""
    given = ClassifyOptions(threads=1, objective=objective, loss=loss)
    default = resolved(given, 12).lr
    for wrong, lower in ((0, False), (0.6, True)):
        tuned = LossSearch(labelled(wrong), 12, given).run()
        found = tuned.options(given, 12)
        assert (found.lr < default) == lower and found.min_lr == found.lr / 10_000
        assert {one["lr"] for one in tuned.trials} == {default, default / 4, default / 16}
        assert f"--lr {found.lr:g}" in loss_line(tuned) and "1,920 documents" in loss_line(tuned)


@pytest.mark.parametrize("options, wanted", [
    ({"loss": "softmax"}, True),
    ({"objective": "gd"}, True),
    ({"objective": "dcme"}, True),
    ({"objective": "dcme", "lr": 4.0}, False),
    ({"loss": "softmax", "min_lr": 0.1}, False),
    ({"solver": "lbfgs"}, False),
    ({"objective": "nce"}, False),
    ({"objective": "dcme", "dcme_update": "paper"}, False),
])  # fmt: skip
def test_the_rate_of_a_given_loss_is_chosen_with_many_documents(monkeypatch, options, wanted):
    monkeypatch.setattr(loss, "MIN_INSTANCES", 2400)
    given, data = ClassifyOptions(**options), labelled(0)
    assert is_loss_open(given, data, 12) == wanted
    assert not is_loss_open(given, data, 17)  # 150 a class
    assert not is_loss_open(given, Labeled(data.matrix[:2399], data.labels[:2399]), 12)


def test_trials_learn_from_some_of_many_documents(monkeypatch):
    """The choice takes no longer with more documents; classes from 500 on have two candidates."""
    monkeypatch.setattr(loss, "LEARNED", 300)
    data = labelled(0)
    few = LossSearch(data, 12, ClassifyOptions(threads=1)).run()
    assert {one["documents"] for one in few.trials} == {300} and len(few.trials) == 7
    many = LossSearch(data, 500, ClassifyOptions(threads=1)).run()
    assert [(one["loss"], one["epochs"]) for one in many.trials] == [("softmax", 5), ("hinge", 10)]


@pytest.mark.parametrize("wrong, given", [(0, None), (0.6, None), (0, "softmax")])
def test_the_loss_is_chosen_by_folds(here, cli, wrong, given):
    """With wrong labels the rate is lower; a given loss is kept; a resumed run has the choice."""
    matrix, labels = problem(wrong, count=600)
    texts = [" ".join(map("w{}".format, row.indices)) for row in matrix]
    lines = [f"c{label}\t{text}\n" for label, text in zip(labels, texts, strict=True)]
    Path("d.tsv").write_text("".join(lines))
    train = "classify train d.tsv --output m --threads 1 --subwords none"
    train += f" --loss {given}" if given else ""
    cli(f"{train} --checkpoint state --checkpoint-every 2")
    found = described("m")
    own, record, is_chosen = found["options"], found["record"], given is None
    assert ("documents held out (softmax" in cli.err) == is_chosen == ("loss" in record)
    if is_chosen:
        trials = {
            (one["loss"], one["lr"], one["epochs"]): one["accuracy"]
            for one in record["loss"]["trials"]
        }
        assert len(trials) == 7
        assert trials[own["loss"], own["lr"], own["epochs"]] > max(trials.values()) - 0.01
        assert (own["lr"] < {"softmax": 4, "hinge": 0.5}[own["loss"]]) == (wrong > 0)
    cli(f"{train} --resume state")
    again = described("m")
    assert again["options"] == own and "held out (softmax" not in cli.err


@pytest.mark.parametrize("given, count, classes, wanted", [
    ({}, 600, 12, True),
    ({}, 2, 12, True),
    ({}, 600, 5000, True),
    ({}, 600, 5001, False),
    ({"loss": "softmax"}, 600, 12, False),
    ({"loss": "hinge"}, 600, 12, True),
    ({"lr": 1.0}, 600, 12, False),
    ({"epochs": 20}, 600, 12, True),
    ({"epochs": 21}, 600, 12, False),
    ({"solver": "lbfgs"}, 600, 12, False),
    ({"objective": "gd"}, 600, 12, False),
])  # fmt: skip
def test_the_loss_is_chosen_only_where_nothing_excludes_it(given, count, classes, wanted):
    data = labelled(0, count=count)
    assert is_loss_open(ClassifyOptions(**given), data, classes) == wanted
    several = Labeled(data.matrix, [[one[0], (one[0] + 1) % 12] for one in data.labels])
    is_open = count > 2 and (wanted or classes == 5001)  # the loss is hinge, and its rate is chosen
    assert is_loss_open(ClassifyOptions(**given), several, classes) == is_open


@pytest.mark.parametrize("count", [600, 20_000])
def test_the_softmax_of_the_hinge_loss_is_calibrated(monkeypatch, count):
    """Its likelihood is near the best that a factor of the scores gives on other documents."""
    monkeypatch.setattr(calibration, "SHORT_TABLE", 0)  # of 20,000 documents, some are left out
    data, other = labelled(0.4, count=count), labelled(0.4, count=2000, seed=1)
    model = MaxentClassifier(loss="hinge", lr=0.5, threads=1)
    model.fit(data.matrix, [one[0] for one in data.labels])
    wanted = [one[0] for one in other.labels]
    p = model.predict_proba(other.matrix)
    own = np.log(p[np.arange(len(wanted)), wanted]).mean()
    scores = model.decision_function(other.matrix)
    best = max(
        log_softmax(factor * scores)[np.arange(len(wanted)), wanted].mean()
        for factor in np.geomspace(0.1, 10, 60)
    )
    assert own > best - 0.02


@pytest.mark.parametrize("wrong, lower, upper", [(0, 0, 1e-3), (0.5, 1e-3, 1)])
def test_folds_choose_the_penalty_of_few_numbers(wrong, lower, upper):
    """With wrong labels it is strong; without it, L-BFGS would learn them by heart."""
    data, other = labelled(wrong, count=450), labelled(wrong, count=2000, seed=1)
    wanted = [one[0] for one in other.labels]
    found = {}
    for l2 in (None, 1e-6):
        model = MaxentClassifier(threads=1, l2=l2).fit(data.matrix, [one[0] for one in data.labels])
        log_p = np.log(model.predict_proba(other.matrix))
        found[l2] = log_p[np.arange(len(wanted)), wanted].mean()
        assert model.loss_ == "softmax" and model.n_iter_ > 5
    assert found[None] >= found[1e-6] + wrong
    setting = PenaltySearch(data, 12, ClassifyOptions(solver="lbfgs", threads=1)).run().setting
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


@pytest.mark.parametrize("length", [1e6, 1e-3])
def test_rows_of_any_length_have_a_bias_in_its_bounds(length):
    data = labelled(0, count=600)
    tuned = LossSearch(Labeled(data.matrix * length, data.labels), 12, ClassifyOptions()).run()
    assert tuned.accuracy > 0.5 and tuned.options(ClassifyOptions(), 12).bias <= 1e3
