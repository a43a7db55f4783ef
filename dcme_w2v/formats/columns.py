"""Read text and labels from the columns of Parquet, Arrow, JSON lines and CSV files.

The format is detected from the content. Rows are read a few thousand at a time.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import unquote

from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import CorpusError, UsageError, import_optional, warn
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.opening import (
    LINE_BYTES,
    PIECE_BYTES,
    CorpusFile,
    check_expansion,
    distinct,
    is_address,
    read_json,
    sniff,
    split_lines,
    stored_size,
)
from dcme_w2v.files.paths import local
from dcme_w2v.platform import path_name

from .labels import INDICATORS, NoneOfThese, labels_in
from .texts import Tokenized, bytes_of, is_null, plain_lines, text_of

BINARY = "Parquet", "Arrow", "an Arrow stream"
ROWS_AT_ONCE, BYTES_AT_ONCE = 2048, 4 << 20
DECODED_ROWS = 512  # maximum number of Parquet rows that are decoded at once
MOST_COMPRESSED = 50  # usual maximum ratio of a row group's decoded size to its stored size
_ARRAY = " is a JSON array; write one JSON object per line, as jq -c '.[]' does"
# Each requested column must occur in one of the first SEEN_ROWS lines of a JSON lines file.
SEEN_ROWS = 1000
DELIMITERS = ",\t;|"
# File in which the Hugging Face datasets library describes a dataset's columns.
DATASET_INFO = "dataset_info.json"
_HEAD = 4096  # number of bytes at the start of a file from which its format is detected
_FIRST_LINE = re.compile(rb"(?:\xef\xbb\xbf)?\s*(\S[^\n]*)")
_SHOWN = 20  # maximum number of column names that an error message lists


@dataclass(frozen=True)
class Table:
    r"""A tabular file, and the names of the columns to read from it.

    Parameters
    ----------
    path : str
        A file or folder, or ``-`` for JSON lines, CSV or an Arrow stream on standard input.
    text : str or sequence of str
        Names of text columns, whose texts are joined by a space. A str may contain several names,
        separated by commas. ``a.b`` is the field b of the column a. A name that contains a comma
        must be in double quotes: ``'"a, b"'``.
    label : str or sequence of str, optional
        Names of label columns.
    keep : str or sequence of str, optional
        Names of columns that ``classify predict`` copies to its output; in training, the name of
        the column that contains document weights.
    whole : bool
        Whether each value is one sentence, even if it has several lines.
    group : int, optional
        Index of the only row group to read from the Parquet file.
    rows : sequence of mapping, optional
        Rows in memory to read instead of the file.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> from pathlib import Path
    >>> _ = Path("t.jsonl").write_text('{"body": "green tea", "year": 1984}\n' * 9)
    >>> dict(dw.vocab(dw.Table("t.jsonl", "body")).items())
    {'green': 9, 'tea': 9}
    """

    path: str
    text: str | Sequence[str] = ()
    label: str | Sequence[str] = ()
    keep: str | Sequence[str] = ()
    whole: bool = False
    group: int | None = None
    rows: Sequence[Mapping[str, Any]] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("text", "label", "keep"):
            given = getattr(self, name)
            columns = _names_in(given) if isinstance(given, str) else given
            object.__setattr__(self, name, tuple(dict.fromkeys(columns)))
        if both := [name for name in self.label if name in self.text]:
            raise UsageError(
                f"{self.path}: the column {both[0]!r} is selected both as text and as label; "
                "choose two different columns"
            )
        object.__setattr__(self, "path", local(path_name(self.path)))
        if self.group is not None:
            whole_number("group", self.group, 0)

    def __fspath__(self) -> str:
        return self.path

    __str__ = __fspath__

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all columns to read: the text and label columns, and the columns in `keep`."""
        return (*self.text, *self.label, *self.keep)


def _names_in(given: str) -> list[str]:
    """Split names at commas; a name in double quotes may contain commas, as in CSV."""
    quoted = given.startswith('"') or ',"' in given
    return next(csv.reader([given]), []) if quoted else given.split(",")


Source: TypeAlias = str | Table


class Row(NamedTuple):
    """The labels and text (None for a null) of a row, and its values in the `Table.keep` columns.

    If the value is several lists of tokens, each list is a line of the text.
    """

    labels: tuple[str, ...]
    text: bytes | None
    is_tokenized: bool
    kept: tuple[Any, ...] = ()
    is_indicator: bool | None = None  # whether labels are stored as one 0/1 column per label


