"""Word order: the tables of neighbors in training, files, checkpoints and likelihoods."""

from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, options_of, write_corpus
from texts import encoded

from dcme_w2v.words.likelihood import contexts, log_probabilities, summary
from dcme_w2v.words.tables import load_tables
from dcme_w2v.words.trainer import Trainer

ORDER = (
    "train text.txt --dim 16 --quiet --word-order --objective nce --window-mode fixed --sample 0 "
    "--threads 1 --epochs 2 --lr 0.2"
)
CLASSES = "--objective dcme --neighbor-classes 8"


@pytest.fixture
def text(here):
    write_corpus(here / "text.txt")


def mean_log_probability(training, ids):
    h, targets = contexts(ids, training.input, training.options.window, training.neighbors)
    none = np.zeros(len(training.output), dtype=np.float32)
    return summary(log_probabilities(h, targets, training.output, [none])[0]).log_probability


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("mode", ["shrink", "fixed"])
def test_word_order_is_learned(threads, mode):
    """A cycle of words, cut anywhere: ordered neighbors determine the word, a bag does not."""
    random = np.random.default_rng(1)
    starts = random.integers(50, size=(600, 1))
    ids, counts = encoded(list((starts + np.arange(30)) % 50))
    found = {}
    for order in (False, True):
        options = options_of(
            {"objective": "nce", "window_mode": mode, "word_order": order},
            **{"window": 10, "epochs": 5, "sample": 0.0, "threads": threads, "lr": 0.1},
        )
        training = Trainer(ids, counts, options)
        for number in range(5):
            training.epoch(number)
        found[order] = mean_log_probability(training, ids)
    assert training.neighbors is not None
    assert found[True] > found[False] + 0.5


@pytest.mark.parametrize("kind", ["", CLASSES])
def test_the_folder_has_the_likelihood_of_training(text, cli, kind):
    write_corpus(Path("held"), seed=3, lines=60)
    files = "--output v.npy --output-tables tables --output-context c.npy"
    cli(f"{ORDER} {kind} --holdout held {files}")
    found, reported = cli.json("eval likelihood tables held"), manifest("v.npy")
    for name in ("log_probability", "log_mean_probability"):
        assert found[name] == pytest.approx(reported[f"heldout_{name}"], abs=1e-6)
    assert reported["options"]["word_order"] is True
    assert all(np.abs(table).max() > 0 for table in load_tables("tables").neighbors)
    assert "--output-tables" in cli.error("eval likelihood v.npy held")
