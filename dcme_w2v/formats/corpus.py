"""A corpus: files, folders, standard input and URLs as one stream of blocks of bytes.

A block ends at the end of a line, or of a word if lines are long. Files are opened and decompressed
by `dcme_w2v.files.opening`.
"""

import io
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dcme_w2v.errors import CorpusError, NoSuchFileError, warn
from dcme_w2v.files.atomic import STANDARD, standard_input
from dcme_w2v.files.opening import (
    BYTE_ORDER_MARK,
    LINE_BYTES,
    ArchiveError,
    CorpusFile,
    head_of,
    is_address,
    sniff,
)
from dcme_w2v.files.paths import as_paths

from .columns import BINARY, Source, Table, check_no_table, read_rows, stored_size
from .texts import Tokenized, blocks, bytes_of

BLOCK_BYTES = 4 << 20
SEPARATORS = b" \t\n\r\v\f"


def expand(corpus: Sequence[Source]) -> list[Source]:
    """Return the files of a corpus, in order.

    Parameters
    ----------
    corpus : sequence of str
        Files, ``-``, URLs, and folders. A folder stands for all files below it, sorted by path,
        except names that start with a dot. Dangling links, pipes, devices and binary files in
        folders are skipped with a warning that counts them.

    Raises
    ------
    CorpusError
        A path does not exist, or a folder has no files.
    UsageError
        Standard input is closed.
    """
    paths: list[Source] = []
    for item in as_paths(corpus):
        name = os.fspath(item)
        is_in_memory = isinstance(item, Table) and item.rows is not None
        if is_in_memory or name == STANDARD or is_address(name) or not Path(name).is_dir():
            paths.append(item)
        elif isinstance(item, Table):
            paths += [replace(item, path=path) for path in _text_files(name, True)]
        else:
            paths += _text_files(name, False)
    for path in (str(one) for one in paths if getattr(one, "rows", None) is None):
        if path == STANDARD:
            standard_input()
        elif not is_address(path) and not Path(path).exists():
            raise NoSuchFileError(f"{path}: there is no such file or folder")
    if not paths:
        raise CorpusError("the corpus has no files; give one, or - for standard input")
    return paths


def is_corpus_path(item: object) -> bool:
    """Return whether `expand` accepts this: an existing file or folder, a URL, or ``-``."""
    if isinstance(item, os.PathLike):
        return True
    if not isinstance(item, str) or "\n" in item:
        return False
    try:
        return item == STANDARD or is_address(item) or Path(item).exists()
    except OSError:  # longer than the name of a file can be
        return False


def _files_below(folder: str) -> list[str]:
    found: list[str] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [str(Path(parent, name)) for name in names if not name.startswith(".")]
    if not found:
        raise CorpusError(f"{folder}: the folder has no files; choose another")
    return sorted(found)


def _text_files(folder: str, tables: bool) -> list[str]:
    """Return the files below a folder that can be text; warn about the others."""
    kept, skipped = [], Counter[str]()
    for path in _files_below(folder):
        kind = _kind_of_other(path, tables)
        if kind is None:
            kept.append(path)
        else:
            skipped[kind] += 1
    if skipped:
        counts = ", ".join(
            f"{count:,} {kind}{'s' * (count > 1)}" for kind, count in skipped.items()
        )
        warn(f"{folder}: {counts} skipped")
        if not kept:
            raise CorpusError(
                f"{folder}: the folder has no text files; give another folder, or name the text "
                "column of tables by --text-column"
            )
    return kept


def _kind_of_other(path: str, tables: bool) -> str | None:
    """Return a noun for a file that cannot be read as text; None if it can."""
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return "dangling link"
    if not stat.S_ISREG(mode):
        return "special file"
    try:
        head = head_of(path)
    except ArchiveError:
        return "binary file"
    except CorpusError:  # the reader of the file reports it
        return None
    if tables or b"\0" not in head:
        return None
    return "Parquet or Arrow file" if sniff(head) in BINARY else "binary file"


@dataclass(frozen=True)
class Block:
    """A block of bytes from a corpus; it never ends within a word.

    Attributes
    ----------
    file : int
        Index of the file.
    offset : int
        Position in the decompressed file.
    text : memoryview
        The bytes; the last block of a file ends its last line.
    bytes_read : int
        Stored bytes of all files read so far.
    is_last : bool
        Whether the file ends here; `text` ends with a line feed that the file does not have.
    is_tokenized : bool
        Whether the tokens are separated by spaces, whatever the tokenizer.
    within_line : bool
        Whether the first line began in an earlier block, with more than spaces.
    """

    file: int
    offset: int
    text: memoryview
    bytes_read: int
    is_last: bool = False
    is_tokenized: bool = False
    within_line: bool = False


@dataclass(frozen=True)
class Span:
    """A file, or a range of its bytes that contains whole lines."""

    path: Source
    begin: int = 0
    end: int | None = None


