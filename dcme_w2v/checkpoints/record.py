"""The record of a checkpoint, validated as a file that anybody may have edited."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from dcme_w2v.errors import FormatError

FORMAT = 1
RECORD = "checkpoint.json"
FILES = ("vectors.npy", "vectors.vocab", "context.npy", "state.bin")

# What a record holds: kinds by key, in tables of tables.
_NUMBER = (int, float)
_SHAPE: dict[str, Any] = {
    "format": int,
    "options": {"threads": int},
    "corpus": {"ids": str, "vocabulary": str, "tokens": int, "words": int, "files": list},
    "kernels": str,
    "position": {"epoch": int, "seconds": _NUMBER, "epoch_seconds": _NUMBER},
    "training": {"loss": _NUMBER, "losses": int, "state": list},
    "files": {name: {"bytes": int, "crc32": int} for name in FILES},
}


def read_record(path: Path) -> dict[str, Any]:
    """Return a record that has all keys, of the right kinds; other keys may be there."""
    try:
        record = json.loads(path.read_bytes(), parse_constant=_refuse)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: is no JSON ({error}); it is not to be edited") from error
    _check_shape(path, "", record, _SHAPE)
    if record["format"] != FORMAT:
        raise FormatError(
            f"{path}: has format {record['format']} and this version reads {FORMAT}; go on with "
            f"the version that wrote it, {record.get('version')}"
        )
    return record  # type: ignore[no-any-return]


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _check_shape(path: Path, name: str, value: Any, shape: Any) -> None:
    if not isinstance(shape, dict):
        wrong = isinstance(value, float) and not math.isfinite(value)  # as 1e999
        if wrong or isinstance(value, bool) or not isinstance(value, shape):
            raise FormatError(f"{path}: {name} is {str(value)[:40]!r}; it is not to be edited")
        return
    if not isinstance(value, dict):
        raise FormatError(f"{path}: {name or 'the whole'} is no table; it is not to be edited")
    for key, kind in shape.items():
        if key not in value:
            raise FormatError(f"{path}: has no {name}{key}; it is not to be edited")
        _check_shape(path, f"{name}{key}.", value[key], kind)
