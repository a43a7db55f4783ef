"""How much memory this process may have, and refusing what would take more.

Called by whoever allocates by a size that a user or a file has given.
"""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from dcme_w2v.errors import OutOfMemoryError

GROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")  # of a container, on Linux


def memory_limit() -> int | None:
    """Return the memory in bytes that this process may have, where the system reports it."""
    limits = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
    with contextlib.suppress(OSError, ValueError):
        limits.append(int(GROUP_LIMIT.read_text()))
    return min(limits, default=None)


def shortage(needed: int, what: str, remedy: str) -> OutOfMemoryError | None:
    """Return the error if there is less memory than needed; see `require_memory`."""
    limit = memory_limit()
    if limit is None or needed <= limit:
        return None
    return OutOfMemoryError(
        f"{what} needs {needed:,} bytes of memory and there are {limit:,}: {remedy}"
    )


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Raise before anything is allocated if there is less memory than needed.

    Parameters
    ----------
    needed : int
        Bytes.
    what, remedy : str
        Subject and end of the message: "WHAT needs N bytes of memory and there are M: REMEDY".

    Raises
    ------
    OutOfMemoryError
        There is less.
    """
    if error := shortage(needed, what, remedy):
        raise error
