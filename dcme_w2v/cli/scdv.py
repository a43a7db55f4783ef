"""The commands of `dcme-w2v scdv`: document vectors and topics."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from dcme_w2v.files.paths import READS
from dcme_w2v.options import TokenizerOptions, VocabularyOptions
from dcme_w2v.scdv.options import ScdvOptions

from .command import Group
from .options import (
    arguments,
    chosen_tokenizer,
    collect,
    dry_run_option,
    flag,
    json_option,
    options_of,
    output_option,
    quiet_option,
    reads_documents,
    show_plan,
    threads_option,
)
from .streams import print_figures, print_json

if TYPE_CHECKING:
    from dcme_w2v.scdv.topics import Topic


encoding_option = options_of(VocabularyOptions, only=["encoding_errors"])
FITTED = (
    "{documents} documents ({documents_without_words} without a vocabulary word), "
    "{known_tokens} of {tokens} tokens in the vocabulary, {words} words, {columns} columns"
)


@click.group(cls=Group)
def scdv() -> None:
    """Train sparse composite document vectors (SCDV), and list their topics."""


@scdv.command("fit", example="dcme-w2v scdv fit train.tsv --vectors vectors.bin --output model")
@arguments("<docs...")
@flag(
    "--vectors VECTORS",
    "file of word vectors, in any supported format",
    path=READS,
    group="Input",
    required=True,
)
@output_option("MODEL", "write the model to this file")
@threads_option
@encoding_option
@json_option
@dry_run_option
@quiet_option
@options_of(ScdvOptions, TokenizerOptions)
@reads_documents("docs")
def fit(
    docs: tuple[str, ...],
    vectors: str,
    output: str,
    threads: int | None,
    as_json: bool,
    dry_run: bool,
    quiet: bool,
    **kwargs: Any,
) -> None:
    """Fit a document-vector model to training documents.

    DOCS: files, folders or - for standard input; the input may be compressed. Each line is a
    document: "label TAB text", "__label__x text" or text alone. Labels are ignored. Text is split
    into tokens in the same way as the training text of VECTORS, unless --tokenize is given. The
    model records how text is split.
    """
    from dcme_w2v.formats.documents import at_least_one, read_documents
    from dcme_w2v.scdv.fit import fit_documents
    from dcme_w2v.words.vectors import for_text

    options, tokenize = collect(ScdvOptions, kwargs), chosen_tokenizer(kwargs)
    found = fit_documents(
        (document.text for document in at_least_one(read_documents(docs, **kwargs), docs)),
        for_text(vectors, tokenize),
        options,
        threads=threads,
        progress=not quiet and "stderr",
        output=output,
        dry_run=dry_run,
    )
    if dry_run:
        show_plan(found, as_json)
    else:
        print_figures(found.figures, FITTED, as_json)


@scdv.command("topics", example="dcme-w2v scdv topics model -k 5")
@arguments("<model")
@flag("-k N", "number of words to print per topic", name="words", default=10, low=1)
@flag("--coherence DOCS", "also report topic coherence, measured on these documents", path=READS)
@flag("--word WORD", "print only the topics of this word, which represent its senses")
@json_option
@reads_documents("coherence")
def topics(model: str, words: int, coherence: str | None, word: str | None, as_json: bool) -> None:
    """List the topics of a document-vector model.

    Prints the number, P(topic), coherence and the most specific words of each topic. Specific words
    have a high P(topic | word) and are neither rare nor common. With --word, prints the topics of
    one word and their P(topic | word). Coherence is the sum of ln((D(w, v) + 1) / D(v)) over pairs
    of the most probable words, where D counts documents that contain the words (Mimno et al. 2011).
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
            f"; {short} have fewer than {words} words, which increases their coherence"
            if short
            else ""
        )
        click.echo(f"mean coherence {mean:.2f} over {len(scores)} topics{note}", err=True)


def _text_of(topic: Topic) -> str:
    return " ".join(word for word, _ in topic.words)
