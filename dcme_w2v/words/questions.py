"""Questions about words, as lines of text: the neighbors of words, and of sums of words.

An answer also has the reason why there is none, so that one bad line does not end a batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .neighbors import Query, most_similar
from .vectors import Vectors

Line = Sequence[str]


@dataclass
class Answer:
    """The answer to one line.

    Attributes
    ----------
    record : dict
        For JSON output.
    rows : list of tuple of str
        For text output; empty if there is no answer.
    question : str
        The words of the line.
    missing : list of str
        Words of the line that are not in the vocabulary.
    problem : str
        Why the line is not a question of this kind, otherwise empty.
    """

    record: dict[str, Any]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    question: str = ""
    missing: list[str] = field(default_factory=list)
    problem: str = ""


def neighbors_of(vectors: Vectors, lines: Sequence[Line], topn: int) -> Iterator[Answer]:
    """Answer words, each a query, or sums of words with signs: ``king -man +woman``."""
    parsed = [_signed(vectors, line) or _plain(vectors, line) for line in lines]
    queries = [query for found, _ in parsed for query in found.values()]
    answers = most_similar(vectors, queries, topn, None)
    for line, (found, missing) in zip(lines, parsed, strict=True):
        near = {name: next(answers) for name in found}
        record = {name: [item._asdict() for item in items] for name, items in near.items()}
        rows: list[tuple[str, ...]] = [
            (name, item.word, f"{item.similarity:.6f}")
            for name, items in near.items()
            for item in items
        ]
        yield Answer({"neighbors": record, "missing": missing}, rows, " ".join(line), missing)


def _plain(vectors: Vectors, line: Line) -> tuple[dict[str, Query], list[str]]:
    """Return a query for each known word, and the others."""
    distinct = dict.fromkeys(line)
    known = {word: Query(word) for word in distinct if word in vectors}
    return known, [word for word in distinct if word not in known]


def _signed(vectors: Vectors, line: Line) -> tuple[dict[str, Query], list[str]] | None:
    """Return the one query of a line with signs; None if no word has one.

    A word of the vocabulary that starts with + or - is a word.
    """
    signs = [len(word) > 1 and word[0] in "+-" and word not in vectors.words for word in line]
    if not any(signs):
        return None
    terms: dict[str, list[str]] = {"+": [], "-": []}
    for word, signed in zip(line, signs, strict=True):
        terms[word[0] if signed else "+"].append(word[1:] if signed else word)
    every = dict.fromkeys([*terms["+"], *terms["-"]])
    missing = [word for word in every if word not in vectors]
    query = Query(terms["+"], terms["-"])
    return ({} if missing else {" ".join(line): query}), missing
