"""Counts of all faults of a file of word vectors, with the first position of each kind.

Files are read as by `dcme_w2v.formats.vectors.vectors_io`, but reading continues after a fault if
rows can still be separated.
"""

import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v._core.vectors import check_words, find_duplicates
from dcme_w2v.errors import FormatError
from dcme_w2v.formats.vectors.detect import kind_of_file
from dcme_w2v.formats.vectors.fasttext import load_words, open_model
from dcme_w2v.formats.vectors.safetensors import open_safetensors
from dcme_w2v.formats.vectors.static_folder import is_static_folder, load_static_folder
from dcme_w2v.formats.vectors.vectors_io import (
    blocks_of,
    check_pair,
    load_pair,
    vocabulary_path,
)
from dcme_w2v.formats.vectors.vectors_reader import (
    DUPLICATE,
    FAULT_NAMES,
    LENGTH,
    RowReader,
    no_faults,
    open_rows,
    words_of,
)
from dcme_w2v.formats.word_list import Words
from dcme_w2v.numeric.arrays import F32, I64
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.platform import PathLike

from .neighbors import squared_lengths

UNREADABLE = "unreadable"
ROW_COUNT = "wrong number of rows"
TRAILING = "trailing junk"
FINITE = FAULT_NAMES.index("NaN or infinite number")


@dataclass(frozen=True)
class Fault:
    """One kind of fault: its count and first position."""

    kind: str
    count: int
    place: str
    detail: str = ""


