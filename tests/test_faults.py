"""Invalid input and failing systems: one line, exit code 1 or 2, old files unchanged."""

import io
import os
import random
import resource
import sys
import types

import numpy as np
import pytest
from helpers import COMPRESSORS, manifest, refused, train, write_corpus

from dcme_w2v.cli.main import run
from dcme_w2v.formats.corpus import Corpus
from dcme_w2v.words.vectors import Vectors

TEXT = b"a b c d e\n" * 40
NOISE = b"\n".join(b"%d %d" % (i % 30, i % 7) for i in range(200_000))


# ---- corpora ----

REFUSED = {
    "empty": (b"", "there are no tokens"),
    "mark alone": (b"\xef\xbb\xbf", "there are no tokens"),
    "rare words": (b"a b c\nd e f\n", "occurs at least 5 times; lower --min-count"),
    "NULs": (TEXT + b"x\0y\n", "byte 401 (line 41) is NUL"),
    "a program": (b"\x7fELF\x02\x01\x01" + bytes(range(256)) * 9, "looks binary"),
    "broken UTF-8": (TEXT + b"caf\xe9\n", "byte 403 (line 41) is not UTF-8"),
    "zip": (
        b"PK\x03\x04\x14\0\0\0\x08\0" + random.Random(1).randbytes(500),
        "is a zip archive; unpack it",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_invalid_corpora(tmp_path, capsys, name):
    content, said = REFUSED[name]
    corpus, output = tmp_path / "c.txt", tmp_path / "v.bin"
    corpus.write_bytes(content)
    output.write_bytes(b"old")
    error = refused(capsys, train(corpus, output))
    assert str(corpus) in error or "words" in error
    assert said in error
    assert output.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {"c.txt", "v.bin"}


TAKEN = {
    "one word": (b"a " * 9, 9),
    **{f"{name} named .txt": (pack(TEXT), 200) for name, pack in COMPRESSORS.items()},
}


@pytest.mark.parametrize("name", TAKEN)
def test_unusual_corpora_are_accepted(tmp_path, name):
    content, tokens = TAKEN[name]
    corpus, output = tmp_path / "c.txt", tmp_path / "v.bin"
    corpus.write_bytes(content)
    assert train(corpus, output) == 0
    assert manifest(tmp_path / "v.bin")["tokens"]["corpus"] == tokens
    vectors = Vectors.load(output)
    assert np.isfinite(vectors.vectors).all()
    assert {word[:1] for word in vectors.words} <= set("abcdex")


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_truncated_file_is_read_on_request(tmp_path, capsys, name):
    corpus = tmp_path / "c.gz"
    corpus.write_bytes(COMPRESSORS[name](NOISE)[:-20])
    error = refused(capsys, train(corpus, tmp_path / "v.bin"))
    assert "--allow-truncated" in error and f"byte {corpus.stat().st_size}" in error
    output = tmp_path / "v.bin"
    assert train(corpus, output, "--epochs", "1", "--allow-truncated", quiet=False) == 0
    assert f"truncated at byte {corpus.stat().st_size}" in capsys.readouterr().err
    # every format has blocks so small that most of the text is before the cut
    assert len(NOISE.split()) / 2 < manifest(output)["tokens"]["corpus"] <= len(NOISE.split())


@pytest.mark.parametrize(("errors", "words"), [("replace", 6), ("skip", 5)])
def test_binary_files_are_read_on_request(tmp_path, capsys, errors, words):
    corpus, output = tmp_path / "c", tmp_path / "v.bin"
    corpus.write_bytes(TEXT + b"x\0y\n" * 9)
    assert "--allow-binary" in refused(capsys, train(corpus, output))
    flags = ("--allow-binary",)
    assert "--encoding-errors" in refused(capsys, train(corpus, output, *flags))
    assert train(corpus, output, *flags, "--encoding-errors", errors) == 0
    assert len(Vectors.load(output)) == words
    assert run(["check", str(output)]) == 0
    assert ("x\ufffdy" in Vectors.load(output).words) == (errors == "replace")


@pytest.mark.parametrize("change", ["grows", "shrinks", "is replaced"])
def test_a_corpus_that_changes_during_reading(tmp_path, capsys, monkeypatch, change):
    corpus = tmp_path / "c.txt"
    corpus.write_bytes(TEXT)
    blocks = Corpus._blocks

    def changing(self, number, file, behind):
        yield from blocks(self, number, file, behind)
        data = {"grows": TEXT * 2, "shrinks": b"a", "is replaced": TEXT[::-1]}[change]
        corpus.write_bytes(data)
        os.utime(corpus, ns=(1, 1))

    monkeypatch.setattr(Corpus, "_blocks", changing)
    error = refused(capsys, train(corpus, tmp_path / "v.bin"))
    assert f"{corpus}: changed while it was read" in error


# ---- vectors, vocabularies ----

VECTORS = {
    "header over 2^63": b"99999999999999999999 2\na 1 2\n",
    "negative": b"-1 2\na 1 2\n",
    "npy header of code": b"\x93NUMPY\x01\0\x20\0" + b"__import__('os').system('true')\n",
    "npy of objects": b"\x93NUMPY\x01\0v\0{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"
    + b" " * 61 + b"\n\x80\x04N.",
    "pickle": b"\x80\x04\x95\x05\0\0\0\0\0\0\0K\x01.",
}  # fmt: skip


@pytest.mark.parametrize("name", VECTORS)
def test_invalid_vectors(tmp_path, capsys, name):
    path, output = tmp_path / "v", tmp_path / "w"
    path.write_bytes(VECTORS[name])
    output.write_bytes(b"old")
    error = refused(capsys, run(["convert", str(path), str(output)]))
    assert str(path) in error
    assert output.read_bytes() == b"old"
    corpus = write_corpus(tmp_path / "c.txt")
    again = refused(capsys, train(corpus, output, "--init", str(path)))
    assert again.partition(" at 0x")[0] == error.partition(" at 0x")[0]
    assert output.read_bytes() == b"old"


# ---- disks ----


@pytest.fixture
def file_limit():
    """Limit the size of files, as on a disk that is nearly full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("format", ["text", "binary", "npy"])
@pytest.mark.parametrize("size", [0, 100, 900])
def test_a_full_disk(tmp_path, capsys, file_limit, format, size):
    corpus, output = write_corpus(tmp_path / "c.txt"), tmp_path / "v.npy"
    output.write_bytes(b"old")
    flags = ("--format", format, "--cache-dir", "/dev/shm")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    file_limit(size)
    code = train(corpus, output, *flags)
    file_limit(resource.RLIM_INFINITY)
    assert "File too large" in refused(capsys, code)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_full_standard_output(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with io.FileIO("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", types.SimpleNamespace(buffer=full))
        code = train(write_corpus(tmp_path / "c.txt"), "-")
        monkeypatch.undo()
    assert "standard output: cannot be written: No space left" in refused(capsys, code)
