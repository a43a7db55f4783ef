"""`dcme-w2v eval likelihood`: how probable text, or analogies, are under a saved model."""

from __future__ import annotations

import json

import click

from dcme_w2v.cli.options import json_option
from dcme_w2v.errors import UsageError
from dcme_w2v.options import default_threads


@click.command()
@click.argument("model")
@click.argument("corpus", nargs=-1)
@click.option("--context", metavar="FILE", help="the context vectors (default: by the manifest)")
@click.option("--window", type=int, metavar="N", help="words on each side (default: as trained)")
@click.option("--read-vocab", metavar="FILE", help="words with counts (default: by the manifest)")
@click.option("--analogies", "questions", metavar="FILE", help="score these questions, too")
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
    """Tell how probable the words of CORPUS are, each given those around it.

    MODEL is the file of vectors that `dcme-w2v train --output-context` wrote. Printed are the
    average log-probability of the exact softmax and the log of the mean probability; for negative
    sampling also with its noise distribution added back.
    """
    from dcme_w2v.words.language_model import LanguageModel

    if not corpus and questions is None:
        raise UsageError("nothing to score; name a corpus, or --analogies FILE")
    if window is not None and window < 1:
        raise UsageError(f"--window {window}: must be at least 1")
    loaded = LanguageModel.load(model, context, read_vocab, window)
    found = loaded.text_likelihood(corpus, default_threads()) if corpus else {}
    found |= loaded.analogy_likelihood(questions) if questions is not None else {}
    lines = [f"{name.replace('_', ' ')}: {value:.6g}" for name, value in found.items()]
    click.echo(json.dumps(found, indent=2) if as_json else "\n".join(lines))
