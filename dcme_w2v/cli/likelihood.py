"""`dcme-w2v eval likelihood`: log-likelihood of text or analogies under a saved model."""

from __future__ import annotations

import click

from dcme_w2v.cli.command import Command
from dcme_w2v.cli.options import (
    context_option,
    json_option,
    read_vocab_option,
    reads_documents,
)
from dcme_w2v.cli.streams import print_json


@click.command(cls=Command, example="dcme-w2v eval likelihood vectors.npy heldout.txt")
@click.argument("model")
@click.argument("corpus", nargs=-1)
@context_option
@click.option(
    "--window", type=int, metavar="N", help="context words on each side (default: as trained)"
)
@read_vocab_option
@click.option("--analogies", "questions", metavar="FILE", help="also score these analogy questions")
@json_option
@reads_documents("corpus", labels=False)
def likelihood(
    model: str,
    corpus: tuple[str, ...],
    context: str | None,
    window: int | None,
    read_vocab: str | None,
    questions: str | None,
    as_json: bool,
) -> None:
    """Report the log-likelihood of a text under a model.

    MODEL is the file of word vectors of a run with --output-context. Each token is predicted from
    its context by the exact softmax: the mean log-probability and the log of the mean probability
    are printed, for negative sampling also with the noise distribution added back.
    """
    from dcme_w2v import eval_likelihood
    from dcme_w2v.formats.sentences import CorpusPaths

    found = eval_likelihood(
        model, CorpusPaths(corpus) if corpus else None, context=context, window=window,
        read_vocab=read_vocab, analogies=questions,
    )  # fmt: skip
    lines = [f"{name.replace('_', ' ')}: {value:.6g}" for name, value in found.items()]
    print_json(found, indent=2) if as_json else click.echo("\n".join(lines))
