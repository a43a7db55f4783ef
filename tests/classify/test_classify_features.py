"""Text as sparse vectors."""

import pickle
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from dcme_w2v._core.codec import weight_counts
from dcme_w2v.classify.constants import LEAD
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.model import Classifier
from dcme_w2v.classify.options import FeatureOptions
from dcme_w2v.errors import CorpusError
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.text.tokenizer import Tokenizer

TEXTS = [b"b a a", b"", b"a c, C", "é b b".encode()]
FORMS = "NFC", "NFD"


def fitted(**options):
    features = TextFeatures(FeatureOptions(**{"weighting": "count", "norm": "none", **options}))
    return features, features.fit_transform(TEXTS).matrix().toarray()


@pytest.mark.parametrize("is_log", [False, True])
@pytest.mark.parametrize("blocks", [None, [0, 0, 1, 1, 0]])
def test_counts_are_weighted_as_by_numpy(is_log, blocks):
    """Counts of hash values can be negative."""
    counts = np.array([1, -3, 70, 2, -80, 5, 1], np.float32)
    columns, starts = np.array([0, 1, 2, 3, 4, 3, 0], np.int32), np.array([0, 5, 5, 7])
    factors = np.linspace(0.5, 2, 5, dtype=np.float32)
    wanted = np.sign(counts) * (1 + np.log(np.abs(counts))) if is_log else counts
    wanted = wanted * factors[columns]
    flags = None if blocks is None else np.array(blocks, np.uint8)
    if flags is not None:
        row = np.repeat(np.arange(3), np.diff(starts))
        squares = np.zeros((3, 2))
        np.add.at(squares, (row, flags[columns]), wanted.astype(np.float64) ** 2)
        wanted = wanted / np.sqrt(squares[row, flags[columns]])
    weight_counts(counts, columns, starts, is_log, factors, flags)
    assert counts == pytest.approx(wanted, rel=1e-6)


def test_features_are_word_counts_by_descending_frequency():
    features, rows = fitted()
    assert [features.name(i) for i in range(features.columns)] == ["b", "a", "c", "é"]
    assert rows.tolist() == [[1, 2, 0, 0], [0, 0, 0, 0], [0, 1, 2, 0], [2, 0, 0, 1]]


@pytest.mark.parametrize("text, words", [
    ("中文テストです。Abc_1, 한국어 É", ["中", "文", "テストです", "abc", "1", "한국어", "é"]),
    ("हिन्दी में क्षत्रिय", ["हिन्दी", "में", "क्षत्रिय"]),
    ("ภาษาไทยที่ดี", ["ภาษาไทยที่ดี"]),
    ("שָׁלוֹם, עֲלֵיכֶם", ["שָׁלוֹם", "עֲלֵיכֶם"]),
    ("İzmir'den", ["i̇zmir", "den"]),
    ("fu\u0308r Cafe\u0301s", ["f\u00fcr", "caf\u00e9s"]),
    ("مي\u200cمي بت", ["مي\u200cمي", "بت"]),
    ("x² 3,5 Straße", ["x²", "3", "5", "straße"]),
])  # fmt: skip
def test_tokens_are_those_of_word_vectors(text, words):
    assert Tokenizer(TokenizerOptions("words")).tokens(text) == words
    for form in ("NFC", "NFD"):
        features = TextFeatures(FeatureOptions())
        features.fit_transform([unicodedata.normalize(form, text).encode()])
        found = [features.name(i) for i in range(features.columns)]
        assert found == [unicodedata.normalize("NFC", word) for word in words]


def test_ngrams_of_characters_are_of_one_normal_form():
    features = TextFeatures(FeatureOptions(subwords="1-4"))
    rows = features.fit_transform([unicodedata.normalize(f, "Für é").encode() for f in FORMS])
    assert np.array_equal(*rows.matrix().toarray())


@pytest.mark.parametrize("given, words", [("", 1), ("--tokens spaces", 0)])
def test_a_model_keeps_its_words(cli, given, words):
    Path("d.tsv").write_text("a\tX.y x\nb\tX.y z\n" * 20)
    cli(f"classify train d.tsv --output m --threads 1 --ngrams 1 --subwords none {given}")
    text = Classifier.load("m").text
    assert text.transform([b"Z"]).nnz == words


def test_ngrams_of_the_first_words():
    features, rows = fitted(lead=2, lead_ngrams=2)
    names = [features.name(i) for i in range(features.columns)]
    assert [name for name in names if " " in name] == ["b a", "a c", "é b"]
    assert rows.sum() == fitted(lead=2)[1].sum() + 3
    assert np.array_equal(features.transform(TEXTS).matrix().toarray(), rows)
    assert np.array_equal(fitted(lead=2, lead_ngrams=2, ngrams=2)[1], fitted(lead=2, ngrams=2)[1])


@pytest.mark.parametrize("given, classes, lead, ngrams, features", [
    ({}, 10**6, LEAD, 2, 40_000),
    ({"lead": 3}, 10**6, 3, 2, 40_000),
    ({"lead": 0}, 20, 0, 1, 200_000),
    ({"lead": 0}, 1000, 0, 1, 67_108),
    ({"lead": 0}, 5000, 0, 1, 40_000),
    ({"lead_ngrams": 1}, 10**6, LEAD, 1, 40_000),
    ({"weighting": "count"}, 10**6, 0, 1, 40_000),
    ({"by": "token"}, 20, 0, 1, 300_000),
    ({"features": 7}, 20, LEAD, 2, 7),
])  # fmt: skip
def test_the_default_numbers_of_first_words_and_of_features(given, classes, lead, ngrams, features):
    """Few classes keep more words."""
    found = FeatureOptions(**given).with_lead()
    assert (found.lead, found.lead_ngrams) == (lead, ngrams)
    assert found.features_of(classes) == features


