"""The path guard: no command writes over what it reads, over another output, or over foreign files.

Every command, and every function of the Python API that reads and writes files, declares both and
calls `check` before anything is opened for writing::

    Paths().reads("CORPUS", *corpus).writes("--output", output).check()

A file that the program writes under a name of its own, such as the manifest X.json of X, is
declared with its target as a `Beside`. After the check, `dcme_w2v.files` and
`dcme_w2v.model_folder` write; no other module opens a file for writing. tests/test_paths.py checks
both: a new command needs a row in its table.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dcme_w2v.errors import UsageError
from dcme_w2v.files import STANDARD, check_log, check_name, check_writable, descriptor_of, is_stream

# A file that exists is its device and inode; one that does not, those of the nearest folder that
# exists and the names below it. Devices, as /dev/null, and sockets have none: nothing is replaced.
Identity = tuple[int | str, ...]

PARTIAL = ".partial"  # behind the names of results whose training was interrupted


@dataclass(frozen=True)
class Beside:
    """A file that is written beside a target, under a name that the user has not given.

    Attributes
    ----------
    path : str
    is_ours : callable
        Whether the file that has this name already is of the kind that is written there; another
        is not replaced.
    """

    path: str
    is_ours: Callable[[Path], bool]


def _nothing() -> None:
    """Check nothing."""


def _none(name: str) -> bool:
    """Own no entry of a folder."""
    return False


@dataclass(frozen=True)
class _File:
    """A file or folder that is read or written.

    `shown` is what messages call it, `check` raises if it cannot be written, and `owns` decides by
    name which entries of a folder are written.
    """

    path: str
    shown: str
    identity: Identity | None
    is_folder: bool
    check: Callable[[], None] = _nothing
    owns: Callable[[str], bool] = _none


class Paths:
    """What a command reads and writes.

    Each method takes the flag or the argument that a path was given for, which messages name; a
    path that is None is left out. Methods return the object.
    """

    def __init__(self) -> None:
        self._read: list[_File] = []
        self._written: list[_File] = []

    def reads(self, flag: str, *paths: str | None, beside: Iterable[str] = ()) -> Paths:
        """Declare files that are read, and folders, of which all files are.

        Parameters
        ----------
        flag : str
        *paths : str or None
            ``-`` is standard input. Addresses are left out.
        beside : iterable of str
            What is read because of the first of them, such as X.vocab of X.npy.

        Raises
        ------
        UsageError
            A path is empty, as of a variable that is not set: it would be the current folder.
        """
        if "" in paths:
            raise UsageError(f"{flag}: is empty; name a file")
        given = [path for path in paths if path is not None and "://" not in path]
        shown = {path: _shown(flag, path) for path in given}
        shown |= {path: f"{path} (beside {_shown(flag, given[0])})" for path in beside}
        for path, name in shown.items():
            is_folder = path != STANDARD and os.path.isdir(path)  # noqa: PTH112 Path's raises on long names
            self._read.append(_File(path, name, _identity(path, "stdin"), is_folder))
        return self

    def writes(self, flag: str, path: str | None, beside: Iterable[Beside] = ()) -> Paths:
        """Declare a file that is written; ``-`` is standard output.

        Parameters
        ----------
        flag : str
        path : str or None
        beside : iterable of Beside
            What is written with it; left out for a stream, which has nothing beside it.
        """
        if path is not None:
            self._add(flag, path, lambda: check_writable(path))
            for one in () if is_stream(path) else beside:
                shown = f"{one.path} (beside {_shown(flag, path)})"
                self._written.append(
                    _File(one.path, shown, _identity(one.path, ""), False, _checking(one, shown))
                )
        return self

    def stdout(self, flag: str, used: bool) -> Paths:
        """Declare whether a flag, such as --json, writes its results to standard output."""
        if used:
            identity = _identity(STANDARD, "stdout")
            self._written.append(_File(STANDARD, f"{flag} (stdout)", identity, False))
        return self

    def log(self, flag: str, path: str | None) -> Paths:
        """Declare a log of JSON lines; a file that is there has to be one."""
        if path is not None:
            self._add(flag, path, lambda: check_log(path))
        return self

    def model(self, flag: str, path: str | None, kind: str, beside: Iterable[str] = ()) -> Paths:
        """Declare a model's folder, which is replaced as a whole if it is a model of this kind.

        So are others `beside` it.
        """
        from dcme_w2v.model_folder import check_model_target  # with numpy: not for --help

        if path is not None:
            self._add(flag, path, lambda: check_model_target(path, kind), lambda name: True)
            for one in beside:
                shown = f"{one} (beside {_shown(flag, path)})"
                check = partial(_check_model_beside, one, kind, shown)
                self._written.append(
                    _File(one, shown, _identity(one, ""), True, check, lambda name: True)
                )
        return self

    def folder(self, flag: str, path: str | None, owns: Callable[[str], bool]) -> Paths:
        """Declare a folder in which entries are written, those whose names `owns` accepts."""
        if path is not None:
            self._add(flag, path, lambda: _check_folder(flag, path), owns)
        return self

    def temporary(self, flag: str, path: str | None) -> Paths:
        """Declare a folder for temporary files without names, which replace nothing."""
        if path is not None:
            check = _File(path, f"{flag} {path}", None, True, lambda: _check_temporary(flag, path))
            self._written.append(check)
        return self

    def check(self) -> None:
        """Raise if a file that is written is read, too, is written twice, or cannot be written.

        Raises
        ------
        UsageError
            Two paths clash, or a target holds something that is not to be replaced.
        ResourceError
            A target cannot be written.
        """
        for target in self._written:
            check_name(target.path, target.shown)
        for number, target in enumerate(self._written):
            for other in self._written[:number]:
                _check_two_outputs(target, other)
            for source in self._read:
                _check_output(target, source)
        self._check_links()
        for target in self._written:
            target.check()

    def _add(
        self, flag: str, path: str, check: Callable[[], None], owns: Callable[[str], bool] = _none
    ) -> None:
        identity = _identity(path, "stdout")
        self._written.append(
            _File(path, f"{flag} {path}", identity, owns is not _none, check, owns)
        )

    def _check_links(self) -> None:
        """Raise if a file in a folder that is read is, by a link, a file that is written."""
        targets = {one.identity: one for one in self._written if Path(one.path).is_file()}
        for folder in self._read if targets else ():
            for identity in _files_in(folder):
                if identity in targets:
                    raise _is_inside(targets[identity], folder)


def _shown(flag: str, path: str) -> str:
    """Return what messages call a path: see `dcme_w2v.errors`."""
    return f"{flag}={path}" if flag.startswith("--") else f"{flag} {path}"


# ---- clashes ----


def _check_two_outputs(target: _File, other: _File) -> None:
    if target.identity is not None and target.identity == other.identity:
        raise UsageError(
            f"{target.shown}: is the same file as {other.shown}; give each output a file of its own"
        )
    for inner, outer in ((target, other), (other, target)):
        name = _name_inside(inner, outer)
        if name is not None and outer.owns(name):
            raise UsageError(
                f"{inner.shown}: is in the folder {outer.shown}, which is written as a whole; "
                "name a file outside of it"
            )


def _check_output(target: _File, source: _File) -> None:
    if target.identity is not None and target.identity == source.identity:
        raise UsageError(
            f"{target.shown}: is the same file as {source.shown}, which is read; name another"
        )
    if _name_inside(target, source) is not None:
        raise _is_inside(target, source)
    name = _name_inside(source, target)
    if name is not None and target.owns(name):
        raise UsageError(
            f"{target.shown}: would be replaced while {source.shown} in it is read; name another"
        )


def _is_inside(target: _File, source: _File) -> UsageError:
    return UsageError(
        f"{target.shown}: is in the folder {source.shown}, which is read; name a file outside of it"
    )


def _identity(path: str, stream: str) -> Identity | None:
    """Return what all names of a file have in common; None for a device or a socket.

    ``-`` stands for the file behind `stream`, where there is one, otherwise for the stream.
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
        missing.append(place.name)
    return tuple(reversed(missing))


