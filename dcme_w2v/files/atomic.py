"""Write files atomically, so that a failure leaves either the old or the complete new contents."""

import bz2
import contextlib
import errno
import functools
import gzip
import importlib.util
import io
import lzma
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath
from typing import Any, BinaryIO, TextIO, cast

import dcme_w2v.platform as platform
from dcme_w2v.errors import DcmeError, ResourceError, UsageError
from dcme_w2v.platform import PathLike, path_name

STANDARD = "-"
# The remedy that the error message for an output file above the file-size limit suggests.
LIMITED = "raise the file-size limit (ulimit -f)"
_STDOUT = "standard output"
_DESCRIPTOR = re.compile(r"/(?:dev|proc/(self|thread-self|[0-9]+)(?:/task/[0-9]+)?)/fd/([0-9]+)")
_OURS = {None, "self", "thread-self"}
_LINKS = 40  # maximum number of symbolic links to follow
# Maximum length of a target's name in bytes: below 255, so that .metadata.tsv can be appended.
_LONGEST_NAME = 240
# A temporary file's name begins with at most this many bytes of the target's name.
_LONGEST = 180


@contextlib.contextmanager
def atomic_write(path: PathLike, named: PathLike | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces `path` only if the block succeeds.

    The bytes go to a temporary file beside the target, which is flushed to the disk and renamed at
    the end, and removed when the block raises. The next write to the same target removes the
    temporary files of killed processes. A symbolic link is kept, and the file that it points to is
    replaced. Devices and pipes are written to directly; ``-`` is standard output. A file whose name
    ends in .gz, .bz2, .xz or .zst is compressed. Errors name the path `named` (default: `path`).

    Raises
    ------
    ResourceError
        The file cannot be written; the target is unchanged.
    """
    if is_stream(path):
        with _streaming(path) as stream, compressing(path, stream) as packed:
            yield packed
        return
    target, named = target_of(path), path if named is None else named
    with contextlib.ExitStack() as stack:
        with write_errors(named):
            folder = stack.enter_context(platform.opened_folder(target.parent))
            old = target.stat() if target.exists() else None
            temporary = temporary_path(target)
            name = temporary if folder is None else temporary.name
            mode = 0o666 if old is None else 0o600
            number = os.open(name, platform.NEW, mode, dir_fd=folder)
        try:
            with io.BufferedWriter(OutputFile(number, named)) as file:
                with compressing(path, cast(BinaryIO, file)) as packed:
                    yield packed
                file.flush()
                with write_errors(named):
                    if old is not None:
                        platform.set_access(number, old)
                    os.fsync(number)
            with write_errors(named):
                platform.replace(temporary, target, folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise
    with contextlib.suppress(OSError):  # some file systems cannot flush a folder's entries
        number = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def temporary_path(target: Path) -> Path:
    """Return a new path beside the target for a temporary file, with the process ID in its name.

    Earlier temporary files of the target are removed if their process on this machine has ended.
    """
    name = target.name
    while len(os.fsencode(name)) > _LONGEST:
        name = name[:-1]
    remove_abandoned(target.parent, re.escape(name))
    own = f".{name}.{platform.host()}-{os.getpid()}-{os.urandom(4).hex()}.part"
    return target.parent / own


def remove_abandoned(folder: Path, targets: str) -> None:
    """Remove the temporary files of processes on this machine that have ended.

    `targets` is a regular expression for the names of the files that the temporary files were to
    replace.
    """
    part = rf"\.(?:{targets})\.{re.escape(platform.host())}-([0-9]+)-[0-9a-f]{{8}}\.part"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):  # noqa: PTH208 names only
            found = re.fullmatch(part, name)
            if found and not platform.is_running(int(found[1])):
                (folder / name).unlink()


def optional_write(
    path: PathLike | None,
) -> contextlib.AbstractContextManager[BinaryIO | None]:
    """Return `atomic_write(path)`, or a context that yields None if `path` is None."""
    return contextlib.nullcontext() if path is None else atomic_write(path)


class OutputFile(io.FileIO):
    """An output file whose error messages mention the target's path or "standard output"."""

    def __init__(self, number: int, target: PathLike, *, closefd: bool = True) -> None:
        super().__init__(number, "w", closefd)
        self._target = target

    def write(self, data: Any) -> int:
        """Write bytes; return the number of bytes written."""
        with write_errors(self._target):
            return super().write(data)


# ---- streams ----


def is_stream(path: PathLike) -> bool:
    """Return whether a path is a device, pipe, socket or open file, such as ``-`` or /dev/fd/3.

    Streams are written to directly: no file is replaced, and no derived file is written.
    """
    if path_name(path) == STANDARD or descriptor_of(path) is not None:
        return True
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def descriptor_of(path: PathLike) -> int | None:
    """Return this process's file descriptor for a path such as /dev/stdout."""
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
    """Open a stream for writing, and close the stream afterwards unless it is standard output."""
    number = 1 if os.fspath(path) == STANDARD else descriptor_of(path)
    if number == 1:
        with write_errors(_STDOUT):
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        return
    with write_errors(path):
        number = os.open(path, platform.WRITE) if number is None else os.dup(number)
    with io.BufferedWriter(OutputFile(number, path)) as file:
        yield cast(BinaryIO, file)


# ---- logs ----


def open_log(path: PathLike, append: bool) -> TextIO:
    """Open a new JSON-lines log or, if `append` is set, continue the log of an earlier run.

    Raises
    ------
    ResourceError
        The log cannot be written; see `check_log`.
    """
    if os.fspath(path) == STANDARD:
        return sys.stdout
    shared, file = descriptor_of(path), target_of(path)
    with write_errors(path):
        if shared is not None:
            return os.fdopen(os.dup(shared), "w", encoding="utf-8", newline="\n")
        if not append and not is_stream(path):
            # Replace an old file instead of truncating it, because the file may have hard links.
            with atomic_write(path):
                pass
        if not is_stream(path) and file.exists() and file.stat().st_size:
            with file.open("rb+") as old:
                old.seek(-1, os.SEEK_END)
                if old.read() != b"\n":  # the last line that a killed run wrote can be incomplete
                    old.write(b"\n")
        return file.open("a", encoding="utf-8", newline="\n")


def check_text(path: PathLike) -> None:
    """Raise an error early if `path` cannot be written or has the suffix of a binary format."""
    if (suffix := suffixes_of(path)[0]) in NOT_TEXT:
        raise UsageError(
            f"{os.fspath(path)}: text cannot be written to a {suffix} file; use a "
            "name ending in .txt"
        )
    check_writable(path)


def check_log(path: PathLike) -> None:
    """Raise an error early if `open_log` could not write to `path`."""
    check_text(path)
    if suffixes_of(path)[1]:
        raise UsageError(
            f"{os.fspath(path)}: a log cannot be compressed while it is written; choose an "
            "uncompressed .jsonl file"
        )


# ---- targets ----


def target_of(path: PathLike) -> Path:
    """Return the path of a file, with all symbolic links resolved.

    Raises
    ------
    UsageError
        The links form a loop, or one is another user's in a folder that all users can write to.
    """
    left, links = list(reversed(Path(path).absolute().parts)), 0
    place = Path(left.pop())
    while left:
        if (name := left.pop()) == os.pardir:
            place = place.parent
            continue
        place /= name
        try:
            link = place.lstat()
        except OSError:  # nothing exists at this path
            continue
        if not stat.S_ISLNK(link.st_mode):
            continue
        if _is_planted(link, place.parent):
            raise UsageError(
                f"{os.fspath(path)}: {place} is another user's symbolic link in a world-writable "
                "folder; use the path of the file itself"
            )
        with write_errors(path):
            aim = place.readlink()
        if (links := links + 1) > _LINKS:
            raise UsageError(
                f"{os.fspath(path)}: the symbolic links in this path form a loop; remove one of "
                "the links"
            )
        left += reversed(aim.parts)
        place = Path(left.pop()) if aim.is_absolute() else place.parent
    return place


def _is_planted(link: os.stat_result, folder: Path) -> bool:
    """Return whether the Linux setting protected_symlinks (see proc(5)) would reject a link."""
    above = folder.stat()
    is_shared = above.st_mode & stat.S_ISVTX and above.st_mode & stat.S_IWOTH
    return bool(is_shared) and link.st_uid not in (platform.user(), above.st_uid)


@contextlib.contextmanager
def write_errors(target: PathLike) -> Iterator[None]:
    """Convert an OSError to a `ResourceError` whose message contains the target's path."""
    try:
        yield
    except DcmeError:
        raise
    except OSError as error:
        if target == _STDOUT and (isinstance(error, BrokenPipeError) or error.filename is not None):
            raise  # the reader closed the pipe, or reading an input failed
        advice = "choose another path"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = f"free some space or {advice}"
        elif error.errno == errno.EFBIG:
            advice = LIMITED
        elif error.errno == errno.EBADF:  # standard output is closed
            advice = "redirect standard output, or write to a file"
        raise ResourceError(
            f"{os.fspath(target)} cannot be written: {error.strerror or error}; {advice}"
        ) from error


def temporary_folder() -> str:
    """Return the system's folder for temporary files; raise `ResourceError` if there is none."""
    try:
        return tempfile.gettempdir()
    except FileNotFoundError:  # no folder is writable, for example in a read-only container
        named = os.environ.get("TMPDIR", "/tmp")
        raise ResourceError(
            f"{named}: no folder for temporary files is writable; set TMPDIR to a writable folder"
        ) from None


def check_parent(name: str, target: Path) -> None:
    """Raise an error if the folder that will contain a new file or folder does not exist."""
    if target.parent.is_dir():
        return
    if "://" in name:
        raise UsageError(
            f"{name}: writing to a URL is not supported; write to a local file, and then upload "
            "the file"
        )
    advice = "write $HOME for ~ in quotes" if "~" in target.parts else "create it first"
    raise UsageError(f"{name}: the folder {target.parent} does not exist; {advice}")


def check_writable(path: PathLike) -> None:
    """Raise an error early if `atomic_write` could not write to `path`."""
    suffix, compression = suffixes_of(path)
    if suffix in UNSUPPORTED:
        raise UsageError(
            f"{os.fspath(path)}: {suffix} files cannot be written; use another suffix (vectors: "
            ".txt, .bin or .safetensors; rows: .npz or .svm; tables: .csv, .jsonl or .parquet; to "
            "compress, add .gz, .bz2, .xz or .zst)"
        )
    if compression == ".zst" and importlib.util.find_spec("zstandard") is None:
        raise UsageError(
            f"{os.fspath(path)} cannot be written without the package zstandard; run: pip "
            "install zstandard, or choose a .gz file"
        )
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
            elif not (stat.S_ISFIFO(kind := Path(path).stat().st_mode) or stat.S_ISCHR(kind)):
                raise UsageError(f"{os.fspath(path)} is a socket or a disk device; choose a file")
        return
    if os.fspath(path).endswith(tuple(platform.SEPARATORS)):
        raise UsageError(
            f"{os.fspath(path)}: the path ends with a slash, which denotes a folder; choose a file"
        )
    with write_errors(path):
        target = target_of(path)
        if len(os.fsencode(target.name)) > _LONGEST_NAME:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        if target.is_dir():
            raise UsageError(f"{os.fspath(path)} is a folder; use a file")
        check_parent(os.fspath(path), target)
        with tempfile.TemporaryFile(dir=target.parent):
            pass


def check_standard_output() -> None:
    """Raise an error early if standard output cannot be written."""
    if not platform.is_open_for(sys.stdout, os.O_WRONLY):
        raise UsageError("standard output is closed; redirect standard output, or write to a file")


def standard_input() -> BinaryIO:
    """Return standard input as a binary file.

    Raises
    ------
    UsageError
        It is closed.
    """
    if not platform.is_open_for(sys.stdin, os.O_RDONLY):
        raise UsageError("standard input is closed; redirect standard input, or read from a file")
    return sys.stdin.buffer


# ---- compression ----

_BUFFER_BYTES = 1 << 20

# Suffixes of known formats that this program cannot write.
UNSUPPORTED = {
    ".kv", ".feather", ".arrow", ".h5", ".hdf5", ".pkl", ".pickle", ".joblib", ".pt",
    ".pth", ".onnx", ".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".docx", ".xlsx", ".sqlite",
    ".mat", ".magnitude",
}  # fmt: skip
# Suffixes of binary formats, which are rejected for text outputs.
NOT_TEXT = {".npy", ".npz", ".safetensors", ".parquet", ".png", ".pdf"}


def _zstd(file: Any) -> Any:
    import zstandard

    return zstandard.ZstdCompressor(write_checksum=True).stream_writer(file, closefd=False)


COMPRESSORS: dict[str, Callable[[Any], Any]] = {
    ".gz": lambda file: gzip.GzipFile("", "wb", 6, file, mtime=0),
    ".bz2": lambda file: bz2.BZ2File(file, "wb"),
    ".xz": functools.partial(lzma.LZMAFile, mode="wb"),
    ".zst": _zstd,
}


def suffixes_of(path: PathLike) -> tuple[str, str]:
    """Return the suffixes of a file name for its format and its compression, in lowercase.

    A suffix that the name lacks is empty.
    """
    name = PurePath(path)
    suffix = name.suffix.lower()
    return (name.with_suffix("").suffix.lower(), suffix) if suffix in COMPRESSORS else (suffix, "")


class _Target(io.RawIOBase):
    """A writer that writes bytes to a file, or discards them while `dropping` is set."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.dropping = False

    def writable(self) -> bool:
        """Return True, as `io.BufferedWriter` requires."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes, or discard them if `dropping` is set; return the number of bytes."""
        return memoryview(data).nbytes if self.dropping else self._file.write(data)


@contextlib.contextmanager
def compressing(path: PathLike, file: BinaryIO) -> Iterator[BinaryIO]:
    """Compress the data written to `file` if the suffix of `path` is a compression suffix.

    If the block raises an exception, the end of the compressed data is not written.
    """
    _, suffix = suffixes_of(path)
    if not suffix:
        yield file
        return
    target = _Target(file)
    compressor = COMPRESSORS[suffix](target)
    buffered = io.BufferedWriter(compressor, _BUFFER_BYTES)
    try:
        yield cast(BinaryIO, buffered)
        buffered.flush()
    except BaseException:
        target.dropping = True
        raise
    finally:
        buffered.close()
