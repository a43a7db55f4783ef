"""Limits of file size and disk space, and checks against them before work starts.

Modules call them that can compute the size of their outputs in advance.
Quotas cannot be queried from Python: `dcme_w2v.files.fallback` handles a write that exceeds one.
"""

import os
import shutil
from pathlib import Path
from typing import Any

from dcme_w2v.errors import ResourceError
from dcme_w2v.platform import PathLike, file_limit


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
