"""What `convert` writes: safetensors, int8, the Embedding Projector; every reader takes them."""

import errno
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from helpers import save, unit_rows

from dcme_w2v.formats.vectors.safetensors import from_int8
from dcme_w2v.words.check import check_vectors
from dcme_w2v.words.exports import agreement, as_int8, mean_cosine
from dcme_w2v.words.vectors import Vectors

WORDS = ["köln", "<b>", *(f"w{i}" for i in range(398))]


@pytest.fixture(autouse=True)
def folder(here):
    matrix = np.random.default_rng(0).normal(size=(400, 20)) * 3
    save(Path("v.npy"), WORDS, matrix, counts=np.arange(400, 0, -1))


@pytest.fixture
def packed(cli):
    cli("convert v.npy v.safetensors --quantize int8")


def written(tensors):
    """Write tensors (dtype, shape, bytes) as bad.safetensors."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        offsets = [len(data), len(data) + len(content)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        data += content
    about = json.dumps(header).encode()
    Path("bad.safetensors").write_bytes(len(about).to_bytes(8, "little") + about + data)


def words_and(vectors, **more):
    return {"vectors": vectors, "words": ("U8", [4], b"a\nb\n"), **more}


FLOATS = ("F32", [2, 1], np.array([1, 2], "<f4").tobytes())
CODES = ("I8", [2, 1], b"\x7f\x81")


# ---- numbers ----


def test_the_loss_equals_that_of_decoded_vectors():
    matrix = np.random.default_rng(1).normal(size=(200, 30)).astype(np.float32)
    codes, scales = as_int8(matrix)
    back = from_int8(codes, scales)
    unit = [unit_rows(rows) for rows in (matrix, back)]
    first, second = (np.argsort(-rows @ rows.T, axis=1)[:, 1:11] for rows in unit)
    cosines = (unit[0] * unit[1]).sum(axis=1)
    assert mean_cosine(matrix, codes) == pytest.approx(cosines.mean(), abs=1e-6)
    common = np.mean([np.isin(*rows) for rows in zip(first, second, strict=True)])
    assert agreement(matrix, codes) == pytest.approx(common, abs=1e-3)


# ---- files ----


def test_the_vectors_words_and_counts_are_read_back(packed):
    before, after = Vectors.load("v.npy"), Vectors.load("v.safetensors")
    assert list(after.words) == list(before.words)
    assert after.counts.tolist() == before.counts.tolist()
    np.testing.assert_allclose(after.vectors, before.vectors, atol=0.05)
    first = Vectors.load("v.safetensors", limit=3)
    assert list(first.words) == WORDS[:3] and first.counts.tolist() == [400, 399, 398]
    np.testing.assert_array_equal(first.vectors, after.vectors[:3])


def test_float32_is_mapped_and_exact(cli):
    cli("convert v.npy f.safetensors")
    found = Vectors.load("f.safetensors")
    np.testing.assert_array_equal(found.vectors, Vectors.load("v.npy").vectors)
    assert isinstance(found.vectors, np.memmap)
    assert not isinstance(Vectors.load("f.safetensors", mmap=False).vectors, np.memmap)


@pytest.mark.parametrize("to", ["v.safetensors --quantize int8", "v --to sentence-transformers"])
@pytest.mark.parametrize(
    "line",
    [
        "neighbors {} köln",
        "neighbors {} +w1 -w2",
        "info {}",
        "check {}",
        "explore {} --output page.html --method pca",
        "convert {} v.txt --limit 2 --normalize",
        "scdv fit docs --vectors {} --clusters 2 --output model",
        "train docs --init {} --output o.npy --epochs 1 --min-count 1 --dim 20",
        "encode {} docs --output o.tsv",
        "eval sts {} sts",
    ],
)
def test_every_reader_takes_safetensors_and_folders(cli, line, to):
    Path("docs").write_text("w1 w2 w3\nw4 w5\n" * 20)
    Path("sts").write_text("1\tw1\tw2\n2\tw3\tw4\n")
    cli(f"convert v.npy {to}")
    cli(line.format(to.split()[0]))


def test_faults_are_found_and_skipped(cli):
    numbers = np.array([1, np.nan, 3e38, 4], "<f4").tobytes()
    written({"vectors": ("F32", [4, 1], numbers), "words": ("U8", [8], b"a\nb\nc\nd\n")})
    (fault,) = check_vectors(Path("bad.safetensors")).faults
    assert (fault.kind, fault.count) == ("length not finite", 2)
    cli("convert bad.safetensors good.txt --invalid skip")
    assert list(Vectors.load("good.txt").words) == ["a", "d"]
    written({"vectors": ("F32", [2, 1], numbers[:8]), "words": ("U8", [4], b"a\na\n")})
    assert "bad.safetensors: row" in cli.error("neighbors bad.safetensors a")


@pytest.mark.parametrize(
    "tensors, message",
    [
        ({"embeddings": FLOATS}, "without the tensors vectors and words"),
        (words_and(("F32", [3, 1], b"\0" * 12)), "2 words for 3 vectors"),
        (words_and(("F32", [2], b"\0" * 8)), "vectors are float32 of shape (2,)"),
        (words_and(("F64", [2, 1], b"\0" * 16)), "vectors are float64 of shape (2, 1)"),
        (words_and(("F32", [2, 1], b"\0" * 4)), "the entry of its tensor vectors is not valid"),
        (words_and(CODES), "vectors are int8 of shape (2, 1), not float32"),
        (words_and(FLOATS, scales=FLOATS), "vectors are float32 of shape (2, 1), not int8"),
        (words_and(CODES, scales=("F32", [1], b"\0" * 4)), "scales are not 2 numbers"),
        (words_and(FLOATS, counts=("I64", [1], b"\0" * 8)), "counts are not 2 numbers"),
        (words_and(FLOATS, words=("U8", [3], b"a\nb")), "words are not lines"),
    ],
)
def test_wrong_tensors(tensors, message, cli):
    written(tensors)
    assert message in cli.error("neighbors bad.safetensors a")
    faults = check_vectors(Path("bad.safetensors")).faults
    assert [fault.kind for fault in faults] == ["unreadable"]


def test_a_code_is_within_half_a_step():
    matrix = np.random.default_rng(1).normal(size=(50, 7)).astype(np.float32)
    matrix[3] = 0
    matrix[4] = 1e-37
    matrix[5] = 1e38
    codes, scales = as_int8(matrix)
    assert codes.min() >= -127 and scales[3] == 0
    back = from_int8(codes, scales)
    assert (np.abs(back - matrix) <= np.abs(matrix).max(axis=1, keepdims=True) / 253).all()
    assert (back[3] == 0).all()


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
    assert tensors["counts"].tolist() == list(range(400, 0, -1))


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
