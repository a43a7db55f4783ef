"""The command `compare`, which finds words that two texts use differently."""

import json

import click

from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import READS

from .command import command
from .options import arguments, flag, json_option

_LISTS = ("before", "after")


@command(
    example="dcme-w2v compare old.safetensors new.safetensors -k 20\n"
    "dcme-w2v compare old-1.bin old-2.bin --with new-1.bin new-2.bin"
)
@arguments("<vectors...")
@flag(
    "--with VECTORS...",
    "vector files trained on the second text, one per random seed",
    name="others",
    multiple=True,
    path=READS,
)
@flag("-k N", "number of words to print", name="topn", default=20, low=1)
@flag(
    "--min-count N", "omit words that occur fewer than N times in either text", default=100, low=1
)
@json_option
def compare(
    vectors: tuple[str, ...], others: tuple[str, ...], topn: int, min_count: int, as_json: bool
) -> None:
    """Print the words that two texts use most differently, based on vectors trained on each text.

    Each line contains, separated by tabs, a word, its change (1 - cosine of the aligned vectors),
    its noise (the difference between two seeds of one text; empty with one file per text), and its
    neighbors in the first text and in the second text. The change of a word is compared with the
    changes of words that have similar counts. With several files per text, only words that differ
    more between the texts than between any two files of one text are printed.
    """
    import dcme_w2v as dw

    if not others:
        if len(vectors) != 2:
            raise UsageError(
                f"two vector files are required, not {len(vectors)}; to compare more files, put "
                "the files of the second text after --with"
            )
        vectors, others = vectors[:1], vectors[1:]
    found = dw.compare([*vectors], [*others], topn=topn, min_count=min_count)
    if as_json:
        for one in found:
            lists = {name: [near._asdict() for near in getattr(one, name)] for name in _LISTS}
            click.echo(json.dumps({**one._asdict(), **lists}))
        return
    for one in found:
        noise = "" if one.noise is None else f"{one.noise:.4f}"
        near = (" ".join(word for word, _ in given) for given in (one.before, one.after))
        click.echo("\t".join([one.word, f"{one.change:.4f}", noise, *near]))
    if not found:
        click.echo(
            "no word differs more between the two texts than between seeds of one text", err=True
        )
