"""`classify train --init` and `partial_fit`: a model continues with new documents."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers import write_table

import dcme_w2v as dw
from dcme_w2v.classify import continued
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.model import load_classifier

WORDS = {
    "tea": "green black cup milk sugar leaf pot kettle steam lemon honey spoon",
    "road": "red bus stop wheel train car street tram ticket driver bridge lane",
    "sea": "wave boat fish salt sail gull shore tide anchor net reef crab",
}
RANDOM = np.random.default_rng(7)


def documents(labels, count, used):
    """Return labels and texts, most of whose words say little."""
    found = [labels[i % len(labels)] for i in range(count)]
    own = [RANDOM.choice(WORDS[one].split()[used], 2) for one in found]
    noise = [RANDOM.choice([f"w{i}" for i in range(40)], 5) for _ in found]
    return found, [" ".join(map(str, [*a, *b])) for a, b in zip(own, noise, strict=True)]


def written(path, day):
    Path(path).write_text("".join(f"{a}\t{b}\n" for a, b in zip(*day, strict=True)))


FIRST = documents(["tea", "road"], 400, slice(6))
SECOND = documents(["tea", "road", "sea"], 400, slice(3, 12))
TEST = documents(["tea", "road", "sea"], 600, slice(12))
OLD = documents(["tea", "road"], 300, slice(3))  # words that no document of the second day has


@pytest.fixture
def days():
    for name, day in {"1.tsv": FIRST, "2.tsv": SECOND, "test.tsv": TEST, "old.tsv": OLD}.items():
        written(name, day)
    written("all.tsv", [a + b for a, b in zip(FIRST, SECOND, strict=True)])


def accuracy(cli, model, docs):
    return cli.json(f"classify test {model} {docs}")["accuracy"]


@pytest.mark.parametrize(
    "options",
    ["", "--loss softmax", "--subwords none", "--hashing 4096", "--max-bytes 9000"],
)
def test_new_words_and_labels_join_and_old_ones_stay(cli, days, options):
    cli("classify train 1.tsv -o first --quiet", *options.split())
    cli("classify train all.tsv -o whole --quiet", *options.split())
    small = options if "bytes" in options else ""
    cli("classify train 2.tsv --init first -o second --threads 1", *small.split())
    assert re.search(r"accuracy of the initial model on the new documents: 0\.\d+", cli.err)
    whole, found = (accuracy(cli, model, "test.tsv") for model in ("whole", "second"))
    assert found > whole - 0.03 and accuracy(cli, "first", "test.tsv") < found - 0.2
    assert accuracy(cli, "second", "old.tsv") > accuracy(cli, "first", "old.tsv") - 0.05
    record = load_classifier("second").record
    assert record["documents"] == 800 and (small or record["labels"]["tea"] == 334)


@pytest.mark.parametrize("more", [1, 9])
def test_documents_are_counted_as_in_one_training(more):
    """The weights of new documents have the mean 1."""
    given = {"subwords": "none", "lead_ngrams": 1, "threads": 1}
    first = dw.TextClassifier(**given).fit(FIRST[1], FIRST[0])
    weights = np.where(np.arange(400) % 4 == 0, more, 1.0)
    features = dw.TextClassifier(**given, init=first).fit(SECOND[1], SECOND[0], weights).model_.text
    whole, texts = TextFeatures(features.options), [text.encode() for text in FIRST[1] + SECOND[1]]
    whole.fit_transform(texts, weights=[*np.ones(400), *weights / weights.mean()])
    idf = dict(zip(whole.names, whole.idf.tolist(), strict=True))
    mine = dict(zip(features.names, features.idf.tolist(), strict=True))
    assert {*mine} >= {*WORDS["sea"].split()[3:], "bus"}
    assert mine == pytest.approx({name: idf[name] for name in mine}, rel=1e-5)


def test_new_documents_measure_and_calibrate_by_their_weights(cli, days):
    cli("classify train 1.tsv -o first --quiet")
    labels, texts = documents(["tea", "road"], 1500, slice(12))
    is_right, slopes = dw.load("first").predict(texts) == labels, []
    for weights in (np.where(is_right, 9, 1), np.where(is_right, 1, 3)):
        rows = zip(labels, texts, weights.tolist(), strict=True)
        write_table("2.jsonl", [{"label": a, "text": b, "w": w} for a, b, w in rows])
        columns = "--label-column label --text-column text --sample-weight-column w"
        cli(f"classify train 2.jsonl --init first -o second {columns}")
        said = float(cli.err.split("initial model on the new documents: ")[1].split()[0])
        # new documents change idf, and so the accuracy a little
        assert said == pytest.approx(np.average(is_right, weights=weights), abs=0.03)
        slopes.append(load_classifier("second").calibration.slopes[0])
    assert slopes[0] != pytest.approx(slopes[1], rel=0.5)


def test_the_same_documents_again_change_little(cli, days):
    cli("classify train 1.tsv -o first --quiet")
    cli("classify train 1.tsv --init first -o again --quiet")
    before, after = (dw.load(one).predict_proba(OLD[1]) for one in ("first", "again"))
    assert np.abs(before - after).max() < 0.25


def test_documents_of_one_label_are_visited_once_with_a_warning(cli, days, monkeypatch):
    written("1.tsv", [part[:40] for part in FIRST])
    written("one.tsv", documents(["tea"], 100, slice(3, 12)))
    written("test.tsv", documents(["tea", "road"], 400, slice(12)))
    cli("classify train 1.tsv -o first --quiet")
    cli("classify train one.tsv --init first -o second")
    assert (
        "all new documents have the label 'tea', so training would make all other labels less"
        in cli.err
    )
    monkeypatch.setattr(continued, "MIN_DOUBTED", 1000)
    cli("classify train one.tsv --init first -o often")
    assert "all new documents" not in cli.err
    first, once, often = (accuracy(cli, m, "test.tsv") for m in ("first", "second", "often"))
    assert first > once > often + 0.02


def test_fading_halves_the_weights_and_the_counts(cli, days):
    cli("classify train 1.tsv -o first --quiet --subwords none --lead-ngrams 1")
    cli("classify train 2.tsv --init first --fade 0.5 -o second --quiet")
    first, second = (load_classifier(name) for name in ("first", "second"))
    assert second.record["documents"] == 600 and second.record["labels"]["tea"] == 234
    old, new = (dict(zip(m.text.names, m.text.idf.tolist(), strict=True)) for m in (first, second))
    count = sum("green" in text.split() for text in FIRST[1])
    assert new["green"] == pytest.approx(np.log(600 / (count / 2)) + 1, abs=0.02)
    # no document of the second day has this word
    spans = (np.ptp(m.weights.get()[[*m.text.names].index("green")]) for m in (first, second))
    before, after = spans
    assert after * new["green"] == pytest.approx(before * old["green"] / 2, rel=0.05)


def test_a_label_that_vanishes_fades_only_if_wanted():
    known = [text for label, text in zip(*OLD, strict=True) if label == "road"]
    tea_only = documents(["tea", "sea"], 200, slice(12))
    shares = {}
    for fade in (0, 0.5):
        model = dw.TextClassifier(fade=fade, threads=1).fit(FIRST[1], FIRST[0])
        for _ in range(5):
            model.partial_fit(tea_only[1], tea_only[0])
        assert model.classes_.tolist() == ["road", "sea", "tea"]
        shares[fade] = (model.predict(known) == "road").mean()
    assert shares[0] > 0.9 and shares[0.5] < 0.5, shares


@pytest.mark.parametrize("first, kind", [
    ("--solver lbfgs", "L-BFGS"), ("--objective tree", "label trees"),
])  # fmt: skip
def test_what_cannot_continue_is_one_line(cli, days, first, kind):
    cli(f"classify train 1.tsv -o first --quiet {first}")
    said = cli.error("classify train 2.tsv --init first -o second --quiet")
    assert f"was trained with {kind}, which cannot continue" in said
    assert not Path("second").exists()


def test_vectors_may_have_new_columns(cli, days):
    row = "{} {}:1 {}:0.5\n".format
    Path("1.svm").write_text("".join(row(i % 2, 1 + i % 2, 3 + i % 3) for i in range(200)))
    Path("2.svm").write_text("".join(row(i % 3, 9 + i % 2, 6 + i % 3) for i in range(300)))
    cli("classify train 1.svm -o first --quiet")
    cli("classify train 2.svm --init first -o second --quiet")
    assert accuracy(cli, "second", "2.svm") == 1 and accuracy(cli, "second", "1.svm") > 0.9
    said = cli.error("classify train 1.tsv --init first -o third --quiet")
    assert "this model classifies vectors; to continue its training, use vectors as input" in said


def test_several_labels(cli, days):
    written("1.tsv", [[f"{a}|all" for a in FIRST[0]], FIRST[1]])
    cli("classify train 1.tsv -o first --quiet")
    cli("classify train 2.tsv --init first -o second --quiet")
    model = dw.load("second")
    assert {*model.classes_} == {"all", "tea", "road", "sea"}
    assert isinstance(model.predict(TEST[1])[0], list)


def test_single_documents_do_not_upset_a_model():
    model = dw.TextClassifier(threads=1, tune=False).fit(10 * FIRST[1], 10 * FIRST[0])
    model.partial_fit(FIRST[1][:1], ["road"])
    model.partial_fit(["something else"], ["new"])
    assert (model.predict(OLD[1]) == OLD[0]).mean() > 0.95
    assert model.predict(["something else"]) == ["new"]
