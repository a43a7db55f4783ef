"""Reading DOCS: labeled lines in each form, from any source."""

import gzip
import re
from pathlib import Path

import pytest

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.documents import read_documents


def read(path, **options):
    return list(read_documents([str(path)], **options))


def write(path, data):
    Path(path).write_bytes(data)
    return path


@pytest.mark.parametrize(
    "line, labels, words",
    [
        (b"sport\ta b  c", ("sport",), [b"a", b"b", b"c"]),
        (b"x|y z\ta\tb", ("x", "y z"), [b"a", b"b"]),
        (b"\ta", (), [b"a"]),
        (b"__label__x a __label__y", ("x", "y"), [b"a"]),
        (b"a b __label__y", ("y",), [b"a", b"b"]),
        (b"a __label__x b\t__label__y c", ("x", "y"), [b"a", b"b", b"c"]),
        (b"a\tb x__label__y", ("a",), [b"b", b"x__label__y"]),
        (b"__label__x __label__y\ta b\r", ("x", "y"), [b"a", b"b"]),
        (b"__label__x", ("x",), []),
        ("über\tÄ ß".encode(), ("über",), ["Ä".encode(), "ß".encode()]),
        (b"just text", (), [b"just", b"text"]),
        (b"", (), []),
        (b"a\x0bb\x0cc", (), [b"a", b"b", b"c"]),
    ],
)
def test_labels_are_detected_for_each_line(line, labels, words):
    (document,) = read(write("d", line + b"\n"))
    assert document.labels == labels
    assert document.words == words


def test_an_explicit_form_is_not_guessed():
    path = write("d", b"__label__x\ta b\n")
    assert read(path, form="text")[0].words == [b"__label__x", b"a", b"b"]
    assert read(path, form="tab")[0].labels == ("__label__x",)
    assert read(write(path, b"a\tb\n"), form="fasttext")[0].words == [b"a", b"b"]


def test_lines_are_numbered_by_file():
    Path("in").mkdir()
    write(Path("in", "a"), b"\xef\xbb\xbfx\ty\nz\n")
    write(Path("in", "b"), gzip.compress(b"u\n"))
    found = read("in")
    assert [document.labels for document in found] == [("x",), (), ()]
    assert [re.split(r"[\\/]", document.place)[-1] for document in found] == ["a:1", "a:2", "b:1"]


def test_tokens_that_are_not_utf8():
    path = write("d", b"ok\nx\ta b\xff \xc3\xa9\n")
    with pytest.raises(CorpusError, match=r"^d: byte 5 of line 2 is not UTF-8.*during training"):
        read(path)
    replaced, skipped = read(path, encoding_errors="replace"), read(path, encoding_errors="skip")
    assert replaced[1].words == [b"a", "b\N{REPLACEMENT CHARACTER}".encode(), b"\xc3\xa9"]
    assert skipped[1].words == [b"a", b"\xc3\xa9"]
    assert replaced[1].labels == skipped[1].labels == ("x",)


@pytest.mark.parametrize(
    "data, options, error, message",
    [
        (b"a\nb\0\n", {}, CorpusError, "byte 1 of line 2 is a NUL byte"),
        (b"x\ta\nb\n", {"form": "tab"}, CorpusError, "line 2 has no TAB"),
        (b"a", {"form": "csv"}, UsageError, "form must be auto,"),
        (b"a", {"encoding_errors": "no"}, UsageError, "encoding_errors must be strict,"),
    ],
)
def test_unreadable_input(data, options, error, message):
    path = write("d", data)
    with pytest.raises(error, match=message):
        read(path, **options)
    with pytest.raises(CorpusError, match="no such file"):
        read("absent")
