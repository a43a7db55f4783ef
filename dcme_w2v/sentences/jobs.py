"""Implement the command ``encode``, which writes sentence vectors for the lines of text files."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.atomic import STANDARD, atomic_write, is_stream, suffixes_of
from dcme_w2v.files.opening import LINE_BYTES
from dcme_w2v.files.paths import READS, WRITES, as_paths, guard
from dcme_w2v.formats.artifact import npy_header, read_npy
from dcme_w2v.formats.corpus import Block, Corpus
from dcme_w2v.formats.sparse_io import writing_rows
from dcme_w2v.formats.texts import Text, Tokenized, bytes_of, valid
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.numeric.parallel import one_blas_thread
from dcme_w2v.platform import PathLike
from dcme_w2v.text.cache import IdCache
from dcme_w2v.text.tokenizer import TokenizeLike
from dcme_w2v.training.progress import ProgressLike, reporting_to
from dcme_w2v.words.vectors import Vectors, for_text

from .options import EncodeOptions
from .pooling import Components
from .table import SentenceTable


def encode(
    vectors: PathLike | Vectors,
    texts: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    pooling: str = "static",
    dim: int | None = None,
    unit: bool = False,
    tokenize: TokenizeLike = None,
    encoding_errors: str = "strict",
    threads: int | None = None,
    progress: ProgressLike = False,
) -> F32 | None:
    r"""Write a sentence vector for each line of a text, using bounded memory.

    Parameters
    ----------
    vectors : path or Vectors
        Word vectors. Without word counts, vectors are assumed to be in descending order of word
        frequency.
    texts : path or sequence of paths
        Files, folders, ``-`` or URLs, which may be compressed; each line is a sentence.
    output : path
        Output file: X.npy (float32), X.npz (sparse rows) or X.tsv (numbers separated by tabs).
        ``-`` writes the numbers of X.tsv to standard output.
    pooling, dim, unit, tokenize
        See `dcme_w2v.SentenceEncoder`.
    encoding_errors : {"strict", "replace", "skip"}
        How to treat tokens that are not valid UTF-8: raise an error, replace bytes by U+FFFD, or
        skip the token. In this function, replacing and skipping have the same effect, because such
        tokens are not in the vocabulary.
    threads : int, optional
    progress : bool or callable
        As in `train`.

    Returns
    -------
    ndarray of float32, or None
        The rows of X.npy, or None for other outputs. A sentence in which no word has a vector
        becomes a row of zeros.

    Raises
    ------
    UsageError
        `output` does not have a supported suffix, or conflicts with an input path.
    CorpusError
        A text is not valid UTF-8.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> from pathlib import Path
    >>> dw.Vectors(["tea", "car"], [[2, 0], [0, 2]], counts=[5, 2]).save("v.safetensors")
    >>> _ = Path("sentences.txt").write_text("tea\ncar tea\n")
    >>> dw.encode("v.safetensors", ["sentences.txt"], "sentences.npy").shape
    (2, 2)
    """
    options, given, output = EncodeOptions(pooling, dim, unit), as_paths(texts), os.fspath(output)
    guard((READS, "VECTORS", vectors), (READS, "TEXTS", given), (WRITES, "--output", output))
    kind = _kind_of(output)
    # Open the texts before the vectors, so that an error in TEXTS precedes any warning.
    corpus = Corpus(given, block_bytes=1 << 20)
    table = SentenceTable(for_text(vectors, tokenize), options)
    columns = int(table.rows.shape[1])
    blocks = (_checked(block, corpus.paths, encoding_errors) for block in corpus)
    parts = table.encode(_whole_lines(blocks, ", ".join(corpus.paths[:3])), threads)
    if options.pooling == "usif":
        parts = _without_components(parts, columns)
    rows = zeros = 0
    with _writing(output, kind, columns) as write:
        for part in map(table.scaled, parts):
            write(part)
            rows += len(part)
            zeros += int((~part.any(axis=1)).sum())
    more = f", {zeros:,} without any word that has a vector" if zeros else ""
    with reporting_to(progress) as reporter:
        reporter.message(f"{rows:,} sentences{more}, {columns} columns")
    return read_npy(output) if kind == ".npy" else None


def _kind_of(output: str) -> str:
    """Return the output format for a file suffix; raise an error if the suffix is unknown."""
    if output == STANDARD:
        return ".tsv"
    suffix, compression = suffixes_of(output)
    if suffix not in (".npy", ".npz", ".tsv"):
        raise UsageError(
            f"{output} has no known suffix; use a name ending in .npy, .npz or .tsv, or - for "
            "standard output"
        )
    if suffix == ".npy" and is_stream(output):
        raise UsageError(
            f"{output}: an .npy file cannot be written to a stream; choose a file, or use - for "
            "tab-separated numbers"
        )
    if suffix != ".tsv" and compression:
        raise UsageError(
            f"{output}: {suffix} files cannot be written compressed; use a name that ends in "
            f"{suffix} or .tsv.gz"
        )
    return suffix


def _whole_lines(blocks: Iterable[Text], name: str) -> Iterator[Text]:
    """Join blocks that contain parts of the same long line."""
    held = b""
    for block in blocks:
        held += bytes_of(block)
        if held.endswith(b"\n"):
            yield Tokenized(held) if isinstance(block, Tokenized) else held
            held = b""
        elif len(held) > LINE_BYTES:
            raise CorpusError(f"{name}: a line is longer than {LINE_BYTES:,} bytes; split the line")


def _checked(block: Block, paths: Sequence[str], encoding_errors: str) -> Text:
    """Return the lines of a block; raise an error if they contain NUL or are not UTF-8."""
    text = bytes(block.text)
    if block.is_last and (text.endswith(b"\n\n") or text == b"\n"):
        text = text[:-1]  # remove the extra line end that the reader added
    place = f"{paths[block.file]}: byte "
    text = valid(text, encoding_errors, lambda at: f"{place}{block.offset + at}")
    return Tokenized(text) if block.is_tokenized else text


def _without_components(parts: Iterable[F32], columns: int) -> Iterator[F32]:
    """Yield sentence vectors without their common components, using a temporary file."""
    products, spool, lengths = np.zeros((columns, columns)), IdCache("the sentence vectors"), []
    with contextlib.closing(spool):
        for part in parts:
            with one_blas_thread():
                products += part.T.astype(np.float64) @ part
            lengths.append(part.size)
            spool.write(spool.length, np.ascontiguousarray(part).reshape(-1).view(np.uint32))
        components, first = Components.of_products(products), 0
        for length in lengths:
            stored = spool.read(first, length).view(np.float32)
            yield components.removed_from(stored.reshape(-1, columns))
            first += length


@contextlib.contextmanager
def _writing(output: str, kind: str, columns: int) -> Iterator[Callable[[F32], object]]:
    """Open the output for atomic writing, and yield a function that writes rows."""
    if kind == ".npz":
        with writing_rows(output, columns) as writer:
            yield lambda rows: writer.add(csr_matrix(rows), [()] * len(rows))
        return
    with atomic_write(output) as file:
        if kind == ".tsv":
            yield lambda rows: file.writelines(
                b"\t".join(b"%.7g" % number for number in row) + b"\n" for row in rows.tolist()
            )
            return
        count = 0
        # Write a provisional header, which is replaced when the number of rows is known.
        file.write(npy_header(np.dtype("<f4"), (0, columns)))

        def write(rows: F32) -> None:
            nonlocal count
            count += len(rows)
            file.write(rows.astype("<f4", copy=False).tobytes())

        yield write
        file.seek(0)
        file.write(npy_header(np.dtype("<f4"), (count, columns)))
