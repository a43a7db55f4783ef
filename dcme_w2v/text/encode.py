"""Encoding of a corpus as word ids: the text is read once, counted, and stored as token ids.

The main thread reads and decompresses; each worker assigns provisional ids to the words of a block
by a hash table. After every `ROUND_BLOCKS` blocks, the tables are merged (`DistinctWords`). The few
blocks that are encoded meanwhile have tables of their own.
"""

from __future__ import annotations

import codecs
import re
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.declarations import declaration_of, threads_of
from dcme_w2v.errors import CorpusError, NoWordsError, UsageError
from dcme_w2v.files.disk import free_bytes
from dcme_w2v.formats.columns import with_columns
from dcme_w2v.formats.corpus import BLOCK_BYTES, Block, Corpus
from dcme_w2v.formats.sentences import CorpusLike, Sentences, paths_or_sentences
from dcme_w2v.formats.vocabulary import Vocabulary, Words, check_lengths
from dcme_w2v.numeric.arrays import I64, U32
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import fresh_memory
from dcme_w2v.training.progress import Reporter

from .cache import ID_BYTES, IdCache
from .distinct_words import DistinctWords
from .raw_text import SAMPLE_BYTES, refuse_vectors, warn_of_raw_text
from .reindex import Segment, compact, held_out_counts
from .select_vocabulary import (
    Given,
    ids_of,
    select_vocabulary,
)
from .split import HeldOutLines
from .tokenizer import Tokenizer

ROUND_BLOCKS = 64

# Sentence-final punctuation with quotes and brackets behind it, then space; of ideographs, none.
_SENTENCE_END = re.compile(
    rb"([.!?][\"')\]]{0,3}(?:\xe2\x80[\x99\x9d])?)[ \t]+|(\xe3\x80\x82|\xef\xbc[\x81\x9f])"
)


@dataclass
class CountedCorpus:
    """The counts of one pass over a corpus.

    Attributes
    ----------
    vocabulary : Vocabulary
        The words that are kept.
    tokens, types : int
        Number of tokens and of word types.
    out_of_vocabulary : int
        Tokens that are not in the vocabulary.
    replaced, skipped : int
        Tokens that are not UTF-8, replaced by U+FFFD or skipped.
    truncated : list of str
        Error messages of truncated compressed files that were read as far as possible.
    files : list of dict
        ``path`` and stored ``size`` in bytes of each file, None for streams.
    seconds : float
        Wall time.
    undercount : int
        The most by which a count may be too low, because `max_vocab` bounded the memory of
        counting; 0 if all counts are exact. `types` is then too low, too.
    counting_bytes : int
        Memory of the distinct words while they were counted.
    """

    vocabulary: Vocabulary
    tokens: int
    types: int
    out_of_vocabulary: int
    replaced: int
    skipped: int
    truncated: list[str]
    files: list[dict[str, Any]]
    seconds: float
    undercount: int
    counting_bytes: int


