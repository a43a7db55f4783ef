"""The id cache: a private file of four bytes a token, which leaves nothing behind.

The file has no name from the start, so that it vanishes with the process however that ends.
Called by `dcme_w2v.text.encode`.
"""

from __future__ import annotations

import tempfile

import numpy as np
from numpy.typing import NDArray

from dcme_w2v.errors import ResourceError

ID_BYTES = 4


class IdCache:
    """Ids appended block by block, renumbered in place, then mapped to be read.

    Parameters
    ----------
    folder : str or None
        Where the file lies; the system's folder for temporary files by default.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = folder or tempfile.gettempdir()
        self.length = 0
        try:
            self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise ResourceError(
                f"{self.folder}: no id cache can be made there: {error.strerror}; "
                "name another folder with --cache-dir"
            ) from error

    def append(self, ids: NDArray[np.uint32], bytes_read: int, bytes_total: int | None) -> None:
        """Write ids behind those that are there; how much was read of the corpus tells the need."""
        rest = ids.view(np.uint8).data
        self.length += len(ids)
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            need = self.length * ID_BYTES
            if bytes_total and bytes_read:
                need = max(need, need * bytes_total // bytes_read)
            least = "about" if bytes_total else "more than"
            raise ResourceError(
                f"{self.folder}: the id cache cannot be written: {error.strerror}; it needs "
                f"{least} {need / 1e6:,.1f} MB: name another folder with --cache-dir"
            ) from error

    def writable(self) -> NDArray[np.uint32]:
        """Return the ids, mapped so that changes go to the file."""
        return np.memmap(self._file, dtype=np.uint32, mode="r+", shape=(self.length,))

    def finished(self, length: int) -> NDArray[np.uint32]:
        """Cut the file to its first `length` ids and return them, mapped to be read only."""
        self.length = length
        self._file.truncate(length * ID_BYTES)
        return np.memmap(self._file, dtype=np.uint32, mode="r", shape=(length,))

    def close(self) -> None:
        """Close the file; the space is given back when no map of it is left."""
        self._file.close()
