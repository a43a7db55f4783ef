"""The address of a cluster (`--cluster`), and `open_cluster`, which makes an executor of it."""

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from dcme_w2v.errors import UsageError
from dcme_w2v.training.executor import Executor
from dcme_w2v.training.progress import QUIET, Reporter

WORKERS_MAX = 1024  # of local:N


@contextlib.contextmanager
def open_cluster(address: str, reporter: Reporter = QUIET) -> Iterator[Executor]:
    """Connect to a cluster, or start local workers that end with the block.

    Parameters
    ----------
    address : str
        ``local:N``, ``tcp://HOST:PORT``, ``tls://HOST:PORT`` or the path of a scheduler file.
        ``local:0`` runs all tasks in this process and does not need Dask.
    reporter
        See `Executor`.

    Raises
    ------
    UsageError
        The address is not valid, or Dask is not installed.
    ClusterError
        The scheduler does not answer, there is no worker, or a worker has other versions.
    """
    local = local_workers(address)
    if local == 0:
        yield Executor(reporter)
        return
    scheduler = None if local else _scheduler(address)
    try:
        from .dask_executor import opened
    except ImportError as error:
        raise UsageError(
            f"--cluster={address}: needs packages ({error}); pip install distributed cryptography"
        ) from error
    with opened(address, local, scheduler, reporter) as executor:
        yield executor


def check_address(address: str) -> None:
    """Raise UsageError if an address is not valid; nothing is connected."""
    if local_workers(address) is None:
        _scheduler(address)


def local_workers(address: str) -> int | None:
    """Return N of ``local:N``, or None for other addresses."""
    if not address.startswith("local"):
        return None
    found = re.fullmatch(r"local:([0-9]{1,4})", address)
    if found is None and Path(address).exists():
        return None
    if found is None or int(found[1]) > WORKERS_MAX:
        raise UsageError(f"--cluster={address}: give local:N with N from 0 to {WORKERS_MAX}")
    return int(found[1])


def _scheduler(address: str) -> str:
    """Return the address of a scheduler; a path names a scheduler file, which has the address."""
    if re.fullmatch(r"(tcp|tls)://[^\s/]+", address):
        return address
    refused = f"--cluster={address}: is not local:N, tcp://HOST:PORT, tls://HOST:PORT or a file"
    if "://" in address or not Path(address).is_file():
        raise UsageError(f"{refused} of a scheduler")
    try:
        found = json.loads(Path(address).read_text())["address"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{refused} that a Dask scheduler has written") from error
    return str(found)
