"""`train`: train word vectors from Python; `dcme_w2v.words.run` does the work."""

import inspect
import numbers
import os
from collections.abc import Callable
from typing import Any

from dcme_w2v.declarations import check_names, declaration_of
from dcme_w2v.errors import UnknownOptionError, in_python_terms
from dcme_w2v.formats.sentences import CorpusLike, paths_or_sentences
from dcme_w2v.training.progress import ProgressUpdate, Reporter, reporting_to

from . import run
from .job import FIELDS, TrainJob
from .vectors import Vectors

TrainFunction = Callable[[TrainJob, Reporter], Vectors]


def train(
    corpus: CorpusLike | None = None,
    *,
    progress: bool | Callable[[ProgressUpdate], object] = False,
    **options: Any,
) -> Vectors:
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
    **options
        See below. Paths may be `pathlib.Path`; `read_vocab` may also be a mapping of words to
        counts, `init` and `init_context` also `Vectors`, `holdout` also a float.

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
    return train_by(run.train, corpus, progress, options)


def train_by(
    train_job: TrainFunction,
    corpus: CorpusLike | None,
    progress: bool | Callable[[ProgressUpdate], object],
    options: dict[str, Any],
) -> Vectors:
    """Make a job of the arguments of `train`, and train it by the given function."""
    check_names(options, [*FIELDS, "progress"])
    if corpus is None:
        raise UnknownOptionError("no corpus; give a path, paths, or sentences first")
    given = {name: _plain(name, value) for name, value in options.items()}
    paths, sentences = paths_or_sentences(corpus)
    job = TrainJob.of(paths, given, sentences)
    with reporting_to(progress, job.log_json, job.checkpoints.resume is not None) as reporter:
        try:
            return train_job(job, reporter)
        except KeyboardInterrupt as error:
            error.partial = getattr(error, "partial", None)  # type: ignore[attr-defined]
            raise


def _plain(name: str, value: Any) -> Any:
    """Return paths as strings, and numbers as strings for options of type str."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return str(value) if number and name in ("holdout", "checkpoint_every") else value


def _signature() -> inspect.Signature:
    """Return the signature with all options, for help() and completion."""
    signature = inspect.signature(train)
    kept = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    kept[0] = kept[0].replace(default=inspect.Parameter.empty)
    keyword = inspect.Parameter.KEYWORD_ONLY
    options = [inspect.Parameter(item.name, keyword, default=item.default, annotation=item.type)
               for item in FIELDS.values()]  # fmt: skip
    return signature.replace(parameters=[*kept, *options])


def _described() -> str:
    """Return the options as a section of the docstring."""
    lines = ["", "    Other Parameters", "    ----------------"]
    for item in FIELDS.values():
        help = in_python_terms(declaration_of(item).help)
        lines += [f"    {item.name} : {item.type}, default {item.default!r}", f"        {help}"]
    return "\n".join(lines)


train.__signature__ = _signature()  # type: ignore[attr-defined]
train.__doc__ = (train.__doc__ or "").rstrip() + "\n" + _described()
