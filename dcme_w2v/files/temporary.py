"""Temporary files and folders beside a target: their names, locks and removal.

The name, such as ``.v.npy.dcme-w2v-0a1b2c3d.part``, marks a file as ours. What a killed process
left is used or removed only if it has such a name, belongs to this user, is no symbolic link, and
no running process holds its lock.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from dcme_w2v import platform

PART = ".part"
OLD = ".old"  # of a folder that is being replaced, where folders cannot be exchanged
ATTEMPTS = 100
_MARK = ".dcme-w2v-"
_TOKEN = re.compile(r"[0-9a-f]{8}(\.part|\.old)")


def prefix_of(target: Path) -> str:
    """Return the start of the names of a target's temporary files."""
    name = target.name
    while len(os.fsencode(name)) > 200:
        name = name[:-1]
    return f".{name}{_MARK}"


def temporary_path(target: Path) -> Path:
    """Return a random name of a temporary file or folder beside a target."""
    return target.parent / f"{prefix_of(target)}{secrets.token_hex(4)}{PART}"


def create(target: Path, *, folder: bool = False) -> tuple[Path, int]:
    """Create a temporary file or folder beside a target; return its path and descriptor.

    The descriptor holds a lock, where the file system has locks: see `claimed`.

    Raises
    ------
    OSError
        It cannot be created.
    """
    for _ in range(ATTEMPTS):
        path = temporary_path(target)
        with contextlib.suppress(FileExistsError):
            if folder:
                path.mkdir(0o700)
            try:
                number = _open_to_lock(path, folder, platform.NEW)
            except FileNotFoundError:
                if folder:  # another process took the folder for a stale one
                    continue
                raise
            if lock(number) and is_at(path, number):
                return path, number
            platform.close(number)
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target))


@contextlib.contextmanager
def claimed(path: Path, *, folder: bool) -> Iterator[int | None]:
    """Lock a file or folder that a killed process left; yields a descriptor of it.

    Yields None if there is nothing, if another user or a running process has it, if it is a
    symbolic link or of another kind, or if the file system has no locks.
    """
    number = _claim(path, folder)
    try:
        yield number
    finally:
        if number is not None:
            platform.close(number)


def _open_to_lock(path: Path, folder: bool, flags: int) -> int:
    return platform.open_folder(path, to_lock=True) if folder else os.open(path, flags, 0o600)


def _claim(path: Path, folder: bool) -> int | None:
    kind = stat.S_ISDIR if folder else stat.S_ISREG
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
        number = _open_to_lock(path, folder, platform.UPDATE)
        opened.callback(platform.close, number)
        found = platform.status(number)
        if kind(found.st_mode) and found.st_uid == platform.user():
            platform.lock(number)
            if is_at(path, number):
                opened.pop_all()
                return number
    return None


def remove_stale(folder: Path, start: str) -> None:
    """Remove temporary files and folders, with names that begin with `start`, of killed processes.

    Subfolders of such a folder are kept, and the folder then, too.
    """
    for path in temporaries(folder, start):
        with contextlib.suppress(OSError):
            is_folder = stat.S_ISDIR(path.lstat().st_mode)
            with claimed(path, folder=is_folder) as number:
                if number is None:
                    continue
                if is_folder:
                    platform.remove_entries(path, number)
                    path.rmdir()
                else:
                    platform.release(number)
                    path.unlink()


def is_temporary(name: str) -> bool:
    """Return whether a name is one of those that `create` makes."""
    return _TOKEN.fullmatch(name.rpartition(_MARK)[2]) is not None and name.startswith(".")


def temporaries(folder: Path, start: str, suffix: str = PART) -> list[Path]:
    """Return the temporary files and folders in a folder with names that begin with `start`."""
    with contextlib.suppress(OSError), os.scandir(folder) as found:
        names = [one.name for one in found if one.name.startswith(start)]
        return [folder / name for name in names if is_temporary(name) and name.endswith(suffix)]
    return []


def lock(number: int) -> bool:
    """Lock the file or folder of a descriptor against `claimed`; False if another has locked it."""
    try:
        platform.lock(number)
    except BlockingIOError:
        return False
    except OSError:  # the file system has no locks
        pass
    return True


@contextlib.contextmanager
def opened_folder(folder: Path) -> Iterator[int]:
    """Open a folder that is not a symbolic link; yields the descriptor of the folder."""
    number = platform.open_folder(folder, to_lock=True)
    try:
        yield number
    finally:
        platform.close(number)


def is_at(path: Path, number: int) -> bool:
    """Return whether a path still leads to the file or folder of a descriptor."""
    try:
        return os.path.samestat(path.lstat(), platform.status(number))
    except FileNotFoundError:
        return False
