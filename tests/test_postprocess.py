"""Removing common components of word vectors: `convert --postprocess`."""

import numpy as np
import pytest

from dcme_w2v.cli.main import run
from dcme_w2v.errors import UsageError
from dcme_w2v.words.postprocess import postprocessed
from dcme_w2v.words.vectors import Vectors


@pytest.fixture
def matrix():
    random = np.random.default_rng(3)
    scales = np.array([9, 8, 7, 6, 5, 2, 1, 0.5])
    return (random.standard_normal((400, 8)) * scales + 4).astype(np.float32)


def test_centre_subtracts_the_mean(matrix):
    changed = postprocessed(matrix, "centre")
    assert changed.dtype == np.float32
    np.testing.assert_allclose(changed, matrix - matrix.mean(axis=0), atol=1e-5)


def test_damp_reduces_five_directions_to_the_variance_of_the_sixth(matrix):
    before = np.linalg.eigvalsh(np.cov(matrix.T))
    after = np.linalg.eigvalsh(np.cov(postprocessed(matrix, "damp").T))
    np.testing.assert_allclose(after[2:], before[2], rtol=1e-3)
    np.testing.assert_allclose(after[:2], before[:2], rtol=1e-3)


def test_vectors_in_a_subspace_stay_finite():
    flat = np.zeros((20, 8), dtype=np.float32)
    flat[:, :3] = np.random.default_rng(1).standard_normal((20, 3))
    assert np.isfinite(postprocessed(flat, "damp")).all()


@pytest.mark.parametrize("shape", [(400, 5), (6, 8)])
def test_too_few_directions_are_an_error(shape):
    with pytest.raises(UsageError, match=r"postprocess=damp: needs more than 5 dimensions and 6"):
        postprocessed(np.ones(shape, dtype=np.float32), "damp")


def test_convert_postprocesses_and_keeps_words_and_counts(tmp_path, matrix):
    words = [f"w{i}" for i in range(400)]
    source, target = tmp_path / "v.npy", tmp_path / "w.npy"
    Vectors(words, matrix, counts=np.arange(400, 0, -1)).save(source)
    assert run(["convert", str(source), str(target), "--postprocess", "centre"]) == 0
    found = Vectors.load(target)
    assert list(found.words) == words and found.counts[0] == 400
    np.testing.assert_array_equal(found.vectors, postprocessed(matrix, "centre"))
