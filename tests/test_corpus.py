"""Files, folders, packings and blocks: what comes out of a corpus is what is in it."""

import bz2
import gzip
import io
import lzma
import os
import random
import sys
import threading
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from dcme_w2v.errors import CorpusError
from dcme_w2v.text.compression import read_whole
from dcme_w2v.text.corpus import Corpus, expand

TEXT = "the quick brown fox\nżółć 東京\n".encode() * 300
NOISE = random.Random(1).randbytes(200_000)
PACKERS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}


@pytest.fixture(params=PACKERS)
def pack(request):
    return PACKERS[request.param]


def write(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.bz2", "a.xz", "a.zst", "a"])
def test_packing_is_told_by_first_bytes_not_by_name(tmp_path, pack, name):
    assert read_whole(write(tmp_path / name, pack(TEXT))) == TEXT


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.zst"])
def test_plain_text_under_any_name(tmp_path, name):
    assert read_whole(write(tmp_path / name, TEXT)) == TEXT


@pytest.mark.parametrize("start", [b"BZh", b"BZh9 is a word", b"", b"P"])
def test_text_that_starts_like_a_packing(tmp_path, start):
    assert read_whole(write(tmp_path / "a", start)) == start


@pytest.mark.parametrize("parts", [2, 40])
def test_all_members_are_read(tmp_path, pack, parts):
    texts = [TEXT + b"%d" % i for i in range(parts)]
    path = write(tmp_path / "a", b"".join(pack(text) for text in texts))
    assert read_whole(path) == b"".join(texts)


def test_padding_of_zeros_is_no_member(tmp_path, pack):
    data = pack(TEXT) + bytes(8) + pack(TEXT) + bytes(100_000)
    assert read_whole(write(tmp_path / "a", data)) == 2 * TEXT


def test_empty_member(tmp_path, pack):
    assert read_whole(write(tmp_path / "a", pack(b"") + pack(TEXT) + pack(b""))) == TEXT


def test_zstd_frame_to_be_skipped(tmp_path):
    data = b"\x52\x2a\x4d\x18\x03\x00\x00\x00abc" + PACKERS["zst"](TEXT)
    assert read_whole(write(tmp_path / "a", data)) == TEXT


def test_much_from_few_bytes(tmp_path, pack):
    text = b"word " * 1_000_000
    assert read_whole(write(tmp_path / "a", pack(text))) == text


@pytest.mark.parametrize("left", [0.3, 0.9, -1])
def test_truncated_file_is_an_error(tmp_path, pack, left):
    packed = pack(NOISE)
    cut = packed[: int(len(packed) * left) if left > 0 else left]
    path = write(tmp_path / "a.txt", cut)
    with pytest.raises(CorpusError, match=rf"a\.txt: .* breaks off at byte {len(cut)} of the pack"):
        read_whole(path)


def test_truncated_second_member(tmp_path, pack):
    path = write(tmp_path / "a", pack(TEXT) + pack(TEXT)[:-5])
    with pytest.raises(CorpusError, match="breaks off at byte"):
        read_whole(path)


def test_damaged_file_is_an_error(tmp_path, pack):
    packed = bytearray(pack(NOISE))
    packed[50_000:50_100] = bytes(100)
    with pytest.raises(CorpusError, match=r"is damaged before byte .* get the file again"):
        read_whole(write(tmp_path / "a", bytes(packed)))


def test_rubbish_behind_a_member_is_an_error(tmp_path, pack):
    path = write(tmp_path / "a", pack(TEXT) + b"and then some more text")
    with pytest.raises(CorpusError, match="is damaged before byte"):
        read_whole(path)


def test_missing_zstandard_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(CorpusError, match=r"a: is packed with zstd; pip install 'dcme-w2v\[zst\]'"):
        read_whole(write(tmp_path / "a", PACKERS["zst"](TEXT)))


def test_folder_stands_for_its_files_sorted_without_hidden_ones(tmp_path):
    wanted = [write(tmp_path / name, b"x") for name in ("b/a.txt", "b/c/d", "b.txt", "a")]
    for name in (".hidden", ".git/config", "b/.x"):
        write(tmp_path / name, b"x")
    assert expand([str(tmp_path)]) == sorted(wanted)


def test_arguments_keep_their_order(tmp_path):
    b, a = write(tmp_path / "b", b"x"), write(tmp_path / "a", b"x")
    assert expand([b, "-", a, b, "s3://bucket/key"]) == [b, "-", a, b, "s3://bucket/key"]


def test_missing_file(tmp_path):
    with pytest.raises(CorpusError, match="nothere: there is no such file or folder"):
        expand([str(tmp_path / "nothere")])


def test_folder_without_files(tmp_path):
    write(tmp_path / ".hidden", b"x")
    with pytest.raises(CorpusError, match="the folder has no files; name one that has"):
        expand([str(tmp_path)])


def test_no_arguments():
    with pytest.raises(CorpusError, match="the corpus has no files"):
        expand([])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path):
    path = write(tmp_path / "a", b"x")
    Path(path).chmod(0)
    with pytest.raises(CorpusError, match="a: cannot be opened: Permission denied"):
        read_whole(path)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no /proc")
