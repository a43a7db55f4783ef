"""`dcme-w2v convert`: from any format of word vectors to any other."""

from __future__ import annotations

import click

from dcme_w2v import files
from dcme_w2v.words.vectors import Vectors
from dcme_w2v.words.vectors_io import FORMATS


@click.command()
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@click.option(
    "--format",
    "chosen",
    type=click.Choice(FORMATS),
    help="Format of OUT; by default .bin is binary, .npy is npy, all others are text.",
)
def convert(source: str, target: str, chosen: str | None) -> None:
    """Convert word vectors between text, binary and npy.

    The format of IN is told from its content; it may be packed (gz, bz2, xz, zst), without a
    header (GloVe), or without line ends after binary vectors. `-` is standard input or output. An
    npy file X.npy has its words in X.vocab beside it.
    """
    files.check_writable(target)
    vectors = Vectors.load(source)
    vectors.save(target, chosen)
    click.echo(f"{len(vectors)} vectors of {vectors.dim} written to {target}", err=True)