def with_columns(paths: Iterable[Source], text: str | None, label: str | None = None,
                 whole: bool = False, keep: str | None = None) -> tuple[Source, ...]:  # fmt: skip
    """Convert paths to tables with the given columns; return them unchanged if `text` is None."""
    own = (text or (), label or (), keep or (), whole)
    return tuple(
        path if text is None or isinstance(path, Table) else Table(path, *own) for path in paths
    )


def like(path: str, other: Source) -> Source:
    """Return a path, or a table with this path and the columns of `other` if `other` is a table."""
    return replace(other, path=path) if isinstance(other, Table) else path


def check_no_table(path: str, head: bytes) -> None:
    """Raise a `CorpusError` that lists the columns if `head` is the start of a tabular file.

    The beginning of CSV looks like text, so a name that ends in .csv causes only a warning.
    """
    head = found[1] if (found := _FIRST_LINE.match(head)) else b""
    if head.startswith(b"[{"):
        raise CorpusError(f"{path}{_ARRAY}")
    kind = sniff(head)
    if b"\r" in head.rstrip() and kind is None:
        warn(
            f"{path}: carriage returns within the first line are read as spaces; if "
            "they end lines, convert them to line feeds (tr '\\r' '\\n')"
        )
    if is_named_csv(path) and kind is None and any(sign in head for sign in (b",", b";")):
        header = head[:200].decode("utf-8", "replace").strip()
        warn(
            f"{path} is read as text, not as CSV; to read only a column, select it with "
            f"--text-column (first line: {header})"
        )
    if kind not in (*BINARY, "JSON lines"):
        return
    try:
        names = json.loads(head) if kind == "JSON lines" else _opened(path, kind)[1].names
    except CorpusError:  # the file cannot be opened as a table, so the names are unknown
        names = []
    # The file is plain text that begins with a brace, not JSON.
    except (ValueError, RecursionError):
        return
    listed = f": {shown_names(names)}" if names else ""
    raise CorpusError(f"{path} is {kind}; select its text column with --text-column{listed}")


def is_named_csv(path: str) -> bool:
    """Return whether a file's name ends in .csv, possibly followed by a compression suffix."""
    return PurePath(path).suffix.lower() == ".csv" or ".csv." in path.lower()


# ---- rows ----


def read_rows(
    table: Table, file: CorpusFile | None = None, joined: bool = False
) -> Iterator[tuple[int, Row]]:
    """Yield each row of a table with its number, counted from 1.

    With `joined`, several rows of one line each may be yielded together as one text, with the
    number of the last row.

    Raises
    ------
    CorpusError
        A column is missing or not text, a row cannot be read, or a package is not installed.
    """
    if not table.text:
        raise UsageError(
            f"{table}: no text column is selected; select one with --text-column, or as the second "
            "argument of Table"
        )
    if table.rows is not None:
        yield from enumerate(rows_of_dicts(table, table.rows), 1)
        return
    with file or CorpusFile(table.path) as file:
        number, kinds, forms = 0, set[bool](), set[bool]()
        try:
            number = _rows_before(table)
            for values in _with_partition(table, file, joined):
                if isinstance(values, bytes):
                    row = Row((), values, False)
                    number += values.count(b"\n")
                else:
                    row = _row(table, values)
                if row.is_tokenized not in kinds and row.text is not None:
                    kinds.add(row.is_tokenized)
                    _check_one_kind(kinds)
                if row.is_indicator is not None:
                    _check_one_form(forms, row.is_indicator)
                number += 1
                yield number, row
        except CorpusError:
            raise
        except (ValueError, OSError, RecursionError, MemoryError, csv.Error) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            if isinstance(error, UnicodeDecodeError):
                reason = f"is not UTF-8 ({error.reason}); convert the file to UTF-8"
            if "new-line character seen" in reason:
                reason = (
                    "has a carriage return within a line; replace it with a line feed, or quote "
                    "the field"
                )
            advice = "" if ";" in reason else "; repair the file, or get it again"
            raise CorpusError(f"{table}: row {number + 1}: {reason}{advice}") from None


