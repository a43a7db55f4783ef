"""`dcme-w2v plot`: pictures of learning curves and words."""

from typing import Any

from .command import command
from .options import arguments, flag, output_option


@command(
    example="dcme-w2v plot train.log other.log --output curves.svg\n"
    "dcme-w2v plot vectors.npy --words 'king queen man woman' --output words.png",
)
@arguments("files...")
@output_option("PNG", "write the picture to this file (.png, .pdf or .svg); - is stdout")
@flag(
    "--field NAME",
    "figure of the logs to draw, such as lr; may be given several times (default: losses and "
    "log-probabilities)",
    name="fields",
    multiple=True,
)
@flag("--words WORDS", "words to draw, separated by spaces")
@flag("--limit N", "draw this many of the most frequent words (default: 200)", low=3)
@flag("--method tsne|pca", "projection method of words (default: tsne)")
@flag("--seed N", "random seed (default: 1)", low=0, high=2**32 - 1)
def plot(files: tuple[str, ...], output: str, **values: Any) -> None:
    """Plot learning curves, or words on a plane.

    FILES: one or several logs of --log-json, or word vectors of any format. Requires pip install
    'dcme-w2v[plot]'.
    """
    from dcme_w2v import plot as draw

    draw(files, output, **values)
