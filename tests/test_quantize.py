"""Vectors as safetensors, also as int8: every reader takes them, the loss, and corrupt files."""

import json
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
        "analogy {} w1 w2 w3",
        "similarity {} w1 w2",
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


def test_faults_are_found_and_repaired(cli):
    numbers = np.array([1, np.nan, 3e38, 4, 5], "<f4").tobytes()
    lines = b"a\nb\nx y\na\n\xff\n"
    written({"vectors": ("F32", [5, 1], numbers), "words": ("U8", [len(lines)], lines)})
    kinds = {fault.kind for fault in check_vectors(Path("bad.safetensors")).faults}
    assert {"NaN or infinite number", "separator in a word", "duplicate word",
            "invalid UTF-8 in a word"} <= kinds  # fmt: skip
    assert "bad.safetensors: row" in cli.error("neighbors bad.safetensors a")
    cli("convert bad.safetensors good.txt --invalid replace")
    assert list(Vectors.load("good.txt").words) == ["a", "b", "x_y", "\ufffd"]


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
