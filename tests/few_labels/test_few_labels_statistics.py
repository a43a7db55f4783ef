"""Statistics: equal to numpy's, bit-identical for any parts and order; files."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import log_softmax

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.few_labels import statistics
from dcme_w2v.few_labels.statistics import (
    CUT,
    MAX_COUNT,
    UNIT,
    Statistics,
    check_values,
    read_parts,
    write_part,
)

DOCUMENTS, FEATURES, CLASSES = 300, 70, 11
IDENTITY = {
    "features": "f", "classes": list("abcdefghijk"), "model": "m", "values": "values"
}  # fmt: skip


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
    found = counted(rows, log_p)
    assert_array_equal(found.joint, x.T @ p)
    assert_array_equal(found.counts, x.sum(axis=0))
    assert_array_equal(found.prior, p.sum(axis=0))
    assert (found.documents, found.empty) == (DOCUMENTS, int((x.sum(axis=1) == 0).sum()))
    exact = rows.toarray().T.astype(np.float64) @ np.exp(log_p)
    assert_allclose(found.joint / UNIT**2, exact, atol=0.3)


@pytest.mark.bits
def test_parts_are_written_and_added():
    rows, log_p = rows_and_probabilities()
    names = [f"{i}.npz" for i in range(3)]
    for name, own in zip(names, np.array_split(np.arange(DOCUMENTS), 3), strict=True):
        write_part(name, counted(sparse.csr_matrix(rows[own]), log_p[own]), IDENTITY)
    assert same(read_parts(names, IDENTITY), counted(rows, log_p))
    with pytest.raises(UsageError, match="given twice"):
        read_parts([names[0], names[0]], IDENTITY)
    before = Path("0.npz").read_bytes()
    write_part(names[0], read_parts(names[:1], IDENTITY), IDENTITY)
    assert Path("0.npz").read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        {"joint": 3 * 65536},
        {"counts": 1 << 40},
        {"joint": -1},
        {"prior": 1000},
        {"documents": 0},
        {"documents": -5, "empty": -9},
    ],
)
def test_parts_that_no_documents_have(change):
    """Sums that are too large would overflow where parts are added."""
    path, sums = "p.npz", counted(*rows_and_probabilities())
    for name, value in change.items():
        by = value if name in ("joint", "counts", "prior") else 1
        setattr(sums, name, getattr(sums, name) * by if by != 1 else value)
    write_part(path, sums, IDENTITY)
    with pytest.raises(FormatError, match=r"p\.npz: its sums are wrong"):
        read_parts([path], IDENTITY)


def test_too_many_documents_for_the_sums():
    """Each part is below the largest sum, both together are not."""
    sums = counted(*rows_and_probabilities())
    times = MAX_COUNT // int(sums.counts.max())
    sums.joint *= times
    sums.counts *= times
    with pytest.raises(UsageError, match="too many"):
        sums += sums


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
    with pytest.raises(UsageError, match=f"row {row}, column {rows.indices[7]}: is "):
        check_values(rows)
    with pytest.raises(UsageError, match=f"row {row}, column"):
        counted(rows, log_p)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"features": "x"}, "other features"),
        ({"classes": ("x",)}, "other classes"),
        ({"model": "x"}, "another initial model"),
        ({"values": "binary"}, "another impact"),
    ],
)
def test_parts_of_other_statistics_are_named(change, said):
    path = "p.npz"
    write_part(path, counted(*rows_and_probabilities()), {**IDENTITY, **change})
    with pytest.raises(UsageError, match=f"p.npz: has statistics of {said}"):
        read_parts([path], IDENTITY)
