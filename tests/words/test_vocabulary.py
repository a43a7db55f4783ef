"""Vocabularies: order, pruning, merging, the file of lines "word count", the command vocab."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcme_w2v.errors import FormatError
from dcme_w2v.formats.vocabulary import Vocabulary, merge
from dcme_w2v.options import VocabularyOptions

SEPARATORS = " \t\n\r\v\f\0"
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters=SEPARATORS), min_size=1, max_size=20
).filter(lambda word: word != "</s>")
COUNTS = st.dictionaries(WORDS, st.integers(1, 5) | st.integers(1, 2**53), max_size=30)


def rows(vocabulary):
    return list(zip(vocabulary, vocabulary.counts.tolist(), strict=True))


@given(COUNTS.filter(bool))
def test_saved_and_loaded(tmp_path_factory, counts):
    path = tmp_path_factory.getbasetemp() / "vocab"
    vocabulary = Vocabulary.from_counts(counts)
    vocabulary.save(path)
    assert path.read_bytes() == "".join(f"{w} {n}\n" for w, n in rows(vocabulary)).encode()
    assert rows(Vocabulary.load(path)) == rows(vocabulary)


@given(st.lists(COUNTS, max_size=4))
def test_merge_adds_counts(parts):
    total = Counter()
    for part in parts:
        total.update(dict(rows(Vocabulary.from_counts(part))))
    assert rows(merge([Vocabulary.from_counts(part) for part in parts])) == total.most_common()


@pytest.mark.parametrize("lines", [99, 0])
def test_load_sorts_stably_and_drops_the_row_of_line_ends(lines):
    path = Path("vocab")
    path.write_bytes(b"</s> %d\nb 1\na 7\nnone 0\nc 1\r\nd 7" % lines)
    assert rows(Vocabulary.load(path)) == [("a", 7), ("d", 7), ("b", 1), ("c", 1)]


BAD_LINES = [
    b"word",
    b" 3",
    b"two words 3",
    b"word\t3",
    b"word -1",
    b"word 1.5",
    b"word 9223372036854775808",
    b"nul\0 3",
    b"\xed\xa0\x80 4",
    b"caf\xc3 4",
    b"",
]
NOT_COUNTS = "vocab:3: the line must be a word, a space and a count; use a file"
WITHOUT_WORDS = "vocab contains no words; use a file with lines 'WORD COUNT'"
BAD_FILES = {
    **{b"a 5\nb 4\n" + bad + b"\nc 3\n": NOT_COUNTS for bad in BAD_LINES},
    b"a 5\nb 4\na 3\n": "vocab:3: the word in this line occurs twice; remove one of the two lines$",
    **dict.fromkeys((b"", b"</s> 3\n", b"a 0\n"), WITHOUT_WORDS),
}


@pytest.mark.parametrize("content", BAD_FILES)
def test_a_bad_file_is_named_with_its_line(content):
    path = Path("vocab")
    path.write_bytes(content)
    with pytest.raises(FormatError, match=BAD_FILES[content]):
        Vocabulary.load(path)


@given(COUNTS, st.integers(1, 6), st.none() | st.integers(1, 10))
def test_pruned(counts, min_count, max_vocab):
    options = VocabularyOptions(min_count=min_count, max_vocab=max_vocab)
    expected = [(w, n) for w, n in Counter(counts).most_common() if n >= min_count][:max_vocab]
    pruned = Vocabulary.from_counts(counts).pruned(options)
    assert rows(pruned) == expected
    assert pruned.offsets[-1] == len(pruned.text)


# ---- the command ----


def test_counts_to_a_file(cli):
    Path("c").write_bytes(b"b a a\nc b a\n")
    assert cli("vocab c --output v --min-count 2") == ""
    assert Path("v").read_bytes() == b"a 3\nb 2\n"
    assert cli.err == "6 tokens, 3 types, 2 kept\n"
    assert "occurs at least 9 times; lower --min-count" in cli.error("vocab c -o v --min-count 9")


def test_merge(cli):
    Path("1").write_bytes(b"a 3\nb 2\n")
    Path("2").write_bytes(b"c 4\nb 2\nd 1\n")
    assert cli("vocab --merge 1 2 --output - --min-count 2") == "b 4\nc 4\na 3\n"
    assert cli.err == "12 tokens, 4 types, 3 kept\n"


def test_encoding_errors(cli):
    Path("latin1").write_bytes(b"caf\xe9 a")
    line = "vocab latin1 --output v --min-count 1"
    assert cli.error(line) == (
        "error: latin1: byte 3 (line 1) is not UTF-8; convert the file to UTF-8, or use "
        "--encoding-errors replace or skip\n"
    )
    assert not Path("v").exists()
    cli(f"{line} --encoding-errors skip")
    assert Path("v").read_bytes() == b"a 1\n"
    Path("array").write_text('[{"text": "tea"}]\n')
    for line in ("vocab array --output v", "classify train array --output m"):
        assert "array is a JSON array; write one JSON object per line" in cli.error(line)
