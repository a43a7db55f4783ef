"""Which words of a counted corpus are kept: by their counts, or because they are given."""

from dataclasses import dataclass

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.formats.vocabulary import Vocabulary, Words
from dcme_w2v.numeric.arrays import I64, U32
from dcme_w2v.options import VocabularyOptions


@dataclass(frozen=True)
class InitialWords:
    """Words that are kept whatever their count in the corpus, and whether others are added.

    Attributes
    ----------
    words : Words
    counts : ndarray of int64, shape (len(words),), or None
        Their counts in earlier text, which are added to those in the corpus. Without them, a word
        that is not in the corpus counts as one.
    adds : bool
        Whether the words of the corpus that occur often enough are kept, too.
    """

    words: Words
    counts: I64 | None
    adds: bool


Given = Vocabulary | InitialWords | None


@dataclass(frozen=True)
class Kept:
    """The words that are kept.

    Attributes
    ----------
    vocabulary : Vocabulary
    ranks : ndarray of uint32
        The id of each word of the corpus, or `core.NONE`.
    counts : ndarray of int64, shape (len(vocabulary),)
        Counts in the corpus.
    rare : int
        Tokens of words that are not kept and became the word of `unk`.
    """

    vocabulary: Vocabulary
    ranks: U32
    counts: I64
    rare: int = 0


def starting_table(given: Words | InitialWords | None) -> core.Table:
    """Return a table that begins with the given words, with counts of zero."""
    table = core.Table()
    words = given.words if isinstance(given, InitialWords) else given
    if words is not None:
        table.add(words.text, words.offsets, np.zeros(len(words), dtype=np.int64))
    return table


def ids_of(table: core.Table, words: Words) -> U32:
    """Return the ids of distinct words in a table, to which new words are added."""
    numbers = np.zeros(len(words), dtype=np.uint32)
    table.merge(starting_table(words), 0, len(words), 0, numbers)
    return numbers


def select_vocabulary(
    given: Given,
    table: core.Table,
    counts: I64,
    options: VocabularyOptions,
    unk: int | None = None,
) -> Kept | None:
    """Return the words that are kept, None if there are none.

    Parameters
    ----------
    given : Vocabulary, InitialWords or None
        The first words of the table.
    table : core.Table
        All words.
    counts : ndarray of int64
        Their counts in the corpus.
    options : VocabularyOptions
        Applies to words that are not given; `max_vocab` includes given ones.
    unk : int, optional
        The id of the word that all tokens of other words become; not kept if there are none.
    """
    chosen, weights = _chosen(given, counts, options)
    is_kept = np.zeros(len(counts), dtype=bool)
    is_kept[chosen] = True
    rare = 0 if unk is None else int(counts[~is_kept].sum())
    if unk is not None and rare:
        others = rare - (0 if is_kept[unk] else int(counts[unk]))
        counts, weights = counts.copy(), weights.copy()
        counts[unk] += others
        if not (isinstance(given, Vocabulary) and is_kept[unk]):  # whose counts are given, too
            weights[unk] += others
        chosen = chosen if is_kept[unk] else np.append(chosen, unk)
    if not len(chosen):
        return None
    order = chosen[np.argsort(-weights[chosen], kind="stable")]
    ranks = np.full(len(counts), core.NONE, dtype=np.uint32)
    if rare:
        ranks[:] = np.flatnonzero(order == unk)[0]
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    vocabulary = Vocabulary(*table.words(order), weights[order])
    own = vocabulary.counts if given is None else counts[order]
    return Kept(vocabulary, ranks, own, rare)


def _chosen(given: Given, counts: I64, options: VocabularyOptions) -> tuple[I64, I64]:
    """Return the ids of the words that are kept, and the counts of the vocabulary by id."""
    if given is None:
        return frequent(counts, options), counts
    weights = counts.copy()
    if isinstance(given, Vocabulary):
        weights[: len(given)] = given.counts
        return np.arange(len(given)), weights
    first = len(given.words)
    if given.counts is None:
        weights[:first] = np.maximum(counts[:first], 1)
    else:
        weights[:first] = np.maximum(counts[:first] + given.counts, 1)
    if not given.adds:
        return np.arange(first), weights
    added = first + frequent(counts[first:], options)
    if options.max_vocab is not None:
        added = added[: max(0, options.max_vocab - first)]
    return np.concatenate([np.arange(first), added]), weights


def frequent(counts: I64, options: VocabularyOptions) -> I64:
    """Return the words that occur often enough, most frequent first; ties keep their order."""
    found = np.flatnonzero(counts >= options.min_count)
    order = np.argsort(-counts[found], kind="stable")
    return np.asarray(found[order][: options.max_vocab])
