"""`dcme-w2v convert`: any format to any other, and invalid input."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from helpers import save

from dcme_w2v.words.check import check_vectors
from dcme_w2v.words.vectors import Vectors

pytestmark = pytest.mark.usefixtures("here")


NAMES = {"text": "v.txt", "binary": "v.bin", "npy": "v.npy"}


@pytest.mark.parametrize(
    "source, target",
    [("text", "binary"), ("binary", "npy"), ("npy", "text"), ("text", "text"), ("npy", "binary")],
)
def test_any_format_becomes_any_other(source, target, cli):
    words = [f"wörd{i}" for i in range(20)]
    matrix = np.random.default_rng(1).standard_normal((20, 3)).astype(np.float32)
    save(Path(NAMES[source]), words, matrix)
    end = f"new-{NAMES[target]}"
    assert cli(f"convert {NAMES[source]} {end}") == ""
    report, loaded = check_vectors(Path(end)), Vectors.load(end)
    assert (report.format, report.faults) == (target, [])
    assert list(loaded.words) == words and (loaded.vectors == matrix).all()


def test_compressed_input_and_standard_output(cli):
    Path("v.gz").write_bytes(gzip.compress(b"a 0.50 1e0 \r\nb 3 4 \r\n"))
    text = "2 2\na 0.5 1.0\nb 3.0 4.0\n"
    assert cli("convert v.gz -") == cli("convert - -", stdin=text) == text


def test_a_damaged_file_does_not_change_the_target(cli):
    Path("v").write_bytes(b"2 1\na 1\na 2\n")
    Path("w").write_bytes(b"old")
    error = cli.error("convert v w")
    assert error.startswith("error: v:3: duplicate word 'a'; run dcme-w2v check")
    assert Path("w").read_bytes() == b"old"
