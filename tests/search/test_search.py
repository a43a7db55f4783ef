"""`Search`: scores against the formulas, ties, hostile texts, files; near-duplicates."""

import math
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from helpers import edit

import dcme_w2v as dw
from dcme_w2v.errors import FormatError
from dcme_w2v.formats.artifact import read_artifact
from dcme_w2v.search.index import best_rows

TEXTS = [
    "green tea with milk", "a fast red car", "coffee and milk, milk", "", "the tea the tea",
    "A fast, red car?", "x" * 100_000, "milk tea for a red car",
]  # fmt: skip


def grams(word):
    word = f"<{word}>"
    return [word[i : i + n] for n in (3, 4, 5) for i in range(len(word) - n + 1)]


def bm25(documents, terms, k1, b, idf):
    lengths = [len(one) for one in documents]
    mean = np.mean(lengths)
    scores = []
    for own, length in zip(documents, lengths, strict=True):
        counts = Counter(own)
        norm = k1 * (1 - b + b * length / mean)
        parts = [idf(t) * counts[t] * (k1 + 1) / (counts[t] + norm) for t in terms if t in counts]
        scores.append(sum(parts) / sum(map(idf, terms)) / (k1 + 1))
    return np.array(scores)


@pytest.mark.parametrize("k1, b", [(1.2, 0.6), (0.5, 0.0), (2.0, 1.0)])
def test_scores_are_bm25_of_words_and_of_their_ngrams(k1, b):
    texts = [text for text in TEXTS if len(text) < 100]
    words = [text.lower().translate(dict.fromkeys(map(ord, ",?"))).split() for text in texts]
    query = ["milk", "tea", "unknown"]

    def idf(frequency):
        return math.log(1 + (len(texts) - frequency + 0.5) / (frequency + 0.5))

    vocabulary = {word for own in words for word in own}
    with_word = {word: sum(word in own for own in words) for word in {*vocabulary, *query}}

    def gram_idf(gram):  # words with the n-gram are taken to be independent
        having = [with_word[word] for word in vocabulary if gram in grams(word)]
        missing = math.prod(1 - one / len(texts) for one in having)
        return idf(len(texts) * (1 - missing))

    by_words = bm25(words, query, k1, b, lambda word: idf(with_word[word]))
    split = [[gram for word in own for gram in grams(word)] for own in words]
    asked = sorted({gram for word in query for gram in grams(word)})
    by_grams = bm25(split, asked, k1, b, gram_idf)
    for weight, wanted in ((0.0, by_words), (0.7, by_words + 0.7 * by_grams)):
        found = dw.Search(k1=k1, b=b, characters=weight).fit(texts)
        (hits,) = found.search([" ".join(query)], k=99)
        expected = np.where(by_words > 0, wanted, 0)
        assert {hit.row for hit in hits} == set(np.flatnonzero(expected).tolist())
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True)
        np.testing.assert_allclose(scores, [expected[hit.row] for hit in hits], rtol=1e-5)


def test_other_forms_and_misspellings_find_documents():
    found = dw.Search().fit(TEXTS)
    for query, row in (("cars", 1), ("cofee", 2), ("milks", 2), ("GREENER", 0)):
        assert found.search([query])[0][0].row == row, query
    assert found.search(["cars"]) != dw.Search(characters=0).fit(TEXTS).search(["cars"]) == [[]]


def test_equal_documents_are_in_order_of_rows():
    found = dw.Search().fit(["b a"] * 50 + ["a b c"] * 3000)
    for k in (1, 49, 60, 1000, 1500, 9999):
        rows = [hit.row for hit in found.search(["a"], k)[0]]
        assert rows == list(range(min(k, 3050)))
    scores = np.array([0.0, 2, 1, 2, 1, 1, 0])
    for k, wanted in ((1, [1]), (2, [1, 3]), (3, [1, 3, 2]), (9, [1, 3, 2, 4, 5])):
        assert best_rows(scores, k).tolist() == wanted


@pytest.mark.parametrize("query", ["", " ", "?!", "zzzz", "\ud800", None, []])
def test_queries_without_a_known_word_have_no_answer(query):
    assert dw.Search().fit(TEXTS).search([query, "milk"])[0] == []


@pytest.mark.parametrize("texts", [[], [""], ["?"], [None], ["one"], ["one"] * 3])
def test_few_documents(texts):
    found = dw.Search().fit(iter(texts))
    wanted = list(range(len(texts))) if "one" in texts else []
    assert [hit.row for hit in found.search(["one", "two"])[0]] == wanted
    assert [pair[:2] for pair in found.duplicates()] == [(0, 1), (0, 2), (1, 2)][
        : len(wanted) ** 2 // 3
    ]
    found.save("index")
    assert dw.load("index").search(["one"]) == found.search(["one"])


