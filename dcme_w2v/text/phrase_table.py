"""Table of phrases, the file of --save-table and --read-table.

A line has pass, left side, right side, count and score, separated by tabs. Where connectors are
between the sides, they follow as a sixth column, separated by spaces.

Connectors are words that may be inside of a phrase but not at its ends. A phrase with connectors is
scored by the words at its ends: bank_of_america by the counts of bank, america and "bank of
america".
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dcme_w2v._core import text as core
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.opening import read_whole
from dcme_w2v.platform import PathLike

MAX_CONNECTORS = core.ROLE_SIDE - 1  # distinct connectors
RUN = core.RUN_MAX  # connectors between two words

LISTS = {
    "english": (
        "a an the "  # articles
        "about after against among as at before between by during for from in into of on onto over "
        "per through to under upon via with within without "  # prepositions
        "and but nor or"  # conjunctions
    )
}


def connector_file(given: str | None) -> str | None:
    """Return the file that --connectors names, None if it is a list of `LISTS` or not given."""
    return None if given in LISTS else given


def connector_words(given: str | None) -> tuple[bytes, ...]:
    """Return the words of a list or a file of words separated by whitespace.

    Raises
    ------
    CorpusError
        The file cannot be read.
    FormatError
        The file is not UTF-8 or has no words.
    UsageError
        There are more than `MAX_CONNECTORS` words.
    """
    if given is None:
        return ()
    if given in LISTS:
        return tuple(LISTS[given].encode().split())
    text = read_whole(given)
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise FormatError(
            f"{given}: byte {error.start} is not UTF-8: give a file of words"
        ) from None
    if b"\0" in text:
        raise FormatError(f"{given}: has NUL bytes: give a file of words")
    words = tuple(dict.fromkeys(text.split()))
    if not words:
        raise FormatError(f"{given}: has no words; give connectors separated by whitespace")
    if len(words) > MAX_CONNECTORS:
        raise UsageError(
            f"--connectors={given}: has {len(words):,} words; at most {MAX_CONNECTORS} are allowed"
        )
    return words


def run_of(numbers: Sequence[int]) -> int:
    """Return the core's number of a run of connectors, by their numbers from 1."""
    run = 0
    for number in numbers:
        run = run << 8 | number
    return run


def numbers_of(run: int) -> tuple[int, ...]:
    """Return the connectors of the core's number of a run."""
    return tuple(number for number in run.to_bytes(RUN, "big") if number)


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

    def save(self, path: PathLike) -> None:
        """Write the table; ``-`` is standard output."""
        with atomic_write(path) as file:
            for number, phrases in enumerate(self.passes, 1):
                for left, right, seen, score, between in phrases:
                    line = f"{number}\t{left}\t{right}\t{seen}\t{score!r}"
                    file.write((f"{line}\t{between}\n" if between else f"{line}\n").encode())

    @classmethod
    def load(cls, path: PathLike) -> PhraseTable:
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
    """Return pass and phrase of a line; ValueError names the fault."""
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
