"""The command vocab: stdout, stderr, the file and exit codes."""

import json

import pytest
from click.testing import CliRunner

from dcme_w2v.cli.main import program, run


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_bytes(b"b a a\nc b a\n")
    return str(path)


def invoke(*arguments, stdin=None):
    result = CliRunner().invoke(program, ["vocab", *arguments], input=stdin)
    assert result.exit_code == 0, result.output
    return result


def test_counts_to_a_file(tmp_path, corpus):
    result = invoke(corpus, "--output", str(tmp_path / "v"), "--min-count", "2")
    assert (tmp_path / "v").read_bytes() == b"a 3\nb 2\n"
    assert result.stdout == ""
    assert result.stderr == "6 tokens, 3 types, 2 kept\n"


def test_stdin_to_stdout():
    result = invoke("-", "--output", "-", "--min-count", "1", stdin="x y\nx")
    assert result.stdout == "x 2\ny 1\n"
    assert result.stderr == "3 tokens, 2 types, 2 kept\n"


def test_json_summary(tmp_path, corpus):
    options = ["--max-vocab", "1", "--min-count", "1", "--threads", "2", "--json"]
    summary = json.loads(invoke(corpus, "--output", str(tmp_path / "v"), *options).stdout)
    assert summary["kept"] == 1
    assert (summary["tokens"], summary["types"], summary["out_of_vocabulary"]) == (6, 3, 3)
    assert summary["files"] == [{"path": corpus, "size": 12}]


def test_merge(tmp_path):
    parts = [tmp_path / "1", tmp_path / "2"]
    parts[0].write_bytes(b"a 3\nb 2\n")
    parts[1].write_bytes(b"c 4\nb 2\nd 1\n")
    result = invoke("--merge", *map(str, parts), "--output", "-", "--min-count", "2")
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
    invoke(str(path), "--output", str(output), "--min-count", "1", "--encoding-errors", "skip")
    assert output.read_bytes() == b"a 1\n"


@pytest.mark.parametrize(
    "arguments, code",
    [
        ("missing --output v", 1),
        ("corpus.txt --output v --min-count 0", 2),
        ("corpus.txt --output - --json", 2),
        ("corpus.txt --output nofolder/v", 2),
        ("corpus.txt", 2),
        ("--output v", 2),
        ("--merge corpus.txt --output v", 1),
    ],
)
def test_failure_is_one_line_and_leaves_no_file(
    tmp_path, corpus, monkeypatch, capfd, arguments, code
):
    monkeypatch.chdir(tmp_path)
    assert run(["vocab", *arguments.split()]) == code
    streams = capfd.readouterr()
    assert streams.out == ""
    assert streams.err.startswith("error: ")
    assert streams.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.txt"]
