"""The check of sparse rows: invalid input, and the result."""

import numpy as np
import pytest
from scipy import sparse

from dcme_w2v.errors import UsageError
from dcme_w2v.numeric.sparse_rows import MAX_COLUMNS, check_rows


def broken(kind=sparse.csr_matrix, **parts):
    """Return a matrix of 3 rows and 4 columns with some of its arrays replaced."""
    matrix = kind(np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4]], dtype=np.float32))
    for name, values in parts.items():
        setattr(matrix, name, np.array(values))
    return matrix


BROKEN = [
    (broken(indptr=[0, 3, 2, 4]), "indptr decreases after row 1"),
    (broken(indptr=[0, 2, 2, 5]), "indptr is from 0 to 5, expected 0 to 4"),
    (broken(indptr=[0.0, 2, 2, 4]), "indptr is float64"),
    (broken(indptr=np.array([0, 2**63, 2, 4], dtype=np.uint64)), "indptr decreases"),
    (broken(indices=[0, 2, 1, 4]), "entry 3: index 4 is not from 0 to 3"),
    (broken(indices=[0.5, 1.0, 1.0, 3.0]), "index: float64"),
    (broken(data=[1.0, 2.0]), "expected 2 integers"),
    (broken(data=[1, np.nan, 3, 4]), "row 0, column 2: is not a finite number"),
    (broken(data=[1, 2, 3, 1e39]), "row 2, column 3: is not a finite number"),
    (broken(data=[1j, 2, 3, 4]), "complex128"),
    (broken(data=np.array([1, 2, "x", None], dtype=object)), "entries of type object"),
    (broken(sparse.csc_matrix, indices=[0, 2, 9, 2]), "index 9 is not from 0 to 2"),
    (broken(sparse.coo_matrix, row=[0, 0, 2, 3]), "row 3 is not from 0 to 2"),
    (broken(sparse.bsr_matrix, indices=[0, 2, 1, 7]), "index 7 is not from 0 to 3"),
    # before scipy 1.13 this has two dimensions
    *((one, "1 dimen") for one in [sparse.coo_array(np.arange(4.0))] if one.ndim == 1),
    (sparse.csr_matrix((1, MAX_COLUMNS + 1)), "columns"),
]  # fmt: skip


@pytest.mark.parametrize("matrix, message", BROKEN)
def test_invalid_index_arrays_are_errors(matrix, message):
    with pytest.raises(UsageError, match=message):
        check_rows(matrix)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
@pytest.mark.parametrize("dtype", [np.float64, np.int16, np.bool_, np.uint64])
def test_every_kind_of_matrix_becomes_csr_of_float32(form, dtype):
    dense = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0]]).astype(dtype)
    for matrix in (sparse.csr_matrix(dense).asformat(form), sparse.csr_array(dense), dense):
        rows = check_rows(matrix)
        assert rows.format == "csr" and rows.dtype == np.float32 and rows.has_canonical_format
        np.testing.assert_array_equal(rows.toarray(), dense.astype(np.float32))


def test_columns_are_sorted_and_duplicates_summed_in_a_copy():
    parts = [np.array(part) for part in ([1.0, 2.0, 4.0], [3, 0, 3], [0, 3])]
    given = sparse.csr_matrix(tuple(parts), shape=(1, 4))
    given.has_canonical_format = True  # as after a change outside of scipy
    assert check_rows(given).toarray().tolist() == [[2, 0, 0, 5]]
    assert given.indices.tolist() == [3, 0, 3] and given.data.tolist() == [1, 2, 4]
