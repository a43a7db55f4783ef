"""Encoding against plain Python, for any text, block size and number of threads."""

import codecs
import errno
import io
import re
import resource
import sys
import tempfile
import threading
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dcme_w2v.errors import CorpusError, OutOfMemoryError, ResourceError
from dcme_w2v.files import space
from dcme_w2v.files.opening import MAGIC
from dcme_w2v.formats.corpus import Sentences
from dcme_w2v.formats.vocabulary import Vocabulary, Words
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text import cache, reading
from dcme_w2v.text.cache import HeldOutLines
from dcme_w2v.text.encode import count, encode
from dcme_w2v.text.select_vocabulary import InitialWords
from dcme_w2v.training.progress import Reporter

LAST = 1 << 31
MARK = b"\xef\xbb\xbf"
ALL = VocabularyOptions(min_count=1)

# Among the words: a no-break space, an ideographic space, a file separator, a next-line character.
PIECES = [b"a", b"b", b"sevenxy", b"eightxyz", b"nine12345", b"y" * 70, b"\x1c", b"\x0e", b"\x08"]
PIECES += [piece.encode() for piece in ("ż", "\u00a0", "\u3000", "\u0085")]
GAPS = [b" ", b"\t", b"\n", b"\r\n", b"\v", b"\f", b"\n\n", b" \n ", b" " * 70]
TEXTS = st.lists(st.sampled_from(PIECES + GAPS) | st.sampled_from(GAPS)).map(b"".join)
MAGICS = tuple(start for starts in MAGIC.values() for start in starts)
RAW = TEXTS | st.binary().map(lambda data: data.replace(b"\0", b" ")).filter(
    lambda data: not data.startswith(MAGICS) and not data.lstrip().startswith(b"[{")
)
FILES = st.lists(TEXTS, min_size=1, max_size=3)
LIMITS = {"min_count": st.integers(1, 3), "max_vocab": st.none() | st.integers(1, 4)}
RUNS = {"block_bytes": st.integers(1, 64) | st.just(4096), "threads": st.integers(1, 3)}


@pytest.fixture(autouse=True, scope="module")
def short_pieces():
    """Short texts have many pieces."""
    before, cache.PIECE = cache.PIECE, 50
    yield
    cache.PIECE = before


def respell(word, errors):
    try:
        return word.decode().encode()
    except UnicodeDecodeError:
        return word.decode("utf-8", "replace").encode() if errors == "replace" else None


def oracle(texts, options):
    raw = [line.split() for text in texts for line in text.removeprefix(MARK).split(b"\n")]
    lines = [[respell(word, options.encoding_errors) for word in line] for line in raw]
    counts = Counter(word for line in lines for word in line if word is not None)
    kept = [row for row in counts.most_common() if row[1] >= options.min_count][: options.max_vocab]
    number = {word: i for i, (word, _) in enumerate(kept)}
    ids = []
    for line in lines:
        found = [number[word] for word in line if word in number]
        ids += found[:-1] + [i | LAST for i in found[-1:]]
    return kept, ids, sum(map(len, raw)), len(counts), sum(map(bool, raw))


def words_of(vocabulary):
    return [(w.encode(), n) for w, n in zip(vocabulary, vocabulary.counts.tolist(), strict=True)]


