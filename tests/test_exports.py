"""`convert --to`: files for TensorFlow's Embedding Projector, and safetensors."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from helpers import refused, save

from dcme_w2v.cli.main import run
from dcme_w2v.words.vectors import Vectors

WORDS = ["köln", "<b>", "c"]


@pytest.fixture
def path(tmp_path):
    matrix = np.random.default_rng(0).normal(size=(3, 4))
    return save(tmp_path / "v.npy", WORDS, matrix, counts=np.array([9, 5, 2]))


def tensors_of(path):
    """Return the tensors of a safetensors file, which must have no gap and no other bytes."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    assert length % 8 == 0
    header, rest, end = json.loads(data[8 : 8 + length]), data[8 + length :], 0
    found = {}
    for name, about in header.items():
        start, stop = about["data_offsets"]
        assert start == end
        end = stop
        dtype = {"F32": "<f4", "U8": "u1", "I64": "<i8", "I8": "i1"}[about["dtype"]]
        found[name] = np.frombuffer(rest[start:stop], dtype=dtype).reshape(about["shape"])
    assert end == len(rest)
    return found


@pytest.mark.parametrize("flags", [[], ["--to", "safetensors"]])
def test_safetensors(path, flags):
    target = path.with_name("out.safetensors")
    assert run(["convert", str(path), str(target), *flags]) == 0
    tensors = tensors_of(target)
    np.testing.assert_array_equal(tensors["vectors"], Vectors.load(path).vectors)
    assert tensors["words"].tobytes().decode().splitlines() == WORDS
    assert tensors["counts"].tolist() == [9, 5, 2]


def test_the_projector_gets_two_files(path):
    target = path.with_name("out.tsv")
    for _ in range(2):  # they are replaced together
        assert run(["convert", str(path), str(target), "--to", "projector"]) == 0
    numbers = np.loadtxt(target, delimiter="\t")
    np.testing.assert_allclose(numbers, Vectors.load(path).vectors, rtol=1e-6)
    assert target.with_name("out.metadata.tsv").read_text().splitlines() == WORDS


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("v.npy - --to projector", "projector needs two files"),
        ("v.npy o.tsv --to json", "--to json: must be one of projector, safetensors"),
        ("v.npy o.tsv --to kv", "KeyedVectors.load_word2vec_format(BIN, binary=True).save(KV)"),
        ("v.npy o.kv", "--to kv: gensim's .kv files are Python pickles"),
        ("o.kv v.txt", "gensim.models.KeyedVectors.load(FILE).save_word2vec_format"),
    ],
)
def test_wrong_use(flags, message, path, monkeypatch, capsys):
    monkeypatch.chdir(path.parent)
    Path("o.kv").write_bytes(pickle.dumps({"gensim": 1}))
    assert message in refused(capsys, run(["convert", *flags.split()]))


def test_an_unrelated_file_at_the_second_name_is_not_replaced(path, capsys):
    target, mine = path.with_name("out.tsv"), path.with_name("out.metadata.tsv")
    mine.write_text("mine")
    code = run(["convert", str(path), str(target), "--to", "projector"])
    assert "out.metadata.tsv" in refused(capsys, code)
    assert mine.read_text() == "mine" and not target.exists()
