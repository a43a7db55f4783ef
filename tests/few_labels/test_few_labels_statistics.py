"""Statistics: equal to numpy's, exact sums, values that they cannot hold."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import log_softmax

from dcme_w2v.errors import UsageError
from dcme_w2v.few_labels import statistics
from dcme_w2v.few_labels.evidence import learn
from dcme_w2v.few_labels.statistics import (
    CUT,
    MAX_COUNT,
    UNIT,
    Statistics,
    check_values,
)

DOCUMENTS, FEATURES, CLASSES = 300, 70, 11


def rows_and_probabilities(seed=0, sure=2.0):
    random = np.random.default_rng(seed)
    dense = random.random((DOCUMENTS, FEATURES)) * (random.random((DOCUMENTS, FEATURES)) < 0.1)
    dense[3] = 0
    rows = sparse.csr_matrix(dense.astype(np.float32))
    scores = random.normal(0, sure, (DOCUMENTS, CLASSES))
    return rows, log_softmax(scores, axis=1)


def counted(rows, log_p):
    found = Statistics.zeros(FEATURES, CLASSES)
    found.add(rows, log_p)
    return found


def same(one, other):
    return all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes()
        for name in ("joint", "counts", "prior")
    ) and (one.documents, one.empty) == (other.documents, other.empty)


@pytest.mark.bits
@pytest.mark.parametrize("sure", [0.1, 2.0, 8.0])
def test_sums_equal_numpys(sure):
    rows, log_p = rows_and_probabilities(sure=sure)
    p = np.where(log_p >= np.log(CUT), np.rint(np.exp(log_p) * UNIT), 0).astype(np.int64)
    x = np.floor(rows.toarray().astype(np.float32) * np.float32(UNIT) + 0.5).astype(np.int64)
    found = Statistics.zeros(FEATURES, CLASSES)
    for some in (slice(5), slice(5, None)):
        found.add(rows[some], log_p[some])
    assert_array_equal(found.joint, x.T @ p)
    assert_array_equal(found.counts, x.sum(axis=0))
    assert_array_equal(found.prior, p.sum(axis=0))
    assert (found.documents, found.empty) == (DOCUMENTS, int((x.sum(axis=1) == 0).sum()))
    exact = rows.toarray().T.astype(np.float64) @ np.exp(log_p)
    assert_allclose(found.joint / UNIT**2, exact, atol=0.3)


def test_too_many_documents_for_the_sums():
    """The first documents are below the largest sum, all together are not."""
    rows, log_p = rows_and_probabilities()
    sums = counted(rows, log_p)
    sums.counts *= MAX_COUNT // int(sums.counts.max())
    with pytest.raises(UsageError, match="overflow"):
        sums.add(rows, log_p)


def test_sums_that_doubles_do_not_hold_are_added_in_pieces(monkeypatch):
    rows, log_p = rows_and_probabilities()
    whole = counted(rows, log_p)
    monkeypatch.setattr(statistics, "EXACT", 7 * UNIT**2)
    assert same(counted(rows, log_p), whole)
    large = sparse.csr_matrix(np.full((1 << 7, FEATURES), 32767.5, np.float32))
    certain = np.where(np.arange(CLASSES) == 3, 0.0, -np.inf) + np.zeros((1 << 7, 1))
    assert_array_equal(counted(large, certain).joint[:, 3], (1 << 7) * int(32767.5 * UNIT) * UNIT)


@pytest.mark.parametrize("value", [-0.5, 40000.0, np.nan])
def test_invalid_values(value):
    rows, log_p = rows_and_probabilities()
    rows.data[7] = value
    row = int(np.searchsorted(rows.indptr, 7, side="right")) - 1
    with pytest.raises(UsageError, match=f"row {row}, column {rows.indices[7]}:? is "):
        check_values(rows)
    with pytest.raises(UsageError, match=f"row {row}, column"):
        counted(rows, log_p)


def test_without_evidence_the_larger_class_is_likelier():
    found = learn(np.zeros((80, 2, 3)), np.repeat([0, 1], [60, 20]))
    assert not found.weights.any()
    assert_allclose(np.exp(log_softmax(found.biases)), [0.75, 0.25], atol=0.02)