def rows_of_dicts(table: Table, items: Iterable[Any]) -> Iterator[Row]:
    """Convert each dict to a `Row`; the first dict must have all columns."""
    forms = set[bool]()
    for number, item in enumerate(items, 1):
        try:
            if not isinstance(item, Mapping):
                raise ValueError(
                    f"--text-column requires files or dicts, not {type(item).__name__}; omit "
                    "--text-column"
                )
            if number == 1:
                _check_columns(table, item, _missing(item, table.names))
            row = _row(table, [_field(item, name) for name in table.names])
            if row.is_indicator is not None:
                _check_one_form(forms, row.is_indicator)
            yield row
        except ValueError as error:
            raise UsageError(f"{table}: item {number}: {error}") from None


def _row(table: Table, values: Sequence[Any]) -> Row:
    """Convert one row's values in the columns `Table.names` to a `Row`."""
    value, count, first = values[0], len(table.text), len(table.text) + len(table.label)
    kept = tuple(values[first:])
    text: bytes | None
    if count == 1 and type(value) is str and "\0" not in value and not table.whole:
        text, is_tokenized = plain_lines(value.encode("utf-8", "replace")), False
    else:
        texts = [
            text_of(value.decode() if isinstance(value, bytes) else value)
            for value in values[:count]
            if not is_null(value)
        ]
        _check_one_kind(kinds := {isinstance(one, Tokenized) for one in texts})
        is_tokenized = True in kinds
        text = (b"\n" if is_tokenized else b" ").join(map(bytes_of, texts))
        if b"\0" in text:
            raise ValueError("the text contains a NUL character; remove it")
        text = b" ".join(text.split()) if table.whole and not is_tokenized else plain_lines(text)
        text = text if texts else None
    if text is not None and len(text) > LINE_BYTES:
        raise ValueError(f"the text has more than {LINE_BYTES:,} bytes; split the text")
    if not table.label:
        return Row((), text, is_tokenized, kept)
    found = list(map(labels_in, table.label, values[count:first]))
    labels = found[0] if len(found) == 1 else tuple(itertools.chain.from_iterable(found))
    form = None
    if len(found) > 1 and any(found):
        form = all(one in INDICATORS for one in found)
    if form:
        labels = tuple(
            name for name, one in zip(table.label, found, strict=True) if INDICATORS[one]
        )
    if not labels and any(found):
        labels = NoneOfThese()
    return Row(labels, text, is_tokenized, kept, form)


def _check_one_form(forms: set[bool], form: bool) -> None:
    forms.add(form)
    if len(forms) > 1:
        raise ValueError(
            "the label columns contain only 0 and 1 in some rows, but other values in other rows, "
            "so it is not clear whether 0 and 1 are labels; join the labels with | in one column"
        )


def _check_one_kind(kinds: set[bool]) -> None:
    if len(kinds) > 1:
        raise ValueError(
            "the text columns contain both text and lists of tokens; use either text or lists in "
            "all rows"
        )


def _field(record: Mapping[str, Any], name: str, absent: Any = None) -> Any:
    """Return a column's value in a JSON object; the name ``a.b`` means field b of column a."""
    if name in record:
        return record[name]
    value: Any = record
    for part in name.split("."):
        value = value.get(part, absent) if isinstance(value, Mapping) else absent
    return value


def shown_names(names: Iterable[str]) -> str:
    """List column names in a message, which shows only the first names and characters."""
    return ", ".join(f"{name!s:.60}" for name in itertools.islice(names, _SHOWN)) or "none"


def _missing(record: Mapping[str, Any], names: Iterable[str]) -> set[str]:
    return {name for name in names if _field(record, name, names) is names}


def _check_distinct(table: Table, names: Sequence[str]) -> None:
    for name in table.names:
        if names.count(name) > 1:
            raise CorpusError(f"{table} has two columns named {name!r}; rename one of the columns")


def _check_columns(table: Table, names: Iterable[str], missing: set[str]) -> None:
    """Raise an error that lists the existing columns if `missing` is not empty."""
    for name in table.names:
        if name in missing:
            listed = [f'"{one}"' if "," in str(one) else one for one in names]
            raise CorpusError(
                f"{table} has no column {name!r}; choose one of its columns: {shown_names(listed)}"
            )


# ---- formats ----


