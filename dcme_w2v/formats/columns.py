"""Text and labels from the columns of a file: Parquet, Arrow, JSON lines, CSV.

The format is detected from the content. Rows are read a few thousand at a time.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, AnyStr, NamedTuple

from dcme_w2v.errors import CorpusError, UsageError, import_optional, warn
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.opening import (
    LINE_BYTES,
    PIECE_BYTES,
    CorpusFile,
    PieceReader,
    is_address,
)

PARQUET, ARROW, ARROW_STREAM, JSON = b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", b"{"
ROWS_AT_ONCE, BYTES_AT_ONCE = 2048, 4 << 20
_ARRAY = ": is a JSON array; write one object a line, as jq -c '.[]'"
SEEN_ROWS = 1000  # of JSON lines, one of which must have each column
DELIMITERS = ",\t;|"
_SHOWN = 20  # columns in an error message


class Tokenized(bytes):
    """Tokens separated by spaces, which no tokenizer changes."""


class Table(str):
    r"""The path of a file of rows, with the columns to be read.

    Parameters
    ----------
    path : str
        A file or folder, or ``-`` for JSON lines, CSV or an Arrow stream on standard input.
    text : str or sequence of str
        Columns of text, joined by a space; one str may have several names, separated by commas.
        ``a.b`` is the field b of the column a.
    label : str or sequence of str, optional
        Columns of labels.
    whole : bool
        Whether a value is one sentence, even if it has several lines.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> _ = open("t.jsonl", "w").write('{"body": "green tea", "year": 1984}\n' * 9)
    >>> dw.count_words(dw.Table("t.jsonl", "body")).words
    Words(['green', 'tea']; 2 words)
    """

    text: tuple[str, ...]
    label: tuple[str, ...]
    whole: bool
    group: tuple[int, int] | None = None  # of Parquet or Arrow: one row group, and the rows before

    def __new__(
        cls,
        path: str,
        text: str | Sequence[str] = (),
        label: str | Sequence[str] = (),
        whole: bool = False,
    ) -> Table:
        """Make the path; see the class."""
        self = super().__new__(cls, path)
        self.text = (text,) if isinstance(text, str) else tuple(text or ())
        self.label = (label,) if isinstance(label, str) else tuple(label or ())
        self.whole = whole
        return self

    def at(self, path: str) -> Table:
        """Return the same columns of another path."""
        return Table(path, self.text, self.label, self.whole)


class Row(NamedTuple):
    """One row: its labels, and its text as lines; of lists of tokens, `is_tokenized`."""

    labels: tuple[str, ...]
    lines: list[str]
    is_tokenized: bool


def with_columns(paths: Iterable[str], text: str | None, label: str | None = None,
                 whole: bool = False) -> tuple[str, ...]:  # fmt: skip
    """Return paths with the columns to be read, as they are without a column of text."""
    if text is None:
        if label is not None:
            raise UsageError(f"--label-column={label}: requires --text-column")
        return tuple(paths)
    return tuple(
        path if isinstance(path, Table) else Table(path, text, label or (), whole) for path in paths
    )


def like(path: str, other: str) -> str:
    """Return a path with the columns of another one, if it has any."""
    return other.at(path) if isinstance(other, Table) else path


def check_no_table(path: str, head: bytes) -> None:
    """Raise `CorpusError`, with the columns, if a file is a table; `head` is its first line.

    CSV begins as text does, so that only a name that ends in .csv brings a warning.
    """
    if head.lstrip().startswith(b"[{"):
        raise CorpusError(f"{path}{_ARRAY}")
    kind = _kind_of(head)
    if is_named_csv(path) and kind is None and any(sign in head for sign in (b",", b";")):
        header = head[:200].decode("utf-8", "replace").strip()
        warn(f"{path}: is read as text, not CSV; name its column by --text-column: {header}")
    if kind is None:
        return
    try:
        names = json.loads(head) if kind == "JSON lines" else _opened(path, kind)[1].names
    except CorpusError:  # for example, from standard input
        names = []
    except (ValueError, RecursionError):  # text that begins with a brace
        return
    listed = f": {_listed(names)}" if names else ""
    raise CorpusError(f"{path}: is {kind}; name its column of text by --text-column{listed}")


def is_named_csv(path: str) -> bool:
    """Return whether a file's name ends in .csv, perhaps with a suffix of compression."""
    return PurePath(path).suffix.lower() == ".csv" or ".csv." in path.lower()


