"""Read and write word vectors in every format, using a table of readers and writers."""

import json
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v import __version__
from dcme_w2v._core.codec import check_words, find_duplicates, write_rows
from dcme_w2v.declarations import check_choice
from dcme_w2v.errors import FormatError, UsageError, import_optional, warn, without_secrets
from dcme_w2v.files.atomic import NOT_TEXT, atomic_write, is_stream, suffixes_of
from dcme_w2v.files.opening import read_json
from dcme_w2v.numeric.arrays import F32, U8, infinite_row
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.platform import PathLike, path_name, peak_memory

from ..artifact import check_model_target, load_model, recorded_arguments, save_model, words_arrays
from ..vocabulary import Vocabulary, Words, check_lengths, no_faults
from .fasttext import LONGEST, read_fasttext, write_fasttext
from .subwords import Subwords
from .tables import NEIGHBORS, T, WordTables, blocks_of
from .vectors_reader import (
    DIMENSION,
    DUPLICATE,
    FAULT_NAMES,
    MAX_DIM,
    Part,
    RowReader,
    open_rows,
)

KIND, VERSION = "vectors", 1  # kind and version in the metadata of safetensors vector files
# Value of the metadata field `kind` in checkpoint files; it distinguishes checkpoints from vector
# files, which use the same array names.
CHECKPOINT = "checkpoint"
_NO_VECTORS = NOT_TEXT | {".svm", ".svmlight", ".libsvm", ".svg"}
# File name suffixes that suggest a text format other than word2vec's.
_NOT_SO = {".csv", ".tsv", ".json"}


def save_vectors(
    path: PathLike, tables: WordTables, format: str | None = None, header: bool = True
) -> None:
    """Write word vectors, and all additional tables that the format supports.

    Parameters
    ----------
    path : path
        Written atomically; ``-`` is standard output (text, binary).
    tables : WordTables
        Arrays may be views with any strides; they are not copied as a whole.
    format : str, optional
        One of `FORMATS`; by default chosen by the suffix, or else text.
    header : bool
        Whether the first line of text has the numbers of rows and dimensions.

    Raises
    ------
    FormatError
        A number is not finite, or a word is empty, repeated, not UTF-8, or contains a separator or
        a NUL byte. The target is unchanged.
    UsageError
        The format cannot be written to this name, or needs tables that are missing.
    """
    chosen = FORMATS[check_target(path, format)]
    check_before_writing(path, tables.words, tables.vectors)
    chosen.write(path, tables, header)
    if not chosen.record_beside or tables.manifest is None or is_stream(path):
        return
    target = Path(f"{os.fspath(path)}{MANIFEST}")  # the manifest, which no command requires
    if target.exists() and target.stat().st_size and read_manifest(path) is None:
        warn(f"{target} was not overwritten, because it is not a manifest; rename this file")
        return
    with atomic_write(target) as file:
        file.write(json.dumps(tables.manifest, indent=2, allow_nan=False).encode() + b"\n")


# ---- writing ----


def _write_safetensors(path: PathLike, tables: WordTables, header: bool) -> None:
    arrays: dict[str, Any] = {**tables.arrays()}
    if tables.counts is not None:
        arrays["counts"] = tables.counts
    record: dict[str, Any] = {"manifest": tables.manifest}
    if (subwords := tables.subwords) is not None:
        record["ngram_lengths"] = [subwords.shortest, subwords.longest]
    save_model(path, KIND, VERSION, {**arrays, **words_arrays(tables.words)}, record)


def _write_rows(path: PathLike, tables: WordTables, header: bool, is_binary: bool = False) -> None:
    """Write rows in word2vec's text format (header optional) or binary format (always a header)."""
    words = tables.words

    def as_bytes(part: tuple[int, F32]) -> U8:
        return write_rows(is_binary, part[1], words.text, words.offsets, part[0])

    with atomic_write(path) as file:
        if header or is_binary:
            file.write(b"%d %d\n" % tables.vectors.shape)
        for rows in ordered_map(as_bytes, blocks_of(tables.vectors)):
            file.write(rows.data)


def _numbers(tables: WordTables) -> Iterator[bytes]:
    """Yield each vector as text, with its values separated by spaces."""
    words = tables.words
    for first, block in blocks_of(tables.vectors):
        rows = write_rows(False, block, words.text, words.offsets, first).tobytes()
        for number, row in enumerate(rows.split(b"\n")[:-1], first):
            yield row[len(words.raw(number)) + 1 :]


