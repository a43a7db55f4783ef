"""Hide the differences between operating systems in locks, limits, signals and files.

No other module imports `fcntl` or `resource`, or asks which system it is.
docs/reference/promises.md lists the promises that do not hold on Windows.
"""

import contextlib
import errno
import mmap
import os
import re
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

try:
    import fcntl
    import resource
except ImportError:
    fcntl = resource = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:
    msvcrt = None  # type: ignore[assignment]

PathLike = str | os.PathLike[str]  # type annotation for any kind of path


def path_name(path: PathLike, name: str = "path") -> str:
    """Return a path as a str; if it has another type or is empty, raise an error that says so."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"{name} must be a path, not {type(path).__name__}")
    if not (found := os.fspath(path)):
        raise ValueError(f"{name}: the path is empty; choose a file")
    return found


WINDOWS = os.name == "nt"
SEPARATORS = "/\\" if WINDOWS else "/"
SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
HANGUP = getattr(signal, "SIGHUP", None)

# O_BINARY prevents Windows from converting line ends. Flags that the system lacks count as 0.
_FLAGS = ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_NOINHERIT")
_PLAIN = sum(getattr(os, name, 0) for name in _FLAGS)
READ = os.O_RDONLY | _PLAIN & ~getattr(os, "O_NOFOLLOW", 0)
UPDATE = os.O_RDWR | os.O_CREAT | _PLAIN
WRITE = os.O_WRONLY | getattr(os, "O_BINARY", 0)
NEW = UPDATE | os.O_EXCL
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# Total duration and interval (in seconds) of retries if Windows cannot replace an open file.
_BUSY_SECONDS, _STEP_SECONDS = 2, 0.01

# Paths of the Linux control groups, which can limit a container's CPUs and memory.
GROUP, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")

# ---- files ----


def is_broken_pipe(error: OSError) -> bool:
    """Return whether a write failed because a pipe was closed (EPIPE, or EINVAL on Windows)."""
    return isinstance(error, BrokenPipeError) or (WINDOWS and error.errno == errno.EINVAL)


def lock(number: int) -> bool:
    """Lock an open file until it is closed; return False if another process has locked the file."""
    try:
        if fcntl is not None:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        elif msvcrt is not None:
            msvcrt.locking(number, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # the file system does not support file locks
        pass
    return True


@contextlib.contextmanager
def opened_folder(path: Path) -> Iterator[int | None]:
    """Open a folder without following symbolic links; yield None where this is not supported.

    Another user may have replaced a part of the path by a link since the path was checked.
    """
    if not hasattr(os, "O_PATH"):
        yield None
        return
    number = os.open(path.anchor, os.O_PATH | os.O_CLOEXEC)
    try:
        for part in path.parts[1:]:
            below = os.open(part, _FOLDER | os.O_PATH | os.O_NOFOLLOW, dir_fd=number)
            os.close(number)
            number = below
        yield number
    finally:
        os.close(number)


def replace(source: Path, target: Path, folder: int | None = None) -> None:
    """Rename a file; on Windows, retry for a short time if another program has the target open."""
    if folder is not None:
        os.rename(source.name, target.name, src_dir_fd=folder, dst_dir_fd=folder)
        return
    end = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            source.replace(target)
            return
        except PermissionError:
            if not WINDOWS or time.monotonic() > end:
                raise
        time.sleep(_STEP_SECONDS)


def set_access(file: int | Path, old: os.stat_result) -> None:
    """Give a new file the permissions of an existing file and, if run as root, also its owner."""
    if fcntl is not None:
        if os.geteuid() == 0:
            os.chown(file, old.st_uid, old.st_gid)
        os.chmod(file, stat.S_IMODE(old.st_mode) & 0o777)  # noqa: PTH101 of a descriptor, too


def is_open_for(stream: TextIO | None, mode: int) -> bool:
    """Return whether a standard stream is open for `mode`, such as ``os.O_WRONLY``."""
    if stream is None:
        return False
    try:
        if fcntl is not None:
            flags = fcntl.fcntl(stream.fileno(), fcntl.F_GETFL)
            return flags & os.O_ACCMODE in (mode, os.O_RDWR)
        os.fstat(stream.fileno())
    except (OSError, ValueError, AttributeError):  # the stream has no file descriptor
        return not getattr(stream, "closed", False)
    return True


def host() -> str:
    """Return the name of this machine without characters that file names cannot contain."""
    name = os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")
    return re.sub(r"\W", "", name, flags=re.ASCII)[:20]


def is_running(number: int) -> bool:
    """Return whether a process is running on this machine; return True if this is unknown."""
    if fcntl is None:
        return True
    with contextlib.suppress(PermissionError, OverflowError):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return False
    return True


def user() -> int:
    """Return the user ID, or 0 on systems without numeric file owners."""
    return os.geteuid() if hasattr(os, "geteuid") else 0


# ---- limits ----


def memory_limit() -> int | None:
    """Return the memory limit of this process in bytes, or None if the system reports none."""
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
                size, resident = used_memory() if kind == resource.RLIMIT_AS else (0, 0)
                # Exclude address space that needs no memory of its own, such as mapped libraries.
                limits.append(max(soft - (size - resident), 0))
    for (text,) in _group_limits("memory", ["memory.limit_in_bytes"], "memory.max"):
        if text.isdecimal():
            limits.append(int(text))
    return min(limits, default=None)


def address_limit() -> int | None:
    """Return the address-space limit (``ulimit -v``) in bytes, or None if there is no limit."""
    soft = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if resource is None or soft == resource.RLIM_INFINITY else soft


def used_memory() -> tuple[int, int]:
    """Return the used address space and the resident memory in bytes; 0 means unknown."""
    with contextlib.suppress(OSError, ValueError):
        size, resident = Path("/proc/self/statm").read_text("ascii").split()[:2]
        return int(size) * mmap.PAGESIZE, int(resident) * mmap.PAGESIZE
    return 0, 0


def default_threads() -> int:
    """Return the number of CPUs that this process may use; a fractional quota is rounded up."""
    affinity = getattr(os, "sched_getaffinity", None)
    found = [len(affinity(0)) if affinity else os.cpu_count() or 1]
    names = ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
    for quota, period in _group_limits("cpu", names, "cpu.max"):
        if quota.isdecimal() and period.isdecimal():
            found.append(-(-int(quota) // max(int(period), 1)))
    return max(min(found), 1)


def _group_limits(controller: str, older: list[str], name: str) -> Iterator[list[str]]:
    """Yield the limits in the files of this process's control groups, split at whitespace.

    A container or a batch job is such a group. Its limits are in the files `older` in version 1 of
    the interface, and in the file `name` in version 2.
    """
    try:
        groups = GROUP.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    # A line of /proc/self/cgroup is hierarchy:controllers:path; in cgroup v2, controllers is empty.
    for line in groups:
        kinds, _, path = line.partition(":")[2].partition(":")
        if kinds and controller not in kinds.split(","):
            continue
        root = GROUPS / controller if kinds else GROUPS
        folder = root / path.lstrip("/")
        for parent in (folder, *folder.parents):
            files = [parent / one for one in (older if kinds else [name])]
            with contextlib.suppress(OSError):
                words = " ".join(file.read_text(encoding="utf-8") for file in files).split()
                if len(words) == len(older):
                    yield words
            if parent == root:
                break


def fresh_memory(size: int) -> mmap.mmap:
    """Allocate `size` bytes directly from the system; deleting the object frees the memory.

    A page takes memory when it is first used. The C library would keep some freed memory.
    """
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if fcntl else {}
    return mmap.mmap(-1, size, **private)


def peak_memory() -> int:
    """Return the peak resident memory of this process in bytes, or 0 if unknown.

    On Linux, ru_maxrss includes the peak of the parent process before exec, so VmHWM is read if
    possible. macOS counts in bytes, other systems in kilobytes.
    """
    found = None
    with contextlib.suppress(OSError):
        text = Path("/proc/self/status").read_text(encoding="utf-8")
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


class ReceivedSignal:
    """The first signal that arrives; `number` is None until a signal arrives."""

    number: int | None = None

    @property
    def name(self) -> str:
        """Name of the signal, such as SIGTERM."""
        return signal.Signals(self.number or 0).name
