"""What a file or folder of this program holds, and the command that made it.

`describe` detects the kind from the content; `dcme-w2v info` prints it.
"""

import itertools
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.opening import CorpusFile, head_of, read_lines, read_regular, read_whole
from dcme_w2v.formats.artifact import describe_model, kind_of_artifact
from dcme_w2v.formats.npy import read_npy
from dcme_w2v.formats.sparse_io import is_vectors, read_arrays, read_npz, read_svmlight
from dcme_w2v.formats.vectors.fasttext import LOSSES, MODELS, load_words, open_model
from dcme_w2v.formats.vectors.manifest import command_of, read_manifest
from dcme_w2v.formats.vectors.safetensors import open_safetensors
from dcme_w2v.formats.vectors.static_folder import is_static_folder, load_static_folder
from dcme_w2v.formats.vectors.vectors_io import (
    is_manifest,
    load_vectors,
    read_with,
    vocabulary_path,
)
from dcme_w2v.formats.vectors.vectors_reader import kind_of_file, open_rows
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import I64, Array
from dcme_w2v.platform import PathLike
from dcme_w2v.text.phrases import PhraseTable
from dcme_w2v.training.checkpoint_folder import RECORD, generations_in, read_record
from dcme_w2v.training.progress import is_log, read_log

Facts = dict[str, Any]

FIRST_WORDS = 10
_COUNT_LINE = re.compile(rb"\S+ [0-9]+\r?\n?")
_PHRASE_LINE = re.compile(rb"[0-9]+\t\S+\t\S+\t[0-9]+\t\S+(\t\S+( \S+)*)?\n?")


def describe(path: PathLike) -> Facts:
    """Return what a file or folder holds.

    Parameters
    ----------
    path : path
        Word vectors, a model's folder, a checkpoint, a manifest, a log of --log-json, a vocabulary,
        a table of phrases, sparse rows or other arrays (.npz, .svm, .npy). Files may be compressed.

    Returns
    -------
    dict
        ``file`` and ``kind``; other keys depend on the kind. ``made_by`` is the command line, if
        it is recorded.

    Raises
    ------
    FormatError
        It is none of these, or corrupt.
    UsageError
        It is a stream.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> dw.Vectors(["tea", "coffee"], [[1, 0], [2, 1]]).save("v.txt")
    >>> dw.describe("v.txt")["kind"], dw.describe("v.txt")["rows"]
    ('word vectors', 2)
    """
    name = os.fspath(path)
    if is_stream(name):
        raise UsageError(f"{name}: is a stream; give a file or folder")
    facts: Facts = {"file": name}
    if Path(name).is_dir():
        return facts | _folder(Path(name))
    size = Path(name).stat().st_size
    return facts | {"bytes": size} | _file(name)


# ---- folders ----


def _folder(path: Path) -> Facts:
    if is_static_folder(path):
        return _static(path)
    folders = [path] if (path / RECORD).exists() else generations_in(path)
    if not folders:
        raise FormatError(
            f"{path}: is no folder of checkpoints or static embeddings; give one, or a file"
        )
    record = read_record(folders[-1] / RECORD)
    position, data = record["position"], record["data"]["described"]
    facts = {"kind": f"checkpoint of {record['kind']}", "bytes": _bytes_in(path)}
    facts |= {"generations": [one.name for one in folders], "epoch": position["epoch"]}
    facts |= {"seconds": position["seconds"], "data": data}
    return facts | _with_command(
        {key: record.get(key) for key in ("version", "kernels", "options", "files", "argv")}
    )


def _static(path: Path) -> Facts:
    found = load_static_folder(path)
    facts: Facts = {"kind": "static embeddings", "bytes": _bytes_in(path)}
    return facts | _words(found.matrix, found.words) | _with_command(found.made or {})


def _bytes_in(path: Path) -> int:
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())


def _with_command(found: Mapping[str, Any]) -> Facts:
    """Return entries of a record with ``argv`` first, as ``made_by``."""
    rest = {key: value for key, value in found.items() if key != "argv" and value is not None}
    command = command_of(found.get("argv"))
    return rest if command is None else {"made_by": command, **rest}


# ---- files ----


def _file(path: str) -> Facts:
    readers = {"npy": _npy, "safetensors": _safetensors, "fasttext": _fasttext}
    if kind_of_artifact(path) is not None:
        found = describe_model(path)
        return {"kind": f"model: {found.pop('kind')}", **_with_command(found)}
    if (kind := kind_of_file(path)) is not None:
        return readers[kind](path)
    if path.lower().endswith(".npz"):
        return _npz(path)
    with CorpusFile(path) as file:
        compressed = file.compression
    facts = {} if compressed is None else {"compression": compressed}
    if is_vectors(path):
        return facts | _svmlight(path)
    lines = [] if b"\0" in head_of(path) else list(itertools.islice(read_lines(path), 2))
    for fits, describing in _TEXTS:
        if lines and fits(path, lines):
            return facts | describing(path)
    return facts | _vectors(path)


def _npy(path: str) -> Facts:
    if not vocabulary_path(path).exists():
        matrix = read_npy(path)
        return {"kind": "array", "dtype": str(matrix.dtype), "shape": list(matrix.shape)}
    words, matrix, counts = load_vectors(path)
    facts: Facts = {"kind": "word vectors", "format": "npy", "beside": read_with(path)[:1]}
    return facts | _words(matrix, words, counts) | _manifest_beside(path)


def _safetensors(path: str) -> Facts:
    tensors = open_safetensors(path)
    numbers = "float32" if tensors.scales is None else "int8 with a scale per row"
    facts: Facts = {"kind": "word vectors", "format": "safetensors", "numbers": numbers}
    first = load_vectors(path, limit=FIRST_WORDS)[0]
    return facts | _words(tensors.vectors, first, tensors.counts) | _manifest_beside(path)


