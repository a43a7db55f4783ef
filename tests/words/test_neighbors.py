"""Nearest words, analogies and the odd word out, equal to gensim's; errors."""

import json

import numpy as np
import pytest
from helpers import as_gensim

from dcme_w2v import Vectors
from dcme_w2v.errors import UsageError

WORDS = [f"w{i}" for i in range(90)]


def make_vectors(seed=0, dim=12):
    random = np.random.default_rng(seed)
    lengths = random.uniform(0.2, 3, size=(len(WORDS), 1))
    return Vectors(WORDS, (random.normal(size=(len(WORDS), dim)) + 0.3) * lengths)


def same(ours, theirs):
    assert [word for word, _ in ours] == [word for word, _ in theirs]
    np.testing.assert_allclose([s for _, s in ours], [s for _, s in theirs], atol=1e-6)


@pytest.fixture
def keyed():
    return as_gensim(make_vectors())


@pytest.mark.parametrize(
    "query",
    [
        {"positive": "w3"},
        {"positive": ["w3"], "topn": 1},
        {"positive": ["w3", "w5"], "topn": 1000},
        {"positive": ["w1", "w2"], "negative": ["w0"]},
        {"positive": ["w4", "w8"], "negative": ["w4"]},
        {"negative": ["w7"], "topn": 5},
        {"positive": [np.linspace(-1, 1, 12)]},
        {"positive": [np.eye(12)[3], "w3"], "negative": [np.eye(12)[5]]},
    ],
)
def test_most_similar_equals_gensim(keyed, query):
    same(make_vectors().most_similar(**query), keyed.most_similar(**query))


@pytest.mark.parametrize("limit", [1, 20, 1000])
def test_restrict_searches_the_first_rows_only(keyed, limit):
    vectors = make_vectors()
    for most in (limit, None):  # a limit is of one search
        ours = vectors.most_similar("w3", topn=5, limit=most)
        same(ours, keyed.most_similar("w3", topn=5, restrict_vocab=most))


def test_only_given_words_are_searched():
    vectors = make_vectors()
    every = vectors.most_similar(["w3", "w5"], "w7", topn=90)
    some = ["w80", "w3", "w2", "w41", "w2"]
    for among in (some, iter(some), {*some}):
        same(
            vectors.most_similar(["w3", "w5"], "w7", among=among),
            [one for one in every if one.word in some],
        )
    assert len(vectors.most_similar("w3", topn=1, among=some)) == 1
    assert vectors.most_similar("w3", among="w3") == vectors.most_similar("w3", among=[]) == []
    found = list(vectors.most_similar_batch(["w3", "w2"], among=some))
    same(found[1], vectors.most_similar("w2", among=some))
    assert len(found[1]) == 3
    with pytest.raises(KeyError, match="'nobody'"):
        vectors.most_similar("w3", among=["w2", "nobody"])
    with pytest.raises(UsageError, match="limit=5 is not supported with among"):
        vectors.most_similar("w3", limit=5, among=some)


def test_similarity_and_the_odd_word_out_equal_gensim(keyed):
    vectors = make_vectors()
    assert vectors.similarity("w1", "w2") == pytest.approx(keyed.similarity("w1", "w2"), abs=1e-6)
    assert vectors.similarity("w1", vectors["w1"] * 7) == pytest.approx(1, abs=1e-6)
    for start in range(20):
        words = WORDS[start::20]
        assert vectors.doesnt_match(words) == keyed.doesnt_match(words)


def test_zero_vectors_have_no_similarity():
    vectors = Vectors("abc", [[1, 0], [0, 0], [2, 1]])
    assert vectors.similarity("a", "b") == 0
    assert [near.word for near in vectors.most_similar("a")] == ["c", "b"]
    assert [near.similarity for near in vectors.most_similar("b")] == [0, 0]


def test_invalid_queries():
    vectors = make_vectors()
    for call, error, message in (
        (lambda: vectors.most_similar("nowhere"), KeyError, "'nowhere' is not among the 90 words"),
        (lambda: vectors.most_similar(["w1", "w2"], ["nowhere"]), KeyError, "'nowhere'"),
        (lambda: vectors.doesnt_match(["w1", "nowhere"]), KeyError, "'nowhere'"),
        (lambda: vectors.most_similar([], None), UsageError, "the query is empty"),
        (lambda: vectors.most_similar([np.ones(3)]), UsageError,
         r"shape \(3,\), but must have the shape \(12,\)"),
        (lambda: vectors.doesnt_match([]), UsageError, "list of words"),
    ):  # fmt: skip
        with pytest.raises(error, match=message):
            call()


@pytest.mark.parametrize("query, found", [
    ("King", "king"), ("BOTH", "BOTH"), ("'+King -Queen'", "+king -queen"), ("ÉTÉ", "été"),
    ("-x", "-x"),
])  # fmt: skip
def test_words_are_looked_up_in_lower_case(cli, query, found):
    words = ["king", "queen", "BOTH", "both", "été", "-x"]
    Vectors(words, np.random.default_rng(1).normal(size=(6, 4))).save("v.safetensors")
    words = "--among", "Queen both", "--", query.strip("'")
    record = json.loads(cli("neighbors v.safetensors --ignore-case --json", *words))
    (near,) = record["neighbors"].items()
    assert near[0] == found and {one["word"] for one in near[1]} <= {"queen", "both"}
    assert query in ("BOTH", "-x") or cli.error("neighbors v.safetensors --", query.strip("'"))
