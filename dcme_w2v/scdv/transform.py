"""Documents to files of sparse rows, and their labels to a file beside them."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from dcme_w2v.files.atomic import optional_write
from dcme_w2v.formats.documents import Document
from dcme_w2v.formats.sparse_io import writing_rows
from dcme_w2v.scdv.model import DocumentModel


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
    labelled, read = itertools.tee(documents)
    owns = (document.labels for document in labelled)
    rows = zero_rows = entries = 0
    with writing_rows(output, model.columns, compress) as writer, optional_write(labels) as lines:
        for part in model.transform((document.text for document in read), threads):
            own = list(itertools.islice(owns, part.shape[0]))
            writer.add(part, own)
            if lines:
                lines.writelines("|".join(names).encode() + b"\n" for names in own)
            rows += part.shape[0]
            zero_rows += int((part.indptr[1:] == part.indptr[:-1]).sum())
            entries += part.nnz
    density = entries / (rows * model.columns) if rows else 0.0
    return {"rows": rows, "zero_rows": zero_rows, "entries": entries, "density": density}
