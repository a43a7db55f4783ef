"""`classify train --tune`: settings that are chosen on held-out documents."""

import shlex
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import arrays_in, described, records
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from dcme_w2v import MaxentClassifier
from dcme_w2v.classify import feature_sets, tune
from dcme_w2v.classify.feature_sets import FeatureSets, KeptText
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.options import SUBWORDS, ClassifyOptions, FeatureOptions
from dcme_w2v.classify.tune import Rows, Search
from dcme_w2v.training.interrupts import Interrupted, ReceivedSignal

TRAIN = "classify train d.tsv --threads 1 --tune"


def texts(count=400, classes=4, wrong=0.0, seed=0):
    """Lines of a label and words, some of the class's own and more of all classes."""
    random = np.random.default_rng(seed)
    lines = []
    for i in range(count):
        own = [f"w{i % classes}x{random.integers(20)}" for _ in range(3)]
        common = [f"x{random.integers(200)}" for _ in range(9)]
        label = random.integers(classes) if random.random() < wrong else i % classes
        lines.append(f"c{label}\t{' '.join(own + common)}\n")
    return "".join(lines)


def rows_of(count=1500, wrong=0.0, seed=0):
    read = [line.split("\t") for line in texts(count, wrong=wrong, seed=seed).splitlines()]
    matrix = TextFeatures(FeatureOptions()).fit_transform(text.encode() for _, text in read)
    return matrix, np.array([label for label, _ in read])


def search_of(matrix, labels, seconds=60.0, received=None, **given):
    numbers = np.unique(labels, return_inverse=True)[1]
    options = ClassifyOptions(**{"threads": 1, **given})
    return Search(Rows(matrix), numbers[:, None].tolist(), 4, options, seconds, received=received)


@pytest.fixture
def corpus(here):
    Path("d.tsv").write_text(texts())


def test_the_chosen_options_give_the_same_model(corpus, cli):
    record = cli.json(f"{TRAIN} --output m")["tune"]
    assert record["complete"] and record["accuracy"] > 0.8 and record["held_out"] == 400
    assert f"--tune: {record['flags']}, with an accuracy of" in cli.err
    cli("classify train d.tsv --threads 1 --output again", *shlex.split(record["flags"]))
    assert arrays_in("m") == arrays_in("again")
    assert described("m")["options"] == described("again")["options"]


def test_given_options_are_held_fixed(corpus, cli):
    given = "--lr 1 --loss softmax --ngrams 1 --features 100"
    trials = cli.json(f"{TRAIN} --output m {given}")["tune"]["trials"]
    searched = "epochs l2 weighting subwords documents accuracy"
    assert {name for trial in trials for name in trial} == {*searched.split()}
    options = described("m")["options"]
    assert (options["lr"], options["loss"]) == (1.0, "softmax")


def test_pairs_of_words_are_chosen_where_they_separate_classes(here, cli):
    random = np.random.default_rng(0)
    lines = []
    for i in range(600):
        a, b = f"a{random.integers(8)}", f"b{random.integers(8)}"
        lines.append(f"c{i % 2}\t{' '.join([a, b] if i % 2 else [b, a])}\n")
    Path("d.tsv").write_text("".join(lines))
    record = cli.json(f"{TRAIN} --output m --lead 0")["tune"]
    assert "--ngrams 2" in record["flags"] and record["accuracy"] > 0.95


def test_the_choice_does_not_depend_on_threads():
    matrix, labels = rows_of(wrong=0.3)
    one, other = (search_of(matrix, labels, threads=threads).run() for threads in (1, 3))
    assert one.setting == other.setting and one.trials == other.trials


def test_lbfgs_searches_a_path_of_regularisation():
    matrix, labels = rows_of(400, wrong=0.3)
    found = search_of(matrix, labels, solver="lbfgs").run()
    assert set(found.setting) == {"l2"} and found.setting["l2"] in tune.PATH
    first = [one["l2"] for one in found.trials[: len(tune.PATH)]]
    assert sorted(first, reverse=True) == first
    fixed = search_of(matrix, labels, solver="lbfgs", l2=1e-3).run()
    assert fixed.setting == {} and fixed.trials == []


def test_the_settings_without_a_search_are_measured_on_all_documents():
    """First trials learn from a part, on which other settings may be better."""
    matrix, labels = rows_of(6000, wrong=0.5)
    found = search_of(matrix, labels).run()
    whole = [one for one in found.trials if one["documents"] == 4800]
    assert [one for one in whole if one.get("bias") == 0.2 and one["l2"] == 8.3e-05]


def test_the_time_limit_keeps_the_best_so_far():
    matrix, labels = rows_of()
    found = search_of(matrix, labels, 1e-9).run()
    assert not found.is_complete and found.trials == [] and found.setting["lr"] == 4
    assert "no trial ended" in found.line and found.record["accuracy"] is None


def test_a_signal_ends_the_search(monkeypatch):
    received, epoch = ReceivedSignal(), tune.ClassifierTrainer.epoch

    def signalled(*given):
        received.number = signal.SIGINT
        return epoch(*given)

    monkeypatch.setattr(tune.ClassifierTrainer, "epoch", signalled)
    with pytest.raises(Interrupted, match=r"nothing was written; the best so far: loss") as error:
        search_of(*rows_of(), received=received).run()
    assert error.value.exit_code == 130


