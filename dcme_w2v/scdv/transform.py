"""Documents to files of sparse rows, and their labels to a file beside them."""

import itertools
from collections.abc import Iterable
from typing import Any

from dcme_w2v.formats.documents import Document
from dcme_w2v.formats.sparse_io import write_batches

from .model import DocumentModel


def transform_to_files(
    model: DocumentModel,
    documents: Iterable[Document],
    output: str,
    labels: str | None = None,
    threads: int | None = None,
    compress: bool = False,
) -> dict[str, Any]:
    """Write the vectors of documents, and their labels, a line a row.

    Parameters
    ----------
    model : DocumentModel
    documents : iterable of Document
        Read once; rows are in this order.
    output : str
        X.npz, X.svm, or ``-`` for svmlight on standard output.
    labels : str, optional
        File of labels, joined by ``|``.
    threads : int, optional
    compress : bool
        Also compress the values of X.npz.

    Returns
    -------
    dict
        `rows`, `zero_rows` (documents without a vocabulary word), `entries`, and `density`, entries
        / (rows x columns).
    """
    labeled, read = itertools.tee(documents)
    owns = (document.labels for document in labeled)
    batches = (
        (part, list(itertools.islice(owns, part.shape[0])))
        for part in model.transform((document.text for document in read), threads)
    )
    found = write_batches(output, model.columns, batches, labels, compress)
    return {**found, "density": found["entries"] / max(1, found["rows"] * model.columns)}
