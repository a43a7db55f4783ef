"""Document vectors against the paper's formulas, computed densely."""

import dataclasses

import numpy as np
import pytest
from data import SMALL_SCDV, make_texts, word_vectors
from helpers import transform, unit_rows
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from dcme_w2v import Vectors
from dcme_w2v.errors import CorpusError, DcmeError, FormatError, UsageError
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.model import DocumentModel
from dcme_w2v.scdv.options import BETTER, PLAIN, REPRESENTATIONS, ScdvOptions, resolved


def check_row(model, text, wanted):
    """Compare the vector of a text with one of any length."""
    (row,) = model.transform([text])
    assert_allclose(row.toarray()[0], wanted / np.linalg.norm(wanted), atol=1e-5)


def fitted(train=None, **options):
    """Return a model of small documents with word vectors."""
    train = make_texts() if train is None else train
    return fit_documents(train, word_vectors(), dataclasses.replace(SMALL_SCDV, **options))


def dense_scdv(model, train, test, percentage, weights):
    """Return SCDV of test documents as the paper writes it."""
    unit = np.array(model.vectors, dtype=np.float64)
    posteriors = model.mixture.posteriors(model.vectors)
    table = weights[:, None, None] * posteriors[:, :, None] * unit[:, None, :]
    index = {word: i for i, word in enumerate(model.words)}

    def vectors(documents):
        sums = np.zeros((len(documents), *table.shape[1:]))
        for row, document in enumerate(documents):
            for word in document.decode().split():
                if word in index:
                    sums[row] += table[index[word]]
        flat = sums.reshape(len(documents), -1)
        return flat / np.maximum(np.linalg.norm(flat, axis=1, keepdims=True), 1e-30)

    trained = vectors(train)
    t = (abs(trained.min(axis=1).mean()) + abs(trained.max(axis=1).mean())) / 2
    found = vectors(test)
    found[np.abs(found) < percentage / 100 * t] = 0
    return found


def smooth_idf(model, documents):
    sets = [set(document.decode().split()) for document in documents]
    df = np.array([sum(word in one for one in sets) for word in model.words])
    return np.log((1 + len(documents)) / (1 + df)) + 1


@pytest.mark.parametrize("covariance", ["tied", "spherical"])
@pytest.mark.parametrize("percentage", [0.0, 4.0, 40.0])
def test_vectors_equal_the_papers_formulas(covariance, percentage):
    train, test = make_texts(), make_texts(300, seed=5)
    model = fitted(train, covariance=covariance, sparsity=percentage)
    rows = transform(model, test)
    oracle = dense_scdv(model, train, test, percentage, smooth_idf(model, train))
    # At the threshold a rounding error decides whether a number is dropped.
    near = np.abs(np.abs(oracle) - model.threshold) < 1e-6
    assert_allclose(np.where(near, 0, rows.toarray()), np.where(near, 0, oracle),
                               atol=1e-5)  # fmt: skip
    assert (model.threshold > 0) == (percentage > 0)
    assert rows.has_sorted_indices
    assert rows.dtype == np.float32


def test_weights_and_term_frequencies():
    train = make_texts()
    model = fitted(train, sparsity=0.0)
    counts = np.array([sum(d.split().count(w.encode()) for d in train) for w in model.words])
    assert_array_equal(model.counts, counts)
    one, two = transform(model, [b"w1", b"w2"]).toarray()
    first, second = (model.idf[model.words.find(word)] for word in ("w1", "w2"))
    log = fitted(train, sparsity=0.0, term_frequency="log")
    check_row(log, b"w1 w2 w1 w1", (1 + np.log(3)) * first * one + second * two)


def test_an_average_counts_each_token_once():
    unit = unit_rows(word_vectors().vectors)
    model = fitted(representation="average")
    assert model.columns == 7
    check_row(model, b"w1 w2 w1 x", 2 * unit[1] + unit[2])


def test_tfidf_counts_words_without_vectors_too():
    train = [*make_texts(), b"x y w1"]
    model = fitted(train, representation="tfidf")
    kept = {word: i for i, word in enumerate(model.words)}
    wanted = np.zeros(len(kept))
    wanted[kept["w1"]], wanted[kept["x"]] = 2 * model.idf[kept["w1"]], np.log(82 / 2) + 1
    check_row(model, b"w1 x w1 z", wanted)
    assert_allclose(model.idf, smooth_idf(model, train), rtol=1e-6)
    assert transform(model, [b"", b"z"]).nnz == 0


