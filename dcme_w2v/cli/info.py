"""`dcme-w2v info`: what a file or folder holds, and the command that made it."""

import click

from .command import command
from .options import arguments, json_option
from .streams import print_json


@command(example="dcme-w2v info vectors.bin")
@arguments("file")
@json_option
def info(file: str, as_json: bool) -> None:
    """Print what a file or folder holds, and the command that made it.

    FILE: word vectors of any format, a folder of a model or of checkpoints, a manifest, a log of
    --log-json, a vocabulary, a table of phrases, sparse rows (.npz, .svm), arrays (.npz, .npy).
    The command is recorded for vectors with a manifest, for models and for checkpoints.
    """
    from dcme_w2v import describe
    from dcme_w2v.explore.info import as_text

    facts = describe(file)
    print_json(facts, indent=2) if as_json else click.echo(as_text(facts))
