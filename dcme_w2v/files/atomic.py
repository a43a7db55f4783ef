"""Atomic writes: after any failure, a target is either the old file or the complete new one.

All files are written here and in `dcme_w2v.formats.model_folder`, after `dcme_w2v.files.paths` has
checked the inputs and outputs of a command.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from dcme_w2v.errors import ResourceError, UsageError
from dcme_w2v.files.compress import check_suffix, compressing, compression_of

STANDARD = "-"
PART = ".part"
_STDOUT = "standard output"
_RANDOM = re.compile("[a-z0-9_]{8}")  # the random part of tempfile's names
_DESCRIPTOR = re.compile(r"/(?:dev|proc/(self|thread-self|[0-9]+)(?:/task/[0-9]+)?)/fd/([0-9]+)")
_OURS = {None, "self", "thread-self"}
_LINKS = 40  # maximum length of a chain of symbolic links
_LOG_LINE = 1 << 20


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for an atomic write: it replaces `path` only if the block succeeds.

    The bytes go to a private file beside the target, which is flushed to the disk and renamed at
    the end, and removed when the block raises; where a process was killed, by the next that writes
    the same target. A symbolic link stays: the file that it leads to is replaced. Devices, pipes
    and sockets are not replaced but written to; ``-`` is standard output. A name that ends in .gz,
    .bz2, .xz or .zst is that of a compressed file.

    Raises
    ------
    ResourceError
        The file cannot be written; the target is unchanged.
    """
    if is_stream(path):
        with _streaming(path) as stream, compressing(path, stream) as packed:
            yield packed
        return
    target = target_of(path)
    _remove_stale(target)
    with write_errors(path):
        number, temporary = tempfile.mkstemp(
            dir=target.parent, prefix=temporary_prefix(target), suffix=PART
        )
    try:
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held while this process runs
        with io.BufferedWriter(OutputFile(number, path)) as file:
            with compressing(path, cast(BinaryIO, file)) as packed:
                yield packed
            file.flush()
            with write_errors(path):
                os.fsync(number)
                Path(temporary).chmod(_mode_of(target))
                Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


@contextlib.contextmanager
def marked_pair(files: Sequence[tuple[Path, BinaryIO]]) -> Iterator[None]:
    """Leave a mark while two files of `atomic_write` are renamed, for `is_mixed_pair`.

    Parameters
    ----------
    files : sequence of (Path, file)
        The targets and the files that replace them when the block has ended.
    """
    mark, numbers = _mark_of(files[0][0]), [os.fstat(file.fileno()).st_ino for _, file in files]
    with contextlib.suppress(OSError):
        mark.write_text(" ".join(map(str, numbers)))
    try:
        yield
    finally:
        if not is_mixed_pair(*(path for path, _ in files)):
            with contextlib.suppress(OSError):
                mark.unlink()


def is_mixed_pair(first: Path, second: Path) -> bool:
    """Return whether a killed run has replaced one of two files that are written together."""
    try:
        wanted = _mark_of(first).read_text().split()
        found = [str(target_of(path).stat().st_ino) for path in (first, second)]
    except (OSError, ValueError):
        return False
    return len(wanted) == 2 and (wanted[0] == found[0]) != (wanted[1] == found[1])


def _mark_of(path: Path) -> Path:
    target = target_of(path)
    return target.parent / f"{temporary_prefix(target)}pair"


def optional_write(
    path: str | os.PathLike[str] | None,
) -> contextlib.AbstractContextManager[BinaryIO | None]:
    """Open a file as `atomic_write` does, or return None for no path."""
    return contextlib.nullcontext() if path is None else atomic_write(path)


class OutputFile(io.FileIO):
    """A file descriptor whose errors name the target, or standard output."""

    def __init__(
        self, number: int, target: str | os.PathLike[str], *, closefd: bool = True
    ) -> None:
        super().__init__(number, "w", closefd)
        self._target = target

    def write(self, data: Any) -> int:
        """Write some bytes."""
        with write_errors(self._target):
            return super().write(data)


