"""Checkpoints: the whole state of a training run in a folder, to resume it exactly.

A folder has the last two generations, each a subfolder that is written atomically:

    000007/checkpoint.json   kind, options, data, epoch, and the size and CRC-32 of each other file
    000007/NAME.npy          the tables of the run; for words vectors.npy and context.npy
    000007/state.bin         the objective's and the threads' state, as the C core lists it

and the texts of the run: for words vectors.vocab, so that vectors.npy can be read as word vectors.
A resumed run may have moved its corpus, and may use other kernels, which change only the last
digits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import re
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dcme_w2v import __version__, platform
from dcme_w2v.declarations import Checked, flag_of
from dcme_w2v.errors import DcmeError, FormatError, ResourceError, UsageError
from dcme_w2v.files.folders import atomic_folder, new_file, remove_folder
from dcme_w2v.files.opening import open_regular, read_json
from dcme_w2v.files.paths import Paths
from dcme_w2v.files.temporary import create, is_temporary, lock, remove_stale
from dcme_w2v.formats.npy import npy_pieces, read_npy
from dcme_w2v.formats.vectors.manifest import recorded_arguments
from dcme_w2v.numeric.arrays import F32, U8, all_finite
from dcme_w2v.options import CheckpointOptions

from .trainer import Fingerprint, TrainingRun

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
_GENERATION = re.compile("[0-9]{6,18}")


def read_record(path: Path) -> dict[str, Any]:
    """Return a record that has all keys with values of the right types; others are ignored."""
    try:
        record = read_json(path, "the checkpoint is corrupt")
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from error
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


T = TypeVar("T", bound=Checked)
KEPT = 2  # generations
READ_AT_ONCE = 8 << 20


@dataclass
class Position:
    """Position of a run.

    Attributes
    ----------
    epoch : int
        The current or next epoch, from 0.
    seconds, epoch_seconds : float
        Training time so far, in total and in this epoch.
    """

    epoch: int = 0
    seconds: float = 0.0
    epoch_seconds: float = 0.0


POSITION = tuple(item.name for item in dataclasses.fields(Position))


@dataclass(frozen=True)
class Checkpoint:
    """One generation, read from its folder.

    Raises
    ------
    FormatError
        A file is missing, corrupt or not of a checkpoint; the message names it.
    """

    folder: Path
    record: dict[str, Any]

    @classmethod
    def load(cls, folder: Path) -> Checkpoint:
        """Read the record and check the files against it."""
        record = read_record(folder / RECORD)
        found = cls(folder, record)
        for name in found.record["files"]:
            found._check_file(name)
        return found

    def _damaged(self, name: str, what: str) -> FormatError:
        return FormatError(
            f"{self.folder / name}: {what}; remove {self.folder} to resume from the previous "
            "checkpoint, if there is one"
        )

    def _check_file(self, name: str) -> None:
        wanted, found = self.record["files"][name], {"bytes": 0, "crc32": 0}
        try:
            with open_regular(self.folder / name) as file:
                while data := file.read(READ_AT_ONCE):
                    found["bytes"] += len(data)
                    found["crc32"] = zlib.crc32(data, found["crc32"])
        except OSError as error:
            raise self._damaged(name, f"cannot be read: {error.strerror}") from error
        if found != wanted:
            raise self._damaged(name, "is corrupt: its size or checksum differs")

    def with_run_values(self, options: T, *names: str) -> T:
        """Return options; these names, if not given, have the values of the checkpoint."""
        kept = self.record["options"]
        left = [one for one in names if getattr(options, one) is None and one in kept]
        return dataclasses.replace(options, **{name: kept[name] for name in left})  # type: ignore[type-var]

    def check_kind(self, kind: str) -> None:
        """Raise `UsageError` if the checkpoint is of another kind of training."""
        if self.record["kind"] != kind:
            raise UsageError(
                f"{self.folder}: is a checkpoint of {self.record['kind']}, not of {kind}; give "
                "--resume a folder that this command wrote"
            )

    def check_options(self, options: Mapping[str, Any], free: Collection[str] = ()) -> None:
        """Raise `UsageError` if an option that is not `free` differs from the checkpoint's.

        The message has all that differ, as defaults differ because of an option that was given.
        """
        kept = self.record["options"]
        differing = [
            f"{flag_of(name)} is {_shown(value)} and was {_shown(kept[name])}"
            for name, value in options.items()
            if name in kept and name not in free
            and not (kept[name] == value and type(kept[name]) is type(value))
        ]  # fmt: skip
        if differing:
            raise UsageError(
                f"{', '.join(differing)} in {self.folder}: give the same, or start a new run "
                "without --resume"
            )

    def check_data(self, now: Fingerprint) -> None:
        """Raise `UsageError` if the data differ from the data of the checkpoint."""
        kept = self.record["data"]
        if kept["hashes"] == now.hashes:
            return
        shown = now.described
        if kept["described"] == shown:
            shown = "other text of the same size"
        raise UsageError(
            f"{self.folder}: was trained on another corpus or vocabulary ({kept['described']}; now "
            f"{shown}): give the same, with the same --holdout, or start a new run without --resume"
        )

    def restore(self, run: TrainingRun) -> Position:
        """Load the state into a training with the same options and data; return its position."""
        training = run.trainer
        for name, table in run.tables().items():
            table[:] = self.table(f"{name}.npy", table.shape)
        try:
            with open_regular(self.folder / STATE) as file:
                training.restore(file.readinto, self.record["training"])
        except (DcmeError, EOFError) as error:
            raise self._damaged(STATE, f"does not match this run: {error}") from error
        try:
            run.take_notes(self.record["notes"])
        except Exception as error:
            raise self._damaged(RECORD, f"does not match this run: notes: {error}") from error
        position = Position(**{name: self.record["position"][name] for name in POSITION})
        if training.unfinished not in (None, position.epoch):
            raise self._damaged(RECORD, f"is not in epoch {position.epoch}")
        if not 0 <= position.epoch <= training.epochs:
            raise self._damaged(RECORD, f"there is no epoch {position.epoch}")
        return position

    def table(self, name: str, shape: tuple[int, ...]) -> F32:
        """Return a table, memory-mapped; raise FormatError if it has another shape or type."""
        if name not in self.record["files"]:
            raise self._damaged(RECORD, f"has no {name}")
        try:
            found = read_npy(self.folder / name)
        except (FormatError, OSError) as error:
            raise self._damaged(name, f"is not an array ({error})") from error
        if found.dtype != np.float32 or found.shape != shape:
            raise self._damaged(name, f"is {found.dtype} {found.shape}, not float32 {shape}")
        if not all_finite(found):
            raise self._damaged(name, "has a number that is NaN or infinite")
        return found


class CheckpointFolder:
    """The folder of a run's checkpoints; one run at a time can write to it.

    Parameters
    ----------
    path : str
        Created if its parent exists.
    resuming : bool
        Whether the run continues from checkpoints in it; a new run requires a folder without any.

    Raises
    ------
    UsageError
        The folder cannot be created, is in use, or has checkpoints of an earlier run.
    """

    def __init__(self, path: str, *, resuming: bool) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(exist_ok=True)
            self._lock = platform.open_folder(self.path, to_lock=True)
        except OSError as error:
            raise UsageError(
                f"{path}: cannot be used for checkpoints: {error.strerror}; name another folder"
            ) from error
        try:
            self._prepare(resuming)
        except BaseException:
            self.close()
            raise

    def _prepare(self, resuming: bool) -> None:
        if not lock(self._lock):
            raise UsageError(f"{self.path}: is in use by another run; name another folder")
        if not resuming and self.generations():
            raise UsageError(
                f"{self.path}: has checkpoints of an earlier run: resume it with "
                f"--resume={self.path}, remove them, or name another folder"
            )
        remove_stale(self.path, ".")  # of a run that was killed
        try:
            probe, number = create(self.path / "probe", folder=True)
            platform.close(number)
            probe.rmdir()
        except OSError as error:
            raise ResourceError(
                f"{self.path}: cannot be written: {error.strerror}; name another folder"
            ) from error

    def close(self) -> None:
        """Unlock the folder."""
        platform.close(self._lock)

    def generations(self) -> list[Path]:
        """Return the generations, oldest first."""
        return generations_in(self.path)

    def save(
        self,
        record: Mapping[str, Any],
        tables: Mapping[str, F32],
        texts: Mapping[str, Any],
        state: Sequence[U8],
    ) -> Path:
        """Write a new generation, remove the oldest and return the new folder.

        Parameters
        ----------
        record : mapping
            See `record_of`.
        tables, texts : mapping
            The content of ``NAME.npy``, and the bytes of other files, by name.
        state : sequence of ndarray of uint8
            The pieces of ``state.bin``.

        Raises
        ------
        ResourceError
            It cannot be written; earlier generations are unchanged.
        """
        before = self.generations()
        number = int(before[-1].name) + 1 if before else 1
        while os.path.lexists(target := self.path / f"{number:06d}"):
            number += 1
        contents: dict[str, Iterator[Any]] = {
            f"{name}.npy": npy_pieces(table) for name, table in tables.items()
        }
        contents |= {name: iter([data]) for name, data in texts.items()}
        contents[STATE] = (piece.data for piece in state)
        try:
            with atomic_folder(target) as temporary:
                files = {name: _write_file(temporary / name, c) for name, c in contents.items()}
                text = json.dumps({**record, "files": files}, indent=2, allow_nan=False) + "\n"
                _write_file(temporary / RECORD, iter([text.encode()]))
        except OSError as error:
            needed = sum(t.nbytes for t in tables.values()) + sum(s.nbytes for s in state)
            raise ResourceError(
                f"{self.path}: the checkpoint cannot be written: {error.strerror}; it requires "
                f"{needed / 1e6:,.1f} MB"
            ) from error
        for old in self.generations()[:-KEPT]:
            with contextlib.suppress(DcmeError, OSError):
                remove_folder(old, {RECORD, *read_record(old / RECORD)["files"]})
        return target


def generations_in(path: Path) -> list[Path]:
    """Return the generations in a folder, oldest first; none if it does not exist.

    A folder with a number for a name and without our files is somebody's own.
    """
    if not path.is_dir():
        return []
    found = (one for one in path.iterdir() if _GENERATION.fullmatch(one.name))
    ours = (one for one in found if not one.is_symlink() and any(
        os.path.lexists(one / name) for name in (RECORD, STATE)))  # fmt: skip
    return sorted(ours, key=lambda one: int(one.name))


def record_of(
    kind: str, options: Mapping[str, Any], data: Fingerprint, position: Position, **more: Any
) -> dict[str, Any]:
    """Return the record of a checkpoint, without `files`; `more` are the other required entries."""
    return {
        "format": FORMAT,
        "version": __version__,
        "kind": kind,
        "options": dict(options),
        "data": dataclasses.asdict(data),
        "position": dataclasses.asdict(position),
        "argv": recorded_arguments(),
        **more,
    }


# ---- a run's folder, by its options ----


def paths_in(paths: Paths, options: CheckpointOptions) -> Paths:
    """Declare the folders that a run with these options reads and writes."""
    kept, given = options.folder, "--resume" if options.checkpoint is None else "--checkpoint"
    paths.folder(given, kept, lambda name: bool(_GENERATION.fullmatch(name)) or is_temporary(name))
    if options.resume is not None and not _same(options.resume, kept):
        paths.reads("--resume", options.resume)
    return paths


def find_checkpoint(options: CheckpointOptions, kind: str) -> Checkpoint | None:
    """Return the checkpoint to resume from; a folder that is both source and target may be empty.

    Raises
    ------
    UsageError
        There is none, or it is of another kind of training.
    """
    if options.resume is None:
        return None
    generations = generations_in(Path(options.resume))
    if generations:
        found = Checkpoint.load(generations[-1])
        found.check_kind(kind)
        return found
    if options.resume == options.checkpoint:
        return None
    raise UsageError(
        f"{options.resume}: has no checkpoint; give --resume a folder with one, or omit it"
    )


@contextlib.contextmanager
def open_folder(options: CheckpointOptions) -> Iterator[CheckpointFolder | None]:
    """Open the folder of checkpoints; None if the options name none."""
    if options.folder is None:
        yield None
        return
    folder = CheckpointFolder(options.folder, resuming=options.folder == options.resume)
    try:
        yield folder
    finally:
        folder.close()


def _same(first: str, second: str | None) -> bool:
    return first == second or (
        second is not None and Path(first).exists() and Path(second).exists()
        and Path(first).samefile(Path(second))
    )  # fmt: skip


def _shown(value: Any) -> str:
    return "not given" if value is None else f"{value:g}" if type(value) is float else str(value)


# ---- writing ----


def _write_file(path: Path, pieces: Iterator[Any]) -> dict[str, int]:
    """Write pieces of bytes to a new file; return its size and checksum."""
    size = crc = 0
    with new_file(path) as file:
        for piece in pieces:
            file.write(piece)
            size += len(piece)
            crc = zlib.crc32(piece, crc)
    return {"bytes": size, "crc32": crc}
