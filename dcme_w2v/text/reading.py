"""Read a corpus in one pass: tokenize it, count its words, and store temporary word IDs.

The main thread reads and decompresses; workers encode blocks, each by a hash table of its words.
The main thread merges these tables in the order of the blocks (`DistinctWords`).
"""

import codecs
import contextlib
import csv
import functools
import re
import tempfile
import time
from bisect import bisect
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.declarations import ENCODING_ERRORS
from dcme_w2v.errors import CorpusError, ResourceError, warn, without_secrets
from dcme_w2v.files.atomic import temporary_folder
from dcme_w2v.files.opening import fill
from dcme_w2v.files.space import memory_for, require_memory
from dcme_w2v.formats.columns import is_named_csv, shown_names
from dcme_w2v.formats.corpus import Block, Corpus, Sentences
from dcme_w2v.numeric.arrays import I64, U32
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import fresh_memory
from dcme_w2v.training.progress import Reporter

from .cache import ID_BYTES, HeldOutLines, IdCache, held_out_counts
from .select_vocabulary import Given, InitialWords
from .tokenizer import Tokenizer

# Matches the end of a sentence; except in CJK text, a space must follow the punctuation.
_SENTENCE_END = re.compile(
    rb"([.!?][\"')\]]{0,3}(?:\xe2\x80[\x99\x9d])?)[ \t]+|(\xe3\x80\x82|\xef\xbc[\x81\x9f])"
)
_WITHIN_PARAGRAPH = re.compile(rb"\n(?![ \t\r\f\v]*\n)")  # a line end that does not end a paragraph


class Encoded(NamedTuple):
    """A block of text as word IDs, with a table of the words and the number of line ends."""

    table: core.Table
    ids: U32 | None
    tokens: int
    newlines: int
    newline_first: bool
    bad: int