# ---- streams ----


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a device, pipe, socket or open file, such as ``-`` or /dev/fd/3.

    Streams are written to directly: no file is replaced, and no derived file is written.
    """
    if os.fspath(path) == STANDARD or descriptor_of(path) is not None:
        return True
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def descriptor_of(path: str | os.PathLike[str]) -> int | None:
    """Return the file descriptor of this process that a path such as /dev/stdout refers to."""
    name = os.path.normpath(Path(path).absolute())
    for _ in range(_LINKS):
        if found := _DESCRIPTOR.fullmatch(name):
            return int(found[2]) if found[1] in _OURS | {str(os.getpid())} else None
        try:
            name = os.path.normpath(Path(name).parent / Path(name).readlink())
        except OSError:
            break
    return None


@contextlib.contextmanager
def _streaming(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a stream for writing; standard output is not closed."""
    number = 1 if os.fspath(path) == STANDARD else descriptor_of(path)
    if number == 1:
        with write_errors(_STDOUT):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    with write_errors(path):
        number = os.open(path, os.O_WRONLY) if number is None else os.dup(number)
    with io.BufferedWriter(OutputFile(number, path)) as file:
        yield cast(BinaryIO, file)


# ---- logs ----


def open_log(path: str | os.PathLike[str], append: bool = False) -> TextIO:
    """Open a log of JSON lines; an existing log is replaced.

    Parameters
    ----------
    path : path
        A file or a stream.
    append : bool
        Append to an existing log instead.

    Raises
    ------
    UsageError
        The file exists and is not a log.
    ResourceError
        It cannot be written.
    """
    check_log(path)
    if os.fspath(path) == STANDARD:
        return sys.stdout
    number, target = descriptor_of(path), target_of(path)
    with write_errors(path):
        if is_stream(path):
            number = os.open(path, os.O_WRONLY) if number is None else os.dup(number)
        elif append and target.exists():
            number = os.open(target, os.O_RDWR | os.O_APPEND)
            _end_line(number)
        else:  # a new file: the old one may have hard links
            number, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=PART)
            Path(temporary).chmod(_mode_of(target))
            Path(temporary).replace(target)
    return os.fdopen(number, "w", encoding="utf-8")


def check_log(path: str | os.PathLike[str]) -> None:
    """Raise before work starts if `open_log` could not write `path`."""
    check_writable(path)
    if compression_of(path) is not None:
        raise UsageError(
            f"{os.fspath(path)}: a log grows line by line and is not compressed; name a .jsonl file"
        )
    if not is_stream(path) and Path(path).exists() and not _is_log(Path(path)):
        raise UsageError(
            f"{os.fspath(path)}: exists and is not a log of JSON lines; choose another file"
        )


def _is_log(path: Path) -> bool:
    """Check the first and the last line; the last may be incomplete if a run was killed."""
    with write_errors(path), path.open("rb") as file:
        first = file.readline(_LOG_LINE)
        file.seek(max(0, path.stat().st_size - _LOG_LINE))
        last = file.read().removesuffix(b"\n").rpartition(b"\n")[2]
    return all(_is_event(line) for line in (first, last) if line) and first != b"\n"


def _is_event(line: bytes) -> bool:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line.startswith(b'{"event": "')
    return isinstance(found, dict) and "event" in found


def _end_line(number: int) -> None:
    """End the last line of a log if a killed run left it incomplete."""
    size = os.fstat(number).st_size
    if size and os.pread(number, 1, size - 1) != b"\n":
        os.write(number, b"\n")


# ---- targets ----


