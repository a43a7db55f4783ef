"""Sentence vectors: pooling by its definition, the estimator, the command and its files."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import load_npz

import dcme_w2v as dw
from dcme_w2v.errors import DcmeWarning
from dcme_w2v.formats.vectors.subwords import Subwords
from dcme_w2v.sentences.pooling import Components, Pooling

WORDS = ["the", "king", "queen", "tea", "café", "car"]
COUNTS = np.array([50, 20, 10, 8, 5, 2])


@pytest.fixture
def vectors():
    rows = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
    return dw.Vectors(WORDS, rows, counts=COUNTS)


@pytest.mark.parametrize("kind", ["static", "usif"])
def test_whitening_makes_the_weighted_covariance_the_identity(vectors, kind):
    """Yokoi et al. 2024, where a word counts by the square root of its share of the tokens."""
    pooling = Pooling.of(kind, vectors.vectors, vectors.counts)
    rows = (vectors.vectors - pooling.mean) @ pooling.axes
    weights = np.sqrt(COUNTS)
    assert_allclose(np.average(rows, axis=0, weights=weights), 0, atol=1e-6)
    assert_allclose(np.cov(rows.T, aweights=weights, ddof=0), np.eye(4), atol=1e-5)
    largest = np.take_along_axis(pooling.axes, np.abs(pooling.axes).argmax(axis=0)[None], axis=0)
    assert (largest > 0).all()  # of the two signs of an eigenvector


P = COUNTS / COUNTS.sum()


@pytest.mark.parametrize(
    "kind, weights, unseen",
    [
        ("static", 1e-3 / (1e-3 + P) * np.sqrt(-np.log(P)), np.sqrt(np.log(COUNTS.sum()))),
        # Ethayarajh 2018: no word is as probable as the threshold, so that alpha is 1 / 12
        ("usif", 11 / 3 / (11 / 6 + P), 2),
    ],
)
def test_rows_have_the_length_of_their_weight(vectors, kind, weights, unseen):
    pooling = Pooling.of(kind, vectors.vectors, vectors.counts)
    rows = pooling.rows(vectors.vectors)
    assert_allclose(np.linalg.norm(rows, axis=1), weights, rtol=1e-5)
    rows = pooling.unseen_rows(vectors.vectors + np.float32(1))
    assert_allclose(np.linalg.norm(rows, axis=1), unseen, rtol=1e-5)


def test_rows_are_drawn_to_the_rows_of_their_beginnings():
    rows = np.random.default_rng(3).normal(size=(4, 3)).astype(np.float32)
    pooling = Pooling.of("usif", rows, np.array([9, 4, 2, 1]))
    unit = pooling.rows(rows) / pooling.weights[:, None]
    beginnings = np.array([-1, 0, 1, 0])
    found = pooling.rows(rows, beginnings) / pooling.weights[:, None]
    for i in range(1, 4):
        drawn = unit[i] + 2 * max(unit[i] @ unit[beginnings[i]], 0) * unit[beginnings[i]]
        assert_allclose(found[i], drawn / np.linalg.norm(drawn), atol=1e-6)
    assert_allclose(found[0], unit[0], atol=1e-6)


@pytest.mark.parametrize("pooling", ["static", "usif"])
def test_an_unknown_word_is_its_beginning_and_characters(vectors, pooling):
    encoder = dw.SentenceEncoder(vectors, pooling=pooling).fit([])
    table = encoder._table
    words = [*table._numbering.words]
    rows = table.vectors_of(["kingue the", "7", "kingϏ", "the king�"])
    pieces = [table.rows[words.index(one)] for one in ("king", "##u", "##e", "the")]
    assert_allclose(rows[0], np.mean(pieces, axis=0), atol=1e-6)
    assert_allclose(rows[1], table.rows[words.index("7")])
    assert not rows[2].any() and np.array_equal(rows[3], table.rows[0])


def test_components_are_weighted_by_their_share_of_the_squared_singular_values():
    """Ethayarajh 2018, section 3.2, by numpy's singular value decomposition."""
    sentences = np.random.default_rng(2).normal(size=(20, 8)).astype(np.float32)
    _, values, axes = np.linalg.svd(sentences, full_matrices=False)
    shares = values[:5] ** 2 / (values[:5] ** 2).sum()
    expected = sentences - (sentences @ axes[:5].T * shares) @ axes[:5]
    found = Components.of_products(sentences.T.astype(float) @ sentences)
    assert_allclose(found.removed_from(sentences), expected, atol=1e-5)


@pytest.mark.parametrize("pooling", ["static", "usif"])
def test_without_counts_words_are_in_the_order_of_zipfs_law(pooling):
    rows = np.random.default_rng(3).normal(size=(50, 4)).astype(np.float32)
    words = [f"w{rank}" for rank in range(50)]
    counts = np.round(1e9 / (np.arange(50) + 2.7))  # of ranks that begin at 0
    texts = ["w1 w2 w30", "w7 w49"]
    with pytest.warns(DcmeWarning, match="counts"):
        found = dw.SentenceEncoder(dw.Vectors(words, rows), pooling=pooling).fit_transform(texts)
    known = dw.SentenceEncoder(dw.Vectors(words, rows, counts=counts), pooling=pooling)
    assert_allclose(found, known.fit_transform(texts), atol=1e-5)


@pytest.mark.parametrize("rows", [np.zeros((0, 2), "f"), [[1, np.nan]], [[np.inf, 1]]])
def test_vectors_that_cannot_be_whitened_are_an_error(rows):
    words = dw.Vectors(["a"][: len(rows)], rows, counts=[3][: len(rows)])
    with pytest.raises(ValueError, match="NaN"):
        dw.SentenceEncoder(words).fit(["a"])


def test_a_sentence_is_the_mean_of_its_known_words(vectors):
    encoder = dw.SentenceEncoder(vectors, pooling="mean")
    rows = encoder.fit_transform(["the king ? king", "", "?", "tea"])
    the, king, tea = vectors[["the", "king", "tea"]]
    assert_allclose(rows, [(the + 2 * king) / 3, the * 0, the * 0, tea], rtol=1e-6)
    with pytest.raises(ValueError, match="dim=2"):
        encoder.set_params(dim=2).fit([])


def test_lists_are_tokens_and_nulls_are_zero_rows(vectors):
    encoder = dw.SentenceEncoder(vectors, pooling="mean", tokenize="words").fit([])
    texts = ["KING tea", ["KING", "tea"], None, float("nan"), ("king",), []]
    rows = encoder.transform(texts)
    assert_allclose(rows[0], vectors[["king", "tea"]].mean(axis=0), rtol=1e-6)
    assert_allclose(rows[[1, 4]], vectors[["tea", "king"]])
    assert not rows[[2, 3, 5]].any()


def test_the_tokenizer_of_the_manifest_is_the_default(vectors):
    record = {"tokenizer": {"tokenize": "words"}}
    recorded = dw.Vectors(WORDS, vectors.vectors, counts=COUNTS, manifest=record)
    (row,) = dw.SentenceEncoder(recorded, pooling="mean").fit_transform(["KING"])
    assert_allclose(row, vectors["king"])


def test_unknown_words_have_the_vectors_of_their_ngrams(vectors):
    ngrams = np.random.default_rng(3).normal(size=(50, 4)).astype(np.float32)
    subwords = Subwords(3, 4, ngrams)
    known = dw.Vectors(WORDS, vectors.vectors, counts=COUNTS, subwords=subwords)
    rows = dw.SentenceEncoder(known, pooling="mean").fit_transform(["kings king", "kings"])
    assert_allclose(rows[1], subwords.vector_of("kings"), rtol=1e-5)
    assert_allclose(rows[0], (rows[1] + vectors["king"]) / 2, rtol=1e-5)


@pytest.mark.bits
def test_threads_and_blocks_do_not_change_the_rows(vectors, monkeypatch):
    texts = [f"{WORDS[i % 6]} {WORDS[i % 5]} x{i}" for i in range(3000)]
    whole = dw.SentenceEncoder(vectors).fit_transform(texts)
    monkeypatch.setattr("dcme_w2v.sentences.table._BLOCK_BYTES", 1000)
    one = dw.SentenceEncoder(vectors, threads=1).fit_transform(texts)
    assert np.array_equal(one, dw.SentenceEncoder(vectors, threads=3).fit_transform(texts))
    assert_allclose(one, whole, atol=1e-5)


