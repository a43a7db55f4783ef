"""Files of sparse rows and of labels: valid, corrupt and hostile ones."""

import io
import random
import zipfile

import numpy as np
import pytest
from scipy import sparse

from dcme_w2v.cli.main import run
from dcme_w2v.errors import CorpusError, DcmeError, FormatError, ResourceError
from dcme_w2v.files import opening as compression
from dcme_w2v.formats.sparse_io import (
    read_labels,
    read_npz,
    read_svmlight,
    writing_rows,
)
from dcme_w2v.numeric import memory

ROWS = np.array([[1, 0, 2, 0], [0, 0, 0, 0], [0, 3, 0, 4]], dtype=np.float32)


def write_npz(path, matrix=None, **parts):
    """Write a matrix as scipy does, with some of its arrays replaced."""
    stored = io.BytesIO()
    sparse.save_npz(stored, sparse.csr_matrix(ROWS) if matrix is None else matrix)
    stored.seek(0)
    with np.load(stored) as found:
        arrays = {name: found[name] for name in found.files}
    np.savez(path, **{**arrays, **{name: np.array(value) for name, value in parts.items()}})
    return str(path)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("compressed", [True, False])
def test_files_of_scipy_are_read(tmp_path, form, compressed):
    path = tmp_path / "x.npz"
    sparse.save_npz(path, sparse.csr_matrix(ROWS).asformat(form), compressed)
    rows = read_npz(path)
    assert rows.dtype == np.float32 and rows.has_canonical_format
    np.testing.assert_array_equal(rows.toarray(), ROWS)


@pytest.mark.parametrize("columns", [4, 1 << 17])
def test_written_rows_round_trip(tmp_path, columns):
    rows = sparse.csr_matrix(ROWS)
    rows.resize(3, columns)
    for name in ("x.npz", "x.svm"):
        with writing_rows(tmp_path / name, columns) as writer:
            writer.add(rows[:2], [("a",), ()])
            writer.add(rows[2:], [("b",)])
    assert (read_npz(tmp_path / "x.npz") != rows).nnz == 0
    found, labels = read_svmlight(str(tmp_path / "x.svm"))
    np.testing.assert_array_equal(found.toarray()[:, 1:], ROWS)  # columns count from 1 there
    assert labels == [("1",), ("0",), ("2",)]


CORRUPT = {
    "many": {"shape": [1 << 40, 4]},
    "shape": {"shape": [3]},
    "shapes": {"shape": [-3, 4]},
    "wide": {"shape": [3, 1 << 40]},
    "format": {"format": "dia"},
    "no data": {"data": []},
    "two": {"data": [[1.0, 2], [3, 4]]},
}


@pytest.mark.parametrize("parts", CORRUPT.values(), ids=CORRUPT)
def test_a_damaged_matrix_is_an_error_of_every_command(tmp_path, capfd, parts, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_npz("x.npz", **parts)
    with pytest.raises(FormatError, match=r"x\.npz: is not a valid sparse matrix"):
        read_npz("x.npz")
    (tmp_path / "l").write_text("a\nb\na\n")
    (tmp_path / "d.svm").write_text("a 1:1\nb 2:1\n" * 4)
    assert run(["classify", "train", "d.svm", "--output", "m", "--quiet"]) == 0
    for command in (
        ["classify", "train", "x.npz", "--labels", "l", "--output", "n", "--quiet"],
        ["classify", "test", "m", "x.npz", "--labels", "l"],
        ["classify", "predict", "m", "x.npz"],
        ["scdv", "search", "m", "x.npz", "word"],
        ["scdv", "plot", "x.npz", "--output", "p.png"],
    ):
        assert run(command) == 1
        error = capfd.readouterr().err
        assert error.startswith("error: x.npz: is not a valid sparse matrix (")
        assert error.count("\n") == 1


def test_objects_are_not_unpickled(tmp_path):
    with pytest.raises(FormatError, match="objects"):
        read_npz(write_npz(tmp_path / "x.npz", data=np.array([1, "x", None, 4], dtype=object)))


def test_files_that_are_not_matrices(tmp_path):
    np.save(tmp_path / "v.npy", ROWS)
    (tmp_path / "empty").write_bytes(b"")
    np.savez(tmp_path / "other.npz", a=ROWS)
    for name in ("v.npy", "empty", "other.npz"):
        with pytest.raises(FormatError, match="is not a valid sparse matrix"):
            read_npz(tmp_path / name)
    with pytest.raises(CorpusError, match="cannot be read: No such file"):
        read_npz(tmp_path / "missing.npz")


def test_truncated_and_changed_files_are_one_line_of_error(tmp_path):
    whole = tmp_path / "whole.npz"
    sparse.save_npz(whole, sparse.csr_matrix(ROWS))
    data, path = whole.read_bytes(), tmp_path / "x.npz"
    chance = random.Random(1)
    inputs = [data[:end] for end in range(0, len(data), 7)]
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(data))] = chance.randrange(256)
        inputs.append(bytes(changed))
    for one in inputs:
        path.write_bytes(one)
        try:
            rows = read_npz(path)
        except DcmeError as error:
            assert "\n" not in str(error)
        else:
            rows.check_format(full_check=True)