def test_weighting_and_length():
    _, rows = fitted(weighting="log")
    assert rows[0, 1] == pytest.approx(1 + np.log(2))
    features, weighted = fitted(weighting="tfidf")
    # "a" is in two of four texts
    assert weighted[0, 1] == pytest.approx((1 + np.log(2)) * (np.log(4 / 2) + 1))
    assert np.array_equal(features.transform(TEXTS).matrix().toarray(), weighted)
    lengths = np.linalg.norm(fitted(norm="l2")[1], axis=1)
    assert lengths == pytest.approx([1, 0, 1, 1])


@pytest.mark.parametrize("options", [
    {}, {"subwords": "1-4"}, {"features": 30, "max_df": 0.35, "ngrams": 2}, {"hashing": 256},
    {"hashing": 1 << 25},
])  # fmt: skip
def test_a_text_of_weight_w_is_w_texts(options):
    """Bit by bit, whatever the unit of the weights; without weights, features differ."""
    random = np.random.default_rng(0)
    weights = random.integers(1, 8, 300)
    words = [[f"w{i}" for i in random.zipf(1.5, 8) % 60] + ["heavy"] * int(n > 5) for n in weights]
    texts = [" ".join(own).encode() for own in words]
    copies = [text for text, weight in zip(texts, weights, strict=True) for _ in range(weight - 1)]
    weights = np.append(weights, [1, 1])
    texts += [b"w61 w62", b"w62 w61"]

    def transformed(*given):
        found = TextFeatures(FeatureOptions(**options).with_lead())
        rows = found.fit_transform(*given).matrix().toarray()[:302]
        return [found.name(i) for i in range(found.columns)], found.idf.tolist(), rows.tolist()

    wanted = transformed(texts + copies)
    for factor in (1, 1000, 1 / 3, 0.1, 1e-12):
        assert transformed(texts, None, (factor * weights).tolist()) == wanted
    assert transformed(texts, None, 7.5 * np.ones(302)) == transformed(texts) != wanted


def test_hashing_keeps_the_inner_products_on_average():
    features, rows = fitted(hashing=4096)
    assert rows.shape == (4, 4096)
    _, plain = fitted()
    assert np.array_equal(rows @ rows.T, plain @ plain.T)  # no collisions among four words
    signs = features.transform([b"%d" % i for i in range(400)]).matrix().sum(axis=1)
    assert abs((signs > 0).mean() - 0.5) < 0.1
    assert np.array_equal(features.transform(TEXTS).matrix().toarray(), rows)


def test_words_in_too_few_or_too_many_documents_are_dropped():
    documents = [b"the cat sat", b"the dog sat", b"the bird", b"the the fish sat"]
    options = FeatureOptions(min_df=2, max_df=0.8)
    features = TextFeatures(options)
    rows = features.fit_transform(documents)
    assert list(features.names) == ["sat"] and rows.shape == (4, 1)
    assert features.transform([b"the cat"]).nnz == 0
    with pytest.raises(
        CorpusError, match="no word occurs in at least 5 and at most 4 documents; lower min_df"
    ):
        TextFeatures(FeatureOptions(min_df=5)).fit_transform(documents)


def test_rare_words_are_features_where_classes_are_few(cli):
    lines = (f"{i % 2}\tw{2 * i} w{2 * i + 1}\n" for i in range(10_800))
    Path("docs.tsv").write_text("".join(lines))
    line = "classify train docs.tsv --loss softmax --lr 1 --epochs 1 --subwords none --output m"
    for more, count in (("--features 30000", 30_000), ("", 32_400)):
        cli(f"{line} {more}")
        assert Classifier.load("m").text.columns == count


MANY = [
    b"", b"  ", b"tea", b"tea tea", b"Tea,\nwith milk\tand tea", "Zitrone\u00a0Öl öl tea".encode(),
    b"a b c d e f g h a b c d", b" ".join(b"w%d" % (i % 50) for i in range(300)),
    b"unknown words only here", b"\x0btea\x0cwith\rmilk",
]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [{}, {"lead": 3}, {"ngrams": 3}, {"lead": 4, "lead_ngrams": 3}, {"lead": 2, "lead_ngrams": 1},
     {"tokens": "spaces", "ngrams": 2}, {"subwords": "2-3", "lead": 5, "lead_ngrams": 2}],
)  # fmt: skip
def test_rows_of_new_texts_equal_counts_of_their_ngrams(options):
    """`transform` counts in C what `_grams` says in Python."""
    features = TextFeatures(FeatureOptions(weighting="count", norm="none", **options))
    features.fit_transform(MANY[:-2])
    column = {bytes(features.names.raw(i)): i for i in range(features.columns)}
    found = pickle.loads(pickle.dumps(features)).transform(MANY).matrix()
    assert found.has_sorted_indices and found.dtype == np.float32
    for text, row in zip(MANY, found.toarray(), strict=True):
        grams = features._grams(text)
        if "subwords" in options:
            for word in features._spelled(text).decode().split():
                parts = (f"<{word}>"[i : i + n] for n in (2, 3) for i in range(len(word) + 3 - n))
                grams += [f" {part}".encode() for part in parts]
        wanted = Counter(column[gram] for gram in grams if gram in column)
        assert {i: row[i] for i in np.flatnonzero(row)} == wanted
