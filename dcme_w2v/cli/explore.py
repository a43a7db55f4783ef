"""`dcme-w2v explore`: a page of HTML to explore vectors in a browser."""

from typing import Any

import click

from .command import Command
from .options import output_option, plain_option, projection_options, quiet_option


@click.command(
    cls=Command,
    example="dcme-w2v explore vectors.npy --output page.html\n"
    "dcme-w2v explore before.npy after.npy --output page.html",
)
@click.argument("vectors", nargs=-1, required=True)
@output_option("HTML", "write the page to this file; - is stdout")
@click.option(
    "--labels", metavar="FILE",
    help="labels, one line per row, with columns separated by tabs; points are colored by them",
)  # fmt: skip
@plain_option(
    "--color", former=["--colour"], type=click.IntRange(1), default=1, show_default=True,
    metavar="N",
    help="column of --labels that colors the points; the others are titles of documents",
)  # fmt: skip
@projection_options(50_000, "show this many rows of each file, the most frequent words")
@quiet_option
def explore(vectors: tuple[str, ...], output: str, quiet: bool, **options: Any) -> None:
    """Write a page of HTML to explore vectors: neighbors, analogies and a map.

    VECTORS: one or two files of word vectors of any format, or of rows of documents (.npz, .svm).
    The page is a single file that a browser opens from the disk; it uses no network. t-SNE
    requires the package openTSNE.
    """
    from dcme_w2v import explore_page
    from dcme_w2v.training.progress import reporting

    with reporting(quiet) as reporter:
        explore_page(vectors, output, reporter=reporter, **options)
