"""Atomic writes of folders, and removal of folders that this program wrote.

Called by `dcme_w2v.model_folder` and `dcme_w2v.checkpoints`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from dcme_w2v.files import PART, new_mode, stale_files, sync_folder, temporary_prefix

OLD = ".old"


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
    _remove_stale(target.parent, start)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=start, suffix=PART))
    lock = _locked(temporary)  # ours, while we live
    try:
        yield temporary
        sync_folder(temporary)
        temporary.chmod(new_mode(0o777))
        if replaced and target.exists():
            old = Path(tempfile.mkdtemp(dir=target.parent, prefix=start, suffix=OLD))
            try:
                _swap(temporary, target, old)
            except BaseException:
                remove_files(old, ())  # still empty: another run has taken the target away
                raise
            remove_files(old, replaced)
        else:
            temporary.rename(target)
    except BaseException:
        remove_files(temporary)
        raise
    finally:
        if lock is not None:
            os.close(lock)
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
        for one in list(folder.iterdir()):
            if names is None or one.name in names:
                with contextlib.suppress(OSError):
                    one.unlink()
        folder.rmdir()


def _remove_stale(parent: Path, start: str) -> None:
    """Remove what processes that were killed left of their tries to write a folder."""
    with contextlib.suppress(OSError):
        for left in stale_files(parent, start):
            if (lock := _locked(left)) is not None:
                remove_files(left)
                os.close(lock)


@contextlib.contextmanager
def scratch_folder(start: str) -> Iterator[str]:
    """Make a temporary folder that ends with the block, or with the next start if it is killed."""
    for left in stale_files(Path(tempfile.gettempdir()), start):
        with contextlib.suppress(OSError):
            if (lock := _locked(left)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(lock)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix=start, suffix=PART, ignore_cleanup_errors=True)
        )
        if (lock := _locked(Path(folder))) is not None:
            stack.callback(os.close, lock)
        yield folder


def _locked(folder: Path) -> int | None:
    """Return a descriptor that keeps others from a folder; None where one has it, or no locks."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        return None
    return number


def _swap(temporary: Path, target: Path, old: Path) -> None:
    """Replace a folder by another; the replaced one is renamed to `old`."""
    target.rename(old)
    try:
        temporary.rename(target)
    except BaseException:
        old.rename(target)
        raise
