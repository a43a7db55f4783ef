"""Shards of a corpus, trained in rounds and mixed in this process."""

from pathlib import Path

import numpy as np
import pytest
from helpers import options_of
from texts import corpus

from dcme_w2v.cluster import mixing
from dcme_w2v.cluster import words as cluster
from dcme_w2v.cluster.shards import count, cut
from dcme_w2v.cluster.words import Plan
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text import encode
from dcme_w2v.training.executor import Serial
from dcme_w2v.training.progress import Quiet


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


@pytest.mark.parametrize("gradient", ["word2vec", "exact"])
def test_the_rows_of_a_context_step_together(gradient):
    """Four mixed shards move a context vector about as far as four shards one after the other."""
    options = options_of({}, model="cbow", objective="ns", gradient=gradient, sample=0, lr=0.01)
    plan, counts, curvature = Plan(options, 4, options.epochs), np.array([40, 400, 4000]), 2.0
    size = cluster.context_size(options)
    rate = options.input_rate * cluster.rate_at(options, 0.5 / plan.rounds)
    step = rate * cluster.SLOPE * (1 + options.negative) * curvature  # of each row of a context
    left = (1 - step / (size if gradient == "exact" else 1)) ** (size * counts / 4)[:, None]
    start, learned = np.ones((3, 1), dtype=np.float32), [left.astype(np.float32)] * 4
    _, steps = plan.steps(0, counts, plan.totals(counts))["input"]
    direction = mixing.Directions(np.array([curvature]), np.eye(1))
    mixed = mixing.curvature(3, slice(0, 3), start, learned, steps, direction)
    np.testing.assert_allclose(mixed, left**4, atol=0.05)


class ThreeWorkers(Serial):
    """Runs tasks in this process as for three workers; `fetched` has what the program received."""

    workers = 3

    def __init__(self):
        super().__init__(Quiet(), None)
        self.fetched = []

    def result(self, future):
        self.fetched.append(super().result(future))
        return self.fetched[-1]


@pytest.mark.parametrize("given", [None, Vocabulary.from_counts({"w3": 9, "never": 4})])
@pytest.mark.parametrize("limits", [{"min_count": 1}, {"min_count": 4}, {"max_vocab": 50}])
def test_shards_are_counted_as_one_text(here, limits, given):
    """Many words have the same count; the program receives only figures and words that it keeps."""
    numbers = (np.random.default_rng(3).zipf(1.3, 30_000) % 5_000).tolist()
    words = [b"w%d" % n if n % 50 else b"w\xff%d" % (n // 7) for n in numbers]
    Path("c.txt").write_bytes(b"\n".join(b" ".join(words[i : i + 9]) for i in range(0, 30_000, 9)))
    options, executor = VocabularyOptions(**limits, encoding_errors="replace"), ThreeWorkers()
    whole = encode.count(["c.txt"], options)
    found, _ = count(executor, cut(["c.txt"], 4, options), options, given)
    for name in ("tokens", "types", "replaced", "skipped", "files", "truncated", "undercount"):
        assert getattr(found, name) == getattr(whole, name), name
    kept = given.pruned(options) if given else whole.vocabulary
    assert found.vocabulary.equals(kept)
    assert found.vocabulary.counts.tolist() == kept.counts.tolist()
    assert given or found.out_of_vocabulary == whole.out_of_vocabulary
    (received,) = [one for one in executor.fetched if not isinstance(one, dict)]
    assert received is found.vocabulary
