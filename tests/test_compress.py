"""Outputs are compressed by their suffix; unrelated files are not replaced."""

import bz2
import gzip
import lzma
import os
import threading

import pytest
import zstandard
from helpers import make_texts, refused, train, word_vectors, write_corpus

from dcme_w2v.cli.main import run
from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.compress import COMPRESSORS
from dcme_w2v.words.vectors import Vectors

UNPACKERS = {
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".xz": lzma.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_file_is_compressed_by_its_name(tmp_path, suffix):
    data = os.urandom(1000) + b"text\n" * 700_000
    for path in (tmp_path / f"x.txt{suffix}", tmp_path / f"y{suffix.upper()}"):
        with atomic_write(path) as file:
            file.write(data)
        assert UNPACKERS[suffix](path.read_bytes()) == data
        assert path.stat().st_size < 100_000
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


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
def test_every_command_compresses_its_files(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    corpus = write_corpus(tmp_path / "corpus", lines=100)
    word_vectors().save("v.txt")
    (tmp_path / "docs").write_bytes(b"".join(b"a|b\t" + text + b"\n" for text in make_texts()))
    fit = ["scdv", "fit", "docs", "--vectors", "v.txt", "--output", "m", "--clusters", "3"]
    assert run([*fit, "--iterations", "5", "--quiet"]) == 0
    for end in ("", suffix):
        flags = ["--output-context", f"c.bin{end}", "--save-vocab", f"w{end}", "--threads", "1"]
        assert train(corpus, f"o.txt{end}", *flags) == 0
        assert run(["convert", "v.txt", f"v.bin{end}"]) == 0
        assert run(["vocab", corpus, "--output", f"vocab{end}"]) == 0
        tables = ["--save-table", f"table{end}", "--threshold", "1", "--quiet"]
        assert run(["phrases", corpus, "--output", f"joined{end}", *tables]) == 0
        rows = ["--output", f"rows.svm{end}", "--labels", f"labels{end}"]
        assert run(["scdv", "transform", "m", "docs", *rows]) == 0
    names = ["o.txt", "c.bin", "w", "v.bin", "vocab", "table", "joined", "rows.svm", "labels"]
    for name in names:
        plain, packed = (tmp_path / name).read_bytes(), (tmp_path / f"{name}{suffix}").read_bytes()
        assert plain != packed and UNPACKERS[suffix](packed) == plain
    assert (tmp_path / f"o.txt{suffix}.json").read_bytes()[:1] == b"{"
    assert list(Vectors.load(f"v.bin{suffix}")) == list(word_vectors())
    learn = ["classify", "train", f"rows.svm{suffix}", "--output", "k", "--epochs", "1"]
    assert run([*learn, "--threads", "1"]) == 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("o.kv", ".kv files are not supported"),
        ("o.safetensors", ".safetensors files are not supported"),
        ("o.parquet.gz", ".parquet files are not supported"),
        ("o.npy.gz", "npy is mapped into memory, not compressed; name a .bin.gz file"),
        ("o.npz", "vectors are not written as .npz"),
        ("o.pdf", "vectors are not written as .pdf"),
    ],
)
def test_other_formats_are_refused_before_training(tmp_path, capsys, name, message):
    corpus = write_corpus(tmp_path / "corpus", lines=100)
    code = train(corpus, tmp_path / name)
    error = refused(capsys, code)
    assert code == 2 and str(tmp_path / name) in error and message in error
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]
    with pytest.raises(UsageError):
        word_vectors().save(tmp_path / name)