def _write_json_lines(path: PathLike, tables: WordTables, header: bool) -> None:
    """Write one JSON object per line: the word, its count if known, and its vector."""
    words, counts = tables.words, tables.counts
    with atomic_write(path) as file:
        for number, numbers in enumerate(_numbers(tables)):
            start = json.dumps({"word": words[number]})[:-1]
            if counts is not None:
                start += f', "count": {counts[number]}'
            numbers = numbers.replace(b" ", b", ")
            file.write(start.encode() + b', "vector": [' + numbers + b"]}\n")


def metadata_of(path: PathLike) -> Path:
    """Return the path of the words file that accompanies an Embedding Projector file."""
    name = os.fspath(path)
    return Path(name[: len(name) - len(suffixes_of(path)[1])]).with_suffix(".metadata.tsv")


def _write_projector(path: PathLike, tables: WordTables, header: bool) -> None:
    """Write tab-separated vectors to one file, and words (with counts if known) to another."""
    words, counts = tables.words, tables.counts
    if is_stream(path):
        raise UsageError(
            f"{os.fspath(path)}: tsv output consists of two files, which cannot be written to a "
            "stream; choose a file"
        )
    with atomic_write(path) as file, atomic_write(metadata_of(path)) as names:
        names.write(b"" if counts is None else b"word\tcount\n")
        for number, numbers in enumerate(_numbers(tables)):
            file.write(numbers.replace(b" ", b"\t") + b"\n")
            count = b"" if counts is None else b"\t%d" % counts[number]
            names.write(words.raw(number) + count + b"\n")


def _write_parquet(path: PathLike, tables: WordTables, header: bool) -> None:
    """Write Parquet columns: word, count (if known) and vector (a list of fixed length)."""
    pyarrow = import_optional("pyarrow", f" to write {path}")
    parquet = import_optional("pyarrow.parquet", f" to write {path}")
    columns = {"word": pyarrow.array(list(tables.words), pyarrow.string())}
    if tables.counts is not None:
        columns["count"] = pyarrow.array(tables.counts)
    numbers = pyarrow.array(np.ascontiguousarray(tables.vectors).reshape(-1))
    size = tables.vectors.shape[1]
    columns["vector"] = pyarrow.FixedSizeListArray.from_arrays(numbers, size)
    with atomic_write(path) as file:
        parquet.write_table(pyarrow.table(columns), file)


@dataclass(frozen=True)
class Format:
    """A word-vector format: its suffix, its writer, and whether the manifest is a separate file.

    Attributes
    ----------
    suffix : str
        The file-name suffix that selects it; empty if there is none.
    write : callable
        Writes `WordTables` to a path; text with or without a header.
    record_beside : bool
        Whether the manifest is a separate file.
    """

    suffix: str
    write: Callable[[PathLike, WordTables, bool], None]
    record_beside: bool = True


FORMATS = {
    "text": Format("", _write_rows),
    "binary": Format(".bin", partial(_write_rows, is_binary=True)),
    "safetensors": Format(".safetensors", _write_safetensors, record_beside=False),
    "fasttext": Format("", write_fasttext),
    # Many vector databases import Parquet files.
    "parquet": Format(".parquet", _write_parquet, record_beside=False),
    # Many vector databases import JSON lines.
    "jsonl": Format(".jsonl", _write_json_lines, record_beside=False),
    # TensorFlow's Embedding Projector imports TSV files.
    "tsv": Format("", _write_projector, record_beside=False),
}
READ = ("text", "binary", "safetensors", "fasttext")


def check_format(format: str | None, known: Iterable[str] = FORMATS) -> None:
    """Raise `UsageError` if `format` is neither None nor one of `known`."""
    if format is not None:
        check_choice("--format", format, known)


def check_target(path: PathLike, format: str | None) -> str:
    """Return the format to write; raise `UsageError` if it does not fit the target's name.

    Warns if the suffix belongs to a format of text that is not written.

    Parameters
    ----------
    path : path
    format : str, optional
        By default the format of the suffix, which must then be a suffix of word vectors.
    """
    check_format(format)
    name, (suffix, compression) = path_name(path), suffixes_of(path)
    of_suffix = (known for known, one in FORMATS.items() if one.suffix == suffix != "")
    chosen = format or next(of_suffix, "text")
    if chosen == "safetensors":
        check_model_target(path, KIND)
    elif chosen in ("fasttext", "parquet") and compression:
        raise UsageError(
            f"{name}: {chosen} files cannot be written compressed; use a name that ends in {suffix}"
        )
    if format is None and chosen == "text" and suffix in _NO_VECTORS:
        raise UsageError(
            f"{name}: vectors cannot be written to a {suffix} file; choose a .safetensors, .bin "
            "or .txt file"
        )
    if format is None and suffix in _NOT_SO:
        warn(
            f"{name}: vectors cannot be written in the {suffix} format, so the file will contain "
            "word2vec text; choose a name that ends in .txt, .bin or .safetensors"
        )
    return chosen


