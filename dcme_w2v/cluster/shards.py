"""Divide a corpus into contiguous shards, and count their words.

Plain files and JSON lines are divided at line ends, Parquet and Arrow between row groups; CSV,
compressed files and URLs are not divided. The counts of the shards stay on the workers, divided
into parts by a hash of the word; each part is added by one worker, in the order of the shards. Only
words that occur often enough are put together: the vocabulary equals the vocabulary of one machine.
"""

from __future__ import annotations

import bisect
import itertools
import mmap
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.errors import CorpusError, NoSuchFileError, UsageError, warn
from dcme_w2v.files.opening import CorpusFile, is_address, stored_size
from dcme_w2v.formats.columns import Source, Table, kind_of_table, row_groups, with_columns
from dcme_w2v.formats.corpus import Corpus, Span, expand
from dcme_w2v.formats.vocabulary import Vocabulary, Words
from dcme_w2v.options import ClusterOptions, VocabularyOptions
from dcme_w2v.text.encode import CountedCorpus, all_rare, tally
from dcme_w2v.text.reading import dropped_line
from dcme_w2v.text.select_vocabulary import select_vocabulary
from dcme_w2v.training.executor import Executor, Future, figures_of, given_value, piece_of

from .address import open_cluster, parsed
from .word_parts import PARTS, Run, divided, joined, lowest, ordered

STDIN = "-"
_LINE_END, _PARAGRAPH_END = re.compile(rb"\n"), re.compile(rb"\n[ \t\r\f\v]*\n")
PACKED = 4  # estimated compression ratio of compressed input files
# A combined word number stores the word ID in the bits below this one, and the shard number in the
# remaining bits.
SHARD_BIT = 32


@dataclass(frozen=True)
class Shard:
    """A contiguous part of a corpus, for one worker.

    Attributes
    ----------
    spans : tuple of Span
        Files or ranges of files, in order.
    sizes : tuple of (int or None)
        Stored sizes of the files on the machine that runs the program; None if unknown.
    """

    spans: tuple[Span, ...]
    sizes: tuple[int | None, ...]

    @property
    def name(self) -> str:
        """The shard's name in messages: its first file and the number of other files."""
        first = self.spans[0]
        where = f" from byte {first.begin:,}" if first.begin else ""
        more = f" and {len(self.spans) - 1} more" if len(self.spans) > 1 else ""
        return f"{first.path}{where}{more}"

    def corpus(self) -> Corpus:
        """Open the text of the shard; workers call this method.

        Raises
        ------
        CorpusError
            A file is missing, or its size differs from that on the machine that runs the program.
        """
        remedy = "use a path that exists on all workers"
        for span, size in zip(self.spans, self.sizes, strict=True):
            if is_address(str(span.path)):
                continue
            if not Path(span.path).exists():
                raise NoSuchFileError(
                    f"{span.path}: the file does not exist on this worker; {remedy}"
                )
            if (here := stored_size(span.path)) != size:
                raise CorpusError(
                    f"{span.path} has {here} bytes on this worker, but {size} bytes on the main "
                    f"machine; {remedy}"
                )
        return Corpus(self.spans)


def check_files(address: str, corpus: Sequence[Source]) -> None:
    """Raise UsageError if the address is invalid or the corpus includes standard input."""
    parsed(address)
    if STDIN in map(str, corpus):
        raise UsageError(
            f"--cluster={address}: workers cannot read standard input; save the corpus to files"
        )


def cut(corpus: Sequence[Source], shards: int, options: VocabularyOptions) -> tuple[Shard, ...]:
    """Divide a corpus into contiguous shards of about equal size.

    Raises
    ------
    UsageError
        There are fewer lines, or fewer compressed files, than shards.
    """
    tables = with_columns(corpus, options.text_column, whole=options.sentences == "whole")
    paths = expand(tables)
    if shards == 1:
        return (_shard([Span(path) for path in paths]),)
    files = [file for path in paths for file in _files(path)]
    edges = np.cumsum([0, *(file.text_bytes for file in files)]).tolist()
    end_of = _PARAGRAPH_END if options.sentences == "paragraphs" else _LINE_END
    borders, found = itertools.chain([0], _borders(files, edges, shards, end_of), edges[-1:]), []
    for begin, end in itertools.pairwise(borders):
        spans = [
            Span(file.path, max(begin - low, 0), end - low if end < high else None)
            for file, (low, high) in zip(files, itertools.pairwise(edges), strict=True)
            if max(begin, low) < min(end, high)
        ]
        if not spans:
            raise UsageError(
                f"--shards={shards}: the corpus has too few lines, row groups or indivisible "
                "files for so many shards; lower --shards, or divide the corpus into more files"
            )
        found.append(_shard(spans))
    return tuple(found)


