"""Vectors of the two neighbors of a target: the folder of their tables, and its likelihood."""

from pathlib import Path

import numpy as np
import pytest
from data import write_corpus
from helpers import manifest

from dcme_w2v import Vectors

ORDER = (
    "train text.txt --dim 16 --quiet --word-order --objective nce --window-mode fixed --sample 0 "
    "--threads 1 --epochs 2 --lr 0.2"
)


@pytest.fixture
def text(here):
    write_corpus(here / "text.txt")


def test_the_folder_has_the_likelihood_of_training(text, cli):
    write_corpus(Path("held"), seed=3, lines=60)
    files = "--output v.bin --output-tables tables"
    cli(f"{ORDER} --holdout held {files}")
    found, reported = cli.json("eval likelihood tables held"), manifest("v.bin")
    for name in ("log_probability", "log_mean_probability"):
        assert found[name] == pytest.approx(reported[f"heldout_{name}"], abs=1e-6)
    assert reported["options"]["word_order"] is True
    assert all(np.abs(table).max() > 0 for table in Vectors.load("tables").neighbors)
    assert "--output-tables" in cli.error("eval likelihood v.bin held")
