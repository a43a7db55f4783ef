"""Word order: the tables of neighbors in training, files, checkpoints and likelihoods."""

import json
import shutil

import numpy as np
import pytest
from helpers import manifest, options_of, refused, train, write_corpus
from texts import encoded

from dcme_w2v.cli.main import run
from dcme_w2v.words.likelihood import contexts, log_probabilities, summary
from dcme_w2v.words.tables import load_tables
from dcme_w2v.words.trainer import Trainer

ORDER = ("--word-order", "--objective", "nce", "--window-mode", "fixed", "--sample", "0")
FIXED = ("--threads", "1", "--epochs", "2", "--lr", "0.2")
CLASSES = ("--objective", "dcme", "--neighbor-classes", "8")


@pytest.fixture
def text(tmp_path):
    return write_corpus(tmp_path / "text.txt")


def likelihood_of(capsys, *arguments):
    capsys.readouterr()
    code = run(["eval", "likelihood", *map(str, arguments), "--json"])
    return json.loads(capsys.readouterr().out) if code == 0 else code


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


@pytest.mark.parametrize("kind", [(), CLASSES])
def test_the_folder_has_the_likelihood_of_training(tmp_path, text, capsys, kind):
    held = write_corpus(tmp_path / "held.txt", seed=3, lines=60)
    folder, output = tmp_path / "tables", tmp_path / "v.npy"
    flags = ("--output-tables", str(folder), "--output-context", str(tmp_path / "c.npy"))
    assert train(text, output, *ORDER, *FIXED, *kind, "--holdout", held, *flags) == 0
    found, reported = likelihood_of(capsys, folder, held), manifest(output)
    for name in ("log_probability", "log_mean_probability"):
        assert found[name] == pytest.approx(reported[f"heldout_{name}"], abs=1e-6)
    assert reported["options"]["word_order"] is True
    assert all(np.abs(table).max() > 0 for table in load_tables(folder).neighbors)
    assert run(["eval", "likelihood", str(output), held]) == 2
    assert "--output-tables" in refused(capsys, 2)


@pytest.mark.parametrize("kind", [(), CLASSES])
def test_a_resumed_run_keeps_the_tables_of_neighbours(tmp_path, text, kind):
    """A checkpoint after the first epoch has all tables: the second epoch is bit-identical."""
    kept, folders = tmp_path / "kept", [tmp_path / name for name in ("whole", "rest")]
    options = (*ORDER, *FIXED, *kind, "--checkpoint-every", "1")
    for flag, folder in zip(("--checkpoint", "--resume"), folders, strict=True):
        tables = ("--output-tables", str(folder), flag, str(kept))
        assert train(text, tmp_path / "v.npy", *options, *tables) == 0
        shutil.rmtree(max(kept.glob("[0-9]*")))
    whole, rest = (load_tables(folder) for folder in folders)
    np.testing.assert_array_equal(whole.input, rest.input)
    np.testing.assert_array_equal(whole.output, rest.output)
    for name in ("of", "odds", "own") if kind else ():
        one, other = (getattr(tables.classes, name) for tables in (whole, rest))
        np.testing.assert_array_equal(one, other)
    for one, other in zip(whole.neighbors, rest.neighbors, strict=True):
        np.testing.assert_array_equal(one, other)
