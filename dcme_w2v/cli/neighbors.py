"""`dcme-w2v neighbors` and `dcme-w2v analogy`: words nearest to a word or to b - a + c."""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from dcme_w2v.cli.command import Command
from dcme_w2v.cli.options import json_option
from dcme_w2v.errors import DcmeError

if TYPE_CHECKING:
    from dcme_w2v.words.neighbors import Neighbor
    from dcme_w2v.words.vectors import Vectors


@click.command(cls=Command, example="dcme-w2v neighbors vectors.bin king paris -k 5")
@click.argument("vectors")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@click.option(
    "-k",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="number of neighbours",
)
@json_option
def neighbors(vectors: str, words: tuple[str, ...], k: int, as_json: bool) -> None:
    """Print the nearest neighbours of words.

    Each line has a word, a neighbour and their cosine, separated by tabs. Out-of-vocabulary words
    are listed on stderr and skipped. Without WORD, words are read from standard input, one query
    per line; on a terminal with line editing.
    """
    from dcme_w2v import Vectors

    loaded = Vectors.load(vectors)
    if not words:
        _answer_lines(loaded, vectors, k, as_json)
        return
    known, missing = _split(loaded, vectors, words)
    found = {word: loaded.most_similar(word, topn=k) for word in known}
    if as_json:
        listed = {word: _as_dicts(near) for word, near in found.items()}
        click.echo(json.dumps({"neighbors": listed, "missing": missing}, indent=2))
        return
    _print_neighbors(found)


def _answer_lines(loaded: Vectors, path: str, k: int, as_json: bool) -> None:
    """Print the neighbours of the words of each input line; JSON has one object per line."""
    for line in _lines():
        words = line.split()
        found = {word: loaded.most_similar(word, topn=k) for word in words if word in loaded}
        missing = [word for word in words if word not in found]
        if as_json:
            listed = {word: _as_dicts(near) for word, near in found.items()}
            click.echo(json.dumps({"neighbors": listed, "missing": missing}))
            continue
        _print_neighbors(found)
        if missing:
            click.echo(f"{path}: no vector for {', '.join(missing)}", err=True)


def _lines() -> Iterator[str]:
    """Yield lines of standard input; on a terminal, with a prompt and line editing."""
    if not sys.stdin.isatty():
        yield from sys.stdin
        return
    with contextlib.suppress(ImportError):
        importlib.import_module("readline")  # gives input() line editing and history
    with contextlib.suppress(EOFError):
        while True:
            yield input("> ")


def _print_neighbors(found: Mapping[str, Sequence[Neighbor]]) -> None:
    for word, near in found.items():
        for item in near:
            click.echo(f"{word}\t{item.word}\t{item.similarity:.6f}")


@click.command(cls=Command, example="dcme-w2v analogy vectors.bin man woman king")
@click.argument("vectors")
@click.argument("a")
@click.argument("b")
@click.argument("c")
@click.option(
    "-k",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="number of answers",
)
@json_option
def analogy(vectors: str, a: str, b: str, c: str, k: int, as_json: bool) -> None:
    """Answer "A is to B as C is to ?".

    Each line has a word and its cosine to b - a + c, separated by a tab, the best first.
    """
    from dcme_w2v import Vectors

    answers = Vectors.load(vectors).most_similar(positive=[b, c], negative=[a], topn=k)
    if as_json:
        click.echo(json.dumps({"analogy": [a, b, c], "answers": _as_dicts(answers)}, indent=2))
        return
    for item in answers:
        click.echo(f"{item.word}\t{item.similarity:.6f}")


def _split(loaded: Vectors, path: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words in the vocabulary and the others, and report the others."""
    distinct = dict.fromkeys(words)
    known = [word for word in distinct if word in loaded]
    missing = [word for word in distinct if word not in loaded]
    if not known:
        raise DcmeError(f"{path}: no vector for {', '.join(missing)}; check spelling and case")
    if missing:
        click.echo(f"{path}: no vector for {', '.join(missing)}; skipped", err=True)
    return known, missing


def _as_dicts(near: Sequence[Neighbor]) -> list[dict[str, object]]:
    return [{"word": item.word, "similarity": item.similarity} for item in near]
