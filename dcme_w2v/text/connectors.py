"""Connector words of phrases: words that may be inside of a phrase but not at its ends.

A phrase with connectors is scored by the words at its ends: bank_of_america by the counts of bank,
america and "bank of america".
"""

from __future__ import annotations

from collections.abc import Sequence

from dcme_w2v._core import text as core
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.opening import read_whole

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
