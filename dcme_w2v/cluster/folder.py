"""Checkpoints of rounds: each block is written by the task that has mixed it.

A generation is laid out as `dcme_w2v.training.checkpoint_folder` has it, with the blocks of the
tables as files:

    000007/checkpoint.json   as of any training; its position is the number of rounds that are done
    000007/rows_B.npy        the rows of block B, whose table and place are in the notes

All workers see the folder. The blocks belong to the checkpoint: a run that is resumed on more or
fewer workers keeps them.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v import __version__
from dcme_w2v.errors import FormatError, ResourceError
from dcme_w2v.files.temporary import temporary_path
from dcme_w2v.formats.command_line import recorded_arguments
from dcme_w2v.numeric.arrays import without_warnings
from dcme_w2v.training.checkpoint_folder import Checkpoint, CheckpointFolder
from dcme_w2v.training.checkpoint_record import FORMAT, STATE
from dcme_w2v.training.task import Fingerprint

EMPTY = {"bytes": 0, "crc32": 0}


@dataclass(frozen=True)
class Block:
    """Rows of one of the tables that are mixed by one task."""

    table: str
    rows: slice


@dataclass(frozen=True)
class RoundFiles:
    """The blocks in a folder, as tasks read and write them."""

    path: str

    def write(self, number: int, block: int, rows: NDArray[Any]) -> dict[str, int]:
        """Write a block of the generation that is being made; return its size and checksum."""
        folder = aside(self.path, number)
        packed = io.BytesIO()
        np.save(packed, rows, allow_pickle=False)
        data = packed.getbuffer()
        own = folder / f".{uuid.uuid4().hex}"  # a task may run twice at a time
        try:
            with own.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            own.replace(folder / name_of(block))
        except OSError as error:
            raise ResourceError(
                f"{self.path}: the checkpoint cannot be written: {error.strerror}; name a folder "
                "that all workers can write to"
            ) from error
        return {"bytes": len(data), "crc32": zlib.crc32(data)}

    def read(self, number: int, block: int) -> NDArray[Any]:
        """Return a block of a generation that is there."""
        file = Path(self.path) / f"{number:06d}" / name_of(block)
        try:
            with without_warnings():
                found: NDArray[Any] = np.load(file, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise FormatError(
                f"{file}: cannot be read ({error}): give a folder that all workers have"
            ) from error
        return found


class RoundFolder:
    """The checkpoints of a run in rounds.

    Parameters
    ----------
    folder : CheckpointFolder
    kind : str
        Of the training, see `dcme_w2v.training.task.Task`.
    options : mapping
        Those that a resumed run must have, `threads` among them.
    fingerprint : Fingerprint
        Of the data.
    blocks : sequence of Block

    Attributes
    ----------
    files : RoundFiles
    notes : dict
        What else is saved with every round, in terms of JSON; `blocks` is taken.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        kind: str,
        options: Mapping[str, Any],
        fingerprint: Fingerprint,
        blocks: Sequence[Block],
    ) -> None:
        self._folder = folder
        self.files = RoundFiles(os.fspath(folder.path.absolute()))
        self._record = {
            "format": FORMAT,
            "version": __version__,
            "kind": kind,
            "options": dict(options),
            "data": {"hashes": dict(fingerprint.hashes), "described": fingerprint.described},
            "kernels": "",
            "training": {"loss": 0.0, "losses": 0, "state": []},
            "argv": recorded_arguments(),
        }
        self.notes: dict[str, Any] = {}
        self._blocks = [[one.table, one.rows.start, one.rows.stop] for one in blocks]

    @contextlib.contextmanager
    def generation(self, number: int) -> Iterator[None]:
        """Make the place where the blocks of a generation are written; remove it if that fails."""
        self._prepare(number)
        try:
            yield
        except BaseException:
            shutil.rmtree(aside(self.files.path, number), ignore_errors=True)
            raise

    def _prepare(self, number: int) -> None:
        folder = aside(self.files.path, number)
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        except OSError as error:
            raise ResourceError(
                f"{self.files.path}: the checkpoint cannot be written: {error.strerror}"
            ) from error

    def complete(self, number: int, seconds: float, written: Sequence[Mapping[str, int]]) -> None:
        """Make a generation of the blocks that were written, and drop the oldest."""
        position = {"epoch": number, "seconds": seconds, "epoch_seconds": 0.0}
        files = {name_of(b): dict(one) for b, one in enumerate(written)}
        self._folder.adopt(
            aside(self.files.path, number),
            number,
            {
                **self._record,
                "position": position,
                "notes": {"blocks": self._blocks, **self.notes},
                "files": {STATE: EMPTY, **files},
            },
        )


def aside(path: str, number: int) -> Path:
    """Return where a generation is made, before it has its name."""
    return temporary_path(Path(path, f"{number:06d}"), f"{number:08d}"[-8:])


def name_of(block: int) -> str:
    """Return the name of a block's file."""
    return f"rows_{block}.npy"


def blocks_in(found: Checkpoint) -> tuple[Block, ...]:
    """Return the blocks of a checkpoint.

    Raises
    ------
    FormatError
        It has none, or they are not those of its files.
    """
    try:
        listed = found.record["notes"]["blocks"]
        blocks = tuple(Block(str(t), slice(int(a), int(b))) for t, a, b in listed)
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{found.folder}: has no blocks of rows; it is corrupt") from error
    missing = {name_of(b) for b in range(len(blocks))} - set(found.record["files"])
    if missing or not blocks:
        raise FormatError(f"{found.folder}: has no {min(missing, default='rows')}; remove it")
    return blocks
