"""The command `search`, which finds passages that answer queries, or near-duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dcme_w2v.errors import UsageError, warn
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.paths import READS
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.search.options import SearchOptions

from .command import command
from .options import (
    arguments,
    collect,
    flag,
    given_options,
    json_option,
    options_of,
    output_option,
    quiet_option,
    reads_documents,
)
from .streams import print_json

if TYPE_CHECKING:
    from dcme_w2v.search.searcher import Search


@command(
    example="dcme-w2v search docs.txt --query 'how to open a file'\n"
    "dcme-w2v search docs/ --output index\n"
    "dcme-w2v search index --query questions.txt --json",
)
@arguments("<docs...")
@flag(
    "--query TEXT|FILE",
    "a query, or a file with one query per line (default: -, standard input)",
    name="queries",
    multiple=True,
)
@flag("-k N", "number of documents to print per query", default=10, low=1)
@flag("--duplicates", "print pairs of nearly identical documents instead of answering queries")
@flag(
    "--threshold X",
    "minimum similarity of document pairs to print, from 0 to 1  [default: 0.55]",
    type=click.FloatRange(0, 1, min_open=True),
)
@flag(
    "--vectors VECTORS",
    "also score documents by cosine similarity, using these word vectors",
    path=READS,
)
@output_option("MODEL", "write the index to this file, which can later replace DOCS",
               required=False)  # fmt: skip
@options_of(SearchOptions)
@options_of(VocabularyOptions, only=["encoding_errors"])
@json_option
@quiet_option
@reads_documents("docs")
def search(
    docs: tuple[Any, ...],
    queries: tuple[str, ...],
    k: int,
    duplicates: bool,
    threshold: float | None,
    vectors: str | None,
    output: str | None,
    encoding_errors: str,
    as_json: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Rank passages of text for each query, or find near-duplicates.

    DOCS: files, folders or - for standard input, which may be compressed, with one document per
    line; columns of tables; or one INDEX that --output wrote. For each document found, prints the
    query, rank, file and line, score, and first characters of the document. Documents are ranked by
    BM25 scores of words and of character n-grams. Character n-grams also find other forms and
    misspellings of words. Without --query, queries are read from standard input, one per line, and
    answered as they arrive.
    """
    if threshold is not None and not duplicates:
        raise UsageError(
            "--threshold has no effect without --duplicates; use both options, or neither"
        )
    if duplicates and queries:
        raise UsageError("--duplicates is not supported with --query; omit --query")
    is_asked = not (duplicates or (output and not queries))
    if not is_asked and "k" in given_options():
        raise UsageError("-k has no effect without queries; omit -k, or add --query")
    if as_json and not (is_asked or duplicates):
        raise UsageError("--json has no effect without queries; omit --json, or add --query")
    if STANDARD in docs and is_asked and (not queries or STANDARD in queries):
        raise UsageError(
            "standard input cannot supply both DOCS and queries; pass the queries with --query"
        )
    options = collect(SearchOptions, values)
    found = _loaded(docs, options, vectors, output, encoding_errors, quiet)
    if output:
        found.save(output)
    if duplicates:
        _print_duplicates(found, threshold, as_json)
    elif is_asked:
        answered = asked = 0
        for texts in _lines(queries or (STANDARD,), encoding_errors):
            answered += _answer(found, texts, asked, k, as_json)
            asked += len(texts)
        if answered < asked:
            warn(
                f"{asked - answered} of {asked} queries have no results, because no document "
                "contains any "
                "of their words"
            )
        if asked and not answered:
            raise click.exceptions.Exit(1)


def _loaded(
    docs: tuple[Any, ...],
    options: SearchOptions,
    vectors: str | None,
    output: str | None,
    encoding_errors: str,
    quiet: bool,
) -> Search:
    """Load a saved index, or build one from the documents."""
    from dcme_w2v.formats.artifact import check_model_target, kind_of_artifact
    from dcme_w2v.formats.documents import at_least_one, read_documents
    from dcme_w2v.search.searcher import KIND, Search

    if output:
        check_model_target(output, KIND)
    if len(docs) == 1 and isinstance(docs[0], str) and kind_of_artifact(docs[0]):
        if vectors or options != SearchOptions():
            raise UsageError(
                f"{docs[0]}: the options of a saved index cannot be changed; omit --vectors and "
                "the ranking options, such as --k1"
            )
        return Search.load(docs[0])
    names: list[str] = []

    def texts() -> Iterator[Any]:
        for document in at_least_one(read_documents(docs, encoding_errors=encoding_errors), docs):
            label = f" [{'|'.join(document.labels)}]" if document.labels else ""
            names.append(document.place + label)
            yield document.text

    found = Search.of(options, vectors).fit(texts(), names)
    if not quiet:
        click.echo(f"{len(found):,} documents", err=True)
    return found


def _lines(queries: tuple[str, ...], encoding_errors: str) -> Iterator[list[Any]]:
    """Yield lists of queries; a list from standard input contains all queries that have arrived."""
    from dcme_w2v.files.opening import LINE_BYTES, CorpusFile, arriving_lines
    from dcme_w2v.formats.documents import read_documents

    for query in queries:
        if query == STANDARD:
            with CorpusFile(STANDARD) as file:
                for lines in arriving_lines(file.read, LINE_BYTES):
                    yield [line.rstrip(b"\r") for line in lines]
        elif _is_file(query):
            found = read_documents([query], form="text", encoding_errors=encoding_errors)
            yield [document.text for document in found]
        else:
            yield [query]


def _is_file(query: str) -> bool:
    try:
        return Path(query).is_file()
    except (OSError, ValueError):  # the query is too long for a file name, or contains NUL
        return False


def _answer(found: Search, texts: list[Any], asked: int, k: int, as_json: bool) -> int:
    """Print the answers to queries; return the number of queries that have an answer."""
    answers = found.search(texts, k)
    for number, (text, hits) in enumerate(zip(texts, answers, strict=True), asked + 1):
        shown = [
            {
                "rank": rank,
                "document": hit.row + 1,
                "name": found.name(hit.row),
                "score": hit.score,
                "text": found.beginning(hit.row),
            }
            for rank, hit in enumerate(hits, 1)
        ]
        if as_json:
            query = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
            print_json({"query": query, "hits": shown})
            continue
        for one in shown:
            line = f"{number}\t{one['rank']}\t{one['name']}\t{one['score']:.4f}\t{one['text']}"
            click.echo(line)
    return sum(map(bool, answers))


def _print_duplicates(found: Search, threshold: float | None, as_json: bool) -> None:
    """Print pairs of similar documents, most similar first."""
    pairs = sorted(found.duplicates(threshold), key=lambda pair: -pair.similarity)
    if as_json:
        rows = [{"document": a + 1, "other": b + 1, "similarity": one} for a, b, one in pairs]
        print_json({"duplicates": rows})
        return
    for row, other, similarity in pairs:
        click.echo(f"{similarity:.4f}\t{found.name(row)}\t{found.name(other)}")
