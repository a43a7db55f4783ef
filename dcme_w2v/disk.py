"""How long a file may become and how much room there is, and refusing what would take more.

Called by whoever knows the size of its outputs before the work; see `dcme_w2v.memory`. Quotas are
not known to any call of Python's: a write that fails by one ends in `dcme_w2v.rescue`.
"""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path
from typing import Any

from dcme_w2v.errors import ResourceError


def file_limit() -> int | None:
    """Return the bytes that a file may have by ``ulimit -f``; None without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if soft == resource.RLIM_INFINITY else soft


def free_bytes(folder: str | os.PathLike[str]) -> int:
    """Return the free bytes of the file system that a folder is on."""
    return shutil.disk_usage(folder).free


def disk_plan(path: str | os.PathLike[str], total: int) -> list[dict[str, Any]]:
    """Return, for a plan, the folder that a target is in, the bytes needed and those free there."""
    folder = Path(os.path.realpath(path)).parent
    return [{"folder": str(folder), "bytes": total, "free_bytes": free_bytes(folder)}]


def require_disk(path: str | os.PathLike[str], total: int, largest: int | None = None) -> None:
    """Raise before the work if a file, or a folder of files, could not be written.

    Parameters
    ----------
    path : path
        The target, whose folder exists.
    total, largest : int
        Bytes of all its files, and of the largest; of one file by default.

    Raises
    ------
    ResourceError
        There is less room, or the limit of this process is lower.
    """
    longest, limit = total if largest is None else largest, file_limit()
    if limit is not None and longest > limit:
        raise ResourceError(
            f"{os.fspath(path)}: needs a file of about {longest:,} bytes and the limit of this "
            f"process is {limit:,}: raise it with ulimit -f"
        )
    folder = Path(os.path.realpath(path)).parent
    free = free_bytes(folder)
    if total > free:
        raise ResourceError(
            f"{os.fspath(path)}: needs about {total:,} bytes and {free:,} are free in {folder}: "
            "make room or choose another folder"
        )
