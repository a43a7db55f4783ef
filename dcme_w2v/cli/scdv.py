"""`dcme-w2v scdv`: document vectors, their topics and ranking by queries."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from dcme_w2v.files.paths import READS
from dcme_w2v.options import TokenizerOptions, VocabularyOptions
from dcme_w2v.scdv.options import DIRICHLET_PRIOR, ScdvOptions

from .command import Group, command
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


@command(
    "search",
    example='dcme-w2v scdv search model index.npz "launch of the shuttle" -k 5',
)
@arguments("<model <index [query]...")
@flag("-k N", "number of documents per query", default=10)
@flag(
    "--queries DOCS", "more queries, one per line, with or without labels; - is stdin", path=READS
)
@flag("--documents DOCS", "the documents of INDEX, for --lm and --show", path=READS)
@flag("--show", "also print the beginning of the text of each result")
@flag("--lm X", "weight of the language model, 0 to 1", default=0.0)
@flag("--prior X", "parameter of Dirichlet smoothing, in tokens", default=DIRICHLET_PRIOR)
@flag("--labels FILE", "labels of INDEX, one line per row", path=READS)
@flag("--map", "print the mean average precision of the ranking", name="score")
@flag(
    "--judgments FILE",
    "relevant pairs, lines 'query document', numbered from 1",
    path=READS,
)
@json_option
@reads_documents("documents", "queries")
def search(model: str, index: str, query: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Rank documents by similarity to queries.

    INDEX is a file of rows (X.npz) that MODEL made: a model of `scdv fit` by `transform`, or
    word vectors or a folder of sentence vectors by `encode --pooling static`. Prints query, rank,
    document (from 1), score, labels and, with --show, the first 80 characters of the document's
    text. The score is the cosine; with --lm X, it is X times the language model's plus (1 - X)
    times the cosine. --map evaluates the ranking: a document is relevant by --judgments, or if it
    shares a label with the query.
    """
    from dcme_w2v.scdv.search import search as found

    answers = found(model, index, query, **values)
    if isinstance(answers, dict):
        value = answers["mean_average_precision"]
        print_json(answers) if as_json else click.echo(f"{value:.4f}")
    elif as_json:
        own = [[{**hit._asdict(), "document": hit.document + 1} for hit in one] for one in answers]
        print_json({"answers": own})
    else:
        for number, hits in enumerate(answers, 1):
            for rank, hit in enumerate(hits, 1):
                line = f"{number}\t{rank}\t{hit.document + 1}\t{hit.score:.4f}\t"
                text = "" if hit.text is None else f"\t{hit.text}"
                click.echo(f"{line}{'|'.join(hit.labels)}{text}")


encoding_option = options_of(VocabularyOptions, only=["encoding_errors"])
FITTED = (
    "{documents} documents ({documents_without_words} without a vocabulary word), "
    "{known_tokens} of {tokens} tokens in the vocabulary, {words} words, {columns} columns"
)


@click.group(cls=Group)
def scdv() -> None:
    """Sparse composite document vectors (SCDV), topics and retrieval."""


@scdv.command("fit", example="dcme-w2v scdv fit train.tsv --vectors vectors.bin --output model")
@arguments("<docs...")
@flag("--vectors VECTORS", "word vectors, in any format", path=READS, group="Input", required=True)
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
    """Fit a model of document vectors to training documents.

    DOCS: files, folders or - for standard input, also compressed, with one document a line:
    "label TAB text", "__label__x text" or text alone. Labels are ignored. Text is
    split into tokens as the text that VECTORS was trained on, unless --tokenize is given; the model
    keeps the rule.
    """
    from dcme_w2v.formats.documents import read_documents
    from dcme_w2v.scdv.fit import fit_documents
    from dcme_w2v.words.vectors import for_text

    options, tokenize = collect(ScdvOptions, kwargs), chosen_tokenizer(kwargs)
    found = fit_documents(
        (document.text for document in read_documents(docs, **kwargs)),
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


@scdv.command("topics", example="dcme-w2v scdv topics model --words 5")
@arguments("<model")
@flag("--words N", "number of words per topic", default=10)
@flag("--coherence DOCS", "report coherence on these documents", path=READS)
@flag("--word WORD", "only the topics of this word: its senses")
@json_option
@reads_documents("coherence")
def topics(model: str, words: int, coherence: str | None, word: str | None, as_json: bool) -> None:
    """List the topics of a model.

    Prints number, P(topic), coherence and the most specific words: those of a high P(topic | word)
    that are neither rare nor common. With --word, prints P(topic | word) and topics of one word.
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


scdv.add_command(search)
