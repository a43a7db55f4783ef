"""Word order and classes of neighbors: from counts to scores, files and likelihoods."""

from pathlib import Path

import numpy as np
import pytest
from helpers import manifest, options_of, write_corpus
from numpy.testing import assert_allclose, assert_array_equal
from reference_classes import ReferenceClasses, pairs_of
from texts import encoded

from dcme_w2v.words.heldout import HeldOut
from dcme_w2v.words.likelihood import contexts, log_probabilities
from dcme_w2v.words.neighbor_classes import neighbor_classes
from dcme_w2v.words.tables import load_tables
from dcme_w2v.words.trainer import Trainer


def chains(words=60, kinds=6, sentences=3000, seed=3):
    """Sentences in which the kind of a word (its number modulo `kinds`) determines the next one."""
    random = np.random.default_rng(seed)
    found = []
    for _ in range(sentences):
        first, length = random.integers(kinds), random.integers(2, 12)
        kind = (first + np.arange(length)) % kinds
        found.append(kind + kinds * random.integers(words // kinds, size=length))
    return encoded(found)


def test_classes_and_odds_follow_the_definition():
    ids, counts = chains()
    found = neighbor_classes(ids, len(counts), 10)
    wanted = ReferenceClasses(ids, len(counts), 10)
    assert_array_equal(found.of, wanted.of)
    for table, less in ((found.odds, 0), (found.own, 1)):
        expected = [
            [wanted.odds(side, j, z, less) for side in (0, 1) for z in range(11)]
            for j in range(len(counts))
        ]
        assert_array_equal(table, expected)


@pytest.mark.parametrize("chunk", [1, 2, 7, 100])
def test_chunks_and_threads_do_not_change_the_result(monkeypatch, chunk):
    ids, counts = chains(sentences=60)
    whole = neighbor_classes(ids, len(counts), 5)
    monkeypatch.setattr("dcme_w2v.words.neighbor_classes.CHUNK", chunk)
    parts = neighbor_classes(ids, len(counts), 5, threads=2)
    for name in ("of", "odds", "own"):
        assert_array_equal(getattr(parts, name), getattr(whole, name))


def test_scores_are_added_to_every_word():
    """Blocks of the softmax against all scores at once."""
    ids, counts = chains(sentences=80)
    random = np.random.default_rng(1)
    input, output = random.normal(0, 0.5, (2, len(counts), 5)).astype(np.float32)
    classes = neighbor_classes(ids, len(counts), 4)
    h, targets = contexts(ids, input, 3)
    bias = np.log(counts).astype(np.float32)
    found = log_probabilities(h, targets, output, [bias], near=classes.scores(ids))[0]
    reference = ReferenceClasses(ids, len(counts), 4)
    near = zip(pairs_of(ids, 0), pairs_of(ids, 1), strict=True)
    own = np.array([reference.scores(None, left, right) for (left, _), (right, _) in near])
    scores = own + h @ output.T + bias
    wanted = scores[np.arange(len(ids)), targets] - np.logaddexp.reduce(scores, axis=1)
    assert_allclose(found, wanted, rtol=1e-5)


def test_the_dual_bound_has_the_classes():
    """It is at most the log partition function: the surrogate is at least the log-likelihood."""
    ids, counts = chains(sentences=400)
    options = options_of(
        {"objective": "dcme", "window_mode": "fixed", "word_order": True},
        **{"sample": 0.0, "threads": 1, "neighbor_classes": 6, "epochs": 2, "clusters": 3},
    )
    training = Trainer(ids, counts, options)
    training.epoch(0)
    found = HeldOut(ids, counts, training).score()
    assert found["heldout_surrogate"] >= found["heldout_log_probability"]
    near, center = training.classes.scores(ids), training.center(0)
    means = near.means(center[None])[:, 0]
    assert_allclose(means, near.block(slice(None), slice(None)) @ center, rtol=1e-5)


@pytest.mark.parametrize(
    "name, array",
    [
        ("classes", np.full((2, 3), 8, dtype=np.uint8)),
        ("odds", np.zeros((3, 4), dtype=np.int8)),
        ("odds_of_target", np.zeros((3, 4), dtype=np.float32)),
    ],
)
def test_a_damaged_folder_is_one_line(here, cli, name, array):
    write_corpus(here / "c")
    flags = "--word-order --window-mode fixed --neighbor-classes 8 --objective dcme --epochs 2"
    cli(f"train c --dim 16 --quiet --output v.npy --output-tables t --threads 1 {flags}")
    np.save(f"t/{name}.npy", array)
    assert name in cli.error("eval likelihood t c")


# ---- word order ----


ORDER = (
    "train text.txt --dim 16 --quiet --word-order --objective nce --window-mode fixed --sample 0 "
    "--threads 1 --epochs 2 --lr 0.2"
)
CLASSES = "--objective dcme --neighbor-classes 8"


@pytest.fixture
def text(here):
    write_corpus(here / "text.txt")


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
