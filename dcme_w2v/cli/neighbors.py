"""The commands `neighbors`, `analogy`, `similarity` and `odd-one-out`: questions about words."""

import click

from .ask import SignedCommand, ask
from .command import Command
from .options import count_option, json_option

_index = click.option(
    "--index",
    metavar="FILE",
    help="search by this approximate index; if there is none, build it first (package: usearch)",
)


@click.command(cls=SignedCommand, example="dcme-w2v neighbors vectors.bin king paris -k 5")
@click.argument("vectors")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@count_option
@_index
@json_option
def neighbors(
    vectors: str, words: tuple[str, ...], k: int, index: str | None, as_json: bool
) -> None:
    """Print the nearest neighbors of words.

    Each line has a word, a neighbor and their cosine, separated by tabs. Out-of-vocabulary words
    are listed on stderr and skipped. Words with signs are one query: +king -man +woman.

    Without WORD, queries are read from standard input, one per line; on a terminal with line
    editing, history and completion of words by Tab.
    """
    ask(vectors, words, k, as_json, "neighbors", index)


@click.command(cls=Command, example="dcme-w2v analogy vectors.bin man woman king")
@click.argument("vectors")
@click.argument("words", metavar="[A B C]", nargs=-1)
@count_option
@_index
@json_option
def analogy(vectors: str, words: tuple[str, ...], k: int, index: str | None, as_json: bool) -> None:
    """Answer "A is to B as C is to ?".

    Each line has a word and its cosine to b - a + c, separated by a tab, the best first. Without A
    B C, questions are read from standard input, one per line; then each line of the answer starts
    with the question.
    """
    ask(vectors, words, k, as_json, "analogies", index)


@click.command(cls=Command, example="dcme-w2v similarity vectors.bin king queen")
@click.argument("vectors")
@click.argument("words", metavar="[A B]", nargs=-1)
@json_option
def similarity(vectors: str, words: tuple[str, ...], as_json: bool) -> None:
    """Print the cosine similarity of two words.

    Without A B, pairs are read from standard input, one per line; then each line of the answer
    starts with the pair. To compare with human judgments, see `eval similarity`.
    """
    ask(vectors, words, 1, as_json, "similarities")


@click.command(cls=Command, example="dcme-w2v odd-one-out vectors.bin breakfast lunch car dinner")
@click.argument("vectors")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@json_option
def odd_one_out(vectors: str, words: tuple[str, ...], as_json: bool) -> None:
    """Print the word that fits least to the others: the one furthest from the mean of all.

    Without WORD, lists of words are read from standard input, one per line; then each line of the
    answer starts with the list.
    """
    ask(vectors, words, 1, as_json, "odd_ones")
