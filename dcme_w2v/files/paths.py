"""The path guard: no command overwrites its inputs, another of its outputs, or unrelated files.

Every command, and every function of the Python API that reads and writes files, declares both and
calls `check` before anything is opened for writing::

    Paths().reads("CORPUS", *corpus).writes("--output", output).check()

Tests check it: a new command needs a row in tests/path_rows.py.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dcme_w2v import platform
from dcme_w2v.errors import UsageError
from dcme_w2v.platform import PathLike

from .atomic import (
    STANDARD,
    check_log,
    check_parent,
    check_writable,
    descriptor_of,
)

# An existing file is identified by device and inode, a new one by device and inode of the nearest
# existing folder and the names below it. Devices such as /dev/null and sockets have no identity:
# they are not replaced.
Identity = tuple[int | str, ...]

PARTIAL = ".partial"  # behind the names of results whose training was interrupted


def listed(files: PathLike | Sequence[PathLike]) -> list[str]:
    """Return one path, or several, as a list of str; vectors in memory are no files."""
    given = [files] if isinstance(files, str | os.PathLike) else files
    if not isinstance(given, list | tuple):
        raise UsageError(f"files: must be paths, not {type(files).__name__}; save it to a file")
    return [os.fspath(path) for path in given]


def as_paths(given: str | Iterable[str]) -> tuple[str, ...]:
    """Return paths as a tuple; one string is one path, not a path for each of its letters."""
    return (given,) if isinstance(given, str) else tuple(given)


@dataclass(frozen=True)
class _File:
    """A file or folder that is read or written.

    `shown` is its name in messages, `check` raises if it cannot be written, and `owns` returns
    whether an entry of a folder, by its name, is written.
    """

    path: str
    shown: str
    identity: Identity | None
    is_folder: bool
    check: Callable[[], object] = lambda: None
    owns: Callable[[str], bool] | None = None


class Paths:
    """The inputs and outputs of a command.

    Each method takes the flag or argument that a path was given for, for use in messages. Paths
    that are None are ignored. Methods return the object.
    """

    def __init__(self) -> None:
        self._read: list[_File] = []
        self._written: list[_File] = []

    def reads(self, flag: str, *paths: str | None) -> Paths:
        """Declare inputs: files, and folders of which all files are read; ``-`` is standard input.

        URLs are ignored.

        Raises
        ------
        UsageError
            A path is empty, as of a variable that is not set: it would be the current folder.
        """
        if "" in paths:
            raise UsageError(f"{flag}: is empty; name a file")
        for path in paths:
            if path is not None and "://" not in path:
                is_folder = path != STANDARD and os.path.isdir(path)  # noqa: PTH112 Path's raises on long names
                identity = _identity(path, "stdin")
                self._read.append(_File(path, _shown(flag, path), identity, is_folder))
        return self

    def writes(self, flag: str, path: str | None) -> Paths:
        """Declare an output file; ``-`` is standard output."""
        return self._add(flag, path, check_writable)

    def stdout(self, used: bool) -> Paths:
        """Declare that --json writes to standard output, if it is given."""
        shown = "--json (stdout)"
        return self._add(shown, STANDARD if used else None, lambda path: None, shown=shown)

    def log(self, flag: str, path: str | None) -> Paths:
        """Declare a log of JSON lines; an existing file must be a log."""
        return self._add(flag, path, check_log)

    def model(self, flag: str, path: str | None, check: Callable[[str], None]) -> Paths:
        """Declare a model; `check` raises if it must not be replaced, as by `artifact.replaces`."""
        return self._add(flag, path, check)

    def folder(
        self,
        flag: str,
        path: str | None,
        owns: Callable[[str], bool] = lambda name: True,
        check: Callable[[str], None] | None = None,
    ) -> Paths:
        """Declare a folder in which the entries whose names `owns` accepts are written."""
        return self._add(flag, path, check or partial(_check_folder, flag), owns)

    def temporary(self, flag: str, path: str | None) -> Paths:
        """Declare a folder for unnamed temporary files, which replace nothing."""
        if path is not None:
            check = _File(path, f"{flag} {path}", None, True, lambda: _check_temporary(flag, path))
            self._written.append(check)
        return self

    def check(self) -> None:
        """Raise if an output is also an input, is written twice, or cannot be written.

        Raises
        ------
        UsageError
            Two paths conflict, or a target has content that must not be replaced.
        ResourceError
            A target cannot be written.
        """
        for number, target in enumerate(self._written):
            for other in self._written[:number]:
                _check_two_outputs(target, other)
            for source in self._read:
                _check_output(target, source)
        for target in self._written:
            target.check()

    def _add(
        self,
        flag: str,
        path: str | None,
        check: Callable[[str], object],
        owns: Callable[[str], bool] | None = None,
        shown: str = "",
    ) -> Paths:
        if path is None:
            return self
        shown = shown or f"{flag} {path}"
        if owns is not None and path == STANDARD:
            raise UsageError(f"{shown}: is standard output; name a folder")
        _check_name(path, shown)  # first, since a device may have no status
        identity = _identity(path, "stdout")
        is_folder, checked = owns is not None, partial(check, path)
        self._written.append(_File(path, shown, identity, is_folder, checked, owns))
        return self


def _shown(flag: str, path: str) -> str:
    """Return the name of a path in messages: see `dcme_w2v.errors`."""
    return f"{flag}={path}" if flag.startswith("--") else f"{flag} {path}"


# ---- conflicts ----


def _check_two_outputs(target: _File, other: _File) -> None:
    if target.identity is not None and target.identity == other.identity:
        raise UsageError(
            f"{target.shown}: is the same file as {other.shown}; give each output its own file"
        )
    for inner, outer in ((target, other), (other, target)):
        name = _name_inside(inner, outer)
        if name is not None and outer.owns is not None and outer.owns(name):
            raise UsageError(
                f"{inner.shown}: is in the folder {outer.shown}, which is written as a whole; "
                "choose a file outside of it"
            )


def _check_output(target: _File, source: _File) -> None:
    if target.identity is not None and target.identity == source.identity:
        raise UsageError(
            f"{target.shown}: is the same file as {source.shown}, which is read; choose another"
        )
    if _name_inside(target, source) is not None:
        raise UsageError(
            f"{target.shown}: is in the folder {source.shown}, which is read; choose a file outside"
        )
    name = _name_inside(source, target)
    if name is not None and target.owns is not None and target.owns(name):
        raise UsageError(
            f"{target.shown}: would be replaced while {source.shown} in it is read; choose another"
        )


def _identity(path: str, stream: str) -> Identity | None:
    """Return the same identity for all names of a file; None for a device or a socket.

    ``-`` is the file that `stream` is redirected to or from, if there is one, otherwise the stream.
    """
    number = _number_of(stream) if path == STANDARD else descriptor_of(path)
    try:
        status = Path(path).stat() if number is None else os.fstat(number)
    except OSError:
        return _identity_of_new(path) if number is None else (stream,)
    if stat.S_ISCHR(status.st_mode) or stat.S_ISSOCK(status.st_mode):
        return (stream,) if path == STANDARD else None
    return status.st_dev, status.st_ino


def _number_of(stream: str) -> int:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return int(getattr(sys, stream).fileno())
    return {"stdin": 0, "stdout": 1}[stream]


def _identity_of_new(path: str) -> Identity:
    missing: list[str] = []
    for place in _lineage(path):
        with contextlib.suppress(OSError):
            status = place.stat()
            return status.st_dev, status.st_ino, *reversed(missing)
        missing.append(platform.same_name(place.name))
    return tuple(reversed(missing))


def _lineage(path: str) -> Iterator[Path]:
    """Yield the resolved path, then its parent folders up to the root."""
    place = Path(os.path.realpath(path))
    yield place
    yield from place.parents


def _name_inside(inner: _File, outer: _File) -> str | None:
    """Return the entry of the folder `outer` that contains `inner`; None if it is outside."""
    if not outer.is_folder or outer.identity is None or inner.path == STANDARD:
        return None
    below = None
    for place in _lineage(inner.path):
        if below is not None and _identity(str(place), "") == outer.identity:
            return below
        below = place.name
    return None


# ---- targets ----


def _check_name(path: str, shown: str) -> None:
    """Raise if a path, or a name in it, is longer than the file system allows.

    Raises
    ------
    UsageError
        It is, or is empty; the message begins with `shown`.
    """
    if not path:
        raise UsageError(f"{shown.strip()}: is empty; give a name")
    if "://" not in path and (reason := platform.unusable(path)):
        raise UsageError(f"{shown}: {reason}; choose another name")
    try:
        os.lstat(os.path.realpath(path))
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise UsageError(f"{shown}: is too long; choose a shorter name") from None


def _check_folder(flag: str, path: str) -> None:
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_dir():
        raise UsageError(f"{_shown(flag, path)}: is a file; give a folder")
    check_parent(_shown(flag, path), place)


def _check_temporary(flag: str, path: str) -> None:
    if not Path(path).is_dir():
        raise UsageError(
            f"{_shown(flag, path)}: is not a folder; create it first, or choose another"
        )
