"""The id cache: a private file of four bytes a token, which leaves nothing behind.

The file has no name from the start, so that it vanishes with the process however that ends.
Called by `dcme_w2v.text.encode`.
"""

from __future__ import annotations

import mmap
import tempfile

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import text as core
from dcme_w2v.errors import ResourceError

ID_BYTES = 4
LAST = np.uint32(core.LAST)  # in an id: the last word of its line
NUMBER = np.uint32(core.LAST - 1)  # the word alone


def release_pages(ids: NDArray[np.uint32]) -> None:
    """Let go of a mapped cache's pages that have been read: they count as memory of the process.

    What is needed again comes back from the system's own cache of the file. Ids that are not
    mapped, or a system without the call, are left as they are.
    """
    mapped = getattr(ids, "_mmap", None)
    if isinstance(mapped, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


class IdCache:
    """Ids written block by block, read and rewritten in place, then mapped to be read.

    Parameters
    ----------
    folder : str or None
        Where the file lies; the system's folder for temporary files by default.
    remedy : str
        What an error suggests.
    """

    def __init__(
        self, folder: str | None, remedy: str = "name another folder with --cache-dir"
    ) -> None:
        self._remedy = remedy
        self.folder = folder or tempfile.gettempdir()
        try:
            self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise ResourceError(
                f"{self.folder}: no id cache can be made there: {error.strerror}; {remedy}"
            ) from error

    def write(self, first: int, ids: NDArray[np.uint32], share: float | None = None) -> None:
        """Write ids from number `first` on; `share` of the corpus serves to estimate the space."""
        rest = ids.view(np.uint8).data
        try:
            self._file.seek(first * ID_BYTES)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            need = (first + len(ids)) * ID_BYTES / (share or 1)
            raise ResourceError(
                f"{self.folder}: the id cache cannot be written: {error.strerror}; it needs "
                f"{'about' if share else 'more than'} {need / 1e6:,.1f} MB: {self._remedy}"
            ) from error

    def read(self, first: int, length: int) -> NDArray[np.uint32]:
        """Read ids from number `first` on."""
        ids = np.empty(length, dtype=np.uint32)
        rest = ids.view(np.uint8).data
        try:
            self._file.seek(first * ID_BYTES)
            while rest and (got := self._file.readinto(rest)):
                rest = rest[got:]
        except OSError as error:
            raise self._failure("read back", error) from error
        if rest:
            raise ResourceError(f"{self.folder}: the id cache is cut short; {self._remedy}")
        return ids

    def finished(self, length: int) -> NDArray[np.uint32]:
        """Cut the file to its first `length` ids, return them mapped to be read, and close it.

        The disk space is given back when the map goes.
        """
        try:
            self._file.truncate(length * ID_BYTES)
            ids = np.memmap(self._file, dtype=np.uint32, mode="r", shape=(length,))
        except OSError as error:
            raise self._failure("mapped", error) from error
        self.close()
        return ids

    def _failure(self, what: str, error: OSError) -> ResourceError:
        return ResourceError(
            f"{self.folder}: the id cache cannot be {what}: {error.strerror or error}; "
            f"{self._remedy}"
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()
