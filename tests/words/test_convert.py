"""Vectors of 8 bits a number: what they lose, and their files."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import save, unit_rows

from dcme_w2v import Vectors
from dcme_w2v.words.convert import agreement, as_int8

WORDS = ["köln", "<b>", *(f"w{i}" for i in range(398))]


@pytest.fixture(autouse=True)
def folder():
    matrix = np.random.default_rng(0).normal(size=(400, 20)) * 3
    save(Path("v.safetensors"), WORDS, matrix, counts=np.arange(400, 0, -1))


# ---- numbers ----


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_the_loss_equals_that_of_decoded_vectors(count):
    matrix = (1e-4 * np.random.default_rng(1).normal(size=(count, 30))).astype(np.float32)
    codes, scales = as_int8(matrix)
    unit = [unit_rows(rows) for rows in (matrix, codes * scales[:, None])]
    first, second = (np.argsort(-rows @ rows.T, axis=1)[:, 1:11] for rows in unit)
    common = [np.isin(*rows) for rows in zip(first, second, strict=True)]
    share = np.mean(common) if count > 1 else 1
    assert agreement(matrix, codes) == pytest.approx(share, abs=1e-3)


def test_vectors_that_a_change_makes_infinite_are_an_error(cli):
    save(Path("x.safetensors"), ["a", "b", "c"], [[3e38], [-3e38], [-3e38]])
    error = cli.error("convert x.safetensors y.safetensors --postprocess center")
    assert "the vector of 'a' in row 1 is NaN or infinite" in error


def test_a_code_is_within_half_a_step():
    matrix = np.random.default_rng(1).normal(size=(50, 7)).astype(np.float32)
    matrix[3] = 0
    matrix[4] = 1e-37
    matrix[5] = 1e38
    codes, scales = as_int8(matrix)
    assert codes.min() >= -127 and scales[3] == 0
    back = codes * scales[:, None]
    assert (np.abs(back - matrix) <= np.abs(matrix).max(axis=1, keepdims=True) / 253).all()
    assert (back[3] == 0).all()


@pytest.mark.parametrize("counted", [True, False])
def test_tables_have_a_list_in_each_row(cli, counted):
    if not counted:
        cli("convert v.safetensors v.txt")
    source = "v.safetensors" if counted else "v.txt"
    before = Vectors.load(source)
    cli(f"convert {source} v.jsonl --limit 300")
    rows = [json.loads(line) for line in Path("v.jsonl").read_text("utf-8").splitlines()]
    columns = ["word", *["count"] * counted, "vector"]
    assert all(list(row) == columns for row in rows) and len(rows) == 300
    assert [row["word"] for row in rows] == WORDS[:300]
    numbers = np.array([row["vector"] for row in rows], dtype=np.float32)
    np.testing.assert_array_equal(numbers, before.vectors[:300])
    parquet = pytest.importorskip("pyarrow.parquet")
    cli(f"convert {source} v.parquet --unit")
    assert "warning" not in cli.err
    table = parquet.read_table("v.parquet")
    assert table.column_names == columns and table["word"].to_pylist() == WORDS
    unit = np.array(table["vector"].to_pylist(), dtype=np.float32)
    np.testing.assert_allclose(unit, unit_rows(before.vectors), atol=1e-6)


def test_a_table_without_its_package_is_one_line(cli, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert "pip install pyarrow to write v.parquet" in cli.error("convert v.safetensors v.parquet")
    assert not Path("v.parquet").exists()
