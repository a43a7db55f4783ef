"""Compressed files: decompressed content is the original, and errors name corrupt files."""

import random
import sys
from pathlib import Path

import pytest
from helpers import COMPRESSORS, write

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files import opening
from dcme_w2v.files.atomic import check_writable
from dcme_w2v.files.opening import read_whole

TEXT = "the quick brown fox\nżółć 東京\n".encode() * 300
NOISE = random.Random(1).randbytes(200_000)


@pytest.mark.parametrize("name", ["a.txt", "a.gz", "a.bz2", "a.xz", "a.zst", "a", "s3"])
def test_compression_is_detected_from_content_not_from_the_name(pack, name):
    assert read_whole(write(name, pack(TEXT))) == TEXT


@pytest.mark.parametrize("start", [b"BZh", b"BZh9 is a word", b"", b"P"])
def test_text_that_starts_like_compressed_data(start):
    assert read_whole(write("a", start)) == start


def test_what_reads_and_writes_zstd_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UsageError, match=r"a.zst cannot be written without the package zstandard"):
        check_writable("a.zst")
    with pytest.raises(CorpusError, match=r"a: reading zstd data requires the package zstandard"):
        read_whole(write("a", COMPRESSORS["zst"](TEXT)))


@pytest.mark.parametrize("parts", [2, 40])
def test_all_members_are_read(pack, parts):
    texts = [TEXT + b"%d" % i for i in range(parts)]
    path = write("a", b"".join(pack(text) for text in texts))
    assert read_whole(path) == b"".join(texts)


def test_zero_padding_is_ignored(pack):
    data = pack(TEXT) + bytes(8) + pack(TEXT) + bytes(100_000)
    assert read_whole(write("a", data)) == 2 * TEXT


@pytest.mark.parametrize("kind", [b"\x50", b"\x52", b"\x5f"])
def test_skippable_zstd_frames(kind):
    data = kind + b"\x2a\x4d\x18\x03\x00\x00\x00abc" + COMPRESSORS["zst"](TEXT)
    assert read_whole(write("a", data)) == TEXT


@pytest.mark.parametrize("left", [0.3, 0.9, -1])
def test_truncated_file_is_an_error(pack, left):
    packed = pack(NOISE)
    cut = packed[: int(len(packed) * left) if left > 0 else left]
    path = write("a.txt", cut)
    with pytest.raises(CorpusError, match=rf"a\.txt: .* truncated at byte {len(cut)} of"):
        read_whole(path)


def test_damaged_file_is_an_error(pack):
    packed = bytearray(pack(NOISE))
    packed[50_000:50_100] = bytes(100)
    for data in (bytes(packed), pack(TEXT) + b"and then some more text"):
        with pytest.raises(CorpusError, match=r"is corrupt before byte .* download or copy the"):
            read_whole(write("a", data))


def test_what_decompresses_to_far_more_is_not_held(pack, monkeypatch):
    """A few megabytes are decompressed at once: a log of repeated lines is read to its end."""
    monkeypatch.setattr(opening, "ALWAYS_DECODED", 1 << 20)
    path = write("a.txt", pack((b"x" * 63 + b"\n") * (8 << 14)))
    with pytest.raises(CorpusError, match=r"a\.txt: .* bytes decompress to") as caught:
        read_whole(path)
    decoded = caught.value.message.partition(" at least ")[2].split()[0].replace(",", "")
    assert 0 < int(decoded) - max(1 << 20, 100 * Path(path).stat().st_size) <= 64
    with opening.CorpusFile(path) as file:
        assert max(map(len, file._pieces)) < 8 << 20
    assert sum(len(line) for _, line in opening.read_lines(path)) == 8 << 20
