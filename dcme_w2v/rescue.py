"""Results that cannot be written where they belong are kept elsewhere: no run is lost.

Called by whoever writes what has taken long to compute: vectors and models. What was kept is said
in the error, because a run whose files are not where they were asked for has failed.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dcme_w2v.errors import DcmeError, ResourceError, UsageError
from dcme_w2v.files import is_stream
from dcme_w2v.folders import remove_files

PREFIX = "dcme-w2v-"  # of the folders that results are kept in
# A target may have become a folder, or somebody else's, since it was checked: a `UsageError`.
_FAILURES = (ResourceError, UsageError)
_LONGEST = 100  # bytes of a name that is used again
_SUFFIX = 12


@dataclass(frozen=True)
class Result:
    """Something to be written.

    Attributes
    ----------
    path : str
        Where it belongs; ``-`` and other streams, too.
    name : str
        What it is called elsewhere if `path` has no name that can be used again.
    write : callable
        Writes it to a path; raises `ResourceError` or `UsageError` if that fails.
    """

    path: str
    name: str
    write: Callable[[str], object]


def write_or_keep(
    results: Sequence[Result], instead: Callable[[], str | None] = lambda: None
) -> None:
    """Write results; those that cannot be written are kept elsewhere.

    All are tried, so that one full disk does not cost what belongs on another. Tried in turn are a
    new folder beside the target, one in the folder for temporary files, and one in the cache folder
    (``$XDG_CACHE_HOME`` or ``~/.cache``).

    Parameters
    ----------
    results : sequence of Result
    instead : callable, optional
        Asked first when something could not be written: keeps all in another way and returns what
        to say of it, or None if it cannot.

    Raises
    ------
    ResourceError
        Something could not be written; its message says where it was kept.
    """
    failed: list[tuple[Result, DcmeError]] = []
    for one in results:
        try:
            one.write(one.path)
        except _FAILURES as error:
            failed.append((one, error))
    if failed:
        said = list(dict.fromkeys(error.message for _, error in failed))
        kept = _instead(instead) or _kept([one for one, _ in failed])
        raise ResourceError("; ".join([*said, kept])) from failed[0][1]


def _instead(keep: Callable[[], str | None]) -> str | None:
    with contextlib.suppress(ResourceError):
        return keep()
    return None


def _kept(results: Sequence[Result]) -> str:
    """Write each result elsewhere and say where."""
    places = {one.path: _keep(one) for one in results}
    lost = [path for path, place in places.items() if place is None]
    found = [place for place in places.values() if place is not None]
    if not lost:
        return f"nothing is lost: written to {' and '.join(found)} instead"
    said = f"{' and '.join(lost)} cannot be kept elsewhere"
    return f"{said}, only {' and '.join(found)}" if found else said


def _keep(result: Result) -> str | None:
    """Write a result to the first place that works and return its path."""
    for folder in _folders(result.path):
        try:
            new = Path(tempfile.mkdtemp(dir=folder, prefix=PREFIX))
        except OSError:
            continue
        path = new / _name(result)
        try:
            result.write(str(path))
        except _FAILURES:
            remove_files(new)
        else:
            return str(path)
    return None


def _folders(path: str) -> Iterator[Path]:
    if not is_stream(path):
        yield Path(os.path.realpath(path)).parent
    with contextlib.suppress(FileNotFoundError):  # no folder for temporary files works
        yield Path(tempfile.gettempdir())
    cache = os.environ.get("XDG_CACHE_HOME", "")
    with contextlib.suppress(RuntimeError):  # no home
        folder = (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "dcme-w2v"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        yield folder


def _name(result: Result) -> str:
    """Return the name that a result has elsewhere; its suffix stays, which may tell the format."""
    name = "" if is_stream(result.path) else Path(result.path).name
    if 0 < len(os.fsencode(name)) <= _LONGEST:
        return name
    suffix = Path(name).suffix
    return result.name + (suffix if len(os.fsencode(suffix)) <= _SUFFIX else "")
