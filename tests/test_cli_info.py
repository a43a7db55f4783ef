"""`dcme-w2v info`: every kind of file, the command that made it, and what is an error."""

import json
import pickle
import shlex
import struct
import sys

import numpy as np
import pytest
from helpers import refused, save, write_corpus
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v.cli.main import run

WORDS = ["über", "b", "c"]
ROWS = [[1, 2], [3, 4], [5, 6]]


def told(capsys, path):
    """Return what `info` prints as JSON, and check that the text has every key."""
    capsys.readouterr()
    assert run(["info", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert run(["info", str(path)]) == 0
    text = capsys.readouterr().out
    assert all(f"{key.replace('_', ' ')}:" in text for key in facts)
    return facts


@pytest.mark.parametrize("name", ["v.txt", "v.bin", "v.npy"])
def test_vectors_of_every_format(name, tmp_path, capsys):
    path = save(tmp_path / name, WORDS, ROWS, counts=np.array([9, 5, 2]))
    facts = told(capsys, path)
    assert (facts["kind"], facts["rows"], facts["dimension"]) == ("word vectors", 3, 2)
    assert facts["first_words"] == WORDS
    assert facts["bytes"] == path.stat().st_size
    assert facts["format"] == {"v.txt": "text", "v.bin": "binary", "v.npy": "npy"}[name]
    assert facts.get("tokens") == (16 if name == "v.npy" else None)


def test_the_command_that_made_vectors_a_checkpoint_and_a_model(tmp_path, capsys, monkeypatch):
    corpus = write_corpus(tmp_path / "c o.txt")
    vectors, checkpoint, log = (str(tmp_path / name) for name in ("v", "ck", "log"))
    tables = str(tmp_path / "tables")
    flags = ["--epochs", "2", "--checkpoint", checkpoint, "--checkpoint-every", "1"]
    line = ["train", corpus, "--output", vectors, *flags, "--log-json", log, "--quiet"]
    line += ["--output-tables", tables]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/dcme-w2v", *line])
    assert run(line) == 0
    for path in (vectors, f"{vectors}.json", checkpoint, f"{checkpoint}/000002", tables):
        facts = told(capsys, path)
        assert shlex.split(facts["made_by"]) == ["dcme-w2v", *line], path
        assert facts["options"]["epochs"] == 2
    assert facts["kind"] == "model: tables"
    assert facts["arrays"]["input"].startswith("float32 (")
    facts = told(capsys, checkpoint)
    assert facts["kind"] == "checkpoint of words" and facts["epoch"] == 2
    assert facts["generations"] == ["000001", "000002"]
    facts = told(capsys, log)
    assert facts["kind"] == "log of training" and facts["epochs"] == 2
    assert facts["last_epoch"]["epoch"] == 2 and facts["ended"] is True


def test_vocabularies_phrases_rows_and_arrays(tmp_path, capsys):
    (tmp_path / "voc").write_text("the 9\nof 5\n")
    facts = told(capsys, tmp_path / "voc")
    assert (facts["kind"], facts["words"], facts["tokens"]) == ("vocabulary", 2, 14)
    (tmp_path / "tab").write_bytes(b"1\ta\tb\t5\t2.5\n2\ta_b\tc\t5\t2.5\n")
    assert told(capsys, tmp_path / "tab")["phrases"] == [1, 1]
    save_npz(tmp_path / "r.npz", csr_matrix([[1.0, 0], [0, 0]]))
    facts = told(capsys, tmp_path / "r.npz")
    assert (facts["kind"], facts["rows"], facts["columns"]) == ("sparse rows", 2, 2)
    assert facts["density"] == 0.25
    np.savez(tmp_path / "a.npz", one=np.zeros((2, 3)), two=np.arange(4, dtype=np.int32))
    assert told(capsys, tmp_path / "a.npz")["arrays"] == {
        "one": "float64 (2, 3)",
        "two": "int32 (4,)",
    }
    np.save(tmp_path / "m.npy", np.zeros((2, 3), dtype=np.int8))
    assert told(capsys, tmp_path / "m.npy")["shape"] == [2, 3]
    (tmp_path / "r.svm").write_text("x 0:1 4:2\ny 1:1\n")
    facts = told(capsys, tmp_path / "r.svm")
    assert (facts["columns"], facts["entries"], facts["labels"]) == (5, 3, 2)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (struct.pack("<ii", 793712314, 12) + b"\0" * 90, "a model of fastText"),
        (pickle.dumps({"gensim": 1}), "a Python pickle"),
        (b"\x20\0\0\0\0\0\0\0" + b'{"a": {}}', "a safetensors file"),
        (b"\x89HDF\r\n\x1a\n" + b"\0" * 99, "an HDF5 file"),
        (b"just text of two lines\nand more\n", "neither a header"),
        (b"PK\x03\x04", "is a zip archive"),
        (b"", "the file is empty"),
    ],
)
def test_files_of_other_programs_are_named(content, named, tmp_path, capsys):
    path = tmp_path / "vectors.bin"
    path.write_bytes(content)
    for command in (["info"], ["neighbors"]):
        words = ["a"] if command == ["neighbors"] else []
        assert named in refused(capsys, run([*command, str(path), *words]))


def test_unknown_files_are_errors(tmp_path, capsys):
    assert "is neither a model" in refused(capsys, run(["info", str(tmp_path)]))
    assert "there is no such file" in refused(capsys, run(["info", str(tmp_path / "nowhere")]))
    assert "is a stream" in refused(capsys, run(["info", "-"]))
    (tmp_path / "r.npz").write_bytes(b"PK\x03\x04 and no more")
    assert "is not a valid file of arrays" in refused(
        capsys, run(["info", str(tmp_path / "r.npz")])
    )
    (tmp_path / "model.json").write_text('{"kind": 3, "arrays": {}}')
    assert "has no kind or arrays" in refused(capsys, run(["info", str(tmp_path)]))
    (tmp_path / "model.json").write_text('{"kind": "k", "arrays": {"a": {"dtype": "<f4"}}}')
    assert "a.npy: there is no such file" in refused(capsys, run(["info", str(tmp_path)]))


def test_a_hand_edited_manifest(tmp_path, capsys):
    vectors = save(tmp_path / "v.txt", WORDS, ROWS)
    (tmp_path / "v.txt.json").write_text("{")
    assert "v.txt.json: is not JSON" in refused(capsys, run(["info", str(vectors)]))
    (tmp_path / "v.txt.json").write_text('{"version": "1", "options": {}, "argv": 7}')
    assert "made_by" not in told(capsys, vectors)