def target_of(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file with symbolic links resolved.

    Raises
    ------
    UsageError
        The links form a loop.
    """
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise UsageError(f"{os.fspath(path)}: is a loop of symbolic links; remove it")
    return target


@contextlib.contextmanager
def write_errors(target: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an OSError into a `ResourceError` that names the target."""
    try:
        yield
    except ResourceError:
        raise
    except OSError as error:
        if isinstance(error, BrokenPipeError) and target == _STDOUT:
            raise  # the reader closed the pipe: not a failure
        raise ResourceError(
            f"{os.fspath(target)}: cannot be written: {error.strerror or error}; "
            "free some space or choose another path"
        ) from error


def _remove_stale(target: Path) -> None:
    """Remove temporary files that killed processes left beside a target."""
    with contextlib.suppress(OSError):
        for left in stale_files(target.parent, temporary_prefix(target)):
            with left.open("r+b") as file:
                fcntl.flock(
                    file, fcntl.LOCK_EX | fcntl.LOCK_NB
                )  # raises if the writer is still running
                left.unlink()


def stale_files(parent: Path, start: str) -> Iterator[Path]:
    """Yield what is there under the names that `tempfile` makes behind a start."""
    for left in parent.glob(f"{_literally(start)}*{PART}"):
        if _RANDOM.fullmatch(left.name[len(start) : -len(PART)]):
            yield left


def temporary_prefix(target: Path) -> str:
    """Return the prefix of the names of a target's temporary files."""
    return f".{target.name.encode(errors='surrogateescape')[:200].decode(errors='ignore')}."


def _literally(name: str) -> str:
    return "".join(f"[{letter}]" if letter in "[?*" else letter for letter in name)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let no other process of ours into this block for the same folder, where there are locks."""
    with contextlib.ExitStack() as held:
        with contextlib.suppress(OSError):
            number = os.open(folder, os.O_RDONLY)
            held.callback(os.close, number)
            fcntl.flock(number, fcntl.LOCK_EX)
        yield


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, if its file system supports it."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def check_name(path: str | os.PathLike[str], shown: str) -> None:
    """Raise if a path, or a name in it, is longer than the file system allows.

    Raises
    ------
    UsageError
        It is, or is empty; the message begins with `shown`.
    """
    if not os.fspath(path):
        raise UsageError(f"{shown.strip()}: is empty; give a name")
    target = Path(os.path.realpath(path))
    folder = next((one for one in target.parents if _is_there(one)), Path("/"))
    for limit, names in (("PC_NAME_MAX", target.parts), ("PC_PATH_MAX", (f"{target} ",))):
        longest, most = max(len(os.fsencode(name)) for name in names), _limit(folder, limit)
        if most is not None and longest > most:
            raise UsageError(
                f"{shown}: is too long: {longest:,} bytes of at most {most:,}; choose a shorter "
                "name"
            )


def _limit(folder: Path, name: str) -> int | None:
    """Return a limit of the file system that a folder is on; None if it has none."""
    with contextlib.suppress(OSError, ValueError):
        found = os.pathconf(folder, name)
        return found if found > 0 else None
    return None


def _is_there(folder: Path) -> bool:
    try:
        return folder.is_dir()
    except OSError:
        return False


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise before work starts if `atomic_write` could not write `path`."""
    check_suffix(path)
    if is_stream(path):
        _check_stream(path)
        return
    if os.fspath(path).endswith("/"):
        raise UsageError(f"{os.fspath(path)}: is the name of a folder; name a file")
    with write_errors(path):
        target = target_of(path)
        if target.is_dir():
            raise UsageError(f"{os.fspath(path)}: is a folder; give a file")
        if not target.parent.is_dir():
            raise UsageError(
                f"{os.fspath(path)}: there is no folder {target.parent}; create it first"
            )
        with tempfile.TemporaryFile(dir=target.parent):
            pass


def _check_stream(path: str | os.PathLike[str]) -> None:
    number = descriptor_of(path)
    if os.fspath(path) == STANDARD:
        check_standard_output()
        return
    with write_errors(path):
        if number is not None:
            os.fstat(number)
        elif not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def check_standard_output() -> None:
    """Raise before work starts if standard output cannot be written to."""
    if not _is_open_for(sys.stdout, os.O_WRONLY):
        raise UsageError("standard output: is closed; redirect it, or give a file")


def standard_input() -> BinaryIO:
    """Return standard input as a binary file.

    Raises
    ------
    UsageError
        It is closed.
    """
    if not _is_open_for(sys.stdin, os.O_RDONLY):
        raise UsageError("standard input: is closed; redirect it, or give a file")
    return sys.stdin.buffer


def _is_open_for(stream: TextIO | None, mode: int) -> bool:
    if stream is None:
        return False
    try:
        flags = fcntl.fcntl(stream.fileno(), fcntl.F_GETFL)
    except (OSError, ValueError, AttributeError):  # it has no file descriptor
        return not getattr(stream, "closed", False)
    return flags & os.O_ACCMODE in (mode, os.O_RDWR)


def _mode_of(target: Path) -> int:
    """Return the permissions of the target, or those of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    return new_mode(0o666)


def new_mode(mode: int) -> int:
    """Return `mode` without the bits of this process's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask
