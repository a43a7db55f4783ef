"""Approximate search for the nearest words, by a graph of neighbors (HNSW) of usearch.

It is for many queries on a million words and more; for fewer words the exact search of
`dcme_w2v.numeric.nearest` is fast enough. An index is one file: `MAGIC`, a line of JSON that
identifies the vectors, and the bytes of usearch.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.declarations import default_threads
from dcme_w2v.errors import FormatError, import_optional
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.numeric.nearest import Found, nearest_rows
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.platform import PathLike

from .vectors import Vectors

MAGIC = b"dcme-w2v index 1\n"
ADDED = 8192  # rows at a time
SAMPLED, NEAREST = 200, 10  # of the recall: words, and neighbors of each
SEARCHED = 128  # candidates of a query, at least: more are slower, with a higher recall
_HASHED = 4096  # rows of the digest of large tables


@dataclass(frozen=True)
class WordIndex:
    """An approximate index of the rows of word vectors.

    Attributes
    ----------
    graph : usearch.index.Index
    vectors : Vectors
        The vectors that are searched; cosines are computed from them exactly.
    recall : float
        Share of the 10 exact neighbors that it finds, over a sample of words.
    """

    graph: Any
    vectors: Vectors
    recall: float

    def search(self, queries: F32, left_out: Sequence[Sequence[int]], k: int) -> list[Found]:
        """Return rows and cosines of the nearest to each query; see `nearest_rows`."""
        if not len(queries):
            return []
        graph, vectors = self.graph, self.vectors
        wanted = min(k + max(map(len, left_out)), len(vectors))
        graph.expansion_search = max(SEARCHED, 2 * wanted)
        matches = graph.search(np.ascontiguousarray(queries), wanted, threads=default_threads())
        keys = matches.keys.reshape(len(queries), -1).astype(np.int64)
        counts = np.atleast_1d(getattr(matches, "counts", len(keys[0])))
        found, inverse = [], vectors.inverse_lengths()
        for query, near, count, excluded in zip(queries, keys, counts, left_out, strict=True):
            rows = np.setdiff1d(near[:count], np.asarray(excluded, dtype=np.int64))
            cosines = (vectors.vectors[rows] @ query) * inverse[rows]
            order = np.lexsort((rows, -cosines))[:k]
            found.append((rows[order], cosines[order].astype(np.float32)))
        return found


def build_index(
    path: PathLike,
    vectors: Vectors,
    advance: Callable[[int], None] = lambda rows: None,
) -> WordIndex:
    """Build an index, measure its recall, and write it. The graph differs from run to run.

    Parameters
    ----------
    path : str or path
    vectors : Vectors
    advance : callable, optional
        Gets the number of rows so far.

    Raises
    ------
    DcmeError
        usearch is not installed.
    """
    usearch, threads = _usearch(), default_threads()
    inverse = vectors.inverse_lengths()
    graph = usearch.Index(ndim=vectors.dim, metric="ip", dtype="f32", expansion_search=SEARCHED)
    for rows in blocks_of_rows(len(vectors), ADDED):
        units = np.ascontiguousarray(vectors.vectors[rows] * inverse[rows, None], dtype=np.float32)
        graph.add(np.arange(rows.start, rows.stop), units, threads=threads, copy=True)
        advance(rows.stop)
    index = WordIndex(graph, vectors, _recall(WordIndex(graph, vectors, 0.0)))
    payload = bytes(graph.save())
    described = {
        **_identity(vectors),
        "recall": round(index.recall, 4),
        "bytes": len(payload),
        "digest": hashlib.blake2b(payload, digest_size=16).hexdigest(),
    }
    with atomic_write(path) as file:
        file.write(MAGIC + json.dumps(described).encode() + b"\n")
        file.write(payload)
    return index


def load_index(path: PathLike, vectors: Vectors) -> WordIndex:
    """Read an index of these vectors.

    Raises
    ------
    FormatError
        It is not an index, is damaged, or of other vectors.
    DcmeError
        usearch is not installed.
    """
    usearch, name = _usearch(), os.fspath(path)
    try:
        with Path(path).open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise FormatError(f"{name}: is not an index; give another FILE")
            line, payload = file.readline(1 << 16), file.read()
    except OSError as error:
        raise FormatError(f"{name}: cannot be read: {error.strerror}") from None
    damaged = FormatError(f"{name}: is damaged; delete it, and it is built again")
    try:
        described = json.loads(line)
        digest, recall = described["digest"], float(described["recall"])
    except (ValueError, TypeError, KeyError):
        raise damaged from None
    if digest != hashlib.blake2b(payload, digest_size=16).hexdigest():
        raise damaged
    if any(described.get(key) != value for key, value in _identity(vectors).items()):
        raise FormatError(f"{name}: is the index of other vectors; give another FILE, or delete it")
    graph = usearch.Index.restore(payload)
    if graph is None or len(graph) != len(vectors) or graph.ndim != vectors.dim:
        raise damaged
    graph.expansion_search = SEARCHED
    return WordIndex(graph, vectors, recall)


def _recall(index: WordIndex) -> float:
    """Return the share of the nearest words of a sample that the graph finds."""
    vectors = index.vectors
    chosen = np.unique(np.linspace(0, len(vectors) - 1, SAMPLED).astype(np.int64))
    inverse = vectors.inverse_lengths()
    queries = np.asarray(vectors.vectors[chosen] * inverse[chosen, None], dtype=np.float32)
    left_out = [[int(row)] for row in chosen]
    exact = nearest_rows(vectors.vectors, inverse, queries, left_out, NEAREST)
    found = index.search(queries, left_out, NEAREST)
    pairs = [(one[0], other[0]) for one, other in zip(exact, found, strict=True)]
    hits = sum(len(np.intersect1d(one, other)) for one, other in pairs)
    return hits / max(sum(len(one) for one, _ in pairs), 1)


def _identity(vectors: Vectors) -> dict[str, Any]:
    """Return what identifies vectors: numbers of words and dimensions, a digest."""
    chosen = np.unique(np.linspace(0, max(len(vectors) - 1, 0), _HASHED).astype(np.int64))
    rows = np.ascontiguousarray(vectors.vectors[chosen])
    digest = hashlib.blake2b(rows.tobytes(), digest_size=16)
    digest.update(np.ascontiguousarray(vectors.words.text).tobytes())
    return {"words": len(vectors), "dim": vectors.dim, "vectors": digest.hexdigest()}


def _usearch() -> Any:
    return import_optional("usearch.index", " for --index")