def bomb(path, size):
    """Write a matrix with an array of zeros that is compressed to a thousandth."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, values in (("format", b"csr"), ("shape", [3, 4]), ("indptr", [0, 0, 0, 0])):
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.array(values))
        for name in ("indices", "data"):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = {"descr": "|i1", "fortran_order": False, "shape": (size,)}
                np.lib.format.write_array_header_1_0(member, header)
                for _ in range(size >> 20):
                    member.write(bytes(1 << 20))
    return path


def test_a_decompression_bomb_is_an_error(tmp_path, monkeypatch):
    path = bomb(tmp_path / "x.npz", 4 << 20)
    monkeypatch.setattr("dcme_w2v.formats.sparse_io._EXPANDED_BYTES", 1 << 20)
    with pytest.raises(FormatError, match="bytes would become"):
        read_npz(path)


def test_a_matrix_larger_than_memory_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "memory_limit", lambda: 1000)
    with pytest.raises(ResourceError, match=r"x\.npz: reading it needs .* 1,000 are available"):
        read_npz(write_npz(tmp_path / "x.npz"))


SVMLIGHT = [
    ("1 1:1e39\n", "line 1: feature 1 is not a finite number"),
    ("1 -3:1\n", "feature -3 is out of range"),
    ("1 qid:3 1:1\n", "qid"),
    ("1 1_0:1\n", "'1_0:1' is not feature:value"),
    (f"1 {'9' * 5000}:1\n", "is not feature:value"),
    ("1 4294967296:1\n", "feature 4294967296 is out of range"),
    ("1 1:1\x00\n", r"'1:1\\x00' is not feature:value"),
    ("1 1:3e38 1:3e38\n", "row 0, column 1: is not a finite number"),
]


@pytest.mark.parametrize(("text", "message"), SVMLIGHT)
def test_invalid_svmlight_lines(tmp_path, text, message):
    path = tmp_path / "x.svm"
    path.write_text(text)
    with pytest.raises(FormatError, match=message):
        read_svmlight(str(path))


def test_labels_may_have_every_character_but_line_feeds(tmp_path):
    path = tmp_path / "l"
    names = ["a\u2028b", "c\u0085d", "e\x0bf", "g\x1ch", "i\rj"]
    path.write_bytes("\n".join([*names, "x|y\r", "", ""]).encode())
    assert read_labels(str(path)) == [*((name,) for name in names), ("x", "y"), ()]
    assert len(read_labels(str(path), 7)) == 7
    with pytest.raises(FormatError, match="has 7 lines for 8 rows; give one line per row"):
        read_labels(str(path), 8)


def test_an_endless_line_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(compression, "LINE_BYTES", 1000)
    for name, text in (("d.svm", "1 " + "1:1 " * 1000), ("d.tsv", "a\t" + "w " * 1000)):
        (tmp_path / name).write_text(text)
        with pytest.raises(CorpusError, match="line 1 is longer than 1,000 bytes"):
            read_labels(str(tmp_path / name))
    assert run(["classify", "train", str(tmp_path / "d.svm"), "--output", "m"]) == 1
    assert run(["classify", "train", str(tmp_path / "d.tsv"), "--output", "m"]) == 1


@pytest.mark.parametrize("read", [read_labels, read_svmlight])
def test_a_device_without_lines_is_an_error(read):
    with pytest.raises(CorpusError, match=r"/dev/zero: line 1 is longer .* looks binary"):
        read("/dev/zero")


def test_the_line_of_numbers_of_an_extreme_classification_file_is_skipped(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("2 9 30\n3,7 0:1 8:0.5\n 2:1\n")
    matrix, labels = read_svmlight(str(path))
    assert labels == [("3", "7"), ()] and matrix.shape == (2, 9)
    path.write_text("3,7 0:1\n2 9 30\n")
    with pytest.raises(FormatError, match="line 2"):
        read_svmlight(str(path))
