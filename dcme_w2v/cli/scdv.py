"""`dcme-w2v scdv`: document vectors, their topics and plots; `search` has its own module."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from dcme_w2v.files.paths import Paths
from dcme_w2v.formats.documents import Document
from dcme_w2v.options import TokenizerOptions, VocabularyOptions
from dcme_w2v.scdv.options import ScdvOptions, ScdvTuneOptions

from .group import Group
from .options import (
    check_transform,
    chosen_tokenizer,
    collect,
    docs_argument,
    dry_run_option,
    given_options,
    json_option,
    option_of,
    options_of,
    output_option,
    plain_option,
    projection_options,
    quiet_option,
    reads_documents,
    show_plan,
    threads_option,
)
from .search import search
from .streams import print_figures, print_json

if TYPE_CHECKING:
    from dcme_w2v.scdv.topics import Topic
    from dcme_w2v.words.vectors import Vectors

encoding_option = option_of(VocabularyOptions, "encoding_errors")
strict_option = option_of(VocabularyOptions, "strict")
FITTED = (
    "{documents} documents ({documents_without_words} without a vocabulary word), "
    "{known_tokens} of {tokens} tokens in the vocabulary, {words} words, {columns} columns"
)


@click.group(cls=Group)
def scdv() -> None:
    """Sparse composite document vectors (SCDV), topics and retrieval."""


@scdv.command("fit", example="dcme-w2v scdv fit train.tsv --vectors vectors.bin --output model")
@docs_argument
@plain_option(
    "--vectors", group="Input", required=True, metavar="VECTORS", help="word vectors, in any format"
)
@output_option("MODEL", "write the model to this folder")
@threads_option
@encoding_option
@strict_option
@json_option
@dry_run_option
@quiet_option
@options_of(ScdvOptions, ScdvTuneOptions, TokenizerOptions)
@reads_documents("docs")
def fit(
    docs: tuple[str, ...],
    vectors: str,
    output: str,
    threads: int | None,
    encoding_errors: str,
    strict: bool,
    as_json: bool,
    dry_run: bool,
    quiet: bool,
    **kwargs: Any,
) -> None:
    """Fit a model of document vectors to training documents.

    DOCS: files, folders or - for standard input, also compressed, with one document a line:
    "label TAB text", "__label__x text" or text alone. Labels are used by --tune only. Text is
    split into tokens as the text that VECTORS was trained on, unless --tokenize is given; the model
    keeps the rule.
    """
    from dcme_w2v import Vectors
    from dcme_w2v.files.disk import require_disk
    from dcme_w2v.files.fallback import Result, write_with_fallback
    from dcme_w2v.formats.documents import read_documents
    from dcme_w2v.formats.model_folder import replaces
    from dcme_w2v.formats.vectors.sidecars import read_with
    from dcme_w2v.scdv.fit import fit_documents
    from dcme_w2v.scdv.model import KIND
    from dcme_w2v.scdv.tune import tune_documents
    from dcme_w2v.training.progress import reporting

    options, seconds = collect(ScdvOptions, kwargs), collect(ScdvTuneOptions, kwargs).tune
    paths = Paths().reads("DOCS", *docs).reads("--vectors", vectors, sidecars=read_with(vectors))
    paths.model("--output", output, replaces(KIND)).check()
    documents: Iterable[Document] = read_documents(
        docs, encoding_errors=encoding_errors, strict=strict
    )
    room = partial(require_disk, output)
    loaded, more = Vectors.load(vectors).tokenized_by(chosen_tokenizer(kwargs)), {}
    if dry_run:
        show_plan(_plan(documents, loaded, options, output), as_json)
        return
    with reporting(quiet, None) as reporter:
        if seconds is not None:
            documents = list(documents)
            options, tuned, note = tune_documents(
                documents, loaded, options, given_options(), seconds, threads, reporter
            )
            more = {"tune": tuned.record}
            reporter.message(tuned.line + note)
        texts = (document.text for document in documents)
        model = fit_documents(texts, loaded, options, threads=threads, reporter=reporter, room=room)
        if likelihoods := model.facts.get("log_likelihoods"):
            reporter.message(
                f"{len(likelihoods) - 1} iterations: log-likelihood {likelihoods[-1]:.5f}"
            )
    model.facts.update(more)
    write_with_fallback([Result(output, "model", model.save)])
    figures = {**model.facts, "columns": model.columns, "threshold": model.threshold}
    print_figures(figures, FITTED, as_json)


def _plan(
    documents: Iterable[Document], vectors: Vectors, options: ScdvOptions, output: str
) -> dict[str, Any]:
    """Return the resources that a fit requires, and whether they are there."""
    from dcme_w2v.files.disk import disk_plan
    from dcme_w2v.scdv.fit import resource_estimate, shortage_of

    plan = resource_estimate((one.text for one in documents), vectors, options)
    disk = disk_plan(output, plan["output_bytes"])
    return {**plan, "disk": disk, "refused": shortage_of(plan)}


@scdv.command("transform", example="dcme-w2v scdv transform model test.tsv --output test.npz")
@click.argument("model")
@docs_argument
@output_option("X", "X.npz, X.svm, or - for svmlight")
@click.option(
    "--labels", metavar="FILE", help="write the documents' labels to this file, one line per row"
)
@click.option("--compress", is_flag=True, help="also compress the values: smaller, slower")
@threads_option
@encoding_option
@strict_option
@json_option
@reads_documents("docs")
def transform(
    model: str,
    docs: tuple[str, ...],
    output: str,
    labels: str | None,
    compress: bool,
    threads: int | None,
    encoding_errors: str,
    strict: bool,
    as_json: bool,
) -> None:
    """Convert documents to sparse vectors.

    Writes one row for each document, in order, in one pass. Rows have unit length before small
    entries are set to zero. In svmlight, labels are numbered from 1 in order of appearance; 0 is no
    label.
    """
    from dcme_w2v.formats.documents import read_documents
    from dcme_w2v.scdv.model import DocumentModel
    from dcme_w2v.scdv.transform import transform_to_files

    check_transform(model, docs, output, as_json, labels)
    documents = read_documents(docs, encoding_errors=encoding_errors, strict=strict)
    loaded = DocumentModel.load(model)
    figures = transform_to_files(loaded, documents, output, labels, threads, compress)
    line = (
        "{rows} rows, {zero_rows} without a vocabulary word, {entries} entries "
        "(density {density:.4f})"
    )
    print_figures(figures, line, as_json)


@scdv.command("topics", example="dcme-w2v scdv topics model --words 5")
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


scdv.add_command(search)


@scdv.command(
    "plot",
    example="dcme-w2v scdv plot rows.npz --labels rows.labels --output rows.png",
)
@click.argument("rows")
@output_option("PNG", "write the picture to this file (.png, .pdf or .svg); - is stdout")
@click.option(
    "--labels", metavar="FILE", help="labels of the rows, one line per row; colors are by label"
)
@projection_options(2000, "maximum number of rows")
def plot(rows: str, output: str, labels: str | None, method: str, limit: int, seed: int) -> None:
    """Plot document vectors in two dimensions.

    ROWS is a file (X.npz) that `scdv transform` wrote. Requires the packages
    matplotlib and openTSNE.
    """
    from dcme_w2v.formats.sparse_io import read_labels, read_npz
    from dcme_w2v.plots.figure import picture_format
    from dcme_w2v.plots.points import draw, plane

    Paths().reads("ROWS", rows).reads("--labels", labels).writes("--output", output).check()
    picture_format(output)
    loaded = read_npz(rows)
    names = read_labels(labels, loaded.shape[0]) if labels else None
    chosen, points = plane(loaded, method, limit, seed)
    own = ["|".join(names[int(i)]) for i in chosen] if names else None
    draw(output, points, own)
