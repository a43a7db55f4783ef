"""Invalid input and failing systems: one line, exit code 1 or 2, old files unchanged."""

import random
from pathlib import Path

import pytest
from helpers import COMPRESSORS

TEXT = b"a b c d e\n" * 40
TRAIN = "train c --dim 16 --quiet --output v.bin"


@pytest.fixture(autouse=True)
def folder():
    Path("c").write_bytes(TEXT)


# ---- corpora ----

TAR = b"c.txt" + bytes(252) + b"ustar\0" + bytes(249) + TEXT
REFUSED = {
    "empty": (b"", "contains no tokens"),
    "mark alone": (b"\xef\xbb\xbf", "contains no tokens"),
    "rare words": (b"a b c\nd e f\n", "occurs at least 5 times; lower --min-count"),
    "NULs": (TEXT + b"x\0y\n", "byte 401 (line 41) is a NUL byte"),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 9, "binary or UTF-16"),
    "broken UTF-8": (TEXT + b"caf\xe9\n", "byte 403 (line 41) is not UTF-8"),
    "zip": (
        b"PK\x03\x04\x14\0\0\0\x08\0" + random.Random(1).randbytes(500),
        "is a zip archive; unpack it",
    ),
    "tar": (TAR, "is a tar archive; unpack it, and use the extracted files"),
    "tar, compressed": (
        COMPRESSORS["gz"](TAR),
        "is a tar archive; unpack it, and use the extracted files",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_corpora(cli, name):
    content, said = REFUSED[name]
    Path("c").write_bytes(content)
    Path("v.bin").write_bytes(b"old")
    error = cli.error(TRAIN)
    assert ("error: c" in error or "words" in error) and said in error
    assert Path("v.bin").read_bytes() == b"old"
    assert {path.name for path in Path().iterdir()} == {"c", "v.bin"}


def test_binary_files_are_an_error(cli):
    Path("c").write_bytes(TEXT + b"x\0y\n" * 9)
    assert "so the file is probably binary or UTF-16" in cli.error(
        f"{TRAIN} --encoding-errors skip"
    )