def _lineage(path: str) -> Iterator[Path]:
    """Yield the place that a path leads to, then the folders that it is in, up to the root."""
    place = Path(os.path.realpath(path))
    yield place
    yield from place.parents


def _name_inside(inner: _File, outer: _File) -> str | None:
    """Return the name in the folder `outer` that leads to `inner`; None if it is not in there."""
    if not outer.is_folder or outer.identity is None or inner.path == STANDARD:
        return None
    below = None
    for place in _lineage(inner.path):
        if below is not None and _identity(str(place), "") == outer.identity:
            return below
        below = place.name
    return None


def _files_in(folder: _File) -> Iterator[Identity | None]:
    """Yield the identities of the files in a folder and below; those of hidden ones are left out.

    They are not read: see `dcme_w2v.text.corpus.expand`.
    """
    for parent, folders, names in os.walk(folder.path if folder.is_folder else os.devnull):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith("."):
                yield _identity(str(Path(parent, name)), "")


# ---- targets ----


def _checking(one: Beside, shown: str) -> Callable[[], None]:
    def check() -> None:
        check_writable(one.path)
        place = Path(one.path)
        if place.exists() and place.stat().st_size and not one.is_ours(place):
            raise UsageError(
                f"{shown}: is another kind of file, which would be replaced; move it, or name "
                "another output"
            )

    return check


def _check_model_beside(path: str, kind: str, shown: str) -> None:
    from dcme_w2v.model_folder import check_model_target

    try:
        check_model_target(path, kind)
    except UsageError as error:
        raise UsageError(
            f"{shown}: is something else, which would be replaced; move it, or name another output"
        ) from error


def _check_folder(flag: str, path: str) -> None:
    place = Path(os.path.realpath(path))
    if place.exists() and not place.is_dir():
        raise UsageError(f"{_shown(flag, path)}: is a file; name a folder")
    if not place.parent.is_dir():
        raise UsageError(f"{_shown(flag, path)}: there is no folder {place.parent}; make it first")


def _check_temporary(flag: str, path: str) -> None:
    if not Path(path).is_dir():
        raise UsageError(f"{_shown(flag, path)}: is no folder; make it first, or name another")
