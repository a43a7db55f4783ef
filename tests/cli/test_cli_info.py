"""`dcme-w2v info`: every kind of file, the command that made it, and which inputs are errors."""

import pickle
import shlex
import struct
import sys
from pathlib import Path

import pytest
from data import write_corpus
from helpers import save

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


@pytest.mark.parametrize("format", ["text", "binary", "safetensors"])
def test_vectors_of_every_format(format, facts_of):
    path = save(Path("v"), WORDS, ROWS, format=format)
    facts = facts_of(path)
    assert (facts["kind"], facts["rows"], facts["dimension"]) == ("word vectors", 3, 2)
    assert facts["format"] == format


def test_the_command_that_made_vectors_a_checkpoint_and_a_model(facts_of, cli, monkeypatch):
    write_corpus("c o.txt")
    files = "--output v --checkpoint ck --output-tables tables"
    line = ["train", "c o.txt", *f"{files} --epochs 2 --checkpoint-every 1 --quiet".split()]
    monkeypatch.setattr(sys, "argv", ["/usr/bin/dcme-w2v", *line])
    cli("", *line)
    for path in ("v", "ck", "tables"):
        facts = facts_of(path)
        assert shlex.split(facts["made_by"]) == ["dcme-w2v", *line], path
        assert facts["options"]["epochs"] == 2
    assert facts["kind"] == "word vectors"
    facts = facts_of("ck")
    assert facts["kind"] == "model: checkpoint" and facts["position"]["epoch"] == 2
    assert facts["generations"] == ["000001.safetensors", "000002.safetensors"]


@pytest.mark.parametrize(
    "content, named",
    [
        (struct.pack("<ii", 793712314, 12) + b"\0" * 90, "this fastText model"),
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
