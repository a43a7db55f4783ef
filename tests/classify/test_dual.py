"""`--solver dual`: the squared hinge loss by coordinate descent in the dual problem."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.svm import LinearSVC

from dcme_w2v import MaxentClassifier
from dcme_w2v._core.text import Table
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.trainer import ClassifierTrainer
from dcme_w2v.numeric.sparse_rows import as_matrix, rotated, unit_rows

MARGIN = 4  # of csrc/classify/hinge.h


def rows_of(count=120, features=200, seed=0):
    random = np.random.default_rng(seed)
    values = random.random((count, features)) * (random.random((count, features)) < 0.1)
    return unit_rows(csr_matrix(values, dtype=np.float32))


def trained(rows, sets, classes, weights=None, epochs=200, l2=1e-3):
    given = ClassifyOptions(loss="hinge", solver="dual", epochs=epochs, l2=l2, bias=1, threads=2)
    documents = np.repeat(np.arange(len(sets)), [len(own) for own in sets])
    labels = np.concatenate(sets).astype(np.int32)
    own = None if weights is None else weights.astype(np.float32)[documents]
    options = resolved(given, classes, any(len(own) > 1 for own in sets))
    training = ClassifierTrainer(rows, documents, labels, classes, options, sample_weight=own)
    for number in range(epochs):
        training.epoch(number)
    return training


def errors_at(weights, rows, sets, classes):
    """Return y max(0, M - y s) of all documents and classes, and the documents with their bias."""
    full = np.hstack([rows.toarray(), np.ones((rows.shape[0], 1))]).astype(np.float64)
    signs = -np.ones((rows.shape[0], classes))
    for sign, own in zip(signs, sets, strict=True):
        sign[list(own)] = 1
    scores = full @ weights.get().astype(np.float64)
    return signs * np.maximum(0, MARGIN - signs * scores), full


@pytest.mark.parametrize("classes, several, weighted", [
    (2, False, False), (20, False, True), (70, True, False), (130, True, True),
])  # fmt: skip
def test_it_reaches_the_optimum(classes, several, weighted):
    """There, W = sum_i c_i e_i x_i^T / (l2 sum_i c_i); strips of classes and sets of labels fit."""
    random, rows = np.random.default_rng(1), rows_of()
    sets = [random.choice(classes, 1 + several * (i % 2), replace=False) for i in range(120)]
    sets[0] = np.array([classes - 1])
    weights = random.uniform(0.2, 3, 120) if weighted else None
    training = trained(rows, sets, classes, weights)
    own = np.ones(120) if weights is None else weights
    errors, full = errors_at(training.weights, rows, sets, classes)
    wanted = full.T @ (own[:, None] * errors) / (1e-3 * own.sum())
    found = training.weights.get()
    assert np.abs(found - wanted).max() < 2e-3 * np.abs(wanted).max()
    # the last loss is that of the weights, as if the margin were 1
    loss = (own[:, None] * np.square(errors)).sum() / (2 * MARGIN**2 * own.sum())
    assert training.epoch(199).loss == pytest.approx(loss, rel=0.01)


def test_one_document_is_learned_by_one_step():
    """The scalar reference: a = y M / (l2 + |x|^2), W = a x."""
    rows = csr_matrix(np.array([[3.0, 0.0, 4.0]], dtype=np.float32))
    training = trained(rows, [np.array([1])], 3, epochs=1, l2=0.5)
    step = MARGIN / (0.5 + 25 + 1)
    wanted = np.outer([3, 0, 4, 1], [-step, step, -step])
    assert training.weights.get() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("strength", [0.3, 3.0])
def test_scores_are_those_of_linear_svc(strength):
    rows, random = rows_of(300), np.random.default_rng(2)
    labels = (rows @ random.normal(size=(200, 6))).argmax(axis=1)
    l2 = 0.5 / (strength * 300)
    given = {"loss": "hinge", "solver": "dual", "l2": l2, "bias": 1.0, "epochs": 100}
    ours = MaxentClassifier(**given).fit(rows, labels).decision_function(rows)
    svm = LinearSVC(C=strength, tol=1e-8, max_iter=100_000).fit(rows, labels)
    assert np.abs(ours / MARGIN - svm.decision_function(rows)).max() < 0.01


def test_rotated_rows_have_the_same_inner_products():
    rows = rows_of(30, 2000)[[*range(29), 3]]  # equal documents have a Cholesky factor, too
    short = as_matrix(rotated(rows))
    assert short.shape == (30, 30) and short.nnz < rows.nnz
    products = (rows @ rows.T).toarray()
    assert (short @ short.T).toarray() == pytest.approx(products, abs=2e-4)
    assert rotated(rows_of(120, 20)).shape == (120, 20)  # nothing would be gained
    huge = csr_matrix(np.full((1, 300), 3e38, dtype=np.float32))
    assert rotated(huge) is huge  # their products are infinite


def test_ngrams_of_a_table_need_lengths():
    table = Table()
    text, offsets = np.frombuffer("néééx".encode(), dtype=np.uint8), np.array([0, 3, 8])
    starts, ids = table.ngrams(text, offsets[:2], 1, 2, 9, True)
    words = bytes(table.words(np.arange(len(table)))[0]).decode()
    assert words == " <n n né é é>" and starts.tolist() == [0, 5] and ids.tolist() == [*range(5)]
    other = np.frombuffer(b"nx", dtype=np.uint8), np.array([0, 2])
    assert table.ngrams(*other, 1, 2, 9, False)[1].tolist() == [0, 1]
    # Characters after the first ones are ignored, but a character is never split.
    assert table.ngrams(text, offsets, 1, 2, 1, False)[1].tolist() == [0, 1, 3, 4]
    with pytest.raises(ValueError, match="do not fit together"):
        table.ngrams(text, offsets, 2, 1, 9, True)
