"""The commands latent fit, transform, show and plot: files, streams, exit codes, errors."""

import json

import numpy as np
import pytest
from helpers import invoke, refused
from scipy.sparse import csr_matrix, load_npz, save_npz

from dcme_w2v.cli.main import run

ANIMALS = ["cat dog mouse", "dog cat bird", "mouse bird cat", "bird dog cat"]
TOOLS = ["saw axe file", "axe drill saw", "drill file axe", "file saw axe"]
TEXTS = (ANIMALS + TOOLS) * 3
LABELS = (["animals"] * 4 + ["tools"] * 4) * 3


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(LABELS, TEXTS, strict=True)))
    return str(path)


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return str(path)


def fit(*arguments):
    return invoke("latent fit", *arguments, "--threads", "1")


@pytest.fixture
def clusters(tmp_path, plain):
    path = str(tmp_path / "clusters")
    fit(plain, "--unsupervised", "--latent", "2", "--output", path, "--quiet")
    return path


@pytest.fixture
def model(tmp_path, docs):
    path = str(tmp_path / "model")
    fit(docs, "--output", path, "--quiet")
    return path


def test_clusters_of_documents_without_labels(docs, plain, clusters):
    found = json.loads(invoke("classify test", clusters, docs, "--json").stdout)
    assert found["nmi"] == found["ari"] == found["matching_accuracy"] == 1
    assert found["documents"] == 24 and "accuracy" not in found
    shown = json.loads(invoke("latent show", clusters, "--json", "-k", "4").stdout)
    assert [one["class"] for one in shown] == [1, 2]
    assert sum(one["share"] for one in shown) == pytest.approx(1, abs=1e-6)
    words = {frozenset(word for word, _ in one["words"]) for one in shown}
    assert words == {
        frozenset(["cat", "dog", "mouse", "bird"]),
        frozenset(["saw", "axe", "file", "drill"]),
    }
    assert all(one["labels"] == [] for one in shown)
    lines = invoke("classify predict", clusters, plain).stdout.splitlines()
    assert {line.split("\t")[0] for line in lines} == {"cluster-1", "cluster-2"}
    assert len(invoke("classify explain", clusters, "cluster-2", "-k", "3").stdout.split("\n")) == 4


def test_show_documents(clusters, plain):
    lines = invoke("latent show", clusters, "-k", "2", "--documents", plain).stdout.splitlines()
    assert len(lines) == 6
    assert [line.startswith("\t") for line in lines] == [False, True, True] * 2
    number, share, labels, words = lines[0].split("\t")
    assert number == "1" and 0 < float(share) < 1 and labels == "" and len(words.split()) == 2
    _, probability, document, text = lines[1].split("\t")
    assert float(probability) > 0.5 and text == TEXTS[int(document) - 1]
    found = json.loads(invoke("latent show", clusters, "--json", "--documents", plain).stdout)
    assert len(found[0]["documents"]) == 10
    chances = [one["probability"] for one in found[0]["documents"]]
    assert chances == sorted(chances, reverse=True)


def test_classifier_test_predict_explain_show(docs, model):
    found = json.loads(invoke("classify test", model, docs, "--json").stdout)
    assert found["accuracy"] == 1 and found["log_likelihood"] > -0.5
    found = json.loads(invoke("classify test", model, docs, "--clusters", "--json").stdout)
    assert found["clusters"] >= 2 and found["nmi"] > 0.5
    lines = invoke("classify predict", model, "-", stdin="cat bird\nsaw\n\n").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines[:2]] == ["animals", "tools"] and len(lines) == 3
    highest_weighted = invoke("classify explain", model, "tools", "-k", "4").stdout.splitlines()
    assert {line.split("\t")[0] for line in highest_weighted} == {"saw", "axe", "file", "drill"}
    shown = json.loads(invoke("latent show", model, "--json").stdout)
    assert len(shown) == 4
    for one in shown:
        assert sum(value for _, value in one["labels"]) == pytest.approx(1, abs=1e-5)


