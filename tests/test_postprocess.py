"""Removing common components of word vectors: `convert --postprocess`."""

import numpy as np
import pytest

from dcme_w2v.words.exports import centered
from dcme_w2v.words.vectors import Vectors


@pytest.fixture
def matrix():
    random = np.random.default_rng(3)
    scales = np.array([9, 8, 7, 6, 5, 2, 1, 0.5])
    return (random.standard_normal((400, 8)) * scales + 4).astype(np.float32)


def test_center_subtracts_the_mean(matrix):
    changed = centered(matrix)
    assert changed.dtype == np.float32
    np.testing.assert_allclose(changed, matrix - matrix.mean(axis=0), atol=1e-5)


@pytest.mark.parametrize("name", ["center", "centre"])
def test_convert_postprocesses_and_keeps_words_and_counts(name, here, matrix, cli):
    words = [f"w{i}" for i in range(400)]
    Vectors(words, matrix, counts=np.arange(400, 0, -1)).save("v.npy")
    line = "convert v.npy w.npy --postprocess"
    cli(f"{line} {name}")
    assert ("is now called --postprocess center" in cli.err) is (name == "centre")
    found = Vectors.load("w.npy")
    assert list(found.words) == words and found.counts[0] == 400
    np.testing.assert_array_equal(found.vectors, centered(matrix))
    assert "must be one of none, center" in cli.error(f"{line} damp")