def is_binary_table(head: bytes) -> bool:
    """Return whether a file has the magic bytes of Parquet or Arrow."""
    return _kind_of(head) not in (None, "JSON lines")


def _kind_of(head: bytes) -> str | None:
    for magic, kind in ((PARQUET, "Parquet"), (ARROW, "Arrow"), (ARROW_STREAM, "an Arrow stream"),
                        (JSON, "JSON lines")):  # fmt: skip
        if head.startswith(magic):
            return kind
    return None


# ---- rows ----


def read_rows(
    table: Table, file: CorpusFile | None = None, joined: bool = False
) -> Iterator[tuple[int, Row]]:
    """Yield the number, from 1, and the content of each row.

    A null is a row without lines, or without labels. With `joined`, several rows of one column of
    text, each of one line, may come as one row.

    Raises
    ------
    CorpusError
        A column is missing or not text, a row cannot be read, or a package is not installed.
    """
    if not table.text:
        raise UsageError(
            f"{table}: the Table has no column of text; give it as the second argument"
        )
    with file or CorpusFile(table) as file:
        reader = io.BufferedReader(file, PIECE_BYTES)
        head = reader.peek(8)[:8]
        kind = _kind_of(head.removeprefix(b"\xef\xbb\xbf"))
        if kind == "JSON lines":
            records: Iterator[Any] = _json_records(table, reader, file)
        elif kind is None:
            records = _csv_records(table, reader, file)
        else:
            records = _arrow_records(table, kind, file, reader, joined)
        was_tokenized, number = None, table.group[1] if table.group else 0
        for record in records:
            number += record.rows
            row = _row(table, number, record)
            if row.lines:
                if was_tokenized not in (None, row.is_tokenized):
                    raise CorpusError(
                        f"{table}: row {number} mixes text with lists of tokens; give one kind"
                    )
                was_tokenized = row.is_tokenized
            yield number, row


def rows_of_dicts(table: Table, items: Iterable[Any]) -> Iterator[Row]:
    """Yield the content of rows that are dicts in memory; the first must have the columns."""
    for number, item in enumerate(items, 1):
        if not isinstance(item, Mapping):
            kind = type(item).__name__
            raise UsageError(f"--text-column: is for files and dicts; item {number} is {kind}")
        record = _Record(item)
        if number == 1:
            _check_columns(table, item, record.has)
        yield _row(table, number, record)


def _row(table: Table, number: int, record: Callable[[str], Any]) -> Row:
    values = ((name, record(name)) for name in _names(table.text, record))
    texts = [
        _decoded(value, f"{table}: row {number}: {name}") if isinstance(value, bytes) else value
        for name, value in values
        if value is not None and value == value  # NaN is a null, too
    ]
    labels = tuple(
        label
        for name in _names(table.label, record)
        for label in _labels(record(name), f"{table}: row {number}: {name}")
    )
    is_tokenized = any(isinstance(value, list) for value in texts)
    lines: list[str] = []
    for value in texts:
        if isinstance(value, list) != is_tokenized:
            raise CorpusError(f"{table}: row {number} mixes text with lists of tokens; give one")
        if isinstance(value, list):
            nested = value if value and isinstance(value[0], list) else [value]
            lines += [_joined(tokens, f"{table}: row {number}") for tokens in nested]
        elif isinstance(value, str):
            lines.append(value)
        else:
            kind = type(value).__name__
            name = ", ".join(table.text)
            raise CorpusError(
                f"{table}: row {number}: {name} is {kind}, not text; give another column"
            )
    if "\0" in "".join(lines):
        raise CorpusError(f"{table}: row {number} has a NUL character; remove it")
    if texts and not is_tokenized:
        joined = " ".join(lines)
        lines = [" ".join(joined.split())] if table.whole else joined.splitlines() or [""]
    return Row(labels, lines, is_tokenized)


