"""`dcme-w2v convert`: convert word vectors between formats."""

from __future__ import annotations

from typing import Any

import click

from dcme_w2v.cli.command import Command
from dcme_w2v.cli.options import collect, option_of, options_of
from dcme_w2v.options import OutputOptions, PostprocessOptions
from dcme_w2v.paths import Paths


@click.command(cls=Command, example="dcme-w2v convert vectors.npy vectors.bin")
@click.argument("source", metavar="IN")
@click.argument("target", metavar="OUT")
@option_of(OutputOptions, "format")
@options_of(PostprocessOptions)
def convert(source: str, target: str, **values: Any) -> None:
    """Convert word vectors between text, binary and npy.

    The format of IN is detected from its content. IN may be compressed (gzip, bzip2, xz, zstd),
    have no header (GloVe), or no newlines after binary vectors. - is standard input or output. The
    words of X.npy are in X.vocab beside it.
    """
    from dcme_w2v import Vectors
    from dcme_w2v.words.postprocess import postprocessed
    from dcme_w2v.words.sidecars import read_with, written_with

    chosen = OutputOptions(format=values.pop("format")).format
    paths = Paths().reads("IN", source, sidecars=read_with(source))
    paths.writes("OUT", target, written_with(target, chosen)).check()
    vectors = Vectors.load(source)
    method = collect(PostprocessOptions, values).postprocess
    if method != "none":
        changed = postprocessed(vectors.vectors, method)
        vectors = Vectors(vectors.words, changed, vectors.counts)
    vectors.save(target, chosen)
    click.echo(f"{len(vectors)} vectors of {vectors.dim} written to {target}", err=True)