@dataclass
class EncodedCorpus(CountedCorpus):
    """A corpus as word ids, in a temporary file that is removed with the object.

    ``tokens == len(ids) + out_of_vocabulary + held_out_tokens``.

    Attributes
    ----------
    ids : ndarray of uint32, shape (n,)
        The tokens in the vocabulary, memory-mapped and read-only. The low 31 bits are the word id;
        bit 31 marks the last token of a line.
    counts : ndarray of int64, shape (len(vocabulary),)
        Count of each word in this corpus; `vocabulary.counts` unless a vocabulary was given.
    lines : int
        Lines with at least one token that are not held out.
    held_out : ndarray of uint32, shape (m,)
        The held-out lines, encoded as `ids`. Their tokens are not counted, so that words that are
        frequent only there are not in the vocabulary.
    held_out_tokens : int
        Held-out tokens and lines, including out-of-vocabulary tokens.
    unk_tokens : int
        Tokens, included in `ids`, of words that are not in the vocabulary and became one word.
    """

    ids: U32
    counts: I64
    lines: int
    held_out: U32
    held_out_tokens: int
    unk_tokens: int = 0

    def close(self) -> None:
        """Release the disk space once `ids` is no longer referenced."""
        self.ids = np.zeros(0, dtype=np.uint32)

    def __enter__(self) -> EncodedCorpus:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def count_words(corpus: CorpusLike, *, threads: int | None = None, **options: Any) -> Vocabulary:
    """Count the words of a corpus.

    Parameters
    ----------
    corpus : path, paths, or iterable of sentences
        As in `dcme_w2v.train`.
    threads : int, optional
        Default: the CPUs that this process may use. The result does not depend on it.
    **options
        Options of `VocabularyOptions`: ``min_count``, ``max_vocab``, ``encoding_errors``, ...

    Returns
    -------
    Vocabulary
        The kept words by descending count: a sequence of str, with `counts` and ``save(path)``.

    Raises
    ------
    CorpusError
        A file cannot be read or is not text, or no word is kept.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> found = dw.count_words([["a", "rose", "is", "a", "rose"]], min_count=1)
    >>> list(zip(found, found.counts.tolist()))
    [('a', 2), ('rose', 2), ('is', 1)]
    """
    wanted = VocabularyOptions.from_mapping(options)
    paths, sentences = paths_or_sentences(corpus)
    return count(sentences or paths, wanted, threads=threads_of(threads)).vocabulary


def count(
    corpus: Sequence[str] | Sentences,
    options: VocabularyOptions,
    *,
    threads: int = 1,
    reporter: Reporter | None = None,
    _block_bytes: int = BLOCK_BYTES,
) -> CountedCorpus:
    """Count the words of a corpus.

    Parameters
    ----------
    corpus : sequence of str
        Files, folders, URLs, ``-``; see `dcme_w2v.formats.corpus.expand`.
    options : VocabularyOptions
        Which words are kept.
    threads : int
        Number of workers; the result does not depend on it.
    reporter : Reporter, optional
        Reports the bytes read as the stage "reading".

    Raises
    ------
    CorpusError
        A file cannot be read or is not text, or the vocabulary would be empty.
    """
    started = time.perf_counter()
    source = _open(corpus, options, _block_bytes)
    reading = _Reading(source, options, threads, reporter)
    reading.run()
    counts = reading.counts()
    found = select_vocabulary(None, reading.words.table, counts, options)
    if found is None:
        raise CorpusError(_empty_vocabulary(reading, counts, options, None))
    check_lengths(found.vocabulary, source.paths[0])
    kept = int(found.counts.sum())
    return CountedCorpus(found.vocabulary, **reading.figures(counts, kept, started))


def tally(corpus: Corpus, options: VocabularyOptions) -> tuple[core.Table, dict[str, Any]]:
    """Count all words of a corpus.

    Returns
    -------
    table : core.Table
        The words in the order of their first appearance.
    figures : dict
        The fields of `CountedCorpus` without the vocabulary.
    """
    started = time.perf_counter()
    reading = _Reading(corpus, options, is_bounded=False, is_looked_at=False)
    reading.run()
    return reading.words.table, reading.figures(reading.counts(), reading.tokens, started)


