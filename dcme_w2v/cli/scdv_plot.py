"""`dcme-w2v scdv plot`: plot document vectors."""

from __future__ import annotations

import click

from dcme_w2v.cli.command import Command
from dcme_w2v.cli.options import output_option, projection_options
from dcme_w2v.files.paths import Paths


@click.command(
    "plot",
    cls=Command,
    example="dcme-w2v scdv plot rows.npz --labels rows.labels --output rows.png",
)
@click.argument("rows")
@output_option("PNG", "write the picture to this file (.png, .pdf or .svg); - is stdout")
@click.option(
    "--labels", metavar="FILE", help="labels of the rows, one line per row; colors are by label"
)
@projection_options(2000, "maximum number of rows")
def plot(rows: str, output: str, labels: str | None, method: str, limit: int, seed: int) -> None:
    """Plot document vectors in two dimensions.

    ROWS is a file (X.npz) that `scdv transform` wrote. Requires pip install 'dcme-w2v[plot]'.
    """
    from dcme_w2v.formats.sparse_io import read_labels, read_npz
    from dcme_w2v.plots.figure import picture_format
    from dcme_w2v.plots.points import draw, plane

    Paths().reads("ROWS", rows).reads("--labels", labels).writes("--output", output).check()
    picture_format(output)
    loaded = read_npz(rows)
    names = read_labels(labels, loaded.shape[0]) if labels else None
    chosen, points = plane(loaded, method, limit, seed)
    own = ["|".join(names[int(i)]) for i in chosen] if names else None
    draw(output, points, own)
