"""What differs between systems: locks, open folders, limits, signals.

No other module imports `fcntl` or `resource`, or asks which system it is. Where there is no
`fcntl`, as on Windows, an open file can be neither renamed nor removed, and a folder has no
descriptor: a file beside it, named after its inode, is opened and locked instead. docs/promises.md
lists the promises that do not hold there.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

try:
    import fcntl
    import resource
except ImportError:
    fcntl = resource = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]  # any path, in annotations

WINDOWS = os.name == "nt"
SEPARATORS = "/\\" if WINDOWS else "/"
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
HANGUP = getattr(signal, "SIGHUP", None)

# Windows would change line ends without O_BINARY; it has none of the others.
_FLAGS = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_NOINHERIT")
_PLAIN = sum(getattr(os, name, 0) for name in _FLAGS)
_FOLLOWING = _PLAIN & ~getattr(os, "O_NOFOLLOW", 0)
READ, UPDATE = os.O_RDONLY | _FOLLOWING, os.O_RDWR | _PLAIN
APPEND = UPDATE | os.O_APPEND
WRITE = os.O_WRONLY | getattr(os, "O_BINARY", 0)
NEW = UPDATE | os.O_CREAT | os.O_EXCL
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_LOCK = UPDATE | os.O_CREAT | getattr(os, "O_TEMPORARY", 0)
_LOCKED_BYTE = 0x7FFFFFF0  # far behind the end: Windows does not let others read a locked byte
_BUSY_SECONDS, _STEP_SECONDS = 2, 0.01  # a scanner of viruses may have a file open

GROUP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")  # of containers, on Linux
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
_AT_FDCWD, _SWAP = -100, 2  # of Linux; both systems have 2 for the flag

# Without fcntl: of the descriptors of folders, the folder's status and the file beside it.
_folders: dict[int, tuple[os.stat_result, Path | None]] = {}


# ---- files and folders that are open ----


def is_broken_pipe(error: OSError) -> bool:
    """Return whether a write failed because the reader closed the pipe; Windows says EINVAL."""
    return isinstance(error, BrokenPipeError) or (WINDOWS and error.errno == errno.EINVAL)


def lock(number: int) -> None:
    """Lock the file or folder of a descriptor until it is closed.

    Raises
    ------
    BlockingIOError
        Another has locked it.
    OSError
        The file system has no locks.
    """
    if fcntl is not None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    elif msvcrt is None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    else:
        place = os.lseek(number, 0, os.SEEK_CUR)
        os.lseek(number, _LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except PermissionError as error:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK)) from error
        finally:
            os.lseek(number, place, os.SEEK_SET)


def open_folder(folder: Path, *, to_lock: bool = False) -> int:
    """Return a descriptor of a folder that is not a symbolic link, for `close`.

    Raises
    ------
    OSError
        There is no such folder.
    """
    if fcntl is not None:
        return os.open(folder, _FOLDER | os.O_NOFOLLOW)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
    beside = folder.parent / f".dcme-w2v-{found.st_ino:x}.lock" if to_lock else None
    number = os.open(beside, _LOCK, 0o600) if beside else os.open(os.devnull, READ)
    _folders[number] = found, beside
    return number


def close(number: int) -> None:
    """Close the descriptor of a file or a folder."""
    _, beside = _folders.pop(number, (None, None))
    if beside is not None and not WINDOWS:  # which removes it with the last descriptor
        with contextlib.suppress(OSError):
            lock(number)
            beside.unlink()
    os.close(number)


def status(number: int) -> os.stat_result:
    """Return the status of the file or folder of a descriptor."""
    return _folders[number][0] if number in _folders else os.fstat(number)


def entries(folder: Path, number: int) -> list[str]:
    """Return the names in an open folder."""
    return os.listdir(folder) if number in _folders else os.listdir(number)  # noqa: PTH208


def open_entry(path: str | os.PathLike[str], folder: int | None) -> int:
    """Open a file for reading, by its last part in an open folder if one is given."""
    if folder is None or folder in _folders:
        return os.open(path, READ)
    return os.open(Path(path).name, READ, dir_fd=folder)


def remove_entries(folder: Path, number: int, names: Collection[str] | None = None) -> None:
    """Remove the files with these names, or all files, in an open folder."""
    for name in entries(folder, number):
        if names is None or name in names:
            with contextlib.suppress(OSError):
                if number in _folders:
                    (folder / name).unlink()
                else:
                    os.unlink(name, dir_fd=number)


def move_entry(folder: Path, number: int, name: str, target: Path) -> None:
    """Move a file of an open folder to a target, which it replaces."""
    if number in _folders:
        replace(folder / name, target)
    else:
        os.replace(name, target, src_dir_fd=number)


def release(number: int) -> None:
    """Let the file of a descriptor be renamed or removed; the descriptor remains to be closed."""
    if fcntl is None:
        nothing = os.open(os.devnull, READ)
        os.dup2(nothing, number, inheritable=False)
        os.close(nothing)


def replace_open(source: Path, target: Path, number: int) -> None:
    """Rename an open file; the descriptor then appends to it."""
    if fcntl is not None:
        source.replace(target)
        return
    release(number)
    replace(source, target)
    again = os.open(target, APPEND)
    os.dup2(again, number, inheritable=False)
    os.close(again)


def replace(source: Path, target: Path) -> None:
    """Rename a file; wait for a moment if the target is open elsewhere, which Windows forbids."""
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            source.replace(target)
            return
        except PermissionError:
            if not WINDOWS or time.monotonic() > end:
                raise
        time.sleep(_STEP_SECONDS)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step; return False where the system cannot."""
    if fcntl is None:
        return False
    library, names = ctypes.CDLL(None, use_errno=True), (os.fsencode(first), os.fsencode(second))
    if hasattr(library, "renameat2"):
        code = library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _SWAP)
    elif hasattr(library, "renamex_np"):  # macOS
        code = library.renamex_np(*names, _SWAP)
    else:
        return False
    if code == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(second))