@dataclass
class Report:
    """The content and faults of a file of word vectors."""

    file: str
    format: str | None = None
    rows: int = 0
    dimension: int = 0
    faults: list[Fault] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON output."""
        return {**asdict(self), "ok": not self.faults}


def check_vectors(path: PathLike) -> Report:
    r"""Read a file of word vectors and report all its faults.

    Parameters
    ----------
    path : path
        Text or binary, also compressed, npy with its .vocab, safetensors, a model of fastText, or
        a folder of static embeddings; ``-`` is standard input.

    Returns
    -------
    Report
        With no faults where `Vectors.load` would read the file, `save_vectors` could have written
        it, and cosines can be computed. A file that cannot be read as vectors at all has the one
        fault "unreadable".

    Examples
    --------
    >>> from pathlib import Path
    >>> import dcme_w2v as dw
    >>> _ = Path("v.txt").write_text("2 2\ntea 1 0\ntea 2 nan\n")
    >>> [(fault.kind, fault.count) for fault in dw.check_vectors("v.txt").faults]
    [('NaN or infinite number', 1), ('duplicate word', 1)]
    """
    report = Report(os.fspath(path))
    try:
        static = is_static_folder(path)
        kind = None if static else kind_of_file(path)
        if static:
            report.format = "static embeddings"
            report.rows, report.dimension = load_static_folder(path).matrix.shape
        elif kind == "npy":
            _check_npy(report, Path(path))
        elif kind == "safetensors":
            _check_safetensors(report, Path(path))
        elif kind == "fasttext":
            report.format, model = "fasttext", open_model(path)
            report.rows, report.dimension = load_words(model, path, None)[1].shape
        else:
            with open_rows(path) as reader:
                _check_rows(report, reader)
    except FormatError as error:
        report.faults.append(Fault(UNREADABLE, 1, report.file, error.message))
    return report


class _Tally:
    """Sums of the faults of the parts of a file."""

    def __init__(self) -> None:
        self.counts = [0] * len(FAULT_NAMES)
        self.places = [""] * len(FAULT_NAMES)

    def add(self, kind: int, count: int, place: str) -> None:
        """Add faults of a kind, the first of which is at `place`."""
        self.places[kind] = self.places[kind] or place
        self.counts[kind] += count

    def faults(self, details: dict[int, str]) -> list[Fault]:
        """Return the kinds that occurred."""
        kinds = [kind for kind, count in enumerate(self.counts) if count]
        return [
            Fault(FAULT_NAMES[kind], self.counts[kind], self.places[kind], details.get(kind, ""))
            for kind in kinds
        ]


def _check_rows(report: Report, reader: RowReader) -> None:
    report.format = "binary" if reader.binary else "text"
    report.dimension = reader.dim
    tally, beyond = _Tally(), _Tally()
    parts = []
    end = 0  # end of the rows that the header declares
    for part in reader.parts(keep=False):
        announced = reader.promised is None or part.first < reader.promised
        for kind in np.flatnonzero(part.faults[:, 0]).tolist():
            place = reader.position_in(part, kind)
            (tally if announced else beyond).add(kind, int(part.faults[kind, 0]), place)
        if announced:
            parts.append(part)
            end = part.offset + len(part.block)
    report.rows = reader.rows
    details = _add_words(tally, words_of(parts), no_faults(), reader.row_place, "row")
    report.faults += tally.faults(details)
    _check_end(report, reader, whole=not any(beyond.counts), end=end)


def _check_end(report: Report, reader: RowReader, *, whole: bool, end: int) -> None:
    """Compare the rows with the header; `whole`: all data after the declared rows are rows."""
    promised = reader.promised
    if promised is None:
        return
    if reader.rows > promised and not (whole and reader.left == 0):
        report.rows = promised
        place = reader.place(promised, end)
        report.faults.append(Fault(TRAILING, 1, place, f"row {promised} is followed by other data"))
    elif reader.rows >= promised and reader.left:
        place = reader.place(reader.rows, end)
        report.faults.append(Fault(TRAILING, 1, place, f"{reader.left} bytes"))
    elif reader.rows != promised:
        detail = f"{promised} in the header, {reader.rows} in the file"
        if reader.left:
            detail += f" and {reader.left} bytes of another"
        report.faults.append(Fault(ROW_COUNT, 1, f"{reader.path}:1", detail))


def _check_npy(report: Report, path: Path) -> None:
    report.format = "npy"
    pair = load_pair(path)
    matrix, words, faults = pair.matrix, pair.words, pair.faults
    report.rows, report.dimension = matrix.shape
    tally = _Tally()
    for first, block in blocks_of(matrix):
        _add_numbers(tally, path, first, block)
    vocabulary = vocabulary_path(path)
    details = _add_words(tally, words, faults, lambda row: f"{vocabulary}:{row + 1}", "line")
    report.faults += tally.faults(details)
    if len(words) != len(matrix):
        detail = f"{len(words)} words for {len(matrix)} rows"
        report.faults.append(Fault(ROW_COUNT, 1, str(vocabulary), detail))
    if not report.faults:
        check_pair(path, pair)
    _check_npy_end(report, path, matrix)


def _check_safetensors(report: Report, path: Path) -> None:
    report.format = "safetensors"
    tensors, tally = open_safetensors(path), _Tally()
    report.rows, report.dimension = tensors.vectors.shape
    with np.errstate(over="ignore", invalid="ignore"):
        for rows in blocks_of_rows(report.rows):
            _add_numbers(tally, path, rows.start, tensors.rows(rows))
    faults = no_faults()
    check_words(tensors.words.text, tensors.words.offsets, faults)
    details = _add_words(tally, tensors.words, faults, lambda row: f"{path}: row {row + 1}", "row")
    report.faults += tally.faults(details)


def _add_numbers(tally: _Tally, path: Path, first: int, block: F32) -> None:
    good = np.isfinite(block).all(axis=1)
    long = good & ~np.isfinite(squared_lengths(block))
    for kind, faulty in ((FINITE, ~good), (LENGTH, long)):
        if faulty.any():
            place = f"{path}: row {first + int(np.argmax(faulty)) + 1}"
            tally.add(kind, int(faulty.sum()), place)


def _add_words(
    tally: _Tally,
    words: Words,
    faults: I64,
    place: Callable[[int], str],
    unit: str,
) -> dict[int, str]:
    """Add faults of words, and duplicates; `unit` is the noun for rows."""
    earlier = find_duplicates(words.text, words.offsets, faults)
    details = {}
    for kind in np.flatnonzero(faults[:, 0]).tolist():
        count, row, _ = faults[kind].tolist()
        tally.add(kind, count, place(row))
        if kind == DUPLICATE:
            shown = ascii(words.raw(row).decode("utf-8", "backslashreplace"))
            details[kind] = f"{shown} is in {unit} {earlier + 1} too"
    return details


def _check_npy_end(report: Report, path: Path, matrix: F32) -> None:
    assert isinstance(matrix, np.memmap)
    left = path.stat().st_size - matrix.offset - matrix.nbytes
    if left:
        place = f"{path}: byte {matrix.offset + matrix.nbytes}"
        report.faults.append(Fault(TRAILING, 1, place, f"{left} bytes"))
