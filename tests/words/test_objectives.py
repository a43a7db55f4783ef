"""Every objective, model, window and gradient of the C core against the reference in numpy.

Rows end within 1e-5 of the reference's, relative to the largest number in the table. The core's
numbers are single (6e-8), and so is each of the few hundred roundings that a row takes part in
(measured: 4e-6 at most); rates are such that a difference does not grow on the way, and yet rows
move by as much as they are long. Choosing a cluster is a step that rounding may turn around, so
only runs count in which no choice was that narrow.
"""

import numpy as np
import pytest
from data import corpus
from reference import LAST, Reference, initial_table
from reference_objectives import OBJECTIVES

from dcme_w2v._core.models import KERNELS
from dcme_w2v.words.options import TrainOptions, resolved
from dcme_w2v.words.trainer import Trainer

TOLERANCE = 1e-5
NARROW = 1e-5  # a choice that single precision may change
SMALL = {
    **{"dim": 20, "window": 3, "epochs": 2, "sample": 0.01, "lr": 0.1, "threads": 1},
    **{"clusters": 4, "beta": 0.5},
}
CONTEXTS = [
    ("cbow", "shrink", "exact"),
    ("cbow", "shrink", "word2vec"),
    ("cbow", "fixed", "exact"),
    ("cbow", "fixed", "word2vec"),
    ("skipgram", "shrink", "exact"),
    ("skipgram", "fixed", "exact"),
]
OBJECTIVE_OPTIONS = {
    "ns": {"objective": "ns"},
    "nce": {"objective": "nce"},
    "hs": {"objective": "hs"},
    "virtual": {"objective": "nce", "virtual_samples": 2.5},
    "dcme": {"objective": "dcme", "top_items": 3},
}


def random_rows(table, seed):
    """Rows long enough for scores to differ from 0 at the first step."""
    table[:] = np.random.default_rng(seed).normal(0, 0.5, table.shape).astype(np.float32)


def run_reference(text, options):
    """Train with the reference; the seed is the first in which no choice is too narrow."""
    for seed in range(1, 20):
        chosen = resolved(TrainOptions(**SMALL | options, seed=seed))
        kind = "block" if chosen.block > 1 else chosen.objective
        reference = Reference(*text, chosen, OBJECTIVES[kind])
        random_rows(reference.input, seed)
        random_rows(reference.output, seed + 1)
        start = reference.input.copy(), reference.output.copy()
        losses = [reference.epoch(number) for number in range(chosen.epochs)]
        if getattr(reference.objective, "margin", np.inf) > NARROW:
            break
    else:
        pytest.fail("no seed without a narrow choice")
    assert np.abs(reference.input - start[0]).max() > 0.25
    assert np.abs(reference.output - start[1]).max() > 0.25
    return reference, chosen, losses


def assert_same_rows(found, wanted):
    difference = np.abs(found - wanted).max() / np.abs(wanted).max()
    assert difference <= TOLERANCE


def compare(text, options):
    """Train with the reference and with all kernels; return the reference."""
    reference, options, losses = run_reference(text, options)
    for name in KERNELS:
        training = Trainer(*text, options, kernels=name)
        assert training.kernels == name
        random_rows(training.input, options.seed)
        random_rows(training.output, options.seed + 1)
        for number, loss in enumerate(losses):
            assert training.epoch(number).loss == pytest.approx(loss, rel=1e-5)
        assert_same_rows(training.input, reference.input)
        assert_same_rows(training.output, reference.output)
        own = reference.left, reference.right
        for found, wanted in zip(training.neighbors or (), own, strict=False):
            assert_same_rows(found, wanted)
        progress = training.progress()
        assert progress.trained == reference.trained
        assert progress.subsampled == reference.subsampled
        assert progress.without_context == reference.without_context
        assert progress.lr == pytest.approx(reference.rate)
    return reference