def test_reading_error_names_the_file():
    with pytest.raises(CorpusError, match="/proc/self/mem: cannot be read: "):
        read_whole("/proc/self/mem")


def test_standard_input_packed(monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT)))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert read_whole("-") == TEXT
    assert not stdin.buffer.closed


def test_pipe_has_no_size(tmp_path):
    path = str(tmp_path / "pipe")
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

    def opened(path, mode, compression):
        calls.append((path, mode, compression))
        return io.BytesIO(pack(TEXT))

    monkeypatch.setattr("smart_open.open", opened)
    assert read_whole(address) == TEXT
    assert calls == [(address, "rb", "disable")]


@pytest.mark.parametrize("address, extra", [("s3://b/a", "s3"), ("https://h/a", "http")])
def test_missing_extra_of_smart_open(monkeypatch, address, extra):
    def missing(*arguments, **options):
        raise ImportError("many\nlines")

    monkeypatch.setattr("smart_open.open", missing)
    with pytest.raises(CorpusError, match=rf"{address}: pip install 'dcme-w2v\[{extra}\]' to rea"):
        read_whole(address)


def test_address_that_fails(monkeypatch):
    class Broken(io.RawIOBase):
        def readinto(self, buffer):
            raise RuntimeError("connection reset")

    monkeypatch.setattr("smart_open.open", lambda *arguments, **options: Broken())
    with pytest.raises(CorpusError, match="s3://b/a: cannot be read: connection reset"):
        read_whole("s3://b/a")


@given(
    text=st.lists(st.sampled_from([b"a", b"word", b" ", b"\t", b"\n", b"\r\n", b"\v", b"x" * 99])),
    block_bytes=st.integers(1, 64),
)
def test_blocks_are_the_file_cut_outside_of_words(tmp_path_factory, text, block_bytes):
    data = b"".join(text)
    path = write(tmp_path_factory.getbasetemp() / "blocks", data)
    blocks = list(Corpus([path], block_bytes))
    assert b"".join(bytes(block.text) for block in blocks) == data + b"\n"
    offset = 0
    for block in blocks:
        assert block.offset == offset
        assert bytes(block.text[-1:]).isspace()
        offset += len(block.text)


def test_byte_order_mark_is_dropped_but_counted(tmp_path):
    (block,) = Corpus([write(tmp_path / "a", b"\xef\xbb\xbfword")])
    assert bytes(block.text) == b"word\n"
    assert block.offset == 3


def test_bytes_read_are_those_of_the_stored_files(tmp_path, pack):
    corpus = Corpus([write(tmp_path / "a", pack(TEXT)), write(tmp_path / "b", TEXT)])
    packed = len(pack(TEXT))
    assert [(block.file, block.bytes_read) for block in corpus] == [
        (0, packed),
        (1, packed + len(TEXT)),
    ]
    assert corpus.bytes_total == packed + len(TEXT)