def check_before_writing(path: PathLike, words: Words, matrix: F32) -> None:
    """Raise `FormatError` if a word or a number cannot be written to a file."""
    check_lengths(words, os.fspath(path))
    faults = no_faults()
    check_words(words.text, words.offsets, faults)
    if not isinstance(words, Vocabulary):  # only a `Vocabulary` is known to have no duplicate words
        find_duplicates(words.text, words.offsets, faults)
    for kind in np.flatnonzero(faults[:, 0]):
        row = int(faults[kind, 1])
        shown = ascii(words.raw(row).decode("utf-8", "backslashreplace"))
        raise FormatError(
            f"{os.fspath(path)}: {FAULT_NAMES[kind]} ({shown}) in row {row + 1}, so nothing was "
            "written; correct the words"
        )
    for first, block in blocks_of(matrix):
        if (wrong := infinite_row(block)) is not None:
            row = first + wrong
            raise FormatError(
                f"{os.fspath(path)}: the vector of {words[row]!a} in row {row + 1} is NaN or "
                "infinite, so nothing was written; train with a lower learning rate"
            )


# ---- reading ----


def load_vectors(
    path: PathLike, kind: str | None, limit: int | None, mmap: bool, make: type[T]
) -> T:
    """Read word vectors from a file of a known format; memory-mapped values are not checked.

    Raises
    ------
    FormatError
        The file is of another kind, or is corrupt.
    """
    if kind == "safetensors":
        return _load_safetensors(path, limit, mmap, make)
    manifest = read_manifest(path)
    if kind == "fasttext":
        return read_fasttext(path, limit, mmap, manifest, make)
    with open_rows(path, None if kind is None else kind == "binary") as reader:
        return make(*_load_rows(reader, limit), manifest=manifest)


def _load_rows(reader: RowReader, limit: int | None) -> tuple[Words, F32]:
    matrix = reader.room(limit)
    found: list[Part] = []
    for part in reader.parts(keep=True, limit=limit, matrix=matrix):
        for kind in np.flatnonzero(part.faults[:, 0]):
            what = FAULT_NAMES[kind]
            if kind == DIMENSION:
                what += f" (expected: {reader.dim})"
            raise _damaged(reader.position_in(part, int(kind)), what, reader.path)
        found.append(part)
    if limit is None or reader.rows < limit:
        if reader.promised not in (None, reader.rows):
            what = f"has {reader.rows} rows, but the header says {reader.promised}"
            raise _damaged(f"{reader.path}:1", what, reader.path)
        if reader.left:
            raise _damaged(reader.path, f"{reader.left} extra bytes at the end", reader.path)
    words = Words.concatenated(found)
    faults = no_faults()
    find_duplicates(words.text, words.offsets, faults)
    if faults[DUPLICATE, 0]:
        row = int(faults[DUPLICATE, 1])
        raise _damaged(reader.row_place(row), f"duplicate word {words[row]!a}", reader.path)
    if matrix is None:
        matrix = joined([part.matrix for part in found if part.matrix is not None], reader.dim)
    return words, matrix


def joined(parts: list[F32], dim: int) -> F32:
    """Concatenate blocks of rows, and free each block after copying it."""
    matrix = np.empty((sum(map(len, parts)), dim), dtype=np.float32)
    end = len(matrix)
    while parts:
        part = parts.pop()
        matrix[end - len(part) : end] = part
        end -= len(part)
    return matrix


def _damaged(place: str, what: str, path: str) -> FormatError:
    return FormatError(f"{place}: {what}; run dcme-w2v check {path} to list all faults")


