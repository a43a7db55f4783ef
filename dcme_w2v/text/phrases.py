"""Phrases: pairs of words that occur together more often than by chance are joined to one word.

The text is read once, as word ids (`dcme_w2v.text.encode`); each pass joins pairs in the result of
the previous passes, piece by piece, so that memory holds words and pairs but not the text. Called
by the command `phrases`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import text as core
from dcme_w2v.files import atomic_write
from dcme_w2v.options import PhraseOptions, VocabularyOptions
from dcme_w2v.paths import Paths
from dcme_w2v.text.cache import LAST, NUMBER
from dcme_w2v.text.encode import encode
from dcme_w2v.text.pairs import PairJoins, count_pairs, inner_pairs
from dcme_w2v.text.phrase_table import Phrase, PhraseTable
from dcme_w2v.text.words import Words

JOINER = b"_"
PIECE = 1 << 20  # tokens per piece
THRESHOLDS = {"default": 100.0, "npmi": 0.5}

Report = Callable[[int, int], None]


@dataclass(frozen=True)
class JoinedCorpus:
    """The result of `join_phrases`.

    Attributes
    ----------
    table : PhraseTable
        The phrases of each pass.
    lines, tokens, joined : int
        Number of lines and tokens read, and of joined pairs.
    """

    table: PhraseTable
    lines: int
    tokens: int
    joined: int


def join_phrases(
    corpus: Sequence[str],
    output: str | os.PathLike[str],
    options: PhraseOptions,
    text: VocabularyOptions | None = None,
    *,
    table: PhraseTable | None = None,
    cache_dir: str | None = None,
    threads: int = 1,
    report: Report | None = None,
) -> JoinedCorpus:
    """Write a corpus with its phrases joined: ``new york`` as ``new_york``.

    A pair's score is Mikolov et al. 2013 (Distributed representations of words and phrases),
    equation (6), times the tokens of the text, as word2phrase has it:
    (count(a b) - min_count) / (count(a) count(b)) * tokens; or the normalised pointwise mutual
    information of Bouma 2009, from -1 to 1. Pairs are joined from left to right, never across the
    end of a line; a word is in one pair of a pass.

    Parameters
    ----------
    corpus : sequence of str
        Files, folders, addresses, ``-``; see `dcme_w2v.text.corpus.expand`.
    output : path
        One line for each line with a token, tokens separated by a space; ``-`` is standard output.
    options : PhraseOptions
        Which pairs are joined; ignored with a table.
    text : VocabularyOptions, optional
        How invalid UTF-8 and truncated files are read; no word is dropped.
    table : PhraseTable, optional
        The phrases to join, instead of those found in the text.
    cache_dir : str, optional
        Folder for the id cache, four bytes per token (default: the system's folder for temporary
        files).
    threads : int
        Number of workers that read.
    report : callable, optional
        Called after each pass with its number and its number of phrases.

    Raises
    ------
    CorpusError
        A file cannot be read, is not text, or has no tokens.
    UsageError
        The output is also an input.
    ResourceError
        The output or the cache cannot be written.
    """
    paths = Paths().reads("CORPUS", *corpus).writes("--output", os.fspath(output))
    paths.temporary("--cache-dir", cache_dir).check()
    how = dict(vars(text or VocabularyOptions()), min_count=1, max_vocab=None)
    with encode(corpus, VocabularyOptions(**how), cache_dir=cache_dir, threads=threads) as encoded:
        joined = _Text(encoded.ids, encoded.vocabulary)
        passes = []
        for number in range(1, 1 + (options.passes if table is None else len(table.passes))):
            found = joined.phrases(options) if table is None else table.passes[number - 1]
            joined.join(found)
            passes.append(found)
            if report:
                report(number, len(found))
        written = joined.write(output)
        used = PhraseTable(tuple(passes))
        return JoinedCorpus(used, encoded.lines, encoded.tokens, len(encoded.ids) - written)


class _Text:
    """Encoded text with the pairs joined so far."""

    def __init__(self, ids: NDArray[np.uint32], words: Words) -> None:
        self._ids = ids
        self._passes: list[PairJoins] = []
        self._table = core.Table()
        self._table.add(words.text, words.offsets, np.zeros(len(words), dtype=np.int64))

    def _pieces(self) -> Iterator[NDArray[np.uint32]]:
        """Yield the ids of the text with phrases joined."""
        starts = range(0, len(self._ids), PIECE)
        pieces: Iterable[NDArray[np.uint32]] = (self._ids[i : i + PIECE] for i in starts)
        for joins in self._passes:
            pieces = joins.applied(pieces)
        return iter(pieces)

    def phrases(self, options: PhraseOptions) -> tuple[Phrase, ...]:
        """Find the phrases of the current text, by descending score."""
        counts = np.zeros(len(self._table), dtype=np.int64)
        for ids in self._pieces():
            counts += np.bincount(ids & NUMBER, minlength=len(counts))
        frequent = counts >= options.min_count
        left, right, together = count_pairs(inner_pairs(self._pieces()), frequent)
        scores = score(options, counts[left], counts[right], together, int(counts.sum()))
        threshold = options.threshold
        if threshold is None:
            threshold = THRESHOLDS[options.scorer]
        chosen = np.flatnonzero((together >= options.min_count) & (scores > threshold))
        chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
        columns = (
            self._words(left[chosen]),
            self._words(right[chosen]),
            together[chosen].tolist(),
            scores[chosen].tolist(),
        )
        return tuple(Phrase(*row) for row in zip(*columns, strict=True))

    def _words(self, numbers: NDArray[np.integer[Any]]) -> Words:
        return Words(*self._table.words(numbers.astype(np.int64)))

    def join(self, phrases: Sequence[Phrase]) -> None:
        """Join these pairs in all later reads."""
        left = self._numbers([phrase.left.encode() for phrase in phrases])
        right = self._numbers([phrase.right.encode() for phrase in phrases])
        words = len(self._table)
        joined = [JOINER.join((one.left.encode(), one.right.encode())) for one in phrases]
        self._passes.append(PairJoins(left, right, self._numbers(joined), words))

    def _numbers(self, words: Sequence[bytes]) -> NDArray[np.uint32]:
        """Return the ids of words; new words get new ids."""
        place = {word: number for number, word in enumerate(dict.fromkeys(words))}
        listed = Words.from_words(place)
        own = core.Table()
        own.add(listed.text, listed.offsets, np.zeros(len(place), dtype=np.int64))
        numbers = np.zeros(len(place), dtype=np.uint32)
        self._table.merge(own, 0, len(place), 0, numbers)
        return numbers[np.array([place[word] for word in words], dtype=np.int64)]

    def write(self, output: str | os.PathLike[str]) -> int:
        """Write the text and return its number of tokens."""
        words = self._words(np.arange(len(self._table)))
        spaced = np.insert(words.text, words.offsets[1:], ord(" "))
        starts = words.offsets + np.arange(len(words.offsets))
        tokens = 0
        with atomic_write(output) as file:
            for ids in self._pieces():
                file.write(_text_of(ids, spaced, starts).data)
                tokens += len(ids)
        return tokens


def score(
    options: PhraseOptions,
    left: NDArray[np.int64],
    right: NDArray[np.int64],
    together: NDArray[np.int64],
    tokens: int,
) -> NDArray[np.float64]:
    """Return the scores of pairs from the counts of words and pairs, shape (n,)."""
    a, b, ab = (counts.astype(np.float64) for counts in (left, right, together))
    if options.scorer == "npmi":
        npmi: NDArray[np.float64] = np.log(ab * tokens / (a * b)) / -np.log(ab / tokens)
        return npmi
    return (ab - options.min_count) / (a * b) * tokens


def _text_of(
    ids: NDArray[np.uint32], spaced: NDArray[np.uint8], starts: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return the text of ids, with a space after each word or a line feed at the end of a line."""
    numbers = (ids & NUMBER).astype(np.int64)
    lengths = starts[numbers + 1] - starts[numbers]
    ends = np.cumsum(lengths)
    shift = starts[numbers] - (ends - lengths)
    text: NDArray[np.uint8] = spaced[np.repeat(shift, lengths) + np.arange(lengths.sum())]
    text[ends[(ids & LAST) != 0] - 1] = ord("\n")
    return text
