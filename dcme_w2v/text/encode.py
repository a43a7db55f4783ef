"""From a corpus to word numbers: the text is read once, counted, and kept as four bytes a token.

The main thread reads and unpacks; each worker has a table of its own and gives the words of a
block provisional ids. A block's new words stand together in its worker's table, so that taking
them over block by block finds every word in the order of its first appearance: the result does not
depend on the number of threads. Called by `dcme_w2v.words` and by the command `vocab`.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import text as core
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.options import VocabularyOptions, declaration_of
from dcme_w2v.text.cache import IdCache
from dcme_w2v.text.corpus import BLOCK_BYTES, Block, Corpus
from dcme_w2v.text.renumber import Segment, compact, held_out_counts
from dcme_w2v.text.sentences import Sentences
from dcme_w2v.text.split import HeldOutLines
from dcme_w2v.text.vocabulary import Vocabulary

Progress = Callable[[int, int | None], None]


@dataclass
class CountedCorpus:
    """What one pass over a corpus has counted.

    Attributes
    ----------
    vocabulary : Vocabulary
        The words that are kept.
    tokens, types : int
        Tokens of the corpus, and how many distinct ones.
    out_of_vocabulary : int
        Tokens that are none of the vocabulary's words.
    replaced, skipped : int
        Tokens that are not UTF-8 and were spelt with U+FFFD, or left out.
    truncated : list of str
        Where truncated compressed files end that were read as far as possible.
    files : list of dict
        ``path`` and ``size`` of each file in bytes as it is stored, None for streams.
    seconds : float
        Time that it took.
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


@dataclass
class EncodedCorpus(CountedCorpus):
    """A corpus as word numbers, in a file that is gone when the object is.

    ``tokens == len(ids) + out_of_vocabulary + held_out_tokens``.

    Attributes
    ----------
    ids : ndarray of uint32, shape (n,)
        The tokens that are kept, memory-mapped and read-only. The low 31 bits are a word's number
        in the vocabulary; bit 31 marks the last word of a line.
    counts : ndarray of int64, shape (len(vocabulary),)
        How often each word occurs in this corpus; `vocabulary.counts` unless one was given.
    lines : int
        Lines that have a token, kept or not, and are not held out.
    held_out : ndarray of uint32, shape (m,)
        The lines that are held out, as `ids`. Their words are in no count, so that words that are
        frequent only there are not kept.
    held_out_tokens, held_out_lines : int
        Tokens and lines that are held out, kept or not.
    """

    ids: NDArray[np.uint32]
    counts: NDArray[np.int64]
    lines: int
    held_out: NDArray[np.uint32]
    held_out_tokens: int
    held_out_lines: int

    def close(self) -> None:
        """Give the disk space back once nobody holds `ids` any more."""
        self.ids = np.zeros(0, dtype=np.uint32)

    def __enter__(self) -> EncodedCorpus:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def count(
    corpus: Sequence[str],
    options: VocabularyOptions,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    _block_bytes: int = BLOCK_BYTES,
) -> CountedCorpus:
    """Count the words of a corpus.

    Parameters
    ----------
    corpus : sequence of str
        Files, folders, addresses, ``-``; see `dcme_w2v.text.corpus.expand`.
    options : VocabularyOptions
        Which words are kept.
    threads : int
        Workers; the result does not depend on it.
    progress : callable, optional
        Called after every block with the bytes read and the bytes of all files (None if unknown).

    Raises
    ------
    CorpusError
        A file cannot be read or is not text, or no word is kept.
    """
    started = time.perf_counter()
    source = _opened(corpus, options, _block_bytes)
    reading = _Reading(source, options, threads, None)
    reading.run(progress)
    total, _ = reading.merged(None)
    vocabulary, _ = _chosen(reading, total, options)
    kept = int(vocabulary.counts.sum())
    return CountedCorpus(**reading.figures(vocabulary, total, kept, started))


