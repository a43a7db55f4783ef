"""Table of phrases, the file of --save-table and --read-table.

A line has pass, left side, right side, count and score, separated by tabs.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

from dcme_w2v.errors import FormatError
from dcme_w2v.files import atomic_write
from dcme_w2v.text.compression import read_whole


class Phrase(NamedTuple):
    """A pair of words, its count and its score."""

    left: str
    right: str
    seen: int
    score: float


@dataclass(frozen=True)
class PhraseTable:
    """The phrases of each pass."""

    passes: tuple[tuple[Phrase, ...], ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table; ``-`` is standard output."""
        with atomic_write(path) as file:
            for number, phrases in enumerate(self.passes, 1):
                for left, right, seen, score in phrases:
                    file.write(f"{number}\t{left}\t{right}\t{seen}\t{score!r}\n".encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PhraseTable:
        """Read a table, which may be compressed.

        Raises
        ------
        FormatError
            A line is not a phrase; the message has file and line.
        CorpusError
            The file cannot be read.
        """
        passes: list[list[Phrase]] = []
        for number, line in enumerate(read_whole(os.fspath(path)).split(b"\n"), 1):
            if not line:
                continue
            try:
                turn, left, right, seen, score = line.decode().split("\t")
                phrase = Phrase(left, right, int(seen), float(score))
                if not len(passes) <= int(turn) <= len(passes) + 1 or int(turn) < 1:
                    raise ValueError(f"pass {turn} after pass {len(passes)}")
                if any(side.split() != [side] for side in (left.encode(), right.encode())):
                    raise ValueError("a side is not one word")
            except ValueError as error:
                raise FormatError(
                    f"{os.fspath(path)}:{number}: is not a phrase ({error}); give a file of "
                    "--save-table"
                ) from None
            passes += [[]] * (int(turn) > len(passes))
            passes[-1].append(phrase)
        return cls(tuple(tuple(phrases) for phrases in passes))
