"""Find phrases, which are pairs of words that are adjacent unusually often, and join them.

The text is read once, as word IDs (`dcme_w2v.text.encode`). Each pass joins pairs in the result of
the previous passes, piece by piece, so that words and pairs are in memory but the text is not.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import text as core
from dcme_w2v.declarations import check_names, paths_in, threads_of
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.opening import read_whole
from dcme_w2v.files.paths import READS, TEXT, guard
from dcme_w2v.formats.columns import Source
from dcme_w2v.formats.corpus import CorpusLike, Sentences, paths_or_sentences
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F64, I64, U8, U32, drop_pages
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import PathLike
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to

from .cache import NUMBER
from .encode import encode
from .options import READING, PhraseOptions
from .select_vocabulary import ids_of

MAX_CONNECTORS = core.ROLE_SIDE - 1  # maximum number of distinct connector words
RUN = core.RUN_MAX  # maximum number of connector words between two words of a phrase

LISTS = {
    "english": (
        "a an the "  # articles
        "about after against among as at before between by during for from in into of on onto over "
        "per through to under upon via with within without "  # prepositions
        "and but nor or"  # conjunctions
    )
}


def connector_words(given: str | None) -> tuple[bytes, ...]:
    """Return the connector words from a built-in list or from a file.

    Raises
    ------
    CorpusError
        The file cannot be read.
    FormatError
        The file is not UTF-8 or has no words.
    UsageError
        There are more than `MAX_CONNECTORS` words.
    """
    if given is None:
        return ()
    if given in LISTS:
        return tuple(LISTS[given].encode().split())
    text = read_whole(given)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{given}: byte {error.start} is not UTF-8; use a text file that contains words"
        ) from None
    if b"\0" in text:
        raise FormatError(f"{given} contains NUL bytes; use a text file that contains words")
    words = tuple(dict.fromkeys(text.split()))
    if not words:
        raise FormatError(
            f"{given}: the connector list is empty; use words separated by whitespace"
        )
    if len(words) > MAX_CONNECTORS:
        raise UsageError(
            f"--connectors={given} has {len(words):,} words, but at most {MAX_CONNECTORS} words "
            "are allowed; use a shorter list"
        )
    return words


class Phrase(NamedTuple):
    """A pair of words, the connectors between the two words, and the pair's count and score."""

    left: str
    right: str
    seen: int
    score: float
    between: str = ""

    @property
    def joined(self) -> str:
        """The single word that replaces the phrase, such as ``new_york``."""
        return "_".join((self.left, *self.between.split(), self.right))


@dataclass(frozen=True)
class PhraseTable:
    """The phrases found in each pass over a text.

    Attributes
    ----------
    passes : tuple of tuple of Phrase
    lines, tokens, joined : int
        Number of lines and tokens in the text, and number of tokens that joining removed. These and
        the following attributes are set by `phrases`, not read from a file.
    reads : tuple of int
        How many times each pass read the text to count pairs within `PhraseOptions.memory`; zero if
        a table was given.
    options : PhraseOptions
        The options that determined the pairs, unless a table was given.
    """

    passes: tuple[tuple[Phrase, ...], ...]
    lines: int = field(default=0, compare=False)
    tokens: int = field(default=0, compare=False)
    joined: int = field(default=0, compare=False)
    reads: tuple[int, ...] = field(default=(), compare=False)
    options: PhraseOptions | None = field(default=None, compare=False)

    def save(self, path: PathLike) -> None:
        """Write the table to a file; ``-`` is standard output."""
        with atomic_write(path) as file:
            for number, phrases in enumerate(self.passes, 1):
                for left, right, seen, score, between in phrases:
                    line = f"{number}\t{left}\t{right}\t{seen}\t{score!r}"
                    file.write((f"{line}\t{between}\n" if between else f"{line}\n").encode())

    @classmethod
    def load(cls, path: PathLike) -> PhraseTable:
        """Read a table from a file, which may be compressed.

        Raises
        ------
        FormatError
            A line is not a phrase; the message names file and line.
        CorpusError
            The file cannot be read.
        """
        passes: list[list[Phrase]] = []
        for number, line in enumerate(read_whole(os.fspath(path)).split(b"\n"), 1):
            if not line:
                continue
            try:
                turn, phrase = _parsed(line)
                if not len(passes) <= turn <= len(passes) + 1 or turn < 1:
                    raise ValueError(
                        f"pass {turn} follows pass {len(passes)}, so a pass is missing"
                    )
            except ValueError as error:
                raise FormatError(
                    f"{os.fspath(path)}:{number}: the line is not a phrase ({error}); use a file "
                    "written by --save-table"
                ) from None
            passes += [[]] * (turn > len(passes))
            passes[-1].append(phrase)
        return cls(tuple(tuple(phrases) for phrases in passes))


def _parsed(line: bytes) -> tuple[int, Phrase]:
    """Parse a phrase-table line into a pass number and a phrase; raise ValueError if invalid."""
    turn, left, right, seen, score, *more = line.decode().split("\t")
    if len(more) > 1:
        raise ValueError("the line has more than six columns")
    between = more[0].encode() if more else b""
    if any(side.split() != [side] for side in (left.encode(), right.encode())):
        raise ValueError("the pair does not consist of two single words")
    if more and (not between or b" ".join(between.split()) != between):
        raise ValueError("the connectors are not separated by single spaces")
    if len(between.split()) > RUN:
        raise ValueError(f"the phrase has more than {RUN} connectors")
    return int(turn), Phrase(left, right, int(seen), float(score), between.decode())


def count_pairs(
    text: Callable[[], Iterable[U32]], roles: U8, least: int, size: int
) -> tuple[U32, U32, U32, I64, int]:
    """Count pairs of words within the lines of a text, using a table of limited size.

    When the table is full, half of the pairs, chosen by a bit of their hash, are dropped, to be
    counted when the text is read again. The counts are therefore exact for any size.

    Parameters
    ----------
    text : callable
        Returns an iterator over the pieces of the text, each time from the start.
    roles : ndarray of uint8
        By word ID: 255 for a word that can be in pairs, the number of a connector, otherwise 0.
    least : int
        Minimum count of the pairs that are returned.
    size : int
        Size of the table in bytes.

    Returns
    -------
    left, right : ndarray of uint32, shape (n,)
        Word ids.
    runs : ndarray of uint32, shape (n,)
        The connectors between the words: the numbers of up to `RUN` connectors, one per byte.
    counts : ndarray of int64, shape (n,)
    reads : int
        How many times the text was read.
    """
    parts, waiting = [], [(0, 0)]
    while waiting:
        bits, value = waiting.pop()
        table = core.Pairs(size, bits, value)
        for ids in text():
            table.count(ids, roles)
        waiting += [(bit + 1, value | 1 << bit) for bit in range(bits, table.bits)]
        parts.append(table.counted(least))
        del table  # free the table before the next table is allocated
    left, right, runs, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((runs, right, left))
    return left[order], right[order], runs[order], counts[order], len(parts)


PIECE = 1 << 18  # number of word IDs that are read together
THRESHOLDS = {"default": 100.0, "npmi": 0.5}


def phrases(
    corpus: CorpusLike,
    output: PathLike,
    *,
    read_table: PhraseTable | PathLike | None = None,
    save_table: PathLike | None = None,
    threads: int | None = None,
    progress: ProgressLike = False,
    **options: Any,
) -> PhraseTable:
    r"""Write a corpus in which phrases are joined, for example ``new york`` as ``new_york``.

    Pairs are joined from left to right, never across the end of a line. In each pass, a word is
    joined to at most one other word. Up to three connectors may be between the two words of a pair.

    Parameters
    ----------
    corpus : path, paths, or iterable of sentences
        As in `dcme_w2v.train`.
    output : path
        File to write, with one line for each input line that contains a token, and with a space
        between tokens; ``-`` is standard output.
    read_table : PhraseTable or path, optional
        Table of the phrases to join. Without a table, phrases are found in the text.
    save_table : path, optional
        File to write the table of phrases to.
    threads : int, optional
        Number of threads that read the text (default: the number of CPUs available to this
        process).
    progress : bool or callable
        As in `train`. Each time that the text is read counts as a stage.
    **options
        Fields of `PhraseOptions` (``passes``, ``threshold``, ``scorer``, ``min_count``,
        ``connectors``, ``memory``), and fields of `VocabularyOptions` that determine how files are
        read.

    Returns
    -------
    PhraseTable
        The phrases and the statistics of the text.

    Raises
    ------
    CorpusError
        A file cannot be read, is not text, or has no tokens.
    UsageError
        The output is also an input.
    ResourceError
        The output or the cache cannot be written.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> from pathlib import Path
    >>> lines = ["in new york", "to new york", "of new york", "in york", "a new one"] * 20
    >>> found = dw.phrases(lines, "joined.txt", threshold=1, min_count=20)
    >>> [phrase.joined for phrase in found.passes[0]]
    ['new_york']
    >>> Path("joined.txt").read_text().splitlines()[0]
    'in new_york'
    """
    names = [item.name for item in dataclasses.fields(PhraseOptions)]
    check_names(options, [*names, *READING])
    wanted = PhraseOptions(**{name: options.pop(name) for name in names if name in options})
    text = VocabularyOptions(**options)
    sources, sentences = paths_or_sentences(corpus)
    table: str | None = None
    if isinstance(read_table, str | os.PathLike):
        table, read_table = os.fspath(read_table), None
    guard(
        (READS, "CORPUS", sources),
        (READS, "--read-table", table),
        *paths_in(wanted),
        (TEXT, "--output", output),
        (TEXT, "--save-table", save_table),
    )
    if table is not None:
        read_table = PhraseTable.load(table)
    with reporting_to(progress) as reporter:
        joined = _joined(
            sentences or sources, output, wanted, text, read_table, reporter,
            threads=threads_of(threads),
        )  # fmt: skip
    if save_table is not None:
        joined.save(save_table)
    return joined