class Reading:
    """Read a corpus in one pass; threads encode blocks, and the IDs are cached in order."""

    def __init__(
        self,
        corpus: Corpus | Sentences,
        options: VocabularyOptions,
        threads: int = 1,
        reporter: Reporter | None = None,
        *,
        cache: IdCache | None = None,
        given: Given = None,
        is_looked_at: bool = True,
    ) -> None:
        errors = ENCODING_ERRORS["choices"].index(options.encoding_errors)
        self.refuse = core.REFUSE_BROKEN if errors == 0 else core.REFUSE_NUL
        self.corpus, self.options = corpus, options
        self._is_looked_at = is_looked_at  # whether to warn if the corpus is not plain text
        self.tokenizer, self.is_split = Tokenizer(options), options.sentences == "split"
        self.threads, self.reporter, self.cache = threads, reporter or Reporter(), cache
        adds = given is None or (isinstance(given, InitialWords) and given.adds)
        self._of_table = functools.partial(DistinctWords, errors)
        known = given.words if isinstance(given, InitialWords) else given
        table = core.Table() if known is None else known.new_table()
        self.words = self._of_table(table, only_known=not adds)
        self._buffers: list[U32] = []  # reusable arrays for the word IDs of blocks
        self._tables: list[core.Table] = []  # reusable empty word tables
        self._kept: KeptBlocks | None = None  # stored blocks of a source that can be read only once
        # Number of tokens in held-out lines for each word ID.
        self.held_out: I64 = np.zeros(0, dtype=np.int64)
        self.held_out_tokens = 0

    def run(self, holdout: HeldOutLines | None = None) -> None:
        """Count the words and, if there is a cache, store their IDs.

        If memory was too small for all words, the corpus is read again to count exactly the words
        that may occur often enough.
        """
        is_once = self.corpus.is_read_once
        with KeptBlocks() if is_once else contextlib.nullcontext() as self._kept:
            self.read()
            if self.words.below:
                known = self.words.candidates(self.options.min_count)
                least = self.words.below + 1
                self.options = replace(self.options, min_count=max(self.options.min_count, least))
                self.words = self._of_table(known, only_known=True)
                self.read()
                warn(dropped_line(least))
        if holdout and self.cache:
            self._exclude(holdout, self.cache)

    def read(self) -> None:
        """Read all blocks and count their words; at most two blocks per thread are pending."""
        self.numbering, self.tokens, self._file, self._lines = core.Renumbering(), 0, 0, 0
        if self.cache:
            self.cache.length = 0
        self.reporter.stage("reading", self.corpus.bytes_total, "bytes")
        pending: deque[tuple[Block, Future[Encoded]]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                blocks = self._kept.of(self.corpus) if self._kept else self.corpus
                for number, block in enumerate(blocks):
                    if self._is_looked_at and number == 0:
                        name, start = self.corpus.paths[0], bytes(block.text[:SAMPLE_BYTES])
                        check_sample(name, start, not self.tokenizer.is_whitespace)
                    table = self._tables.pop() if self._tables else core.Table()
                    pending.append((block, pool.submit(self._encode, block, table)))
                    if len(pending) > 2 * self.threads:
                        self._finish(*pending.popleft())
                    self.reporter.advance(block.bytes_read)
                while pending:
                    self._finish(*pending.popleft())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        core.release_freed()  # return the memory of the freed blocks to the system
        self._is_looked_at = False
        if not self.tokens:
            raise CorpusError(
                f"{', '.join(self.corpus.paths[:3])} contains no tokens; use a file that "
                "contains text"
            )

    def _encode(self, block: Block, table: core.Table) -> Encoded:
        """Encode a block with its own word table, in a worker thread."""
        text: bytes | memoryview = block.text
        if self.is_split and not block.is_tokenized:
            text = _SENTENCE_END.sub(rb"\g<0>\n", bytes(text))
        elif self.options.sentences == "paragraphs":
            # Prepend the previous block's line end: it ends a paragraph if a blank line follows.
            before = b"\n" * (block.offset > 0 and not block.within_line)
            text = _WITHIN_PARAGRAPH.sub(b" ", before + bytes(text)) + b"\n" * block.is_last
        if not (block.is_tokenized or self.tokenizer.is_whitespace):
            text, _ = self.tokenizer.tokenize(text)
        ids = self._buffer(len(text) // 2 + 1) if self.cache else None
        tokens, newlines, newline_first, bad = table.encode(text, self.refuse, ids)
        # `newlines` and `bad` describe the changed text, so recompute them for the original text.
        if text is not block.text:
            newlines = bytes(block.text).count(b"\n")
            bad = -1 if bad < 0 else _first_bad(bytes(block.text), self.refuse)
        return Encoded(table, ids, tokens, newlines, newline_first, bad)

    def _buffer(self, size: int) -> U32:
        """Return an array of at least `size` IDs, which `_finish` later collects for reuse."""
        try:
            kept = self._buffers.pop()
        except IndexError:  # no buffer is free
            kept = np.empty(0, dtype=np.uint32)
        if len(kept) >= size:
            return kept
        return np.frombuffer(fresh_memory(ID_BYTES * size), dtype=np.uint32)

    def _finish(self, block: Block, future: Future[Encoded]) -> None:
        found = future.result()
        if block.file != self._file:
            self._file, self._lines = block.file, 0
        if found.bad >= 0:
            raise CorpusError(self._encoding_error(block, found.bad))
        map = self.words.merge(found.table)
        found.table.clear()
        self._tables.append(found.table)
        self._lines += found.newlines
        self.tokens += found.tokens
        if self.cache and found.ids is not None and not self.words.below:
            ids, to = found.ids, self._buffer(found.tokens + 1)
            written = self.numbering.add(ids[: found.tokens], map, found.newline_first, to)
            self.cache.write(self.cache.length, to[:written])
            self._buffers += [ids, to]

    def _encoding_error(self, block: Block, bad: int) -> str:
        line = 1 + self._lines + bytes(block.text[:bad]).count(b"\n")
        where = f"{self.corpus.paths[block.file]}: byte {block.offset + bad}"
        if isinstance(self.corpus, Sentences) or not self.corpus.spans[block.file].begin:
            where += f" (line {line})"
        marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        if block.offset == 0 and bytes(block.text[:2]) in marks:
            return f"{where} is UTF-16; convert the file, for example with iconv -f UTF-16 -t UTF-8"
        if block.text[bad] == 0:
            return (
                f"{where} is a NUL byte, so the file is probably binary or UTF-16; use UTF-8 text"
            )
        return (
            f"{where} is not UTF-8; convert the file to UTF-8, or use --encoding-errors=replace or "
            "skip"
        )

    def _exclude(self, lines: HeldOutLines, cache: IdCache) -> None:
        """Count the tokens in held-out lines, so that `counts` can subtract them."""
        self.held_out = held_out_counts(cache, len(self.words), lines)
        self.held_out_tokens = int(self.held_out.sum())
        if not self.held_out_tokens:
            raise CorpusError(
                f"no line in {', '.join(self.corpus.paths[:3])} was held out; set --holdout to a "
                "larger fraction, or use a held-out file"
            )

    def counts(self) -> I64:
        """Return the word counts of `words.table`, without the tokens in held-out lines."""
        counts = self.words.table.counts()
        length = min(len(counts), len(self.held_out))
        counts[:length] -= self.held_out[:length]
        return counts

    def types(self, counts: I64) -> int:
        """Return the number of distinct words, given the counts that `counts` returned."""
        return int(np.count_nonzero(counts)) + self.words.dropped

    def figures(self, counts: I64, kept: int, started: float) -> dict[str, Any]:
        """Return all fields of `CountedCorpus` other than the vocabulary."""
        files = zip(self.corpus.paths, self.corpus.sizes, strict=True)
        return {
            "tokens": self.tokens,
            "types": self.types(counts),
            "out_of_vocabulary": self.tokens - kept - self.held_out_tokens,
            "replaced": self.words.replaced,
            "skipped": self.words.skipped,
            "files": [{"path": without_secrets(path), "size": size} for path, size in files],
            "seconds": time.perf_counter() - started,
            "counting_bytes": self.words.most_bytes,
        }


def dropped_line(least: int) -> str:
    """Return the warning that words with fewer than `least` occurrences were dropped."""
    return (
        f"memory is too small for all distinct words, so words that occur fewer than {least:,} "
        f"times were dropped, as by --min-count {least}; to keep them, count parts of the "
        "corpus with dcme-w2v vocab, then merge the counts"
    )


def _first_bad(text: bytes, refuse: int) -> int:
    """Return the offset of the first NUL byte, or of the first invalid UTF-8 byte if refused."""
    found = [text.find(b"\0")]
    try:
        text.decode()
    except UnicodeDecodeError as error:
        found += [error.start] if refuse == core.REFUSE_BROKEN else []
    return min((place for place in found if place >= 0), default=0)


# Rare words are dropped if counting needs more than FULL_SHARE of the available memory.
# Words are dropped only if their table takes more than HELD_SHARE of the available memory.
FULL_SHARE, HELD_SHARE = 1 / 2, 1 / 8
SELECTION_BYTES = 28  # bytes per distinct word for its count, lost count, ID and position


class DistinctWords:
    """Collect and count the distinct words of all blocks.

    Parameters
    ----------
    errors : int
        Index of ``encoding_errors`` among its choices.
    table : core.Table
        Words that are never dropped, with counts of zero.
    only_known : bool
        Whether only the words of `table` matter, so that all others may be dropped.

    Attributes
    ----------
    table : core.Table
        The words in the order of their first appearance, known words first. With `only_known`, the
        IDs of other words do not last.
    below : int
        Words that occur more often than this were not dropped.
    replaced, skipped : int
        Tokens that are not UTF-8, replaced by U+FFFD or skipped.
    most_bytes : int
        Largest memory of the tables.
    dropped : int
        Number of words that were dropped; a word may have been dropped more than once.
    lost : int
        Number of their tokens, with `only_known`.
    """

    def __init__(self, errors: int, table: core.Table, *, only_known: bool) -> None:
        self.table, self.known = table, len(table)
        self.replaced = self.skipped = self.most_bytes = self.dropped = self.below = self.lost = 0
        self._errors, self._only_known = errors, only_known
        # Maximum number of lost tokens for each ID; for later IDs, the maximum is `below`.
        self._lost = np.zeros(self.known, dtype=np.int64)
        self._most = self._blocks = self._full = 0

    def __len__(self) -> int:
        """Return one more than the highest ID that any word has had so far."""
        return max(self._most, len(self.table))

    def merge(self, table: core.Table) -> U32:
        """Add the words of a block; return each word's ID, or `core.NONE` for a skipped word."""
        # Drop rare words if this block's words do not fit in memory; the first block always fits.
        block, held = table.bytes(0), self.table.bytes(0)
        needed, limit = block + self.table.bytes(len(table)), memory_for(block + held)
        full = needed + SELECTION_BYTES * len(self.table) > FULL_SHARE * limit
        if len(self.table) > self.known and full and held > HELD_SHARE * limit:
            self.drop()
            needed = block + self.table.bytes(len(table))
        self.most_bytes = max(self.most_bytes, needed)
        if needed > limit and self._blocks:
            require_memory(
                needed,
                f"counting more than {len(self.table):,} distinct words",
                "count parts of the corpus with dcme-w2v vocab, and merge them",
            )
        ids = np.empty(len(table), dtype=np.uint32)
        replaced, skipped = self.table.merge(table, 0, len(table), self._errors, ids)
        self.replaced += replaced
        self.skipped += skipped
        self._blocks += 1
        return ids

    def _highest(self) -> I64:
        """Return upper bounds on word counts, because counts are lost when words are dropped."""
        new = np.full(len(self.table) - len(self._lost), self.below, dtype=np.int64)
        return self.table.counts() + np.concatenate([self._lost, new])

    def drop(self) -> None:
        """Drop the rarer half of the words or, if only known words matter, all other words."""
        self._most = len(self)
        self._full = count = len(self.table)
        if self._only_known:
            kept = np.arange(self.known)
            self.lost += int(self.table.counts()[self.known :].sum())
        else:
            highest = self._highest()
            rest = highest[self.known :]
            self.below = int(np.partition(rest, len(rest) // 2)[len(rest) // 2])
            kept = np.flatnonzero((highest > self.below) | (np.arange(count) < self.known))
            self._lost = (highest - self.table.counts())[kept]
        self.dropped += count - len(kept)
        self.table = _of(self.table, kept, self.table.counts()[kept])
        core.release_freed()

    def candidates(self, least: int) -> core.Table:
        """Return a table, with zero counts, of known words and words that may occur `least` times.

        It has at most half as many words as the table that did not fit into memory.
        """
        often = self._highest() >= max(least, self.below + 1)
        if 2 * np.count_nonzero(often[self.known :]) > self._full:
            self.drop()
            often = self._highest() >= max(least, self.below + 1)
        kept = np.flatnonzero(often | (np.arange(len(often)) < self.known))
        return _of(self.table, kept, np.zeros(len(kept), dtype=np.int64))


def _of(table: core.Table, ids: I64, counts: I64) -> core.Table:
    found = core.Table()
    if len(ids):
        found.add(*table.words(ids), counts)
    return found


class KeptBlocks(AbstractContextManager["KeptBlocks"]):
    """Keep the blocks of a stream in a temporary file, so that they can be read again.

    If the file cannot be written, reading continues without it.
    """

    def __init__(self) -> None:
        # Each block without its text, and the size of this text in bytes.
        self._blocks: list[tuple[Block, int]] = []
        self._is_whole, self._error = False, ""
        self._file: Any = None

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def of(self, corpus: Corpus | Sentences) -> Iterator[Block]:
        """Yield a corpus's blocks, which are read from the temporary file once it is complete."""
        if self._error and self._is_whole:
            raise ResourceError(
                f"{corpus.paths[0]}: the distinct words do not all fit in memory, and the text "
                f"could not be stored for a second pass ({self._error}); use a regular file as "
                "input"
            )
        if self._is_whole:
            self._file.seek(0)
            for block, length in self._blocks:
                text = memoryview(bytearray(length))
                fill(self._file, text)
                yield replace(block, text=text)
            return
        for block in corpus:
            self._keep(block)
            yield block
        self._is_whole = True

    def _keep(self, block: Block) -> None:
        if self._error:
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=temporary_folder(), buffering=0)  # noqa: SIM115
            rest = block.text
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            self._error = str(error.strerror)
        self._blocks.append((replace(block, text=memoryview(b"")), len(block.text)))


SAMPLE_BYTES = 1 << 16
MIN_LINES = 5  # minimum number of lines in a sample for detecting structured text
MIN_TOKENS = 200  # minimum number of tokens in a sample for detecting raw text
MIN_STRUCTURED = 0.9  # in structured text, the minimum fraction of lines with the same structure
MIN_NUMBERS = 5  # in vector files, the minimum number of values that follow each word
MIN_MARKED = 0.2  # in markup, the minimum fraction of lines that contain tags
MIN_PUNCTUATED = 0.03  # in raw text, the minimum fraction of tokens that end with punctuation
# In raw text, the minimum fraction of capitalized tokens that also occur in lowercase.
MIN_CAPITALS = 0.005
MIN_CLAUSES = 20  # minimum number of tokens in scripts without spaces, such as Thai, for a warning
# Minimum mean token length for a warning: Thai words, for example, have two to five letters.
MIN_CHARACTERS = 10

_TAG = re.compile(rb"</(?!s>)[a-zA-Z]\w*>|<[a-zA-Z]\w* \w+=|<!doctype |<\?xml ", re.IGNORECASE)
_NUMBERS = re.compile(rf"(?=.*\d\.\d)\S+(?:[ \t]-?\d+(?:\.\d+)?(?:e-?\d+)?){{{MIN_NUMBERS},}}\s*")
_WORD_WITH_PUNCTUATION = re.compile(r"[\"'(]*[^\W\d_]+[.,;:!?)\"']+")
# Code points of scripts that are written without spaces: alternating starts and exclusive ends.
# The ranges cover Thai and Lao, Myanmar, Khmer, kana, and CJK ideographs.
_WITHOUT_SPACES = "\u0e01\u0f00\u1000\u10a0\u1780\u1800\u3041\u3100\u3400\ua000"
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}


def check_sample(name: str, sample: bytes, is_tokenized: bool) -> None:
    """Warn if the start of a corpus does not look like one sentence per line, and suggest a remedy.

    Raw text is expected if a tokenizer reads it, but markup is not.

    Raises
    ------
    CorpusError
        The corpus looks like a vector file: words followed by numbers.
    """
    text = sample.decode("utf-8", "replace")
    lines = [line for line in text.split("\n")[:1000] if line.strip()]
    rows = lines[1:-1]  # skip a possible header in the first line, and an incomplete last line
    widths = {len(row.split()) for row in rows}
    if len(rows) >= MIN_LINES and len(widths) == 1 and all(map(_NUMBERS.fullmatch, rows)):
        raise CorpusError(
            f"{name} contains vectors (a word and numbers per line), not text; use a text file"
        )
    found = _structure(lines) or (None if is_tokenized else _raw(text.split()))
    # Do not warn about NUL bytes and CSV files here, because other checks report them.
    if found is not None and b"\0" not in sample and not is_named_csv(name):
        warn(f"{name}: looks like {found}")


def _structure(lines: Sequence[str]) -> str | None:
    """Describe how lines differ from plain text, with a remedy; return None for plain text."""
    if len(lines) < MIN_LINES:
        return None
    ends = Counter(line.strip()[0] + line.strip()[-1] for line in lines)
    labeled = sum(line.startswith("__label__") for line in lines)
    if labeled >= MIN_STRUCTURED * len(lines):
        return "labeled documents, whose labels would become words; use classify train"
    if ends["[]"] >= MIN_STRUCTURED * len(lines):
        return "JSON lists, whose brackets would become words; write one JSON object per line"
    if lines[0].strip() == "[" and any(line.lstrip().startswith("{") for line in lines[1:2]):
        return (
            "a JSON array, whose keys would become words; write one object per line (jq -c '.[]')"
        )
    marked = sum(_TAG.search(line.encode("utf-8", "replace")) is not None for line in lines)
    if marked >= MIN_MARKED * len(lines):
        return "markup (HTML or XML), whose tags would become words; extract the text first"
    for delimiter, spelled in _DELIMITERS.items():
        if delimiter not in lines[0]:
            continue
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:
            continue
        width, count = Counter(map(len, rows)).most_common(1)[0]
        clauses = sum(any(field[:1] == " " for field in row[1:]) for row in rows)
        if width > 1 and count >= MIN_STRUCTURED * len(rows) and clauses < len(rows) / 2:
            return (
                f"CSV: {width} columns separated by {spelled}, which would become words; select "
                f"the text column with --text-column: {shown_names(rows[0])}; without a header, "
                "leave only the text in the file"
            )
    return None


def _raw(tokens: Sequence[str]) -> str | None:
    """Explain why tokens look like raw text and suggest a remedy; return None if they do not."""
    found = {char for char in set().union(*tokens) if bisect(_WITHOUT_SPACES, char) % 2}
    clauses = [token for token in tokens if not found.isdisjoint(token)]
    if len(clauses) >= MIN_CLAUSES and sum(map(len, clauses)) >= MIN_CHARACTERS * len(clauses):
        return (
            f"text without spaces between words ({clauses[0][:20]} is one word); split it into "
            "words first, or use --tokenize words, which separates ideographs"
        )
    if len(tokens) < MIN_TOKENS:
        return None
    counts = Counter(tokens)
    punctuated = [word for word in counts if _WORD_WITH_PUNCTUATION.fullmatch(word)]
    twins = [word for word in counts if word[:1].isupper() and word.lower() in counts]
    signs = sum(counts[word] for word in punctuated) >= MIN_PUNCTUATED * len(tokens)
    capitals = sum(counts[word] for word in twins) >= MIN_CAPITALS * len(tokens)
    examples = []
    if capitals:
        word = max(twins, key=counts.__getitem__)
        examples.append(f"{word} and {word.lower()}")
    if signs:
        word = max(punctuated, key=counts.__getitem__)
        examples.append(f"{word} and {word.strip(chr(34) + '(,.;:!?)' + chr(39))}")
    if not examples:
        return None
    return f"raw text ({', '.join(examples)} are different words); use --tokenize words"
