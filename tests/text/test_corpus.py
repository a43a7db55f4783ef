"""Files, folders, compression and blocks: a corpus yields exactly the content of its files."""

import gzip
import io
import os
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest
from helpers import write
from hypothesis import given
from hypothesis import strategies as st

from dcme_w2v.classify import train
from dcme_w2v.errors import CorpusError, DcmeWarning, FormatError
from dcme_w2v.few_labels import jobs as fused
from dcme_w2v.files import opening
from dcme_w2v.files.opening import CorpusFile, head_of, read_regular, read_whole
from dcme_w2v.formats import corpus as corpus_module
from dcme_w2v.formats.corpus import Corpus, expand
from dcme_w2v.latent import jobs as latent

TEXT = "the quick brown fox\nżółć 東京\n".encode() * 300


def test_a_folder_gives_its_files_sorted_without_hidden_ones():
    wanted = [write(f"in/{name}", b"x") for name in ("b/a.txt", "b/c/d", "b.txt", "a")]
    for name in (".hidden", ".git/config", "b/.x"):
        write(f"in/{name}", b"x")
    assert expand(["in"]) == sorted(wanted)


def test_unreadable_file():
    path = write("a", b"x")
    Path(path).chmod(0)
    user = Path(path).stat().st_uid
    if user == 0:
        os.seteuid(4242)  # root may read everything
    try:
        with pytest.raises(
            CorpusError, match="a cannot be opened: Permission denied; check the path and"
        ):
            read_whole(path)
    finally:
        os.seteuid(user)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no /proc")
def test_reading_error_names_the_file():
    with pytest.raises(CorpusError, match=r"/proc/self/mem cannot be read: .*; try again, or copy"):
        read_whole("/proc/self/mem")
    with pytest.raises(CorpusError, match="nowhere cannot be opened: No such file"):
        read_whole("nowhere")


def test_compressed_standard_input(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT)))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_whole("-") == TEXT
    assert not stdin.buffer.closed


def test_pipe_has_no_size():
    path = "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: Path(path).write_bytes(TEXT))
    writer.start()
    corpus = Corpus([path])
    text = b"".join(bytes(block.text) for block in corpus)
    writer.join()
    assert corpus.sizes == [None]
    assert corpus.bytes_total is None
    assert text == TEXT + b"\n"


@pytest.mark.parametrize("address", ["s3://bucket/a.gz", "http://host/a.xz", "https://host/a"])
def test_address_is_read_through_smart_open_and_sniffed(monkeypatch, pack, address):
    calls = []

    def opened(path, mode, compression, transport_params):
        calls.append((path, mode, compression, transport_params))
        return io.BytesIO(pack(TEXT))

    monkeypatch.setattr("smart_open.open", opened)
    assert read_whole(address) == TEXT
    limit = {"timeout": 60} if address.startswith("http") else {}
    assert calls == [(address, "rb", "disable", limit)]


class Ending(io.BytesIO):
    """A connection that ends while it is read."""

    def readinto(self, buffer):
        raise ValueError("the server is gone")


@pytest.mark.parametrize(
    "opened, said",
    [
        (ImportError(), "can be read only with the package boto3; run: pip"),
        (ValueError("no bucket"), "cannot be opened: no bucket; check the address"),
        ([Ending()], "cannot be read: the server is gone"),
    ],
)
def test_an_address_that_cannot_be_read(monkeypatch, opened, said):
    monkeypatch.setattr("smart_open.open", Mock(side_effect=opened))
    with pytest.raises(CorpusError, match=f"s3://bucket/a {said}"):
        read_whole("s3://bucket/a")


def test_the_beginning_of_a_truncated_file(pack):
    """A part of a compressed file cannot be read."""
    write("a", pack(TEXT)[:-4])
    assert TEXT.startswith(head_of("a"))
    with pytest.raises(CorpusError, match="truncated"):
        read_whole("a")
    with pytest.raises(CorpusError, match="a was compressed while"):
        CorpusFile("a", begin=2)


def test_a_range_of_bytes():
    with CorpusFile(write("a", b"abcdef"), begin=2, end=4) as file:
        assert (file.read(), file.bytes_read) == (b"cd", 2)