def _words(matrix: Array, words: Sequence[str], counts: I64 | None = None) -> Facts:
    """Return the facts of vectors of words."""
    facts: Facts = {"rows": len(matrix), "dimension": matrix.shape[1]}
    facts["first_words"] = list(words[:FIRST_WORDS])
    return facts if counts is None else facts | {"tokens": int(counts.sum())}


def _fasttext(path: str) -> Facts:
    model = open_model(path)
    header = dict(model.header)
    names = {"loss": LOSSES, "model": MODELS}
    header |= {key: known.get(header[key], header[key]) for key, known in names.items()}
    facts: Facts = {"kind": "model of fastText", "rows": len(model.words)}
    facts |= {"dimension": header.pop("dim"), "subwords": None}
    shortest, longest = header.pop("shortest"), header.pop("longest")
    if model.subwords is not None:
        facts["subwords"] = f"{shortest}-{longest}"
    facts["first_words"] = list(load_words(model, path, FIRST_WORDS)[0])
    return facts | header | _manifest_beside(path)


def _vectors(path: str) -> Facts:
    with open_rows(path) as reader:
        facts: Facts = {"kind": "word vectors", "format": "binary" if reader.binary else "text"}
        facts |= {"rows": reader.promised, "dimension": reader.dim}
        if reader.promised is None:
            for _ in reader.parts(keep=False):
                pass
            facts |= {"rows": reader.rows, "header": False}
    facts["first_words"] = list(load_vectors(path, limit=FIRST_WORDS)[0])
    return facts | _manifest_beside(path)


def _manifest_beside(path: str) -> Facts:
    found = read_manifest(path)
    return _with_command(found) if found else {}


def _npz(path: str) -> Facts:
    arrays = {name: f"{one.dtype} {one.shape}" for name, one in read_arrays(path).items()}
    if "indptr" not in arrays and "row" not in arrays:
        return {"kind": "arrays", "arrays": arrays}
    return {"kind": "sparse rows", "format": "npz"} | _shape_of(read_npz(path))


def _svmlight(path: str) -> Facts:
    rows, labels = read_svmlight(path)
    distinct = {label for of_row in labels for label in of_row}
    return {"kind": "sparse rows", "format": "svmlight", **_shape_of(rows), "labels": len(distinct)}


def _shape_of(rows: Any) -> Facts:
    height, width = rows.shape
    density = rows.nnz / max(1, height * width)
    return {"rows": height, "columns": width, "entries": int(rows.nnz), "density": density}


def _vocabulary(path: str) -> Facts:
    if (numbers := _classes(path)) is not None:
        return {"kind": "classes of words", "words": len(numbers), "classes": len(set(numbers))}
    found = Vocabulary.load(path)
    facts = {"kind": "vocabulary", "words": len(found), "tokens": int(found.counts.sum())}
    return facts | {"smallest_count": int(found.counts[-1]), "first_words": list(found[:10])}


def _classes(path: str) -> list[int] | None:
    """Return the numbers of lines "word class", which have a class 0, as no count is."""
    lines = read_whole(path).splitlines()
    if not all(map(_COUNT_LINE.fullmatch, lines)):
        return None
    numbers = [int(line.rsplit(b" ", 1)[1]) for line in lines]
    return None if all(numbers) else numbers


def _phrases(path: str) -> Facts:
    passes = PhraseTable.load(path).passes
    return {"kind": "table of phrases", "phrases": [len(one) for one in passes]}


def _manifest(path: str) -> Facts:
    return {"kind": "manifest", **_with_command(json.loads(read_regular(path)))}


def _log(path: str) -> Facts:
    facts: Facts = {"kind": "log of training", "events": 0, "epochs": 0}
    for record in read_log(path):
        facts["events"] += 1
        if record["event"] == "epoch":
            facts["epochs"] += 1
            facts["last_epoch"] = {key: value for key, value in record.items() if key != "event"}
        if record["event"] == "end":
            facts["ended"] = record.get("error", True)
    return facts


def _is_manifest(path: str, lines: Sequence[bytes]) -> bool:
    return lines[0].lstrip()[:1] == b"{" and is_manifest(Path(path))


# How to detect each kind of text by its first two lines, and what to report of it.
_TEXTS: tuple[tuple[Callable[[str, Sequence[bytes]], bool], Callable[[str], Facts]], ...] = (
    (_is_manifest, _manifest),
    (lambda path, _: is_log(path), _log),
    (lambda _, lines: all(map(_PHRASE_LINE.fullmatch, lines)), _phrases),
    (lambda _, lines: all(map(_COUNT_LINE.fullmatch, lines)), _vocabulary),
)


# ---- text ----


def as_text(facts: Mapping[str, Any], indent: str = "") -> str:
    """Return facts as lines ``key: value``; facts of a mapping are indented below the key."""
    lines = []
    for key, value in facts.items():
        name = f"{indent}{_printable(key.replace('_', ' '))}"
        if isinstance(value, Mapping) and value:
            lines += [f"{name}:", as_text(value, indent + "  ")]
        else:
            lines.append(f"{name}: {_shown(value)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not given"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str):
        return _printable(value)
    if isinstance(value, list):
        more = f" ... ({len(value)} in total)" if len(value) > FIRST_WORDS else ""
        return ", ".join(_shown(one) for one in value[:FIRST_WORDS]) + more
    if isinstance(value, Mapping):
        return ", ".join(f"{_printable(key)} {_shown(one)}" for key, one in value.items())
    return str(value)


def _printable(text: str) -> str:
    """Return a text without control characters, which a terminal would obey."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