def test_power_comes_after_the_threshold():
    train = make_texts()
    plain = transform(fitted(train), train).toarray()
    wanted = np.sign(plain) * np.sqrt(np.abs(plain))
    wanted /= np.maximum(np.linalg.norm(wanted, axis=1, keepdims=True), 1e-30)
    half = transform(fitted(train, power=0.5), train).toarray()
    assert_allclose(half, wanted, atol=1e-6)
    beside = transform(fitted(train, power=0.5, tfidf=2.0), train)
    assert_allclose(beside[:, : wanted.shape[1]].toarray(), wanted / 5**0.5, atol=1e-6)


def test_tfidf_is_concatenated_to_the_vectors():
    train = make_texts(700)
    beside, alone = fitted(train, tfidf=0.5), fitted(train)
    tfidf = fitted(train, representation="tfidf")
    wanted = sparse.hstack([transform(alone, train), 0.5 * transform(tfidf, train)]) / 1.25**0.5
    assert abs(transform(beside, train) - wanted).max() < 1e-6
    assert beside.columns == wanted.shape[1]
    assert transform(beside, train).dtype == np.float32


@pytest.mark.bits
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_batches_change_nothing(representation):
    train = make_texts(100)
    model = fitted(train, representation=representation)
    one_by_one = sparse.vstack([next(model.transform([text])) for text in train])
    assert (transform(model, train) != one_by_one).nnz == 0


@pytest.mark.bits
@pytest.mark.parametrize("representation", REPRESENTATIONS)
def test_a_saved_model_gives_the_same_vectors(representation):
    model = fitted(representation=representation, tfidf=0.5)
    model.save("model")
    loaded = DocumentModel.load("model")
    assert (transform(loaded, make_texts()) != transform(model, make_texts())).nnz == 0
    assert loaded.options == model.options
    assert loaded.facts == model.facts
    assert loaded.columns == model.columns == transform(model, make_texts()).shape[1]


def test_invalid_fits():
    vectors = word_vectors()
    for texts, options, error, message in (
        ([], {}, CorpusError, "there are no documents"),
        ([b"x y", b"z"], {}, CorpusError, "none of the 3 tokens in the 2 documents has a vector"),
        ([b"w1"], {"min_df": 2}, CorpusError, "lower min_df"),
        ([b"w1 w2"], {}, UsageError, "clusters=5 must be at most 2, the number of words"),
        ([b"w1", b"w1\0"], {}, CorpusError, "document 2 of 2 contains a NUL"),
    ):
        with pytest.raises(error, match=message):
            fitted(texts, **options)
    broken = np.array(vectors.vectors)
    broken[3] = np.nan
    with pytest.raises(FormatError, match="vector of 'w3' contains NaN"):
        fit_documents(make_texts(), Vectors(vectors.words, broken), SMALL_SCDV)
    huge = fit_documents([b"w1 w2 w4"], vectors, ScdvOptions(clusters=1))
    huge = dataclasses.replace(huge, posteriors=sparse.csr_matrix((3, 2**30)))
    with pytest.raises(DcmeError, match="lower clusters"):
        next(huge.transform([b"w1"]))


def test_the_better_options_are_the_default():
    for options, wanted in (
        (ScdvOptions(), BETTER),
        (ScdvOptions(power=0.7), {**BETTER, "power": 0.7}),
        *((ScdvOptions(representation=name), PLAIN) for name in REPRESENTATIONS[1:]),
    ):
        found = dataclasses.asdict(resolved(options))
        assert {name: found[name] for name in wanted} == wanted, options
    default, other = fitted(**dict.fromkeys(BETTER)), fitted(**BETTER)
    assert (transform(default, make_texts()) != transform(other, make_texts())).nnz == 0


def test_documents_without_vocabulary_words_are_zero_and_counted():
    train = make_texts()
    model = fitted(train)
    known = {word.encode() for word in model.words}
    zero = [not known & set(text.split()) for text in train]
    assert sum(zero) > 5
    assert model.facts["documents_without_words"] == sum(zero)
    rows = transform(model, train)
    assert_array_equal(np.diff(rows.indptr) == 0, zero)
