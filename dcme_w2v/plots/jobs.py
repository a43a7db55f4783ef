"""What is drawn of each kind of file; called by `dcme_w2v.cli.plot`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.opening import head_of
from dcme_w2v.formats.run_log import is_log
from dcme_w2v.plots.curves import draw_curves
from dcme_w2v.plots.tables import draw_file
from dcme_w2v.words.vectors import Vectors

_JSON = re.compile(rb"\s*\{\s*\"")  # an object with a key


@dataclass(frozen=True)
class Kind:
    """A kind of file: its name, how it is drawn, and the options that it takes."""

    name: str
    draw: Callable[..., None]
    options: tuple[str, ...]


def kind_of(paths: Sequence[str]) -> Kind:
    """Return what is drawn of files; several must be logs.

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
    if not Path(paths[0]).is_dir() and _JSON.match(head_of(paths[0])):
        return Kind("tables", _draw_table, ("column",))
    return Kind("word vectors", _draw_words, ("words", "limit", "method", "seed"))


def _draw_table(paths: Sequence[str], output: str, column: str | None = None) -> None:
    draw_file(paths[0], output, column)


def _draw_words(paths: Sequence[str], output: str, words: str = "", **options: Any) -> None:
    from dcme_w2v.plots.words import draw_words

    draw_words(Vectors.load(paths[0]), output, words.split(), **options)
