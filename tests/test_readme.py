"""The README's tables are rendered, its example runs; commands and links: test_docs.py."""

import pytest
from documentation import PAGES, blocks

README = PAGES["README.md"]


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "king queen man woman word0 word1 word2 word3"
    (tmp_path / "corpus.txt").write_text(f"{line}\n" * 50)
    pytest.importorskip("gensim")
    (example,) = blocks(README, "python")
    names = {"texts": ["word0 word1", "word2 word3"] * 9, "labels": ["a", "b"] * 9}
    exec(example.replace("SCDV(", "SCDV(clusters=1, vectors="), names)
    assert names["classifier"].predict(names["rows"]).shape == (18,)
