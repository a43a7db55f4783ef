"""Reads the record of a checkpoint, checkpoint.json, and checks every value."""

import json
import math
import re
from pathlib import Path
from typing import Any

from dcme_w2v.errors import FormatError
from dcme_w2v.files.opening import read_regular

FORMAT = 3
RECORD = "checkpoint.json"
STATE = "state.bin"

# Types of the values, by key.
_NUMBER = (int, float)
_FILE = {"bytes": int, "crc32": int}
_SHAPE: dict[str, Any] = {
    "kind": str,
    "options": {"threads": int},
    "data": {"hashes": dict, "described": str},
    "kernels": str,
    "position": {"epoch": int, "seconds": _NUMBER, "epoch_seconds": _NUMBER},
    "training": {"loss": _NUMBER, "losses": int, "state": list},
    "notes": dict,
    "files": {STATE: _FILE},
}
_NAME = re.compile(r"[a-z_]{1,64}[0-9]{0,4}\.[a-z]{1,16}", re.ASCII)


def read_record(path: Path) -> dict[str, Any]:
    """Return a record that has all keys with values of the right types; others are ignored."""
    try:
        record = json.loads(read_regular(path), parse_constant=_refuse)
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: is not JSON ({error}); the checkpoint is corrupt") from error
    _check_shape(path, "", record, {"format": int})
    if record["format"] != FORMAT:
        raise FormatError(
            f"{path}: has format {record['format']} and this version reads {FORMAT}; resume with "
            f"the version that wrote it, {record.get('version')}"
        )
    _check_shape(path, "", record, _SHAPE)
    for name in record["files"]:
        if not _NAME.fullmatch(name):
            raise FormatError(f"{path}: files has {name[:40]!r}; the checkpoint is corrupt")
        _check_shape(path, f"files.{name}.", record["files"][name], _FILE)
    return record


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _check_shape(path: Path, name: str, value: Any, shape: Any) -> None:
    if not isinstance(shape, dict):
        wrong = isinstance(value, float) and not math.isfinite(value)  # as 1e999
        if wrong or isinstance(value, bool) or not isinstance(value, shape):
            raise FormatError(f"{path}: {name} is {str(value)[:40]!r}; the checkpoint is corrupt")
        return
    if not isinstance(value, dict):
        raise FormatError(
            f"{path}: {name or 'the record'} is not an object; the checkpoint is corrupt"
        )
    for key, kind in shape.items():
        if key not in value:
            raise FormatError(f"{path}: has no {name}{key}; the checkpoint is corrupt")
        _check_shape(path, f"{name}{key}.", value[key], kind)
