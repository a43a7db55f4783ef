r"""Pieces of words: an out-of-vocabulary word is its longest known beginning, then characters.

The rule is WordPiece's (Schuster and Nakajima 2012), which a `tokenizer.json` states: the
longest known beginning of a word, then the longest known pieces marked by ``##``.

>>> pieces = WordPieces(["tea", "te", "##s", "##p"])
>>> pieces.of("teaps"), pieces.of("teax")
([0, 3, 2], [])
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

from dcme_w2v.numeric.arrays import I64

CONTINUES = "##"
MAX_CHARACTERS = 1000  # of a word that is split
_DIGITS = "0123456789"


class WordPieces:
    """Splits words by a vocabulary.

    Parameters
    ----------
    words : iterable of str
        Words, and pieces that start with ``##``; word i has id i.
    """

    def __init__(self, words: Iterable[str]) -> None:
        texts = list(words)
        self._ids = sorted(range(len(texts)), key=texts.__getitem__)
        self._sorted = [texts[number] for number in self._ids]
        # The words that are beginnings of a word are the one before it in the order, or in turn
        # beginnings of that one.
        self._within: list[int] = []
        for place, word in enumerate(self._sorted):
            self._within.append(self._beginning(word, place - 1))
        marked = [number for number, word in enumerate(texts) if word.startswith(CONTINUES)]
        self._behind = {texts[number][len(CONTINUES) :]: number for number in marked}
        self._longest = max(map(len, self._behind), default=0)

    def _beginning(self, word: str, place: int) -> int:
        while place >= 0 and not word.startswith(self._sorted[place]):
            place = self._within[place]
        return place

    def beginnings(self, count: int) -> I64:
        """Return the id of the longest word that each of the first words begins with, or -1."""
        ids = np.array([*self._ids, count])  # the last one for a place of -1
        found = np.empty(len(ids), dtype=np.int64)
        found[ids[:-1]] = ids[self._within]
        return np.where(found[:count] < count, found[:count], -1)

    def of(self, word: str) -> list[int]:
        """Return the ids of the pieces of a word; none if a part is unknown."""
        place = self._beginning(word, bisect_right(self._sorted, word) - 1)
        if place < 0 or len(word) > MAX_CHARACTERS:
            return []
        found, start = [self._ids[place]], len(self._sorted[place])
        while start < len(word):
            for end in range(min(start + self._longest, len(word)), start, -1):
                number = self._behind.get(word[start:end])
                if number is not None:
                    break
            else:
                return []
            found.append(number)
            start = end
        return found


def character_pieces(words: Sequence[str]) -> list[str]:
    """Return the characters of words and the digits, as beginnings and as pieces, but no word."""
    known = set(words)
    characters = sorted(set("".join(known)).union(_DIGITS))
    pieces = [*characters, *(CONTINUES + one for one in characters)]
    return [piece for piece in pieces if piece not in known]
