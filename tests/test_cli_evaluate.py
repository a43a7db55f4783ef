"""The evaluation commands: output, messages on stderr, exit codes."""

import json
import os
import subprocess
import sys

import pytest

from dcme_w2v.cli.main import run
from dcme_w2v.words import evaluate


@pytest.fixture
def vectors(tmp_path):
    """Words whose vectors make man : woman = king : queen and paris : france = rome : italy."""
    rows = {
        "king": [1, 1, 0, 0, 0],
        "queen": [1, 0, 1, 0, 0],
        "man": [0, 1, 0, 0.1, 0],
        "woman": [0, 0, 1, 0.1, 0],
        "paris": [0, 0, 0.1, 1, 0],
        "france": [0, 0, 0.1, 1, 1],
        "rome": [0.2, 0, 0, 1, 0],
        "italy": [0.2, 0, 0, 1, 1],
    }
    path = tmp_path / "vectors.txt"
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in rows.items()]
    path.write_text(f"{len(rows)} 5\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def questions(tmp_path):
    path = tmp_path / "questions.txt"
    path.write_text(
        ": family\nMan Woman King Queen\nMan Woman Boy Girl\nthree words only\n"
        ": gram-nothing\nParis France Rome Italy\nParis Rome France King\n",
        encoding="utf-8",
    )
    return str(path)


def test_analogies_as_json(vectors, questions, capsys):
    assert run(["eval", "analogies", vectors, questions, "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["accuracy"] == 2 / 3
    assert result["semantic_accuracy"] == 1
    assert result["syntactic_accuracy"] == 0.5
    assert result["coverage"] == 0.75
    assert [part["covered"] for part in result["sections"]] == [1, 2]
    assert "skipped 1 line" in err


def test_similarity(vectors, tmp_path, capsys):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("Paris\trome\t9\nking\tman\t6\nking\titaly\t1\nking\tx\t1\n", encoding="utf-8")
    assert run(["eval", "similarity", vectors, str(pairs), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    expected = evaluate.eval_similarity(vectors, pairs)
    assert (result["spearman"], result["pearson"]) == (1.0, expected.pearson)
    assert result["coverage"] == 0.75
    assert run(["eval", "similarity", vectors, str(pairs)]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "spearman 1.0000"


def test_a_closed_pipe_is_no_error(vectors):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "dcme_w2v", "neighbors", vectors, "king"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