def test_tokens_are_not_split_again():
    found = dw.Search(tokenize={"keep_case": True}).fit([["is"], "new York", "New"])
    assert [hit.row for hit in found.search(["York"])[0]] == [1]
    assert [hit.row for hit in found.search([["New"]])[0]] == [2]


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda s: s.search(["a"]), "call fit first"),
        (lambda s: s.fit(["a"], names=["x", "y"]), "there are 2 names for 1 documents"),
        (lambda s: dw.Search(b=2), "b=2.0 must be at most 1"),
        (lambda s: dw.Search(k1=-1), "k1=-1.0 must be at least 0"),
    ],
)
def test_wrong_arguments_are_told(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call(dw.Search())


def test_a_saved_index_gives_equal_answers():
    vectors = dw.Vectors(["milk", "tea", "car"], [[1, 0], [1, 1], [0, 1]], counts=[4, 4, 3])
    queries = ["milk tea", "cars", "A car?", "unknown"]
    for given in (
        {},
        {"vectors": vectors, "vector_weight": 2.0},
        {"tokenize": {"keep_case": True}},
    ):
        found = dw.Search(k1=1.5, **given).fit(TEXTS, names=map(str, range(8)))
        found.save("index")
        loaded = dw.load("index")
        assert loaded.search(queries) == found.search(queries)
        assert loaded.duplicates() == found.duplicates()
        assert (loaded.name(3), loaded.beginning(0)) == ("3", TEXTS[0])
        assert repr(loaded) == repr(found) and "documents=8, words=" in repr(found)
        assert len(loaded.beginning(6)) == 200
    assert dw.info("index")["documents"] == 8


def test_cosines_of_sentence_vectors_are_added():
    words, random = ["milk", "tea", "oolong", "car"], np.random.default_rng(1)
    vectors = dw.Vectors(words, random.normal(size=(4, 3)), counts=[5, 4, 3, 2])
    texts = ["tea milk", "tea oolong tea", "car tea", "tea"]
    rows = dw.SentenceEncoder(vectors).fit_transform([*texts, "tea"])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = np.maximum(rows[:-1] @ rows[-1], 0)
    assert sum(cosines > 0) > 0 and len(set(cosines)) > 2
    (plain,) = dw.Search().fit(texts).search(["tea"])
    (found,) = dw.Search(vectors=vectors, vector_weight=3).fit(texts).search(["tea"])
    scores = dict(plain)
    assert [hit.row for hit in found] != [hit.row for hit in plain]
    for row, score in found:
        assert score == pytest.approx(scores[row] + 3 * cosines[row], abs=1e-5)


@pytest.mark.parametrize(
    "name, change",
    [
        ("count_columns", lambda array: array[:-1]),
        ("gram_columns", lambda array: array - (1 << 20)),
        ("names_offsets", lambda array: array[:-1]),
        ("names_offsets names_text", lambda array: array[:-1]),  # a name less than documents
        ("beginnings_offsets", lambda array: array[[0, *range(len(array) - 2, 0, -1), -1]]),
    ],
)
def test_a_damaged_index_is_refused(name, change):
    dw.Search().fit(TEXTS, names=map(str, range(8))).save("index")
    arrays = read_artifact("index")[1]
    edit("index", {one: change(arrays[one]) for one in name.split()})
    with pytest.raises(FormatError, match="index: "):
        dw.load("index")


def edited(text, random):
    words = text.split()
    for place in random.choice(len(words), size=3, replace=False):
        words[place] = words[place][::-1]
    return " ".join(words)


def test_edits_are_duplicates_and_strangers_are_not():
    random = np.random.default_rng(1)
    words = ["".join(random.choice(list("abcdefghij"), 6)) for _ in range(400)]
    texts = [" ".join(random.choice(words, 30)) for _ in range(300)]
    copies = [edited(text, random) for text in texts[:20]]
    found = dw.Search().fit([*texts, *copies]).duplicates()
    assert [pair[:2] for pair in found] == [(i, 300 + i) for i in range(20)]
    assert all(0.55 <= pair.similarity < 1 for pair in found)
    assert dw.Search().fit([*texts, *copies]).duplicates(1) == []
    (same,) = dw.Search().fit([texts[0], texts[0].upper(), "other words"]).duplicates(1)
    assert same == (0, 1, 1.0)


def test_words_similar_to_an_unknown_one_weigh_their_idf_times_the_cosine():
    index = dw.Search().fit(["reading books", "reader", "a car", "reading cars"])._index
    query = index.query(["readings"])
    names = [index.words[one] for one in query.alike.tolist()]
    assert names == ["reading", "reader"]
    for name, weight in zip(names, query.alike_weights, strict=True):
        own, other = set(grams(name)), set(grams("readings"))
        cosine = len(own & other) / math.sqrt(len(own) * len(other))
        assert weight == pytest.approx(cosine * index.idf[index.words.find(name)])


def test_a_short_text_in_a_longer_one_is_compared():
    words = [f"word{letter}" for letter in "abcdefghijklm"]
    texts = [" ".join(words), " ".join(words[:3]), " ".join(words[3:])]
    found = dw.Search().fit(texts).duplicates(threshold=0.05)
    assert [(one[0], one[1]) for one in found] == [(0, 1), (0, 2)]


def test_check_reads_an_index(cli):
    dw.Search().fit(["green tea", "red bus"]).save("index")
    assert cli("check index") == "index: model: search\nOK\n"
    content = bytearray(Path("index").read_bytes())
    Path("index").write_bytes(content[:-5])
    assert "unreadable: 1" in cli("check index", code=1)
