"""Sparse rows: the check of matrices; files of rows and of labels, valid, corrupt and hostile."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from dcme_w2v.errors import CorpusError, FormatError, ResourceError, UsageError
from dcme_w2v.files import opening as compression
from dcme_w2v.files import space
from dcme_w2v.formats.sparse_io import (
    read_labels,
    read_npz,
    read_svmlight,
    writing_rows,
)
from dcme_w2v.numeric.sparse_rows import MAX_COLUMNS, check_rows

ROWS = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4]], dtype=np.float32)

CORRUPT = {
    "many": {"shape": [1 << 40, 4]},
    "shape": {"shape": [3]},
    "shapes": {"shape": [-3, 4]},
    "wide": {"shape": [3, 1 << 40]},
    "format": {"format": "dia"},
    "no data": {"data": []},
    "two": {"data": [[1.0, 2], [3, 4]]},
}


def write_npz(path="x.npz", **parts):
    """Write a matrix as scipy does, with some of its arrays replaced."""
    sparse.save_npz(path, sparse.csr_matrix(ROWS))
    with np.load(path) as found:
        arrays = {name: found[name] for name in found.files}
    np.savez(path, **{**arrays, **{name: np.array(value) for name, value in parts.items()}})


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("compressed", [True, False])
def test_files_of_scipy_are_read(form, compressed):
    sparse.save_npz("x.npz", sparse.csr_matrix(ROWS).asformat(form), compressed)
    rows = read_npz(Path("x.npz"))
    assert rows.dtype == np.float32 and rows.has_canonical_format
    np.testing.assert_array_equal(rows.toarray(), ROWS)


@pytest.mark.parametrize("columns", [4, 1 << 17])
def test_written_rows_round_trip(columns):
    rows = sparse.csr_matrix(ROWS)
    rows.resize(3, columns)
    for name in ("x.npz", "x.svm"):
        with writing_rows(Path(name), columns) as writer:
            writer.add(rows[:2], [("a",), ()])
            writer.add(rows[2:], [("b",)])
    assert (read_npz(Path("x.npz")) != rows).nnz == 0
    found, labels = read_svmlight("x.svm")
    np.testing.assert_array_equal(found.toarray()[:, 1:], ROWS)  # columns count from 1 there
    assert labels == [("1",), ("0",), ("2",)]


@pytest.mark.parametrize("parts", CORRUPT.values(), ids=CORRUPT)
def test_a_damaged_matrix_is_an_error(parts):
    write_npz(**parts)
    with pytest.raises(FormatError, match=r"x\.npz is not a valid sparse matrix"):
        read_npz(Path("x.npz"))


def test_files_that_are_not_matrices():
    np.save("v.npy", ROWS)
    Path("empty").write_bytes(b"")
    np.savez("other.npz", a=ROWS)
    write_npz("objects.npz", data=np.array([1, "x", None, 4], dtype=object))
    for name, message in (
        ("v.npy", "is not a valid sparse matrix"),
        ("empty", "is not a valid sparse matrix"),
        ("other.npz", "is not a valid sparse matrix"),
        ("objects.npz", "objects"),  # are not unpickled
    ):
        with pytest.raises(FormatError, match=message):
            read_npz(Path(name))
    with pytest.raises(CorpusError, match="cannot be read: No such file"):
        read_npz(Path("missing.npz"))


def bomb(size):
    """Write a matrix with an array of zeros that is compressed to a thousandth."""
    with zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in (("format", b"csr"), ("shape", [3, 4]), ("indptr", [0, 0, 0, 0])):
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.array(values))
        for name in ("indices", "data"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = {"descr": "|i1", "fortran_order": False, "shape": (size,)}
                np.lib.format.write_array_header_1_0(member, header)
                for _ in range(size >> 20):
                    member.write(bytes(1 << 20))


def test_a_decompression_bomb_is_an_error(monkeypatch):
    bomb(4 << 20)
    monkeypatch.setattr("dcme_w2v.formats.sparse_io._EXPANDED_BYTES", 1 << 20)
    with pytest.raises(FormatError, match="bytes of the file would expand to"):
        read_npz(Path("x.npz"))


def test_a_matrix_larger_than_memory_is_an_error(monkeypatch):
    write_npz()
    monkeypatch.setattr(space, "memory_limit", lambda: 1000)
    with pytest.raises(ResourceError, match=r"x\.npz: reading it requires .* only 1,000 bytes are"):
        read_npz(Path("x.npz"))


SVMLIGHT = [
    ("1 1:1e39\n", "line 1: the value of feature 1 is not a finite number"),
    ("1 -3:1\n", "the feature number -3 is out of range"),
    ("1 qid:3 1:1\n", "qid"),
    ("1 1_0:1\n", "'1_0:1' does not have the form FEATURE:VALUE"),
    (f"1 {'9' * 5000}:1\n", "does not have the form FEATURE:VALUE"),
    ("1 4294967296:1\n", "the feature number 4294967296 is out of range"),
    ("1 1:1\x00\n", r"'1:1\\x00' does not have the form FEATURE:VALUE"),
    ("1 1:3e38 1:3e38\n", "row 0, column 1 is not a finite float32 number"),
]


@pytest.mark.parametrize("text, message", SVMLIGHT)
def test_invalid_svmlight_lines(text, message):
    Path("x.svm").write_text(text)
    with pytest.raises(FormatError, match=message):
        read_svmlight("x.svm")


def test_line_feeds_alone_end_labels_whose_spaces_are_one():
    names = ["a\u2028b", "c\u0085d", "e\x0bf", "g\x1ch", "i\rj"]
    Path("l").write_bytes("\n".join([*names, "x|y\r", "", ""]).encode())
    assert read_labels("l") == [*((" ".join(one.split()),) for one in names), ("x", "y"), ()]
    assert len(read_labels("l", 7)) == 7
    with pytest.raises(
        FormatError, match="has 7 lines, but there are 8 rows; write one line per row"
    ):
        read_labels("l", 8)


@pytest.mark.parametrize(
    "name, text", [("d.svm", "1 " + "1:1 " * 1000), ("d.tsv", "a\t" + "w " * 1000)]
)
def test_an_endless_line_is_an_error(cli, monkeypatch, name, text):
    monkeypatch.setattr(compression, "LINE_BYTES", 1000)
    Path(name).write_text(text)
    with pytest.raises(CorpusError, match="line 1 is longer than 1,000 bytes"):
        read_labels(name)
    cli(f"classify train {name} --output m", code=1)


@pytest.mark.parametrize("read", [read_labels, read_svmlight])
def test_a_device_without_lines_is_an_error(read):
    with pytest.raises(CorpusError, match=r"/dev/zero: line 1 is longer .* looks binary"):
        read("/dev/zero")


def test_the_line_of_numbers_of_an_extreme_classification_file_is_skipped():
    Path("a.svm").write_text("2 9 30\n3,7 0:1 8:0.5\n 2:1\n")
    matrix, labels = read_svmlight("a.svm")
    assert labels == [("3", "7"), ()] and matrix.shape == (2, 9)
    Path("a.svm").write_text("3,7 0:1\n2 9 30\n")
    with pytest.raises(FormatError, match="line 2"):
        read_svmlight("a.svm")


# ---- the check of matrices ----


def broken(kind=sparse.csr_matrix, **parts):
    """Return a matrix of 3 rows and 4 columns with some of its arrays replaced."""
    matrix = kind(np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4]], dtype=np.float32))
    for name, values in parts.items():
        setattr(matrix, name, np.array(values))
    return matrix


STRUCTURE = r"ind(ex|ices|ptr)"  # words of scipy's message
BROKEN = [
    (broken(indptr=[0, 3, 2, 4]), STRUCTURE),
    (broken(indptr=[0, 2, 2, 5]), STRUCTURE),
    (broken(indptr=[0.0, 2, 2, 4]), STRUCTURE),
    (broken(indptr=np.array([0, 2**63, 2, 4], dtype=np.uint64)), STRUCTURE),
    (broken(indices=[0, 2, 1, 4]), STRUCTURE),
    (broken(indices=[0.5, 1.0, 1.0, 3.0]), STRUCTURE),
    (broken(data=[1.0, 2.0]), STRUCTURE),
    (broken(data=[1, np.nan, 3, 4]), "row 0, column 2 is not a finite float32 number"),
    (broken(data=[1, 2, 3, 1e39]), "row 2, column 3 is not a finite float32 number"),
    (broken(data=[1j, 2, 3, 4]), "complex128"),
    (broken(data=np.array([1, 2, "x", None], dtype=object)), "entries of type object"),
    (broken(sparse.csc_matrix, indices=[0, 2, 9, 2]), STRUCTURE),
    (broken(sparse.coo_matrix, row=[0, 0, 2, 3]), STRUCTURE),
    (broken(sparse.bsr_matrix, indices=[0, 2, 1, 7]), STRUCTURE),
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