def _load_safetensors(path: PathLike, limit: int | None, mmap: bool, make: type[T]) -> T:
    model = load_model(path, (KIND, CHECKPOINT), VERSION)
    words, all_rows = model.words(), slice(None)

    def rows(name: str, dtype: str = "float32", *shape: int | None, part: Any = None) -> Any:
        if name not in model.arrays:
            return None
        checked = not mmap or not isinstance(model.arrays[name], np.memmap)
        first = len(words) if part is None else None
        found = model.array(name, dtype, first, *shape, finite=checked)[part or slice(limit)]
        return found if mmap else np.array(found)

    counts, matrix = rows("counts", "int64"), rows("vectors", "float32", None)
    context, left, right = (rows(name, "float32", None) for name in ("context", *NEIGHBORS))
    manifest, lengths = (model.description.get(name) for name in ("manifest", "ngram_lengths"))
    if matrix is None or not 1 <= matrix.shape[1] <= MAX_DIM:
        raise model.fault("vectors", "are missing, or have no dimensions")
    if manifest is not None and not isinstance(manifest, dict):
        raise model.fault("manifest", "is not a JSON object")
    if not isinstance((manifest or {}).get("options", {}), dict):
        raise model.fault("manifest.options", "is not a JSON object")
    if counts is not None and counts.min(initial=0) < 0:
        raise model.fault("counts", "has a negative number")
    subwords = None
    if lengths is not None:
        ngrams = rows("ngrams", "float32", None, part=all_rows)
        if ngrams is None or not _are_lengths(lengths):
            raise model.fault("ngrams", "are missing, or have no lengths")
        subwords = Subwords(lengths[0], lengths[1], ngrams, rows("own", "float32", None))
    words = words[:limit]
    try:
        return make(
            words, matrix, counts, manifest=manifest, subwords=subwords,
            context=None if context is None else make(words, context, counts),
            neighbors=None if left is None or right is None else (left, right),
        )  # fmt: skip
    except UsageError as error:
        raise model.fault("vectors", error.message) from None


def _are_lengths(found: Any) -> bool:
    if not isinstance(found, list) or [type(one) for one in found] != [int, int]:
        return False
    return 1 <= found[0] <= found[1] <= LONGEST


# Suffix that is appended to the name of a vector file to form the name of its manifest.
MANIFEST = ".json"


def manifest_of(
    options: Mapping[str, Any],
    corpus: Iterable[tuple[str, int | None]],
    vocabulary: int,
    tokens: Mapping[str, int],
    seconds: Mapping[str, float],
    loss: float | None,
    **more: Any,
) -> dict[str, Any]:
    """Return the manifest of a training run.

    Parameters
    ----------
    options : mapping
        The options as used, with derived values filled in.
    corpus : iterable of (path, bytes)
        The files that were read, and their sizes; None for streams.
    vocabulary : int
        Number of words.
    tokens : mapping of str to int
        `corpus`: tokens of one pass over the corpus. The others are counts of all epochs and add
        up to `corpus` times epochs: `trained` targets, `out_of_vocabulary` tokens, tokens that
        were dropped by subsampling (`subsampled`), targets without context words
        (`without_context`), and `held_out` tokens.
    seconds : mapping of str to float
        Wall time: `count` of counting words, `train` of training, `total`.
    loss : float, optional
        Mean loss of the last epoch.
    **more
        Further keys, such as held-out scores.
    """
    # Do not read the attribute `processor`: `platform` starts another process to determine its
    # value.
    system = platform.uname()
    return {
        "version": __version__,
        "options": {
            name: without_secrets(value) if isinstance(value, str) else value
            for name, value in options.items()
        },
        "corpus": [{"path": without_secrets(path), "bytes": size} for path, size in corpus],
        "vocabulary": vocabulary,
        "tokens": dict(tokens),
        **{f"{name}_seconds": round(value, 3) for name, value in seconds.items()},
        "peak_memory_bytes": peak_memory(),
        "loss": loss,
        "argv": recorded_arguments(),
        "python": platform.python_version(),
        "platform": f"{system.system}-{system.release}-{system.machine}",
        **more,
    }


def read_manifest(path: PathLike) -> dict[str, Any] | None:
    """Return the manifest in PATH.json, or None if the file is missing or not a manifest."""
    try:
        found = read_json(f"{os.fspath(path)}{MANIFEST}", "remove it")
    except (OSError, FormatError):
        return None
    return found if isinstance(found.get("options"), dict) else None


def audit_line(manifest: Mapping[str, Any]) -> str:
    """Format the token counts of a run as one line, which also reports any missing tokens."""
    tokens = manifest["tokens"]
    read = tokens["corpus"] * manifest["options"]["epochs"]
    parts = ["trained", "out_of_vocabulary", "subsampled", "without_context"]
    parts += ["held_out"] * (tokens["held_out"] > 0)
    account = " + ".join(f"{tokens[part]:,} {part.replace('_', ' ')}" for part in parts)
    lost = read - sum(tokens[part] for part in parts)
    return f"tokens: {read:,} read = {account}" + (f" + {lost:,} unaccounted for" if lost else "")