def lowest_descriptor():
    os.close(number := os.dup(0))
    return number


def test_a_regular_file_has_a_largest_size():
    write("a", b"abcd")
    before = lowest_descriptor()
    assert read_regular("a", 4) == b"abcd"
    with pytest.raises(FormatError, match="a has 4 bytes, but at most 3 bytes can be read; use"):
        read_regular("a", 3)
    assert lowest_descriptor() == before


def test_a_folder_is_no_regular_file(here, monkeypatch):
    def refused(path, flags):  # as on Windows
        raise PermissionError(13, "Permission denied", path)

    for opened in (os.open, refused):
        monkeypatch.setattr(os, "open", opened)
        with pytest.raises(FormatError, match="is not a regular file; use a file"):
            read_regular(here)
    with pytest.raises(PermissionError):
        read_regular("nowhere")


def test_a_line_has_a_largest_size(monkeypatch):
    monkeypatch.setattr(opening, "LINE_BYTES", 4)
    assert read_whole(write("a", b"abc\nabcd")) == b"abc\nabcd"
    with pytest.raises(CorpusError, match="line 2 is longer than 4 bytes"):
        read_whole(write("a", b"abc\nabcd\n"))


def test_byte_order_mark_is_dropped_but_counted():
    (block,) = Corpus([write("a", b"\xef\xbb\xbfword")])
    assert bytes(block.text) == b"word\n"
    assert block.offset == 3


@pytest.fixture
def mixed():
    """A folder with a text, a dangling link, a pipe and binary files."""
    for name, data in {
        "text": b"a b c\n" * 9,
        "packed": gzip.compress(b"d e\n"),
        "binary": b"\x7fELF\0\0",
        "packed binary": gzip.compress(b"\0" * 99),
        "archive": b"PK\x03\x04....",
    }.items():
        write(f"mixed/{name}", data)
    Path("mixed/link").symlink_to("nowhere")
    os.mkfifo("mixed/pipe")


def test_files_without_text_in_a_folder_are_skipped_and_counted(mixed):
    message = "3 binary files, 1 dangling link, 1 special file skipped"
    with pytest.warns(DcmeWarning, match=message) as caught:
        assert expand(["mixed"]) == ["mixed/packed", "mixed/text"]
    assert len(caught) == 1
    Path("mixed/text").unlink()
    Path("mixed/packed").unlink()
    with pytest.warns(DcmeWarning), pytest.raises(CorpusError, match="has no text files"):
        expand(["mixed"])


@pytest.mark.parametrize("byte, message", [(b"\0", "NUL bytes"), (b"x", "use text")])
def test_an_endless_word_is_an_error(monkeypatch, byte, message):
    monkeypatch.setattr(corpus_module, "LINE_BYTES", 1 << 12)
    path = write("a", byte * 100_000)
    said = f"byte 0: a word is longer than 4,096 bytes; .*{message}"
    with pytest.raises(CorpusError, match=said):
        list(Corpus([path], block_bytes=1 << 10))


def test_a_string_is_one_path():
    for letter in "text":
        write(letter, b"a letter\n")
    write("text", b"one two\n")
    path = "text"
    assert expand(path) == [path]
    assert train.TrainJob(path, "m").docs == latent.LatentJob(path, "m").docs == (path,)
    job = fused.FuseJob(path, "m", unlabeled=path)
    assert (job.docs, job.unlabeled) == ((path,), (path,))


@given(
    text=st.lists(st.sampled_from([b"a", b"word", b" ", b"\t", b"\n", b"\r\n", b"\v", b"x" * 99])),
    block_bytes=st.integers(1, 64),
)
def test_blocks_never_cut_a_word(tmp_path_factory, text, block_bytes):
    data = b"".join(text)
    path = write(tmp_path_factory.getbasetemp() / "blocks", data)
    blocks = list(Corpus([path], block_bytes))
    assert b"".join(bytes(block.text) for block in blocks) == data + b"\n"
    offset = 0
    for block in blocks:
        assert block.offset == offset
        assert bytes(block.text[-1:]).isspace()
        offset += len(block.text)
