"""Character n-grams as features of documents (`--subwords` of `classify train`)."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers import arrays_in, described

from dcme_w2v.classify import dataset, train
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.model import load_classifier
from dcme_w2v.classify.ngrams import MAX_WORD
from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.few_labels import jobs

TRAIN = "classify train d.tsv --threads 1"
ALL = 2 * ["", "a", "Ab ab, né ñ", "中文。中", "x" * 40, "<a> a>", "ab ab ab"]


def expected(text, shortest, longest):
    """Return the counts of the n-grams, and of no word."""
    found = Counter()
    for word in text.split():
        marked = f"<{word}>"
        for n in range(shortest, longest + 1):
            for i in range(len(marked) - n + 1):
                gram = marked[i : i + n]
                found[" " + gram] += n > 1 or 0 < i < len(marked) - 1
    return +found


@pytest.mark.parametrize("lengths", [(1, 1), (1, 4), (2, 3), (5, 50)])
@pytest.mark.parametrize("tokens", ["words", "spaces"])
def test_counts_of_ngrams_of_characters(lengths, tokens):
    """Words keep their punctuation, and their case with spaces; one document is too few."""
    options = FeatureOptions(
        subwords="{}-{}".format(*lengths), tokens=tokens, weighting="count", norm="none"
    )
    features = TextFeatures(options)
    rows = features.fit_transform([text.encode() for text in [*ALL, "unique"]])[:-1].matrix()
    assert " qu" not in features.names
    names = [features.name(i) for i in range(features.columns)]
    assert len(set(names)) == len(names)
    for text, row in zip(ALL, rows.toarray(), strict=True):
        found = {name: n for name, n in zip(names, row, strict=True) if n and name[0] == " "}
        assert found == expected(text if tokens == "spaces" else text.lower(), *lengths)
    assert (np.diff(rows.toarray().sum(axis=0)) <= 0).all()
    again = features.transform([text.encode() for text in [*ALL, "unknown né"]]).matrix()
    assert np.array_equal(again.toarray()[:-1], rows.toarray())
    known = {name for name in expected("unknown né", *lengths) if name in names}
    row = again.toarray()[-1]
    assert {name for name, n in zip(names, row, strict=True) if n and name[0] == " "} == known


def test_only_the_beginning_of_a_very_long_word_has_ngrams():
    """It would need gigabytes."""
    features = TextFeatures(FeatureOptions(subwords="1-2", weighting="count", norm="none"))
    features.fit_transform(2 * [b"a" * MAX_WORD + b"b", b"c"])
    names = {features.name(i) for i in range(features.columns)}
    assert {" a>", " aa", " <a", " c"} < names and " b" not in names


def texts(count=1200, seed=0, is_in_ending=True):
    """Lines of words that occur once; the label is in their endings, or in another word."""
    random = np.random.default_rng(seed)
    lines = []
    for i in range(count):
        label = ("ung", "eit")[i % 2]
        stems = ["".join(map(chr, random.integers(97, 123, 5))) for _ in range(3)]
        words = [stem + (label if is_in_ending else "en") for stem in stems]
        lines.append(f"{label}\tthe {' '.join(words)} {label * (not is_in_ending)}\n")
    return "".join(lines)


@pytest.fixture
def corpus():
    Path("d.tsv").write_text(texts())
    Path("t.tsv").write_text(texts(200, seed=1))


@pytest.mark.parametrize("more, chosen", [
    ("", "1-4"), ("--holdout t.tsv", "1-4"), ("--tune 60", "1-4"), ("--subwords 2-3", "2-3"),
    ("--subwords none", "none"), ("--ngrams 1", "none"), ("--ngrams 1 --subwords 3-3", "3-3"),
    ("--hashing 4096", "none"), ("--hashing 4096 --tune 60", "none"),
])  # fmt: skip
def test_subwords_are_chosen_where_they_predict_better(cli, corpus, more, chosen):
    cli(f"{TRAIN} --output m {more}")
    assert described("m")["features"]["subwords"] == chosen
    assert f" {load_classifier('m').text.columns:,} features" in cli.err.replace("\n", " ")
    accuracy = cli.json("classify test m t.tsv")["accuracy"]
    assert accuracy < 0.7 if chosen == "none" else accuracy > 0.95


@pytest.mark.parametrize("count, length, more, chosen", [
    (40, 0, "", "1-4"), (40, 300, "", "1-4"), (40, 0, "--subwords none", "none"),
    (40, 0, "--ngrams 1", "none"), (400, 0, "", "1-4"), (1200, 0, "", "1-4"),
])  # fmt: skip
def test_texts_have_them_unless_they_are_long(cli, count, length, more, chosen):
    """Words and n-grams are equally good; with fewer than 50 documents nothing is compared."""
    end = " " + "x" * length + "\n"
    lines = texts(count, is_in_ending=False).splitlines()
    Path("d.tsv").write_text("".join(line + end for line in lines))
    cli(f"{TRAIN} --output m {more}")
    assert described("m")["features"]["subwords"] == chosen


def test_longer_texts_have_them_only_if_they_are_given(cli, corpus, monkeypatch):
    monkeypatch.setattr(train, "KEPT_BYTES", 1000)
    cli(f"{TRAIN} --output m")
    assert described("m")["features"]["subwords"] == "none"
    cli(f"{TRAIN} --output m --subwords 1-4")
    assert described("m")["features"]["subwords"] == "1-4"


@pytest.mark.long
@pytest.mark.parametrize("command", [
    "classify shrink m --output s", "classify shrink m --output s --max-bytes 20000",
    "fuse fit d.tsv --unlabeled t.tsv --output s --subwords 2-4 --threads 1",
])  # fmt: skip
def test_other_models_have_subwords(cli, corpus, command):
    cli(f"{TRAIN} --output m --quiet --ngrams 1 --subwords 1-4")
    cli(command)
    assert cli.json("classify test s t.tsv")["accuracy"] > 0.95
    assert any(name.startswith(" ") for name, _ in load_classifier("s").explain(label="ung"))


def test_a_dry_run_counts_them_and_pairs(cli, corpus):
    fewer = ("", "--subwords none", "--subwords none --ngrams 1 --lead-ngrams 1")
    counts = [cli.json(f"{TRAIN} --output m --dry-run {more}")["features"] for more in fewer]
    assert counts[0] > counts[1] > 1.5 * counts[2]


@pytest.mark.bits
@pytest.mark.parametrize("more", ["--hashing 99", "--by token"])
def test_without_words_of_texts_they_have_no_effect(cli, corpus, more):
    cli(f"{TRAIN} --output m {more}")
    cli(f"{TRAIN} --output same {more} --subwords 1-4")
    assert "warning: --subwords has no effect with" in cli.err
    assert arrays_in("m") == arrays_in("same")


@pytest.mark.parametrize("more, chosen", [
    ("", "1-4"), ("--subwords none", "none"), ("--no-choose", None),
    ("--ngrams 1", None), ("--final beside", "1-4"),
])  # fmt: skip
def test_folds_of_few_labels_choose_subwords(cli, corpus, more, chosen):
    """Standard input is read once."""
    Path("few.tsv").write_text(texts(40))
    Path("u.tsv").write_text(texts(200, seed=2))
    stdin = Path("u.tsv").read_bytes()
    cli(f"fuse fit few.tsv --unlabeled - --output m --threads 1 {more}", stdin=stdin)
    assert described("m")["features"]["subwords"] in ((chosen,) if chosen else (None, "none"))
    accuracy = cli.json("classify test m t.tsv")["accuracy"]
    assert accuracy > 0.95 if chosen == "1-4" else accuracy < 0.7


@pytest.mark.long
def test_few_labels_of_longer_texts_keep_words_where_they_say_more(cli, corpus, monkeypatch):
    fit = "fuse fit few.tsv --unlabeled u.tsv --threads 1"
    Path("few.tsv").write_text(texts(40, is_in_ending=False))
    Path("u.tsv").write_text(texts(400, seed=2, is_in_ending=False))
    cli(f"{fit} --output m")
    assert "the texts are short, so character n-grams" in cli.err
    assert described("m")["features"]["subwords"] == "1-4"
    monkeypatch.setattr(dataset, "SHORT_TEXT", 10)
    cli(f"{fit} --output m")
    assert "features: --subwords none" in cli.err
    assert described("m")["features"]["subwords"] == "none"
    Path("few.tsv").write_text(texts(40))
    cli(f"{fit} --output m")
    assert described("m")["features"]["subwords"] == "1-4"
    monkeypatch.setattr(jobs, "KEPT_BYTES", 1000)
    cli(f"{fit} --output m")
    assert "features:" not in cli.err
    assert described("m")["features"]["subwords"] == "none"