def encode(
    corpus: Sequence[str] | Sentences,
    options: VocabularyOptions,
    *,
    vocabulary: Vocabulary | None = None,
    cache_dir: str | None = None,
    holdout: HeldOutLines | None = None,
    threads: int = 1,
    progress: Progress | None = None,
    _block_bytes: int = BLOCK_BYTES,
) -> EncodedCorpus:
    """Count the words of a corpus and turn it into word numbers, reading it once.

    Parameters
    ----------
    corpus, options, threads, progress
        See `count`; sentences may also come from an iterable.
    vocabulary : Vocabulary, optional
        The words to keep, in this order, after pruning by `options`; by default those of the
        corpus.
    cache_dir : str, optional
        Folder for four bytes a token; the system's folder for temporary files by default.
    holdout : HeldOutLines, optional
        Lines to hold out, in no count.

    Raises
    ------
    CorpusError
        A file cannot be read or is not text, or no word is kept.
    ResourceError
        The ids cannot be written.
    """
    started = time.perf_counter()
    source: Corpus | Sentences
    if isinstance(corpus, Sentences):
        source = corpus
    else:
        source = _opened(corpus, options, _block_bytes)
    given = vocabulary.pruned(options) if vocabulary is not None else None
    cache = IdCache(cache_dir)
    try:
        reading = _Reading(source, options, threads, cache)
        reading.run(progress)
        total, maps = reading.merged(given)
        reading.withhold(holdout, total, maps)
        kept, ranks = _chosen(reading, total, options) if given is None else _taken(given, total)
        counts = kept.counts if given is None else reading.counts(total)[: len(given)]
        if not counts.sum():
            raise CorpusError(_nothing_kept(reading, total, options, given))
        split = compact(cache, reading.segments, maps, ranks, holdout)
        figures = reading.figures(kept, total, len(split["ids"]), started)
        held = reading.held_out_tokens
        return EncodedCorpus(**figures, **split, counts=counts, held_out_tokens=held)
    except BaseException:
        cache.close()
        raise


def _opened(corpus: Sequence[str], options: VocabularyOptions, block_bytes: int) -> Corpus:
    return Corpus(
        corpus, block_bytes, options.allow_truncated, options.strict, options.allow_binary
    )


