"""A list of distinct words, held as one block of bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray


class Words:
    """Distinct words in order, by number and by spelling.

    A million Python strings cost some 60 MB; one block of UTF-8 bytes with offsets costs what the
    words are long, and is what the C core reads and fills.

    Parameters
    ----------
    text : ndarray of uint8, shape (offsets[-1],)
        The words' UTF-8 bytes, one after the other, without separators.
    offsets : ndarray of int64, shape (n + 1,)
        Where each word starts in `text`; the last one is the length of `text`.
    """

    def __init__(self, text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.text = text
        self.offsets = offsets
        self._index: dict[bytes, int] | None = None

    @classmethod
    def from_words(cls, words: Iterable[str | bytes]) -> Words:
        """Make a list of words from strings or from UTF-8 bytes."""
        encoded = [word.encode() if isinstance(word, str) else word for word in words]
        offsets = np.zeros(len(encoded) + 1, dtype=np.int64)
        np.cumsum([len(word) for word in encoded], out=offsets[1:])
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, number: int) -> str:
        if not 0 <= number < len(self):
            raise IndexError(f"word {number} of {len(self)}")
        return self._bytes(number).decode()

    def __iter__(self) -> Iterator[str]:
        block, ends = self.text.tobytes(), self.offsets.tolist()
        return (block[ends[i] : ends[i + 1]].decode() for i in range(len(self)))

    def __contains__(self, word: str) -> bool:
        return self.index(word) is not None

    def index(self, word: str) -> int | None:
        """Return a word's number, or None where it is not in the list."""
        if self._index is None:
            self._index = {self._bytes(i): i for i in range(len(self))}
        return self._index.get(word.encode("utf-8", "surrogateescape"))

    def _bytes(self, number: int) -> bytes:
        return self.text[self.offsets[number] : self.offsets[number + 1]].tobytes()
