"""`score` and `predict-word`: log-probabilities of lines and tokens, words for a gap."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import link_all, run_all, write_corpus

from dcme_w2v.words.language_model import LanguageModel
from dcme_w2v.words.predictions import Predictor, score

MODELS = {
    "dcme": "--objective dcme --word-order --neighbor-classes 8",
    "nce": "--objective nce --word-order",
    "ns": "--objective ns",
}
FIXED = "--threads 1 --epochs 2 --sample 0 --window-mode fixed"


@pytest.fixture(scope="module", params=MODELS)
def made(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    write_corpus(path / "text.txt")
    train = f"train text.txt --dim 16 --output v.npy --output-tables model {FIXED}"
    run_all(path, f"{train} {MODELS[request.param]}")
    return path


@pytest.fixture
def folder(made, here):
    """Return a line of known words."""
    link_all(made, here)
    lines = Path("text.txt").read_text().splitlines()
    return next(line for line in lines if len(line.split()) > 4 and "rare" not in line)


def test_the_mean_equals_eval_likelihood(folder, cli):
    found = cli.rows("score model text.txt")
    total, count = np.nansum([float(row[0]) for row in found]), sum(int(row[1]) for row in found)
    wanted = cli.json("eval likelihood model text.txt")
    suffix = "_with_noise" if "log_probability_with_noise" in wanted else ""
    assert count == wanted["words"]
    assert total / count == pytest.approx(wanted["log_probability" + suffix], rel=1e-5)


def test_a_row_for_each_line_and_token(folder, cli):
    known = folder.split()[0]
    lines = [folder, "", known, f"neverseen {known} neverseen", "xyzzy"]
    Path("t").write_text("\n".join(lines) + "\n")
    rows = cli.rows("score model t")
    assert [row[2] for row in rows] == lines
    assert [int(row[1]) for row in rows] == [len(folder.split()), 0, 0, 0, 0]
    assert float(rows[0][0]) < 0 and all(np.isnan(float(row[0])) for row in rows[1:])
    tokens = cli("score model t --tokens").split("\n\n")
    assert [line.split("\t")[0] for line in tokens[0].splitlines()] == folder.split()
    records = [json.loads(line) for line in cli("score model t --json").splitlines()]
    assert records[3]["log_probabilities"] == [None, None, None]
    assert records[3]["log_probability"] is None
    assert sum(records[0]["log_probabilities"]) == pytest.approx(float(rows[0][0]), rel=1e-4)


def test_batches_and_standard_input_give_the_same_scores(folder, cli, monkeypatch):
    wanted = cli.rows("score model text.txt")
    monkeypatch.setattr("dcme_w2v.text.token_ids.BATCH_DOCUMENTS", 3)
    text = Path("text.txt").read_bytes()
    found = cli.rows("score model - --threads 2", stdin=text)
    assert [row[1:] for row in found] == [row[1:] for row in wanted]
    numbers = [[float(row[0]) for row in rows] for rows in (found, wanted)]
    np.testing.assert_allclose(*numbers, rtol=1e-4)


def test_the_distribution_of_a_gap_equals_the_score(folder):
    """Probabilities add up to 1, and a token's is what `score` says."""
    model, words = LanguageModel.load("model"), folder.split()
    Path("line").write_text(folder)
    (line,) = score(model, ["line"])
    predictor = Predictor(model, k=len(model.words))
    for place in (0, 2, len(words) - 1):
        (answer,) = predictor.gaps([[*words[:place], "_", *words[place + 1 :]]])
        shares = {one["word"]: one["probability"] for one in answer.record["predictions"]}
        assert sum(shares.values()) == pytest.approx(1)
        wanted = line.log_probabilities[place]
        assert np.log(shares[words[place]]) == pytest.approx(wanted, abs=1e-4)
        assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_wrong_use_is_one_line(folder, cli):
    Path("binary").write_bytes(b"a \0 b\n")
    Path("latin").write_bytes(b"caf\xe9 tea\n")
    for line, says in (
        ("score model", "no text"),
        ("score model none.txt", "none.txt"),
        ("score model binary", "NUL"),
        ("score model latin", "not UTF-8"),
        ("score - -", "standard input"),
        ("predict-word -", "standard input"),
        ("score latin text.txt", "latin"),
    ):
        assert says in cli.error(line)
    assert cli("score model latin --encoding-errors skip")
