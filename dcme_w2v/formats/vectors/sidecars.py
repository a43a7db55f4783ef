"""Files with derived names: X.vocab of X.npy, X.json of vectors X, X.partial."""

import json
import re
from pathlib import Path

from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.opening import open_regular, read_regular
from dcme_w2v.files.paths import Sidecar

from ..npy import MAGIC
from .manifest import MANIFEST as MANIFEST
from .vectors_io import check_target, format_of, vocabulary_path

VOCABULARY = ".vocab"


def read_with(vectors: str | None) -> list[str]:
    """Return the files that are read with a file of vectors: X.vocab of X.npy, and a manifest."""
    if vectors is None or is_stream(vectors) or not Path(vectors).is_file():
        return []
    words = [str(vocabulary_path(vectors))] if starts_with(Path(vectors), MAGIC) else []
    return [*words, f"{vectors}{MANIFEST}"]


def written_with(vectors: str, format: str | None) -> list[Sidecar]:
    """Return the files that `save_vectors` writes beside its target, whose name it checks."""
    check_target(vectors, format)
    if (format or format_of(vectors)) != "npy":
        return []
    # The words alone are somebody's list of words.
    pair = Sidecar(str(vocabulary_path(vectors)), lambda _: starts_with(Path(vectors), MAGIC))
    return [pair]


def is_manifest(path: Path) -> bool:
    """Return whether a file is the manifest of trained vectors."""
    try:
        found = json.loads(read_regular(path))
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"version", "options"} <= found.keys()


def is_vocabulary(path: Path) -> bool:
    """Return whether the first line of a file is "word count"."""
    return first_line_is(path, rb"\S+ [0-9]+")


def first_line_is(path: Path, pattern: bytes) -> bool:
    """Return whether the first line of a file matches."""
    with open_regular(path) as file:
        return re.fullmatch(pattern, file.readline(1 << 20).rstrip(b"\n")) is not None


def starts_with(path: Path, magic: bytes) -> bool:
    """Return whether a path is a file that starts with magic bytes."""
    if not path.is_file():
        return False
    with open_regular(path) as file:
        return file.read(len(magic)) == magic
