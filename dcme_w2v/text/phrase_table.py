"""Table of phrases, the file of --save-table and --read-table.

A line has pass, left side, right side, count and score, separated by tabs. Where connectors are
between the sides, they follow as a sixth column, separated by spaces.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import NamedTuple

from dcme_w2v.errors import FormatError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.opening import read_whole
from dcme_w2v.text.connectors import RUN


class Phrase(NamedTuple):
    """A pair of words, its count, its score, and the connectors between the words."""

    left: str
    right: str
    seen: int
    score: float
    between: str = ""

    @property
    def joined(self) -> str:
        """The word that the phrase becomes."""
        return "_".join((self.left, *self.between.split(), self.right))


@dataclass(frozen=True)
class PhraseTable:
    """The phrases of each pass."""

    passes: tuple[tuple[Phrase, ...], ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table; ``-`` is standard output."""
        with atomic_write(path) as file:
            for number, phrases in enumerate(self.passes, 1):
                for left, right, seen, score, between in phrases:
                    line = f"{number}\t{left}\t{right}\t{seen}\t{score!r}"
                    file.write((f"{line}\t{between}\n" if between else f"{line}\n").encode())

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
                turn, phrase = _parsed(line)
                if not len(passes) <= turn <= len(passes) + 1 or turn < 1:
                    raise ValueError(f"pass {turn} after pass {len(passes)}")
            except ValueError as error:
                raise FormatError(
                    f"{os.fspath(path)}:{number}: is not a phrase ({error}); give a file of "
                    "--save-table"
                ) from None
            passes += [[]] * (turn > len(passes))
            passes[-1].append(phrase)
        return cls(tuple(tuple(phrases) for phrases in passes))


def _parsed(line: bytes) -> tuple[int, Phrase]:
    """Return pass and phrase of a line; ValueError says what is wrong."""
    turn, left, right, seen, score, *more = line.decode().split("\t")
    if len(more) > 1:
        raise ValueError("more than six columns")
    between = more[0].encode() if more else b""
    if any(side.split() != [side] for side in (left.encode(), right.encode())):
        raise ValueError("a side is not one word")
    if more and (not between or b" ".join(between.split()) != between):
        raise ValueError("the connectors are not words separated by a space")
    if len(between.split()) > RUN:
        raise ValueError(f"more than {RUN} connectors")
    return int(turn), Phrase(left, right, int(seen), float(score), between.decode())
