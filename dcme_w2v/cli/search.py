"""`dcme-w2v scdv search` and `scdv plot`: what rows of document vectors are good for."""

from __future__ import annotations

import json
from collections.abc import Iterable

import click
import numpy as np
from numpy.typing import NDArray

from dcme_w2v.documents import plot as pictures
from dcme_w2v.documents import search as retrieval
from dcme_w2v.documents.rows import load_labels, load_rows
from dcme_w2v.documents.scdv import DocumentModel
from dcme_w2v.errors import UsageError
from dcme_w2v.files import check_writable
from dcme_w2v.text.documents import read_documents


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
    default=retrieval.PRIOR,
    show_default=True,
    metavar="X",
    help="words of the whole collection that smooth a document (Dirichlet)",
)
@click.option("--labels", metavar="FILE", help="labels of INDEX, a line a row")
@click.option("--map", "score", is_flag=True, help="print the mean average precision instead")
@click.option(
    "--judgements", metavar="FILE", help="lines 'query document' that belong together, from 1"
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
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
    rows = load_rows(index)
    asked: list[tuple[bytes, tuple[str, ...]]] = [(text.encode(), ()) for text in query]
    if queries:
        asked += [(one.text, one.labels) for one in read_documents([queries])]
    if not asked:
        raise UsageError("there is no query; give some, or --queries")
    names: list[tuple[str, ...]] = [()] * rows.shape[0]
    if labels:
        names = load_labels(labels, rows.shape[0])
    language = None
    if documents is not None:
        language = retrieval.LanguageModel((d.text for d in read_documents([documents])), prior)
    loaded = DocumentModel.load(model)
    finder = retrieval.Finder(loaded, rows, language, lm)
    if score:
        wanted: Iterable[NDArray[np.bool_]] = (
            retrieval.read_judgements(judgements, len(asked), rows.shape[0])
            if judgements
            else retrieval.sharing_labels([own for _, own in asked], names)
        )
        value = finder.mean_average_precision([text for text, _ in asked], wanted)
        figures = {"mean_average_precision": value, "queries": len(asked)}
        click.echo(json.dumps(figures) if as_json else f"{value:.4f}")
        return
    answers = list(finder.answers([text for text, _ in asked], k))
    if as_json:
        shown = [[{"document": h.document + 1, "score": h.score} for h in own] for own in answers]
        click.echo(json.dumps({"answers": shown}))
        return
    for number, own in enumerate(answers, 1):
        for rank, hit in enumerate(own, 1):
            told = "|".join(names[hit.document])
            click.echo(f"{number}\t{rank}\t{hit.document + 1}\t{hit.score:.4f}\t{told}")


@click.command("plot")
@click.argument("rows")
@click.option("--output", required=True, metavar="PNG", help="the picture; - is stdout")
@click.option("--labels", metavar="FILE", help="labels of the rows, a line each: a colour a label")
@click.option(
    "--method", default="tsne", show_default=True, metavar="tsne|pca", help="how to flatten"
)
@click.option("--limit", default=2000, show_default=True, metavar="N", help="rows at most")
@click.option("--seed", default=1, show_default=True, metavar="N", help="of the rows and t-SNE")
def plot(rows: str, output: str, labels: str | None, method: str, limit: int, seed: int) -> None:
    """Draw ROWS (X.npz) in two dimensions; needs pip install 'dcme-w2v[plot]'."""
    check_writable(output)
    loaded = load_rows(rows)
    names = load_labels(labels, loaded.shape[0]) if labels else None
    chosen, points = pictures.plane(loaded, method, limit, seed)
    own = ["|".join(names[int(i)]) for i in chosen] if names else None
    pictures.draw(output, points, own)
