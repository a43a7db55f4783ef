"""Questions about words, as lines of text: neighbors, analogies, cosines, the odd word out.

A line is a list of words. `Questions.neighbors` and the other methods answer many lines at once. An
answer also has the reason why there is none, so that one bad line does not end a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .neighbors import Neighbor, Query, most_similar
from .vectors import Vectors

MIN_OF_ODD = 3
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


@dataclass(frozen=True)
class Questions:
    """Answers lines of words with `k` results each."""

    vectors: Vectors
    k: int = 10

    def neighbors(self, lines: Sequence[Line]) -> Iterator[Answer]:
        """Answer words, each a query, or sums of words with signs: ``+king -man +woman``."""
        parsed = [self._signed(line) or self._plain(line) for line in lines]
        found = self._search(query for queries, _ in parsed for query in queries.values())
        for line, (queries, missing) in zip(lines, parsed, strict=True):
            near = {name: next(found) for name in queries}
            record = {"neighbors": {name: _as_dicts(items) for name, items in near.items()}}
            rows: list[tuple[str, ...]] = [
                (name, *_as_row(item)) for name, items in near.items() for item in items
            ]
            yield Answer({**record, "missing": missing}, rows, " ".join(line), missing)

    def analogies(self, lines: Sequence[Line]) -> Iterator[Answer]:
        """Answer lines A B C: A is to B as C is to ?."""
        checked = [self._check(line, 3, 3, "A B C") for line in lines]
        found = self._search(
            Query([line[1], line[2]], [line[0]])
            for line, answer in zip(lines, checked, strict=True)
            if _answerable(answer)
        )
        for line, answer in zip(lines, checked, strict=True):
            near = next(found) if _answerable(answer) else []
            answer.record |= {"analogy": list(line), "answers": _as_dicts(near)}
            answer.rows = [_as_row(item) for item in near]
            yield answer

    def similarities(self, lines: Sequence[Line]) -> Iterator[Answer]:
        """Answer lines A B with their cosine."""
        for line in lines:
            answer = self._check(line, 2, 2, "A B")
            cosine = self.vectors.similarity(*line) if _answerable(answer) else None
            answer.record |= {"words": list(line), "similarity": cosine}
            answer.rows = [] if cosine is None else [(f"{cosine:.6f}",)]
            yield answer

    def odd_ones(self, lines: Sequence[Line]) -> Iterator[Answer]:
        """Answer lines of three or more words with the one furthest from their mean."""
        for line in lines:
            answer = self._check(line, MIN_OF_ODD, len(line), "at least 3 words")
            odd = self.vectors.doesnt_match(line) if _answerable(answer) else None
            answer.record |= {"words": list(line), "odd_one_out": odd}
            answer.rows = [] if odd is None else [(odd,)]
            yield answer

    def _search(self, queries: Iterable[Query]) -> Iterator[list[Neighbor]]:
        return most_similar(self.vectors, list(queries), self.k, None)

    def _check(self, line: Line, least: int, most: int, wanted: str) -> Answer:
        missing = [word for word in dict.fromkeys(line) if word not in self.vectors]
        problem = "" if least <= len(line) <= most else f"{_counted(line)}; give {wanted}"
        record: dict[str, Any] = {"missing": missing} if missing else {}
        record |= {"error": problem} if problem else {}
        return Answer(record, [], " ".join(line), missing, problem)

    def _plain(self, line: Line) -> tuple[dict[str, Query], list[str]]:
        """Return a query for each known word, and the others."""
        distinct = dict.fromkeys(line)
        known = {word: Query(word) for word in distinct if word in self.vectors}
        return known, [word for word in distinct if word not in known]

    def _signed(self, line: Line) -> tuple[dict[str, Query], list[str]] | None:
        """Return the one query of a line with signs; None if no word has one.

        A word of the vocabulary that starts with + or - is a word.
        """
        known = self.vectors.words
        signs = [len(word) > 1 and word[0] in "+-" and word not in known for word in line]
        if not any(signs):
            return None
        terms: dict[str, list[str]] = {"+": [], "-": []}
        for word, signed in zip(line, signs, strict=True):
            terms[word[0] if signed else "+"].append(word[1:] if signed else word)
        every = dict.fromkeys([*terms["+"], *terms["-"]])
        missing = [word for word in every if word not in self.vectors]
        query = Query(terms["+"], terms["-"])
        return ({} if missing else {" ".join(line): query}), missing


def _counted(line: Line) -> str:
    return "1 word" if len(line) == 1 else f"{len(line)} words"


def _answerable(answer: Answer) -> bool:
    return not answer.missing and not answer.problem


def _as_row(item: Neighbor) -> tuple[str, str]:
    return item.word, f"{item.similarity:.6f}"


def _as_dicts(near: Iterable[Neighbor]) -> list[dict[str, object]]:
    return [{"word": item.word, "similarity": item.similarity} for item in near]
