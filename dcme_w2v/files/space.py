"""Check memory limits, and save results elsewhere if targets cannot be written."""

import contextlib
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from dcme_w2v.errors import DcmeError, OutOfMemoryError, ResourceError, UsageError
from dcme_w2v.platform import address_limit, default_threads, memory_limit, used_memory

from .atomic import is_stream

# Address space in bytes that numpy and scipy need, and that each BLAS thread needs in addition.
SCIPY_BYTES, BYTES_PER_BLAS_THREAD = 300 << 20, 50 << 20


def memory_for(held: int) -> float:
    """Return how many bytes tables may use in total if they use `held` bytes now."""
    limit = memory_limit()
    return math.inf if limit is None else limit - max(used_memory()[1] - held, 0)


def check_addresses() -> None:
    """Raise an error if the address-space limit is so low that scipy's OpenBLAS would hang.

    Each thread of the OpenBLAS of numpy and of scipy has buffers and a stack of its own.
    """
    limit, given = address_limit(), os.environ.get("OPENBLAS_NUM_THREADS", "")
    threads = int(given) if given.isdecimal() and int(given) else default_threads()
    needed = SCIPY_BYTES + threads * BYTES_PER_BLAS_THREAD
    if limit is not None and limit < needed:
        raise ResourceError(
            f"the address-space limit is {limit >> 20} MB, but numpy and scipy require "
            f"{needed >> 20} MB; raise the limit (ulimit -v), or set OPENBLAS_NUM_THREADS=1"
        )


def shortage(needed: int, what: str, remedy: str) -> OutOfMemoryError | None:
    """Return the error that `require_memory` would raise, or None if memory is sufficient."""
    limit = memory_limit()
    if limit is None or needed <= limit:
        return None
    return OutOfMemoryError(
        f"{what} requires {needed:,} bytes of memory, but only {limit:,} bytes are available; "
        f"{remedy}"
    )


def require_memory(needed: int, what: str, remedy: str) -> None:
    """Raise `OutOfMemoryError` before an allocation that would exceed the memory limit.

    Parameters
    ----------
    needed : int
        Bytes.
    what, remedy : str
        Parts of the message "WHAT needs N bytes of memory, but only M are available; REMEDY".

    Raises
    ------
    OutOfMemoryError
        There is not enough memory.
    """
    if error := shortage(needed, what, remedy):
        raise error


PREFIX = "dcme-w2v-"  # prefix of fallback folder names
# `UsageError` is included because a target may have become a folder after it was checked.
_FAILURES = (ResourceError, UsageError)


# A result is a target, a fallback name, and a function that writes the result to a path.
# The fallback name is for targets that are streams, such as ``-``.
# The writing function may raise `ResourceError` or `UsageError`.
Result = tuple[str, str, Callable[[str], object]]


def write_with_fallback(*results: Result, saved: str | None = None) -> None:
    """Write results to their targets, or to a fallback folder if a target cannot be written.

    All results are tried, because targets may be on different disks.

    Parameters
    ----------
    *results : Result
    saved : str, optional
        Says where all results are saved already, so that no fallback file is needed.

    Raises
    ------
    ResourceError
        A result could not be written to its target; the message names the fallback file.
    """
    failed: list[tuple[Result, DcmeError]] = []
    for one in results:
        path, _, write = one
        try:
            write(path)
        except _FAILURES as error:
            failed.append((one, error))
    if failed:
        messages = list(dict.fromkeys(error.message for _, error in failed))
        saved = saved or "; ".join(_write_elsewhere(*one) for one, _ in failed)
        raise ResourceError("; ".join([*messages, saved])) from failed[0][1]


def _write_elsewhere(path: str, name: str, write: Callable[[str], object]) -> str:
    """Write a result to a new folder beside its target, or in the temporary or home folder."""
    beside = Path.cwd()
    if not is_stream(path):
        name, beside = Path(path).name, Path(os.path.realpath(path)).parent
    for place in (lambda: beside, tempfile.gettempdir, Path.home):
        with contextlib.suppress(OSError, RuntimeError):
            folder = Path(tempfile.mkdtemp(dir=place(), prefix=PREFIX))
            try:
                write(str(folder / name))
            except _FAILURES:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                return f"nothing is lost: written to {folder / name} instead"
    return f"{path} cannot be written elsewhere either"
