"""Held-out text: how lines are chosen, that they are not trained on, and their likelihood."""

import dataclasses
import os
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from data import corpus, write_corpus
from helpers import manifest, options_of, records, split, train
from scipy.special import logsumexp

from dcme_w2v import Vectors
from dcme_w2v.errors import CorpusError
from dcme_w2v.text.cache import HeldOutLines
from dcme_w2v.words.heldout import HeldOut, dual_bounds
from dcme_w2v.words.language_model import biases_of
from dcme_w2v.words.likelihood import contexts
from dcme_w2v.words.trainer import Trainer

SCORES = ("heldout_log_probability", "heldout_log_mean_probability")
OF_CLUSTERS = ("heldout_surrogate", "heldout_gap")
DCME = {"objective": "dcme"}


@pytest.fixture
def text(here):
    return write_corpus("text.txt")


@pytest.mark.parametrize("objective", ["ns", "nce", "dcme"])
def test_each_epoch_and_the_manifest_report(text, objective):
    rate = 0.1 if objective == "dcme" else 0.2
    flags = f"--objective {objective} --epochs 3 --threads 1 --holdout 0.2"
    assert train(text, "v.txt", flags, f"--log-json log --lr {rate} --sample 0") == 0
    epochs = [one for one in records("log") if one["event"] == "epoch"]
    written = manifest("v.txt")
    names = {name for name in epochs[0] if name.startswith("heldout")}
    assert set(SCORES) <= names
    assert (objective == "ns") == (f"{SCORES[0]}_with_noise" in names)
    assert (objective == "dcme") == names.issuperset(OF_CLUSTERS)
    assert epochs[-1].items() & written.items() >= {(name, written[name]) for name in names}
    assert epochs[-1][SCORES[0]] > epochs[0][SCORES[0]] + 0.01
    tokens = written["tokens"]
    assert tokens["held_out"] > 0
    assert 3 * tokens["corpus"] == sum(n for part, n in tokens.items() if part != "corpus")
    assert written["options"]["holdout"] == "0.2"
    assert 0 < epochs[0]["heldout_standard_error"] < 0.2
    assert epochs[0]["heldout_seconds"] <= epochs[-1]["heldout_seconds"] < written["total_seconds"]
    if objective == "dcme":
        assert all(epoch["heldout_gap"] >= 0 for epoch in epochs)


def test_a_held_out_file_is_not_trained_on(text):
    held = Path(write_corpus(Path("held.txt"), seed=9, lines=50))
    held.write_text(held.read_text() + "\n" + "onlyhere " * 50)
    vectors = []
    for flags in ("--holdout held.txt", ""):
        assert train(text, "v.safetensors", "--threads 1", flags) == 0
        vectors.append(Vectors.load("v.safetensors").vectors)
        assert (SCORES[0] in manifest("v.safetensors")) == bool(flags)
        assert manifest("v.safetensors")["tokens"]["held_out"] == 0
    assert "onlyhere" not in Vectors.load("v.safetensors").words
    assert (vectors[0] == vectors[1]).all()


@pytest.mark.parametrize("name", ["text.txt", "./text.txt", "link.txt", "folder"])
def test_a_file_is_not_held_out_and_trained_on(text, cli, name):
    Path("folder").mkdir()
    for link in (Path("link.txt"), Path("folder", "link.txt")):
        os.link("text.txt", link)
    found = cli.error(f"train text.txt --output v.txt --holdout {name}")
    said = "--holdout text.txt is also part of the corpus; remove this file from the corpus"
    assert found == f"error: {said}\n"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_surrogate_is_an_upper_bound(seed):
    ids, counts = corpus()
    options = options_of(DCME, epochs=3, window=3, seed=seed)
    training = Trainer(ids, counts, options)
    held = HeldOut(ids, SimpleNamespace(counts=counts), training)
    for number in range(options.epochs):
        training.epoch(number)
        h, _ = contexts(ids, training.input, 3)
        centers = np.stack([training.center(k) for k in range(training.clusters)])
        assert centers.sum(axis=1) == pytest.approx(1, abs=1e-5)
        assert (centers >= 0).all()
        bias = biases_of(counts, dataclasses.asdict(options))[0]
        bounds, chosen = dual_bounds(h, training.output, centers, bias)
        truth = logsumexp((h @ training.output.T + bias).astype(float), axis=1)
        assert (bounds <= truth + 1e-5).all()
        found = held.score()
        assert found["heldout_gap"] == pytest.approx((truth - bounds).mean(), abs=1e-4)
        assert found["heldout_largest_cluster"] == np.bincount(chosen).max() / len(chosen)
    with pytest.raises(IndexError):
        training.center(training.clusters)


def test_the_bound_is_tight_at_the_softmax():
    random = np.random.default_rng(0)
    output = random.normal(size=(50, 8)).astype(np.float32)
    h = random.normal(size=(3, 8)).astype(np.float32)
    bias = random.normal(size=50).astype(np.float32)
    scores = (h @ output.T + bias).astype(float)
    softmax = np.exp(scores - logsumexp(scores, axis=1)[:, None]).astype(np.float32)
    bounds, chosen = dual_bounds(h, output, softmax, bias)
    assert bounds == pytest.approx(logsumexp(scores, axis=1), abs=1e-5)
    assert chosen.tolist() == [0, 1, 2]


def test_training_ignores_held_out_lines(text):
    """A run with held-out lines equals a run on a corpus without these lines."""
    _, trained, _ = split(text, 0.2)
    Path("rest").write_text("\n".join(" ".join(line) for line in trained))
    flags = "--threads 1 --min-count 1"
    assert train(text, "a.txt", "--holdout 0.2", flags) == train("rest", "b.txt", flags) == 0
    assert Path("a.txt").read_bytes() == Path("b.txt").read_bytes()


# ---- which lines are held out ----


@pytest.mark.parametrize("block, threads", [(1, 1), (7, 3), (64, 1), (1 << 20, 3)])
def test_every_line_is_trained_on_or_held_out(block, threads):
    # each word is on one line only, so that the halves are distinct
    lines = [[f"w{n}x{i}" for i in range(n % 9)] for n in range(200)]
    path = Path("text.txt")
    path.write_text("\n".join(" ".join(line) for line in lines))
    _, whole, _ = split(path)
    found, trained, held = split(path, threads=threads, _block_bytes=block)
    counted = Counter(word for line in trained for word in line)
    assert dict(zip(found.vocabulary, found.vocabulary.counts.tolist(), strict=True)) == counted
    assert trained == whole
    # a word that is only in held-out text is in no vocabulary
    assert held == []
    kept = [line for line in lines if line and line[0] in counted]
    assert trained == kept
    assert 0.55 < found.lines / sum(map(bool, lines)) < 0.85
    tokens = sum(map(len, lines))
    assert found.tokens == tokens == sum(map(len, trained)) + found.held_out_tokens


def test_the_seed_determines_the_held_out_lines(text):
    found = {seed: split(text, seed=seed)[1:] for seed in (1, 2)}
    assert found[1] != found[2]
    assert split(text, seed=1, threads=3, _block_bytes=100)[1:] == found[1]


def test_no_line_held_out_is_an_error():
    path = Path("text.txt")
    path.write_text("a b c a b c\n")
    held = [HeldOutLines(0.5, seed).chosen(0, 1)[0] for seed in range(20)]
    assert any(held)
    assert not all(held)
    with pytest.raises(CorpusError, match="larger fraction"):
        split(path, 0.5, held.index(False))
    with pytest.raises(CorpusError, match="all 6 tokens are held out"):
        split(path, 0.5, held.index(True))
