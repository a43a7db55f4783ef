"""`dcme-w2v merge`: merge models that were trained on the parts of a corpus."""

import click

from .command import command
from .options import arguments, output_option


@command(example="dcme-w2v merge part-1 part-2 part-3 --output whole")
@arguments("models...")
@output_option("MODEL", "write the merged vectors or model here")
def merge(models: tuple[str, ...], output: str) -> None:
    """Merge models that were trained on the parts of a corpus.

    MODELS: folders of --output-tables, .npy files of vectors, or classifiers; of the same words (or
    features and classes), dimensions and options. A row of the result is the mean of their rows,
    weighted by the count of its word or feature in each part.
    """
    from dcme_w2v import merge as merged

    click.echo(merged(models, output), err=True)
