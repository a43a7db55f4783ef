"""`convert --to`: files for TensorFlow's Embedding Projector, and safetensors."""

import errno
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from helpers import save

from dcme_w2v.words.vectors import Vectors

WORDS = ["köln", "<b>", "c"]


@pytest.fixture(autouse=True)
def path(here):
    matrix = np.random.default_rng(0).normal(size=(3, 4))
    save(Path("v.npy"), WORDS, matrix, counts=np.array([9, 5, 2]))


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


@pytest.mark.parametrize("flags", ["", "--to safetensors"])
def test_safetensors(cli, flags):
    cli(f"convert v.npy out.safetensors {flags}")
    tensors = tensors_of(Path("out.safetensors"))
    np.testing.assert_array_equal(tensors["vectors"], Vectors.load("v.npy").vectors)
    assert tensors["words"].tobytes().decode().splitlines() == WORDS
    assert tensors["counts"].tolist() == [9, 5, 2]


@pytest.mark.parametrize("failing", [0, 1])
def test_the_projector_gets_both_files_or_none(cli, monkeypatch, failing):
    synced, sync = [], os.fsync

    def full(number):
        synced.append(number)
        if len(synced) == failing + 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(number)

    monkeypatch.setattr(os, "fsync", full)
    assert "No space left" in cli.error("convert v.npy full.tsv --to projector")
    assert not list(Path().glob("full*")) + list(Path().glob(".full*"))


def test_the_projector_gets_two_files(cli):
    for _ in range(2):  # they are replaced together
        cli("convert v.npy out.tsv --to projector")
    numbers = np.loadtxt("out.tsv", delimiter="\t")
    np.testing.assert_allclose(numbers, Vectors.load("v.npy").vectors, rtol=1e-6)
    assert Path("out.metadata.tsv").read_text().splitlines() == WORDS


@pytest.mark.parametrize(
    "flags, message",
    [
        ("v.npy - --to projector", "projector needs two files"),
        ("v.npy o.tsv --to json", "--to json: must be one of projector, safetensors"),
        ("v.npy o.tsv --to kv", "KeyedVectors.load_word2vec_format(BIN, binary=True).save(KV)"),
        ("v.npy o.kv", "--to kv: gensim's .kv files are Python pickles"),
        ("o.kv v.txt", "gensim.models.KeyedVectors.load(FILE).save_word2vec_format"),
        ("v.npy out.tsv --to projector", "out.metadata.tsv"),  # which is another file
    ],
)
def test_wrong_use(flags, message, cli):
    Path("o.kv").write_bytes(pickle.dumps({"gensim": 1}))
    Path("out.metadata.tsv").write_text("mine")
    assert message in cli.error(f"convert {flags}")
    assert Path("out.metadata.tsv").read_text() == "mine" and not Path("out.tsv").exists()