def encode(
    corpus: Sequence[str] | Sentences | Corpus,
    options: VocabularyOptions,
    *,
    vocabulary: Given = None,
    unk: str | None = None,
    cache_dir: str | None = None,
    holdout: HeldOutLines | None = None,
    threads: int = 1,
    reporter: Reporter | None = None,
    _block_bytes: int = BLOCK_BYTES,
) -> EncodedCorpus:
    """Count the words of a corpus and encode it as word ids, reading it once.

    Parameters
    ----------
    corpus, options, threads, reporter
        See `count`; the corpus may also be an iterable of sentences, or ranges of files.
    vocabulary : Vocabulary or InitialWords, optional
        The vocabulary, pruned by `options` (default: counted from the corpus); or `InitialWords`,
        which are kept, with or without the words of the corpus.
    unk : str, optional
        Word that all tokens that are not in the vocabulary become. If there are none, it is not
        added to the vocabulary.
    cache_dir : str, optional
        Folder for the id cache, four bytes per token (default: the system's temporary folder).
    holdout : HeldOutLines, optional
        Lines to hold out, which are not counted.

    Raises
    ------
    CorpusError
        A file cannot be read or is not text, or the vocabulary would be empty.
    ResourceError
        The ids cannot be written.
    """
    started = time.perf_counter()
    source = _open(corpus, options, _block_bytes)
    given = vocabulary.pruned(options) if isinstance(vocabulary, Vocabulary) else vocabulary
    cache = IdCache(cache_dir)
    try:
        reading = _Reading(
            source,
            options,
            threads,
            reporter,
            cache=cache,
            given=given,
            is_bounded=unk is None,  # which all other words become
            is_looked_at=not isinstance(corpus, Corpus),
        )
        reading.run(holdout)
        words = reading.words
        rare = None if unk is None else int(ids_of(words.table, Words.from_words([unk]))[0])
        counts = reading.counts()
        kept = select_vocabulary(given, words.table, counts, options, rare)
        if kept is None or not kept.counts.sum():
            raise NoWordsError(_empty_vocabulary(reading, counts, options, given))
        check_lengths(kept.vocabulary, reading.corpus.paths[0])
        split = compact(cache, reading.segments, words.maps, kept.ranks, holdout)
        figures = reading.figures(counts, len(split["ids"]), started)
        held = reading.held_out_tokens
        del reading, words, counts
        core.release_freed()
        return EncodedCorpus(
            kept.vocabulary,
            **figures,
            **split,
            counts=kept.counts,
            held_out_tokens=held,
            unk_tokens=kept.rare,
        )
    except BaseException:
        cache.close()
        raise


def _open(
    corpus: Sequence[str] | Sentences | Corpus, options: VocabularyOptions, block_bytes: int
) -> Corpus | Sentences:
    if isinstance(corpus, Sentences):
        corpus.is_whole, corpus.column = options.sentences == "whole", options.text_column
    if isinstance(corpus, Sentences | Corpus):
        return corpus
    paths = with_columns(corpus, options.text_column, whole=options.sentences == "whole")
    return Corpus(paths, block_bytes, options.allow_truncated, options.strict, options.allow_binary)


