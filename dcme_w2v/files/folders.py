"""Atomic writes of folders, and removal of folders that this program wrote.

Called by `dcme_w2v.formats.model_folder` and `dcme_w2v.training`.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from dcme_w2v.files.atomic import PART, new_mode, stale_files, sync_folder, temporary_prefix

OLD = ".old"
ATTEMPTS = 100  # to rename a folder while other runs do
TAKEN = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST)  # by another run, or put there


@contextlib.contextmanager
def atomic_folder(target: Path, replaced: Collection[str] = ()) -> Iterator[Path]:
    """Create a folder that is renamed to `target` only if the block succeeds.

    Parameters
    ----------
    target : Path
        The final path. An existing folder is replaced if it has no files but those in `replaced`.
    replaced : collection of str
        Names of files in the existing folder that may be replaced.

    Raises
    ------
    OSError
        It cannot be written; an existing folder is unchanged.
    """
    start = temporary_prefix(target)
    _remove_stale(target.parent, start, remove_files)
    temporary, lock = _new_folder(target.parent, start)
    try:
        yield temporary
        sync_folder(temporary)
        temporary.chmod(new_mode(0o777))
        _place(temporary, target, replaced)
    except BaseException:
        remove_files(temporary)
        raise
    finally:
        if lock is not None:
            os.close(lock)
    sync_folder(target.parent)


def _new_folder(parent: Path, start: str) -> tuple[Path, int | None]:
    """Return a temporary folder and what keeps others from it, who may take it for a stale one."""
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=start, suffix=PART))
        with contextlib.suppress(FileNotFoundError, BlockingIOError):  # one of them was faster
            lock = _locked(folder)
            if folder.exists():
                return folder, lock
            if lock is not None:
                os.close(lock)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file of a new folder for writing; it is flushed to disk when the block ends."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def remove_files(folder: Path, names: Collection[str] | None = None) -> None:
    """Remove the files of a folder that have these names, or all, and the folder if it is empty.

    Subfolders are kept.
    """
    with contextlib.suppress(OSError):
        for one in list(folder.iterdir()):
            if names is None or one.name in names:
                with contextlib.suppress(OSError):
                    one.unlink()
        folder.rmdir()


def _remove_stale(parent: Path, start: str, remove: Callable[[Path], None]) -> None:
    """Remove what processes that were killed left of their tries to write a folder."""
    for left in stale_files(parent, start):
        with contextlib.suppress(OSError):
            if (lock := _locked(left)) is not None:
                remove(left)
                os.close(lock)


@contextlib.contextmanager
def scratch_folder(start: str) -> Iterator[str]:
    """Make a temporary folder that ends with the block, or with the next start if it is killed."""
    parent = Path(tempfile.gettempdir())
    remove = functools.partial(shutil.rmtree, ignore_errors=True)
    _remove_stale(parent, start, remove)
    folder, lock = _new_folder(parent, start)
    try:
        yield str(folder)
    finally:
        remove(folder)
        if lock is not None:
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """Return a descriptor that keeps others from a folder; None where there are no locks.

    Raises
    ------
    BlockingIOError
        Another has it.
    """
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(number)
        raise
    except OSError:
        os.close(number)
        return None
    return number


def _place(temporary: Path, target: Path, replaced: Collection[str]) -> None:
    """Rename a folder to the target, in place of one that is there; others may do so meanwhile."""
    for attempt in range(ATTEMPTS):
        try:
            if replaced and target.exists():
                _swap(temporary, target, replaced)
            else:
                temporary.rename(target)
            return
        except OSError as error:
            if not replaced or error.errno not in TAKEN or attempt == ATTEMPTS - 1:
                raise


def _swap(temporary: Path, target: Path, replaced: Collection[str]) -> None:
    """Replace a folder by another, and remove it."""
    old = Path(tempfile.mkdtemp(dir=target.parent, prefix=temporary_prefix(target), suffix=OLD))
    try:
        target.rename(old)
    except BaseException:
        old.rmdir()  # still empty: another run has taken the target away
        raise
    try:
        temporary.rename(target)
    except BaseException as error:
        if getattr(error, "errno", None) in TAKEN:  # another run's result is there
            remove_files(old, replaced)
        else:
            old.rename(target)
        raise
    remove_files(old, replaced)