@pytest.mark.parametrize("objective", OBJECTIVE_OPTIONS)
@pytest.mark.parametrize("model, mode, gradient", CONTEXTS)
def test_every_combination_equals_the_reference(objective, model, mode, gradient):
    options = {"model": model, "window_mode": mode, "gradient": gradient, "epochs": 1}
    if model == "skipgram":
        options["window"] = 2
    reference = compare(corpus(tokens=900), options | OBJECTIVE_OPTIONS[objective])
    assert reference.seen > 700
    if objective == "dcme":
        assert reference.objective.moves > 10


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "ns", "negative": 1, "noise_power": 0.0, "window": 1, "dim": 16},
        {"objective": "nce", "negative": 16, "noise_power": 0.5, "sample": 0.0, "dim": 33},
        {"objective": "nce", "window": 40, "min_lr": 0.08},
        {"objective": "nce", "prior": 1.0},
        {"objective": "nce", "prior": 1.0, "virtual_samples": 0.5, "negative": 15, "lr": 0.4},
        {"objective": "dcme", "prior": 0.75},
        {"objective": "dcme", "top_items": 0, "clusters": 7, "beta": 0.05, "prior": 0.0},
        {"objective": "dcme", "top_items": 500, "clusters": 1},
    ],
)
def test_unusual_options_equal_the_reference(options):
    compare(corpus(), {"window_mode": "fixed", "gradient": "exact"} | options)


@pytest.mark.parametrize("objective", [one for one in OBJECTIVE_OPTIONS if one != "hs"])
@pytest.mark.parametrize("mode", ["shrink", "fixed"])
def test_word_order(objective, mode):
    """The neighbors' own rows have four times the rate, so the rate is lower here."""
    options = {"window_mode": mode, "gradient": "exact", "word_order": True}
    reference = compare(corpus(), options | OBJECTIVE_OPTIONS[objective])
    assert min(np.abs(table).max() for table in (reference.left, reference.right)) > 0.25
    assert np.abs(reference.left - reference.right).max() > 0.25


@pytest.mark.parametrize(
    "objective",
    [
        {"objective": "ns"},
        {"objective": "nce"},
        {"objective": "nce", "virtual_samples": 3.0, "prior": 1.0},
    ],
)
@pytest.mark.parametrize(
    "options",
    [
        {"block": 16},
        {"block": 2, "negative": 12, "noise_power": 1.0},  # many samples are targets
        {"block": 5, "window": 40, "dim": 33, "sample": 0.0},
        {"block": 7, "negative": 1},
        {"block": 16, "word_order": True},
        {"block": 3, "word_order": True, "gradient": "word2vec"},
    ],
)
def test_blocks_share_samples(objective, options):
    given = {"window_mode": "fixed", "gradient": "exact", "epochs": 1}
    compare(corpus(tokens=2500), given | objective | options)


@pytest.mark.parametrize(
    "dim, negative, block",
    [(1, 1, 16), (7, 2, 3), (8, 31, 16), (9, 33, 15), (15, 33, 13), (100, 31, 16), (104, 2, 9)],
)
def test_blocks_of_any_size(dim, negative, block):
    """Tiles of rows, contexts and vectors of numbers each have rests of any size here."""
    options = {
        "objective": "nce",
        "window_mode": "fixed",
        "epochs": 1,
        "virtual_samples": 0.5,
        "lr": 0.2,
    }
    sizes = {"dim": dim, "negative": negative, "block": block}
    compare(corpus(tokens=3000), options | sizes)


def test_several_sentence_batches_per_shard():
    """A shard is a 64th of the corpus, which is mostly lines of one word."""
    ids, _ = corpus(tokens=2200)
    alone = np.full(140_000, LAST, dtype=np.uint32)
    text = np.concatenate([ids, alone])
    counts = np.bincount(text & (LAST - 1)).astype(np.int64)
    options = {
        "objective": "ns",
        "sample": 0.0,
        "epochs": 1,
        "lr": 0.2,
        "min_lr": 0.0,
        "rates": "equal",
    }
    assert len(Reference(text, counts, resolved(TrainOptions()), OBJECTIVES["ns"]).shards[0]) > 100
    assert compare((text, counts), options).without_context > 140_000


@pytest.mark.parametrize("dim", [1, 7, 100])
def test_initial_rows(dim):
    ids, counts = corpus()
    options = resolved(TrainOptions(dim=dim, seed=2**62 + 3))
    training = Trainer(ids, counts, options)
    np.testing.assert_allclose(
        training.input, initial_table(len(counts), dim, options.seed), rtol=1e-7
    )
    assert not training.output.any()
