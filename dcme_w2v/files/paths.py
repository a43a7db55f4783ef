"""Check paths, so that a command does not overwrite an input or write to a file twice.

An option or argument that is a path is declared with its role. A command is guarded by these
declarations. A Python function that reads and writes files calls `guard`::

    guard((READS, "CORPUS", corpus), (WRITES, "--output", output))
"""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from dcme_w2v.errors import UsageError

from .atomic import STANDARD, check_log, check_parent, check_text, check_writable

# Roles of a path: input, output file, text output, log, and output folder.
READS, WRITES, TEXT, LOG, FOLDER = "reads", "writes", "text", "log", "folder"
Given = tuple[str, str, Any]  # the role of a path, its flag or argument name, and its value

_FILE = "file://"
PARTIAL = ".partial"  # suffix of results saved by an interrupted training run


def local(path: str) -> str:
    """Return the path in a ``file://`` address; return all other paths unchanged."""
    if path[: len(_FILE)].lower() != _FILE:
        return path
    from urllib.request import url2pathname  # slow to import

    host, slash, rest = path[len(_FILE) :].partition("/")
    if host not in ("", "localhost") or not rest:
        raise UsageError(
            f"{path}: the URL refers to another machine; use file:///PATH, or a plain path"
        )
    return url2pathname(slash + rest)


def as_paths(files: Any) -> tuple[Any, ...]:
    """Convert a path, or a list of paths, to a tuple; raise an error for other values.

    A `pathlib.Path` becomes a str; a table of `dcme_w2v.formats.columns` keeps its columns.
    """
    given = [files] if isinstance(files, str | os.PathLike) else files
    listed = given if isinstance(given, list | tuple) else [given]
    for one in listed:
        if not isinstance(one, str | os.PathLike):
            raise UsageError(
                f"files must be paths, not {type(one).__name__}; save the data to a file, and "
                "pass its path"
            )
    paths = (os.fspath(one) if isinstance(one, PurePath) else one for one in listed)
    return tuple(local(one) if isinstance(one, str) else one for one in paths)


@dataclass(frozen=True)
class _File:
    """A path from the user; different paths to the same file have the same `identity`."""

    role: str
    path: str
    shown: str
    identity: object


def guard(*given: Given) -> None:
    """Raise an error if an output is also an input, is used twice, or cannot be written.

    Parameters
    ----------
    *given : (str, str, object)
        The role of a path, the flag or argument that it was given for, and a path or several;
        ``-`` is standard input or output. Other values, such as vectors in memory, are ignored.

    Raises
    ------
    UsageError
        Two paths conflict, or one is empty or cannot be a target.
    ResourceError
        A target cannot be written.
    """
    files = list(_files(given))
    targets = [one for one in files if one.role != READS]
    sources = [one for one in files if one.role == READS]
    for number, target in enumerate(targets):
        for other in (*sources, *targets[:number]):
            _check_conflict(target, other)
    for one in targets:
        _CHECKS[one.role](one)


def _files(given: Iterable[Given]) -> Iterator[_File]:
    for role, flag, value in given:
        for path in value if isinstance(value, list | tuple) else [value]:
            if not isinstance(path, str | os.PathLike):
                continue
            address, path = os.fspath(path), local(os.fspath(path))
            shown = f"{flag}={address}" if flag.startswith("--") else f"{flag} {address}"
            if role != READS and path != address:
                raise UsageError(f"{shown} is a URL; use the path {path}")
            if not path:
                raise UsageError(f"{flag}: the path is empty; choose a file")
            if "\0" in path:
                raise UsageError(f"{flag}: the path contains a NUL character; remove it")
            if role != READS or "://" not in path:
                yield _File(role, path, shown, _identity(path, role))


def _identity(path: str, role: str) -> object:
    """Return a value that is equal for all paths of a file or folder, or None for a device."""
    stream = "stdin" if role == READS else "stdout"
    try:
        if path == STANDARD:
            status = os.fstat(getattr(sys, stream).fileno())
        else:
            status = Path(path).stat()
    except (OSError, ValueError, AttributeError):
        return stream if path == STANDARD else os.path.normcase(os.path.realpath(path))
    if stat.S_ISCHR(status.st_mode):
        return stream if path == STANDARD else None
    return status.st_dev, status.st_ino


def _check_conflict(target: _File, other: _File) -> None:
    is_read = other.role == READS
    if target.identity is not None and target.identity == other.identity:
        if target.role == other.role == FOLDER:
            return  # --resume and --checkpoint can share a folder
        advice = (
            ", an input file; choose another file"
            if is_read
            else "; choose a different file for each output"
        )
        raise UsageError(f"{target.shown} is the same file as {other.shown}{advice}")
    if is_read and target.path != STANDARD and Path(other.path).is_dir():
        place, folder = (Path(os.path.realpath(one.path)) for one in (target, other))
        if place.is_relative_to(folder):
            raise UsageError(
                f"{target.shown} is inside the input folder {other.shown}; choose a file outside "
                "that folder"
            )


def _check_folder(one: _File) -> None:
    place = Path(os.path.realpath(one.path))
    if one.path == STANDARD:
        raise UsageError(
            f"{one.shown}: a folder cannot be written to standard output; choose the path of a "
            "folder"
        )
    if place.exists() and not place.is_dir():
        raise UsageError(f"{one.shown} is a file; use a folder")
    check_parent(one.shown, place)


_CHECKS: dict[str, Callable[[_File], object]] = {
    WRITES: lambda one: check_writable(one.path),
    TEXT: lambda one: check_text(one.path),
    LOG: lambda one: check_log(one.path),
    FOLDER: _check_folder,
}
