"""Shards of a corpus, trained in rounds and mixed in this process."""

import numpy as np
import pytest
from helpers import options_of
from texts import corpus

from dcme_w2v.cluster import words as cluster
from dcme_w2v.cluster.words import Plan
from dcme_w2v.text.cache import LAST
from dcme_w2v.words.trainer import Trainer


def notes_of(plan):
    """Train all shards in all rounds from the same tables; return their notes."""
    ids, counts = corpus()
    tables = [cluster.initial_rows(t, slice(0, len(counts)), plan.options) for t in TABLES]
    return [
        plan.learn(k, number, cluster.part_of(ids, k, plan.shards), counts, tables)[1]
        for number in range(plan.rounds)
        for k in range(plan.shards)
    ]


TABLES = ("input", "output")


@pytest.mark.parametrize("epochs, rounds", [(2, 2), (2, 6), (4, 2), (3, 1)])
def test_every_token_is_processed_once_per_epoch(epochs, rounds):
    notes = notes_of(Plan(options_of({}, epochs=epochs), 3, rounds))
    kinds = ("trained", "subsampled", "without_context")
    assert sum(note[kind] for note in notes for kind in kinds) == epochs * len(corpus()[0])


@pytest.mark.parametrize("parts", [1, 2, 7, 500])
def test_parts_consist_of_whole_sentences(parts):
    ids, _ = corpus()
    found = [cluster.part_of(ids, part, parts) for part in range(parts)]
    np.testing.assert_array_equal(np.concatenate(found), ids)
    assert all(part[-1] & LAST for part in found if len(part))
    if parts == 7:
        assert max(map(len, found)) < len(ids) / 7 + 601  # the longest sentence


def test_shards_and_rounds_have_different_random_numbers():
    ids, counts = corpus()
    plan = Plan(options_of({}, epochs=3, sample=1e-3), 2, 3)
    start = [cluster.initial_rows(t, slice(0, len(counts)), plan.options) for t in TABLES]
    subsampled = {
        plan.learn(shard, number, ids, counts, start)[1]["subsampled"]
        for shard in range(2)
        for number in range(3)
    }
    assert len(subsampled) == 6
    assert cluster.seed_of(7, 0) == 7
    assert len({cluster.seed_of(seed, k) for seed in range(20) for k in range(20)}) == 400


def test_subsampling_is_estimated():
    options = options_of({}, epochs=4, sample=3e-3)
    text = corpus(tokens=30_000)
    training, counts, plan = Trainer(*text, options), text[1], Plan(options, 1, 4)
    for epoch in range(4):
        last = training.epoch(epoch)
    kept = plan.totals(counts).kept
    assert kept * 4 == pytest.approx(last.trained + last.without_context, rel=0.02)
    steps, _ = plan.steps(0, counts, plan.totals(counts))["input"]
    assert steps.sum() == pytest.approx(kept)
