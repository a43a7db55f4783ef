"""Detect the format of word vectors, and read word2vec files block by block."""

import codecs
import contextlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dcme_w2v._core.codec import FAULT_KINDS, check_words, cut_rows, find_duplicates, read_rows
from dcme_w2v.errors import CorpusError, FormatError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.opening import CorpusFile, fill, sniff, stored_size
from dcme_w2v.numeric.arrays import F32, I64, U8
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.platform import PathLike

from ..vocabulary import Words, no_faults

# Maps each unsupported vector format to the end of an error message: the format and a remedy.
_FOREIGN = {
    "fasttext": "a fastText model, which can be read only from an uncompressed file; use its "
    ".bin file, or word vectors that convert wrote from it",
    "pickle": "a Python pickle (gensim's save() writes them), which is not read because pickles "
    "can run code; export the vectors in Python: "
    "gensim.models.KeyedVectors.load(FILE).save_word2vec_format(VECTORS, binary=True)",
    "npy": "a numpy array without words; add them in Python: Vectors(WORDS, numpy.load(FILE))",
    "HDF5": "an HDF5 file, not word vectors; write one word and its numbers per line",
    "Parquet": "a Parquet file, not word vectors; write one word and its numbers per line",
    "safetensors": "safetensors data, which can be read only from an uncompressed file; use that "
    "file",
    "SQLite": "an SQLite database, not word vectors; export its vectors as text",
}


def kind_of_file(path: PathLike) -> str | None:
    """Return "safetensors" or "fasttext", or None for word2vec formats and for streams."""
    if is_stream(path):
        return None
    with Path(path).open("rb") as file:
        head = file.read(16)
    kind = sniff(head)
    return kind if kind in ("fasttext", "safetensors") else None


BLOCK = 8 << 20  # block size in bytes; a row must fit in one block
MAX_ROWS = 1 << 31
MAX_DIM = 1 << 18

# Fault descriptions, in the same order as the fault codes in csrc/vectors/vectors.h.
FAULT_NAMES = (
    "wrong dimension",
    "not a number",
    "NaN or infinite number",
    "empty word",
    "invalid UTF-8 in a word",
    "separator in a word",
    "NUL byte in a word",
    "duplicate word",
    "bad count",
    "length not finite",
)
DIMENSION = FAULT_NAMES.index("wrong dimension")
DUPLICATE = FAULT_NAMES.index("duplicate word")
SEPARATOR = FAULT_NAMES.index("separator in a word")
COUNT = FAULT_NAMES.index("bad count")
LENGTH = FAULT_NAMES.index("length not finite")
assert len(FAULT_NAMES) == FAULT_KINDS

_HEADER = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t\r]*")
_SIGNED_HEADER = re.compile(rb"[ \t]*[+-]?[0-9]{1,18}[ \t]+-[0-9]{1,18}[ \t\r]*")
_LOOKED_AT = 100  # number of rows from which the vector dimension is detected if there is no header
_DECIMAL = re.compile(rb"[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")


def word_faults(words: Words) -> I64:
    """Return the fault table, in the form of `no_faults`, for a list of words."""
    faults = no_faults()
    check_words(words.text, words.offsets, faults)
    find_duplicates(words.text, words.offsets, faults)
    return faults


@dataclass
class Part:
    """A block of rows from a file, with the faults in these rows."""

    block: U8
    first: int  # index of the block's first row in the file
    offset: int  # byte offset of the block's first row in the file
    count: int
    matrix: F32 | None = None
    text: U8 = field(init=False)
    offsets: I64 = field(init=False)
    faults: I64 = field(default_factory=no_faults)


