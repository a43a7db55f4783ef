"""Memory limit of this process, and checks against it before allocation."""

from dcme_w2v.errors import OutOfMemoryError
from dcme_w2v.platform import memory_limits


def memory_limit() -> int | None:
    """Return the memory limit of this process in bytes, if the system reports it."""
    return min(memory_limits(), default=None)


def shortage(needed: int, what: str, remedy: str) -> OutOfMemoryError | None:
    """Return the error if there is less memory than needed; see `require_memory`."""
    limit = memory_limit()
    if limit is None or needed <= limit:
        return None
    return OutOfMemoryError(
        f"{what} needs {needed:,} bytes of memory, {limit:,} are available: {remedy}"
    )


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Raise before anything is allocated if there is not enough memory.

    Parameters
    ----------
    needed : int
        Bytes.
    what, remedy : str
        Parts of the message "WHAT needs N bytes of memory, M are available: REMEDY".

    Raises
    ------
    OutOfMemoryError
        There is not enough memory.
    """
    if error := shortage(needed, what, remedy):
        raise error
