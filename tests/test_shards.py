"""Parts of a corpus: they cover it, and word counts equal the counts of one machine."""

import lzma
from pathlib import Path

import numpy as np
import pytest
from helpers import COMPRESSORS, write, write_corpus, write_table
from hypothesis import given, settings
from hypothesis import strategies as st

from dcme_w2v.cluster.address import open_cluster
from dcme_w2v.cluster.shards import count, cut
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text import encode as one_machine
from dcme_w2v.text.encode import encode

pytestmark = pytest.mark.usefixtures("here")

ALL = VocabularyOptions(min_count=1)

PACKED = lzma.compress(b"a b c\n" * 4000)


def counted(paths, shards, options=ALL, given=None):
    with open_cluster("local:0") as cluster:
        return count(cluster, cut(paths, shards, options), options, given)[0]


def same(found, wanted):
    assert list(found.vocabulary) == list(wanted.vocabulary)
    np.testing.assert_array_equal(found.vocabulary.counts, wanted.vocabulary.counts)
    for name in ("tokens", "types", "out_of_vocabulary", "replaced", "skipped", "files"):
        assert getattr(found, name) == getattr(wanted, name), name


@pytest.fixture
def files():
    """Plain and compressed files; the first has a byte order mark, the last no line end."""
    texts = [Path(write_corpus(Path(f"{i}"), 80 + 40 * i, i)).read_bytes() for i in range(4)]
    return [
        write("a.txt", b"\xef\xbb\xbf" + texts[0]),
        write("b.txt.xz", lzma.compress(texts[1] + b"\n")),
        write("c.txt", texts[2] + b"\n\n\n"),
        write("d.txt", texts[3]),
    ]


@pytest.mark.parametrize("shards", [1, 2, 7])
@pytest.mark.parametrize("options", [ALL, VocabularyOptions(min_count=4, max_vocab=20)])
def test_the_vocabulary_equals_that_of_one_machine(files, shards, options):
    same(counted(files, shards, options), one_machine.count(files, options))


@pytest.mark.parametrize("shards", [1, 3, 6])
def test_the_ids_equal_those_of_one_machine(files, shards):
    with one_machine.encode(files, ALL) as whole:
        words, ids = whole.vocabulary, np.array(whole.ids)
    found = []
    for shard in cut(files, shards, ALL):
        with encode(shard.corpus(ALL), ALL, vocabulary=words, cache_dir=".") as part:
            found.append(np.array(part.ids))
    np.testing.assert_array_equal(np.concatenate(found), ids)


@pytest.mark.parametrize("count_of_files", [3, 5])
def test_compressed_files_are_not_divided(count_of_files):
    paths = [
        write(f"{i}.gz", COMPRESSORS["gz"](f"a b w{i}\n".encode() * 9 ** (i + 1)))
        for i in range(count_of_files)
    ]
    spans = [span for part in cut(paths, 3, ALL) for span in part.spans]
    assert [span.path for span in spans] == paths
    assert all(span.begin == 0 and span.end is None for span in spans)
    with pytest.raises(UsageError, match="shards=6: the corpus has too few lines, row groups"):
        cut(paths, 6, ALL)


@pytest.mark.parametrize("suffix", ["parquet", "feather", "jsonl"])
@pytest.mark.parametrize("sentences", ["lines", "whole"])
def test_tables_are_divided_at_rows(here, suffix, sentences):
    rows = [{"t": f"a b w{i}\nc d w{i % 7}", "n": i} for i in range(40)]
    path, csv = write_table(f"t.{suffix}", rows), write_table(here / "u.csv", rows)
    options = VocabularyOptions(min_count=1, text_column="t", sentences=sentences)
    same(counted([path], 6, options), one_machine.count([path], options))
    same(counted([path, csv], 2, options), one_machine.count([path, csv], options))
    parts = cut([path], 4, options)
    blocks = [[bytes(block.text).split(b"\n") for block in part.corpus(options)] for part in parts]
    lines = [line.decode() for part in blocks for block in part for line in block if line]
    texts = [row["t"].replace("\n", " ") if sentences == "whole" else row["t"] for row in rows]
    assert "\n".join(lines) == "\n".join(texts) and all(blocks)
    with pytest.raises(UsageError, match="too few lines, row groups"):
        cut([csv], 2, options)


def test_the_error_of_a_row_group_names_the_row_of_the_file(here):
    rows = [{"t": "a"}] * 7 + [{"t": "b\0"}, {"t": "c"}]
    options = VocabularyOptions(text_column="t")
    parts = cut([write_table("t.parquet", rows)], 3, options)
    with pytest.raises(CorpusError, match="row 8 has a NUL"):
        [list(part.corpus(options)) for part in parts]


def test_files_missing_on_a_worker_are_named(files):
    parts = cut(files, 3, ALL)
    Path(files[-1]).write_bytes(b"shorter\n")
    with pytest.raises(CorpusError, match=r"d.txt: has 8 bytes here and \d+ there"):
        parts[-1].corpus(ALL)
    Path(files[-1]).unlink()
    with pytest.raises(CorpusError, match=r"d.txt: there is no such file: give a path that all"):
        parts[-1].corpus(ALL)
    Path(files[0]).write_bytes(lzma.compress(b"a b\n"))
    with pytest.raises(CorpusError, match=r"a.txt: has"):
        parts[0].corpus(ALL)


@pytest.mark.parametrize(
    "name, data, said",
    [
        ("zero", b"a b\n" * 50 + b"a\0b\n", "is NUL"),
        ("empty", b"", "--shards 2: the corpus has too few lines"),
        ("broken.xz", PACKED[:-30], "--shards 2: the corpus has too few"),
        ("line", b"one line", "--shards 2: the corpus has too few lines"),
        ("rare", b"a b\nc d\n", "none of the 4 distinct words"),
        ("whole.xz broken.xz", PACKED, "broken.xz: the xz data is truncated at byte"),
    ],
)
def test_errors_of_the_input_are_one_line(cli, name, data, said):
    write(name.split()[0], data)
    if "whole" in name:
        write("broken.xz", data[:-30])
    error = cli.error(f"train {name} --output v --dim 16 --quiet --cluster local:0 --shards 2")
    assert said in error and ("whole" not in name or "(shard 2 (broken.xz" in error)


@settings(max_examples=60)
@given(
    lines=st.lists(st.sampled_from(["", "a", "b b", "cc dd cc", "x" * 40]), min_size=1),
    shards=st.integers(1, 5),
    end=st.sampled_from(["\n", "\r\n", ""]),
)
def test_a_plain_file_is_divided_at_line_ends(tmp_path_factory, lines, shards, end):
    path = tmp_path_factory.mktemp("cut") / "c.txt"
    path.write_bytes(((end or "\n").join(lines) + end).encode())
    try:
        parts = cut([str(path)], shards, ALL)
    except UsageError:
        assert shards > 1
        return
    data = path.read_bytes()
    pieces = [data[span.begin : span.end] for part in parts for span in part.spans]
    assert b"".join(pieces) == data and len(parts) == shards
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])
