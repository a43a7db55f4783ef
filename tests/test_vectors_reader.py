"""Files of word vectors that are errors when they are read."""

import bz2
import gzip

import numpy as np
import pytest
from helpers import save

from dcme_w2v.errors import FormatError
from dcme_w2v.formats.vectors.vectors_reader import BLOCK
from dcme_w2v.words.vectors import Vectors

CORRUPT = {
    "empty": (b"", "empty"),
    "rows missing": (b"3 1\na 1\nb 2\n", ":1: has 2 rows, but 3 in the header"),
    "rows too many": (b"1 1\na 1\nb 2\n", ":1: has 2 rows, but 1 in the header"),
    "short row": (b"2 2\na 1 2\nb 3\n", ":3: wrong dimension"),
    "long row": (b"2 2\na 1 2\nb 3 4 5\n", ":3: wrong dimension"),
    "short row without header": (b"a 1 2\nb 3\n", ":2: wrong dimension"),
    "comma": (b"2 1\na 1\nb 1,5\n", ":3: not a number"),
    "hexadecimal": (b"2 1\na 1\nb 0x1\n", ":3: not a number"),
    "bare exponent": (b"2 1\na 1\nb 1e\n", ":3: not a number"),
    "NUL number": (b"2 1\na 1\nb 1\0\n", ":3: not a number"),
    "nan": (b"2 2\na 1 nan\nb 1 2\n", ":2: NaN or infinite number"),
    "infinite": (b"2 2\na 1 -Infinity\nb 1 2\n", ":2: NaN or infinite number"),
    "too great": (b"2 2\na 1 1e39\nb 1 2\n", ":2: NaN or infinite number"),
    "duplicate": (b"3 1\na 1\nb 2\na 3\n", ":4: duplicate word 'a'"),
    "empty word": (b"2 1\na 1\n 2\n", ":3: empty word"),
    "half a code point": (b"2 1\na 1\n\xc3 2\n", ":3: invalid UTF-8"),
    "surrogate": (b"2 1\na 1\n\xed\xa0\x80 2\n", ":3: invalid UTF-8"),
    "overlong": (b"2 1\na 1\n\xc0\xaf 2\n", ":3: invalid UTF-8"),
    "space in word": (b"2 1\na 1\nb c 2\n", ":3: separator in a word"),
    "form feed in word": (b"2 1\na 1\nb\fc 2\n", ":3: separator in a word"),
    "NUL in word": (b"2 1\na 1\nb\0 2\n", ":3: NUL byte in a word"),
    "blank row": (b"2 1\na 1\n\nb 2\n", ":3: wrong dimension"),
    "huge rows": (b"9999999999 1\na 1\n", ":1: a header of 9999999999 rows"),
    "huge dimension": (b"1 999999999\na 1\n", ":1: a header of"),
    "no dimension": (b"1 0\na\n", ":1: a header of"),
    "promises more than the file": (b"2000000000 200000\na 1 2\n", ":1: the header has"),
    "promises more, packed": (gzip.compress(b"2000000000 200000\na 1 2\n"), ":2: wrong dimension"),
    "prose": (b"It was a dark and stormy night\n", ":1: neither a header"),
    "binary cut": (b"2 1\na \0\0\x80\x3f\nb \0\0", "has 1 rows, but 2 in the header"),
    "binary junk": (b"1 1\na \0\0\x80\x3f\nabc", "4 extra bytes"),
    "binary nan": (b"2 1\na \0\0\x80\x3f\nb \0\0\xc0\x7f\n", "row 2, byte 11: NaN"),
    "binary half": (
        b"2 1\na \0\0\x80\x3f\n\xe3\x81 \0\0\xc0\x3f\n",
        "row 2, byte 11: invalid UTF-8",
    ),
    "binary duplicate": (b"2 1\na \0\0\x80\x3f\na \0\0\xc0\x3f\n", "row 2: duplicate word 'a'"),
    "binary tab": (b"2 1\na \0\0\x80\x3f\nb\t \0\0\xc0\x3f\n", "row 2, byte 11: separator"),
    "packing cut": (gzip.compress(b"1 1\na 1\n")[:-6], "truncated at byte"),
    "corrupt compression": (bz2.compress(b"1 1\na 1\n")[:12] + bytes(30), "is corrupt before byte"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_damaged_files_are_reported_with_the_place(tmp_path, name):
    content, message = CORRUPT[name]
    (tmp_path / "v").write_bytes(content)
    with pytest.raises(FormatError) as raised:
        Vectors.load(tmp_path / "v")
    assert message in str(raised.value) and "\n" not in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / "v"))


def test_a_row_longer_than_a_block_is_an_error(tmp_path):
    (tmp_path / "v").write_bytes(b"2 1\na 1\nb" + b" " * (BLOCK + 9) + b"1\n")
    with pytest.raises(FormatError, match=r":3: no row ends within"):
        Vectors.load(tmp_path / "v")


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [
        (None, "no such file"),
        (b"a 2\n", "1 words for 2 rows"),
        (b"a 2\nb x\n", ":2: bad count"),
        (b"a 2\nb\n", ":2: bad count"),
        (b"a\nb c 3\n", ":2: separator in a word"),
        (b"a\n\xff\n", ":2: invalid UTF-8"),
    ],
)
def test_damaged_words_of_an_npy_file_are_errors(tmp_path, vocabulary, message):
    np.save(tmp_path / "v.npy", np.ones((2, 1), dtype=np.float32))
    if vocabulary is not None:
        (tmp_path / "v.vocab").write_bytes(vocabulary)
    with pytest.raises(FormatError, match=message):
        Vectors.load(tmp_path / "v.npy")


@pytest.mark.parametrize(
    "array", [np.ones((2, 1)), np.ones(2, dtype=np.float32), np.array([["a"]], dtype=object)]
)
def test_other_arrays_are_errors(tmp_path, array):
    np.save(tmp_path / "v.npy", array)
    (tmp_path / "v.vocab").write_bytes(b"a\nb\n")
    with pytest.raises(FormatError, match=r"v\.npy"):
        Vectors.load(tmp_path / "v.npy")


def test_a_truncated_npy_file_is_an_error(tmp_path):
    path = save(tmp_path / "v.npy", ["a", "b"], [[1, 2], [3, 4]])
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FormatError, match="is corrupt"):
        Vectors.load(path)
