"""Outputs are compressed by their suffix; unrelated files are not replaced."""

import bz2
import gzip
import lzma
import os
import re
import threading
from pathlib import Path

import pytest
import zstandard
from data import make_texts, word_vectors, write_corpus

from dcme_w2v import Vectors
from dcme_w2v.files.atomic import COMPRESSORS, atomic_write

UNPACKERS = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_failed_stream_has_no_end_mark(tmp_path, suffix):
    path, read = tmp_path / f"pipe{suffix}", []
    os.mkfifo(path)
    for failing in (False, True):
        reader = threading.Thread(target=lambda: read.append(path.read_bytes()))
        reader.start()
        try:
            with atomic_write(path) as file:
                file.write(b"line\n" * 1000)
                assert not failing
        except AssertionError:
            pass
        reader.join()
    assert UNPACKERS[suffix](read[0]) == b"line\n" * 1000
    assert len(read[1]) < len(read[0])


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_every_command_compresses_its_files(cli, suffix):
    write_corpus("corpus", lines=100)
    word_vectors().save("v.txt")
    Path("docs").write_bytes(b"".join(b"a|b\t" + text + b"\n" for text in make_texts()))
    cli("scdv fit docs --vectors v.txt --output m --clusters 3 --iterations 5 --quiet")
    lines = (
        "train corpus --dim 16 --quiet --threads 1 --output o.txt@",
        "train corpus --dim 16 --quiet --threads 1 --output o.bin@",
        "convert v.txt v.bin@",
        "vocab corpus --output vocab@",
        "phrases corpus --output joined@ --save-table table@ --threshold 1 --quiet",
        "transform m docs --output rows.svm@ --labels labels@",
    )
    for line in lines:
        cli(line.replace("@", ""))
        cli(line.replace("@", suffix))
    for name in re.findall(r"(\S+)@", " ".join(lines)):
        plain, packed = Path(name).read_bytes(), Path(f"{name}{suffix}").read_bytes()
        assert plain != packed and UNPACKERS[suffix](packed) == plain
    assert Path(f"o.txt{suffix}.json").read_bytes()[:1] == b"{"
    assert list(Vectors.load(f"v.bin{suffix}")) == list(word_vectors())
    cli(f"classify train rows.svm{suffix} --output k --epochs 1 --threads 1")
