"""Writing files so that a target is either the old file or the whole new one."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from dcme_w2v.errors import UsageError

STANDARD = "-"


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to be written whole: it takes `path`'s place only when the block ends well.

    The bytes go to a private file beside the target, which is flushed to the disk and renamed at
    the end, and removed when the block raises. ``-`` is standard output.
    """
    if os.fspath(path) == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    target = Path(path)
    number, aside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(number, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(aside).chmod(_mode_of(target))
        Path(aside).replace(target)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise now, before any work, if `replacing` could not write `path` later."""
    if os.fspath(path) == STANDARD:
        return
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{target}: is a folder; name a file")
    if not target.parent.is_dir():
        raise UsageError(f"{target}: there is no folder {target.parent}; make it first")
    with tempfile.TemporaryFile(dir=target.parent):
        pass


def _mode_of(target: Path) -> int:
    """Return the permissions that the target has, or that a new file would get."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
