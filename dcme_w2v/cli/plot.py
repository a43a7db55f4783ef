"""`dcme-w2v plot`: pictures of learning curves and words."""

from typing import Any

import click

from .command import Command
from .options import output_option


@click.command(
    cls=Command,
    example="dcme-w2v plot train.log other.log --output curves.svg\n"
    "dcme-w2v plot vectors.npy --words 'king queen man woman' --output words.png",
)
@click.argument("files", nargs=-1, required=True)
@output_option("PNG", "write the picture to this file (.png, .pdf or .svg); - is stdout")
@click.option(
    "--field", "fields", multiple=True, metavar="NAME",
    help="figure of the logs to draw, such as lr; may be given several times (default: losses and "
    "log-probabilities)",
)  # fmt: skip
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
    """Plot learning curves, or words on a plane.

    FILES: one or several logs of --log-json, or word vectors of any format. Requires
    the packages matplotlib and openTSNE.
    """
    from dcme_w2v import plot as draw

    draw(files, output, **values)