def _decoded(value: bytes, place: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CorpusError(f"{place} is not UTF-8 ({error.reason}); convert it") from None


def _names(given: Sequence[str], record: Callable[[str], Any]) -> list[str]:
    """Return the names of columns; one may be several, separated by commas."""
    found: list[str] = []
    for name in given:
        found += [name] if "," not in name or name in record.known else name.split(",")  # type: ignore[attr-defined]
    return found


def _joined(tokens: Any, place: str) -> str:
    for token in tokens if isinstance(tokens, list) else [tokens]:
        if not isinstance(token, str) or token.split() != [token]:
            raise CorpusError(
                f"{place}: {token!r:.60} is not a token; a list must have tokens without spaces, "
                "or lists of them"
            )
    return " ".join(tokens)


def _labels(value: Any, place: str) -> list[str]:
    if value is None or value != value:  # NaN
        return []
    if isinstance(value, str):
        value = value.split("|")
    elif isinstance(value, int | float):  # bool, too
        value = [str(value)]
    if not isinstance(value, list) or not all(isinstance(one, str | int) for one in value):
        raise CorpusError(f"{place} is {type(value).__name__}; labels are text, numbers or lists")
    return [label for one in value if (label := " ".join(str(one).split()))]


class _Record:
    """Looks up columns of one row; ``a.b`` is the field b of a."""

    def __init__(self, values: Any, rows: int = 1) -> None:
        self.known, self.rows = values, rows

    def __call__(self, name: str) -> Any:
        if name in self.known:
            return self.known[name]
        value = self.known
        for part in name.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def has(self, name: str) -> bool:
        """Return whether the row has a column, or a field that is not null."""
        return name in self.known or self(name) is not None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{name!s:.60}" for name in itertools.islice(names, _SHOWN)) or "none"


def _check_columns(table: Table, known: Iterable[str], has: Callable[[str], bool]) -> None:
    """Raise, with the columns, if one that was named is missing, or there are two."""
    names = list(known)
    for given in (*table.text, *table.label):
        for name in [given] if has(given) else given.split(","):
            if names.count(name) > 1:
                raise CorpusError(f"{table}: has two columns {name!r}; rename one")
            if not has(name):
                raise CorpusError(f"{table}: has no column {name!r}; its columns: {_listed(names)}")


# ---- formats ----


def _limited(table: Table, readline: Callable[[int], AnyStr]) -> Iterator[AnyStr]:
    """Yield lines; one that is longer than `LINE_BYTES` is an error."""
    number = 0
    while line := readline(LINE_BYTES + 1):
        number += 1
        if len(line) > LINE_BYTES:
            raise CorpusError(
                f"{table}: line {number} is longer than {LINE_BYTES:,} bytes; give shorter ones"
            )
        yield line


def _json_records(
    table: Table, reader: io.BufferedReader[Any], file: CorpusFile
) -> Iterator[_Record]:
    seen: set[str] = set()
    known: dict[str, None] = {}
    wanted = [name for given in (*table.text, *table.label) for name in (given, *given.split(","))]
    number = 0
    for number, line in enumerate(_limited(table, reader.readline), 1):
        try:
            values = json.loads(line) if line.strip() else {}
        except (ValueError, RecursionError) as error:
            if file.truncated:
                return
            reason = getattr(error, "msg", None) or f"{error!s:.80}"
            raise CorpusError(
                f"{table}: row {number} is not JSON ({reason}); write one object a line"
            ) from None
        if not isinstance(values, dict):
            raise CorpusError(f"{table}: row {number} is no JSON object; give one a line")
        record = _Record(values)
        if number <= SEEN_ROWS:
            known |= dict.fromkeys(values)
            nested = ((name, one) for name, one in values.items() if isinstance(one, dict))
            known |= {f"{name}.{field}": None for name, one in nested for field in one}
            seen |= set(filter(record.has, wanted))
            if number == SEEN_ROWS:
                _check_columns(table, known, seen.__contains__)
        yield record
    if 0 < number < SEEN_ROWS:
        _check_columns(table, known, seen.__contains__)


def _csv_records(
    table: Table, reader: io.BufferedReader[Any], file: CorpusFile
) -> Iterator[_Record]:
    text = io.TextIOWrapper(reader, encoding="utf-8-sig", newline="")
    number = 0
    try:
        lines = _limited(table, text.readline)
        first = next((line for line in lines if line.strip()), None)
        if first is None:
            return
        if first.strip() == "[" or first.lstrip().startswith("[{"):
            raise CorpusError(f"{table}{_ARRAY}")
        delimiter = max(DELIMITERS, key=first.count)
        csv.field_size_limit(LINE_BYTES)
        rows = csv.reader(itertools.chain([first], lines), delimiter=delimiter, strict=True)
        header = next(rows)
        _check_columns(table, header, header.__contains__)
        for number, row in enumerate(rows, 1):
            if not row:
                continue  # an empty line
            if len(row) != len(header):
                if file.truncated:
                    return
                raise CorpusError(
                    f"{table}: row {number} has {len(row)} fields, the header {len(header)}; "
                    "repair it, or get the whole file"
                )
            yield _Record(dict(zip(header, row, strict=True)))
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"{table}: row {number + 1} is not UTF-8 ({error.reason}); convert the file"
        ) from None
    except csv.Error as error:
        raise CorpusError(f"{table}: row {number + 1} is not CSV ({error}); repair it") from None