def write(*texts, folder=Path()):
    paths = [folder / f"{i}.txt" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_bytes(text)
    return [str(path) for path in paths]


def check(texts, options, block_bytes, threads):
    """Compare both functions with the oracle; return what was encoded."""
    kept, ids, tokens, types, lines = oracle(texts, options)
    run = {"threads": threads, "_block_bytes": block_bytes}
    with tempfile.TemporaryDirectory() as folder:
        paths = write(*texts, folder=Path(folder))
        if not kept:
            with pytest.raises(CorpusError):
                encode(paths, options, **run)
            return None
        counted = count(paths, options, **run)
        encoded = encode(paths, options, **run)
        assert words_of(encoded.vocabulary) == words_of(counted.vocabulary) == kept
        assert encoded.ids.tolist() == ids
        assert encoded.counts.tolist() == [n for _, n in kept]
        assert (encoded.tokens, encoded.types, encoded.lines) == (tokens, types, lines)
        assert encoded.tokens == len(encoded.ids) + encoded.out_of_vocabulary
    for name in ("tokens", "types", "out_of_vocabulary", "replaced", "skipped"):
        assert getattr(counted, name) == getattr(encoded, name)
    return encoded


@given(texts=FILES, **LIMITS, **RUNS)
@example(texts=[b"a b\n"], min_count=1, max_vocab=None, block_bytes=2, threads=2)
@example(texts=[b"a", b"a"], min_count=1, max_vocab=None, block_bytes=64, threads=1)
@example(texts=[b"a ", b"b"], min_count=1, max_vocab=None, block_bytes=1, threads=1)
@example(texts=[MARK + b"a " + MARK], min_count=1, max_vocab=None, block_bytes=1, threads=1)
@example(texts=[b"a" + b" " * 200 + b"\na"], min_count=1, max_vocab=None, block_bytes=9, threads=1)
def test_encoding_equals_plain_python(texts, min_count, max_vocab, block_bytes, threads):
    options = VocabularyOptions(min_count=min_count, max_vocab=max_vocab)
    check(texts, options, block_bytes, threads)


@pytest.mark.filterwarnings("ignore:.*carriage returns within")
@given(text=RAW, errors=st.sampled_from(["replace", "skip"]), **RUNS)
@example(text=b"\xe9 \xff \xe9", errors="replace", block_bytes=2, threads=2)
@example(text=b"\xf0\x90\x80 \xed\xa0\x80", errors="replace", block_bytes=4096, threads=1)
@example(text=b"\xff \xff\n\xff a", errors="skip", block_bytes=4096, threads=1)
def test_tokens_that_are_not_utf8(text, errors, block_bytes, threads):
    options = VocabularyOptions(min_count=1, encoding_errors=errors)
    encoded = check([text], options, block_bytes, threads)
    if encoded:
        broken = sum(respell(word, "skip") is None for word in text.removeprefix(MARK).split())
        expected = (broken, 0) if errors == "replace" else (0, broken)
        assert (encoded.replaced, encoded.skipped) == expected


@pytest.mark.parametrize("errors", ["replace", "skip"])
@pytest.mark.parametrize("block_bytes", [5000, 1 << 20])
def test_many_words_some_of_them_not_utf8(errors, block_bytes):
    """More than the initial size of a table or one batch of look-ups; invalid ones become equal."""
    words = [b"%x\xff" % (i % 500) if i % 7 == 0 else b"%x" % (i // 2) for i in range(90_000)]
    options = VocabularyOptions(min_count=1, encoding_errors=errors)
    encoded = check([b" ".join(words)], options, block_bytes, threads=2)
    assert encoded.types > 35_000
    assert encoded.replaced + encoded.skipped == -(-90_000 // 7)


@pytest.mark.filterwarnings("ignore:.*carriage returns within")
@given(text=RAW, **RUNS)
@example(text=b"fine\nb\xc0\x80d", block_bytes=4, threads=2)
@example(text=b"a\na\xf4\x90\x80\x80 \xff", block_bytes=4, threads=2)
@example(text=b"a\n\n\xed\xa0\x80", block_bytes=64, threads=1)
@example(text=b"a \xe0\x80\xaf", block_bytes=64, threads=1)
@example(text=b"\xfe\xff", block_bytes=64, threads=1)
def test_strict_names_the_first_bad_byte(tmp_path_factory, text, block_bytes, threads):
    path = tmp_path_factory.getbasetemp() / "strict"
    path.write_bytes(text)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        line = 1 + text.count(b"\n", 0, error.start)
        with pytest.raises(CorpusError) as raised:
            count([str(path)], ALL, threads=threads, _block_bytes=block_bytes)
        kind, advice = "not UTF-8", " to UTF-8, or use encoding_errors=replace or"
        if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            kind, advice = "UTF-16", ", for example with iconv -f UTF-16 -t UTF-8"
        place = f"strict: byte {error.start} (line {line})"
        assert f"{place} is {kind}; convert the file{advice}" in str(raised.value)
    else:
        check([text], ALL, block_bytes, threads)


def test_positions_are_counted_per_file():
    paths = write(b"a\nb\n", MARK + b"a\nb\xff")
    with pytest.raises(CorpusError, match=r"1\.txt: byte 6 \(line 2\) is not UTF-8"):
        count(paths, ALL, _block_bytes=2)


def test_word_of_a_million_bytes():
    long = "ż".encode() * 500_000
    encoded = encode(write(b"a " + long + b" " + long), ALL, _block_bytes=1000)
    assert words_of(encoded.vocabulary) == [(long, 2), (b"a", 1)]


def test_given_vocabulary_keeps_its_order_and_counts():
    given_words = Vocabulary.from_counts({"x": 9, "b": 8, "a": 7, "rare": 1})
    paths = write(b"a a new b\nrare new\na")
    options = VocabularyOptions(min_count=2)
    encoded = encode(paths, options, vocabulary=given_words, threads=2, _block_bytes=3)
    assert words_of(encoded.vocabulary) == [(b"x", 9), (b"b", 8), (b"a", 7)]
    assert encoded.ids.tolist() == [2, 2, 1 | LAST, 2 | LAST]
    assert encoded.counts.tolist() == [0, 1, 3]
    assert (encoded.tokens, encoded.types, encoded.lines) == (7, 4, 3)
    assert encoded.out_of_vocabulary == 3


def test_an_interrupt_ends_the_threads():
    before, paths = threading.active_count(), write(b"a " * 1000)

    class Interrupting(Reporter):
        def advance(self, done, **fields):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(paths, ALL, threads=3, reporter=Interrupting(), _block_bytes=10)
    assert threading.active_count() == before


def test_cache_has_no_name_and_is_mapped_read_only(monkeypatch):
    folder = Path("cache")
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", "cache")
    paths = write(b"a a a b")
    encoded = encode(paths, VocabularyOptions(min_count=2))
    assert list(folder.iterdir()) == []
    assert isinstance(encoded.ids, np.memmap)
    assert encoded.ids.dtype == np.uint32
    with pytest.raises(ValueError, match="read-only"):
        encoded.ids[0] = 1


@pytest.mark.parametrize("run", [count, encode])
def test_counting_ends_before_memory_does(monkeypatch, run):
    monkeypatch.setattr(space, "memory_limit", lambda: 10_000)
    monkeypatch.setattr(reading, "memory_for", lambda held: 10_000)
    paths = write(b" ".join(b"word%d" % n for n in range(20_000)))
    with pytest.raises(OutOfMemoryError, match=r"distinct words requires .* count parts"):
        run(paths, ALL, _block_bytes=1_000)


@pytest.mark.parametrize(
    "threads, more",
    [
        (1, {}),
        (3, {}),
        (1, {"vocabulary": Vocabulary.from_counts({"w1": 9, "never": 5, "w39999": 1})}),
        (3, {"vocabulary": InitialWords(Words.from_words(["never", "w9"]), None, adds=True)}),
        (3, {"holdout": HeldOutLines(0.2, 7)}),
        (1, {"unk": "<unk>"}),
        (3, {"unk": "w7", "holdout": HeldOutLines(0.2, 7)}),
        (1, {"unk": "<unk>", "vocabulary": Vocabulary.from_counts({"w1": 9, "w39999": 1})}),
    ],
)
def test_the_rarest_words_are_dropped_before_memory_ends(monkeypatch, threads, more):
    """The vocabulary is that of a higher --min-count, with exact counts."""
    numbers = (np.random.default_rng(5).zipf(1.2, 40_000) % 40_000).tolist()
    numbers[-1500:] = [39_001] * 1500  # which has been dropped before
    numbers[100:2000:100] = [39_001] * 19
    words = [b"w%d" % n if n % 50 else b"w\xff%d" % (n // 7) for n in numbers]
    paths = write(b"\n".join(b" ".join(words[i : i + 9]) for i in range(0, len(words), 9)))
    options = VocabularyOptions(min_count=2, encoding_errors="replace")
    run = {"threads": threads, "_block_bytes": 10_000}
    whole = encode(paths, options, **run, **more)
    is_known = isinstance(more.get("vocabulary"), Vocabulary)
    with monkeypatch.context() as few, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        few.setattr(reading, "memory_for", lambda held: 1_200_000)
        again = encode(paths, options, **run, **more)
        counted = count(paths, options, **run)
    said = re.compile(r"fewer than (\d+) times .* min_count \1; .*count parts")
    least = [int(said.search(str(one.message))[1]) for one in caught]
    assert len(least) == (1 if is_known else 2) and 2 < min(least) <= max(least) < 100
    wanted = whole
    if not is_known:
        wanted = encode(paths, replace(options, min_count=least[0]), **run, **more)
    names = ("tokens", "out_of_vocabulary", "replaced", "lines", "held_out_tokens", "unk_tokens")
    for name in names:
        assert getattr(again, name) == getattr(wanted, name), name
    assert dict(again.vocabulary.items()) == dict(wanted.vocabulary.items())
    for name in ("ids", "held_out"):
        kept = [texts_of(one.vocabulary, getattr(one, name)) for one in (again, wanted)]
        assert kept[0] == kept[1]
    frequent = count(paths, replace(options, min_count=least[-1]), **run)
    assert dict(counted.vocabulary.items()) == dict(frequent.vocabulary.items())
    assert counted.types >= frequent.types and isinstance(counted.types, int)  # as JSON needs it


def texts_of(vocabulary, ids):
    """Return the words of encoded lines, and which of them end a line."""
    words = list(vocabulary)
    return [(words[number & (LAST - 1)], number >= LAST) for number in ids.tolist()]


@pytest.mark.parametrize("run", [count, encode])
def test_words_of_a_stream_are_dropped_as_those_of_a_file(monkeypatch, run):
    """It is kept in a temporary file to be read again, as long as that can be written."""
    monkeypatch.setattr("dcme_w2v.formats.corpus.BLOCK_BYTES", 50_000)
    numbers = (np.random.default_rng(5).zipf(1.2, 300_000) % 150_000).tolist()
    lines = [" ".join(f"w{n}" for n in numbers[i : i + 50]) for i in range(0, len(numbers), 50)]
    whole = run(Sentences(iter(lines)), ALL)
    monkeypatch.setattr(reading, "memory_for", lambda held: 7_000_000)
    found = []
    for text in (iter(lines), lines):
        with pytest.warns(UserWarning, match="fewer than") as caught:
            found.append(dict(run(Sentences(text), ALL).vocabulary.items()))
    least = int(re.search(r"fewer than (\d+) times", str(caught[0].message))[1])
    wanted = {word: count for word, count in whole.vocabulary.items() if count >= least}
    assert least > 1 and found == [wanted, wanted]
    monkeypatch.setattr("tempfile.TemporaryFile", Mock(side_effect=OSError(28, "full")))
    with pytest.raises(ResourceError, match=r"could not be stored for a second pass \(full\)"):
        count(Sentences(iter(lines)), ALL)


def test_a_limit_of_addresses_is_named(monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(np, "memmap", refuse)
    with pytest.raises(OutOfMemoryError, match=r"id cache \(0\.0 MB\) .*ulimit -v"):
        encode(write(b"a b a"), ALL)


def test_a_full_cache_folder(monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", ".")
    paths = write(b"a b c d\n" * 10_000)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
    try:
        with pytest.raises(ResourceError) as raised:
            encode(paths, ALL, _block_bytes=10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    message = str(raised.value)
    assert message.startswith(".: the id cache cannot be written: ")
    assert message.endswith("more than 0.1 MB: raise the file-size limit (ulimit -f)")


def test_standard_input_and_files_in_order(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    first, second = write(b"zero", b"three")
    encoded = encode([first, "-", second], ALL)
    assert list(encoded.vocabulary) == ["zero", "one", "two", "three"]
    assert encoded.files == [
        {"path": first, "size": 4},
        {"path": "-", "size": None},
        {"path": second, "size": 5},
    ]
