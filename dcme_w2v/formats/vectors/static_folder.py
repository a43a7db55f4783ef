"""Read and write static-embedding folders, as used by sentence-transformers and model2vec.

::

    model.safetensors  ``embeddings``: a row for each token id, float32, float16 or int8; with
                       ``weights``, row i is multiplied by weights[i]; with ``mapping``, token i has
                       row mapping[i]. sentence-transformers calls the rows ``embedding.weight``.
    tokenizer.json     the tokenizer and its vocabulary, for Hugging Face's tokenizers
    config.json        of model2vec; written here, its key ``dcme_w2v`` says how the rows were made
    modules.json       of sentence-transformers: mean of the rows, then unit length
    README.md          the model card

The vector of a text is the mean of the rows of its tokens.
"""

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import (
    atomic_write,
    check_parent,
    is_stream,
    target_of,
    temporary_path,
    write_errors,
)
from dcme_w2v.files.opening import read_json, read_regular
from dcme_w2v.numeric.arrays import F32, Array
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.platform import PathLike, set_access

from ..artifact import fault, read_tensors, tensor_pieces
from ..texts import tokens_of
from ..vocabulary import Words
from .vectors_reader import FAULT_NAMES, MAX_DIM, word_faults

ROWS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
MODULES = "modules.json"
FILES = (CONFIG, ROWS, MODULES, "README.md", TOKENIZER)
OWN = "dcme_w2v"  # key in config.json that marks folders written by dcme-w2v
_NAMES = ("embeddings", "embedding.weight")
AGAIN = "write the folder again"
_NESTED = "0_StaticEmbedding"
_MODULES = [
    {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"},
    {
        "idx": 1,
        "name": "1",
        "path": "1_Normalize",
        "type": "sentence_transformers.models.Normalize",
    },
]


@dataclass(frozen=True)
class StaticFolder:
    """The contents of a static-embedding folder.

    Attributes
    ----------
    words : Words
        The tokens that can be words; the unknown token and tokens with separators are excluded.
    matrix : ndarray of float32, shape (n, d)
    tokenizer_file : Path
    tokenizer : dict
        The contents of that file without the vocabulary.
    made : dict or None
        How the rows were made, if the folder was written here.
    is_unit : bool
        Whether its sentence vectors have unit length.
    """

    words: Words
    matrix: F32
    tokenizer_file: Path
    tokenizer: dict[str, Any]
    made: dict[str, Any] | None
    is_unit: bool


# ---- writing ----


def save_static_folder(
    path: PathLike,
    tokenizer: Mapping[str, Any],
    embeddings: Array,
    weights: F32 | None,
    made: Mapping[str, Any],
    card: str,
) -> None:
    """Write a static-embedding folder; replace an existing one only if this program wrote it.

    Parameters
    ----------
    path : path
    tokenizer : mapping
        The contents of tokenizer.json.
    embeddings : ndarray of float32, float16 or int8, shape (token ids, d)
    weights : ndarray of float32, shape (token ids,), or None
    made : mapping
        How the rows were made, for config.json.
    card : str
    """
    check_static_target(path)
    tensors = {"embeddings": embeddings}
    if weights is not None:
        tensors["weights"] = weights
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "tokenizer_name": "dcme-w2v",
        "hidden_dim": embeddings.shape[1],
        "embedding_dtype": embeddings.dtype.name,
        "max_length": None,
        "normalize": True,
        OWN: dict(made),
    }
    contents: dict[str, Iterable[bytes]] = {
        ROWS: tensor_pieces(tensors),
        "README.md": [card.encode()],
    }
    for name, value in {CONFIG: config, MODULES: _MODULES, TOKENIZER: tokenizer}.items():
        indent = None if name == TOKENIZER else 1
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
        contents[name] = [text.encode() + b"\n"]
    target = target_of(path)
    temporary = temporary_path(target)
    old = temporary.with_suffix(".old")
    with write_errors(path):
        temporary.mkdir()
        try:
            for name, pieces in contents.items():
                with atomic_write(temporary / name, path) as file:
                    file.writelines(pieces)
            check_static_target(path)
            if target.exists():
                for new in (temporary, *temporary.iterdir()):
                    if (before := target / new.relative_to(temporary)).exists():
                        set_access(new, before.stat())
                target.rename(old)
            temporary.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            _remove(temporary)
            raise
    _remove(old)


def _remove(folder: Path) -> None:
    """Remove the files that this program wrote to a folder, and the folder if it becomes empty."""
    with contextlib.suppress(OSError):
        for name in FILES:
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def check_static_target(path: PathLike) -> None:
    """Raise an error before work starts if `save_static_folder` could not write `path`."""
    if is_stream(path):
        raise UsageError(
            f"{os.fspath(path)}: a folder cannot be written to a stream; choose the path of a "
            "folder"
        )
    name = os.fspath(path)
    with write_errors(path):
        target = target_of(path)
        check_parent(name, target)
        if Path(os.path.realpath(".")).is_relative_to(target):
            raise UsageError(
                f"{name} cannot be replaced, because it is or contains the current folder; "
                "choose another folder"
            )
        if target.is_dir():
            _check_replaceable(name, target)
        elif target.exists():
            raise UsageError(f"{name} is a file; choose a folder")
        with tempfile.TemporaryFile(dir=target.parent):
            pass


