"""One pass over a corpus: text is read, tokenized, counted, and stored as provisional IDs.

The main thread reads and decompresses; workers encode blocks, each by a hash table of its words.
The main thread merges these tables in the order of the blocks (`DistinctWords`).
"""

import codecs
import functools
import re
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.declarations import ENCODING_ERRORS
from dcme_w2v.errors import CorpusError, warn, without_secrets
from dcme_w2v.formats.corpus import Block, Corpus
from dcme_w2v.formats.sentences import Sentences
from dcme_w2v.numeric.arrays import I64, U32
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import fresh_memory
from dcme_w2v.training.progress import Reporter

from .cache import ID_BYTES, IdCache
from .distinct_words import DistinctWords
from .raw_text import SAMPLE_BYTES, refuse_vectors, warn_of_raw_text
from .select_vocabulary import Given, InitialWords, starting_table
from .split import HeldOutLines, held_out_counts
from .tokenizer import Tokenizer

# Sentence-final punctuation with closing quotes and brackets, then a space (none in ideographs).
_SENTENCE_END = re.compile(
    rb"([.!?][\"')\]]{0,3}(?:\xe2\x80[\x99\x9d])?)[ \t]+|(\xe3\x80\x82|\xef\xbc[\x81\x9f])"
)
_WITHIN_PARAGRAPH = re.compile(rb"\n(?![ \t\r\f\v]*\n)")  # a line end that no blank line follows


class Encoded(NamedTuple):
    """An encoded block: the table of its words, their IDs in this table, and the line ends."""

    table: core.Table
    ids: U32 | None
    tokens: int
    newlines: int
    newline_first: bool
    bad: int


class Reading:
    """One pass over a corpus: workers encode blocks, and their IDs are cached in order."""

    def __init__(
        self,
        corpus: Corpus | Sentences,
        options: VocabularyOptions,
        threads: int = 1,
        reporter: Reporter | None = None,
        *,
        cache: IdCache | None = None,
        given: Given = None,
        may_drop: bool = True,
        is_looked_at: bool = True,
    ) -> None:
        errors = ENCODING_ERRORS.index(options.encoding_errors)
        self.refuse = core.REFUSE_BROKEN if errors == 0 else core.REFUSE_NUL
        self.corpus, self.options = corpus, options
        self._is_looked_at = is_looked_at  # warn about text that is not plain
        self.tokenizer, self.is_split = Tokenizer(options), options.sentences == "split"
        self.threads, self.reporter, self.cache = threads, reporter or Reporter(), cache
        adds = given is None or (isinstance(given, InitialWords) and given.adds)
        self._of_table = functools.partial(
            DistinctWords, errors, may_drop=may_drop and not corpus.is_read_once
        )
        self.words = self._of_table(starting_table(given), only_known=not adds)
        self._buffers: list[U32] = []  # for the IDs of a block
        self._tables: list[core.Table] = []  # empty, for reuse
        self.held_out: I64 | None = None  # counts by ID
        self.held_out_tokens = 0

    def run(self, holdout: HeldOutLines | None = None) -> None:
        """Count the words, and store their IDs if there is a cache.

        If memory was too small for all words, the corpus is read again to count exactly the words
        that may occur often enough.
        """
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
        """Read all blocks and count their words; at most two per worker are pending."""
        self.numbering, self.tokens, self._file, self._lines = core.Renumbering(), 0, 0, 0
        if self.cache:
            self.cache.length = 0
        self.reporter.stage("reading", self.corpus.bytes_total, "bytes")
        pending: deque[tuple[Block, Future[Encoded]]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for number, block in enumerate(self.corpus):
                    if self._is_looked_at and number == 0:
                        name, start = self.corpus.paths[0], bytes(block.text[:SAMPLE_BYTES])
                        refuse_vectors(name, start)
                        warn_of_raw_text(name, start, not self.tokenizer.is_whitespace)
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
        core.release_freed()  # return the blocks' memory before the next step needs its own
        self._is_looked_at = False
        if not self.tokens:
            raise CorpusError(
                f"{', '.join(self.corpus.paths[:3])}: has no tokens; give a file with text"
            )

    def _encode(self, block: Block, table: core.Table) -> Encoded:
        """Encode a block by a word table of its own; runs in a worker."""
        text: bytes | memoryview = block.text
        if self.is_split and not block.is_tokenized:
            text = _SENTENCE_END.sub(rb"\g<0>\n", bytes(text))
        elif self.options.sentences == "paragraphs":
            # the line end of the block before, whose next line is here
            before = b"\n" * (block.offset > 0 and not block.within_line)
            text = _WITHIN_PARAGRAPH.sub(b" ", before + bytes(text)) + b"\n" * block.is_last
        if not (block.is_tokenized or self.tokenizer.is_whitespace):
            text, _ = self.tokenizer.tokenize(text)
        ids = self._buffer(len(text) // 2 + 1) if self.cache else None
        tokens, newlines, newline_first, bad = table.encode(text, self.refuse, ids)
        if text is not block.text:  # convert to positions before tokenizing
            newlines = bytes(block.text).count(b"\n")
            bad = -1 if bad < 0 else _first_bad(bytes(block.text), self.refuse)
        return Encoded(table, ids, tokens, newlines, newline_first, bad)

    def _buffer(self, size: int) -> U32:
        """Return memory for `size` IDs, which `_finish` takes back."""
        try:
            kept = self._buffers.pop()
        except IndexError:  # perhaps because another worker was first
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
            return f"{where} is UTF-16; convert the file, as by iconv -f UTF-16 -t UTF-8"
        if block.text[bad] == 0:
            return f"{where} is NUL, so the file is binary or UTF-16; give UTF-8 text"
        return f"{where} is not UTF-8; convert the file, or use --encoding-errors=replace or skip"

    def _exclude(self, lines: HeldOutLines, cache: IdCache) -> None:
        """Count the tokens in held-out lines, which `counts` subtracts."""
        self.held_out = held_out_counts(cache, len(self.words), lines)
        self.held_out_tokens = int(self.held_out.sum())
        if not self.held_out_tokens:
            raise CorpusError(
                f"no line of {', '.join(self.corpus.paths[:3])} was held out; give a larger share, "
                "or a file of its own, to --holdout"
            )

    def counts(self) -> I64:
        """Return the counts of `words.table`, without held-out lines."""
        counts = self.words.table.counts()
        if self.held_out is not None:
            length = min(len(counts), len(self.held_out))
            counts[:length] -= self.held_out[:length]
        return counts

    def types(self, counts: I64) -> int:
        """Return the number of distinct words; `counts` are those of the method `counts`."""
        return int(np.count_nonzero(counts)) + self.words.dropped

    def figures(self, counts: I64, kept: int, started: float) -> dict[str, Any]:
        """Return the fields of `CountedCorpus` without the vocabulary."""
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
    """Return the warning about dropped words."""
    return (
        f"memory is too small for all distinct words, so words that occur fewer than {least:,} "
        f"times were dropped, as by --min-count {least}; to keep them, count parts of the "
        "corpus with dcme-w2v vocab, then merge the counts"
    )


def _first_bad(text: bytes, refuse: int) -> int:
    """Return the position of the first byte that is NUL or not UTF-8."""
    found = [text.find(b"\0")]
    try:
        text.decode()
    except UnicodeDecodeError as error:
        found += [error.start] if refuse == core.REFUSE_BROKEN else []
    return min((place for place in found if place >= 0), default=0)