class RowReader:
    """The rows of one text or binary vector file, which are read block by block.

    Attributes
    ----------
    path : str
    binary : bool
    dim : int
    promised : int or None
        Number of rows in the header; None without a header.
    rows : int
        Number of rows; known after `parts`.
    left : int
        Bytes after the last complete row; known after `parts`.
    """

    def __init__(
        self, path: str, file: CorpusFile, size: int | None, binary: bool | None = None
    ) -> None:
        self.path = path
        self._file = file
        self._size = size  # file size in bytes, or None if it is unknown
        self._final = False
        self.rows = self.left = 0
        self.promised: int | None = None
        block = self._refill(np.empty(0, dtype=np.uint8))
        if not len(block):
            raise FormatError(f"{path}: the file is empty; write it again")
        if (kind := sniff(block[:64].tobytes())) in _FOREIGN:
            raise FormatError(f"{path} is {_FOREIGN[kind]}")
        self._start = self._read_header(block)
        self._block = block[self._start :]
        if binary is None:
            binary = self.promised is not None and self._looks_binary()
        elif binary and self.promised is None:
            raise FormatError(
                f"{path}:1: the file has no header (rows and dimensions), so it is not a binary "
                "vector file; read the file as text"
            )
        self.binary = binary

    def _read_header(self, block: U8) -> int:
        """Read the row count and the dimension, and return the offset of the first row."""
        start = len(codecs.BOM_UTF8) if block[:3].tobytes() == codecs.BOM_UTF8 else 0
        line, newline, _ = block.tobytes().partition(b"\n")
        if not newline and not self._final:
            raise FormatError(
                f"{self.path}:1: the first {BLOCK} bytes contain no line break; use a word-vector "
                "file"
            )
        header = _HEADER.fullmatch(line[start:])
        if header is None and _SIGNED_HEADER.fullmatch(line[start:]):
            raise FormatError(
                f"{self.path}:1: the header {line[start:].decode().strip()} (rows and dimensions) "
                "is not valid; write the file again"
            )
        self._check_layout(block.tobytes().split(b"\n", _LOOKED_AT), header is not None)
        if header is None:
            # Use the most frequent row length, because spaces within a word make a row look longer.
            rows = [line, *block.tobytes().split(b"\n", _LOOKED_AT)[1:-1]]
            counts = Counter(len(row.split()) for row in rows if row.strip())
            self.dim = min(counts, key=lambda size: (-counts[size], size)) - 1 if counts else 0
            if self.dim < 1 or not _is_number([b"", *line.split()][-1]):
                raise FormatError(
                    f"{self.path}:1: the line is neither a header (rows and dimensions) nor a "
                    "word followed by its vector; use a word-vector file"
                )
        else:
            self.promised, self.dim = int(header[1]), int(header[2])
            start = len(line) + len(newline)
        if not 1 <= self.dim <= MAX_DIM:
            raise FormatError(
                f"{self.path}:1: the vectors have {self.dim} dimensions, but must have 1 to "
                f"{MAX_DIM}; write the file again"
            )
        if (self.promised or 0) > MAX_ROWS:
            raise FormatError(
                f"{self.path}:1: the file has {self.promised} rows, but at most {MAX_ROWS} rows "
                "are supported; write a smaller file"
            )
        return start

    def _check_layout(self, lines: list[bytes], has_header: bool) -> None:
        """Raise an error if the first lines contain no words, or words in quotes as R writes them.

        A number can be a word, such as a year, but not every word is a number with a decimal point.
        """
        firsts = [line.split(None, 1)[0] for line in lines[has_header:_LOOKED_AT] if line.strip()]
        place = f"{self.path}:{1 + has_header}"
        if len(firsts) > 1 and all(_DECIMAL.fullmatch(one) for one in firsts):
            raise FormatError(
                f"{place}: a line begins with the number {firsts[0].decode()}, not with a word; "
                "begin each line with a word"
            )
        if len(firsts) > 1 and all(len(one) > 1 and one[:1] == one[-1:] == b'"' for one in firsts):
            raise FormatError(
                f"{place}: the words are in quotes; in R, write the file with quote=FALSE"
            )

    def _looks_binary(self) -> bool:
        """Detect a binary file by its first row or, if that is ambiguous, by its first block."""
        block = self._block
        fields = block.tobytes().partition(b"\n")[0].split()
        text = not self.promised or (
            len(fields) >= self.dim and all(map(_is_number, fields[-self.dim :]))
        )
        rows, end = cut_rows(True, block, self.dim, self.promised or 0, self._final)
        whole = rows == self.promised or (rows > 0 and not self._final)
        binary = whole and self._reads(True, block[:end], rows)
        if _is_text(block[:65536].tobytes()):
            return binary and not text
        if text and binary:
            rows, end = cut_rows(False, block, self.dim, self.promised or 0, self._final)
            return not self._reads(False, block[:end], rows)
        return not text

    def _reads(self, binary: bool, data: U8, rows: int) -> bool:
        """Return whether `data` consists of valid rows in the binary or the text format."""
        faults = no_faults()
        if rows:
            read_rows(binary, data, self.dim, rows, None, faults, False)
        return not (faults[:LENGTH] if binary else faults[:2])[:, 0].any()

    def _refill(self, carried: U8) -> U8:
        """Return the next block, which begins with the unread remainder of the previous block."""
        block = np.empty(BLOCK, dtype=np.uint8)
        filled = len(carried)
        block[:filled] = carried
        if not self._final:
            filled += fill(self._file, block.data[filled:])
            self._final = filled < BLOCK
        return block[:filled]

    def room(self, limit: int | None) -> F32 | None:
        """Allocate the matrix that `parts` fills, after comparing the header with the file size.

        Return None without a header, or if the file is compressed and its size unknown.
        """
        if self.promised is None or self._size is None:
            return None
        least = self.promised * self.dim * (4 if self.binary else 2)
        if least > self._size:
            raise FormatError(
                f"{self.path}:1: the header declares {self.promised} rows of {self.dim} numbers, "
                f"but the file has only {self._size} bytes; run dcme-w2v check {self.path} to "
                "list all faults"
            )
        rows = self.promised if limit is None else min(limit, self.promised)
        return np.empty((rows, self.dim), dtype=np.float32)

    def parts(
        self,
        *,
        keep: bool,
        skip: bool = False,
        limit: int | None = None,
        matrix: F32 | None = None,
    ) -> Iterator[Part]:
        """Yield the file in parts; if `keep`, store each part's vectors up to its first faulty row.

        With `skip`, faulty rows are left out instead.
        Numbers are stored in `matrix`, or in one matrix per part. Rows beyond the number in the
        header start a new part.
        """

        def read(part: Part) -> Part:
            if keep:
                part.matrix = self._room_of(part, matrix)
            part.text, part.offsets = read_rows(
                self.binary, part.block, self.dim, part.count, part.matrix, part.faults, skip
            )
            if skip and part.matrix is not None:
                part.matrix = part.matrix[: len(part.offsets) - 1]
            return part

        return ordered_map(read, self._cut(MAX_ROWS if limit is None else limit))

    def _room_of(self, part: Part, matrix: F32 | None) -> F32:
        if matrix is not None and part.first + part.count <= len(matrix):
            return matrix[part.first : part.first + part.count]
        # Each value takes at least two bytes of text, so the block size limits the number of rows.
        rows = min(part.count, len(part.block) // (2 * self.dim) + 1)
        return np.empty((rows, self.dim), dtype=np.float32)

    def _cut(self, limit: int) -> Iterator[Part]:
        block, offset = self._block, self._start
        while self.rows < limit:
            announced = (self.promised or 0) - self.rows
            most = min(limit - self.rows, announced if announced > 0 else MAX_ROWS)
            count, end = cut_rows(self.binary, block, self.dim, most, self._final)
            if count:
                yield Part(block[:end], self.rows, offset, count)
            self.rows += count
            offset += end
            block = block[end:]
            if count == 0 and self._final:
                break
            if count == 0 and len(block) == BLOCK:
                raise FormatError(
                    f"{self.place(self.rows, offset)}: no row ends within {BLOCK} bytes; run "
                    f"dcme-w2v check {self.path} to list all faults"
                )
            if count < most and not self._final:
                block = self._refill(block)
        self.left = 0 if self.binary and block[:2].tobytes() == b"\n" else len(block)

    def place(self, row: int, offset: int) -> str:
        """Format a row's position for messages: the line of a text file, or a byte offset."""
        if self.binary:
            return f"{self.path}: row {row + 1}, byte {offset}"
        return f"{self.path}:{row + 1 + (self.promised is not None)}"

    def row_place(self, row: int) -> str:
        """Format a row's position for messages if the row's byte offset is unknown."""
        return f"{self.path}: row {row + 1}" if self.binary else self.place(row, 0)

    def position_in(self, part: Part, kind: int) -> str:
        """Return text that says where the first fault of the given kind occurs in this part."""
        _, row, offset = part.faults[kind].tolist()
        return self.place(part.first + row, part.offset + offset)


@contextlib.contextmanager
def open_rows(path: PathLike, binary: bool | None = None) -> Iterator[RowReader]:
    """Open a text or binary vector file, which may be compressed; ``-`` is standard input.

    If `binary` is None, the format is detected.

    Raises
    ------
    FormatError
        The file cannot be opened or, later, cannot be read or decompressed.
    """
    name = os.fspath(path)
    try:
        with CorpusFile(name) as file:
            yield RowReader(name, file, None if file.packed else stored_size(name), binary)
    except CorpusError as error:
        raise FormatError(error.message) from error


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _is_text(sample: bytes) -> bool:
    if _CONTROL.search(sample):
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        return False
    return True
