"""`predict-word`: words for a gap in a line."""

from pathlib import Path

import numpy as np
import pytest
from data import run_all, write_corpus
from helpers import link_all

from dcme_w2v.words.language_model import LanguageModel
from dcme_w2v.words.predictions import gaps_of

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
        (answer,) = gaps_of(model, [[*words[:place], "_", *words[place + 1 :]]], len(model.words))
        shares = {one["word"]: one["probability"] for one in answer.record["predictions"]}
        assert sum(shares.values()) == pytest.approx(1)
        assert list(shares.values()) == sorted(shares.values(), reverse=True)
        logs.append(np.log(shares[word]))
    found = model.text_likelihood([words])
    wanted = found.get("log_probability_with_noise", found["log_probability"])
    assert np.mean(logs) == pytest.approx(wanted, abs=1e-4)
