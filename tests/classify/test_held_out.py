"""Documents outside training: which ones measure, choose and calibrate, and that a line says so."""

from dataclasses import replace

import numpy as np
import pytest
from data import DOCS
from scipy.sparse import csr_matrix

from dcme_w2v import MaxentClassifier
from dcme_w2v.classify import fit
from dcme_w2v.classify.choose import Problem
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.options import ClassifyOptions
from dcme_w2v.classify.trainer import Scorer


class Zeros(Scorer):
    """Gives all documents the same scores."""

    classes, features = 10, 1

    def scores(self, documents, begin, end, threads):
        return np.zeros((end - begin, 10))

    def above_mean(self, number):
        return np.zeros(1)


def rows(labels, features=1):
    """Return documents with these labels."""
    return Labeled(csr_matrix((len(labels), features), dtype=np.float32), labels)


def test_figures_of_a_sorted_file_are_of_all_its_labels():
    labels = np.repeat(np.arange(10), 2_000)  # a file sorted by label
    found = fit.scores_of(Zeros(), rows(labels[:, None].tolist()), 1)
    assert len(found.labels) == fit.MAX_DOCUMENTS == len(found.scores) < len(labels)
    assert np.bincount(np.ravel(found.labels)).tolist() == pytest.approx([500] * 10, abs=1)


def test_documents_of_unknown_labels_do_not_count():
    found = fit.scores_of(Zeros(), rows([[0], [-1], [1], [-1]]), 1)
    assert found.labels == [[0], [1]] and found.weights.tolist() == [1, 1]


@pytest.mark.parametrize("several", [False, True])
def test_the_tokens_of_a_sentence_are_on_one_side_of_a_calibration(several):
    groups = np.repeat(np.arange(fit.TRIAL_DOCUMENTS // 4 + 1), 5)
    data = replace(rows([[i % 3] for i in range(len(groups))]), groups=groups)
    given = ClassifyOptions(loss="hinge", threads=1)
    problem = Problem(data, 3, given, several=several).with_none()
    kept, out = fit._divided(problem.data, problem, given, fit.Job())
    assert len(out.labels) and len(kept.labels) + len(out.labels) == len(groups)
    assert not {*kept.groups} & {*out.groups}


def test_a_document_without_labels_keeps_its_group():
    data = replace(rows([[0], [], [1]]), groups=np.array([5, 5, 7]))
    problem = Problem(data, 2, ClassifyOptions(loss="hinge"), several=True).with_none()
    assert problem.classes == 3 and problem.data.groups.tolist() == [5, 5, 7]


def test_partial_fit_continues_with_the_loss_and_the_calibration_of_fit():
    labels, random = np.arange(600) % 3, np.random.default_rng(0)
    columns = np.column_stack([3 * random.integers(9, size=600) + labels, 30 + np.arange(600)])
    X = csr_matrix((np.ones(1200), columns.ravel(), np.arange(0, 1201, 2)), (600, 30_000))
    model = MaxentClassifier().fit(X, labels)
    assert model.loss_ == "hinge"  # as of texts: there are many columns
    calibration, before = model._calibration, model.predict_log_proba(X)
    own = np.arange(600), labels
    model.partial_fit(X[:30], labels[:30])
    assert model.loss_ == "hinge" and model._calibration == calibration != fit.Calibration()
    assert model.predict_log_proba(X)[own].mean() > before[own].mean() - 0.02


SAID = {  # a command, and what its held-out documents chose
    "latent fit docs.tsv": "",
    "latent fit docs.tsv --choose 2,3": ", which chose the number of latent classes",
    "classify train docs.tsv": "",
    "classify train docs.tsv --patience 2": ", which chose the epoch",
    "classify train docs.tsv --max-bytes 9000": ", which chose the number of levels",
    "classify train docs.tsv --objective gd --cluster local:0 --shards 2 --distribute mixture":
        ", which chose the scale of the scores",
}  # fmt: skip


@pytest.mark.parametrize("line", SAID)
def test_held_out_documents_say_what_they_chose(cli, here, line):
    (here / "docs.tsv").write_text(DOCS * 20)
    cli(f"{line} --holdout 0.25 --output m --threads 1")
    said = [one for one in cli.err.splitlines() if "held-out: " in one]
    assert said and all(one.endswith(f" documents{SAID[line]})") for one in said), said


@pytest.mark.parametrize("more, chose", [("", False), (" --max-bytes 9000", True)])
def test_documents_that_choose_a_size_say_so(cli, here, more, chose):
    (here / "docs.tsv").write_text(DOCS * 20)
    cli("classify train docs.tsv --output m --threads 1")
    found = cli.json(f"classify shrink m --output s --holdout docs.tsv{more}")
    assert found["chose_levels"] is chose