def _records(table: Table, file: CorpusFile, joined: bool) -> Iterator[Sequence[Any] | bytes]:
    """Yield each row's requested values or, if `joined`, the texts of many rows joined as lines."""
    reader = io.BufferedReader(file, PIECE_BYTES)
    kind = sniff(reader.peek(8))
    if kind in BINARY:
        yield from _arrow_records(table, kind, file, reader, joined)
        return
    lines = (line.decode() for _, line in split_lines(reader, table.path))
    yield from _json_records(table, lines) if kind == "JSON lines" else _csv_records(table, lines)


def _with_partition(
    table: Table, file: CorpusFile, joined: bool
) -> Iterator[Sequence[Any] | bytes]:
    """Add the column values that folder names such as ``label=a`` define to each record."""
    given = partition_of(table.path)
    if not (fixed := {name: given[name] for name in table.names if name in given}):
        yield from _records(table, file, joined)
        return
    left = tuple(dict.fromkeys(name for name in table.names if name not in fixed))
    if not left:
        raise CorpusError(
            f"{table}: all selected columns come from folder names; also select a column that is "
            "in the files"
        )
    for values in _records(replace(table, text=left, label=(), keep=()), file, False):
        found = {**dict(zip(left, values, strict=True)), **fixed}
        yield [found[name] for name in table.names]


def partition_of(path: str) -> dict[str, str | None]:
    """Return the columns that Hive-style folder names define, such as ``year=1984/label=a``."""
    pairs = (part.partition("=") for part in PurePath(path).parts[:-1] if "=" in part)
    return {unquote(name): _partition_value(value) for name, _, value in pairs if name}


def _partition_value(text: str) -> str | None:
    return None if text == "__HIVE_DEFAULT_PARTITION__" else unquote(text)


def _json_records(table: Table, lines: Iterator[str]) -> Iterator[Sequence[Any]]:
    names, missing, values = table.names, {*table.names}, dict[str, Any]()
    for number, line in enumerate(line for line in lines if line.strip()):
        try:
            values = json.loads(line, object_pairs_hook=distinct)
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", None) or f"{error!s:.80}"
            raise ValueError(
                f"the line is not valid JSON ({reason}); write one JSON object per line"
            ) from None
        if not isinstance(values, dict):
            raise ValueError("the line is not a JSON object; write one JSON object per line")
        if missing:
            missing = _missing(values, missing)
            if number + 1 == SEEN_ROWS:
                _check_columns(table, values, missing)
        yield [values[name] if name in values else _field(values, name) for name in names]
    if values:
        _check_columns(table, values, missing)


def _csv_records(table: Table, lines: Iterator[str]) -> Iterator[Sequence[Any]]:
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return
    if first.strip() == "[" or first.lstrip().startswith("[{"):
        raise CorpusError(f"{table}{_ARRAY}")
    delimiter = max(DELIMITERS, key=first.count)
    csv.field_size_limit(LINE_BYTES)
    size = 0  # number of characters in the current CSV row, which can span several lines

    def counted() -> Iterator[str]:
        nonlocal size
        for line in itertools.chain([first], lines):
            size += len(line)
            if size > LINE_BYTES:
                raise ValueError(f"the row has more than {LINE_BYTES:,} characters; split the row")
            yield line

    rows = csv.reader(counted(), delimiter=delimiter, strict=True)
    header = next(rows)
    _check_distinct(table, header)
    _check_columns(table, header, {*table.names} - {*header})
    places = [header.index(name) for name in table.names]
    for row in rows:
        size = 0
        if row and len(row) != len(header):
            raise ValueError(
                f"the row has {len(row)} fields, but the header has {len(header)} fields; correct "
                "the row"
            )
        if row:
            yield [row[place] for place in places]


def _opened(path: str, kind: str, reader: Any = None) -> tuple[Any, Any]:
    """Open a Parquet or Arrow file with pyarrow; return the reader and the schema."""
    parquet = import_optional("pyarrow.parquet", f" to read {kind}", f"{path}: ", CorpusError)
    import pyarrow as pa

    is_file = path != STANDARD and not is_address(path) and Path(path).is_file()
    if kind != "an Arrow stream" and not is_file:
        raise CorpusError(
            f"{path}: {kind} can be read only from regular files; save the data to a file"
        )
    try:
        if kind == "Parquet":
            source = parquet.ParquetFile(path, pre_buffer=False, buffer_size=PIECE_BYTES)
            return source, source.schema_arrow
        if kind == "an Arrow stream":
            source = pa.ipc.open_stream(reader or path)
        else:
            source = pa.ipc.open_file(pa.OSFile(path))
        return source, source.schema
    except NotImplementedError as error:  # a column has an undefined type, so the file is corrupt
        raise ValueError(str(error)) from None


