"""`dcme-w2v scdv topics`: list the topics of a model or of a word."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from dcme_w2v.cli.command import Command
from dcme_w2v.cli.options import json_option, reads_documents
from dcme_w2v.cli.streams import print_json

if TYPE_CHECKING:
    from dcme_w2v.scdv.topics import Topic


@click.command("topics", cls=Command, example="dcme-w2v scdv topics model --words 5")
@click.argument("model")
@click.option(
    "--words", default=10, show_default=True, metavar="N", help="number of words per topic"
)
@click.option("--coherence", metavar="DOCS", help="report coherence on these documents")
@click.option("--word", metavar="WORD", help="only the topics of this word: its senses")
@json_option
@reads_documents("coherence")
def topics(model: str, words: int, coherence: str | None, word: str | None, as_json: bool) -> None:
    """List the topics of a model.

    Prints number, P(topic), coherence and the most specific words: by P(word | topic) times the
    log of how rare the word is. With --word, prints P(topic | word) and the topics of one word.
    Coherence is the sum of ln((D(w, v) + 1) / D(v)) over pairs of the most probable words; D is a
    number of documents (Mimno et al. 2011).
    """
    from dcme_w2v.formats.documents import read_documents
    from dcme_w2v.scdv import topics as found
    from dcme_w2v.scdv.model import DocumentModel

    loaded = DocumentModel.load(model)
    if word is not None:
        senses = found.senses(loaded, word, words)
        rows = [{"probability": p, **dataclasses.asdict(topic)} for p, topic in senses]
        lines = [f"{p:.3f}\t{t.number}\t{_text_of(t)}" for p, t in senses]
        print_json({"word": word, "senses": rows}) if as_json else click.echo("\n".join(lines))
        return
    texts = None if coherence is None else (d.text for d in read_documents([coherence]))
    listed = found.topics(loaded, words, texts)
    scores = [topic.coherence for topic in listed if topic.coherence is not None]
    mean = sum(scores) / len(scores) if scores else None
    if as_json:
        rows = [dataclasses.asdict(topic) for topic in listed]
        print_json({"topics": rows, "coherence": mean})
        return
    for topic in listed:
        score = "" if topic.coherence is None else f"{topic.coherence:.2f}\t"
        click.echo(f"{topic.number}\t{topic.share:.4f}\t{score}{_text_of(topic)}")
    if mean is not None:
        short = sum(len(topic.words) < words for topic in listed)
        note = (
            f"; {short} have fewer than {words} words, which raises their coherence"
            if short
            else ""
        )
        click.echo(f"mean coherence {mean:.2f} over {len(scores)} topics{note}", err=True)


def _text_of(topic: Topic) -> str:
    return " ".join(word for word, _ in topic.words)
