"""`dcme-w2v scdv search`: the documents nearest to a query, and how good the ranking is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

from dcme_w2v.cli.options import json_option
from dcme_w2v.documents.options import DIRICHLET_PRIOR
from dcme_w2v.errors import UsageError

if TYPE_CHECKING:
    from dcme_w2v.documents.search import Hit


@click.command("search")
@click.argument("model")
@click.argument("index")
@click.argument("query", nargs=-1)
@click.option("-k", default=10, show_default=True, metavar="N", help="documents a query")
@click.option("--queries", metavar="DOCS", help="more queries, one a line, with labels or without")
@click.option("--documents", metavar="DOCS", help="the texts of INDEX, for --lm")
@click.option(
    "--lm", default=0.0, show_default=True, metavar="X", help="share of the language model, 0 to 1"
)
@click.option(
    "--prior",
    default=DIRICHLET_PRIOR,
    show_default=True,
    metavar="X",
    help="words of the whole collection that smooth a document (Dirichlet)",
)
@click.option("--labels", metavar="FILE", help="labels of INDEX, a line a row")
@click.option("--map", "score", is_flag=True, help="print the mean average precision instead")
@click.option(
    "--judgements", metavar="FILE", help="lines 'query document' that belong together, from 1"
)
@json_option
def search(
    model: str,
    index: str,
    query: tuple[str, ...],
    k: int,
    queries: str | None,
    documents: str | None,
    lm: float,
    prior: float,
    labels: str | None,
    score: bool,
    judgements: str | None,
    as_json: bool,
) -> None:
    """Find the documents of INDEX, rows that MODEL has made (X.npz), that are nearest to a QUERY.

    Prints query, rank, document (from 1), score and labels. The score is the cosine; with --lm,
    X times the language model's plus (1 - X) times the cosine. --map scores the ranking: a document
    answers a query by --judgements, or if they share a label.
    """
    from dcme_w2v.documents import search as retrieval
    from dcme_w2v.documents.scdv import DocumentModel
    from dcme_w2v.sparse_io import read_labels, read_npz
    from dcme_w2v.text.documents import read_documents

    rows = read_npz(index)
    asked = _asked(query, queries)
    texts = [text for text, _ in asked]
    names: list[tuple[str, ...]] = [()] * rows.shape[0]
    if labels:
        names = read_labels(labels, rows.shape[0])
    language = None
    if documents is not None:
        language = retrieval.QueryLikelihood((d.text for d in read_documents([documents])), prior)
    finder = retrieval.Finder(DocumentModel.load(model), rows, language, lm)
    if not score:
        _print_answers(list(finder.answers(texts, k)), names, as_json)
        return
    if judgements:
        wanted = iter(retrieval.read_judgements(judgements, len(asked), rows.shape[0]))
    else:
        wanted = retrieval.sharing_labels([own for _, own in asked], names)
    value = finder.mean_average_precision(texts, wanted)
    figures = {"mean_average_precision": value, "queries": len(asked)}
    click.echo(json.dumps(figures) if as_json else f"{value:.4f}")


def _asked(query: Iterable[str], queries: str | None) -> list[tuple[bytes, tuple[str, ...]]]:
    """Return the texts and labels of all queries."""
    from dcme_w2v.text.documents import read_documents

    asked: list[tuple[bytes, tuple[str, ...]]] = [(text.encode(), ()) for text in query]
    if queries:
        asked += [(one.text, one.labels) for one in read_documents([queries])]
    if not asked:
        raise UsageError("there is no query; give some, or --queries")
    return asked


def _print_answers(
    answers: Iterable[Sequence[Hit]], names: Sequence[tuple[str, ...]], as_json: bool
) -> None:
    if as_json:
        shown = [[{"document": h.document + 1, "score": h.score} for h in own] for own in answers]
        click.echo(json.dumps({"answers": shown}))
        return
    for number, own in enumerate(answers, 1):
        for rank, hit in enumerate(own, 1):
            told = "|".join(names[hit.document])
            click.echo(f"{number}\t{rank}\t{hit.document + 1}\t{hit.score:.4f}\t{told}")