@pytest.mark.parametrize("texts", ["a text", [1, 2], np.array([["a"]])])
def test_what_is_no_list_of_sentences_is_an_error(vectors, texts):
    with pytest.raises(ValueError, match="sentence"):
        dw.SentenceEncoder(vectors).fit(texts)


@pytest.fixture
def files(vectors):
    vectors.save("v.safetensors")
    Path("s.txt").write_text("the king\n\nTea Café, TEA!\n?\n")


@pytest.mark.bits
@pytest.mark.parametrize(
    "pooling, output",
    [("static", "o.npy"), ("usif", "o.npz"), ("mean", "o.tsv"), ("usif", "-")],
)
def test_the_command_writes_what_the_estimator_returns(files, vectors, pooling, output, cli):
    encoder = dw.SentenceEncoder(vectors, pooling=pooling, tokenize="words")
    expected = encoder.fit_transform(["the king", "", "Tea Café, TEA!", "?"])
    out = cli(f"encode v.safetensors s.txt --pooling {pooling} --tokenize words -o {output}")
    assert "4 sentences, 2 without any word that has a vector" in cli.err
    read = {
        "o.npy": np.load,
        "o.npz": lambda path: load_npz(path).toarray(),
        "o.tsv": lambda path: np.loadtxt(path, delimiter="\t"),
        "-": lambda _: np.loadtxt(out.splitlines(), delimiter="\t"),
    }[output]
    assert_allclose(read(output), expected, atol=1e-5)


@pytest.mark.parametrize("errors, row", [("skip", [0, 1]), ("replace", [0.5, 0.5])])
def test_tokens_that_are_not_utf8_are_skipped_or_repaired(errors, row, cli):
    """A no-break space separates no tokens; a very long token takes no longer than its length."""
    Path("w.txt").write_text("2 2\nking\u00a0\ufffd 1 0\nqueen 0 1\n", encoding="utf-8")
    long = b"x" * 1_000_000
    Path("s.txt").write_bytes(b"king\xc2\xa0\xff queen " + long + b"\n\xfe\n")
    cli(f"encode w.txt s.txt -o o.npy --pooling mean --encoding-errors {errors}")
    assert np.load("o.npy").tolist() == [row, [0, 0]]


def test_a_line_that_is_longer_than_a_block_is_one_sentence(files, vectors, cli):
    texts = ["tea", "the king " * 200_000, "x" * 3_000_000, "王" * 700_000, "queen"]
    Path("s.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    cli("encode v.safetensors s.txt -o o.npy --pooling mean")
    expected = dw.SentenceEncoder(vectors, pooling="mean").fit_transform(texts)
    assert_allclose(np.load("o.npy"), expected, rtol=1e-4)


def test_sts_is_pearson_and_spearman_of_the_cosines(files, vectors, cli):
    pairs = ["5\tking\tking queen\tnote", "1.5\ttea\tcar", "\tno\tscore", "0\tthe\tcafé"]
    Path("sts.tsv").write_text("\n".join(pairs) + "\n")
    score = dw.eval_sts(vectors, "sts.tsv", pooling="mean")
    v = vectors
    sentences = [(v["king"], v["king"] + v["queen"]), (v["tea"], v["car"]), (v["the"], v["café"])]
    cosines = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in sentences]
    assert score.pearson == pytest.approx(np.corrcoef([5, 1.5, 0], cosines)[0, 1], abs=1e-6)
    assert (score.sets[0].pairs, score.skipped_lines) == (3, 1)
    assert cli.json("eval sts v.safetensors sts.tsv --pooling mean")["pearson"] == score.pearson
    Path("sts.tsv").write_text("1\ta\tb\n1\tc\td\n")
    assert "two pairs with different scores" in cli.error("eval sts v.safetensors sts.tsv")
