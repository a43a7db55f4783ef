"""`predict-word`: words for a gap in a line."""

import json
from pathlib import Path

import numpy as np
import pytest
from data import run_all, write_corpus
from helpers import link_all

import dcme_w2v as dw
from dcme_w2v.words.language_model import LanguageModel

MODELS = {
    "dcme": "--objective dcme --word-order",
    "nce": "--objective nce --word-order",
    "ns": "--objective ns",
}
FIXED = "--threads 1 --epochs 2 --sample 0 --window-mode fixed"


@pytest.fixture(scope="module", params=MODELS)
def made(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    write_corpus(path / "text.txt")
    train = f"train text.txt --dim 16 --output v.safetensors --output-tables model {FIXED}"
    run_all(path, f"{train} {MODELS[request.param]}")
    return path


@pytest.fixture
def folder(made, here):
    """Return a line of known words."""
    link_all(made, here)
    lines = Path("text.txt").read_text().splitlines()
    return next(line for line in lines if len(line.split()) > 4 and "rare" not in line)


def test_the_probabilities_of_gaps_give_the_likelihood(folder):
    """Probabilities add up to 1, and the mean log of the words' own is the log-likelihood."""
    model, words = LanguageModel.load("model"), folder.split()
    logs = []
    for place, word in enumerate(words):
        line = [*words[:place], "_", *words[place + 1 :]]
        shares = dict(dw.predict_word(model, line, topn=len(model.words)))
        assert sum(shares.values()) == pytest.approx(1)
        assert list(shares.values()) == sorted(shares.values(), reverse=True)
        logs.append(np.log(shares[word]))
    found = model.text_likelihood([words])
    wanted = found.get("log_probability_with_noise", found["log_probability"])
    assert np.mean(logs) == pytest.approx(wanted, abs=1e-4)


def test_lines_of_standard_input_are_questions(folder, cli):
    first, *rest = folder.split()
    line = " ".join([first, "_", *rest])
    (expected,) = dw.predict_word("model", line, topn=1)
    lines = f"{line}\n\nno gap\n_ nobody\n{line} nobody"
    rows = cli.rows("predict-word model -k 1", stdin=lines)
    assert [row[0] for row in rows] == [line, f"{line} nobody"] and rows[0][1] == expected[0]
    assert float(rows[0][2]) == pytest.approx(expected[1], rel=1e-5)
    for message in (
        "no gap: the line must contain exactly one gap",
        "nobody; check spelling",
        "warning: no vector for nobody; skipped",
    ):
        assert message in cli.err
    found = [json.loads(one) for one in cli("predict-word model --json", stdin=lines).splitlines()]
    assert ["error" in one for one in found] == [False, True, True, False]
    assert "no vector for nobody" in cli.error("predict-word model _ nobody")