class _Reading:
    """One pass over a corpus: blocks go to workers, their ids to the cache in order."""

    def __init__(
        self,
        corpus: Corpus | Sentences,
        options: VocabularyOptions,
        threads: int,
        cache: IdCache | None,
    ) -> None:
        choices = declaration_of(VocabularyOptions.__dataclass_fields__["encoding_errors"]).choices
        self.corpus = corpus
        self.errors = choices.index(options.encoding_errors)
        self.refuse = core.REFUSE_BROKEN if self.errors == 0 else core.REFUSE_NUL
        if options.allow_binary:
            if self.errors == 0:
                raise UsageError(
                    "--allow-binary: say what becomes of words that are not text, too: "
                    "--encoding-errors=replace or skip"
                )
            self.refuse = core.REFUSE_NONE
        self.threads = threads
        self.cache = cache
        self.tables: list[core.Table] = []
        self.segments: list[Segment] = []
        self.tokens = self.replaced = self.skipped = 0
        self._worker = threading.local()
        self._lock = threading.Lock()
        self._file = self._lines = 0
        self.held_out: NDArray[np.int64] | None = None  # counts, by number in the one table
        self.held_out_tokens = 0

    def run(self, progress: Progress | None) -> None:
        """Read all blocks; at most two a worker are under way."""
        pending: deque[tuple[Block, Future[tuple[Segment, NDArray[np.uint32] | None]]]] = deque()
        with ThreadPoolExecutor(self.threads, initializer=self._start_worker) as pool:
            try:
                for block in self.corpus:
                    pending.append((block, pool.submit(self._encode, block)))
                    if len(pending) > 2 * self.threads:
                        self._finish(*pending.popleft())
                    if progress:
                        progress(block.bytes_read, self.corpus.bytes_total)
                while pending:
                    self._finish(*pending.popleft())
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        core.release_freed()  # the blocks: what follows would come on top of them
        if not self.tokens:
            raise CorpusError(f"{', '.join(self.corpus.paths[:3])}: there are no words to read")

    def _start_worker(self) -> None:
        with self._lock:
            self._worker.number = len(self.tables)
            self.tables.append(core.Table())

    def _encode(self, block: Block) -> tuple[Segment, NDArray[np.uint32] | None]:
        """Run in a worker: give the words of a block the ids of the worker's table."""
        number = self._worker.number
        table = self.tables[number]
        first = len(table)
        ids = np.empty(len(block.text) // 2 + 1, dtype=np.uint32) if self.cache else None
        found = table.encode(block.text, self.refuse, ids)
        segment = Segment(number, first, len(table), *found)
        return segment, None if ids is None else ids[: segment.tokens]

    def _finish(
        self, block: Block, future: Future[tuple[Segment, NDArray[np.uint32] | None]]
    ) -> None:
        segment, ids = future.result()
        if block.file != self._file:
            self._file, self._lines = block.file, 0
        if segment.bad >= 0:
            raise CorpusError(self._complaint(block, segment.bad))
        if self.cache and ids is not None:
            total = self.corpus.bytes_total
            self.cache.write(self.tokens, ids, block.bytes_read / total if total else None)
        self._lines += segment.newlines
        self.tokens += segment.tokens
        self.segments.append(segment)

    def _complaint(self, block: Block, bad: int) -> str:
        line = 1 + self._lines + bytes(block.text[:bad]).count(b"\n")
        where = f"{self.corpus.paths[block.file]}: byte {block.offset + bad} (line {line})"
        if block.text[bad] == 0:
            return f"{where} is NUL: looks binary or UTF-16; give UTF-8 text, or --allow-binary"
        return f"{where} is not UTF-8; convert the file, or use --encoding-errors=replace or skip"

    def merged(self, given: Vocabulary | None) -> tuple[core.Table, list[NDArray[np.uint32]]]:
        """Return one table, which starts with the given words, and each worker's ids in it."""
        total = core.Table()
        if given is not None:
            total.add(given.text, given.offsets, np.zeros(len(given), dtype=np.int64))
        maps = [np.full(len(table), core.NONE, dtype=np.uint32) for table in self.tables]
        for part in self.segments:
            table, ids = self.tables[part.table], maps[part.table]
            replaced, skipped = total.absorb(table, part.first, part.last, self.errors, ids)
            self.replaced += replaced
            self.skipped += skipped
        return total, maps

    def withhold(
        self, lines: HeldOutLines | None, total: core.Table, maps: Sequence[NDArray[np.uint32]]
    ) -> None:
        """Count the words of the lines that are held out, which `counts` then leaves out."""
        if lines is None or self.cache is None:
            return
        found = held_out_counts(self.cache, self.segments, maps, len(total), lines)
        self.held_out, self.held_out_tokens = found
        if not self.held_out_tokens:
            raise CorpusError(
                f"no line was held out of {', '.join(self.corpus.paths[:3])}: give a larger share, "
                "or a file of its own, to --holdout"
            )

    def counts(self, total: core.Table) -> NDArray[np.int64]:
        """Return how often each word of the one table occurs, except in held-out lines."""
        counts = total.counts()
        return counts if self.held_out is None else counts - self.held_out

    def figures(
        self, vocabulary: Vocabulary, total: core.Table, kept: int, started: float
    ) -> dict[str, Any]:
        """Return the fields of `CountedCorpus`."""
        files = zip(self.corpus.paths, self.corpus.sizes, strict=True)
        return {
            "vocabulary": vocabulary,
            "tokens": self.tokens,
            "types": int(np.count_nonzero(self.counts(total))),
            "out_of_vocabulary": self.tokens - kept - self.held_out_tokens,
            "replaced": self.replaced,
            "skipped": self.skipped,
            "truncated": self.corpus.truncated,
            "files": [{"path": path, "size": size} for path, size in files],
            "seconds": time.perf_counter() - started,
        }


def _chosen(
    reading: _Reading, total: core.Table, options: VocabularyOptions
) -> tuple[Vocabulary, NDArray[np.uint32]]:
    """Return the vocabulary that the options leave, and each word's number in it or NONE."""
    counts = reading.counts(total)
    frequent = np.flatnonzero(counts >= options.min_count)
    order = frequent[np.argsort(-counts[frequent], kind="stable")][: options.max_vocab]
    if not len(order):
        raise CorpusError(_nothing_kept(reading, total, options, None))
    ranks = np.full(len(counts), core.NONE, dtype=np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    return Vocabulary(*total.words(order), counts[order]), ranks


def _taken(given: Vocabulary, total: core.Table) -> tuple[Vocabulary, NDArray[np.uint32]]:
    """Return a given vocabulary, whose words are the first of the table, and their numbers."""
    ranks = np.full(len(total), core.NONE, dtype=np.uint32)
    ranks[: len(given)] = np.arange(len(given), dtype=np.uint32)
    return given, ranks


def _nothing_kept(
    reading: _Reading, total: core.Table, options: VocabularyOptions, given: Vocabulary | None
) -> str:
    types, tokens = np.count_nonzero(reading.counts(total)), reading.tokens
    tokens -= reading.held_out_tokens
    if given is None:
        return (
            f"none of the {types} distinct words ({tokens} tokens) occurs {options.min_count} "
            "times; lower --min-count"
        )
    return (
        f"none of the {types} distinct words ({tokens} tokens) is one of the {len(given)} of the "
        "vocabulary; lower --min-count or give another --read-vocab"
    )
