"""Files of word vectors that are errors when they are read."""

import bz2
import gzip
from pathlib import Path

import numpy as np
import pytest
from helpers import save

from dcme_w2v.errors import FormatError
from dcme_w2v.formats.vectors.vectors_reader import BLOCK
from dcme_w2v.words.vectors import Vectors

pytestmark = pytest.mark.usefixtures("here")

CORRUPT = {
    "blank row": (b"2 1\na 1\n\nb 2\n", ":3: wrong dimension"),
    "huge rows": (b"9999999999 1\na 1\n", ":1: a header of 9999999999 rows"),
    "no dimension": (b"1 0\na\n", ":1: a header of"),
    "promises more than the file": (b"2000000000 200000\na 1 2\n", ":1: the header has"),
    "promises more, packed": (gzip.compress(b"2000000000 200000\na 1 2\n"), ":2: wrong dimension"),
    "prose": (b"It was a dark and stormy night\n", ":1: neither a header"),
    "packing cut": (gzip.compress(b"1 1\na 1\n")[:-6], "truncated at byte"),
    "corrupt compression": (bz2.compress(b"1 1\na 1\n")[:12] + bytes(30), "is corrupt before byte"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_damaged_files_are_reported_with_the_place(name):
    content, message = CORRUPT[name]
    Path("v").write_bytes(content)
    with pytest.raises(FormatError) as raised:
        Vectors.load("v")
    assert message in str(raised.value) and "\n" not in str(raised.value)
    assert str(raised.value).startswith("v")


def test_a_row_longer_than_a_block_is_an_error():
    Path("v").write_bytes(b"2 1\na 1\nb" + b" " * (BLOCK + 9) + b"1\n")
    with pytest.raises(FormatError, match=r":3: no row ends within"):
        Vectors.load("v")


@pytest.mark.parametrize(
    "array", [np.ones((2, 1)), np.ones(2, dtype=np.float32), np.array([["a"]], dtype=object)]
)
def test_other_arrays_are_errors(array):
    np.save("v.npy", array)
    Path("v.vocab").write_bytes(b"a\nb\n")
    with pytest.raises(FormatError, match=r"v\.npy"):
        Vectors.load("v.npy")


def test_a_truncated_npy_file_is_an_error():
    path = Path(save("v.npy", ["a", "b"], [[1, 2], [3, 4]]))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError, match="is corrupt"):
        Vectors.load(path)


def test_binary_vectors_need_a_header():
    Path("v").write_text("a 1 2\n")
    with pytest.raises(FormatError, match="v:1: no header"):
        Vectors.load("v", "binary")
