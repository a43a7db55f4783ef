"""Nearest words equal gensim's most_similar."""

import numpy as np
import pytest
from helpers import analogy_vectors, as_gensim

from dcme_w2v.errors import DcmeError, UsageError
from dcme_w2v.text.words import Words
from dcme_w2v.words.neighbors import analogy, neighbors
from dcme_w2v.words.vectors import Vectors


@pytest.mark.parametrize("word", ["word3", "WORD5", "Word0"])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_neighbors_equal_gensim(word, k):
    vectors = analogy_vectors(spread=1.0)
    expected = as_gensim(vectors).most_similar(word, topn=k)
    got = neighbors(vectors, word, k)
    assert [near.word for near in got] == [near for near, _ in expected]
    np.testing.assert_allclose(
        [near.similarity for near in got], [s for _, s in expected], atol=1e-6
    )


@pytest.mark.parametrize("three", [("word0", "word1", "word2"), ("word4", "word4", "word8")])
def test_analogy_equals_gensim(three):
    vectors = analogy_vectors(spread=1.0)
    a, b, c = three
    expected = as_gensim(vectors).most_similar(positive=[b, c], negative=[a], topn=15)
    got = analogy(vectors, a, b, c, 15)
    assert [near.word for near in got] == [near for near, _ in expected]
    np.testing.assert_allclose(
        [near.similarity for near in got], [s for _, s in expected], atol=1e-6
    )


def test_equal_neighbors_come_in_order_of_frequency():
    vectors = Vectors(Words.from_words("abcdef"), np.ones((6, 3), dtype=np.float32))
    assert [near.word for near in neighbors(vectors, "c", 10)] == list("abdef")


def test_an_unknown_word_is_an_error():
    with pytest.raises(DcmeError, match="nowhere: not among the 110 words"):
        neighbors(analogy_vectors(), "nowhere")
    with pytest.raises(DcmeError, match="nowhere"):
        analogy(analogy_vectors(), "word1", "word2", "nowhere")
    with pytest.raises(UsageError, match="-k 0"):
        neighbors(analogy_vectors(), "word1", 0)
