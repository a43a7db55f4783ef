"""`dcme-w2v convert`: any format to any other, and invalid input."""

import gzip

import numpy as np
import pytest
from click.testing import CliRunner

from dcme_w2v.cli.main import program, run
from dcme_w2v.formats.vectors.vectors_io import save_vectors
from dcme_w2v.formats.word_list import Words
from dcme_w2v.words.check import check_vectors
from dcme_w2v.words.vectors import Vectors

NAMES = {"text": "v.txt", "binary": "v.bin", "npy": "v.npy"}


@pytest.fixture
def matrix():
    return np.random.default_rng(1).standard_normal((20, 3)).astype(np.float32)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_any_format_becomes_any_other(tmp_path, matrix, source, target, capsys):
    words = Words.from_words(f"wörd{i}" for i in range(20))
    start, end = tmp_path / NAMES[source], tmp_path / ("new-" + NAMES[target])
    save_vectors(start, words, matrix)
    assert run(["convert", str(start), str(end)]) == 0
    assert capsys.readouterr().out == ""
    report = check_vectors(end)
    assert (report.format, report.faults) == (target, [])
    loaded = Vectors.load(end)
    assert list(loaded.words) == list(words) and (loaded.vectors == matrix).all()


def test_compressed_input_and_standard_output(tmp_path):
    (tmp_path / "v.gz").write_bytes(gzip.compress(b"a 0.50 1e0 \r\nb 3 4 \r\n"))
    result = CliRunner().invoke(program, ["convert", str(tmp_path / "v.gz"), "-"])
    assert result.exit_code == 0
    assert result.stdout_bytes == b"2 2\na 0.5 1.0\nb 3.0 4.0\n"


def test_a_damaged_file_does_not_change_the_target(tmp_path, capsys):
    (tmp_path / "v").write_bytes(b"2 1\na 1\na 2\n")
    (tmp_path / "w").write_bytes(b"old")
    assert run(["convert", str(tmp_path / "v"), str(tmp_path / "w")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error: {tmp_path / 'v'}:3: duplicate word 'a'; run dcme-w2v check")
    assert error.count("\n") == 1
    assert (tmp_path / "w").read_bytes() == b"old"