def _arrow_records(
    table: Table, kind: str, file: CorpusFile, reader: Any, joined: bool
) -> Iterator[Sequence[Any] | bytes]:
    if kind != "an Arrow stream" and file.packed:
        raise CorpusError(f"{table}: {kind} cannot be read compressed; decompress the file")
    source, schema = _opened(table.path, kind, reader)
    import pyarrow as pa  # `_opened` has already raised an error if pyarrow is not installed

    empty = pa.RecordBatch.from_pylist([], schema)
    missing = {name for name in table.names if _column(empty, name) is None}
    _check_distinct(table, schema.names)
    _check_columns(table, schema.names, missing)
    wanted = {*table.names, *(name.split(".")[0] for name in table.names)}
    chosen = [name for name in schema.names if name in wanted]
    joined = joined and len(table.names) == 1 and not table.whole
    names = {name: one for name in table.label if (one := _names_of_labels(table, schema, name))}
    try:
        if kind == "Parquet":
            groups = range(source.num_row_groups) if table.group is None else [table.group]
            most = _rows_at_once(table.path, source.metadata)
            batches = source.iter_batches(most, groups, columns=chosen, use_threads=False)
        elif kind == "Arrow":
            batches = map(source.get_batch, range(source.num_record_batches))
        else:
            batches = iter(source)
        for batch in batches:
            whole = batch.select(chosen)
            whole.validate(full=True)  # offsets in a corrupt file can point outside the buffer
            check_expansion(table.path, stored_size(table) or file.bytes_read, whole.nbytes)
            columns = [_named(_column(whole, name), names.get(name)) for name in table.names]
            _check_types(column.type for column in columns)
            step = BYTES_AT_ONCE * whole.num_rows // max(whole.nbytes, 1)
            step = min(max(step, 1), ROWS_AT_ONCE)
            lists = (_lists(column, step, table.path) for column in columns)
            for values in zip(*lists, strict=True):
                text = _joined(values[0]) if joined else None
                yield from zip(*values, strict=True) if text is None else [text]
    except pa.ArrowException as error:
        raise ValueError(str(error)) from None


def _column(batch: Any, name: str) -> Any:
    """Return a column of a batch, or None if it is missing; ``a.b`` means field b of column a."""
    import pyarrow.compute as pc

    root, *fields = [name] if name in batch.schema.names else name.split(".")
    try:
        return pc.struct_field(batch.column(root), fields) if fields else batch.column(root)
    except (KeyError, pc.pa.ArrowException):
        return None


def _names_of_labels(table: Table, schema: Any, column: str) -> list[str] | None:
    """Return the class names that the datasets library stored for a column of class numbers.

    The datasets library stores the names in the schema of the file and, for a folder, in
    dataset_info.json.
    """
    found: Any = None
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        found = json.loads((schema.metadata or {})[b"huggingface"])["info"]["features"][column]
    if found is None and (about := Path(table.path).parent / DATASET_INFO).is_file():
        features = read_json(about, "write the folder again").get("features")
        found = features.get(column) if isinstance(features, dict) else None
    # In the metadata, the entry "feature" of a list column describes the type of the list items.
    while isinstance(found, dict) and "feature" in found:
        found = found["feature"]
    names = found.get("names") if isinstance(found, dict) else None
    is_sound = isinstance(names, list) and all(isinstance(one, str) for one in names)
    return names if is_sound and found.get("_type") == "ClassLabel" else None


def _named(column: Any, names: list[str] | None) -> Any:
    """Replace class numbers in a column with class names; -1 means no label."""
    if names is None:
        return column
    import pyarrow as pa

    def name(value: Any) -> Any:
        if isinstance(value, list):
            return [name(one) for one in value]
        if not isinstance(value, int) or value == -1:
            return None if value == -1 else value
        if 0 <= value < len(names):
            return names[value]
        raise ValueError(
            f"class {value} has no name, because the file contains names for only {len(names)} "
            "classes; create a complete file"
        )

    return pa.array([name(one) for one in column.to_pylist()])


