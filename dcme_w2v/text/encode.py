"""Encode a corpus: read its text once, count the words, and store the tokens as word IDs.

`vocab` is `dcme_w2v.vocab`, which only counts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v._core import text as core
from dcme_w2v.declarations import check_names, options_in, threads_of
from dcme_w2v.errors import CorpusError, NoWordsError, UsageError
from dcme_w2v.formats.columns import Source, with_columns
from dcme_w2v.formats.corpus import BLOCK_BYTES, Corpus, CorpusLike, Sentences, paths_or_sentences
from dcme_w2v.formats.vocabulary import Vocabulary, Words, check_lengths
from dcme_w2v.formats.vocabulary import merge as merge_counts
from dcme_w2v.numeric.arrays import I64, U32
from dcme_w2v.options import ClusterOptions, VocabularyOptions
from dcme_w2v.training.executor import on_cluster
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to

from .cache import HeldOutLines, IdCache, compact
from .reading import Reading
from .select_vocabulary import Given, InitialWords, ids_of, select_vocabulary


@dataclass
class CountedCorpus:
    """The vocabulary and token counts from one pass over a corpus.

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
    files : list of dict
        ``path`` and stored ``size`` in bytes of each file, None for streams.
    seconds : float
        Wall time.
    counting_bytes : int
        Largest memory of the distinct words.
    """

    vocabulary: Vocabulary
    tokens: int
    types: int
    out_of_vocabulary: int
    replaced: int
    skipped: int
    files: list[dict[str, Any]]
    seconds: float
    counting_bytes: int


@dataclass
class EncodedCorpus(CountedCorpus):
    """A corpus as word IDs; deleting the array of IDs also removes its temporary file.

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
        Number of held-out tokens, including out-of-vocabulary tokens.
    unk_tokens : int
        Number of out-of-vocabulary tokens that became the word `unk`; they are included in `ids`.
    """

    ids: U32
    counts: I64
    lines: int
    held_out: U32
    held_out_tokens: int
    unk_tokens: int = 0


def count(
    corpus: Sequence[Source] | Sentences,
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
    reading = Reading(source, options, threads, reporter)
    reading.run()
    options, counts = reading.options, reading.counts()
    found = select_vocabulary(None, reading.words.table, counts, options)
    if found is None:
        raise CorpusError(_empty_vocabulary(reading, counts, options, None))
    check_lengths(found.vocabulary, source.paths[0])
    kept = int(found.counts.sum())
    return CountedCorpus(found.vocabulary, **reading.figures(counts, kept, started))


def tally(
    corpus: Corpus, options: VocabularyOptions, known: Words | None
) -> tuple[core.Table, dict[str, Any]]:
    """Count all words, or only the words in `known`, in one part of a corpus.

    Parameters
    ----------
    known : Words, optional
        The only words that are counted; they come first in the table.

    Returns
    -------
    table : core.Table
        The words in the order of their first appearance.
    figures : dict
        The fields of `CountedCorpus` without the vocabulary, and "below": words with counts up to
        this number may be missing, and other counts may be too low by up to this number.
    """
    started = time.perf_counter()
    given = None if known is None else InitialWords(known, None, adds=False)
    reading = Reading(corpus, options, given=given, is_looked_at=False)
    reading.read()
    figures = reading.figures(reading.counts(), reading.tokens, started)
    return reading.words.table, {**figures, "below": reading.words.below}


def encode(
    corpus: Sequence[Source] | Sentences | Corpus,
    options: VocabularyOptions,
    *,
    vocabulary: Given = None,
    unk: str | None = None,
    holdout: HeldOutLines | None = None,
    threads: int = 1,
    reporter: Reporter | None = None,
    _block_bytes: int = BLOCK_BYTES,
) -> EncodedCorpus:
    """Count the words of a corpus and encode its text as word IDs in a single pass.

    Parameters
    ----------
    corpus, options, threads, reporter
        See `count`; the corpus may also be an iterable of sentences, or ranges of files.
    vocabulary : Vocabulary or InitialWords, optional
        The vocabulary, pruned by `options` (default: counted from the corpus); or `InitialWords`,
        which are kept, with or without further words of the corpus.
    unk : str, optional
        Word that replaces all out-of-vocabulary tokens. It is added to the vocabulary only if there
        are any.
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
    cache = IdCache()
    try:
        reading = Reading(
            source,
            options,
            threads,
            reporter,
            cache=cache,
            given=given,
            is_looked_at=not isinstance(corpus, Corpus),
        )
        reading.run(holdout)
        words, options = reading.words, reading.options
        rare = None if unk is None else int(ids_of(words.table, Words.from_words([unk]))[0])
        counts = reading.counts()
        # Subtract the tokens in held-out lines, which are not used for training.
        lost = words.lost - int(reading.held_out[len(words.table) :].sum())
        kept = select_vocabulary(given, words.table, counts, options, rare, lost)
        if kept is None or not kept.counts.sum():
            raise NoWordsError(_empty_vocabulary(reading, counts, options, given))
        check_lengths(kept.vocabulary, reading.corpus.paths[0])
        other = core.NONE if rare is None else kept.ranks[rare]
        # Also assign `other` to dropped words and to the ID that represents skipped tokens.
        others = len(words) + 1 - len(kept.ranks)
        ranks = np.append(kept.ranks, np.full(others, other, dtype=np.uint32))
        split = compact(cache, ranks, reading.numbering.lines, holdout)
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
    corpus: Sequence[Source] | Sentences | Corpus, options: VocabularyOptions, block_bytes: int
) -> Corpus | Sentences:
    if options.sentences == "paragraphs" and (options.text_column or isinstance(corpus, Sentences)):
        raise UsageError(
            "--sentences=paragraphs is available only for text files; for columns and lists, use "
            "--sentences=whole, which makes each text one sentence"
        )
    if isinstance(corpus, Sentences):
        corpus.is_whole = options.sentences == "whole"
        corpus.column = options.text_column or corpus.column
    if isinstance(corpus, Sentences | Corpus):
        return corpus
    paths = with_columns(corpus, options.text_column, whole=options.sentences == "whole")
    return Corpus(paths, block_bytes)


def _empty_vocabulary(
    reading: Reading, counts: I64, options: VocabularyOptions, given: Given
) -> str:
    types, tokens = reading.types(counts), reading.tokens
    tokens -= reading.held_out_tokens
    if not tokens:
        return (
            f"all {reading.held_out_tokens:,} tokens are held out; set --holdout to a smaller "
            "fraction, or to a separate file"
        )
    if given is None:
        return all_rare(types, tokens, options)
    known = f"none of the {types} distinct words ({tokens} tokens) is among the "
    if isinstance(given, Vocabulary):
        lower = "lower --min-count, or " * (options.min_count > 1)
        return f"{known}{len(given)} words of the vocabulary; {lower}use another --read-vocab"
    known += f"{len(given.words)} words of --init"
    if given.adds:
        return f"{known}, or occurs at least {options.min_count} times; lower --min-count"
    return f"{known}; use other vectors, or --init-vocab=union"


def all_rare(types: int, tokens: int, options: VocabularyOptions) -> str:
    """Return the error message for a corpus whose vocabulary would be empty."""
    return (
        f"none of the {types} distinct words ({tokens} tokens) occurs at least "
        f"{options.min_count} times; lower --min-count"
    )


COUNTING = (VocabularyOptions, ClusterOptions)  # option classes whose options `vocab` accepts


def vocab(
    corpus: CorpusLike,
    *,
    merge: bool = False,
    threads: int | None = None,
    progress: ProgressLike = False,
    **options: Any,
) -> Vocabulary:
    """Count the words in a corpus, and return its vocabulary.

    Parameters
    ----------
    corpus : path, paths, or iterable of sentences
        As in `dcme_w2v.train`.
    merge : bool
        Add up word counts: the files in `corpus` contain lines "word count".
    threads : int, optional
        Number of threads (default: the number of CPUs available to this process). The result does
        not depend on this number.
    progress : bool or callable
        As in `dcme_w2v.train`.
    **options
        Options of the command ``vocab``, such as ``min_count``, ``max_vocab``, ``encoding_errors``
        and ``cluster``.

    Returns
    -------
    Vocabulary
        A sequence of the kept words (str), in descending order of count, with `counts`,
        ``items()``, ``most_common(n)`` and ``save(path)``. `figures` contains the numbers of tokens
        and of distinct words.

    Raises
    ------
    CorpusError
        A file cannot be read or is not text, or no word is kept.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> found = dw.vocab([["a", "rose", "is", "a", "rose"]], min_count=1)
    >>> dict(found.items())
    {'a': 2, 'rose': 2, 'is': 1}
    >>> found.most_common(1)
    [('a', 2)]
    >>> found.figures["tokens"], found.figures["types"]
    (5, 3)
    """
    known = [{item.name for item in options_in(cls)} for cls in COUNTING]
    check_names(options, set.union(*known))
    wanted, where = (
        cls(**{name: value for name, value in options.items() if name in names})
        for cls, names in zip(COUNTING, known, strict=True)
    )
    paths, sentences = paths_or_sentences(corpus)
    if merge and where.cluster is not None:
        raise UsageError(
            f"--cluster={where.cluster} is not supported with --merge; omit one of the two options"
        )
    if merge:
        everything = merge_counts([Vocabulary.load(path) for path in paths])
        found, tokens = everything.pruned(wanted), int(everything.counts.sum())
        rare = tokens - int(found.counts.sum())
        figures = {"tokens": tokens, "types": len(everything), "out_of_vocabulary": rare}
    else:
        if where.cluster is not None:
            counted = on_cluster("shards:count_on")(where, paths, wanted)
        else:
            with reporting_to(progress) as reporter:
                counted = count(
                    sentences or paths, wanted, threads=threads_of(threads), reporter=reporter
                )
        found = counted.vocabulary
        figures = {name: value for name, value in vars(counted).items() if name != "vocabulary"}
    return Vocabulary(found.text, found.offsets, found.counts, {**figures, "kept": len(found)})
