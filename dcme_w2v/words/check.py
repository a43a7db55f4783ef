"""Find the invalid rows in a word-vector file, in order to count or skip them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v._core.codec import find_duplicates
from dcme_w2v.errors import FormatError
from dcme_w2v.formats.artifact import kind_of_artifact, load_artifact
from dcme_w2v.formats.vectors.vectors_io import CHECKPOINT, KIND, joined
from dcme_w2v.formats.vectors.vectors_reader import (
    DUPLICATE,
    FAULT_NAMES,
    LENGTH,
    RowReader,
    kind_of_file,
    open_rows,
)
from dcme_w2v.formats.vocabulary import Words, no_faults
from dcme_w2v.platform import PathLike, path_name

from .neighbors import squared_lengths
from .vectors import Vectors


@dataclass(frozen=True)
class Fault:
    """A kind of fault, with the number of affected rows and the position of the first one."""

    kind: str
    count: int
    place: str
    detail: str = ""


@dataclass
class Report:
    """The size of a word-vector file, and the faults in its rows."""

    file: str
    format: str | None = None
    rows: int = 0
    dimension: int = 0
    faults: list[Fault] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as a dict for JSON output."""
        return {**asdict(self), "ok": not self.faults}


def check(path: PathLike) -> Report:
    r"""Count the invalid rows of each kind in a word-vector file, or test whether a model loads.

    Parameters
    ----------
    path : path
        A file or folder that `dw.load` can read.

    Returns
    -------
    Report
        Its list of `faults` is empty if `dw.load` can read the file and the cosines of its vectors
        can be computed. If the file cannot be read at all, the only fault is "unreadable". For a
        model, the report counts no rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> import dcme_w2v as dw
    >>> _ = Path("v.txt").write_text("2 2\ntea 1 0\ntea 2 nan\n")
    >>> [(fault.kind, fault.count) for fault in dw.check("v.txt").faults]
    [('NaN or infinite number', 1)]
    """
    report, kind = Report(path_name(path)), kind_of_artifact(path)
    try:
        if kind not in (None, KIND, CHECKPOINT):
            report.format = f"model: {kind}"
            load_artifact(path)
            return report
        report.format = "folder" if Path(path).is_dir() else kind_of_file(path)
        if report.format is None:
            with open_rows(path) as reader:
                _count_faults(report, reader)
        else:
            vectors = Vectors.load(path).vectors
            report.rows, report.dimension = vectors.shape
            faulty = np.flatnonzero(~np.isfinite(squared_lengths(vectors)))
            if len(faulty):
                place = f"{report.file}: row {faulty[0] + 1}"
                report.faults.append(Fault(FAULT_NAMES[LENGTH], len(faulty), place))
    except FormatError as error:
        report.faults.append(Fault("unreadable", 1, report.file, error.message))
    return report


def _count_faults(report: Report, reader: RowReader) -> None:
    report.format, report.dimension = "binary" if reader.binary else "text", reader.dim
    total, places, parts = no_faults()[:, 0], [""] * len(FAULT_NAMES), []
    for part in reader.parts(keep=False):
        for kind in np.flatnonzero(part.faults[:, 0]).tolist():
            places[kind] = places[kind] or reader.position_in(part, kind)
        total += part.faults[:, 0]
        parts.append(part)
    report.rows, words, faults = reader.rows, Words.concatenated(parts), no_faults()
    find_duplicates(words.text, words.offsets, faults)
    total += faults[:, 0]
    places[DUPLICATE] = reader.row_place(int(faults[DUPLICATE, 1]))
    report.faults = [
        Fault(FAULT_NAMES[kind], int(total[kind]), places[kind])
        for kind in np.flatnonzero(total).tolist()
    ]
    promised = reader.promised
    if promised is not None and reader.rows != promised:
        detail = f"{promised} in the header, {reader.rows} in the file"
        report.faults.append(Fault("wrong number of rows", 1, f"{reader.path}:1", detail))
    elif reader.left:
        report.faults.append(Fault("trailing junk", 1, reader.path, f"{reader.left} bytes"))


def load_without_faults(path: PathLike) -> tuple[Vectors, Counter[str]]:
    """Read the valid rows of a file; also return, per kind of fault, the number of skipped rows.

    Raises
    ------
    FormatError
        No valid row is left, or the file does not contain word vectors.
    """
    faults: Counter[str] = Counter()
    if kind_of_file(path) is None:
        with open_rows(path) as reader:
            parts = list(reader.parts(keep=True, skip=True))
        for part in parts:
            faults.update(dict(zip(FAULT_NAMES, part.faults[:, 0].tolist(), strict=True)))
        words = Words.concatenated(parts)
        matrix = joined([part.matrix for part in parts if part.matrix is not None], reader.dim)
    else:
        loaded = Vectors.load(path)
        words, matrix = loaded.words, loaded.vectors
    good = np.flatnonzero(np.isfinite(squared_lengths(matrix)))
    faults[FAULT_NAMES[LENGTH]] += len(matrix) - len(good)
    kept: dict[str, int] = {}
    for row in good.tolist():
        kept.setdefault(words[row], row)
    faults[FAULT_NAMES[DUPLICATE]] += len(good) - len(kept)
    if not kept:
        raise FormatError(f"{path}: all rows are invalid; run dcme-w2v check {path} for details")
    return Vectors(Words.from_words(kept), matrix[list(kept.values())]), +faults
