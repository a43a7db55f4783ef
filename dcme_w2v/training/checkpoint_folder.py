"""Write and read checkpoints, which are files with the complete state of a run.

A folder has the last two checkpoints, such as `000006.safetensors` and `000007.safetensors`. The
arrays are the tables of the run (for words `vectors`, `context` and the words themselves, so that
such a file can be read as word vectors) and `state`, the state of the objective and of the threads
in the C core's format; the record has the options, a fingerprint of the data, the position and a
checksum. A resumed run may have moved its corpus, and may use other kernels, which change only the
last digits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import tempfile
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from dcme_w2v import platform
from dcme_w2v.declarations import Checked, flag_of, shown
from dcme_w2v.errors import FormatError, ResourceError, UsageError
from dcme_w2v.files.atomic import remove_abandoned
from dcme_w2v.formats.artifact import Model, bytes_of, kind_of_artifact, load_model, save_model
from dcme_w2v.formats.vectors.vectors_io import CHECKPOINT
from dcme_w2v.numeric.arrays import F32, U8, Array, ChunkedArray
from dcme_w2v.options import CheckpointOptions

from .trainer import Fingerprint

KIND, VERSION = CHECKPOINT, 1
STATE = "state"
_LOCK = ".lock"

_GENERATION = re.compile(r"[0-9]{6,18}\.safetensors")


T = TypeVar("T", bound=Checked)
GENERATIONS = 2  # number of checkpoints that are kept in the folder


@dataclass
class Position:
    """The progress of a run: its current epoch, and its training time so far.

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


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint file.

    Raises
    ------
    FormatError
        The file is corrupt or not a checkpoint.
    """

    path: Path
    model: Model

    @classmethod
    def load(cls, path: Path) -> Checkpoint:
        """Read and check a checkpoint file."""
        with advising():
            model = load_model(path, KIND, VERSION)
            wanted = model.description.pop("checksum", None)
            if wanted != _checksum(model.description, model.arrays):
                raise FormatError(
                    f"{path} is corrupt, because its checksum does not match; remove this file"
                )
        return cls(path, model)

    @property
    def record(self) -> dict[str, Any]:
        """The JSON record of the checkpoint, which `record_of` created."""
        return self.model.description

    def with_run_values(self, options: T, *names: str) -> T:
        """For options in `names` that the user did not set, use the values in the checkpoint."""
        kept = self.record["options"]
        left = [one for one in names if getattr(options, one) is None and one in kept]
        return dataclasses.replace(options, **{name: kept[name] for name in left})  # type: ignore[type-var]

    def check_kind(self, kind: str) -> None:
        """Raise `UsageError` if the checkpoint was written by a different kind of training."""
        kept = self.record["run"]
        if kept != kind:
            advice = "use --resume with a folder written by this command"
            if kept.partition(" ")[0] == kind.partition(" ")[0]:
                advice = "use --cluster only if the earlier run used it"
            raise UsageError(f"{self.path} is a checkpoint of {kept}, not of {kind}; {advice}")

    def check_options(self, options: Mapping[str, Any], free: Collection[str] = ()) -> None:
        """Raise `UsageError` if an option that is not in `free` has changed since the checkpoint.

        The message lists every difference, since one option can change the defaults of others.
        """
        kept = self.record["options"]
        differing = [
            f"{flag_of(name)} is {_shown(value)}, but was {_shown(kept[name])}"
            for name, value in options.items()
            if name in kept and name not in free
            and not (kept[name] == value and type(kept[name]) is type(value))
        ]  # fmt: skip
        if differing:
            raise UsageError(
                f"{', '.join(differing)} in {self.path}; restore the original values of these "
                "options, or start a new run without --resume"
            )

    def check_data(self, now: Fingerprint) -> None:
        """Raise `UsageError` if the run of the checkpoint was trained on different data."""
        kept = self.record["data"]
        if kept["hashes"] == now.hashes:
            return
        shown = now.described
        if kept["described"] == shown:
            shown = "different text of the same size"
        raise UsageError(
            f"{self.path} is from a run with a different corpus or vocabulary (then "
            f"{kept['described']}, now {shown}); use the original data and --holdout value, or "
            "start a new run without --resume"
        )

    def table(self, name: str, shape: tuple[int, ...]) -> F32:
        """Return a memory-mapped table; raise `FormatError` if its shape or type is wrong."""
        return self.model.array(name, "float32", *shape)


@contextlib.contextmanager
def advising() -> Iterator[None]:
    """Make each `FormatError` in the block suggest resuming from the previous checkpoint."""
    try:
        yield
    except FormatError as error:
        raise FormatError(
            f"{error.message.rpartition(';')[0]}; remove this file to resume from the previous "
            "checkpoint, if there is one"
        ) from error


def _checksum(record: Mapping[str, Any], arrays: Mapping[str, Array | ChunkedArray]) -> int:
    found = zlib.crc32(json.dumps(record, sort_keys=True).encode())
    for _, array in sorted(arrays.items()):
        for piece in bytes_of(array):
            found = zlib.crc32(piece, found)
    return found


class CheckpointFolder:
    """A run's checkpoint folder, which is locked so that no other run can write to it.

    Parameters
    ----------
    path : str
        Created if its parent exists.
    resuming : bool
        Whether the run resumes from a checkpoint in the folder; a new run requires a folder without
        checkpoints.

    Raises
    ------
    UsageError
        The folder cannot be created, is in use, or has checkpoints of an earlier run.
    """

    def __init__(self, path: str, *, resuming: bool) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(exist_ok=True)
            self._lock = os.open(self.path / _LOCK, platform.UPDATE, 0o666)
        except OSError as error:
            raise UsageError(
                f"{path} cannot be used for checkpoints: {error.strerror}; choose another folder"
            ) from error
        try:
            self._prepare(resuming)
        except BaseException:
            self.close()
            raise

    def _prepare(self, resuming: bool) -> None:
        if not platform.lock(self._lock):
            raise UsageError(f"{self.path} is in use by another run; choose another folder")
        if not resuming and self.generations():
            raise UsageError(
                f"{self.path} contains checkpoints of an earlier run; resume the run with "
                f"--resume={self.path}, remove the checkpoints, or choose another folder"
            )
        remove_abandoned(self.path, _GENERATION.pattern)
        try:
            with tempfile.TemporaryFile(dir=self.path):
                pass
        except OSError as error:
            raise ResourceError(
                f"{self.path} cannot be written: {error.strerror}; choose another folder"
            ) from error

    def close(self) -> None:
        """Close the lock file, which unlocks the folder."""
        os.close(self._lock)

    def generations(self) -> list[Path]:
        """Return the checkpoint files in the folder, oldest first."""
        return generations_in(self.path)

    def save(
        self, record: Mapping[str, Any], arrays: Mapping[str, Array], state: Sequence[U8]
    ) -> Path:
        """Write a new checkpoint and remove the oldest one; return the path of the new file.

        Parameters
        ----------
        record : mapping
            See `record_of`.
        arrays : mapping of ndarray
            The tables, and the arrays of `TrainingRun.arrays`.
        state : sequence of ndarray of uint8
            The pieces of the array `state`.

        Raises
        ------
        ResourceError
            The checkpoint cannot be written; earlier checkpoints are unchanged.
        """
        before = self.generations()
        number = int(before[-1].stem) + 1 if before else 1
        size = sum(piece.nbytes for piece in state)
        whole: dict[str, Array | ChunkedArray] = {**arrays}
        whole[STATE] = ChunkedArray((size,), np.dtype(np.uint8), lambda: state)
        checksum = _checksum(record, whole)
        while os.path.lexists(target := self.path / f"{number:06d}.safetensors"):
            number += 1
        try:
            save_model(target, KIND, VERSION, whole, {**record, "checksum": checksum})
        except ResourceError as error:
            needed = sum(array.nbytes for array in whole.values())
            raise ResourceError(
                f"{self.path}: the checkpoint cannot be written: "
                f"{getattr(error.__cause__, 'strerror', error)}; free disk space for the "
                f"checkpoint, which requires {needed / 1e6:,.1f} MB"
            ) from error
        for old in self.generations()[:-GENERATIONS]:
            if kind_of_artifact(old) == KIND:
                with contextlib.suppress(OSError):
                    old.unlink()
        return target


def generations_in(path: Path) -> list[Path]:
    """Return the checkpoint files in a folder, oldest first, or [] if the folder does not exist."""
    if not path.is_dir():
        return []
    found = [one for one in path.iterdir() if _GENERATION.fullmatch(one.name)]
    files = (one for one in found if one.is_file() and not one.is_symlink())
    return sorted(files, key=lambda one: int(one.stem))


def record_of(
    kind: str, options: Mapping[str, Any], data: Fingerprint, position: Position, **more: Any
) -> dict[str, Any]:
    """Return the JSON record of a checkpoint, including the additional entries `more`."""
    return {
        "run": kind,
        "options": dict(options),
        "data": dataclasses.asdict(data),
        "position": dataclasses.asdict(position),
        **more,
    }


# ---- opening the checkpoint folder that the options specify ----


def find_checkpoint(options: CheckpointOptions, kind: str) -> Checkpoint | None:
    """Load the checkpoint from which to resume; return None if a new run starts.

    Raises
    ------
    UsageError
        There is no checkpoint, or it is of another kind of training.
    """
    if options.resume is None:
        return None
    generations = generations_in(Path(options.resume))
    if generations:
        found = Checkpoint.load(generations[-1])
        found.check_kind(kind)
        return found
    if options.checkpoint is not None and options.continues:
        return None
    raise UsageError(
        f"{options.resume} contains no checkpoint; choose a folder with checkpoints, or omit "
        "--resume"
    )


@contextlib.contextmanager
def open_folder(options: CheckpointOptions) -> Iterator[CheckpointFolder | None]:
    """Open and lock the checkpoint folder; yield None if the options do not specify a folder."""
    if options.folder is None:
        yield None
        return
    folder = CheckpointFolder(options.folder, resuming=options.continues)
    try:
        yield folder
    finally:
        folder.close()


def _shown(value: Any) -> str:
    return "not given" if value is None else shown(value)
