"""Atomic writes: after any failure, a target is either the old file or the complete new one."""

import contextlib
import errno
import io
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from dcme_w2v import platform
from dcme_w2v.errors import ResourceError, UsageError
from dcme_w2v.platform import PathLike

from .compress import check_suffix, compressing, compression_of
from .temporary import (
    claimed,
    create,
    is_at,
    prefix_of,
    remove_stale,
)

STANDARD = "-"
WAIT_SECONDS = 10  # for another process that moves finished files
_STEP_SECONDS = 0.01
_STDOUT = "standard output"
_DESCRIPTOR = re.compile(r"/(?:dev|proc/(self|thread-self|[0-9]+)(?:/task/[0-9]+)?)/fd/([0-9]+)")
_OURS = {None, "self", "thread-self"}
READER_SECONDS = 60  # that a named pipe waits for its reader
_LINKS = 40  # maximum length of a chain of symbolic links
_LOG_LINE = 1 << 20


@contextlib.contextmanager
def atomic_write(path: PathLike) -> Iterator[BinaryIO]:
    """Open a file for an atomic write: it replaces `path` only if the block succeeds.

    The bytes go to a private file beside the target, which is flushed to the disk and renamed at
    the end, and removed when the block raises; if a process was killed, by the next one that writes
    the same target. A symbolic link stays: the file that it leads to is replaced. Devices, pipes
    and sockets are not replaced but written to; ``-`` is standard output. A file whose name ends in
    .gz, .bz2, .xz or .zst is compressed.

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
    finish(path)
    remove_stale(target.parent, prefix_of(target))
    with write_errors(path):
        temporary, number = create(target)
    try:
        with _staged(path, target, number) as file:
            yield file
        with write_errors(path):
            platform.replace_open(temporary, target, number)
    except BaseException:
        platform.release(number)
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(number)
    sync_folder(target.parent)


@contextlib.contextmanager
def atomic_files(*paths: PathLike) -> Iterator[list[BinaryIO]]:
    """Open files of one folder that are replaced together, as X.npy, X.vocab and X.npy.json.

    They are written to a private folder beside the first, which is renamed to the one name under
    which files are moved to their targets: another process waits until they are there. If this
    process is killed meanwhile, the next one that reads or writes the first completes the
    replacement: see `finish`.

    Raises
    ------
    ResourceError
        A file cannot be written, or another process does not end its replacement.
    """
    if len(paths) == 1:
        with atomic_write(paths[0]) as file:
            yield [file]
        return
    leader = target_of(paths[0])
    finish(paths[0])
    remove_stale(leader.parent, prefix_of(leader))
    with write_errors(paths[0]):
        folder, lock = create(leader, folder=True)
    try:
        with contextlib.ExitStack() as opened:
            files = []
            for path in paths:
                with write_errors(path):
                    number = os.open(folder / Path(path).name, platform.NEW, 0o600)
                opened.callback(os.close, number)
                files.append(opened.enter_context(_staged(path, target_of(path), number)))
            yield files
        sync_folder(folder)
        with write_errors(paths[0]):
            _move(_taking_turns(folder, leader), lock, paths[0])
    except BaseException:
        if is_at(folder, lock):
            platform.remove_entries(folder, lock)
            folder.rmdir()
        raise
    finally:
        platform.close(lock)


def finish(path: PathLike) -> None:
    """Complete a replacement by `atomic_files` of this file first, if its process was killed."""
    if not is_stream(path):
        placing = _placing(target_of(path))
        with claimed(placing, folder=True) as number, contextlib.suppress(OSError):
            if number is not None:
                _move(placing, number, path)


def _placing(leader: Path) -> Path:
    return leader.parent / f"{prefix_of(leader)}placing"


def _taking_turns(folder: Path, leader: Path) -> Path:
    """Rename a folder of complete files to the one name that allows to move them."""
    placing, end = _placing(leader), time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return folder.rename(placing)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if time.monotonic() > end:
            raise ResourceError(
                f"{leader}: another process has been replacing it for {WAIT_SECONDS} seconds; if "
                f"there is none, move the files in {placing}"
            )
        finish(leader)
        time.sleep(_STEP_SECONDS)


def _move(placing: Path, number: int, path: PathLike) -> None:
    """Move the files of a folder to their targets, first the one that others are named after."""
    for name in sorted(platform.entries(placing, number), key=lambda name: name != Path(path).name):
        target = target_of(Path(path).parent / name)
        try:
            platform.move_entry(placing, number, name, target)
        except OSError as error:
            if error.errno != errno.EXDEV:  # a link to another file system
                raise
            with atomic_write(target) as file, (placing / name).open("rb") as source:
                shutil.copyfileobj(source, file)
            platform.remove_entries(placing, number, {name})
        sync_folder(target.parent)
    with contextlib.suppress(OSError):  # another process may already have put its own there
        placing.rmdir()


@contextlib.contextmanager
def _staged(path: PathLike, target: Path, number: int) -> Iterator[BinaryIO]:
    """Write to a descriptor; at the end flush the file and set the permissions of its target."""
    with io.BufferedWriter(OutputFile(number, path, closefd=False)) as file:
        with compressing(path, cast(BinaryIO, file)) as packed:
            yield packed
        file.flush()
        with write_errors(path):
            os.fsync(number)
            platform.set_mode(number, _mode_of(target))


def optional_write(
    path: PathLike | None,
) -> contextlib.AbstractContextManager[BinaryIO | None]:
    """Open a file as `atomic_write` does, or return None for no path."""
    return contextlib.nullcontext() if path is None else atomic_write(path)


class OutputFile(io.FileIO):
    """A file descriptor whose errors name the target, or standard output."""

    def __init__(self, number: int, target: PathLike, *, closefd: bool = True) -> None:
        super().__init__(number, "w", closefd)
        self._target = target

    def write(self, data: Any) -> int:
        """Write some bytes."""
        with write_errors(self._target):
            return super().write(data)


# ---- streams ----


def is_stream(path: PathLike) -> bool:
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


def descriptor_of(path: PathLike) -> int | None:
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
def _streaming(path: PathLike) -> Iterator[BinaryIO]:
    """Open a stream for writing; standard output is not closed."""
    number = 1 if os.fspath(path) == STANDARD else descriptor_of(path)
    if number == 1:
        with write_errors(_STDOUT):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    with write_errors(path):
        number = _open_stream(path) if number is None else os.dup(number)
    with io.BufferedWriter(OutputFile(number, path)) as file:
        yield cast(BinaryIO, file)


def _open_stream(path: PathLike) -> int:
    """Open a device or a pipe, whose reader may still have to start."""
    if not stat.S_ISFIFO(Path(path).stat().st_mode):
        return os.open(path, platform.WRITE)
    end = time.monotonic() + READER_SECONDS
    while True:
        try:
            number = os.open(path, platform.WRITE | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            if time.monotonic() > end:
                raise ResourceError(
                    f"{os.fspath(path)}: is a pipe that no program has read for {READER_SECONDS} s;"
                    " start its reader first"
                ) from None
            time.sleep(0.05)
        else:
            os.set_blocking(number, True)
            return number


# ---- logs ----


def open_log(path: PathLike, append: bool = False) -> TextIO:
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
    if not is_stream(path):
        remove_stale(target.parent, prefix_of(target))
    with write_errors(path):
        if is_stream(path):
            number = _open_stream(path) if number is None else os.dup(number)
        elif append and target.exists():
            number = os.open(target, platform.APPEND)
            if os.fstat(number).st_size:
                os.lseek(number, -1, os.SEEK_END)
                if os.read(number, 1) != b"\n":  # a killed run left the last line incomplete
                    os.write(number, b"\n")
        else:  # a new file: the old one may have hard links
            temporary, number = create(target)
            platform.set_mode(number, _mode_of(target))
            platform.replace_open(temporary, target, number)
    return os.fdopen(number, "w", encoding="utf-8", newline="\n")


def check_log(path: PathLike) -> None:
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


# ---- targets ----


def target_of(path: PathLike) -> Path:
    """Return the path of a file with symbolic links resolved.

    Raises
    ------
    UsageError
        The links form a loop, or one is another user's in a folder that all users can write to.
    """
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise UsageError(f"{os.fspath(path)}: is a loop of symbolic links; remove it")
    place = Path(path).absolute()
    for one in (place, *place.parents):
        if _is_planted(one):
            raise UsageError(
                f"{os.fspath(path)}: {one} is another user's symbolic link in a folder that all "
                "can write to; name the file itself"
            )
    return target


def _is_planted(path: Path) -> bool:
    """Return whether Linux, too, would not follow a link (see protected_symlinks, proc(5))."""
    try:
        link, folder = path.lstat(), path.parent.stat()
    except OSError:
        return False
    shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    own = link.st_uid in (platform.user(), folder.st_uid)
    return bool(stat.S_ISLNK(link.st_mode) and shared and not own)


@contextlib.contextmanager
def write_errors(target: PathLike) -> Iterator[None]:
    """Turn an OSError into a `ResourceError` that names the target."""
    try:
        yield
    except ResourceError:
        raise
    except OSError as error:
        if isinstance(error, BrokenPipeError) and target == _STDOUT:
            raise  # the reader closed the pipe: not a failure
        advice = "choose another path"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = f"free some space or {advice}"
        elif error.errno == errno.EFBIG:
            advice = "raise the limit of ulimit -f"
        elif error.errno == errno.EBADF:  # a closed standard output
            advice = "redirect it, or give a file"
        raise ResourceError(
            f"{os.fspath(target)}: cannot be written: {error.strerror or error}; {advice}"
        ) from error


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, if its file system supports it."""
    with contextlib.suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def check_parent(name: str, target: Path) -> None:
    """Raise if the folder that a new file or folder is to be in does not exist."""
    if target.parent.is_dir():
        return
    if "://" in name:
        raise UsageError(f"{name}: is an address; write a file here, then copy it there")
    advice = "write $HOME for ~ in quotes" if "~" in target.parts else "create it first"
    raise UsageError(f"{name}: there is no folder {target.parent}; {advice}")


