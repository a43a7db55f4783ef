"""`dcme-w2v scdv`: the commands, their files and their errors."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from data import make_texts, word_vectors
from scipy import sparse

from dcme_w2v.scdv.model import DocumentModel

FIT = "scdv fit docs --vectors v.txt --clusters 5 --iterations 20 --preset paper --quiet"


@pytest.fixture
def folder(here, cli):
    """A folder with word vectors, documents of two labels, and a model."""
    word_vectors().save("v.txt")
    lines = [f"{'ab'[i % 2]}|c".encode() + b"\t" + text for i, text in enumerate(make_texts())]
    Path("docs").write_bytes(b"\n".join(lines) + b"\n")
    cli(f"{FIT} --output m")
    return here


def expected():
    model = DocumentModel.load("m")
    return sparse.vstack(list(model.transform(make_texts())), format="csr")


def test_npz(folder, cli):
    figures = cli.json("transform m docs --output x.npz --labels x.labels --threads 2")
    rows = sparse.load_npz("x.npz")
    assert rows.shape == (80, 35) and (rows != expected()).nnz == 0
    assert figures["rows"] == 80
    assert figures["zero_rows"] == sum(rows.getnnz(axis=1) == 0) > 0
    assert figures["density"] == rows.nnz / (80 * 35)
    assert Path("x.labels").read_text().splitlines() == ["a|c", "b|c"] * 40
    with np.load("x.npz", allow_pickle=False) as archive:
        assert archive["indices"].dtype == np.uint16
        packed = {member.filename: member.compress_type for member in archive.zip.infolist()}
    assert packed["indices.npy"] == zipfile.ZIP_DEFLATED
    assert packed["data.npy"] == zipfile.ZIP_STORED


def test_svmlight(folder, cli):
    datasets = pytest.importorskip("sklearn.datasets")
    cli("transform m docs --output x.svm")
    rows, labels = datasets.load_svmlight_file("x.svm", n_features=35, multilabel=True)
    np.testing.assert_array_equal(rows.toarray().astype(np.float32), expected().toarray())
    assert labels in ([(1.0, 2.0), (3.0, 2.0)] * 40, [(1.0, 2.0), (2.0, 3.0)] * 40)
    assert cli("transform m docs --output -") == Path("x.svm").read_text()


def test_topics(folder, cli):
    line = "scdv topics m --coherence docs -k"
    report = cli.json(f"{line} 3")
    assert [topic["number"] for topic in report["topics"]] == [1, 2, 3, 4, 5]
    assert sum(topic["share"] for topic in report["topics"]) == pytest.approx(1)
    scores = [topic["coherence"] for topic in report["topics"]]
    assert report["coherence"] == pytest.approx(np.mean(scores))
    assert len(cli.rows(f"{line} 3")) == 5
    assert f"mean coherence {report['coherence']:.2f} over 5 topics\n" in cli.err
    cli(f"{line} 1000")
    assert (
        "over 5 topics; 5 have fewer than 1000 words, which increases their coherence\n" in cli.err
    )
    assert float(cli.rows("scdv topics m --word w1")[0][0]) > 0.05
    for features in ("average", "tfidf"):
        cli(f"scdv fit docs --vectors v.txt --output other --representation {features}")
        assert f"a model with --representation {features} has no topics" in cli.error(
            "scdv topics other"
        )
