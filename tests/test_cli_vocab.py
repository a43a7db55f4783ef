"""The command vocab: stdout, stderr, the file and exit codes."""

import pytest
from helpers import invoke

from dcme_w2v.cli.main import run


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"b a a\nc b a\n")
    return str(path)


def test_counts_to_a_file(tmp_path, corpus):
    result = invoke("vocab", corpus, "--output", tmp_path / "v", "--min-count", "2")
    assert (tmp_path / "v").read_bytes() == b"a 3\nb 2\n"
    assert result.stdout == ""
    assert result.stderr == "6 tokens, 3 types, 2 kept\n"


def test_stdin_to_stdout():
    result = invoke("vocab", "-", "--output", "-", "--min-count", "1", stdin="x y\nx")
    assert result.stdout == "x 2\ny 1\n"
    assert result.stderr == "3 tokens, 2 types, 2 kept\n"


def test_merge(tmp_path):
    parts = [tmp_path / "1", tmp_path / "2"]
    parts[0].write_bytes(b"a 3\nb 2\n")
    parts[1].write_bytes(b"c 4\nb 2\nd 1\n")
    result = invoke("vocab --merge", *parts, "--output", "-", "--min-count", "2")
    assert result.stdout == "b 4\nc 4\na 3\n"
    assert result.stderr == "12 tokens, 4 types, 3 kept\n"


def test_encoding_errors(tmp_path, capfd):
    path = tmp_path / "latin1"
    path.write_bytes(b"caf\xe9 a")
    output = tmp_path / "v"
    assert run(["vocab", str(path), "--output", str(output), "--min-count", "1"]) == 1
    assert capfd.readouterr().err == (
        f"error: {path}: byte 3 (line 1) is not UTF-8; convert the file, or use "
        "--encoding-errors replace or skip\n"
    )
    assert not output.exists()
    invoke(
        "vocab", str(path), "--output", str(output), "--min-count", "1", "--encoding-errors", "skip"
    )
    assert output.read_bytes() == b"a 1\n"
