"""The command vocab: stdout, stderr, the file and exit codes."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("here")


def test_counts_to_a_file(cli):
    Path("c").write_bytes(b"b a a\nc b a\n")
    assert cli("vocab c --output v --min-count 2") == ""
    assert Path("v").read_bytes() == b"a 3\nb 2\n"
    assert cli.err == "6 tokens, 3 types, 2 kept\n"


def test_stdin_to_stdout(cli):
    assert cli("vocab - --output - --min-count 1", stdin="x y\nx") == "x 2\ny 1\n"
    assert cli.err == "3 tokens, 2 types, 2 kept\n"


def test_merge(cli):
    Path("1").write_bytes(b"a 3\nb 2\n")
    Path("2").write_bytes(b"c 4\nb 2\nd 1\n")
    assert cli("vocab --merge 1 2 --output - --min-count 2") == "b 4\nc 4\na 3\n"
    assert cli.err == "12 tokens, 4 types, 3 kept\n"


def test_encoding_errors(cli):
    Path("latin1").write_bytes(b"caf\xe9 a")
    line = "vocab latin1 --output v --min-count 1"
    assert cli.error(line) == (
        "error: latin1: byte 3 (line 1) is not UTF-8; convert the file, or use "
        "--encoding-errors replace or skip\n"
    )
    assert not Path("v").exists()
    cli(f"{line} --encoding-errors skip")
    assert Path("v").read_bytes() == b"a 1\n"
    for encoding in ("utf-16-le", "utf-16-be"):
        Path("u16").write_text("\ufefftea", encoding=encoding)
        assert "is of UTF-16; convert the file" in cli.error("vocab u16 --output v")
    Path("array").write_text('[{"text": "tea"}]\n')
    for line in ("vocab array --output v", "classify train array --output m"):
        assert "array: is a JSON array; write one object a line" in cli.error(line)
