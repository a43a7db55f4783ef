"""Pictures of files: `plot` detects what a file holds, and draws curves or words."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import Paths
from dcme_w2v.formats.run_log import is_log
from dcme_w2v.plots.curves import draw_curves
from dcme_w2v.plots.figure import picture_format
from dcme_w2v.plots.words import draw_words
from dcme_w2v.words.vectors import Vectors


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, how it is drawn, and the options that it takes."""

    name: str
    draw: Callable[..., None]
    options: tuple[str, ...]


def plot(
    files: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    fields: Sequence[str] | None = None,
    words: str | None = None,
    limit: int | None = None,
    method: str | None = None,
    seed: int | None = None,
) -> None:
    """Draw learning curves of logs, or words on a plane. Requires the extra ``plot``.

    Parameters
    ----------
    files : path or sequence of paths
        One or several logs of --log-json, or one file of word vectors.
    output : path
        Picture: .png, .pdf or .svg; ``-`` is standard output.
    fields : sequence of str, optional
        Figures of the logs, such as ``lr`` (default: loss and log-probabilities).
    words : str, optional
        Words to draw, separated by spaces (default: the `limit` most frequent).
    limit : int, optional
        Number of words (default: 200).
    method : {"tsne", "pca"}, optional
        Projection of words (default: tsne).
    seed : int, optional
        Seed of the projection (default: 1).

    Raises
    ------
    UsageError
        An option is not one for this kind of file, or the suffix of `output` is another.
    DcmeError
        matplotlib or openTSNE is not installed.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", dim=8, epochs=2, threads=1, log_json="train.log")
    >>> dw.plot("train.log", "curves.svg")
    """
    listed = [files] if isinstance(files, str | os.PathLike) else files
    paths, output = [os.fspath(path) for path in listed], os.fspath(output)
    Paths().reads("FILES", *paths).writes("--output", output).check()
    picture_format(output)
    kind = kind_of(paths)
    values = {"fields": fields, "words": words, "limit": limit, "method": method, "seed": seed}
    given = {name: value for name, value in values.items() if value}
    wrong = [name for name in given if name not in kind.options]
    if wrong:
        name = wrong[0]
        flag, shown = ("field", (fields or [""])[0]) if name == "fields" else (name, given[name])
        raise UsageError(f"--{flag}={shown}: is not an option of {kind.name}")
    kind.draw(paths, output, **given)


def kind_of(paths: Sequence[str]) -> Kind:
    """Return the drawing of files; several files must be logs.

    Raises
    ------
    UsageError
        There are several files, and not all are logs.
    """
    for path in paths:
        if is_stream(path):
            raise UsageError(f"{path}: is a stream; give a file")
    logs = [not Path(path).is_dir() and is_log(path) for path in paths]
    if all(logs):
        return Kind("logs", draw_curves, ("fields",))
    if len(paths) > 1:
        other = paths[logs.index(False)]
        raise UsageError(f"{other}: is not a log of --log-json; of other files, give one at a time")
    return Kind("word vectors", _draw_words, ("words", "limit", "method", "seed"))


def _draw_words(paths: Sequence[str], output: str, words: str = "", **options: Any) -> None:
    draw_words(Vectors.load(paths[0]), output, words.split(), **options)