def _arrow_records(
    table: Table, kind: str, file: CorpusFile, reader: io.BufferedReader[Any], joined: bool
) -> Iterator[_Record]:
    if kind != "an Arrow stream" and file.packed:
        raise CorpusError(f"{table}: is compressed {kind}, which is read in parts; decompress it")
    batches = _batches(table, kind, reader)
    import pyarrow as pa  # which is there now

    number = table.group[1] if table.group else 0
    try:
        for batch in batches:
            step = _rows_of(batch.nbytes, batch.num_rows)
            for start in range(0, batch.num_rows, step):
                part = batch.slice(start, step)
                own = dict.fromkeys(part.schema.names)
                columns = [part.column(name).to_pylist() for name in own]
                if joined and (text := _joined_lines(table, own, columns)) is not None:
                    number += part.num_rows
                    yield _Record(dict.fromkeys(own, text), part.num_rows)
                    continue
                for values in zip(*columns, strict=True):
                    number += 1
                    yield _Record(dict(zip(own, values, strict=True)))
    except CorpusError:
        raise
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise CorpusError(
            f"{table}: cannot be read after row {number} ({reason}); get the whole file"
        ) from None


def _joined_lines(table: Table, names: Iterable[str], columns: list[list[Any]]) -> str | None:
    """Return the lines of the only column, or None where a value may not be one line of text."""
    if table.whole or table.text != tuple(names):
        return None
    try:
        text = "\n".join(["" if value is None else value for value in columns[0]])
    except TypeError:  # not text
        return None
    is_plain = text[-1:] not in ("", "\n") and "\0" not in text
    return text if is_plain and len(text.splitlines()) == len(columns[0]) else None


def _opened(path: str, kind: str, reader: Any = None) -> tuple[Any, Any]:
    """Open a file of pyarrow; also return the schema."""
    parquet = import_optional("pyarrow.parquet", f" to read {kind}", f"{path}: ", CorpusError)
    import pyarrow as pa

    is_stream = kind == "an Arrow stream"
    if not is_stream and (path == STANDARD or is_address(path) or not Path(path).is_file()):
        raise CorpusError(f"{path}: {kind} is read from regular files only; give a file")
    try:
        if kind == "Parquet":
            source = parquet.ParquetFile(path, pre_buffer=False, buffer_size=PIECE_BYTES)
        elif is_stream:
            source = pa.ipc.open_stream(reader or path)
        else:
            source = pa.ipc.open_file(pa.memory_map(path))
    except (OSError, ValueError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0]
        raise CorpusError(
            f"{path}: row 1: is no whole {kind} file ({reason}); get the whole file"
        ) from None
    return source, source.schema_arrow if kind == "Parquet" else source.schema


def _batches(table: Table, kind: str, reader: Any) -> Iterator[Any]:
    """Return the batches of the columns of a table."""
    source, schema = _opened(table, kind, reader)
    group = None if table.group is None else table.group[0]
    _check_columns(table, schema.names, lambda name: _has_field(schema, name))
    given = [name for one in (*table.text, *table.label) for name in (one, *one.split(","))]
    tops = {name if name in schema.names else name.split(".")[0] for name in given}
    chosen = [name for name in schema.names if name in tops]
    if kind == "Parquet":
        groups = None if group is None else [group]
        return source.iter_batches(
            _parquet_rows(source.metadata, chosen),
            row_groups=groups,
            columns=chosen,
            use_threads=False,
        )
    if kind == "an Arrow stream":
        return (batch.select(chosen) for batch in source)
    numbers = range(source.num_record_batches) if group is None else [group]
    return (source.get_batch(number).select(chosen) for number in numbers)