def _shard(spans: Sequence[Span]) -> Shard:
    return Shard(tuple(spans), tuple(stored_size(span.path) for span in spans))


class _File(NamedTuple):
    """A file or row group, its estimated text size, and whether it must remain in one shard."""

    path: Source
    text_bytes: int
    packed: bool


def _files(path: Source) -> list[_File]:
    """Convert a path to a list with one `_File` for the file or for each row group."""
    size = stored_size(path)
    if isinstance(path, Table) and kind_of_table(path.path) != "JSON lines":
        groups = row_groups(path)
        return [_File(group, max(1, (size or 1) // len(groups)), True) for group in groups]
    if size is None:
        return [_File(path, 1, True)]
    with CorpusFile(str(path), begins=True) as file:
        packed = file.packed
    return [_File(path, max(1, size * (PACKED if packed else 1)), packed)]


def _borders(
    files: Sequence[_File], edges: Sequence[int], shards: int, end_of: re.Pattern[bytes]
) -> Iterator[int]:
    """Yield the byte offset in the whole text at which each shard, except the first, starts."""
    spread, least = all(file.packed for file in files) and len(files) >= shards, 0
    for k in range(1, shards):
        target = edges[-1] * k // shards
        number = bisect.bisect_right(edges, target) - 1
        file, inside = files[number], target - edges[number]
        if not file.packed:
            yield edges[number] + _next_sentence(file, inside, end_of)
            continue
        nearest = number + (2 * inside > file.text_bytes)
        if spread:  # give every shard at least one file
            least = nearest = min(max(least + 1, nearest), len(files) - shards + k)
        yield edges[nearest]


def _next_sentence(file: _File, byte: int, end_of: re.Pattern[bytes]) -> int:
    """Return the offset of the first sentence at or after a position in an uncompressed file."""
    if byte == 0:
        return 0
    with (
        Path(file.path).open("rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        found = end_of.search(data, byte - 1)
        return found.end() if found else file.text_bytes


# ---- counting the vocabulary ----


def count(
    executor: Executor,
    shards: Sequence[Shard],
    options: VocabularyOptions,
    given: Vocabulary | None = None,
) -> tuple[CountedCorpus, Future]:
    """Count the words of all shards, with the same result as `text.encode.count`.

    Also return the future of the vocabulary, which is on a worker.

    Parameters
    ----------
    executor : Executor
    shards : sequence of Shard
    options : VocabularyOptions
    given : Vocabulary, optional
        The vocabulary. `out_of_vocabulary` is 0 then: only encoding counts these tokens.

    Raises
    ------
    CorpusError
        A worker cannot read a file, or the vocabulary would be empty.
    """
    started = time.perf_counter()
    added, figures, below = _counted(executor, shards, options)
    if below and given is None:  # Recount words that some shards dropped.
        known = executor.submit(_words_of, added, label="the vocabulary")
        options = replace(options, min_count=max(options.min_count, below + 1))
        added, figures, _ = _counted(executor, shards, options, known)
        warn(dropped_line(below + 1))
    sums = all_figures(executor, added)
    tokens, replaced, skipped = (
        sum(one[name] for one in figures) for name in ("tokens", "replaced", "skipped")
    )
    types, kept = sum(one["types"] for one in sums), tokens
    if given is not None:
        future = executor.submit(given_value, given.pruned(options))
    else:
        future = executor.submit(_selected, added, options, label="the vocabulary")
    vocabulary = executor.result(future)
    if vocabulary is None:
        raise CorpusError(all_rare(types, tokens, options))
    if given is None:
        kept = int(vocabulary.counts.sum())
    counted = CountedCorpus(
        vocabulary=vocabulary, tokens=tokens, types=types, out_of_vocabulary=tokens - kept,
        replaced=replaced, skipped=skipped,
        files=list({file["path"]: file for one in figures for file in one["files"]}.values()),
        seconds=time.perf_counter() - started,
        counting_bytes=max(one["counting_bytes"] for one in [*figures, *sums]),
    )  # fmt: skip
    return counted, future


def _counted(
    executor: Executor,
    shards: Sequence[Shard],
    options: VocabularyOptions,
    known: Future | None = None,
) -> tuple[list[Future], list[dict[str, Any]], int]:
    """Return, for each part of the vocabulary, the words that can reach the minimum count.

    Also return the statistics of the shards, and how often a word that some shards dropped may
    occur.

    Parameters
    ----------
    known : Future of Words, optional
        The words that are counted (default: all).
    """
    parts = max(1, min(executor.workers, PARTS))
    tallies = [
        executor.submit(
            _tally, shard, options, parts, known,
            label=f"shard {k + 1} ({shard.name})", number=k,
        )
        for k, shard in enumerate(shards)
    ]  # fmt: skip
    executor.wait(tallies)
    figures = all_figures(executor, tallies)
    dropped = sum(one["below"] for one in figures)
    added = [
        executor.submit(
            _added, [executor.submit(piece_of, one, part) for one in tallies],
            max(1, options.min_count - dropped), label="the vocabulary", number=part,
        )
        for part in range(parts)
    ]  # fmt: skip
    executor.wait(added)
    return added, figures, dropped


def all_figures(executor: Executor, futures: Sequence[Future]) -> list[Any]:
    """Fetch the statistics from task results, without the rest of the results."""
    return executor.all([executor.submit(figures_of, one) for one in futures])


def count_on(
    where: ClusterOptions, corpus: Sequence[Source], options: VocabularyOptions
) -> CountedCorpus:
    """Open a cluster, and count the words of a corpus on its workers.

    Parameters
    ----------
    where : ClusterOptions
        The address must be given.
    corpus : sequence of str
        Files and folders that all workers can read.
    options : VocabularyOptions
    """
    assert where.cluster is not None
    check_files(where.cluster, corpus)
    with open_cluster(where.cluster) as executor:
        parts = cut(corpus, where.shards or max(1, executor.workers), options)
        return count(executor, parts, options)[0]


def _tally(
    shard: Shard, options: VocabularyOptions, parts: int, known: Words | None
) -> tuple[list[Run], dict[str, Any]]:
    """Count a shard's words; return the counts for each part, and the shard's statistics."""
    table, figures = tally(shard.corpus(), options, known)
    return list(divided(table, parts)), figures


def _added(runs: list[Run], least: int) -> tuple[Run, dict[str, Any]]:
    """Sum the word counts in one part of the vocabulary over all shards.

    Return the words that occur at least `least` times, the number of distinct words, and the memory
    that counting used.
    The lowest id of a word is the place where the word appears first.
    """
    numbered = (
        (text, offsets, counts, ids + (k << SHARD_BIT))
        for k, (text, offsets, counts, ids) in enumerate(runs)
    )
    table, ids, index = joined(numbered)
    counts = table.counts()
    kept = np.flatnonzero(counts >= least)
    found = (*table.words(kept), counts[kept], lowest(ids, index)[kept])
    return found, {"types": len(table), "counting_bytes": table.bytes(0)}


def _words_of(parts: list[tuple[Run, dict[str, Any]]]) -> Words:
    """Merge the words of all parts in order of first appearance, without counts."""
    table = _joined(parts)
    return Words(*table.words(np.arange(len(table))))


def _selected(
    parts: list[tuple[Run, dict[str, Any]]], options: VocabularyOptions
) -> Vocabulary | None:
    table = _joined(parts)
    found = select_vocabulary(None, table, table.counts(), options)
    return None if found is None else found.vocabulary


def _joined(parts: list[tuple[Run, dict[str, Any]]]) -> core.Table:
    """Merge the words of all parts in order of first appearance, with their counts."""
    table = core.Table()
    for (text, offsets, counts, _), _ in parts:
        if len(counts):
            table.add(text, offsets, counts)
    return ordered(table, [run[-1] for run, _ in parts])[0]
