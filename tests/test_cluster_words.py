"""Shards of a corpus, trained in rounds and mixed in this process."""

import pytest
from helpers import options_of
from texts import corpus

from dcme_w2v.cluster import words as cluster
from dcme_w2v.cluster.words import Plan


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