class _Reading:
    """One pass over a corpus: workers encode blocks, whose ids are cached in order."""

    def __init__(
        self,
        corpus: Corpus | Sentences,
        options: VocabularyOptions,
        threads: int = 1,
        reporter: Reporter | None = None,
        *,
        cache: IdCache | None = None,
        given: Given = None,
        is_bounded: bool = True,
        is_looked_at: bool = True,
    ) -> None:
        choices = declaration_of(VocabularyOptions.__dataclass_fields__["encoding_errors"]).choices
        errors = choices.index(options.encoding_errors)
        self.refuse = core.REFUSE_BROKEN if errors == 0 else core.REFUSE_NUL
        if options.allow_binary:
            if errors == 0:
                raise UsageError(
                    "--allow-binary: requires --encoding-errors=replace or skip, "
                    "which applies to tokens that are not text"
                )
            self.refuse = core.REFUSE_NONE
        self.corpus, self.options = corpus, options
        self._is_looked_at = is_looked_at  # to warn of text that is not plain
        self.tokenizer, self.is_split = Tokenizer(options), options.sentences == "split"
        self.threads, self.reporter, self.cache = threads, reporter or Reporter(), cache
        self.words = DistinctWords(
            options, errors, given, self.reporter, is_bounded=is_bounded, cache=cache
        )
        self._buffers: list[U32] = []  # for the ids of a block
        self._held: deque[int] = deque(maxlen=2 * threads + 1)  # bytes of the last blocks
        self._next = 0  # bytes of a block that is read meanwhile
        self.segments: list[Segment] = []
        self._merged = 0  # segments
        self.tokens = 0
        self._worker = threading.local()
        self._lock = threading.Lock()
        self._workers = self._file = self._lines = 0
        self._share: float | None = None  # of the corpus that has been read
        self.held_out: I64 | None = None  # counts, by id
        self.held_out_tokens = 0

    def run(self, holdout: HeldOutLines | None = None) -> None:
        """Read all blocks and count their words; at most two per worker are pending."""
        self.reporter.stage("reading", self.corpus.bytes_total, "bytes")
        pending: deque[tuple[Block, Future[tuple[Segment, U32 | None]]]] = deque()
        with ThreadPoolExecutor(self.threads, initializer=self._start_worker) as pool:
            try:
                for number, block in enumerate(self.corpus):
                    if self._is_looked_at and number == 0:
                        name, start = self.corpus.paths[0], bytes(block.text[:SAMPLE_BYTES])
                        refuse_vectors(name, start)
                        warn_of_raw_text(name, start, not self.tokenizer.is_whitespace)
                    # Blocks that are read before the last round is merged have their own tables.
                    tables = number // ROUND_BLOCKS + self._merged // ROUND_BLOCKS
                    pending.append((block, pool.submit(self._encode, block, tables)))
                    if len(pending) > 2 * self.threads:
                        self._finish(*pending.popleft())
                    self.reporter.advance(block.bytes_read)
                while pending:
                    self._finish(*pending.popleft())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        self._held.clear()
        self._merge()  # with the last one of all blocks still in memory
        self.words.finish(self._share)
        core.release_freed()  # free the blocks, or their memory adds to the next step's
        if not self.tokens:
            raise CorpusError(f"{', '.join(self.corpus.paths[:3])}: there are no tokens to read")
        if holdout and self.cache:
            self._exclude(holdout, self.cache)
        self.held_out = self.words.join_spilled(self.options.min_count, self.held_out)

    def _start_worker(self) -> None:
        with self._lock:
            self._worker.number = self._workers
            self._workers += 1

    def _encode(self, block: Block, tables: int) -> tuple[Segment, U32 | None]:
        """Encode a block with the ids of one of the worker's tables; runs in a worker."""
        number = tables * self.threads + self._worker.number
        table = self.words.table_of(number)
        first = len(table)
        text: bytes | memoryview = block.text
        if self.is_split and not block.is_tokenized:
            text = _SENTENCE_END.sub(rb"\g<0>\n", bytes(text))
        if not (block.is_tokenized or self.tokenizer.is_whitespace):
            text, _ = self.tokenizer.tokenize(text)
        ids = self._buffer(len(text) // 2 + 1) if self.cache else None
        tokens, newlines, newline_first, bad = table.encode(text, self.refuse, ids)
        self.words.measure(table)
        if text is not block.text:  # positions before tokenizing
            newlines = bytes(block.text).count(b"\n")
            bad = -1 if bad < 0 else _first_bad(bytes(block.text), self.refuse)
        segment = Segment(number, first, len(table), tokens, newlines, newline_first, bad)
        return segment, ids

    def _buffer(self, size: int) -> U32:
        """Return memory for so many ids, which `_finish` takes back."""
        with self._lock:
            kept = self._buffers.pop() if self._buffers else None
        if kept is not None and len(kept) >= size:
            return kept
        return np.frombuffer(fresh_memory(ID_BYTES * size), dtype=np.uint32)

    def _finish(self, block: Block, future: Future[tuple[Segment, U32 | None]]) -> None:
        segment, ids = future.result()
        if block.file != self._file:
            self._file, self._lines = block.file, 0
        if segment.bad >= 0:
            raise CorpusError(self._encoding_error(block, segment.bad))
        total = self.corpus.bytes_total
        self._share = share = block.bytes_read / total if total else None
        if self.cache and ids is not None:
            self.cache.write(self.tokens, ids[: segment.tokens], share)
            self._buffers.append(ids)
            if share and len(self.segments) == ROUND_BLOCKS - 1:
                self._forecast_cache(self.cache.folder, (self.tokens + segment.tokens) / share)
        in_use = 0 if ids is None else ids[: segment.tokens].nbytes
        self._next = len(block.text)
        self._held.append(self._next + in_use)
        self.words.note_peak(sum(self._held) + self._next)
        self._lines += segment.newlines
        self.tokens += segment.tokens
        self.segments.append(segment)
        if len(self.segments) % ROUND_BLOCKS == 0:
            self._merge()

    def _merge(self) -> None:
        parts, self._merged = self.segments[self._merged :], len(self.segments)
        self._buffers.clear()
        self.words.merge(parts, sum(self._held) + self._next, self._share)

    def _forecast_cache(self, folder: str, tokens: float) -> None:
        """Report the size of the id cache of a corpus of so many tokens."""
        needed = tokens * ID_BYTES
        free = free_bytes(Path(folder)) + self.tokens * ID_BYTES
        line = f"id cache: about {needed / 1e6:,.0f} MB in {folder}, {free / 1e6:,.0f} MB free"
        if needed > free:
            line = f"warning: {line}: choose another folder with --cache-dir"
        self.reporter.message(line)

    def _encoding_error(self, block: Block, bad: int) -> str:
        line = 1 + self._lines + bytes(block.text[:bad]).count(b"\n")
        where = f"{self.corpus.paths[block.file]}: byte {block.offset + bad}"
        if isinstance(self.corpus, Sentences) or not self.corpus.spans[block.file].begin:
            where += f" (line {line})"
        marks = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        if block.offset == 0 and bytes(block.text[:2]) in marks:
            return f"{where} is of UTF-16; convert the file, as iconv -f UTF-16 -t UTF-8"
        if block.text[bad] == 0:
            return f"{where} is NUL: looks binary or UTF-16; give UTF-8 text, or --allow-binary"
        return f"{where} is not UTF-8; convert the file, or use --encoding-errors=replace or skip"

    def _exclude(self, lines: HeldOutLines, cache: IdCache) -> None:
        """Count the tokens of held-out lines, which `counts` subtracts."""
        words = self.words
        found = held_out_counts(cache, self.segments, words.maps, len(words), lines)
        self.held_out, self.held_out_tokens = found
        if not self.held_out_tokens:
            raise CorpusError(
                f"no line was held out of {', '.join(self.corpus.paths[:3])}: give a larger share, "
                "or a file of its own, to --holdout"
            )

    def counts(self) -> I64:
        """Return the counts of `words.table`, without held-out lines."""
        counts = self.words.table.counts()
        if self.held_out is not None:
            counts[: len(self.held_out)] -= self.held_out
        return counts

    def types(self, counts: I64) -> int:
        """Return the number of distinct words; `counts` as from the method of this name."""
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
            "truncated": self.corpus.truncated,
            "files": [{"path": path, "size": size} for path, size in files],
            "seconds": time.perf_counter() - started,
            "undercount": self.words.undercount,
            "counting_bytes": self.words.counting_bytes(),
        }


