"""The files that belong to others by name: X.vocab of X.npy, X.json of vectors X, X.partial.

Called by whoever declares what it reads and writes, see `dcme_w2v.paths`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dcme_w2v.errors import UsageError
from dcme_w2v.files import is_stream
from dcme_w2v.options import HoldoutOptions
from dcme_w2v.paths import Beside, Paths
from dcme_w2v.words.tables import KIND
from dcme_w2v.words.vectors_io import NPY_MAGIC, format_of, vocabulary_path

if TYPE_CHECKING:
    from dcme_w2v.words.run import TrainJob

PARTIAL = ".partial"  # behind the names of vectors whose training was interrupted
MANIFEST = ".json"
VOCABULARY = ".vocab"


def paths_of(job: TrainJob) -> Paths:
    """Return what a training run reads and writes."""
    vocabulary, init, context = (
        one if isinstance(one, str) else None
        for one in (job.read_vocab, job.init, job.init_context)
    )
    paths = Paths().reads("CORPUS", *job.corpus).reads("--read-vocab", vocabulary)
    paths.reads("--init", init, beside=read_with(init))
    paths.reads("--init-context", context, beside=read_with(context))
    paths.reads("--holdout", HoldoutOptions(job.holdout).file)
    for flag, path in (("--output", job.output), ("--output-context", job.output_context)):
        beside = [] if path is None else [*written_with(path, job.format), *_partial(path, job)]
        if flag == "--output":
            beside.append(Beside(f"{path}{MANIFEST}", is_manifest))
        elif (counts := counts_path(job)) is not None:
            beside.append(Beside(counts, is_vocabulary))
        paths.writes(flag, path, beside)
    paths.model("--output-tables", job.output_tables, KIND)
    paths.writes("--save-vocab", job.save_vocab).log("--log-json", job.log_json)
    flag, kept = "--checkpoint", job.checkpoint
    if kept is None:
        flag, kept = "--resume", job.resume
    paths.folder(flag, kept, _is_in_checkpoint)
    if job.resume is not None and not _same(job.resume, kept):
        paths.reads("--resume", job.resume)
    return paths.temporary("--cache-dir", job.cache_dir)


def counts_path(job: TrainJob) -> str | None:
    """Return where the vocabulary goes beside both tables: likelihood needs all three."""
    tables = [path for path in (job.output, job.output_context) if path is not None]
    if job.save_vocab is not None or len(tables) < 2 or any(map(is_stream, tables)):
        return None
    if "npy" in [job.format or format_of(path) for path in tables]:
        return None
    return f"{job.output_context}{VOCABULARY}"


def read_with(vectors: str | None) -> list[str]:
    """Return the files that are read with a file of vectors."""
    if vectors is None or is_stream(vectors) or not _starts_with(Path(vectors), NPY_MAGIC):
        return []
    return [str(vocabulary_path(vectors))]


def written_with(vectors: str, format: str | None) -> list[Beside]:
    """Return the files that `save_vectors` writes beside its target."""
    if (format or format_of(vectors)) != "npy":
        return []
    if is_stream(vectors):
        raise UsageError(f"{vectors}: is no file, and npy is two; name a file")
    # The words alone are somebody's list of words.
    pair = Beside(str(vocabulary_path(vectors)), lambda _: _starts_with(Path(vectors), NPY_MAGIC))
    return [pair]


def is_manifest(path: Path) -> bool:
    """Tell whether a file is a manifest, as lies beside trained vectors."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"version", "options"} <= found.keys()


def is_vocabulary(path: Path) -> bool:
    """Tell by its first line whether a file has lines "word count"."""
    return _first_line_is(path, rb"\S+ [0-9]+")


def _partial(path: str, job: TrainJob) -> list[Beside]:
    """Return the files that an interrupted run writes."""
    partial, format = path + PARTIAL, job.format or format_of(path)
    if format != "npy":
        return [Beside(partial, lambda found: _first_line_is(found, rb"[0-9]+ [0-9]+"))]
    pair = Beside(partial, lambda found: _starts_with(found, NPY_MAGIC))
    return [pair, *written_with(partial, format)]


def _is_in_checkpoint(name: str) -> bool:
    return re.fullmatch(r"[0-9]{6,18}|\..*\.part", name) is not None


def _same(first: str, second: str | None) -> bool:
    return first == second or (
        second is not None and Path(first).exists() and Path(second).exists()
        and Path(first).samefile(second)
    )  # fmt: skip


def _first_line_is(path: Path, pattern: bytes) -> bool:
    with path.open("rb") as file:
        return re.fullmatch(pattern, file.readline(1 << 20).rstrip(b"\n")) is not None


def _starts_with(path: Path, magic: bytes) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(magic)) == magic
