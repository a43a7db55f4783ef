"""`dcme_w2v.vocab`: counts the words of a text, on one machine or on a cluster."""

from typing import Any

from dcme_w2v.declarations import check_names, options_in, threads_of
from dcme_w2v.errors import UsageError
from dcme_w2v.formats.corpus import CorpusLike, paths_or_sentences
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.formats.vocabulary import merge as merge_counts
from dcme_w2v.options import ClusterOptions, VocabularyOptions
from dcme_w2v.text.encode import count
from dcme_w2v.training.progress import ProgressLike, reporting_to

OPTIONS = (VocabularyOptions, ClusterOptions)


def vocab(
    corpus: CorpusLike,
    *,
    merge: bool = False,
    threads: int | None = None,
    progress: ProgressLike = False,
    **options: Any,
) -> Vocabulary:
    """Count the words of a corpus.

    Parameters
    ----------
    corpus : path, paths, or iterable of sentences
        As in `dcme_w2v.train`.
    merge : bool
        Add up counts: `corpus` are files of lines "word count".
    threads : int, optional
        Default: the CPUs that this process may use. The result does not depend on it.
    progress : bool or callable
        As in `dcme_w2v.train`.
    **options
        Options of the command: ``min_count``, ``max_vocab``, ``encoding_errors``, ``cluster``...

    Returns
    -------
    Vocabulary
        The kept words by descending count: a sequence of str, with `counts`, ``items()``,
        ``most_common(n)``, ``save(path)``, and in `figures` the numbers of tokens and of distinct
        words.

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
    known = [{item.name for item in options_in(cls)} for cls in OPTIONS]
    check_names(options, set.union(*known))
    wanted, where = (
        cls(**{name: value for name, value in options.items() if name in names})
        for cls, names in zip(OPTIONS, known, strict=True)
    )
    paths, sentences = paths_or_sentences(corpus)
    if merge and where.cluster is not None:
        raise UsageError(f"--cluster={where.cluster}: is not supported with --merge; omit one")
    if merge:
        everything = merge_counts([Vocabulary.load(path) for path in paths])
        found, tokens = everything.pruned(wanted), int(everything.counts.sum())
        rare = tokens - int(found.counts.sum())
        figures = {"tokens": tokens, "types": len(everything), "out_of_vocabulary": rare}
    else:
        if where.cluster is not None:
            from .shards import count_on

            counted = count_on(where, paths, wanted)
        else:
            with reporting_to(progress) as reporter:
                counted = count(
                    sentences or paths, wanted, threads=threads_of(threads), reporter=reporter
                )
        found = counted.vocabulary
        figures = {name: value for name, value in vars(counted).items() if name != "vocabulary"}
    found.figures.update(figures, kept=len(found))
    return found
