"""The default learning rate is checked on held-out documents."""

from pathlib import Path

import numpy as np
import pytest
from helpers import described
from scipy.sparse import csr_matrix

from dcme_w2v.classify import rate
from dcme_w2v.classify.fit import Labelled
from dcme_w2v.classify.loss import is_loss_open
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.rate import chosen_rate, is_open


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
    return Labelled(matrix, labels[:, None].tolist())


def options_of(**more):
    return resolved(ClassifyOptions(threads=1, **more), 12)


@pytest.mark.parametrize("objective", ["gd", "dcme"])
def test_a_lower_rate_is_chosen_where_labels_are_wrong(objective):
    clean = chosen_rate(labelled(0), 12, options_of(objective=objective))
    assert clean.options.lr == 4 and [one["lr"] for one in clean.trials] == [4, 1]
    noisy = chosen_rate(labelled(0.6), 12, options_of(objective=objective))
    assert noisy.options.lr <= 1 and [one["lr"] for one in noisy.trials] == [4, 1, 0.25]
    assert noisy.options.min_lr == noisy.options.lr / 10_000
    assert f"--lr {noisy.options.lr:g}, by the log-likelihood of 240 documents" in noisy.line


@pytest.mark.parametrize("means, power", [
    ((-1.0, -2.0, 0.0), 0),  # the default is best: no third trial
    ((-3.0, -1.0, -3.0), -1),
    ((-3.0, -1.0, -1.0), -1.5),
    ((-1.1, -1.0, -1.2), -0.8333),
    ((-3.0, -2.0, -1.0), -2),  # no bend
    ((-5.0, -2.0, -1.9), -1.5345),
    ((-np.inf, -1.0, -2.0), -1),  # diverged
    ((-np.inf, -np.inf, -2.0), -2),
])  # fmt: skip
def test_the_best_power_is_the_vertex_of_the_parabola(means, power):
    asked = []

    def trial(at):
        asked.append(at)
        return np.full(100, means[-at])

    assert rate._best_power(trial) == pytest.approx(power, abs=1e-3)
    assert len(asked) == (2 if power == 0 else 3)


@pytest.mark.parametrize("options, wanted", [
    ({}, True),
    ({"objective": "dcme"}, True),
    ({"lr": 4.0}, False),
    ({"min_lr": 0.1}, False),
    ({"solver": "lbfgs"}, False),
    ({"rank": 2}, False),
    ({"objective": "nce"}, False),
    ({"objective": "dcme", "dcme_update": "paper"}, False),
])  # fmt: skip
def test_the_rate_is_chosen_only_where_none_is_given(monkeypatch, options, wanted):
    monkeypatch.setattr(rate, "MIN_INSTANCES", 2400)
    given, data = ClassifyOptions(**options), labelled(0)
    assert is_open(given, resolved(given, 12), data, 12) == wanted
    assert not is_open(given, resolved(given, 17), data, 17)  # 150 a class
    few = Labelled(data.matrix[:2399], data.labels[:2399])
    assert not is_open(given, resolved(given, 12), few, 12)


@pytest.mark.parametrize("wrong, loss", [(0, None), (0.6, None), (0, "softmax")])
def test_the_loss_is_chosen_by_folds_where_training_is_short(here, cli, wrong, loss):
    """With wrong labels the rate is lower; a given loss is kept; a resumed run has the choice."""
    matrix, labels = problem(wrong, count=600)
    texts = [" ".join(map("w{}".format, row.indices)) for row in matrix]
    lines = [f"c{label}\t{text}\n" for label, text in zip(labels, texts, strict=True)]
    Path("d.tsv").write_text("".join(lines))
    train = f"classify train d.tsv --output m --threads 1{f' --loss {loss}' if loss else ''}"
    cli(f"{train} --checkpoint state --checkpoint-every 2")
    found = described("m")
    own, record, is_chosen = found["options"], found["record"], loss is None
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
    ({}, 49, 12, False),
    ({}, 600, 500, False),
    ({"loss": "softmax"}, 600, 12, False),
    ({"lr": 1.0}, 600, 12, False),
    ({"epochs": 20}, 600, 12, True),
    ({"epochs": 21}, 600, 12, False),
    ({"solver": "lbfgs"}, 600, 12, False),
    ({"objective": "gd"}, 600, 12, False),
])  # fmt: skip
def test_the_loss_is_chosen_only_where_nothing_excludes_it(given, count, classes, wanted):
    data = labelled(0, count=count)
    assert is_loss_open(ClassifyOptions(**given), data, classes) == wanted
    several = Labelled(data.matrix, [[one[0], (one[0] + 1) % 12] for one in data.labels])
    is_open = wanted or classes == 500  # the loss is hinge, and its rate is chosen
    assert is_loss_open(ClassifyOptions(**given), several, classes) == is_open
