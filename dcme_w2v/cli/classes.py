"""`dcme-w2v classes`: write classes of words, clusters of their vectors."""

import click

from dcme_w2v.files.paths import Paths

from .command import command
from .options import arguments, flag, output_option, threads_option


@command(
    "classes",
    example="dcme-w2v classes vectors.bin --classes 500 --output classes.txt\n"
    "dcme-w2v classes vectors.bin --classes 500 --output - | sort -k 2 -n",
)
@arguments("vectors")
@flag("--classes N", "number of classes", low=1, required=True)
@output_option("FILE", "write the classes here; - is stdout")
@flag("--limit N", "first N words only", low=1)
@flag("--seed N", "random seed", default=1, low=0)
@threads_option
def classes(
    vectors: str, classes: int, output: str, limit: int | None, seed: int, threads: int | None
) -> None:
    """Cluster words by k-means of their vectors.

    Writes lines "word class" in the order of VECTORS, as word2vec.c does with -classes. Vectors are
    scaled to unit length, so that words of one class have vectors of similar directions. The
    first word is in class 0. The result does not depend on --threads.
    """
    from dcme_w2v import Vectors, word_classes
    from dcme_w2v.formats.vectors.vectors_io import read_with
    from dcme_w2v.words.classes import save_classes

    paths = Paths().reads("VECTORS", vectors, sidecars=read_with(vectors))
    paths.writes("--output", output).check()
    loaded = Vectors.load(vectors, limit=limit)
    found = word_classes(loaded, classes, seed=seed, threads=threads)
    save_classes(output, loaded.words, found)
    click.echo(f"{len(found):,} words in {int(found.max()) + 1:,} classes", err=True)
