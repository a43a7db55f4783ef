"""`dcme-w2v scdv search`: rank documents by similarity to queries, and evaluate the ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dcme_w2v.errors import UnknownWordError, UsageError
from dcme_w2v.scdv.options import DIRICHLET_PRIOR

from .command import Command
from .options import json_option, plain_option, reads_documents
from .streams import print_json

if TYPE_CHECKING:
    from dcme_w2v.scdv.model import DocumentModel
    from dcme_w2v.scdv.search import Hit
    from dcme_w2v.sentences.table import SentenceTable


SHOWN = 80  # characters of a text


@click.command(
    "search",
    cls=Command,
    example='dcme-w2v scdv search model index.npz "launch of the shuttle" -k 5',
)
@click.argument("model")
@click.argument("index")
@click.argument("query", nargs=-1)
@click.option(
    "-k", default=10, show_default=True, metavar="N", help="number of documents per query"
)
@click.option(
    "--queries",
    metavar="DOCS",
    help="more queries, one per line, with or without labels; - is stdin",
)
@click.option("--documents", metavar="DOCS", help="the documents of INDEX, for --lm and --show")
@click.option("--show", is_flag=True, help="also print the beginning of the text of each result")
@click.option(
    "--lm", default=0.0, show_default=True, metavar="X", help="weight of the language model, 0 to 1"
)
@click.option(
    "--prior",
    default=DIRICHLET_PRIOR,
    show_default=True,
    metavar="X",
    help="parameter of Dirichlet smoothing, in tokens",
)
@click.option("--labels", metavar="FILE", help="labels of INDEX, one line per row")
@click.option(
    "--map", "score", is_flag=True, help="print the mean average precision of the ranking"
)
@plain_option(
    "--judgments",
    former=["--judgements"],
    metavar="FILE",
    help="relevant pairs, lines 'query document', numbered from 1",
)
@json_option
@reads_documents("documents", "queries")
def search(
    model: str,
    index: str,
    query: tuple[str, ...],
    k: int,
    queries: str | None,
    documents: str | None,
    show: bool,
    lm: float,
    prior: float,
    labels: str | None,
    score: bool,
    judgments: str | None,
    as_json: bool,
) -> None:
    """Rank documents by similarity to queries.

    INDEX is a file of rows (X.npz) that MODEL made: a model of `scdv fit` by `scdv transform`, or
    word vectors or a folder of sentence vectors by `encode --pooling static`. Prints query, rank,
    document (from 1), score, labels and, with --show, the first 80 characters of the document's
    text. The score is the cosine; with --lm X, it is X times the language model's plus (1 - X)
    times the cosine. --map evaluates the ranking: a document is relevant by --judgments, or if it
    shares a label with the query.
    """
    from dcme_w2v.formats.documents import read_documents
    from dcme_w2v.formats.sparse_io import read_labels, read_npz
    from dcme_w2v.scdv import search as retrieval

    rows = read_npz(index)
    asked = _queries(query, queries)
    texts = [text for text, _ in asked]
    names: list[tuple[str, ...]] = [()] * rows.shape[0]
    if labels:
        names = read_labels(labels, rows.shape[0])
    loaded = _loaded(model)
    language, starts = None, []
    if show and documents is None:
        raise UsageError("--show: requires the documents of INDEX; give --documents")
    if documents is not None:
        given = [one.text for one in read_documents([documents])]
        language = retrieval.QueryLikelihood(given, prior, loaded.tokenizer)
        starts = [_beginning(text) for text in given] if show else []
    finder = retrieval.Finder(loaded, rows, language, lm)
    if not score:
        answers = list(finder.answers(texts, k))
        if not any(answers):
            raise UnknownWordError("no query has a word that the model and the documents have")
        _print_results(answers, names, starts, as_json)
        return
    if judgments:
        wanted = iter(retrieval.read_judgments(judgments, len(asked), rows.shape[0]))
    else:
        wanted = retrieval.sharing_labels([own for _, own in asked], names)
    value = finder.mean_average_precision(texts, wanted)
    figures = {"mean_average_precision": value, "queries": len(asked)}
    print_json(figures) if as_json else click.echo(f"{value:.4f}")


def _loaded(model: str) -> DocumentModel | SentenceTable:
    """Return what turns queries into rows: a model of scdv, or pooled word vectors."""
    from dcme_w2v.formats.vectors.static_folder import is_static_folder
    from dcme_w2v.scdv.model import DocumentModel

    if not (Path(model).is_file() or is_static_folder(model)):
        return DocumentModel.load(model)
    from dcme_w2v.sentences.options import EncodeOptions
    from dcme_w2v.sentences.table import SentenceTable, with_manifest

    return SentenceTable(with_manifest(model), EncodeOptions())


def _queries(query: Iterable[str], queries: str | None) -> list[tuple[bytes, tuple[str, ...]]]:
    """Return texts and labels of all queries."""
    from dcme_w2v.formats.documents import read_documents

    try:
        asked: list[tuple[bytes, tuple[str, ...]]] = [(text.encode(), ()) for text in query]
    except UnicodeEncodeError:
        raise UsageError("QUERY: is not UTF-8; convert it, or give --queries FILE") from None
    if queries:
        asked += [(one.text, one.labels) for one in read_documents([queries])]
    if not asked:
        raise UsageError("no query; give one, or --queries FILE")
    return asked


def _beginning(text: bytes) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: 8 * SHOWN].decode("utf-8", "replace").split())
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"


def _print_results(
    answers: Iterable[Sequence[Hit]],
    names: Sequence[tuple[str, ...]],
    starts: Sequence[str],
    as_json: bool,
) -> None:
    if as_json:
        shown: list[list[dict[str, Any]]] = [
            [
                {"document": h.document + 1, "score": h.score}
                | ({"text": starts[h.document]} if starts else {})
                for h in own
            ]
            for own in answers
        ]
        print_json({"answers": shown})
        return
    for number, own in enumerate(answers, 1):
        for rank, hit in enumerate(own, 1):
            labels = "|".join(names[hit.document])
            line = f"{number}\t{rank}\t{hit.document + 1}\t{hit.score:.4f}\t{labels}"
            click.echo(line + (f"\t{starts[hit.document]}" if starts else ""))
