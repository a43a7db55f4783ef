"""The rules that mix the tables of several shards."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dcme_w2v.cluster import mixing
from dcme_w2v.cluster.distribute import Shard, _Work
from dcme_w2v.numeric.arrays import mean_by_counts

small = settings(max_examples=40)
SIZES = {"rows": st.integers(1, 150), "dim": st.integers(1, 9), "shards": st.integers(1, 5)}


def learned(rows, dim, shards, seed):
    """Return rows at the start, and the rows of each shard."""
    random = np.random.default_rng(seed)
    start = random.normal(size=(rows, dim)).astype(np.float32)
    return start, [
        start + random.normal(size=start.shape).astype(np.float32) for _ in range(shards)
    ]


def mixed_by_curvature(start, found, steps, count):
    """Mix a table in blocks, with directions of its own rows."""
    rows = len(start)
    cuts = mixing.blocks(rows, count)
    parts = [
        mixing.moments(rows, cut, [one[cut] for one in found], np.arange(1.0, rows + 1)[cut])
        for cut in cuts
    ]
    ways = mixing.directions(parts, 6.0)
    return np.concatenate(
        [
            mixing.curvature(rows, cut, start[cut], [one[cut] for one in found], steps[cut], ways)
            for cut in cuts
        ]
    )


@small
@given(**SIZES, seed=st.integers(0, 99))
def test_counts_weight_rows(rows, dim, shards, seed):
    start, found = learned(rows, dim, shards, seed)
    counts = np.random.default_rng(seed).integers(0, 4, size=(shards, rows))
    mixed = mean_by_counts(start, found, counts)
    for row in range(rows):
        if counts[:, row].sum():
            wanted = np.average([one[row] for one in found], axis=0, weights=counts[:, row])
            assert_allclose(mixed[row], wanted, rtol=1e-5, atol=1e-6)
        else:  # no shard has the word
            assert_array_equal(mixed[row], start[row])


def test_shards_in_turn_go_as_far_as_one_that_has_all_documents():
    goal, reach = np.float32(2.0), 0.1
    counts = np.array([[1, 3, 40, 2, 0], [5, 3, 7, 0, 0]])  # of a word in one shard, and in none
    start = np.zeros((5, 1), dtype=np.float32)
    found = [goal * -np.expm1(-reach * own[:, None]).astype(np.float32) for own in counts]
    mixed = mixing.in_turn(start, found, counts, reach)
    wanted = goal * -np.expm1(-reach * counts.sum(axis=0)[:, None])
    assert_allclose(mixed, wanted, rtol=1e-5)


@pytest.mark.bits
@small
@given(**SIZES, seed=st.integers(0, 99), scale=st.sampled_from([0.01, 1.0, 100.0]))
def test_any_number_of_blocks_gives_the_same_bits(rows, dim, shards, seed, scale):
    start, found = learned(rows, dim, shards, seed)
    steps = np.random.default_rng(seed).uniform(0, scale, rows)
    whole = mixed_by_curvature(start, found, steps, 1)
    assert len(mixing.blocks(rows, 2)) <= 2
    for count in (2, 3, 7, 32):
        assert_array_equal(mixed_by_curvature(start, found, steps, count), whole)


def test_curvature_takes_the_mean_in_the_direction_that_all_rows_share_and_sums_elsewhere():
    start, found = learned(400, 3, 5, 3)
    found = [one * [0.01, 0.01, 0.01] + [20, 0, 0] for one in (start, start, start)]
    found = [np.asarray(one, dtype=np.float32) for one in found]
    changes = np.sum([one - start for one in found], axis=0)
    mixed = mixed_by_curvature(start, found, np.full(400, 0.05), 1)  # 0.05 * 400 and 0.05 * 2e-5
    assert_allclose(mixed[:, 0], start[:, 0] + changes[:, 0] / 3, atol=0.05)
    assert_allclose(mixed[:, 1:], (start + changes)[:, 1:], atol=0.05)


@pytest.mark.parametrize("context", [1.0, 6.0])
def test_directions_are_those_of_the_second_moment_of_a_context(context):
    random = np.random.default_rng(2)
    rows = random.normal([3, 0, 0, 0], 1, size=(300, 4)).astype(np.float32)
    weights = random.uniform(0, 2, 300)
    found = mixing.directions(
        [mixing.moments(300, cut, [rows[cut]], weights[cut]) for cut in mixing.blocks(300, 5)],
        context,
    )
    mu = np.average(rows.astype(float), axis=0, weights=weights)
    spread = np.cov(rows.T.astype(float), aweights=weights, bias=True)
    rebuilt = found.vectors * found.values @ found.vectors.T
    assert_allclose(rebuilt, np.outer(mu, mu) + spread / context, atol=1e-6)


def test_mixing_ranges_from_the_sum_to_the_mean():
    for shards in (8, 100):
        between = sum(np.exp(-0.1 * k) for k in range(shards)) / shards
        found = mixing.share(np.array([1e-15, 0.1, 1e6]), shards)
        assert_allclose(found, [1, between, 1 / shards], rtol=1e-6)


def test_a_shard_counts_by_its_documents():
    shards = [Shard(None, None, np.array([9.0, documents]), 1.0) for documents in (1, 3)]
    work = _Work(None, SimpleNamespace(options=None), shards)
    assert_array_equal(work._mean([np.array([4.0, 0.0]), np.array([8.0, 1.0])]), [7, 0.75])
