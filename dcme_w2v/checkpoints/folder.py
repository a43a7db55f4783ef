"""Checkpoints: all state of a training run in a folder, from which it goes on as if never stopped.

A folder holds two generations, each a folder of its own that appears whole or not at all:

    000007/checkpoint.json   options, corpus, epoch, and the size and CRC-32 of each other file
    000007/vectors.npy       the input table, with its words beside it in vectors.vocab: word
    000007/vectors.vocab     vectors like any, which --init and every command can read
    000007/context.npy       the output table
    000007/state.bin         the objective's and the threads' state, as the C core lists it

Called by `dcme_w2v.words.run`. What the machine cannot tell apart is not compared: a corpus may
have moved, and other kernels change the last digits only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dcme_w2v import __version__
from dcme_w2v._core.text import format_counts
from dcme_w2v.checkpoints.record import FILES, FORMAT, RECORD, read_record
from dcme_w2v.errors import DcmeError, FormatError, ResourceError, UsageError
from dcme_w2v.finite import all_finite
from dcme_w2v.options import TrainOptions, VocabularyOptions, flag_of
from dcme_w2v.text.encode import EncodedCorpus
from dcme_w2v.text.vocabulary import Vocabulary
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors_io import blocks_of

KEPT = 2  # generations
READ_AT_ONCE = 8 << 20
SAMENESS = ("ids", "vocabulary")  # what two corpora have to have in common


@dataclass
class Position:
    """How far a run is.

    Attributes
    ----------
    epoch : int
        The epoch under way or next, from 0.
    seconds, epoch_seconds : float
        Time trained so far, and in this epoch.
    """

    epoch: int = 0
    seconds: float = 0.0
    epoch_seconds: float = 0.0


POSITION = tuple(item.name for item in dataclasses.fields(Position))


def fingerprint_of(corpus: EncodedCorpus) -> dict[str, Any]:
    """Return what tells a corpus from another: hashes of its ids and words, and its figures."""
    ids, words = hashlib.sha256(), hashlib.sha256()
    for first in range(0, len(corpus.ids), READ_AT_ONCE):
        ids.update(np.ascontiguousarray(corpus.ids[first : first + READ_AT_ONCE]).data)
    vocabulary = corpus.vocabulary
    for array in (vocabulary.text, vocabulary.offsets, vocabulary.counts):
        words.update(np.ascontiguousarray(array).data)
    return {
        "ids": ids.hexdigest(),
        "vocabulary": words.hexdigest(),
        "tokens": corpus.tokens,
        "words": len(vocabulary),
        "files": [file["path"] for file in corpus.files],
    }


@dataclass(frozen=True)
class Checkpoint:
    """One generation, read from its folder.

    Raises
    ------
    FormatError
        A file is missing, damaged or not what a checkpoint has; the message says which.
    """

    folder: Path
    record: dict[str, Any]

    @classmethod
    def load(cls, folder: Path) -> Checkpoint:
        """Read the record and check the files against it."""
        found = cls(folder, read_record(folder / RECORD))
        for name in FILES:
            found._check_file(name)
        return found

    def _damaged(self, name: str, what: str) -> FormatError:
        return FormatError(
            f"{self.folder / name}: {what}; remove {self.folder} to go on from the checkpoint "
            "before it, if there is one"
        )

    def _check_file(self, name: str) -> None:
        wanted, found = self.record["files"][name], {"bytes": 0, "crc32": 0}
        try:
            with (self.folder / name).open("rb") as file:
                while data := file.read(READ_AT_ONCE):
                    found["bytes"] += len(data)
                    found["crc32"] = zlib.crc32(data, found["crc32"])
        except OSError as error:
            raise self._damaged(name, f"cannot be read: {error.strerror}") from error
        if found != wanted:
            raise self._damaged(name, "is not what was written (size or checksum)")

    def with_its_own(self, options: TrainOptions) -> TrainOptions:
        """Return the options with the run's where they depend on the machine or the corpus."""
        kept = self.record["options"]
        left = [name for name in ("threads", "sample") if getattr(options, name) is None]
        return dataclasses.replace(options, **{name: kept[name] for name in left})

    def check_options(self, vocabulary: VocabularyOptions, options: TrainOptions) -> None:
        """Raise `UsageError` if an option is not what it was."""
        kept = self.record["options"]
        for name, value in _options(vocabulary, options).items():
            if name == "threads" and options.deterministic:
                continue
            if name in kept and (kept[name] != value or type(kept[name]) is not type(value)):
                raise UsageError(
                    f"{flag_of(name)} is {_shown(value)} and was {_shown(kept[name])} in "
                    f"{self.folder}: give what it was, or start anew without --resume"
                )

    def check_corpus(self, fingerprint: Mapping[str, Any]) -> None:
        """Raise `UsageError` if the corpus is not what it was."""
        kept = self.record["corpus"]
        if all(kept[name] == fingerprint[name] for name in SAMENESS):
            return
        then, now = (
            f"{one['tokens']:,} tokens and {one['words']:,} words of "
            + ", ".join(map(str, one["files"][:3]))
            for one in (kept, fingerprint)
        )
        if then == now:
            now = "the same figures, but other text"
        raise UsageError(
            f"{self.folder}: was made from another corpus or vocabulary ({then}; now {now}): give "
            "what it was made from, or start anew without --resume"
        )

    def restore(self, training: Trainer) -> Position:
        """Put all state into a training that was made alike; return how far it is."""
        for name, table in (("vectors.npy", training.input), ("context.npy", training.output)):
            table[:] = self._table(name, table.shape)
        try:
            with (self.folder / "state.bin").open("rb") as file:
                training.restore(file.readinto, self.record["training"])
        except (DcmeError, EOFError) as error:
            raise self._damaged("state.bin", f"does not fit this run: {error}") from error
        position = Position(**{name: self.record["position"][name] for name in POSITION})
        if training.unfinished not in (None, position.epoch):
            raise self._damaged(RECORD, f"is not in epoch {position.epoch}")
        if not 0 <= position.epoch <= training.options.epochs:
            raise self._damaged(RECORD, f"there is no epoch {position.epoch}")
        return position

    def _table(self, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
        try:
            found = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # numpy lets through whatever it makes of the header
            raise self._damaged(name, f"is no array ({error})") from error
        if found.dtype != np.float32 or found.shape != shape:
            raise self._damaged(name, f"is {found.dtype} {found.shape}, not float32 {shape}")
        if not all_finite(found):
            raise self._damaged(name, "has a number that is NaN or infinite")
        return found  # type: ignore[no-any-return]


class CheckpointFolder:
    """The folder of a run's checkpoints; only one run writes there at a time.

    Parameters
    ----------
    path : str
        Made if its parent exists.
    resuming : bool
        Whether the run goes on from what is there; a run that starts anew must not find any.

    Raises
    ------
    UsageError
        The folder cannot be made, is another run's, or holds checkpoints of an earlier run.
    """

    def __init__(self, path: str, *, resuming: bool) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(exist_ok=True)
            self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise UsageError(
                f"{path}: cannot be the folder of checkpoints: {error.strerror}; name another"
            ) from error
        try:
            self._prepare(resuming)
        except BaseException:
            self.close()
            raise

    def _prepare(self, resuming: bool) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(f"{self.path}: another run writes its checkpoints there") from error
        except OSError:
            pass  # some file systems have no locks
        if not resuming and self.generations():
            raise UsageError(
                f"{self.path}: holds checkpoints of an earlier run: go on from them with "
                f"--resume={self.path}, remove them, or name another folder"
            )
        for left in self.path.glob(".*.part"):  # by a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        try:
            Path(tempfile.mkdtemp(dir=self.path, prefix=".", suffix=".part")).rmdir()
        except OSError as error:
            raise ResourceError(
                f"{self.path}: cannot be written: {error.strerror}; name another folder"
            ) from error

    def close(self) -> None:
        """Let other runs write here."""
        os.close(self._lock)

    def generations(self) -> list[Path]:
        """Return the generations, oldest first."""
        return generations_in(self.path)

    def save(self, record: Mapping[str, Any], training: Trainer, vocabulary: Vocabulary) -> Path:
        """Write a new generation and drop the oldest; return its folder.

        Raises
        ------
        ResourceError
            It cannot be written; what was there is untouched.
        """
        aside = None
        before = self.generations()
        target = self.path / f"{int(before[-1].name) + 1 if before else 1:06d}"
        try:
            aside = Path(tempfile.mkdtemp(dir=self.path, prefix=".", suffix=".part"))
            _write(aside, record, training, vocabulary)
            _sync_folder(aside)
            aside.rename(target)
            os.fsync(self._lock)
        except ResourceError:
            raise
        except OSError as error:
            raise ResourceError(
                f"{self.path}: the checkpoint cannot be written: {error.strerror}; it needs "
                f"{bytes_of(training) / 1e6:,.1f} MB"
            ) from error
        finally:
            if aside is not None:
                shutil.rmtree(aside, ignore_errors=True)
        for old in self.generations()[:-KEPT]:
            self._drop(old)
        return target

    def _drop(self, old: Path) -> None:
        """Remove a generation; it loses its name first, so that no part of it is taken for one."""
        with contextlib.suppress(OSError):
            shutil.rmtree(old.rename(self.path / f".{old.name}.part"), ignore_errors=True)


def generations_in(path: Path) -> list[Path]:
    """Return the generations in a folder, oldest first; none where there is no such folder."""
    if not path.is_dir():
        return []
    found = (one for one in path.iterdir() if re.fullmatch("[0-9]{6,18}", one.name))
    return sorted(found, key=lambda one: int(one.name))


def bytes_of(training: Trainer) -> int:
    """Return the bytes of a checkpoint, but for its words."""
    state = sum(piece.nbytes for piece in training.state())
    return training.input.size * 4 + training.output.size * 4 + state


def record_of(
    vocabulary: VocabularyOptions,
    options: TrainOptions,
    fingerprint: Mapping[str, Any],
    training: Trainer,
    position: Position,
) -> dict[str, Any]:
    """Return the record of a checkpoint, but for its files."""
    return {
        "format": FORMAT,
        "version": __version__,
        "options": _options(vocabulary, options),
        "corpus": dict(fingerprint),
        "kernels": training.kernels,
        "position": dataclasses.asdict(position),
        "training": training.record(),
    }


def _options(vocabulary: VocabularyOptions, options: TrainOptions) -> dict[str, Any]:
    return {**dataclasses.asdict(vocabulary), **dataclasses.asdict(options)}


def _shown(value: Any) -> str:
    return "not given" if value is None else f"{value:g}" if type(value) is float else str(value)


# ---- writing ----


def _write(
    folder: Path, record: Mapping[str, Any], training: Trainer, vocabulary: Vocabulary
) -> None:
    words = format_counts(vocabulary.text, vocabulary.offsets, vocabulary.counts)
    contents: dict[str, Iterator[Any]] = {
        "vectors.npy": _npy(training.input),
        "vectors.vocab": iter([words.data]),
        "context.npy": _npy(training.output),
        "state.bin": (piece.data for piece in training.state()),
    }
    files = {name: _write_file(folder / name, contents[name]) for name in FILES}
    text = json.dumps({**record, "files": files}, indent=2, allow_nan=False) + "\n"
    _write_file(folder / RECORD, iter([text.encode()]))


def _npy(table: NDArray[np.float32]) -> Iterator[Any]:
    start = io.BytesIO()
    header = {"descr": "<f4", "fortran_order": False, "shape": table.shape}
    np.lib.format.write_array_header_1_0(start, header)
    yield start.getvalue()
    for _, block in blocks_of(table):
        yield block.data.cast("B")


def _write_file(path: Path, pieces: Iterator[Any]) -> dict[str, int]:
    """Write pieces of bytes to a file, down to the disk; return its size and checksum."""
    size = crc = 0
    with path.open("wb") as file:
        for piece in pieces:
            file.write(piece)
            size += len(piece)
            crc = zlib.crc32(piece, crc)
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": size, "crc32": crc}


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
