"""'convert': repair of files with faults, and the options that change the vectors."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from helpers import save
from numpy.testing import assert_allclose

from dcme_w2v import Vectors
from dcme_w2v.words.check import check

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture
def converted(cli):
    """Convert a file; return the vectors, which must be without faults."""

    def convert(source, flags, target="out.txt"):
        cli(f"convert {source} {target} {flags}")
        assert check(Path(target)).faults == []
        return Vectors.load(target)

    return convert


@pytest.fixture
def healthy():
    random = np.random.default_rng(0)
    matrix = random.normal(size=(40, 3)) @ random.normal(size=(3, 7)) + 5
    return save(Path("v.safetensors"), WORDS, matrix, counts=np.arange(40, 0, -1))


# ---- repair ----


def test_a_row_of_safetensors_without_a_finite_length_is_dropped(converted, cli):
    path = save(Path("v.safetensors"), ["a", "b"], [[1, 2], [3e38, 3e38]])
    assert list(converted(path, "--invalid skip").words) == ["a"]
    assert "rows skipped: 1 (length not finite)" in cli.err


def test_what_check_finds_in_a_large_file_is_skipped(converted, cli):
    """As GloVe 840B: no header, words with spaces, and each other fault, in blocks of rows."""
    rows = [b"w%d %d.5 0.25 1e-3" % (i, i) for i in range(9000)]
    for number, row in {
        5: b". . . 1 2 3", 4097: b"at name@domain.com 1 2 3", 8000: b"w7 1 2 3",
        8001: b"b\xffd 1 2 3", 8002: b"short 1 2", 8003: b"long 1.5 1 2 3", 8004: b"nan nan 1 2",
        8005: b"far 3e38 3e38 3e38", 8006: b"far2 1e30 1e30 1e30", 8007: b" 1 2 3",
    }.items():  # fmt: skip
        rows[number] = row
    Path("g").write_bytes(b"\r\n".join(rows))
    assert len(check(Path("g")).faults) >= 6
    found = converted("g", "--invalid skip", "o.bin")
    for what in ("2 (separator in a word)", "1 (duplicate word)", "1 (empty word)",
                 "2 (wrong dimension)", "1 (invalid UTF-8 in a word)",
                 "1 (NaN or infinite number)", "2 (length not finite)"):  # fmt: skip
        assert f"rows skipped: {what}" in cli.err
    assert len(found) == 9000 - 10
    assert found["w8999"].tolist() == [8999.5, 0.25, np.float32(1e-3)]
    Path("g").write_text("2 2\n\xa0 nan 1\n")
    cli("convert g o.txt --invalid skip", code=1)
    assert "all rows are invalid" in cli.err and not Path("o.txt").exists()


def test_most_rows_have_the_dimension(converted):
    """Also where the first word, or half of them, has a space."""
    rows = ["new york .1 .2 .3", "the .4 .5 .6", "old york .2 .1 .3", "a .1 .1 .2"]
    for some in (rows, rows[:2], rows[1:]):
        Path("g").write_text("\n".join([*some, ""]))
        assert set(converted("g", "--invalid skip").words) == {"the", "a"} & {
            one.split()[0] for one in some
        }


# ---- changes ----


def test_the_mean_is_subtracted(healthy, converted):
    found, before = (
        converted(healthy, "--postprocess center", "o.safetensors"),
        Vectors.load(healthy),
    )
    assert list(found.words) == WORDS and found.counts.tolist() == before.counts.tolist()
    assert found.vectors.dtype == np.float32
    assert_allclose(found.vectors, before.vectors - before.vectors.mean(axis=0), atol=1e-5)


def test_reduction_preserves_distances(healthy, converted, cli):
    found = converted(healthy, "--reduce 3", "o.bin").vectors
    assert found.shape[1] == 3 and "3 dimensions retains 100.0% of the variance" in cli.err
    before = Vectors.load(healthy).vectors
    one, other = (np.linalg.norm(rows - rows[::-1], axis=1) for rows in (found, before))
    assert_allclose(one, other, rtol=1e-4)
    assert found.var(axis=0).tolist() == sorted(found.var(axis=0), reverse=True)
    assert converted(healthy, "--reduce 7", "o.bin").dim == 7


def test_compressed_input_and_standard_output(cli):
    Path("v.gz").write_bytes(gzip.compress(b"a 0.50 1e0 \r\nb 3 4 \r\n"))
    text = "2 2\na 0.5 1.0\nb 3.0 4.0\n"
    assert cli("convert v.gz -") == cli("convert - -", stdin=text) == text