def _rows_of(size: int, rows: int) -> int:
    """Return the number of rows to be converted at once, of rows that have so many bytes."""
    return max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * rows // max(size, 1)))


def _parquet_rows(about: Any, chosen: Sequence[str]) -> int:
    """Return the number of rows to be read at once of the columns of a Parquet file."""
    found = ROWS_AT_ONCE
    for group in map(about.row_group, range(about.num_row_groups)):
        columns = [group.column(number) for number in range(group.num_columns)]
        size = sum(
            column.total_uncompressed_size
            for column in columns
            if f"{column.path_in_schema}.".startswith(tuple(f"{name}." for name in chosen))
        )
        found = min(found, _rows_of(size, group.num_rows))
    return found


def row_groups(table: Table) -> list[Table]:
    """Return the row groups of a Parquet or Arrow file, each as a table; of others, the table."""
    kind = kind_of_table(table)
    if kind not in ("Parquet", "Arrow"):
        return [table]
    _batches(table, kind, None)  # raises where a column is missing
    source, _ = _opened(table, kind)
    if kind == "Parquet":
        rows = [source.metadata.row_group(i).num_rows for i in range(source.num_row_groups)]
    else:
        rows = [source.get_batch(i).num_rows for i in range(source.num_record_batches)]
    parts = []
    for number, before in enumerate(itertools.accumulate(rows[:-1], initial=0)):
        part = table.at(table)
        part.group = (number, before)
        parts.append(part)
    return parts if rows else [table]


def kind_of_table(path: str) -> str | None:
    """Return the format of a file by its magic bytes; None for CSV, text and compressed files."""
    with CorpusFile(path, allow_truncated=True) as file:
        if file.packed:
            return None
        head = bytearray(11)
        filled = file.readinto(head)
    return _kind_of(bytes(head[:filled]).removeprefix(b"\xef\xbb\xbf"))


def _has_field(schema: Any, name: str) -> bool:
    """Return whether a schema has a column, or a field of structs."""
    if name in schema.names:
        return True
    first, *rest = name.split(".")
    if first not in schema.names:
        return False
    kind = schema.field(first).type
    for part in rest:
        if not hasattr(kind, "get_field_index") or kind.get_field_index(part) < 0:
            return False
        kind = kind.field(part).type
    return bool(rest)


class TableFile(PieceReader):
    """The text of a table as lines, with the attributes of `CorpusFile`.

    Attributes
    ----------
    is_tokenized : bool
        Whether the rows that were read are lists of tokens.
    """

    def __init__(
        self,
        table: Table,
        allow_truncated: bool | None = None,
        begin: int = 0,
        end: int | None = None,
    ) -> None:
        self._file = CorpusFile(table, allow_truncated, begin, end)
        self.path, self.is_tokenized = str(table), False
        self._pieces = self._lines(table)

    @property
    def bytes_read(self) -> int:
        """Bytes of the stored file read so far."""
        return self._file.bytes_read

    @property
    def truncated(self) -> str | None:
        """The error message of a truncated file, once it has been read."""
        return self._file.truncated

    def _lines(self, table: Table) -> Iterator[bytes]:
        lines: list[str] = []
        size = 0
        for _, row in read_rows(table, self._file, joined=True):
            self.is_tokenized = self.is_tokenized or row.is_tokenized
            lines += row.lines or [""]
            size += len(row.lines[0]) if len(row.lines) == 1 else sum(map(len, row.lines))
            if len(lines) >= ROWS_AT_ONCE or size >= BYTES_AT_ONCE:
                yield ("\n".join(lines) + "\n").encode("utf-8", "replace")
                lines, size = [], 0
        if lines:
            yield ("\n".join(lines) + "\n").encode("utf-8", "replace")

    def close(self) -> None:
        """Close the file; standard input is not closed."""
        if hasattr(self, "_file"):  # else it could not be opened; Python 3.13 reports this
            self._pieces.close()  # type: ignore[attr-defined]
            self._file.close()
        super().close()
