"""Write rows as text, CSV with a header, JSON lines or Parquet, depending on the file suffix."""

import csv
import functools
import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, TypeAlias

from dcme_w2v.errors import CorpusError, UsageError, import_optional
from dcme_w2v.files.atomic import atomic_write, check_text, suffixes_of
from dcme_w2v.files.opening import plain
from dcme_w2v.platform import PathLike

ROWS_AT_ONCE = 10_000  # maximum number of rows that are converted to Parquet at once
Rows: TypeAlias = Iterable[Sequence[Any]]
TABLES = (".csv", ".parquet")
JSON_LINES = ".jsonl"


def form_of(path: PathLike, as_json: bool) -> str:
    """Return the output format of a path: its suffix for tables and JSON lines, or "" for text.

    Raises
    ------
    UsageError
        JSON is requested for a suffix that means a table, Parquet would be compressed, or the
        suffix belongs to a format that is not supported here.
    """
    form, packed = suffixes_of(path)
    if form == ".parquet" and packed:
        raise UsageError(f"{path}: Parquet files are already compressed; omit the suffix {packed}")
    if as_json and form in TABLES:
        raise UsageError(
            f"--json: {path} cannot contain JSON; omit --json, or choose a .jsonl file"
        )
    if as_json or form in (JSON_LINES, ".json", ".ndjson"):
        return JSON_LINES
    if form in TABLES:
        return form
    check_text(path)
    return ""


def write_rows(
    path: PathLike,
    columns: Sequence[str],
    rows: Iterable[Any],
    form: str,
    is_awaited: bool = False,
    types: Mapping[str, Any] | None = None,
) -> None:
    """Write rows to a file atomically.

    Parameters
    ----------
    path : path
        ``-`` is standard output.
    columns : sequence of str
    rows : iterable of sequences, of a value for each column, or of str for text
        Lists are joined by | in CSV.
    form : str
        See `form_of`.
    is_awaited : bool
        Whether a reader awaits each row, so that each is flushed.
    types : mapping, optional
        Arrow types of columns of Parquet; see `dcme_w2v.formats.columns.kept_types`.

    Raises
    ------
    CorpusError
        A column cannot be written as Parquet.
    """
    with atomic_write(path) as file:
        if form == ".parquet":
            _write_parquet(path, file, columns, rows, types or {})
            return
        line: Callable[[Any], str] = str
        if form == JSON_LINES:
            line = functools.partial(_json_line, columns)
        elif form == ".csv":
            line = _csv_line
            file.write(_csv_line(columns).encode())
        for row in rows:
            file.write(line(row).encode("utf-8", "replace"))
            if is_awaited:
                file.flush()


def cell(value: Any) -> str:
    """Format a value as one line without tabs, and a null as an empty string."""
    return "" if value is None else " ".join(str(_joined(value)).split())


def _json_line(columns: Sequence[str], row: Sequence[Any]) -> str:
    found = plain(dict(zip(columns, row, strict=True)))
    return json.dumps(found, allow_nan=False, default=str) + "\n"


def _csv_line(row: Sequence[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(map(_joined, row))
    return line.getvalue()


def _joined(value: Any) -> Any:
    return "|".join(map(str, value)) if isinstance(value, list) else value


def _of_one_type(parts: list[Any], kind: Any) -> list[Any]:
    """Convert the chunks of a column to a common type, or to text if there is no common type."""
    import pyarrow as pa

    try:
        if kind == pa.uint64() and all(pa.types.is_integer(part.type) for part in parts):
            return [part.cast(kind) for part in parts]
        pa.unify_schemas([pa.schema({"": one.type}) for one in parts], promote_options="permissive")
        return parts
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return [pa.array([*map(_as_text, one.to_pylist())], pa.string()) for one in parts]


def _as_text(value: Any) -> str | None:
    is_text = value is None or isinstance(value, str)
    return value if is_text else json.dumps(plain(value), default=str)


def _encodable(value: Any) -> Any:
    """Replace surrogates in strings with question marks, as the writers of other formats do."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return list(map(_encodable, value))
    if isinstance(value, dict):
        return {_encodable(name): _encodable(one) for name, one in value.items()}
    return value


def _write_parquet(
    path: PathLike, file: BinaryIO, columns: Sequence[str], rows: Rows, types: Mapping[str, Any]
) -> None:
    """Write a Parquet file; keep rows in memory, as Arrow columns, until all types are known.

    A column with values of several types is written as text; values other than text are JSON.
    """
    parquet = import_optional("pyarrow.parquet", f" to write {path}")
    import pyarrow as pa

    known = dict(types)

    def array(name: str, values: Sequence[Any]) -> Any:
        try:
            return pa.array(values, known.get(name))
        except UnicodeEncodeError:  # replace unpaired surrogates, which cannot be encoded as UTF-8
            values = _encodable(values)
        except OverflowError:  # an integer does not fit in int64, so try uint64, then text
            known[name] = pa.string() if known.get(name) == pa.uint64() else pa.uint64()
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # convert values of different types to text
            known[name], values = pa.string(), [*map(_as_text, values)]
        return array(name, values)

    def tables() -> Iterator[Any]:
        left = iter(rows)
        while some := list(itertools.islice(left, ROWS_AT_ONCE)):
            named = zip(columns, zip(*some, strict=True), strict=True)
            yield pa.table({name: array(name, values) for name, values in named})

    try:
        found = list(tables()) or [pa.table({name: pa.nulls(0) for name in columns})]
        for at, name in enumerate(columns):
            if name not in types:
                parts = _of_one_type([one[name] for one in found], known.get(name))
                both = zip(found, parts, strict=True)
                found = [one.set_column(at, name, part) for one, part in both]
        parquet.write_table(pa.concat_tables(found, promote_options="permissive"), file)
    except (pa.ArrowException, UnicodeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise CorpusError(
            f"{path}: a column cannot be written as Parquet ({reason}); choose a .jsonl file"
        ) from None
