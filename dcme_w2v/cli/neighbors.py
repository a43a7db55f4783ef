"""The command `neighbors`, and how questions about words are read and answered."""

from __future__ import annotations

import bisect
import contextlib
import importlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from dcme_w2v.errors import CorpusError, DcmeError, UsageError
from dcme_w2v.files.atomic import STANDARD, standard_input

from .command import Command
from .options import arguments, count_option, json_option
from .streams import print_json

if TYPE_CHECKING:
    from dcme_w2v.words.questions import Answer, Line

    Solve = Callable[[Sequence[Line]], Iterator[Answer]]

_AT_ONCE = 1 << 16  # bytes of standard input
_LONGEST = 1 << 20  # bytes of a line
_COMPLETIONS = 200
_OPTION = re.compile(r"--.+|-k[0-9]*|-h")


class SignedCommand(Command):
    """A command whose words may have signs: ``+king -man``, which are not options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; signed words are behind ``--``, if a word starts with +."""
        if "--" in args or not any(argument.startswith("+") for argument in args):
            return super().parse_args(ctx, args)
        options: list[str] = []
        words: list[str] = []
        for argument in args:
            value = options[-1:] in (["-k"], ["--topn"])
            (options if value or _OPTION.fullmatch(argument) else words).append(argument)
        return super().parse_args(ctx, [*options, "--", *words])


def answer(
    path: str, words: Sequence[str], as_json: bool, solve: Solve, vocabulary: Sequence[str]
) -> None:
    """Answer a question by the words of `vocabulary`, or without words the questions of stdin.

    `path` is where the answers come from, for messages.
    """
    if not words:
        for lines in _lines(vocabulary):
            answers = solve([line.split() for line in lines])
            _print(path, [answer for answer in answers if answer.question], as_json, vocabulary)
        return
    parts = [part for word in words for part in word.split()]
    if not parts:  # an empty variable of the shell, for example
        raise UsageError("the words are empty; give one, or none to read standard input")
    [answer] = solve([parts])
    if answer.problem:
        raise UsageError(answer.problem)
    if answer.missing:
        missing = f"{path}: no vector for {_with_spellings(answer.missing, vocabulary)}"
        if not answer.rows:
            raise DcmeError(missing if "(" in missing else f"{missing}; check spelling and case")
        click.echo(f"{missing}; skipped", err=True)
    if as_json:
        print_json(answer.record, indent=2)
        return
    if answer.rows:
        click.echo("\n".join("\t".join(row) for row in answer.rows))


def _with_spellings(missing: Sequence[str], vocabulary: Sequence[str]) -> str:
    """Return words that have no vector, each with the nearest spelling that has one."""
    from dcme_w2v.words.neighbors import nearest_spelling

    near = [(word, nearest_spelling(vocabulary, word)) for word in missing]
    return ", ".join(f"{word} (did you mean {one}?)" if one else word for word, one in near)


def _print(path: str, answers: Sequence[Answer], as_json: bool, vocabulary: Sequence[str]) -> None:
    """Print the answers to lines: an object a line, or rows that start with the question."""
    out, err = [], []
    for answer in answers:
        if as_json:
            out.append(json.dumps(answer.record))
            continue
        lead = () if "neighbors" in answer.record else (answer.question,)  # has its own
        out += ["\t".join((*lead, *row)) for row in answer.rows]
        if answer.problem:
            err.append(f"{answer.question}: {answer.problem}")
        elif answer.missing:
            named = _with_spellings(answer.missing, vocabulary if len(answers) == 1 else ())
            err.append(f"{path}: no vector for {named}")
    for lines, to_stderr in ((out, False), (err, True)):
        if lines:
            click.echo("\n".join(lines), err=to_stderr)


# ---- lines ----


def _lines(vocabulary: Sequence[str]) -> Iterator[list[str]]:
    """Yield lists of lines: one of a prompt, otherwise as many as are there to be read."""
    if sys.stdin is not None and sys.stdin.isatty():
        yield from ([line] for line in _prompted(vocabulary))
        return
    stream, rest = standard_input(), b""
    while data := stream.read1(_AT_ONCE):  # type: ignore[attr-defined]
        *lines, rest = (rest + data).split(b"\n")
        if len(rest) > _LONGEST:
            raise CorpusError("standard input: a line is longer than 1 MB; give words, a line each")
        if lines:
            yield [_decoded(line) for line in lines]
    if rest:
        yield [_decoded(rest)]


def _decoded(line: bytes) -> str:
    """Return a line as text; invalid UTF-8 is in no vocabulary."""
    return line.decode("utf-8", "surrogateescape")


def _prompted(vocabulary: Sequence[str]) -> Iterator[str]:
    """Yield lines that are typed, with line editing, history and completion of words by Tab."""
    with contextlib.suppress(ImportError):
        readline = importlib.import_module("readline")
        readline.set_completer(Completer(vocabulary).complete)
        readline.set_completer_delims(" \t\n")
        with_libedit = "libedit" in (readline.__doc__ or "")
        readline.parse_and_bind("bind ^I rl_complete" if with_libedit else "tab: complete")
    prompt = "> " if sys.stdout.isatty() else ""  # not into a file
    with contextlib.suppress(EOFError):
        while True:
            yield input(prompt)


class Completer:
    """Completes words of the vocabulary, also behind a sign, for readline."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = vocabulary
        self._sorted: list[str] = []
        self._matches: list[str] = []

    def complete(self, text: str, state: int) -> str | None:
        """Return the match of number `state`, None after the last."""
        if state == 0:
            self._matches = self.matches(text)
        return self._matches[state] if state < len(self._matches) else None

    def matches(self, text: str) -> list[str]:
        """Return the first words in order of letters that start with a text."""
        self._sorted = self._sorted or sorted(self._vocabulary)
        found = self._starting_with(text)
        if not found and text[:1] in ("+", "-"):
            found = [text[0] + word for word in self._starting_with(text[1:])]
        return found

    def _starting_with(self, text: str) -> list[str]:
        first = bisect.bisect_left(self._sorted, text)
        near = self._sorted[first : first + _COMPLETIONS]
        return [word for word in near if word.startswith(text)]


@click.command(cls=SignedCommand, example="dcme-w2v neighbors vectors.bin king paris -k 5")
@arguments("<vectors words=[WORD]...")
@count_option
@json_option
def neighbors(vectors: str, words: tuple[str, ...], topn: int, as_json: bool) -> None:
    """Print the nearest neighbors of words.

    Each line has a word, a neighbor and their cosine, separated by tabs. Out-of-vocabulary words
    are listed on stderr and skipped. Words with signs are one query, a sum of vectors of unit
    length: +king -man +woman answers "man is to king as woman is to ?".

    Without WORD, queries are read from standard input, one per line; on a terminal with line
    editing, history and completion of words by Tab.
    """
    from dcme_w2v.words.questions import neighbors_of
    from dcme_w2v.words.vectors import Vectors

    if not words and vectors == STANDARD:
        raise UsageError("VECTORS is standard input; give the words as arguments")
    loaded = Vectors.load(vectors)
    answer(vectors, words, as_json, lambda lines: neighbors_of(loaded, lines, topn), loaded.words)
