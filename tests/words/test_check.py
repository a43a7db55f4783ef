"""Each fault of a file of word vectors is found, counted and located."""

from pathlib import Path

import numpy as np
import pytest
from helpers import save

from dcme_w2v import Vectors
from dcme_w2v.errors import FormatError
from dcme_w2v.words.check import check

ONE = b" \0\0\x80\x3f"

# name -> content, kind, count, the end of the first place
PLANTED = {
    "rows missing": (b"4 1\na 1\nb 2\n", "wrong number of rows", 1, ":1"),
    "dimension": (b"4 2\na 1 2\nb 3\nc 1 2\nd 1 2 3\n", "wrong dimension", 2, ":3"),
    "not a number": (b"3 2\na 1 2\nb 1,5 2\nc x y\n", "not a number", 2, ":3"),
    "nan": (b"3 2\na nan 2\nb 1 2\nc 1 inf\n", "NaN or infinite number", 2, ":2"),
    "duplicate": (b"5 1\na 1\nb 1\nc 1\na 1\na 2\n", "duplicate word", 2, ":5"),
    "empty": (b"3 1\na 1\n 1\n 2\n", "empty word", 2, ":3"),
    "truncated": (b"2 1\na 1\nb\xe3\x81 1\n", "invalid UTF-8 in a word", 1, ":3"),
    "separator": (b"3 1\na 1\n. . . 1\nb\fc 1\n", "separator in a word", 2, ":3"),
    "numbers in words": (
        b"3 3\nroute 66 .4 .5 .6\nthe .1 .2 .3\nroute 67 .2 .1 .3\n",
        "wrong dimension",
        2,
        ":2",
    ),
    "too few numbers": (b"3 3\nthe .1 .2 .3\nof .4 .5\na .2 .1 .3\n", "wrong dimension", 1, ":3"),
    "NUL": (b"2 1\na\0 1\nb 1\n", "NUL byte in a word", 1, ":2"),
    "binary rows too many": (b"1 1\na" + ONE + b"\nb" + ONE, "wrong number of rows", 1, ":1"),
    "binary junk": (b"1 1\na" + ONE + b"\n\0junk\0", "trailing junk", 1, "v"),
    "binary nan": (
        b"3 1\na" + ONE + b"\nb \0\0\xc0\x7f\nc \0\0\x80\x7f\n",
        "NaN or infinite number",
        2,
        "row 2, byte 11",
    ),
    "binary duplicate": (b"3 1\na" + ONE + b"b" + ONE + b"a" + ONE, "duplicate word", 1, "row 3"),
    "hexadecimal": (b"2 1\na 1\nb 0x1\n", "not a number", 1, ":3"),
    "too great": (b"2 2\na 1 1e39\nb 1 2\n", "NaN or infinite number", 1, ":2"),
    "nothing": (b"", "unreadable", 1, "v"),
    "prose": (b"Call me Ishmael.\n", "unreadable", 1, "v"),
    "huge header": (b"99999999999 1\na 1\n", "unreadable", 1, "v"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_each_fault_is_reported(name):
    content, kind, count, place = PLANTED[name]
    Path("v").write_bytes(content)
    report = check(Path("v"))
    (fault,) = report.faults
    assert (fault.kind, fault.count) == (kind, count)
    assert fault.place.startswith("v") and fault.place.endswith(place)
    with pytest.raises(FormatError) as caught:  # of the reader
        Vectors.load("v")
    said = str(caught.value)
    assert said.startswith("v" if "junk" in kind else fault.place)
    assert kind in said or kind in ("unreadable", "wrong number of rows", "trailing junk")


def test_the_command_lists_faults(cli):
    Path("v").write_bytes(b"4 1\na 1\na 2\na nan\n")
    lines = cli("check v", code=1).splitlines()
    assert "duplicate word: 1, first at v:3" in lines
    assert "NaN or infinite number: 1, first at v:4" in lines
    assert "wrong number of rows: 1, first at v:1 (4 in the header, 3 in the file)" in lines
    Path("v").write_bytes(b"2 3\na 1 2 3\nb 4 5 6\n")
    assert cli("check v").splitlines() == ["v: text", "rows: 2", "dimension: 3", "OK"]
    assert cli.json("check v") == {
        "file": "v", "format": "text", "rows": 2, "dimension": 3, "faults": [], "ok": True
    }  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        b"2 1\na 1 \nb 2 \n", b"2 1\na" + ONE + b"b" + ONE, b"a 1 2\nb 1 2\n",
        b"2 1\r\na 1\r\nb 2\r\n",
    ],
)  # fmt: skip
def test_tolerated_variants_have_no_fault(content):
    Path("v").write_bytes(content)
    assert check(Path("v")).faults == []


@pytest.mark.parametrize(
    "name, format", [("x.txt", "text"), ("x.bin", "binary"), ("x.safetensors", "safetensors")]
)
def test_vectors_too_large_for_cosines_are_named_and_loaded(cli, name, format):
    matrix = np.ones((3, 4), dtype=np.float32)
    matrix[1] = 3e38
    report = check(save(Path(name), ["a", "b", "c"], matrix))
    assert [(fault.kind, fault.count) for fault in report.faults] == [("length not finite", 1)]
    assert report.format == format
    vectors = Vectors.load(name)
    np.testing.assert_array_equal(vectors.vectors, matrix)
    with pytest.raises(FormatError, match="the norm of vector 2 is not finite"):
        vectors.most_similar("a")
    Path("docs").write_text("a b c\n")
    fit = f"scdv fit docs --vectors {name} --output m --clusters 1"
    for line in (f"neighbors {name} a", fit):
        assert "not finite" in cli.error(line)
