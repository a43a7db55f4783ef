"""Runs tests as on a system without POSIX's calls: `python without_posix.py TEST ...`.

What Windows lacks is taken away before the package is imported; a stand-in for its msvcrt locks.
"""

import contextlib
import fcntl
import importlib
import os
import pkgutil
import shutil
import sys
import types

import pytest

MISSING = ["chown", "fchmod", "fork", "geteuid", "mkfifo", "pathconf", "pread", "sysconf"]
MISSING += ["sched_getaffinity", "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH"]
OPEN = os.open


def locking(number: int, mode: int, size: int) -> None:
    """Lock a file as Windows does, where a lock belongs to the open file."""
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PermissionError(*error.args) from error


def open_files_only(path, flags, mode=0o777, **more):
    """Open a file as Windows does: folders have no descriptors."""
    assert more.get("dir_fd") is None, "Windows has no dir_fd"
    if os.path.isdir(path):  # noqa: PTH112
        raise PermissionError(13, "Permission denied", path)
    return OPEN(path, flags, mode)


def main() -> None:
    """Import every module of the package, then run the tests."""
    for name in ("asyncio", "distributed", "sklearn", "scipy.sparse", "tempfile", "pty"):
        with contextlib.suppress(ImportError):  # they ask for the modules that are taken away
            importlib.import_module(name)
    for name in MISSING:
        delattr(os, name)
    sys.modules["fcntl"] = sys.modules["resource"] = None
    sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2)
    package = importlib.import_module("dcme_w2v")
    for one in pkgutil.walk_packages(package.__path__, "dcme_w2v."):
        if not one.name.endswith(("__main__", "dask_executor")):  # which needs distributed
            importlib.import_module(one.name)
    shutil._use_fd_functions = False
    os.open = open_files_only
    sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
