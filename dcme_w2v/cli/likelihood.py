"""`dcme-w2v eval likelihood`: log-likelihood of text or analogies under a saved model."""

from __future__ import annotations

import json

import click

from dcme_w2v.cli.command import Command
from dcme_w2v.cli.options import json_option
from dcme_w2v.declarations import default_threads
from dcme_w2v.errors import UsageError


@click.command(cls=Command, example="dcme-w2v eval likelihood vectors.npy heldout.txt")
@click.argument("model")
@click.argument("corpus", nargs=-1)
@click.option("--context", metavar="FILE", help="context vectors (default: from the manifest)")
@click.option(
    "--window", type=int, metavar="N", help="context words on each side (default: as trained)"
)
@click.option("--read-vocab", metavar="FILE", help="word counts (default: from the manifest)")
@click.option("--analogies", "questions", metavar="FILE", help="also score these analogy questions")
@json_option
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
    from dcme_w2v.words.language_model import LanguageModel

    if not corpus and questions is None:
        raise UsageError("no text; give a corpus, or --analogies FILE")
    if window is not None and window < 1:
        raise UsageError(f"--window {window}: must be at least 1")
    loaded = LanguageModel.load(model, context, read_vocab, window)
    found = loaded.text_likelihood(corpus, default_threads()) if corpus else {}
    found |= loaded.analogy_likelihood(questions) if questions is not None else {}
    lines = [f"{name.replace('_', ' ')}: {value:.6g}" for name, value in found.items()]
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(lines))
