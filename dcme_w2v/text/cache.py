"""The cache of token IDs, an unnamed temporary file that becomes the training text.

The file is unlinked when it is created, so that it disappears however the process ends.
"""

import errno
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dcme_w2v._core import text as core
from dcme_w2v.errors import OutOfMemoryError, ResourceError
from dcme_w2v.files.atomic import LIMITED, temporary_folder
from dcme_w2v.files.opening import fill
from dcme_w2v.numeric.arrays import I64, U32, Bools

ID_BYTES = 4
PIECE = 1 << 20  # number of word IDs that are read together
LAST = np.uint32(core.LAST)  # bit of a word ID that marks the last word of a line
NUMBER = np.uint32(core.LAST - 1)  # bits of a word ID that contain the index of the word


REMEDY = "set TMPDIR to another folder"


class IdCache:
    """Token IDs that are written in blocks, rewritten in place and finally memory-mapped.

    The IDs are in an unnamed file in the system's folder for temporary files.

    Parameters
    ----------
    name : str
        Name of the file in error messages.
    """

    def __init__(self, name: str = "the id cache") -> None:
        self._name, self.folder = name, temporary_folder()
        self.length = 0  # number of word IDs written so far
        try:
            self._file = tempfile.TemporaryFile(dir=self.folder, buffering=0)  # noqa: SIM115
        except OSError as error:
            raise ResourceError(
                f"{self.folder}: cannot create {self._name}: {error.strerror}; {REMEDY}"
            ) from error

    def write(self, first: int, ids: U32) -> None:
        """Write IDs to the file, starting at the index `first`."""
        self.length = max(self.length, first + len(ids))
        rest = ids.view(np.uint8).data
        try:
            self._file.seek(first * ID_BYTES)
            while rest:
                rest = rest[self._file.write(rest) :]
        except OSError as error:
            need = f"it needs more than {(first + len(ids)) * ID_BYTES / 1e6:,.1f} MB: "
            raise self._failure("written", error, need) from error

    def read(self, first: int, length: int) -> U32:
        """Read `length` IDs from the file, starting at the index `first`."""
        ids = np.empty(length, dtype=np.uint32)
        try:
            self._file.seek(first * ID_BYTES)
            is_whole = fill(self._file, ids.view(np.uint8).data) == ids.nbytes
        except OSError as error:
            raise self._failure("read back", error) from error
        if not is_whole:
            raise ResourceError(f"{self.folder}: {self._name} was truncated while in use; {REMEDY}")
        return ids

    def pieces(self) -> Iterator[U32]:
        """Yield all IDs in chunks; callers may overwrite the file up to the last yielded ID."""
        for first in range(0, length := self.length, PIECE):
            yield self.read(first, min(PIECE, length - first))

    def finished(self, length: int, mode: Literal["r", "r+"] = "r") -> U32:
        """Truncate the file to `length` IDs and close it; return the IDs as a memory-mapped array.

        The disk space is released with the mapping.
        """
        try:
            self._file.truncate(length * ID_BYTES)
            ids = np.memmap(self._file, dtype=np.uint32, mode=mode, shape=(length,))
        except OSError as error:
            if error.errno == errno.ENOMEM:
                raise OutOfMemoryError(
                    f"{self._name} ({length * ID_BYTES / 1e6:,.1f} MB) cannot be mapped into the "
                    "address space, whose limit is too low; raise the limit (ulimit -v)"
                ) from error
            raise self._failure("mapped", error) from error
        self._file.close()
        return ids

    def _failure(self, what: str, error: OSError, need: str = "") -> ResourceError:
        remedy = LIMITED if error.errno == errno.EFBIG else REMEDY
        said = error.strerror or error
        return ResourceError(
            f"{self.folder}: {self._name} cannot be {what}: {said}; {need}{remedy}"
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@dataclass(frozen=True)
class HeldOutLines:
    """Select the held-out lines, each independently with the same probability.

    Attributes
    ----------
    fraction : float
        Between 0 and 1.
    seed : int
    """

    fraction: float
    seed: int

    def chosen(self, first: int, count: int) -> Bools:
        """Return a mask of the held-out lines among `count` lines, starting at line `first`."""
        numbers = np.arange(first, first + count, dtype=np.uint64)
        mixed = splitmix64(numbers + splitmix64(np.array([self.seed], dtype=np.uint64)))
        return mixed < np.uint64(self.fraction * 2.0**64)


class Choice:
    """Find the token IDs in a stream that belong to held-out lines."""

    def __init__(self, lines: HeldOutLines) -> None:
        self._lines = lines
        self._line = 0  # index of the line that is being read

    def mask(self, ids: U32) -> Bools:
        """Return a mask of the next IDs in the stream that selects the IDs in held-out lines."""
        last = (ids & LAST) != 0
        line = np.cumsum(last) - last
        ended = int(last.sum())
        mask: Bools = self._lines.chosen(self._line, ended + 1)[line]
        self._line += ended
        return mask


def held_out_counts(cache: IdCache, words: int, lines: HeldOutLines) -> I64:
    """Count how often each word occurs in held-out lines."""
    counts, choice = np.zeros(words, dtype=np.int64), Choice(lines)
    for ids in cache.pieces():
        counts += np.bincount(ids[choice.mask(ids)] & NUMBER, minlength=words)
    return counts


def compact(cache: IdCache, ranks: U32, lines: int, holdout: HeldOutLines | None) -> dict[str, Any]:
    """Replace cached IDs with vocabulary IDs in place; return some fields of `EncodedCorpus`."""
    trained, apart = core.Renumbering(), core.Renumbering()
    choice = Choice(holdout) if holdout else None
    held_out = [np.empty(0, dtype=np.uint32)]
    length = 0
    for ids in cache.pieces():
        to = np.empty(1 + len(ids), dtype=np.uint32)
        if choice:
            mask = choice.mask(ids)
            written = apart.add(ids[mask], ranks, False, to)
            held_out.append(to[:written].copy())
            ids = ids[~mask]
        written = trained.add(ids, ranks, False, to)
        cache.write(length, to[:written])
        length += written
    return {
        "ids": cache.finished(length),
        "lines": lines - apart.lines,
        "held_out": np.concatenate(held_out),
    }


def splitmix64(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash integers with splitmix64 (Steele, Lea and Flood 2014)."""
    with np.errstate(over="ignore"):
        numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
        numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        numbers = numbers ^ (numbers >> np.uint64(31))
    return numbers