def _joined(
    corpus: Sequence[Source] | Sentences,
    output: PathLike,
    options: PhraseOptions,
    text: VocabularyOptions,
    table: PhraseTable | None,
    reporter: Reporter,
    **reading: Any,
) -> PhraseTable:
    """Join the phrases of each pass, then write the text."""
    connectors = connector_words(options.connectors) if table is None else ()
    how = dataclasses.replace(text, min_count=1, max_vocab=None)
    encoded = encode(corpus, how, reporter=reporter, **reading)
    joined = _Text(encoded.ids, encoded.vocabulary, encoded.counts, reporter)
    passes, reads = [], []
    for number in range(1, 1 + (options.passes if table is None else len(table.passes))):
        found = table.passes[number - 1] if table else joined.phrases(options, connectors)
        joined.join(found)
        passes.append(found)
        reads.append(joined.reads)
        again = f"; text read {joined.reads} times, for --memory {options.memory:g}"
        more = again * (joined.reads > 1)
        reporter.message(f"pass {number}: {len(found):,} phrases{more}")
    written = joined.write(output)
    removed = len(encoded.ids) - written
    return PhraseTable(tuple(passes), encoded.lines, encoded.tokens, removed, tuple(reads), options)


class _Text:
    """A text as word IDs, with the phrases that are joined when the text is read."""

    def __init__(
        self,
        ids: U32,
        words: Words,
        counts: I64,
        reporter: Reporter,
    ) -> None:
        self._ids = ids
        self._reporter = reporter
        self._counts: I64 | None = counts  # None after `join`, which makes the counts invalid
        # For each pass: the pairs, the IDs of the joined words, and the role of each word.
        self._passes: list[tuple[Any, ...]] = []
        self._table = words.new_table()
        self.reads = 0  # number of times that the last pass has read the text

    def _pieces(self, stage: str = "counting pairs") -> Iterator[U32]:
        """Yield the word IDs of the text after joining phrases."""
        pieces = self._stored(stage)
        for *pairs, roles in self._passes:
            pieces = self._joined(pieces, pairs, roles)
        return pieces

    @staticmethod
    def _joined(pieces: Iterator[U32], pairs: Sequence[U32], roles: U8) -> Iterator[U32]:
        """Yield the word IDs of a text after joining pairs from left to right."""
        table = core.Pairs(0)
        table.add(*pairs)
        for piece in pieces:
            yield table.join(piece, roles)
        yield table.join(np.zeros(0, dtype=np.uint32), roles, last=True)

    def _stored(self, stage: str) -> Iterator[U32]:
        self._reporter.stage(stage, len(self._ids), "words")
        for number, start in enumerate(range(0, len(self._ids), PIECE), 1):
            yield self._ids[start : start + PIECE]
            self._reporter.advance(min(start + PIECE, len(self._ids)))
            if number % 64 == 0:
                drop_pages(self._ids)
        drop_pages(self._ids)

    def counts(self) -> I64:
        """Return the count of each word in the text after joining."""
        if self._counts is None:
            self._counts = np.zeros(len(self._table), dtype=np.int64)
            for ids in self._pieces("counting words"):
                self._counts += np.bincount(ids & NUMBER, minlength=len(self._counts))
        return self._counts

    def phrases(self, options: PhraseOptions, connectors: Sequence[bytes]) -> tuple[Phrase, ...]:
        """Find phrases in the text after joining, in descending order of score."""
        counts = self.counts()
        roles = np.where(counts >= options.min_count, core.ROLE_SIDE, 0).astype(np.uint8)
        known = self._numbers(connectors)
        roles = np.append(roles, np.zeros(len(self._table) - len(roles), dtype=np.uint8))
        roles[known] = np.arange(1, 1 + len(known))
        left, right, runs, together, self.reads = count_pairs(
            self._pieces, roles, options.min_count, int(options.memory * 1e9)
        )
        scores = score(options, counts[left], counts[right], together, int(counts.sum()))
        threshold = THRESHOLDS[options.scorer] if options.threshold is None else options.threshold
        chosen = np.flatnonzero(scores > threshold)
        chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
        between = [
            " ".join(
                connectors[number - 1].decode() for number in run.to_bytes(RUN, "big") if number
            )
            for run in runs[chosen].tolist()
        ]
        sides = self._words(left[chosen]), self._words(right[chosen])
        figures = together[chosen].tolist(), scores[chosen].tolist()
        return tuple(map(Phrase, *sides, *figures, between))

    def _words(self, numbers: NDArray[np.integer[Any]]) -> Words:
        return Words(*self._table.words(numbers.astype(np.int64)))

    def join(self, phrases: Sequence[Phrase]) -> None:
        """Join the given phrases from now on, whenever the text is read."""
        connectors = list(dict.fromkeys(word for one in phrases for word in one.between.split()))
        if len(connectors) > MAX_CONNECTORS:
            raise FormatError(
                f"the table has {len(connectors)} connectors, but at most {MAX_CONNECTORS} "
                "connectors are supported"
            )
        numbered = {word: number for number, word in enumerate(connectors, 1)}
        runs = [
            int.from_bytes([numbered[word] for word in one.between.split()], "big")
            for one in phrases
        ]
        left = self._numbers([one.left.encode() for one in phrases])
        right = self._numbers([one.right.encode() for one in phrases])
        between = self._numbers([word.encode() for word in connectors])
        joined = self._numbers([one.joined.encode() for one in phrases])
        roles = np.zeros(len(self._table), dtype=np.uint8)
        roles[left] = roles[right] = core.ROLE_SIDE
        if roles[between].any():
            word = connectors[int(np.flatnonzero(roles[between])[0])]
            raise FormatError(
                f"the table contains {word!r} both as a connector and as a word in a pair"
            )
        roles[between] = np.arange(1, 1 + len(connectors))
        self._passes.append((left, right, np.array(runs, dtype=np.uint32), joined, roles))
        self._counts = None

    def _numbers(self, words: Sequence[bytes]) -> U32:
        """Return the IDs of words, after assigning new IDs to words without an ID."""
        place = {word: number for number, word in enumerate(dict.fromkeys(words))}
        numbers = ids_of(self._table, Words.from_words(place))
        return numbers[np.array([place[word] for word in words], dtype=np.int64)]

    def write(self, output: PathLike) -> int:
        """Write the text with phrases joined, and return the number of tokens written."""
        words = self._words(np.arange(len(self._table)))
        tokens = 0
        with atomic_write(output) as file:
            for ids in self._pieces("writing"):
                file.write(core.text_of(ids, words.text, words.offsets).data)
                tokens += len(ids)
        return tokens


def score(
    options: PhraseOptions,
    left: I64,
    right: I64,
    together: I64,
    tokens: int,
) -> F64:
    """Compute the scores of n pairs from their counts and from the counts of their words.

    A score is equation (6) of Mikolov et al. 2013 (Distributed representations of words and
    phrases) times the number of tokens, as in word2phrase; or the normalized pointwise mutual
    information of Bouma 2009, from -1 to 1.
    """
    a, b, ab = (counts.astype(np.float64) for counts in (left, right, together))
    if options.scorer == "npmi":
        return np.log(ab * tokens / (a * b)) / -np.log(ab / tokens)
    return (ab - options.min_count) / (a * b) * tokens
