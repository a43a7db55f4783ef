"""The evaluation commands: output, messages on stderr, exit codes."""

from pathlib import Path

import pytest

from dcme_w2v.words import evaluate


@pytest.fixture(autouse=True)
def vectors(here):
    """Words whose vectors make man : woman = king : queen and paris : france = rome : italy."""
    Path("v").write_text(
        "8 5\nking 1 1 0 0 0\nqueen 1 0 1 0 0\nman 0 1 0 .1 0\nwoman 0 0 1 .1 0\n"
        "paris 0 0 .1 1 0\nfrance 0 0 .1 1 1\nrome .2 0 0 1 0\nitaly .2 0 0 1 1\n"
    )
    Path("questions").write_text(
        ": family\nMan Woman King Queen\nMan Woman Boy Girl\nthree words only\n"
        ": gram-nothing\nParis France Rome Italy\nParis Rome France King\n",
    )


def test_analogies_as_json(cli):
    result = cli.json("eval analogies v questions")
    assert result["accuracy"] == 2 / 3 and result["coverage"] == 0.75
    assert (result["semantic_accuracy"], result["syntactic_accuracy"]) == (1, 0.5)
    assert [part["covered"] for part in result["sections"]] == [1, 2]
    assert "skipped 1 line" in cli.err


def test_similarity(cli):
    Path("pairs").write_text("Paris\trome\t9\nking\tman\t6\nking\titaly\t1\nking\tx\t1\n")
    result = cli.json("eval similarity v pairs")
    expected = evaluate.eval_similarity("v", "pairs")
    assert (result["spearman"], result["pearson"]) == (1.0, expected.pearson)
    assert result["coverage"] == 0.75
    assert cli("eval similarity v pairs").splitlines()[0] == "spearman 1.0000"
