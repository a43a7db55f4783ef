"""The commands latent fit, transform and show: files, streams, exit codes, errors."""

from pathlib import Path

import numpy as np
import pytest
from helpers import described
from scipy.sparse import load_npz

from dcme_w2v.formats.artifact import read_artifact

ANIMALS = ["cat dog mouse", "dog cat bird", "mouse bird cat", "bird dog cat"]
TOOLS = ["saw axe file", "axe drill saw", "drill file axe", "file saw axe"]
TEXTS = (ANIMALS + TOOLS) * 3
LABELS = (["animals"] * 4 + ["tools"] * 4) * 3
SETS = {frozenset(["cat", "dog", "mouse", "bird"]), frozenset(["saw", "axe", "file", "drill"])}


@pytest.fixture(autouse=True)
def docs():
    pairs = zip(LABELS, TEXTS, strict=True)
    Path("docs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    Path("plain").write_text("".join(f"{text}\n" for text in TEXTS))


@pytest.fixture
def clusters(cli):
    cli("latent fit plain --unsupervised --latent 2 --output m --quiet --threads 1")


@pytest.fixture
def model(cli):
    cli("latent fit docs.tsv --output m --quiet --threads 1")


def record():
    return described("m")["record"]


def test_clusters_of_documents_without_labels(clusters, cli):
    found = cli.json("classify test m docs.tsv")
    assert found["nmi"] == found["ari"] == found["matching_accuracy"] == 1
    assert found["documents"] == 24 and "accuracy" not in found
    shown = cli.json("latent show m -k 4")
    assert [one["class"] for one in shown] == [1, 2]
    assert sum(one["share"] for one in shown) == pytest.approx(1, abs=1e-6)
    assert {frozenset(word for word, _ in one["words"]) for one in shown} == SETS
    assert all(one["labels"] == [] for one in shown)
    lines = cli.rows("classify predict m plain")
    assert {line[0] for line in lines} == {"cluster-1", "cluster-2"}
    assert len(cli.rows("classify explain m cluster-2 -k 3")) == 3


def test_show_documents(clusters, cli):
    lines = cli.rows("latent show m -k 2 --documents plain")
    assert [line[0] == "" for line in lines] == [False, True, True] * 2
    number, share, labels, words = lines[0]
    assert number == "1" and 0 < float(share) < 1 and labels == "" and len(words.split()) == 2
    _, probability, document, text = lines[1]
    assert float(probability) > 0.5 and text == TEXTS[int(document) - 1]
    found = cli.json("latent show m --documents plain")[0]["documents"]
    chances = [one["probability"] for one in found]
    assert len(found) == 10 and chances == sorted(chances, reverse=True)


def test_classifier_test_predict_explain_show(model, cli):
    found = cli.json("classify test m docs.tsv")
    assert found["accuracy"] == 1 and found["log_likelihood"] > -0.5
    found = cli.json("classify test m docs.tsv --clustering")
    assert found["clusters"] >= 2 and found["nmi"] > 0.5
    lines = cli.rows("classify predict m -", stdin="cat bird\nsaw\n\n")
    assert [line[0] for line in lines[:2]] == ["animals", "tools"] and len(lines) == 3
    assert {row[0] for row in cli.rows("classify explain m tools -k 4")} in SETS
    shown = cli.json("latent show m")
    assert len(shown) == 4
    for one in shown:
        assert sum(value for _, value in one["labels"]) == pytest.approx(1, abs=1e-5)


def test_a_line_that_begins_with_a_tab_has_no_label(cli):
    texts = [f"{LABELS[i] if i in (0, 4) else ''}\t{text}\n" for i, text in enumerate(TEXTS)]
    Path("few").write_text("".join(texts))
    cli("latent fit few --threads 1 --output m")
    assert "2 documents of 2 labels" in cli.err and "22 without a label left out" in cli.err


@pytest.mark.parametrize("out", ["x.npz --labels labels", "x.svm", "-"])
def test_transform(model, cli, out):
    text = cli(f"transform m docs.tsv --output {out}")
    assert "24 rows of 4 columns" in cli.err
    if "npz" in out:
        rows = load_npz("x.npz").toarray()
        assert rows.shape == (24, 4) and rows.dtype == np.float32
        assert rows.sum(axis=1) == pytest.approx(np.ones(24), abs=1e-5)
        assert Path("labels").read_text().split() == LABELS
    else:
        text = text or Path(out).read_text()
        assert len(text.splitlines()) == 24 and text.startswith("1 ")


def test_holdout_and_choose(cli):
    fit = "latent fit docs.tsv --output m --threads 1 --holdout"
    cli(f"{fit} docs.tsv --choose 2,3 --seed 2")
    assert cli.err.count("latent classes, held-out: accuracy") == 2
    tried = record()["tried"]
    assert [one["latent"] for one in tried] == [2, 3]
    best = max(tried, key=lambda one: one["log_likelihood"])
    assert len(read_artifact("m")[1]["shares"]) == best["latent"]
    cli(f"{fit} 0.3 --quiet")
    assert record()["documents"] < 24 and 0 <= record()["heldout"]["accuracy"] <= 1
