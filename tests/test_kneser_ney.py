"""The yardstick of scripts/bench_ngrams.py: probabilities add up to 1, and are those by hand."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from texts import encoded

SCRIPT = Path(__file__).parents[1] / "scripts" / "kneser_ney.py"
KneserNey = runpy.run_path(str(SCRIPT))["KneserNey"]


def sentence(*words):
    return np.array([*words[:-1], words[-1] | 1 << 31], dtype=np.uint32)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("before", [[], [0], [1, 2], [3, 0, 1, 2], [5, 5, 5, 5, 5]])
def test_probabilities_add_up_to_one(order, before):
    random = np.random.default_rng(1)
    ids, counts = encoded([random.zipf(1.6, random.integers(1, 9)) % 9 for _ in range(300)])
    model = KneserNey(ids, len(counts), order)
    last = [model.probabilities(sentence(*before, word))[-1] for word in range(len(counts))]
    assert sum(last) == pytest.approx(1)
    assert min(last) > 0


def test_a_bigram_by_hand():
    """Weights of words are the numbers of different words before them, or of sentence starts."""
    ids, counts = encoded([[0, 1], [0, 1], [0, 2], [1, 0], [0, 1, 2, 0]])
    model = KneserNey(ids, len(counts), 2)
    assert counts.tolist() == [6, 4, 2]
    # after 0: 1 three times, 2 once
    # before 0: a start, 1 and 2; before 1: a start and 0; before 2: 0 and 1
    unigram, bigram = model.levels
    assert sorted(unigram.weights[unigram.weights > 0].tolist()) == [2, 2, 3]
    taken = unigram.discounts[[3, 2, 2]]
    lower = (np.array([3, 2, 2]) - taken + taken.sum() / 3) / 7
    d = bigram.discounts
    wanted = [
        (d[3] + d[1]) * lower[0] / 4,
        (3 - d[3] + (d[3] + d[1]) * lower[1]) / 4,
        (1 - d[1] + (d[3] + d[1]) * lower[2]) / 4,
    ]
    found = [model.probabilities(sentence(0, word))[-1] for word in range(3)]
    np.testing.assert_allclose(found, wanted)
