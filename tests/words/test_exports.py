"""Vectors of 8 bits a number: what they lose, and their files."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import save, unit_rows

from dcme_w2v import Vectors
from dcme_w2v.formats.vectors.vectors_io import from_int8
from dcme_w2v.words.exports import agreement, as_int8, mean_cosine

WORDS = ["köln", "<b>", *(f"w{i}" for i in range(398))]


@pytest.fixture(autouse=True)
def folder():
    matrix = np.random.default_rng(0).normal(size=(400, 20)) * 3
    save(Path("v.npy"), WORDS, matrix, counts=np.arange(400, 0, -1))


@pytest.fixture
def packed(cli):
    cli("convert v.npy v.safetensors --quantize int8")
    assert "int8: mean cosine of vectors before and after 0.9999" in cli.err


# ---- numbers ----


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_the_loss_equals_that_of_decoded_vectors(count):
    matrix = (1e-4 * np.random.default_rng(1).normal(size=(count, 30))).astype(np.float32)
    codes, scales = as_int8(matrix)
    unit = [unit_rows(rows) for rows in (matrix, from_int8(codes, scales))]
    cosines = (unit[0] * unit[1]).sum(axis=1)
    wanted = pytest.approx(cosines.mean(), abs=1e-6)
    zeros = np.append(matrix, 0 * matrix[:1], axis=0), np.append(codes, 0 * codes[:1], axis=0)
    assert mean_cosine(matrix, codes) == wanted == mean_cosine(*zeros)
    first, second = (np.argsort(-rows @ rows.T, axis=1)[:, 1:11] for rows in unit)
    common = [np.isin(*rows) for rows in zip(first, second, strict=True)]
    share = np.mean(common) if count > 1 else 1
    assert agreement(matrix, codes) == pytest.approx(share, abs=1e-3)


def test_zeros_lose_nothing():
    assert mean_cosine(np.zeros((2, 3), "f"), np.zeros((2, 3), "i1")) == 1


# ---- files ----


def test_the_vectors_words_and_counts_are_read_back(packed):
    before, after = Vectors.load("v.npy"), Vectors.load("v.safetensors")
    assert list(after.words) == list(before.words)
    assert after.counts.tolist() == before.counts.tolist()
    np.testing.assert_allclose(after.vectors, before.vectors, atol=0.05)
    first = Vectors.load("v.safetensors", limit=3)
    assert list(first.words) == WORDS[:3] and first.counts.tolist() == [400, 399, 398]
    np.testing.assert_array_equal(first.vectors, after.vectors[:3])


def test_vectors_that_a_change_makes_infinite_are_an_error(cli):
    save(Path("x.npy"), ["a", "b", "c"], [[3e38], [-3e38], [-3e38]])
    error = cli.error("convert x.npy x.safetensors --quantize int8 --postprocess center")
    assert "the vector of 'a' in row 1 is NaN or infinite" in error


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


@pytest.mark.parametrize("counted", [True, False])
def test_tables_have_a_list_in_each_row(cli, counted):
    if not counted:
        cli("convert v.npy v.txt")
    source = "v.npy" if counted else "v.txt"
    before = Vectors.load(source)
    cli(f"convert {source} v.jsonl --limit 300")
    rows = [json.loads(line) for line in Path("v.jsonl").read_text("utf-8").splitlines()]
    columns = ["word", *["count"] * counted, "vector"]
    assert all(list(row) == columns for row in rows) and len(rows) == 300
    assert [row["word"] for row in rows] == WORDS[:300]
    numbers = np.array([row["vector"] for row in rows], dtype=np.float32)
    np.testing.assert_array_equal(numbers, before.vectors[:300])
    parquet = pytest.importorskip("pyarrow.parquet")
    cli(f"convert {source} v.parquet --normalize")
    assert "warning" not in cli.err
    table = parquet.read_table("v.parquet")
    assert table.column_names == columns and table["word"].to_pylist() == WORDS
    unit = np.array(table["vector"].to_pylist(), dtype=np.float32)
    np.testing.assert_allclose(unit, unit_rows(before.vectors), atol=1e-6)


def test_a_table_without_its_package_is_one_line(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install pyarrow to write v.parquet" in cli.error("convert v.npy v.parquet")
    assert not Path("v.parquet").exists()
