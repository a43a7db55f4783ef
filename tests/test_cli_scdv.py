"""`dcme-w2v scdv`: the commands, their files and their errors."""

import json
import shutil
import zipfile

import numpy as np
import pytest
from helpers import make_texts, word_vectors
from scipy import sparse

from dcme_w2v.cli.main import run
from dcme_w2v.scdv.model import DocumentModel

FIT = ["--clusters", "5", "--iterations", "20", "--preset", "paper", "--quiet"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with word vectors, documents of two labels, and a model."""
    monkeypatch.chdir(tmp_path)
    word_vectors().save("v.txt")
    lines = [f"{'ab'[i % 2]}|c".encode() + b"\t" + text for i, text in enumerate(make_texts())]
    (tmp_path / "docs").write_bytes(b"\n".join(lines) + b"\n")
    assert run(["scdv", "fit", "docs", "--vectors", "v.txt", "--output", "m", *FIT]) == 0
    return tmp_path


def expected():
    model = DocumentModel.load("m")
    return sparse.vstack(list(model.transform(make_texts())), format="csr")


def test_npz(folder, capsys):
    capsys.readouterr()
    arguments = ["scdv", "transform", "m", "docs", "--output", "x.npz", "--labels", "x.labels"]
    assert run([*arguments, "--json", "--threads", "2"]) == 0
    figures = json.loads(capsys.readouterr().out)
    rows = sparse.load_npz("x.npz")
    assert rows.shape == (80, 35)
    assert (rows != expected()).nnz == 0
    assert figures["rows"] == 80
    assert figures["zero_rows"] == sum(rows.getnnz(axis=1) == 0) > 0
    assert figures["density"] == rows.nnz / (80 * 35)
    assert (folder / "x.labels").read_text().splitlines() == ["a|c", "b|c"] * 40
    with np.load("x.npz", allow_pickle=False) as archive:
        assert archive["indices"].dtype == np.uint16
        packed = {member.filename: member.compress_type for member in archive.zip.infolist()}
    assert packed["indices.npy"] == zipfile.ZIP_DEFLATED
    assert packed["data.npy"] == zipfile.ZIP_STORED


def test_svmlight(folder, capsysbinary):
    datasets = pytest.importorskip("sklearn.datasets")
    assert run(["scdv", "transform", "m", "docs", "--output", "x.svm"]) == 0
    rows, labels = datasets.load_svmlight_file("x.svm", n_features=35, multilabel=True)
    np.testing.assert_array_equal(rows.toarray().astype(np.float32), expected().toarray())
    assert labels == [(1.0, 2.0), (3.0, 2.0)] * 40 or labels == [(1.0, 2.0), (2.0, 3.0)] * 40
    capsysbinary.readouterr()
    assert run(["scdv", "transform", "m", "docs", "--output", "-"]) == 0
    assert capsysbinary.readouterr().out == (folder / "x.svm").read_bytes()


def test_topics(folder, capsys):
    capsys.readouterr()
    assert run(["scdv", "topics", "m", "--words", "3", "--coherence", "docs", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [topic["number"] for topic in report["topics"]] == [1, 2, 3, 4, 5]
    assert sum(topic["share"] for topic in report["topics"]) == pytest.approx(1)
    scores = [topic["coherence"] for topic in report["topics"]]
    assert report["coherence"] == pytest.approx(np.mean(scores))
    assert run(["scdv", "topics", "m", "--words", "3", "--coherence", "docs"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 5
    assert f"mean coherence {report['coherence']:.2f} over 5 topics\n" in err
    assert run(["scdv", "topics", "m", "--words", "1000", "--coherence", "docs"]) == 0
    assert "over 5 topics; 5 have fewer than 1000 words, which raises their coherence\n" in (
        capsys.readouterr().err
    )
    assert run(["scdv", "topics", "m", "--word", "w1"]) == 0
    assert float(capsys.readouterr().out.split("\t")[0]) > 0.05
    assert run(["scdv", "topics", "m", "--word", "none"]) == 1
    assert capsys.readouterr().err.startswith("error: none: not among the ")


def test_search(folder, capsys):
    assert run(["scdv", "transform", "m", "docs", "--output", "x.npz", "--labels", "l"]) == 0
    capsys.readouterr()
    search = ["scdv", "search", "m", "x.npz"]
    text = make_texts()[0].decode()
    assert run([*search, text, "-k", "2", "--labels", "l"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.split("\t")[:3] == ["1", "1", "1"]
    assert float(first.split("\t")[3]) == pytest.approx(1, abs=1e-3)
    assert first.split("\t")[4] == "a|c"
    assert second.split("\t")[:2] == ["1", "2"]
    assert run([*search, text, "--lm", "1", "--documents", "docs", "-k", "80", "--json"]) == 0
    (answers,) = json.loads(capsys.readouterr().out)["answers"]
    assert [hit["score"] for hit in answers] == sorted((h["score"] for h in answers), reverse=True)
    assert (answers[0]["score"], answers[-1]["score"]) == (1, 0)
    (folder / "judged").write_text("1 1\n")
    assert run([*search, text, "--map", "--judgments", "judged", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"mean_average_precision": 1.0, "queries": 1}
    assert run([*search, "--queries", "docs", "--map", "--labels", "l"]) == 0
    assert capsys.readouterr().out == "1.0000\n"  # all documents share the label c


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("fit docs --vectors v.txt --output n --clusters 500", 2,
         "--clusters 500: there are only"),
        ("transform m docs --output x.csv", 2, "x.csv: give a file that ends in"),
        ("transform docs docs --output x.npz", 1, "docs: is not a model"),
        ("transform old docs --output x.npz", 1, "old: has version 0"),
        ("topics bag", 1, "the model is tfidf, which has no topics"),
        ("search m x.npz", 2, "no query; give one"),
        ("search m x.npz unknown", 1, "no query has a word that the model"),
        ("search m x.npz w1 --lm 0.5", 2, "0 requires --documents"),
        ("search m x.npz w1 --documents one --lm 1", 1,
         "the index has 80 rows and --documents 1"),
        ("search bag x.npz w1", 1, "has 35 columns, the model"),
        ("search m x.npz w1 --labels one", 1, "one: has 1 lines for 80 rows"),
        ("search m x.npz w1 --map", 2, "no query has a relevant document"),
        ("search m x.npz w1 --map --judgments one", 1, "one:1: give two"),
        ("plot x.npz --output p --limit 2", 2, "2 is not in the range"),
        ("plot equal.npz --output p", 2, "all rows are equal"),
    ],
)  # fmt: skip
def test_errors_are_one_line(folder, capsys, line, code, message):
    (folder / "one").write_bytes(b"w1\n")
    np.save(folder / "v.npy", np.ones((5, 4), dtype=np.float32))
    sparse.save_npz(folder / "equal.npz", sparse.csr_matrix(np.ones((5, 4))))
    assert run(["scdv", "transform", "m", "docs", "--output", "x.npz"]) == 0
    if "bag" in line:
        assert run(["scdv", "fit", "docs", "--vectors", "v.txt", "--output", "bag",
                    "--features", "tfidf"]) == 0  # fmt: skip
    shutil.copytree(folder / "m", folder / "old")
    description = json.loads((folder / "old" / "model.json").read_text())
    (folder / "old" / "model.json").write_text(json.dumps({**description, "version": 0}))
    capsys.readouterr()
    assert run(["scdv", *line.split()]) == code
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith("error: ")
    assert message in err
    assert not (folder / "n").exists()
    assert not list(folder.glob(".*"))