def _first_bad(text: bytes, refuse: int) -> int:
    """Return the position of the first NUL, or byte that is not UTF-8."""
    found = [text.find(b"\0")]
    try:
        text.decode()
    except UnicodeDecodeError as error:
        found += [error.start] if refuse == core.REFUSE_BROKEN else []
    return min((place for place in found if place >= 0), default=0)


def _empty_vocabulary(
    reading: _Reading, counts: I64, options: VocabularyOptions, given: Given
) -> str:
    types, tokens = reading.types(counts), reading.tokens
    tokens -= reading.held_out_tokens
    if not tokens:
        return (
            f"all {reading.held_out_tokens:,} tokens are held out: give a smaller share, or a file "
            "of its own, to --holdout"
        )
    if given is None:
        return all_rare(types, tokens, options)
    known = f"none of the {types} distinct words ({tokens} tokens) is among the "
    if isinstance(given, Vocabulary):
        return (
            f"{known}{len(given)} of the vocabulary; lower --min-count or give another --read-vocab"
        )
    return f"{known}{len(given.words)} of --init; give other vectors, or --init-vocab=union"


def all_rare(types: int, tokens: int, options: VocabularyOptions) -> str:
    """Return the error message of a corpus whose vocabulary would be empty."""
    return (
        f"none of the {types} distinct words ({tokens} tokens) occurs at least "
        f"{options.min_count} times; lower --min-count"
    )
