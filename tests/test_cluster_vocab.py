"""Words counted on a cluster: the file equals that of one machine."""

import gzip
import json

import pytest
from helpers import write_corpus

from dcme_w2v.cli.main import run


@pytest.fixture
def corpora(tmp_path):
    """Text with ties, a word missing in one part, and a compressed file."""
    write_corpus(tmp_path / "a.txt")
    (tmp_path / "b.txt").write_bytes("one two zwölf\ntie tie2 tie3\nlast".encode())
    (tmp_path / "c.gz").write_bytes(gzip.compress(b"tie3 tie4\nlast words\n" * 5))
    return [str(tmp_path / name) for name in ("a.txt", "b.txt", "c.gz")]


def vocab(corpora, output, *flags):
    assert run(["vocab", *corpora, "--output", str(output), *flags]) == 0
    return output.read_bytes()


@pytest.mark.parametrize("limits", [["--min-count", "1"], ["--min-count", "2", "--max-vocab", "9"]])
@pytest.mark.parametrize("shards", ["1", "2", "7"])
def test_the_file_equals_that_of_one_machine(limits, shards, corpora, tmp_path, capsys):
    one = vocab(corpora, tmp_path / "one", *limits, "--json")
    expected = json.loads(capsys.readouterr().out)
    flags = ["--cluster", "local:0", "--shards", shards, *limits, "--json"]
    assert vocab(corpora, tmp_path / "v", *flags) == one
    found = json.loads(capsys.readouterr().out)
    for name in ("tokens", "types", "kept", "out_of_vocabulary"):
        assert found[name] == expected[name]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("- --cluster local:0", "standard input"),
        ("--merge --cluster local:0", "--merge"),
        ("--shards 2", "--cluster"),
        ("--cluster local:0 --shards 100000", "fewer --shards"),
    ],
)
def test_unsupported_input_of_a_cluster(flags, message, corpora, tmp_path, capsys):
    assert run(["vocab", *corpora, "--output", str(tmp_path / "v"), *flags.split()]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "v").exists()
