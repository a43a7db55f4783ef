"""`dcme-w2v scdv plot`: a picture of rows of document vectors."""

from __future__ import annotations

import click

from dcme_w2v.paths import Paths


@click.command("plot")
@click.argument("rows")
@click.option("--output", required=True, metavar="PNG", help="the picture; - is stdout")
@click.option("--labels", metavar="FILE", help="labels of the rows, a line each: a colour a label")
@click.option(
    "--method", default="tsne", show_default=True, metavar="tsne|pca", help="how to flatten"
)
@click.option("--limit", default=2000, show_default=True, metavar="N", help="rows at most")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), default=1, show_default=True, metavar="N",
    help="of the rows and t-SNE",
)  # fmt: skip
def plot(rows: str, output: str, labels: str | None, method: str, limit: int, seed: int) -> None:
    """Draw ROWS (X.npz) in two dimensions; needs pip install 'dcme-w2v[plot]'."""
    from dcme_w2v.documents import plot as pictures
    from dcme_w2v.sparse_io import read_labels, read_npz

    Paths().reads("ROWS", rows).reads("--labels", labels).writes("--output", output).check()
    loaded = read_npz(rows)
    names = read_labels(labels, loaded.shape[0]) if labels else None
    chosen, points = pictures.plane(loaded, method, limit, seed)
    own = ["|".join(names[int(i)]) for i in chosen] if names else None
    pictures.draw(output, points, own)
