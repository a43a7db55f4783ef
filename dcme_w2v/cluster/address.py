"""Parse a cluster address (`--cluster`), and connect to the cluster."""

import contextlib
import re
from collections.abc import Iterator

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.opening import read_json
from dcme_w2v.training.executor import Executor
from dcme_w2v.training.progress import QUIET, Reporter

WORKERS_MAX = 1024  # maximum number of workers in a local:N address


@contextlib.contextmanager
def open_cluster(address: str, reporter: Reporter = QUIET) -> Iterator[Executor]:
    """Connect to a cluster, or start local workers that stop at the end of the block.

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
    where = parsed(address)
    if where == 0:
        yield Executor(reporter)
        return
    try:
        from .dask_executor import opened
    except ImportError as error:
        raise UsageError(
            f"--cluster={address}: a required package is missing ({error}); run: pip install "
            "distributed cryptography"
        ) from error
    with opened(address, where, reporter) as executor:
        yield executor


def parsed(address: str) -> int | str:
    """Convert ``local:N`` to N; otherwise, return a scheduler's address, possibly read from a file.

    Raises
    ------
    UsageError
        The address is not valid; nothing is connected.
    """
    local = re.fullmatch(r"local:([0-9]{1,4})", address)
    if local and int(local[1]) <= WORKERS_MAX:
        return int(local[1])
    scheduler = address
    if "://" not in address:
        with contextlib.suppress(OSError, FormatError):
            scheduler = str(read_json(address, "").get("address"))
    if re.fullmatch(r"(tcp|tls)://[^\s/]+:[0-9]{1,5}", scheduler):
        return scheduler
    raise UsageError(
        f"--cluster={address} is not a cluster address; use local:N with N from 0 to "
        f"{WORKERS_MAX}, tcp://HOST:PORT, tls://HOST:PORT, or the path of a Dask scheduler file"
    )