@pytest.mark.parametrize("more", [
    "--hashing 512", "--solver lbfgs", "--objective dcme",
    "--by document --patience 2 --holdout 0.1",
])  # fmt: skip
def test_a_tuned_model_predicts(corpus, cli, more):
    cli(f"{TRAIN} --output m {more}")
    assert cli.json("classify test m d.tsv")["accuracy"] > 0.9


@pytest.mark.parametrize("lead", [{}, {"lead": 5, "lead_ngrams": 2}])
def test_rows_equal_those_of_features_read_again(monkeypatch, lead):
    """The first setting is the default of `classify train`."""
    few = property(lambda self: self.features or 50)
    monkeypatch.setattr(FeatureOptions, "most_features", few)
    lines = [line.split("\t")[1].encode() for line in texts(60).splitlines()]
    options = FeatureOptions(**lead)
    kept = KeptText(FeatureSets.widest(options, ()))
    kept.fit_transform(lines)
    kept.transform(lines[:5])
    sets = FeatureSets(kept, options, (), 4)
    choices = sets.choices()
    first = {"features": 200_000, "ngrams": 1, "subwords": "none", "weighting": "tfidf"}
    assert choices[0] == first | ({"lead_ngrams": 2} if lead else {})
    sizes = [one["features"] for one in choices]
    assert sizes == [200_000, 50, 200_000, 50, *([200_000] if lead else []), 200_000, 200_000]
    assert (choices[-2]["ngrams"], choices[-1]["subwords"]) == (2, SUBWORDS)
    assert {one.get("lead_ngrams") for one in choices} == ({1, 2} if lead else {None})
    for choice in choices:
        plain = TextFeatures(replace(options, **choice))
        rows, (text, found) = plain.fit_transform(lines), sets.of(choice)
        assert np.array_equal(rows.toarray(), found.toarray())
        assert np.array_equal(plain.transform(lines[:5]).data, text.transform(lines[:5]).data)
        assert list(plain.names) == list(text.names) and type(text) is TextFeatures


@pytest.mark.parametrize("keeps_all", [True, False])
@pytest.mark.parametrize("limit", [60 * 19, 60 * 19 - 1])
def test_all_pairs_are_tried_in_short_texts(monkeypatch, keeps_all, limit):
    """Longer texts are kept only for the other settings of --tune."""
    monkeypatch.setattr(feature_sets, "KEPT_BYTES", limit)
    options = FeatureOptions(lead=3, lead_ngrams=2)
    kept = KeptText(options, keeps_all)
    texts = [b"a b c d e f g h i j"] * 60
    rows = kept.fit_transform(texts)
    assert np.array_equal(rows.data, TextFeatures(options).fit_transform(texts).data)
    assert bool(kept.texts) == (keeps_all or limit == 60 * 19)
    sets = FeatureSets(kept, options, ("features", "weighting"), 4)
    tried = {(one["ngrams"], one["lead_ngrams"]) for one in sets.choices()}
    assert tried == {(1, 1), (1, 2)} | ({(2, 2)} if limit == 60 * 19 else set())
    plain = TextFeatures(replace(options, lead_ngrams=1)).fit_transform(texts)
    assert np.array_equal(sets.matrix({"ngrams": 1, "lead_ngrams": 1}).toarray(), plain.toarray())


def test_a_tuned_model_is_measured_on_a_held_out_file(corpus, cli):
    """Its features are the chosen ones, which were not known when the file was read."""
    Path("held.tsv").write_text(texts(60, seed=1))
    cli(f"{TRAIN} --output m --holdout held.tsv --log-json log")
    epochs = records("log")
    last = [one for one in epochs if one["event"] == "epoch"][-1]
    found = cli.json("classify test m held.tsv")
    assert last["heldout_accuracy"] == pytest.approx(found["accuracy"])


def test_too_few_documents(here, cli):
    Path("d.tsv").write_text("a\tone\nb\ttwo\n")
    error = cli.error(f"{TRAIN} --output m --quiet")
    assert "--tune 60: 2 documents of 2 classes are too few" in error


# ---- in Python ----


def test_the_estimator_in_scikit_learn():
    matrix, labels = rows_of(wrong=0.3)
    model = MaxentClassifier(tune=True, threads=1, random_state=3)
    found = clone(model).fit(matrix, labels)
    assert found.get_params()["tune"] is True and found.loss is None
    assert set(found.tuned_) == {"loss", "lr", "epochs", "l2"}
    assert found.lr_ == found.tuned_["lr"] and found.n_iter_ == found.tuned_["epochs"]
    plain = MaxentClassifier(**found.tuned_, threads=1, random_state=3).fit(matrix, labels)
    assert np.array_equal(plain.coef_, found.coef_)
    search = GridSearchCV(model, {"bias": [0.1, 1.0]}, cv=2).fit(matrix[:300], labels[:300])
    assert search.best_score_ > 0.3
