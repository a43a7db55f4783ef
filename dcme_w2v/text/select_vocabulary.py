"""Select the vocabulary of a counted corpus, which consists of frequent words and given words."""

from dataclasses import dataclass

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.formats.vocabulary import Vocabulary, Words
from dcme_w2v.numeric.arrays import I64, U32
from dcme_w2v.options import VocabularyOptions


@dataclass(frozen=True)
class InitialWords:
    """Words to keep in the vocabulary regardless of their counts in the corpus.

    Attributes
    ----------
    words : Words
    counts : ndarray of int64, shape (len(words),), or None
        Their counts in earlier text, which are added to those in the corpus. Without them, a word
        that is not in the corpus counts as one.
    adds : bool
        Whether to keep other words, too, if they occur often enough in the corpus.
    """

    words: Words
    counts: I64 | None
    adds: bool


Given = Vocabulary | InitialWords | None


@dataclass(frozen=True)
class Kept:
    """A selected vocabulary, with the vocabulary ID of each word that occurs in the corpus.

    Attributes
    ----------
    vocabulary : Vocabulary
    ranks : ndarray of uint32
        For each word of the corpus, its ID in the vocabulary or `core.NONE`.
    counts : ndarray of int64, shape (len(vocabulary),)
        Counts in the corpus.
    rare : int
        Number of tokens whose words are not kept and that became `unk`.
    """

    vocabulary: Vocabulary
    ranks: U32
    counts: I64
    rare: int = 0


def ids_of(table: core.Table, words: Words) -> U32:
    """Return the IDs of words in a table; words that are not in the table are added to it."""
    numbers = np.zeros(len(words), dtype=np.uint32)
    table.merge(words.new_table(), 0, len(words), 0, numbers)
    return numbers


def select_vocabulary(
    given: Given,
    table: core.Table,
    counts: I64,
    options: VocabularyOptions,
    unk: int | None = None,
    lost: int = 0,
) -> Kept | None:
    """Select the words of the vocabulary; return None if no word remains.

    Parameters
    ----------
    given : Vocabulary, InitialWords or None
        The first words of the table.
    table : core.Table
        All words.
    counts : ndarray of int64
        The counts of the words in the corpus.
    options : VocabularyOptions
        Applies to words that are not given; `max_vocab` includes the given words.
    unk : int, optional
        The ID of the word that replaces all other words; not kept if there are no others.
    lost : int
        Number of tokens of further words, which the table no longer has.
    """
    chosen, weights = _chosen(given, counts, options)
    is_kept = np.zeros(len(counts), dtype=bool)
    is_kept[chosen] = True
    rare = 0 if unk is None else int(counts[~is_kept].sum()) + lost
    if unk is not None and rare:
        others = rare - (0 if is_kept[unk] else int(counts[unk]))
        counts, weights = counts.copy(), weights.copy()
        counts[unk] += others
        # If the user's vocabulary contains `unk`, its weight is the count in that vocabulary.
        if not (isinstance(given, Vocabulary) and is_kept[unk]):
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
    """Return the IDs of the words to keep, and the counts that determine the vocabulary's order."""
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
    """Return the IDs of words that occur at least `min_count` times, the most frequent first."""
    found = np.flatnonzero(counts >= options.min_count)
    order = np.argsort(-counts[found], kind="stable")
    return np.asarray(found[order][: options.max_vocab])