def check_writable(path: PathLike) -> None:
    """Raise before work starts if `atomic_write` could not write `path`."""
    check_suffix(path)
    if os.fspath(path) == STANDARD:
        check_standard_output()
        return
    if is_stream(path):
        number = descriptor_of(path)
        with write_errors(path):
            if number is not None:
                os.fstat(number)
            elif not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return
    if os.fspath(path).endswith(tuple(platform.SEPARATORS)):
        raise UsageError(f"{os.fspath(path)}: is the name of a folder; name a file")
    with write_errors(path):
        target = target_of(path)
        if target.is_dir():
            raise UsageError(f"{os.fspath(path)}: is a folder; give a file")
        check_parent(os.fspath(path), target)
        if is_mount_point(target):
            raise UsageError(f"{os.fspath(path)}: is a mount point, which cannot be replaced; "
                             "name a file in a folder that is mounted")  # fmt: skip
        with tempfile.TemporaryFile(dir=target.parent):
            pass


def is_mount_point(target: Path) -> bool:
    """Return whether something is mounted at a path; a file or folder there cannot be replaced."""
    try:
        mounts = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:  # not on Linux
        return os.path.ismount(target)
    places = (re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), line.split()[4])
              for line in mounts)  # fmt: skip
    return os.fsencode(target) in places


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
        return platform.is_open_for(stream.fileno(), mode)
    except (OSError, ValueError, AttributeError):  # it has no file descriptor
        return not getattr(stream, "closed", False)


def _mode_of(target: Path) -> int:
    """Return the permissions of the target, or of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    return new_mode(0o666)


def new_mode(mode: int) -> int:
    """Return `mode` without the bits of this process's umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask
