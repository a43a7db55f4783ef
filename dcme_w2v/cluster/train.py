"""`dcme_w2v.train`: word vectors on one machine or on a cluster."""

import inspect
import numbers
import os
import textwrap
from contextlib import AbstractContextManager
from typing import Any

from dcme_w2v.declarations import check_names, described
from dcme_w2v.errors import UnknownOptionError
from dcme_w2v.formats.corpus import CorpusLike, paths_or_sentences
from dcme_w2v.platform import ReceivedSignal
from dcme_w2v.training.progress import ProgressLike, reporting_to
from dcme_w2v.words.train import FIELDS, TrainJob, train_job
from dcme_w2v.words.vectors import Vectors


def train(
    corpus: CorpusLike | None = None,
    *,
    progress: ProgressLike = False,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
    dry_run: bool = False,
    **options: Any,
) -> Any:
    """Train word vectors.

    Parameters
    ----------
    corpus : path, paths, or iterable of sentences
        A file, a folder, a URL or ``-``, several of them, or sentences: lists of tokens, or lines,
        which are split at whitespace. Files may be compressed. A list or tuple of strings is read
        as paths if all of them exist, or if each has a slash or a suffix and no whitespace;
        otherwise as lines. Lines without whitespace, as of Japanese, are an error: give lists of
        tokens. The corpus is read once; an iterable is not kept in memory.
    progress : bool or callable
        True draws progress bars with tqdm, in a notebook too. A function is called with a
        `ProgressUpdate` about five times a second.
    signals, dry_run
        For the program: see `dcme_w2v.words.train.train_job`.
    **options
        See below; the page on the command `train` has those for research, too. Paths may be
        `pathlib.Path`; `read_vocab` may also be a mapping of words to counts, `init` also
        `Vectors`, `holdout` also a float.

    Returns
    -------
    Vectors
        Words by descending count, float32 vectors of shape (n, dim), with counts, the context
        vectors as `context` and the manifest as `manifest`: all options as used, tokens, seconds
        and loss.

    Raises
    ------
    TypeError
        There is no such option; the message suggests the nearest.
    ValueError
        An option is out of bounds, or the corpus has no tokens to train on.
    OSError, MemoryError
        A file cannot be read or written, or there is not enough memory.
    FloatingPointError
        Training diverged.
    KeyboardInterrupt
        Its attribute `partial` has the `Vectors` so far, or None while the corpus is read. No
        signal handler is installed.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> sentences = [["tea", "with", "milk"], ["coffee", "with", "sugar"]] * 50
    >>> v = dw.train(sentences, dim=8, threads=1)
    >>> v
    Vectors(5 words, 8 dimensions)
    >>> v.manifest["tokens"]["corpus"], v.manifest["options"]["dim"]
    (300, 8)
    >>> dw.train(sentences, dim=0)
    Traceback (most recent call last):
      ...
    dcme_w2v.errors.UsageError: dim=0: must be at least 1
    """
    check_names(options, [*FIELDS, "progress"])
    if corpus is None:
        raise UnknownOptionError(
            "the corpus is empty; give a path, paths, or sentences as the first argument"
        )
    given = {name: _plain(name, value) for name, value in options.items()}
    paths, sentences = paths_or_sentences(corpus)
    job = TrainJob.of(paths, given, sentences)
    with reporting_to(progress, job.log_json, job.resume is not None) as reporter:
        try:
            if job.cluster is None:
                return train_job(job, reporter, signals, dry_run)
            from .word_training import cluster_of

            with cluster_of(job, reporter, dry_run) as (job, cluster):
                return train_job(job, reporter, signals, dry_run, cluster)
        except KeyboardInterrupt as error:
            error.partial = getattr(error, "partial", None)  # type: ignore[attr-defined]
            raise


def _plain(name: str, value: Any) -> Any:
    """Convert paths to strings, and numbers to strings for options of type str."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return str(value) if number and name in ("holdout", "checkpoint_every") else value


_SIGNATURE = inspect.signature(train)
_CORPUS, _PROGRESS = (_SIGNATURE.parameters[name] for name in ("corpus", "progress"))
_OPTIONS = [
    _PROGRESS.replace(
        name=item.name,
        default=item.default,
        annotation=item.type | None if item.optional else item.type,
    )
    for item in FIELDS.values()
]
train.__signature__ = _SIGNATURE.replace(  # type: ignore[attr-defined]
    parameters=[_CORPUS.replace(default=inspect.Parameter.empty), _PROGRESS, *_OPTIONS],
    return_annotation=Vectors,
)
_SHOWN = [item for item in FIELDS.values() if not item.advanced]  # by train --help
train.__doc__ = (train.__doc__ or "").rstrip() + textwrap.indent(
    "\n\nOther Parameters\n----------------\n" + described(_SHOWN), "    "
)
