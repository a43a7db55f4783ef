"""Atomic writes of folders, and folders for temporary files."""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from dcme_w2v import platform

from .atomic import sync_folder
from .temporary import (
    ATTEMPTS,
    OLD,
    claimed,
    create,
    is_at,
    lock,
    opened_folder,
    prefix_of,
    remove_stale,
    temporaries,
    temporary_path,
)

Replaced = Callable[[Path], Collection[str]]
TAKEN = (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST)  # another run was faster


@contextlib.contextmanager
def atomic_folder(target: Path, replaced: Replaced | None = None) -> Iterator[Path]:
    """Create a folder that is renamed to `target` only if the block succeeds.

    Parameters
    ----------
    target : Path
        The final path. An existing folder is replaced if it has no files but those in `replaced`.
    replaced : callable, optional
        Returns the names of files in an existing folder that may be replaced. It is called after
        the block, in which another process may have put a folder there.

    Raises
    ------
    OSError
        It cannot be written; an existing folder is unchanged.
    """
    restore(target)
    remove_stale(target.parent, prefix_of(target))
    temporary, number = create(target, folder=True)
    try:
        yield temporary
        sync_folder(temporary)
        temporary.chmod(0o755)
        _place(temporary, target, replaced)
    except BaseException:
        if is_at(temporary, number):  # not yet at the target
            remove_files(temporary)
        raise
    finally:
        platform.close(number)
    sync_folder(target.parent)


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
        with opened_folder(folder) as number:
            platform.remove_entries(folder, number, names)
        folder.rmdir()


def remove_folder(folder: Path, names: Collection[str]) -> None:
    """Remove a folder with its files of these names, in one step unless it has others.

    Others stay in the folder.
    """
    left = folder
    if {one.name for one in folder.iterdir()} <= set(names):
        left = temporary_path(folder)
        folder.rename(left)
    remove_files(left, names)


@contextlib.contextmanager
def scratch_folder(start: str) -> Iterator[str]:
    """Make a temporary folder that ends with the block, or with the next start if it is killed."""
    target = Path(tempfile.gettempdir(), start)
    for left in temporaries(target.parent, prefix_of(target)):
        with claimed(left, folder=True) as claim:
            if claim is not None:
                shutil.rmtree(left, ignore_errors=True)
    folder, number = create(target, folder=True)
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        platform.close(number)


def restore(target: Path) -> None:
    """Undo or finish the replacement of a folder where a process was killed between two renames."""
    for old in temporaries(target.parent, prefix_of(target), OLD):
        with claimed(old, folder=True) as number, contextlib.suppress(OSError):
            if number is not None and os.path.lexists(target):
                remove_files(old)
            elif number is not None:
                old.rename(target)


def _place(temporary: Path, target: Path, replaced: Replaced | None) -> None:
    """Rename a folder to the target, in place of one that is there; others may do so meanwhile."""
    for attempt in range(ATTEMPTS):
        try:
            if replaced is None or not target.exists():
                temporary.rename(target)
                return
            names = replaced(target)
            if platform.exchange(temporary, target):
                _drop(temporary, target, names)
            else:
                _swap(temporary, target, names)
            return
        except OSError as error:
            if replaced is None or error.errno not in TAKEN or attempt == ATTEMPTS - 1:
                raise


def _drop(old: Path, target: Path, replaced: Collection[str]) -> None:
    """Remove the folder that was replaced; if it has other files, put it back."""
    try:
        with contextlib.suppress(FileNotFoundError):  # another process took it for a stale one
            _check_no_others(os.listdir(old), replaced, target)  # noqa: PTH208
    except OSError:
        platform.exchange(old, target)
        raise
    remove_files(old)


def _check_no_others(found: Collection[str], replaced: Collection[str], target: Path) -> None:
    if not set(found) <= set(replaced):
        raise OSError(errno.EBUSY, "other files have appeared in the folder", str(target))


def _swap(temporary: Path, target: Path, replaced: Collection[str]) -> None:
    """Replace a folder in two renames; `restore` undoes the first where there is no second."""
    old = temporary.with_suffix(OLD)
    with opened_folder(target) as number:
        lock(number)
        _check_no_others(platform.entries(target, number), replaced, target)
        target.rename(old)
        try:
            temporary.rename(target)
        except BaseException as error:
            if getattr(error, "errno", None) in TAKEN:  # another run's result is there
                remove_files(old, replaced)
            else:
                old.rename(target)
            raise
        remove_files(old, replaced)
