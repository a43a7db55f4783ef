"""Read a corpus (files, folders, standard input and URLs) as one stream of byte blocks.

A block ends at the end of a line, or of a word if lines are long. Files are opened and decompressed
by `dcme_w2v.files.opening`.
"""

import itertools
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from dcme_w2v.errors import CorpusError, NoSuchFileError, UsageError, warn
from dcme_w2v.files.atomic import STANDARD, standard_input
from dcme_w2v.files.opening import (
    BYTE_ORDER_MARK,
    LINE_BYTES,
    ArchiveError,
    CorpusFile,
    fill,
    head_of,
    is_address,
    read_json,
    sniff,
    stored_size,
)
from dcme_w2v.files.paths import as_paths
from dcme_w2v.numeric.arrays import without_warnings
from dcme_w2v.platform import PathLike

from .columns import BINARY, Source, Table, check_no_table, like, read_rows, rows_of_dicts
from .texts import Text, Tokenized, as_texts, blocks, bytes_of

BLOCK_BYTES = 4 << 20
SEPARATORS = b" \t\n\r\v\f"


def expand(corpus: Sequence[Source]) -> list[Source]:
    """Return all files that a corpus consists of, in reading order.

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
        if not name:
            raise UsageError("corpus: the path is empty; choose a file")
        is_in_memory = isinstance(item, Table) and item.rows is not None
        if is_in_memory or name == STANDARD or is_address(name) or not Path(name).is_dir():
            paths.append(item)
        elif isinstance(item, Table):
            paths += [replace(item, path=path) for path in text_files(name, True)]
        else:
            paths += text_files(name)
    for path in (str(one) for one in paths if getattr(one, "rows", None) is None):
        if path == STANDARD:
            standard_input()
        elif not is_address(path) and not Path(path).exists():
            raise NoSuchFileError(f"{path}: there is no such file or folder; check the path")
    if not paths:
        raise CorpusError("the corpus has no files; pass a file, or - for standard input")
    return paths


def is_corpus_path(item: object) -> bool:
    """Return whether `expand` accepts a path: an existing file or folder, a URL, or ``-``."""
    if isinstance(item, os.PathLike):
        return True
    if not isinstance(item, str) or "\n" in item:
        return False
    try:
        return item == STANDARD or is_address(item) or Path(item).exists()
    except OSError:  # the string is too long for a file name
        return False


def _files_of_dataset(folder: str) -> list[str]:
    """Return the data files in a folder written by ``Dataset.save_to_disk``, or [] otherwise.

    Raises
    ------
    CorpusError
        The folder has several splits, or a file is missing.
    """
    if (about := Path(folder, "dataset_dict.json")).is_file():
        splits = read_json(about, "write the dataset folder again").get("splits")
        listed = ", ".join(f"{folder}/{one}" for one in splits) if isinstance(splits, list) else ""
        raise CorpusError(
            f"{folder}: this dataset has several splits, but only one split can be read; use one "
            f"of {listed:.200}"
        )
    if not (about := Path(folder, "state.json")).is_file():
        return []
    files = read_json(about, "write the dataset folder again").get("_data_files")
    try:
        return [str(Path(folder, PurePath(one["filename"]).name)) for one in files or []]
    except (TypeError, KeyError):
        raise CorpusError(f"{about} lists no data files; write the dataset folder again") from None


def _files_below(folder: str) -> list[str]:
    if found := _files_of_dataset(folder):
        return found
    found = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [str(Path(parent, name)) for name in names if not name.startswith(".")]
    if not found:
        raise CorpusError(f"{folder}: the folder has no files; use another folder")
    return sorted(found)


def text_files(folder: str, tables: bool = False) -> list[str]:
    """Return the files below a folder that can be text; warn about all other files."""
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
                f"{folder}: the folder has no text files; use another folder, or, for tables, "
                "select the text column with --text-column"
            )
    return kept


def _kind_of_other(path: str, tables: bool) -> str | None:
    """Return why a file is not text ("binary file", for example), or None for a text file."""
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
    except CorpusError:  # ignore the error here, because reading the file raises it again
        return None
    if tables or b"\0" not in head:
        return None
    return "Parquet or Arrow file" if sniff(head) in BINARY else "binary file"


@dataclass(frozen=True)
class Block:
    """A block of consecutive bytes from a corpus; it never ends within a word.

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
        Whether the first line began in an earlier block with text other than spaces.
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
    """A file, or a range of whole lines in a file, given by byte offsets."""

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
    bytes_total : int or None
        Total size of the files in bytes, or None if the size of any file is unknown.
    is_read_once : bool
        Whether there is a stream among the files, which can be read only once.
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
        known = [size for size in self.sizes if size is not None]
        self.bytes_total = sum(known) if len(known) == len(self.sizes) else None
        pairs = zip(self.paths, self.sizes, strict=True)
        self.is_read_once = any(size is None and not is_address(path) for path, size in pairs)
        self._block_bytes = block_bytes

    def __iter__(self) -> Iterator[Block]:
        behind = 0
        for number, (path, span) in enumerate(zip(self.paths, self.spans, strict=True)):
            with CorpusFile(path, begin=span.begin, end=span.end) as file:
                of_rows = isinstance(span.path, Table)
                yield from (self._rows if of_rows else self._blocks)(number, file, behind)
                behind += file.bytes_read

    def _rows(self, number: int, file: CorpusFile, behind: int) -> Iterator[Block]:
        """Yield the rows of a table as lines; a null becomes an empty line."""
        table: Any = self.spans[number].path
        rows = read_rows(table, file, joined=True)
        texts = (Tokenized(r.text or b"") if r.is_tokenized else r.text or b"" for _, r in rows)
        for block in _joined(texts, self._block_bytes):
            yield replace(block, file=number, bytes_read=behind + file.bytes_read)

    def _blocks(self, number: int, file: CorpusFile, behind: int) -> Iterator[Block]:
        mark = bytearray(len(BYTE_ORDER_MARK))
        rest = bytes(mark[: fill(file, memoryview(mark))])
        begin = self.spans[number].begin
        skipped = len(rest) if rest == BYTE_ORDER_MARK and not begin else 0
        rest, offset = rest[skipped:], begin + skipped
        within_line, size = False, self.sizes[number]
        # Use a small buffer for a small file: zeroing a large buffer takes longer than reading the
        # file.
        block = self._block_bytes if size is None else min(self._block_bytes, max(size, 1 << 16))
        while True:
            # Double the buffer, so that a very long word in `rest` is copied only a few times.
            buffer = bytearray(len(rest) + max(block, len(rest)) + 1)
            buffer[: len(rest)] = rest
            filled = len(rest) + fill(file, memoryview(buffer)[len(rest) : -1])
            ended = filled < len(buffer) - 1
            if offset == skipped and not begin:
                check_no_table(file.path, bytes(memoryview(buffer)[:filled]))
            if ended:
                buffer[filled] = ord("\n")
                filled += 1
            cut = filled if ended else _end_of_words(buffer, filled)
            if not cut and filled > LINE_BYTES:
                hint = (
                    "the file has NUL bytes and looks binary"
                    if b"\0" in buffer[:filled]
                    else "use text"
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


def _joined(texts: Iterable[Text], block_bytes: int) -> Iterator[Block]:
    """Join texts, one per line, into blocks of only tokenized texts or only untokenized texts."""
    offset = 0
    for held in blocks(texts, block_bytes):
        text = memoryview(b"\n".join([*map(bytes_of, held), b""]))
        is_tokenized = isinstance(held[0], Tokenized)
        yield Block(0, offset, text, offset + len(text), is_tokenized=is_tokenized)
        offset += len(text)


def _end_of_words(buffer: bytearray, filled: int) -> int:
    """Return the end of the last complete line, or else of the last complete word, or else 0."""
    newline = buffer.rfind(b"\n", 0, filled)
    if newline >= 0:
        return newline + 1
    return 1 + max(buffer.rfind(bytes([separator]), 0, filled) for separator in SEPARATORS)


Sentence = str | bytes | Iterable[str | bytes]
# Matches a string that is probably a file path, whether or not the file exists.
_PATH = re.compile(r"\S+/\S*|\S+\.[A-Za-z0-9]{1,5}")


@dataclass(frozen=True)
class CorpusPaths:
    """Paths from the command line, which are never interpreted as sentences."""

    paths: tuple[Source, ...]


CorpusLike = PathLike | CorpusPaths | Iterable[PathLike] | Iterable[Sentence]


class Sentences:
    """A stream of blocks of sentences from an iterable, which is read only once.

    Parameters
    ----------
    items : iterable of str, bytes, or iterables of str or bytes
        A str or bytes is a line, whose tokens are separated by whitespace; other iterables are the
        tokens of a sentence.
    column : str or sequence of str, optional
        The text columns, if items are dicts.

    Attributes
    ----------
    paths, sizes, bytes_total, is_read_once
        As in `dcme_w2v.formats.corpus.Corpus`: one source of unknown size.
    """

    def __init__(self, items: Iterable[Any], column: str | Sequence[str] | None = None) -> None:
        self.paths = ["sentences"]
        self.sizes: list[int | None] = [None]
        self.bytes_total: int | None = None
        self.is_whole = False
        self.column = column
        self._items = items
        self.is_read_once = not isinstance(items, Sequence)

    def __iter__(self) -> Iterator[Block]:
        return _joined(self.lines(), BLOCK_BYTES)

    def lines(self) -> Iterator[Text]:
        """Yield sentences; split each text that contains line feeds into one sentence per line."""
        if self.column is not None:
            table = Table("sentences", self.column, whole=self.is_whole)
            for row in rows_of_dicts(table, self._items):
                if row.text is not None:
                    yield Tokenized(row.text) if row.is_tokenized else row.text
            return
        # Keep unpaired surrogates in strings, because `encode` replaces or reports them later.
        for number, text in enumerate(as_texts(self._items, "sentence", "surrogatepass")):
            if isinstance(text, bytes):
                text = text.removeprefix(BYTE_ORDER_MARK if not number else b"")
                text = b" ".join(text.split()) if self.is_whole else text.removesuffix(b"\n")
            yield text


def paths_or_sentences(corpus: Any) -> tuple[Sequence[Source], Sentences | None]:
    """Convert a corpus to paths, or to `Sentences` if it is an iterable of sentences.

    A list or tuple of strings is read as paths if all of them exist, or if each has a slash or a
    suffix and no whitespace; otherwise for lines, which must contain whitespace.

    Raises
    ------
    UsageError
        The corpus consists neither of paths nor of sentences.
    """
    if isinstance(corpus, CorpusPaths):
        return corpus.paths, None
    if isinstance(corpus, Table) and corpus.rows is not None:
        return (), Sentences(corpus.rows, corpus.text)
    if isinstance(corpus, str | os.PathLike):
        path = os.fspath(corpus)
        words = path.split()
        is_text = len(words) > 3 or (len(words) > 1 and not _PATH.fullmatch(words[-1]))
        if "\n" in path or (is_text and not is_corpus_path(path)):
            raise UsageError(f"--corpus={path!r:.60} is text, not a file; pass a list of sentences")
        return as_paths(corpus), None
    if hasattr(corpus, "columns"):  # `corpus` is a pandas, polars or pyarrow table
        raise UsageError(
            "--corpus: a DataFrame cannot be read as text; use its text column, such as df['text']"
        )
    if isinstance(corpus, bytes) or not isinstance(corpus, Iterable):
        raise UsageError(
            f"--corpus={corpus!r:.60} must be a path, a list of paths, or an iterable of sentences"
        )
    if isinstance(corpus, Mapping):
        raise UsageError(
            "--corpus: a dict cannot be read as text; use its values, or a list of sentences (for "
            "word counts, use --read-vocab)"
        )
    if isinstance(corpus, list | tuple):
        return _listed(corpus)
    items = iter(corpus)
    first = list(itertools.islice(items, 1))
    if first and isinstance(first[0], os.PathLike):
        return as_paths([*first, *items]), None
    return (), Sentences(itertools.chain(first, items))


def _listed(corpus: Sequence[Any]) -> tuple[Sequence[Source], Sentences | None]:
    """Convert strings to paths if all exist or look like paths, otherwise to sentences."""
    look_like_paths = (isinstance(item, str) and _PATH.fullmatch(item) for item in corpus)
    if corpus and (all(map(is_corpus_path, corpus)) or all(look_like_paths)):
        return as_paths(corpus), None
    if corpus and all(isinstance(item, str) and len(item.split()) < 2 for item in corpus):
        raise UsageError(
            f"--corpus: the {len(corpus):,} strings, such as {corpus[0]!r:.60}, are neither file "
            "names nor sentences of several tokens; use sentences with spaces between the "
            "tokens, or lists of tokens"
        )
    return (), Sentences(corpus)


def check_file(holdout: str, corpus: Sequence[Source]) -> None:
    """Raise an error before work starts if the --holdout file is missing or part of the corpus."""
    with without_warnings():  # suppress warnings that are issued again when the corpus is read
        given = [like(holdout, corpus[0])] if corpus else [holdout]
        held, trained = (list(map(str, expand(one))) if one else [] for one in (given, corpus))
    for path in trained:
        files = [one for one in held if STANDARD not in (path, one) and Path(one).exists()]
        same = Path(path).exists() and any(map(Path(path).samefile, files))
        if path in held or same:
            raise UsageError(
                f"--holdout={path} is also part of the corpus; remove this file from the corpus"
            )