class Corpus:
    """Several files, read as one stream of blocks.

    Parameters
    ----------
    corpus : sequence of str or Table, or of Span
        See `expand`.
    block_bytes : int
        Size of a block; larger if a word is longer.

    Attributes
    ----------
    paths : list of str
        The files, in order.
    sizes : list of (int or None)
        Their stored sizes in bytes; None for streams.
    """

    def __init__(
        self,
        corpus: Sequence[Source] | Sequence[Span],
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        spans = [one for one in corpus if isinstance(one, Span)]
        names = [one for one in corpus if not isinstance(one, Span)]
        self.spans = spans or [Span(path) for path in expand(names)]
        self.paths = [os.fspath(span.path) for span in self.spans]
        self.sizes = [stored_size(path) for path in self.paths]
        self._block_bytes = block_bytes

    @property
    def is_read_once(self) -> bool:
        """Whether a source is a stream, which cannot be read again."""
        pairs = zip(self.paths, self.sizes, strict=True)
        return any(size is None and not is_address(path) for path, size in pairs)

    @property
    def bytes_total(self) -> int | None:
        """Sum of the sizes; None if one is unknown."""
        known = [size for size in self.sizes if size is not None]
        return sum(known) if len(known) == len(self.sizes) else None

    def __iter__(self) -> Iterator[Block]:
        behind = 0
        for number, (path, span) in enumerate(zip(self.paths, self.spans, strict=True)):
            with CorpusFile(path, begin=span.begin, end=span.end) as file:
                of_rows = isinstance(span.path, Table)
                yield from (self._rows if of_rows else self._blocks)(number, file, behind)
                behind += file.bytes_read

    def _rows(self, number: int, file: CorpusFile, behind: int) -> Iterator[Block]:
        """Yield the rows of a table as lines; a null is an empty line."""
        table: Any = self.spans[number].path
        rows = read_rows(table, file, joined=True)
        texts = (Tokenized(r.text or b"") if r.is_tokenized else r.text or b"" for _, r in rows)
        offset = 0
        for held in blocks(texts, self._block_bytes):
            text = memoryview(b"\n".join([*map(bytes_of, held), b""]))
            is_tokenized = isinstance(held[0], Tokenized)
            yield Block(number, offset, text, behind + file.bytes_read, is_tokenized=is_tokenized)
            offset += len(text)

    def _blocks(self, number: int, file: CorpusFile, behind: int) -> Iterator[Block]:
        mark = bytearray(len(BYTE_ORDER_MARK))
        rest = bytes(mark[: _fill(file, memoryview(mark))])
        begin = self.spans[number].begin
        skipped = len(rest) if rest == BYTE_ORDER_MARK and not begin else 0
        rest, offset = rest[skipped:], begin + skipped
        within_line = False
        while True:
            # A remainder longer than a block is part of one word: double the buffer to move it
            # rarely.
            buffer = bytearray(len(rest) + max(self._block_bytes, len(rest)) + 1)
            buffer[: len(rest)] = rest
            filled = len(rest) + _fill(file, memoryview(buffer)[len(rest) : -1])
            ended = filled < len(buffer) - 1
            if offset == skipped and not begin:
                check_no_table(file.path, bytes(memoryview(buffer)[:filled]))
            if ended:
                buffer[filled] = ord("\n")
                filled += 1
            cut = filled if ended else _end_of_words(buffer, filled)
            if not cut and filled > LINE_BYTES:
                hint = (
                    "it has NUL bytes and looks binary" if b"\0" in buffer[:filled] else "give text"
                )
                place = f"{file.path}: byte {offset}"
                raise CorpusError(f"{place}: a word is longer than {LINE_BYTES:,} bytes; {hint}")
            if cut:
                text = memoryview(buffer)[:cut].toreadonly()
                behind_all = behind + file.bytes_read
                yield Block(number, offset, text, behind_all, ended, within_line=within_line)
                line = buffer.rfind(b"\n", 0, cut) + 1
                within_line = (within_line and not line) or bool(buffer[line:cut].strip())
            if ended:
                return
            rest = bytes(memoryview(buffer)[cut:filled])
            offset += cut


def _fill(file: io.RawIOBase, view: memoryview) -> int:
    """Read until the buffer is full or the file ends; return the number of bytes."""
    filled = 0
    while filled < len(view) and (n := file.readinto(view[filled:])):
        filled += n
    return filled


def _end_of_words(buffer: bytearray, filled: int) -> int:
    """Return where the last line ends, or else the last word; 0 if neither ends."""
    newline = buffer.rfind(b"\n", 0, filled)
    if newline >= 0:
        return newline + 1
    return 1 + max(buffer.rfind(bytes([separator]), 0, filled) for separator in SEPARATORS)