def _check_replaceable(name: str, folder: Path) -> None:
    found = {one.name for one in folder.iterdir()}
    try:
        ours = not found or OWN in read_json(folder / CONFIG, AGAIN)
    except (FormatError, OSError):
        ours = False
    if not ours or found - set(FILES):
        raise UsageError(
            f"{name} cannot be replaced, because it contains files that dcme-w2v did not write; "
            "choose a new folder"
        )


# ---- reading ----


def is_static_folder(path: PathLike) -> bool:
    """Return whether a path is a folder with a tokenizer.json and a model.safetensors."""
    return any((part / TOKENIZER).exists() and (part / ROWS).exists() for part in _parts(path))


def load_static_folder(path: PathLike, limit: int | None) -> StaticFolder:
    """Read a static-embedding folder written by this program, model2vec or sentence-transformers.

    Raises
    ------
    FormatError
        The folder has no static embeddings, or is corrupt.
    """
    folder = next(part for part in _parts(path) if (part / TOKENIZER).exists())
    tokenizer = read_json(folder / TOKENIZER, AGAIN)
    tokens = _tokens_of(tokenizer, folder / TOKENIZER)
    matrix = _matrix_of(folder / ROWS, len(tokens))
    config = read_json(folder / CONFIG, AGAIN) if (folder / CONFIG).exists() else {}
    made, modules = config.get(OWN), Path(path) / MODULES
    is_unit = config.get("normalize") is True
    is_unit |= modules.is_file() and b".Normalize" in read_regular(modules)
    rule = made.get("tokenizer") if isinstance(made, dict) else None
    if not isinstance(made, dict | None) or not isinstance(rule, dict | None):
        raise fault(folder / CONFIG, f"the entry {OWN} was not written by convert", AGAIN)
    is_word = [t is not None and tokens_of(t) == [t] and "\0" not in t for t in tokens]
    kept = np.flatnonzero(is_word)[:limit]
    # If the kept rows are the first rows of the matrix, use a view instead of a copy.
    if len(kept) and kept[-1] == len(kept) - 1:
        matrix = matrix[: len(kept)]
    else:
        matrix = np.asarray(matrix[kept])
    words = Words.from_words(str(tokens[row]) for row in kept.tolist())
    faults = word_faults(words)
    if faults[:, 0].any():
        raise fault(folder / TOKENIZER, FAULT_NAMES[int(faults[:, 0].argmax())], AGAIN)
    if not np.isfinite(matrix).all():
        raise fault(folder / ROWS, "contains a NaN or infinite number", AGAIN)
    return StaticFolder(words, matrix, folder / TOKENIZER, tokenizer, made, is_unit)


def _parts(path: PathLike) -> tuple[Path, Path]:
    return Path(path), Path(path, _NESTED)


def _tokens_of(found: dict[str, Any], path: Path) -> list[str | None]:
    """Remove "model" from a parsed tokenizer.json, and return its tokens in the order of their IDs.

    None replaces the token for unknown words.
    """
    model: Any = found.pop("model", None)
    added = found.get("added_tokens") or []
    try:
        listed = model["vocab"]
        pairs = (
            dict(listed)
            if isinstance(listed, dict)
            else {token: number for number, (token, _) in enumerate(listed)}
        )
        pairs |= {one["content"]: one["id"] for one in added}
        ordered = sorted(pairs.items(), key=lambda item: item[1])
        if [number for _, number in ordered] != list(range(len(ordered))):
            raise ValueError
        tokens = [token for token, _ in ordered]
        "".join(tokens).encode()
        number = model.get("unk_id")
        unknown = tokens[number] if isinstance(number, int) else model.get("unk_token")
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise fault(path, "the token IDs in its vocabulary are not 0, 1, 2 ...", AGAIN) from None
    return [None if token == unknown else token for token in tokens]


def _matrix_of(path: Path, count: int) -> F32:
    """Return the embedding matrix, with one row per token ID."""
    _, tensors = read_tensors(path)
    rows = next((tensors[name] for name in _NAMES if name in tensors), None)
    if rows is None or rows.ndim != 2 or not 1 <= rows.shape[1] <= MAX_DIM:
        raise fault(path, "has no static embeddings", "use the folder of a static model")
    mapping, weights = tensors.get("mapping"), tensors.get("weights")
    if mapping is not None:
        whole = mapping.ndim == 1 and mapping.dtype.kind == "i"
        if not whole or mapping.min(initial=0) < 0 or mapping.max(initial=0) >= len(rows):
            raise fault(path, "its mapping has row numbers that do not exist", AGAIN)
        rows = rows[mapping]
    if len(rows) != count:
        raise fault(path, f"has {len(rows)} rows for {count} tokens in {TOKENIZER}", AGAIN)
    if weights is None:
        return np.asarray(rows, dtype=np.float32) if rows.dtype != np.float32 else rows
    if weights.shape != (count,):
        raise fault(path, f"has weights of shape {weights.shape} for {count} tokens", AGAIN)
    matrix = np.empty(rows.shape, dtype=np.float32)
    for block in blocks_of_rows(len(rows)):
        np.multiply(rows[block], weights[block][:, None], out=matrix[block])
    return matrix