def test_a_line_that_begins_with_a_tab_has_no_label(tmp_path):
    path = tmp_path / "few.tsv"
    texts = [f"\t{text}\n" for text in TEXTS]
    texts[0], texts[4] = f"animals\t{TEXTS[0]}\n", f"tools\t{TEXTS[4]}\n"
    path.write_text("".join(texts))
    out = str(tmp_path / "m")
    result = fit(str(path), "--unlabeled", "use", "--output", out)
    assert "24 documents of 2 labels" in result.stderr and "22 without a label" in result.stderr
    lines = invoke("classify predict", out, str(path)).stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == LABELS
    result = fit(str(path), "--output", out)
    assert "2 documents of 2 labels" in result.stderr
    assert "22 without a label left out" in result.stderr
    result = fit(str(path), "--unlabeled", "auto", "--output", out)
    assert "cross-validated accuracy by --unlabeled" in result.stderr
    record = json.loads((tmp_path / "m" / "model.json").read_text())["record"]
    assert set(record["cross_validated"]) == {"ignore", "use"}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("kind", ["npz", "svm", "stdout"])
def test_transform(tmp_path, docs, model, kind, log):
    out = "-" if kind == "stdout" else str(tmp_path / f"x.{kind}")
    labels = str(tmp_path / "labels")
    flags = ["--log"] * log + ["--labels", labels] * (kind == "npz")
    result = invoke("latent transform", model, docs, "--output", out, *flags)
    assert "24 rows of 4 latent classes, 0 without a known feature" in result.stderr
    if kind == "npz":
        rows = load_npz(out).toarray()
        rows = np.exp(rows) if log else rows
        assert rows.shape == (24, 4) and rows.dtype == np.float32
        assert rows.sum(axis=1) == pytest.approx(np.ones(24), abs=1e-5)
        assert (tmp_path / "labels").read_text().split() == LABELS
    else:
        text = result.stdout if kind == "stdout" else (tmp_path / "x.svm").read_text()
        assert len(text.splitlines()) == 24 and text.startswith("1 ")


def test_holdout_and_choose(tmp_path, docs):
    out = str(tmp_path / "m")
    result = fit(docs, "--output", out, "--holdout", docs, "--choose", "2,3", "--seed", "2")
    assert result.stderr.count("latent classes, held-out: accuracy") == 2
    record = json.loads((tmp_path / "m" / "model.json").read_text())["record"]
    assert [one["latent"] for one in record["tried"]] == [2, 3]
    best = max(record["tried"], key=lambda one: one["log_likelihood"])
    assert len(np.load(tmp_path / "m" / "shares.npy")) == best["latent"]
    fit(docs, "--output", out, "--holdout", "0.3", "--quiet")
    record = json.loads((tmp_path / "m" / "model.json").read_text())["record"]
    assert record["documents"] < 24 and 0 <= record["heldout"]["accuracy"] <= 1


def code_of(*arguments):
    return run([str(one) for one in arguments])


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("ONE", 1, "all documents have the label 'x'"),
        ("PLAIN", 1, "no document has a label; give LABEL<TAB>TEXT, or --unsupervised"),
        ("DOCS --choose 2,3", 2, "--choose: requires held-out documents"),
        ("DOCS --choose 2 --latent 2 --holdout 0.2", 2, "give one"),
        ("DOCS --unsupervised --latent 2 --holdout 0.2", 2, "nothing to measure"),
        ("EMPTY --unsupervised --latent 2", 1, "no words"),
    ],
)
def test_refused(tmp_path, docs, plain, capsys, line, code, message):
    (tmp_path / "one").write_text("x\tcat dog\nx\tdog\n")
    (tmp_path / "empty").write_text("")
    files = {"DOCS": docs, "PLAIN": plain, "ONE": tmp_path / "one", "EMPTY": tmp_path / "empty"}
    given = [files.get(one, one) for one in line.split()]
    out = tmp_path / "out"
    assert code_of("latent", "fit", *given, "--output", out, "--quiet") == code
    assert message in refused(capsys, code)
    assert not out.exists()


def test_other_kinds_of_models_are_rejected(tmp_path, docs, model, capsys):
    maxent = tmp_path / "k"
    assert code_of("classify", "train", docs, "--output", maxent, "--quiet") == 0
    capsys.readouterr()
    code = code_of("latent", "show", maxent)
    assert "is a model of kind 'classifier'; give one of latent" in refused(capsys, code)
    code = code_of("latent", "fit", docs, "--output", maxent)
    assert "is not a model of kind latent" in refused(capsys, code)
    code = code_of("scdv", "transform", model, docs, "--output", tmp_path / "x.npz")
    assert "is a model of kind 'latent'" in refused(capsys, code)
    save_npz(tmp_path / "x.npz", csr_matrix(np.eye(3)))
    code = code_of("latent", "transform", model, tmp_path / "x.npz", "--output", "-")
    assert "contains vectors, but the model" in refused(capsys, code)
