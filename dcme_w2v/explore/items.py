"""The contents of a page about one file: names, vectors, groups.

Word vectors are shown by their words; rows of documents (.npz, .svm) by the start of the text
beside their labels, or by their number, and their columns are reduced to the first principal ones.
"""

import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import svds

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.opening import read_lines
from dcme_w2v.formats.sparse_io import is_vectors, read_vectors
from dcme_w2v.formats.vectors.manifest import read_manifest
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.words.neighbors import inverse_lengths
from dcme_w2v.words.vectors import Vectors

MIN_ROWS = 3
_COLUMNS = 100  # of rows of documents
_TITLE = 80  # characters


@dataclass(frozen=True)
class Items:
    """Words or documents with vectors.

    Attributes
    ----------
    title : str
        Name of the file.
    about : str
        What the file is, in words.
    names : list of str
        Distinct.
    matrix : ndarray of float32, shape (n, d)
        Of unit length; rows of zeros stay.
    groups : list of str
        Group of each item; empty without labels.
    of_words : bool
        Whether the items are words, the most frequent first.
    """

    title: str
    about: str
    names: list[str]
    matrix: F32
    groups: list[str]
    of_words: bool


def read_items(path: str, labels: str | None, column: int, limit: int, seed: int) -> Items:
    """Read the first `limit` rows of a file.

    Parameters
    ----------
    path : str
    labels : str, optional
        A file with a line for each row, with columns separated by tabs.
    column : int
        The column of the groups, from 1; the others are the titles of documents.
    limit : int
    seed : int
    """
    of_words = not is_vectors(path)
    if of_words:
        vectors = Vectors.load(path)
        total, found, names = len(vectors), [], list(vectors.words[:limit])
        matrix = np.array(vectors.vectors[:limit])
        about = _made(vectors.manifest or read_manifest(path))
    else:
        rows, own = read_vectors(path, None)
        total, found = rows.shape[0], ["|".join(one) for one in own[:limit]]
        matrix = _reduced(rows[:limit].astype(np.float32), seed)
        names, about = [str(number) for number in range(1, len(found) + 1)], ""
    if len(names) < MIN_ROWS:
        raise UsageError(f"{path}: {len(names)} rows; a map needs {MIN_ROWS} at least")
    groups = found if any(found) else []
    if labels is not None:
        lines = _columns_of(labels, total, column)[:limit]
        groups = [line[column - 1] for line in lines]
        if not of_words:
            names = _titles(" ".join(line[: column - 1] + line[column:]) for line in lines)
    matrix *= inverse_lengths(matrix)[:, None]
    shown = f"{len(names):,}" if len(names) == total else f"the first {len(names):,} of {total:,}"
    about = f"{shown} {'words' if of_words else 'documents'} of {matrix.shape[1]} dimensions{about}"
    return Items(path, about, names, matrix, groups, of_words)


def _made(manifest: Mapping[str, Any]) -> str:
    """Return how vectors were trained; empty if it is not known."""
    options, tokens = manifest.get("options", {}), manifest.get("tokens", {})
    if not isinstance(options, dict) or not {"model", "objective", "epochs"} <= options.keys():
        return ""
    text = f", by {options['model']} with {options['objective']}, {options['epochs']} epochs"
    count = tokens.get("corpus") if isinstance(tokens, dict) else None
    return f"{text} of {count:,} tokens" if isinstance(count, int) else text


def _titles(texts: Iterable[str]) -> list[str]:
    """Return the start of each text; equal or empty ones get their number."""
    titles: dict[str, None] = {}
    for number, text in enumerate(texts, 1):
        title = textwrap.shorten(text, _TITLE, placeholder=" ...") or str(number)
        titles[title if title not in titles else f"{title} ({number})"] = None
    return list(titles)


def _reduced(rows: object, seed: int) -> F32:
    """Return sparse rows in the first principal directions, with little loss of cosines."""
    dense_width = min(_COLUMNS, min(rows.shape) - 1)  # type: ignore[attr-defined]
    if rows.shape[1] <= _COLUMNS or dense_width < 1:  # type: ignore[attr-defined]
        return np.asarray(rows.toarray(), dtype=np.float32)  # type: ignore[attr-defined]
    u, s, _ = svds(rows, dense_width, random_state=seed)
    return np.ascontiguousarray((u * s)[:, ::-1], dtype=np.float32)


def _columns_of(path: str, rows: int, column: int) -> list[list[str]]:
    """Return the columns of each line of a file of labels."""
    found: list[list[str]] = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            found.append(line.decode().rstrip("\r\n").split("\t"))
        except UnicodeDecodeError:
            raise FormatError(f"{path}:{number}: is not UTF-8; convert it first") from None
        if len(found[-1]) < column:
            raise FormatError(
                f"{path}:{number}: has {len(found[-1])} columns, not {column}; lower --color"
            )
    if len(found) != rows:
        raise FormatError(f"{path}: {len(found)} lines for {rows} rows; give a line for each row")
    return found
