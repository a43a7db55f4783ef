"""The command `neighbors`, which answers queries from arguments, a prompt or a pipe."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dcme_w2v.errors import DcmeError, UsageError, warn
from dcme_w2v.files.atomic import STANDARD, standard_input
from dcme_w2v.files.paths import READS

from .command import command
from .options import arguments, count_option, flag, json_option

if TYPE_CHECKING:
    from dcme_w2v.words.vectors import Vectors

    Solve = Callable[[Sequence[Sequence[str]]], Iterator["Answer"]]

_LONGEST = 1 << 20  # maximum length of an input line in bytes


class Answer(NamedTuple):
    """The answer to an input line: a JSON object, rows of text, and error messages."""

    record: dict[str, Any]
    rows: Sequence[tuple[str, ...]]
    error: DcmeError | None = None


def answer(words: Sequence[str], as_json: bool, solve: Solve) -> None:
    """Answer the words on the command line or, if there are none, each line of standard input.

    An error is printed but does not end a batch. As in `grep`, the exit code is 1 if no line had an
    answer.
    """
    from dcme_w2v.formats.texts import tokens_of

    failed = answered = False
    for lines in [[" ".join(words)]] if words else _lines():
        questions = [parts for line in lines if (parts := tokens_of(line))]
        if words and not questions:  # all words are empty, perhaps from an empty shell variable
            raise UsageError(
                "all given words are empty; pass a nonempty word, or omit the argument to read "
                "words from standard input"
            )
        out, err = [], []
        for found in solve(questions):
            if found.error and words:
                raise found.error
            failed, answered = failed or bool(found.error), answered or not found.error
            if as_json:
                out.append(json.dumps(found.record))
                continue
            out += map("\t".join, found.rows)
            err += [found.error.message] if found.error else []
        for printed, to_stderr in ((out, False), (err, True)):
            if printed:
                click.echo("\n".join(printed), err=to_stderr)
    if failed and not answered:
        raise click.exceptions.Exit(1)


# ---- lines ----


def _lines() -> Iterator[list[str]]:
    """Yield lists of input lines: a single line from a prompt, or all lines that have arrived."""
    if sys.stdin is not None and sys.stdin.isatty():
        yield from ([line] for line in _prompted())
        return
    from dcme_w2v.files.opening import arriving_lines

    read = standard_input().read1  # type: ignore[attr-defined]
    for lines in arriving_lines(read, _LONGEST):
        # Escape invalid UTF-8, so that invalid words match no vocabulary word.
        yield [line.decode("utf-8", "surrogateescape") for line in lines]


def _prompted() -> Iterator[str]:
    """Yield the lines that a user types at a prompt, with line editing and history."""
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")
    prompt = "> " if sys.stdout.isatty() else ""  # do not print a prompt if output goes to a file
    with contextlib.suppress(EOFError):
        while True:
            yield input(prompt)


@command(
    example="dcme-w2v neighbors vectors.bin king paris -k 5\n"
    "dcme-w2v neighbors vectors.bin '+king -man +woman'"
)
@arguments("<vectors words=[WORD]...")
@count_option
@flag("--among WORDS", "print only neighbors from this space-separated list of words")
@flag(
    "--stability VECTORS...",
    "print how many of these files, trained with other seeds, also list each neighbor",
    name="others",
    multiple=True,
    path=READS,
)
@flag("--ignore-case", "if a word is out of vocabulary, look up its lowercase form")
@json_option
def neighbors(
    vectors: str,
    words: tuple[str, ...],
    topn: int,
    among: str | None,
    others: tuple[str, ...],
    ignore_case: bool,
    as_json: bool,
) -> None:
    """Print the nearest neighbors of words.

    Each line contains a word, a neighbor and their cosine similarity, separated by tabs.
    Out-of-vocabulary words are listed on stderr and skipped. Quoted words with signs form one
    query, a sum of unit vectors: '+king -man +woman' answers "man is to king as woman is to ?".
    With --stability, each line ends with the number of files (including VECTORS) in which the word
    has this neighbor.

    Without WORD, queries are read from standard input, one per line. At a terminal, the prompt
    supports line editing and history.
    """
    import dcme_w2v as dw
    from dcme_w2v.formats.texts import tokens_of

    if not words and vectors == STANDARD:
        raise UsageError(
            "standard input cannot supply both VECTORS and words; pass the words as arguments"
        )
    v = dw.Vectors.load(vectors)
    chosen = None
    if among is not None:
        named = [_in_lower_case(v, one) if ignore_case else one for one in tokens_of(among)]
        chosen = _known(vectors, v, list(dict.fromkeys(named)))
    seeds = [dw.Vectors.load(path) for path in others]

    def solve(lines: Sequence[Sequence[str]]) -> Iterator[Answer]:
        if ignore_case:
            lines = [[_in_lower_case(v, word) for word in line] for line in lines]
        parsed = [_parsed(v, line) for line in lines]
        answers = v.most_similar_batch(
            (query for queries, _ in parsed for query in queries.values()), topn, among=chosen
        )
        for line, (queries, missing) in zip(lines, parsed, strict=True):
            near = {name: next(answers) for name in queries}
            record = {name: [one._asdict() for one in found] for name, found in near.items()}
            if seeds:
                _count_files(record, [_words_near(one, line, topn, chosen) for one in seeds])
            rows = [
                (name, one["word"], f"{one['similarity']:.6f}", *map(str, [*one.values()][2:]))
                for name, found in record.items()
                for one in found
            ]
            error = None
            if missing:
                text = _no_vector(vectors, missing, v.words if len(lines) == 1 else ())
                if not rows:
                    error = DcmeError(f"{text}; check spelling and case")
                elif not as_json:
                    warn(f"{text}; skipped")
            yield Answer({"neighbors": record, "missing": missing}, rows, error)

    answer(words, as_json, solve)


def _in_lower_case(v: Vectors, word: str) -> str:
    """Return a word's lowercase form if only this form is in the vocabulary, or else the word.

    The word may begin with the sign + or -.
    """
    sign = word[:1] if word[:1] in ("+", "-") else ""
    known = word in v or (sign and word[1:] in v)
    return word if known or word.lower().removeprefix(sign) not in v else word.lower()


def _words_near(
    v: Vectors, line: Sequence[str], topn: int, among: Sequence[str] | None
) -> dict[str, set[str]]:
    """Map each query in a line to the words that are its nearest neighbors in a vector file."""
    queries, _ = _parsed(v, line)
    known = None if among is None else [word for word in among if word in v]
    answers = v.most_similar_batch(queries.values(), topn, among=known)
    return {name: {one.word for one in next(answers)} for name in queries}


def _count_files(
    record: dict[str, list[dict[str, Any]]], others: Sequence[dict[str, set[str]]]
) -> None:
    """Store, for each neighbor in a record, how many files list it for the same query."""
    for name, found in record.items():
        for one in found:
            one["files"] = 1 + sum(one["word"] in near.get(name, ()) for near in others)


def _parsed(v: Vectors, line: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Parse a line into named queries; also return the words that have no vector.

    Each word is a query, but a line with signs is one query. A vocabulary word that starts with +
    or - is read as a word.
    """
    signs = [len(word) > 1 and word[0] in "+-" and word not in v.words for word in line]
    words = [word[signed:] for word, signed in zip(line, signs, strict=True)]
    missing = [word for word in dict.fromkeys(words) if word not in v]
    if not any(signs):
        return {word: word for word in dict.fromkeys(words) if word not in missing}, missing
    terms: tuple[list[str], list[str]] = [], []
    for given, word in zip(line, words, strict=True):
        terms[given == f"-{word}"].append(word)
    return {} if missing else {" ".join(line): terms}, missing


def _known(path: str, v: Vectors, words: Sequence[str]) -> list[str]:
    """Return the words that have a vector; warn about words that have none."""
    known = [word for word in words if word in v]
    if not known:
        raise UsageError(
            f"--among: {path} contains none of these words; check their spelling and case"
        )
    if len(known) < len(words):
        missing = [word for word in words if word not in known]
        warn(f"{_no_vector(path, missing, v.words)}; skipped")
    return known


def _no_vector(path: str, missing: Sequence[str], vocabulary: Sequence[str]) -> str:
    """Return a message that lists words without vectors and suggests similarly spelled words."""
    from dcme_w2v.words.neighbors import nearest_spelling

    near = [(word, nearest_spelling(vocabulary, word)) for word in missing]
    named = ", ".join(f"{word} (did you mean {one}?)" if one else word for word, one in near)
    return f"{path}: no vector for {named}"
