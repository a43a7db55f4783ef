"""`dcme-w2v plot`: pictures of learning curves, words and tables of results."""

from __future__ import annotations

from typing import Any

import click

from dcme_w2v.cli.command import Command
from dcme_w2v.cli.options import output_option
from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import Paths


@click.command(
    cls=Command,
    example="dcme-w2v plot train.log other.log --output curves.svg\n"
    "dcme-w2v plot vectors.npy --words 'king queen man woman' --output words.png",
)
@click.argument("files", nargs=-1, required=True)
@output_option("PNG", "write the picture to this file (.png, .pdf or .svg); - is stdout")
@click.option(
    "--field", "fields", multiple=True, metavar="NAME",
    help="figure of the logs to draw, such as loss; may be given several times (default: all)",
)  # fmt: skip
@click.option("--column", metavar="NAME", help="column of a table to draw as bars")
@click.option("--words", metavar="WORDS", help="words to draw, separated by spaces")
@click.option(
    "--limit", type=click.IntRange(3), metavar="N",
    help="draw this many of the most frequent words (default: 200)",
)  # fmt: skip
@click.option("--method", metavar="tsne|pca", help="projection method of words (default: tsne)")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), metavar="N", help="random seed (default: 1)"
)
def plot(files: tuple[str, ...], output: str, **values: Any) -> None:
    """Plot learning curves, words on a plane, or a table of results.

    FILES: one or several logs of --log-json; word vectors of any format; or a table of results, a
    JSON file with columns and rows of text. Requires pip install 'dcme-w2v[plot]'.
    """
    from dcme_w2v.plots.figure import picture_format
    from dcme_w2v.plots.jobs import kind_of

    Paths().reads("FILES", *files).writes("--output", output).check()
    picture_format(output)
    kind = kind_of(files)
    given = {name: value for name, value in values.items() if value not in (None, ())}
    wrong = [name for name in given if name not in kind.options]
    if wrong:
        flag = "field" if wrong[0] == "fields" else wrong[0]
        raise UsageError(f"--{flag}={_shown(given[wrong[0]])}: is not an option of {kind.name}")
    kind.draw(files, output, **given)


def _shown(value: Any) -> str:
    return str(value[0] if isinstance(value, tuple) else value)