def _check_types(types: Iterable[Any]) -> None:
    """Reject Arrow types whose values can share bytes, because their decoded size is unbounded."""
    import pyarrow as pa

    for one in types:
        inner = [one.field(number).type for number in range(one.num_fields)]
        if pa.types.is_dictionary(one):
            inner = [one.value_type]
        if (
            pa.types.is_run_end_encoded(one)
            or "list_view" in str(one)
            or any(map(pa.types.is_dictionary, inner))
        ):
            raise ValueError(
                f"the column type {one!s:.60} is not supported; convert the column to text or lists"
            )
        _check_types(inner)


def _lists(column: Any, step: int, path: str) -> Iterator[list[Any]]:
    """Yield the values of a column in lists of at most `step` values.

    A value of a dictionary column is one object, however many rows have it.
    """
    import pyarrow as pa

    def values(part: Any) -> list[Any]:
        try:
            return part.to_pylist()
        except ValueError:  # pyarrow converts nanosecond timestamps only if pandas is installed
            import_optional("pandas", " to read nanoseconds", f"{path}: ", CorpusError)
            raise

    words = values(column.dictionary) if pa.types.is_dictionary(column.type) else None
    for first in range(0, len(column), step):
        part = column.slice(first, step)
        if words is None:
            yield values(part)
        else:
            yield [None if place is None else words[place] for place in part.indices.to_pylist()]


def _joined(values: list[Any]) -> bytes | None:
    """Join texts as lines; return None if any text is not exactly one line."""
    try:
        texts = ["" if value is None else value for value in values]
        text = "\n".join(texts) if sum(map(len, texts)) <= BYTES_AT_ONCE else "\0"
    except TypeError:
        return None
    is_plain = "\0" not in text and text.count("\n") == len(values) - 1
    return text.encode("utf-8", "replace") if is_plain else None


def _rows_at_once(path: str, metadata: Any) -> int:
    """Return how many rows of a Parquet file to decode at once.

    The metadata of single columns is not read, because damaged metadata makes pyarrow end the
    process.

    Raises
    ------
    CorpusError
        According to the metadata, a row group decodes to far more bytes than the file has.
    """
    most, stored = DECODED_ROWS, Path(path).stat().st_size
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    sizes = [max(group.total_byte_size, 1) for group in groups]
    for group, size in zip(groups, sizes, strict=True):
        check_expansion(path, stored, size)
        # If a file is highly compressed, even one row may need a large dictionary, so assume that
        # each row group has only 16 rows.
        rows = group.num_rows if sum(sizes) < MOST_COMPRESSED * stored else 16
        most = min(most, BYTES_AT_ONCE * rows // size)
    return max(most, 1)


def kept_types(sources: Iterable[Source]) -> dict[str, Any]:
    """Return the Arrow type of each `Table.keep` column that has the same type in all files."""
    found: list[dict[str, Any]] = []
    for table in sources:
        kind = None
        if isinstance(table, Table) and table.rows is None and table.path != STANDARD:
            kind = kind_of_table(table.path)
        if not isinstance(table, Table) or kind not in BINARY:
            return {}
        import_optional("pyarrow", f" to read {kind}", f"{table}: ", CorpusError)
        import pyarrow as pa

        empty = pa.RecordBatch.from_pylist([], _opened(table.path, str(kind))[1])
        columns = {name: _column(empty, name) for name in table.keep}
        found.append({name: one.type for name, one in columns.items() if one is not None})
    first = found[0] if found else {}
    return {n: kind for n, kind in first.items() if all(one.get(n) == kind for one in found)}


def row_groups(table: Table) -> list[Table]:
    """Split a Parquet file into one table per row group; return other tables unchanged."""
    if kind_of_table(table.path) != "Parquet":
        return [table]
    count = _opened(table.path, "Parquet")[0].num_row_groups
    return [replace(table, group=group) for group in range(count)] or [table]


def _rows_before(table: Table) -> int:
    """Return the number of rows that precede the selected row group in a Parquet file."""
    if not table.group:
        return 0
    about = _opened(table.path, "Parquet")[0].metadata
    if table.group >= about.num_row_groups:
        raise ValueError(
            f"the file has only {about.num_row_groups} row groups; use a lower row-group number"
        )
    return sum(about.row_group(group).num_rows for group in range(table.group))


def kind_of_table(path: str) -> str | None:
    """Detect a table's format by magic bytes; return None for CSV, text and compressed files."""
    with CorpusFile(path, begins=True) as file:
        return None if file.packed else sniff(io.BufferedReader(file).read(_HEAD))
