"""Limits of disk space, and fallbacks for results that cannot be written."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dcme_w2v.errors import DcmeError, ResourceError, UsageError
from dcme_w2v.platform import PathLike, file_limit

from .atomic import is_stream
from .folders import remove_files


def free_bytes(folder: PathLike) -> int:
    """Return the free bytes of the file system that a folder is on."""
    return shutil.disk_usage(folder).free


def disk_plan(path: PathLike, total: int) -> list[dict[str, Any]]:
    """Return, for a plan, the folder that a target is in, the bytes needed and those free there."""
    folder = Path(os.path.realpath(path)).parent
    return [{"folder": str(folder), "bytes": total, "free_bytes": free_bytes(folder)}]


def require_disk(path: PathLike, total: int, largest: int | None = None) -> None:
    """Raise before work starts if there is not enough disk space for a file or a folder of files.

    Parameters
    ----------
    path : path
        The target; its parent folder exists.
    total, largest : int
        Size in bytes of all its files and of the largest one (default: a single file).

    Raises
    ------
    ResourceError
        There is less free space, or the file-size limit of this process is lower.
    """
    longest, limit = total if largest is None else largest, file_limit()
    if limit is not None and longest > limit:
        raise ResourceError(
            f"{os.fspath(path)}: needs a file of about {longest:,} bytes, the file-size limit is "
            f"{limit:,}: raise it with ulimit -f"
        )
    folder = Path(os.path.realpath(path)).parent
    free = free_bytes(folder)
    if total > free:
        raise ResourceError(
            f"{os.fspath(path)}: needs about {total:,} bytes, {free:,} are free in {folder}: "
            "free some space or choose another folder"
        )


PREFIX = "dcme-w2v-"  # prefix of the fallback folders
# A target may have changed since it was checked, for example into a folder: a `UsageError`.
_FAILURES = (ResourceError, UsageError)
_LONGEST = 100  # maximum bytes of a name that is reused
_SUFFIX = 12


@dataclass(frozen=True)
class Result:
    """A result to be written.

    Attributes
    ----------
    path : str
        Its target; may be ``-`` or another stream.
    name : str
        Its name in a fallback folder if the name of `path` cannot be reused.
    write : callable
        Writes it to a path; raises `ResourceError` or `UsageError` if that fails.
    """

    path: str
    name: str
    write: Callable[[str], object]


def write_with_fallback(
    results: Sequence[Result], alternative: Callable[[], str | None] = lambda: None
) -> None:
    """Write results; those that cannot be written are saved in a fallback folder.

    All are tried, because targets may be on different disks. Fallbacks are, in this order, a new
    folder beside the target, one in the folder for temporary files, and one in the cache folder
    (``$XDG_CACHE_HOME`` or ``~/.cache``).

    Parameters
    ----------
    results : sequence of Result
    alternative : callable, optional
        Called first if a result could not be written: saves all results in another way and returns
        a message, or None if it fails.

    Raises
    ------
    ResourceError
        A result could not be written to its target; the message names the fallback file.
    """
    failed: list[tuple[Result, DcmeError]] = []
    for one in results:
        try:
            one.write(one.path)
        except _FAILURES as error:
            failed.append((one, error))
    if failed:
        messages = list(dict.fromkeys(error.message for _, error in failed))
        kept = None
        with contextlib.suppress(ResourceError):
            kept = alternative()
        kept = kept or _write_fallbacks([one for one, _ in failed])
        raise ResourceError("; ".join([*messages, kept])) from failed[0][1]


def _write_fallbacks(results: Sequence[Result]) -> str:
    """Write each result to a fallback folder and return a message with the paths."""
    places = {one.path: _write_fallback(one) for one in results}
    lost = [path for path, place in places.items() if place is None]
    found = [place for place in places.values() if place is not None]
    if not lost:
        return f"nothing is lost: written to {' and '.join(found)} instead"
    messages = f"{' and '.join(lost)} cannot be written elsewhere either"
    return f"{messages}, only {' and '.join(found)}" if found else messages


def _write_fallback(result: Result) -> str | None:
    """Write a result to the first fallback folder that works and return its path."""
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
    with contextlib.suppress(FileNotFoundError):  # there is no usable folder for temporary files
        yield Path(tempfile.gettempdir())
    cache = os.environ.get("XDG_CACHE_HOME", "")
    with contextlib.suppress(RuntimeError):  # there is no home folder
        folder = (Path(cache) if Path(cache).is_absolute() else Path.home() / ".cache") / "dcme-w2v"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
        yield folder


def _name(result: Result) -> str:
    """Return the name of a result in a fallback folder, with the suffix that sets the format."""
    name = "" if is_stream(result.path) else Path(result.path).name
    if 0 < len(os.fsencode(name)) <= _LONGEST:
        return name
    suffix = Path(name).suffix
    return result.name + (suffix if len(os.fsencode(suffix)) <= _SUFFIX else "")
