"""Models of fastText: n-grams, vectors of out-of-vocabulary words, corrupt files."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from fasttext_models import WORDS, buckets_of, mean_of, write_model
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from dcme_w2v import Vectors
from dcme_w2v._core.text import ngrams_of
from dcme_w2v.errors import DcmeWarning, FormatError
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.options import PAPER, ScdvOptions

NEW = "theological"
NAIVE = [1890, 2692, 3190, 3201, 546, 4404, 2043, 1687, 1832, 3007, 331, 1570, 3548, 3654]


@pytest.fixture
def path():
    return Path("model.bin")


def words_are(word, shortest, longest, buckets):
    words = Words.from_words([word, "x"])
    starts, numbers = ngrams_of(words.text, words.offsets, shortest, longest, buckets)
    return numbers[: starts[1]].tolist()


@given(st.text(min_size=1, max_size=12), st.integers(1, 4), st.integers(0, 3))
def test_ngrams_follow_the_definition(word, shortest, more):
    longest = shortest + more
    found = words_are(word, shortest, longest, 1009)
    assert found == buckets_of(word, shortest, longest, 1009)


def test_ngrams_have_the_numbers_of_fasttext():
    """Expected: fastText 0.9.3, get_subwords("naïve") with 5,000 buckets."""
    assert words_are("naïve", 3, 6, 5000) == NAIVE


def test_vectors_are_means_of_rows(path):
    input = write_model(path)
    vectors = Vectors.load(path)
    assert list(vectors.words) == WORDS and vectors.counts.tolist() == [100, 99, 98, 97, 96, 95]
    for word in [*WORDS, NEW, "語", "x" * 300]:
        assert word in vectors
        assert_allclose(vectors[word], mean_of(word, input), atol=1e-5)
    several = vectors[["the", NEW]]
    assert_array_equal(several, [vectors["the"], vectors[NEW]])
    assert "" not in vectors and "\ud800" not in vectors and vectors.get("") is None
    with pytest.raises(KeyError):
        vectors[""]


def test_words_without_ngrams_have_no_vector(path):
    write_model(path, shortest=5, longest=6)
    assert "zz" not in Vectors.load(path) and "zzz" in Vectors.load(path)
    write_model(path, shortest=0, longest=0, buckets=0)
    vectors = Vectors.load(path)
    assert vectors.subwords is None and NEW not in vectors and "the" in vectors


def test_labels_are_not_words(path):
    input = write_model(path, labels=2, buckets=50, longest=0, shortest=0, input=numbered(54))
    vectors = Vectors.load(path)
    assert list(vectors.words) == WORDS[:4] and vectors.subwords is None
    assert_array_equal(vectors.vectors, input[:4])


# Of both signs in each column: sums of rows are NaN.
INFINITE = np.resize(np.repeat(np.float32([np.inf, -np.inf]), 4), (56, 4))


def numbered(rows):
    return np.arange(rows * 4, dtype="<f4").reshape(rows, 4)


def test_bytes_that_are_not_utf8_are_escaped(path):
    input = write_model(path, words=[b"ok", b"\xff\xfebad"])
    with pytest.warns(DcmeWarning, match="1 words are not UTF-8"):
        vectors = Vectors.load(path)
    assert list(vectors.words) == ["ok", "\\xff\\xfebad"]
    assert vectors.vectors[1].tolist() != vectors.vectors[0].tolist() and len(input)


def test_commands_support_out_of_vocabulary_words(path, cli):
    write_model(path)
    rows = cli.rows(f"neighbors model.bin {NEW} -k 2")
    assert [row[0] for row in rows] == [NEW, NEW] and {row[1] for row in rows} < set(WORDS)
    Path("pairs").write_text(f"the\ttheory\t3\n{NEW}\tNAÏVE\t1\n{NEW}\ttheologist\t2\n")
    score = cli.json("eval similarity model.bin pairs")
    assert (score["covered"], score["by_ngrams"]) == (3, 2)
    assert "(3 of 3 pairs, 2 by n-grams)" in cli("eval similarity model.bin pairs")
    assert cli.json("info model.bin")["kind"] == "word vectors"
    cli("check model.bin")
    cli("convert model.bin v.txt")
    assert_array_equal(Vectors.load("v.txt").vectors, Vectors.load(path).vectors)


@pytest.mark.parametrize("features", ["scdv", "average"])
def test_out_of_vocabulary_words_of_documents_have_vectors(path, features):
    write_model(path)
    vectors = Vectors.load(path)
    texts = [b"the theory", f"{NEW} the".encode(), "naïve 日本 semitheory".encode()] * 3
    options = ScdvOptions(**PAPER, representation=features, clusters=2, iterations=3)
    model = fit_documents(texts, vectors, options, threads=1)
    row = list(model.words).index(NEW)
    own = vectors[NEW] / np.linalg.norm(vectors[NEW])
    assert_allclose(model.vectors[row], own, atol=1e-6)
    assert len(model.vectors) == len(model.words) == 6
    rows = next(iter(model.transform([NEW.encode()])))
    assert rows.nnz > 0


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"quantised": 1}, "quantized fastText model"),
        ({"pruned": 3}, "quantized fastText model"),
        ({"version": 13}, "has fastText format version 13"),
        ({"words": ["a", "a"]}, "duplicate word in entry 2"),
        ({"words": ["a", ""]}, "empty word in entry 2"),
        ({"words": ["a", "b c"]}, "separator in a word in entry 2"),
        ({"longest": 101}, "longest of 101"),
        ({"input": numbered(55)}, "55 rows"),
        ({"more": b"\0" * 4}, "4 extra bytes at the end"),
        ({"input": numbered(56) * np.float32("nan")}, "word 1 is NaN"),
        ({"input": INFINITE}, "word 1 is NaN"),
    ],
)
def test_invalid_files_are_rejected(path, cli, changes, message):
    write_model(path, **changes)
    with pytest.raises(FormatError, match=message):
        Vectors.load(path)
    cli("check model.bin", code=1)


def test_a_model_from_a_pipe_is_an_error(path):
    write_model(path)
    with pytest.raises(
        FormatError, match="is a fastText model, which can be read only from an uncompressed file"
    ):
        Vectors.load(path, format="binary")
    Path("m.gz").write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(FormatError, match="only from an uncompressed file"):
        Vectors.load("m.gz")