def set_mode(number: int, mode: int) -> None:
    """Set the permissions of an open file, where the system has them."""
    if fcntl is not None:
        os.fchmod(number, mode)


def is_open_for(number: int, mode: int) -> bool:
    """Return whether a descriptor is open for `mode`, such as ``os.O_WRONLY``."""
    if fcntl is None:
        os.fstat(number)
        return True
    return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE in (mode, os.O_RDWR)


def host() -> str:
    """Return the name of this machine, as a part of a file's name."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return re.sub(r"\W", "", name, flags=re.ASCII)[:20]


def is_running(number: int) -> bool:
    """Return whether a process runs on this machine; True where a system cannot tell."""
    if fcntl is None:
        return True
    with contextlib.suppress(PermissionError, OverflowError):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return False
    return True


def user() -> int:
    """Return the number of the user, 0 where files do not have such owners."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


# ---- names ----

_DEVICE = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com[1-9¹²³]|lpt[1-9¹²³]) *(\..*)?", re.I)
_NOT_IN_NAMES = re.compile(r'[<>:"|?*\x00-\x1f]')


def unusable(path: str, windows: bool = WINDOWS) -> str | None:
    r"""Return why a system has no file of this name, None if it may have.

    Windows has devices such as ``con`` in every folder, also with a suffix, drops dots and spaces
    at the end of a name, and takes what follows a colon for a stream of a file.

    >>> unusable("D:\\models\\con.txt", windows=True)
    "'con.txt' is the name of a device"
    >>> unusable("con.txt", windows=False)
    """
    if not windows or path.lower().removeprefix("\\\\.\\") == "nul":
        return None
    if path.startswith(("\\\\?\\", "\\\\.\\")):
        path = path[4:]
    for name in re.split(r"[\\/]", re.sub(r"^[A-Za-z]:", "", path)):
        if name in ("", ".", ".."):
            continue
        if _DEVICE.fullmatch(name.rstrip(" .")):
            return f"{name!r} is the name of a device"
        if found := _NOT_IN_NAMES.search(name):
            return f"{name!r} has {found[0]!r}"
        if name.endswith((" ", ".")):
            return f"{name!r} ends in a space or a dot"
    return None


def same_name(name: str, folds: bool = WINDOWS or sys.platform == "darwin") -> str:
    """Return one spelling for all names of one file: most disks of Windows and macOS fold case."""
    return name.casefold() if folds else name


# ---- limits ----


def memory_limits() -> list[int]:
    """Return the limits of the memory of this process in bytes, those that the system reports."""
    limits = []
    with contextlib.suppress(AttributeError, ValueError, OSError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if resource is None:
        with contextlib.suppress(ImportError):
            import psutil

            limits.append(psutil.virtual_memory().total)
    else:
        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            soft, _ = resource.getrlimit(kind)
            if soft != resource.RLIM_INFINITY:
                limits.append(soft)
    return [*limits, *_group_limits()]


def _group_limits() -> Iterator[int]:
    """Yield the limits of this process's groups, as of a container or a batch job, in bytes."""
    try:
        groups = GROUP.read_text().splitlines()
    except OSError:
        return
    for line in groups:  # hierarchy:controllers:path, without controllers in version 2
        kinds, _, path = line.partition(":")[2].partition(":")
        if kinds and "memory" not in kinds.split(","):
            continue
        root = GROUPS / "memory" if kinds else GROUPS
        name = "memory.limit_in_bytes" if kinds else "memory.max"
        folder = root / path.lstrip("/")
        for parent in (folder, *folder.parents):
            with contextlib.suppress(OSError, ValueError):
                yield int((parent / name).read_text())
            if parent == root:
                break


def file_limit() -> int | None:
    """Return the maximum file size in bytes (``ulimit -f``); None if unlimited."""
    if resource is None:
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if soft == resource.RLIM_INFINITY else soft


def fresh_memory(size: int) -> mmap.mmap:
    """Return so many bytes of the system, used page by page, which are freed with the object.

    The C library would keep some of them for later.
    """
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if fcntl else {}
    return mmap.mmap(-1, size, **private)


def peak_memory() -> int:
    """Return the highest resident memory of this process in bytes, 0 if it is not known.

    On Linux, ru_maxrss includes the peak of the parent process before exec, so VmHWM is read if
    possible. macOS counts in bytes, other systems in kilobytes.
    """
    found = None
    with contextlib.suppress(OSError):
        text = Path("/proc/self/status").read_text()
        found = re.search(r"^VmHWM:\s*(\d+) kB$", text, re.MULTILINE)
    if found:
        return int(found[1]) * 1024
    if resource is None:
        with contextlib.suppress(ImportError, AttributeError):
            import psutil

            memory: Any = psutil.Process().memory_info()
            return int(memory.peak_wset)
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
