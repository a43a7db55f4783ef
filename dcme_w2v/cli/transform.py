"""The command ``transform``, which converts documents to numeric features with a model."""

from collections.abc import Iterable, Iterator
from typing import Any

from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import TEXT

from .command import command
from .options import arguments, flag, json_option, output_option, reads_documents, threads_option
from .streams import print_figures


@command(
    example="dcme-w2v transform model test.tsv --output test.npz\n"
    "dcme-w2v transform clusters docs.txt --output classes.svm",
)
@arguments("<model <docs...")
@output_option("X", "output file: X.npz, X.svm, or - for svmlight on standard output")
@flag(
    "--labels FILE",
    "write the labels of the documents to this file, one line per document",
    path=TEXT,
)
@threads_option
@json_option
@reads_documents("docs")
def transform(
    model: str,
    docs: tuple[str, ...],
    output: str,
    labels: str | None,
    threads: int | None,
    as_json: bool,
) -> None:
    """Convert documents to numeric features; row i of the output is document i.

    MODEL is a file from `scdv fit` (document vectors), `latent fit` (probabilities of the latent
    classes) or `fuse fit` (one column per level and class). In svmlight output, labels are numbered
    from 1 in order of appearance, and 0 means that a document has no label.
    """
    from dcme_w2v.formats.sparse_io import suffix_of, write_batches

    suffix_of(output)
    columns, batches = _batches(model, docs, threads)
    figures: dict[str, Any] = {**write_batches(output, columns, batches, labels)}
    density = figures["entries"] / max(1, figures["rows"] * columns)
    figures |= {"columns": columns, "density": density}
    line = "{rows:,} rows of {columns:,} columns, {zero_rows:,} of zeros, {entries:,} entries"
    print_figures(figures, f"{line} (density {{density:.4f}})", as_json)


def _batches(model: str, docs: tuple[str, ...], threads: int | None) -> tuple[int, Iterable[Any]]:
    """Return the number of columns, and an iterator over batches of rows with their labels."""
    from dcme_w2v.classify.predict import pieces
    from dcme_w2v.formats.artifact import kind_of_artifact, load_artifact
    from dcme_w2v.formats.documents import read_documents

    loaded = load_artifact(model)
    if hasattr(loaded, "transform_labeled"):
        return loaded.columns, loaded.transform_labeled(read_documents(docs), threads)
    if not hasattr(loaded, "transform"):
        kind = kind_of_artifact(model)
        raise UsageError(
            f"{model} is a {kind!r} file, which cannot transform documents; use a model from "
            "scdv fit, latent fit or fuse fit"
        )
    found: Iterator[Any] = pieces(loaded, docs, None)
    rows = ((loaded.transform(matrix, threads), labels) for matrix, labels, _ in found)
    return len(loaded.column_names()), rows
