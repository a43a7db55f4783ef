"""`dcme-w2v info`: every kind of file, the command that made it, and which inputs are errors."""

import pickle
import shlex
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import save, write_corpus
from scipy.sparse import csr_matrix, save_npz

pytestmark = pytest.mark.usefixtures("here")


WORDS = ["über", "b", "c"]
ROWS = [[1, 2], [3, 4], [5, 6]]


@pytest.fixture
def facts_of(cli):
    """Return what `info` prints as JSON; the text has every key."""

    def info(path):
        facts, text = cli.json(f"info {path}"), cli(f"info {path}")
        assert all(f"{key.replace('_', ' ')}:" in text for key in facts)
        return facts

    return info


@pytest.mark.parametrize("format", ["text", "binary", "npy"])
def test_vectors_of_every_format(format, facts_of):
    path = save(Path("v.npy" if format == "npy" else "v"), WORDS, ROWS, format=format,
                counts=np.array([9, 5, 2]))  # fmt: skip
    facts = facts_of(path)
    assert (facts["kind"], facts["rows"], facts["dimension"]) == ("word vectors", 3, 2)
    assert facts["first_words"] == WORDS and facts["format"] == format
    assert facts["bytes"] == path.stat().st_size
    assert facts.get("tokens") == (16 if format == "npy" else None)


def test_the_command_that_made_vectors_a_checkpoint_and_a_model(here, facts_of, cli, monkeypatch):
    write_corpus(here / "c o.txt")
    files = "--output v --checkpoint ck --output-tables tables --log-json log"
    line = ["train", "c o.txt", *f"{files} --epochs 2 --checkpoint-every 1 --quiet".split()]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/dcme-w2v", *line])
    cli("", *line)
    for path in ("v", "v.json", "ck", "ck/000002", "tables"):
        facts = facts_of(path)
        assert shlex.split(facts["made_by"]) == ["dcme-w2v", *line], path
        assert facts["options"]["epochs"] == 2
    assert facts["kind"] == "model: tables"
    assert facts["arrays"]["input"].startswith("float32 (")
    facts = facts_of("ck")
    assert facts["kind"] == "checkpoint of words" and facts["epoch"] == 2
    assert facts["generations"] == ["000001", "000002"]
    facts = facts_of("log")
    assert facts["kind"] == "log of training" and facts["epochs"] == 2
    assert facts["last_epoch"]["epoch"] == 2 and facts["ended"] is True


def test_vocabularies_phrases_rows_and_arrays(facts_of):
    Path("voc").write_text("the 9\nof 5\n")
    Path("tab").write_bytes(b"1\ta\tb\t5\t2.5\n2\ta_b\tc\t5\t2.5\n")
    Path("r.svm").write_text("x 0:1 4:2\ny 1:1\n")
    save_npz("r.npz", csr_matrix([[1.0, 0], [0, 0]]))
    np.savez("a.npz", one=np.zeros((2, 3)), two=np.arange(4, dtype=np.int32))
    np.save("m.npy", np.zeros((2, 3), dtype=np.int8))
    arrays = {"one": "float64 (2, 3)", "two": "int32 (4,)"}
    for path, facts in {
        "voc": {"kind": "vocabulary", "words": 2, "tokens": 14},
        "tab": {"phrases": [1, 1]},
        "r.npz": {"kind": "sparse rows", "rows": 2, "columns": 2, "density": 0.25},
        "a.npz": {"arrays": arrays},
        "m.npy": {"shape": [2, 3]},
        "r.svm": {"columns": 5, "entries": 3, "labels": 2},
    }.items():
        assert facts.items() <= facts_of(path).items()


@pytest.mark.parametrize(
    "content, named",
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
def test_files_of_other_programs_are_named(content, named, cli):
    Path("v.bin").write_bytes(content)
    for line in ("info v.bin", "neighbors v.bin a"):
        assert named in cli.error(line)


def test_unknown_files_are_errors(cli):
    for path, text, message in (
        (".", "", "is no folder of checkpoints"),
        ("nowhere", "", "there is no such file"),
        ("-", "", "is a stream"),
        ("r.npz", "PK\x03\x04 and no more", "is not a valid file of arrays"),
    ):
        if text:
            Path(path).write_text(text)
        assert message in cli.error(f"info {path}")


def test_a_hand_edited_manifest(facts_of, cli):
    save(Path("v"), WORDS, ROWS)
    Path("v.json").write_text("{")
    assert "v.json: is not JSON" in cli.error("info v")
    Path("v.json").write_text('{"version": "1", "options": {}, "argv": 7}')
    assert "made_by" not in facts_of("v")
