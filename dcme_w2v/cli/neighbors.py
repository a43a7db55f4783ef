"""`dcme-w2v neighbors` and `dcme-w2v analogy`: the words nearest to words, or to an answer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from dcme_w2v.cli.options import json_option
from dcme_w2v.errors import DcmeError

if TYPE_CHECKING:
    from dcme_w2v.words.neighbors import Neighbor
    from dcme_w2v.words.vectors import Vectors


@click.command()
@click.argument("vectors")
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.option(
    "-k",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    metavar="N",
    help="how many neighbours",
)
@json_option
def neighbors(vectors: str, words: tuple[str, ...], k: int, as_json: bool) -> None:
    """Print the words nearest to each WORD.

    A line is word, neighbour and cosine, parted by tabs. Words that VECTORS does not have are
    listed on stderr and skipped.
    """
    from dcme_w2v import Vectors

    loaded = Vectors.load(vectors)
    known, missing = _split(loaded, vectors, words)
    found = {word: loaded.most_similar(word, topn=k) for word in known}
    if as_json:
        listed = {word: _as_dicts(near) for word, near in found.items()}
        click.echo(json.dumps({"neighbors": listed, "missing": missing}, indent=2))
        return
    for word, near in found.items():
        for item in near:
            click.echo(f"{word}\t{item.word}\t{item.similarity:.6f}")


@click.command()
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
    help="how many answers",
)
@json_option
def analogy(vectors: str, a: str, b: str, c: str, k: int, as_json: bool) -> None:
    """Answer "A is to B as C is to ?".

    A line is word and cosine, parted by a tab, best first.
    """
    from dcme_w2v import Vectors

    answers = Vectors.load(vectors).most_similar(positive=[b, c], negative=[a], topn=k)
    if as_json:
        click.echo(json.dumps({"analogy": [a, b, c], "answers": _as_dicts(answers)}, indent=2))
        return
    for item in answers:
        click.echo(f"{item.word}\t{item.similarity:.6f}")


def _split(loaded: Vectors, path: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part the words into known and missing ones, and tell of the missing."""
    distinct = dict.fromkeys(words)
    known = [word for word in distinct if word in loaded.words]
    missing = [word for word in distinct if word not in loaded.words]
    if not known:
        raise DcmeError(f"{path}: has none of {', '.join(missing)}; check spelling and case")
    if missing:
        click.echo(f"{path}: has no {', '.join(missing)}; skipped", err=True)
    return known, missing


def _as_dicts(near: Sequence[Neighbor]) -> list[dict[str, object]]:
    return [{"word": item.word, "similarity": item.similarity} for item in near]
