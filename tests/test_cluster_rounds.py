"""The engine of distributed training: rounds give the same bytes if workers fail."""

import contextlib
import gc
import sys

import pytest
from cluster_work import ROUNDS, SHAPES, Hearing, digest, gates, straight_digest, work

from dcme_w2v.cluster.address import open_cluster
from dcme_w2v.cluster.rounds import Block, blocks_of, run_rounds
from dcme_w2v.errors import ClusterError, DivergedError, UsageError


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The digest of a run in this process."""
    return straight_digest(tmp_path_factory.mktemp("none"))


@pytest.fixture(scope="module")
def serial():
    with open_cluster("local:0") as found:
        yield found


class Reopened:
    """A cluster of two workers for all tests, reopened after a test that loses a worker."""

    def __init__(self):
        self.stack, self.cluster = contextlib.ExitStack(), None

    def get(self):
        if self.cluster is not None:
            try:
                self.cluster._client.wait_for_workers(2, timeout=15)
                return self.cluster
            except TimeoutError:
                self.stack.close()
        self.cluster = self.stack.enter_context(open_cluster("local:2", Hearing()))
        self.cluster._client.wait_for_workers(2, timeout=300)  # the machine may be busy
        return self.cluster


@pytest.fixture(scope="module")
def reopened():
    pytest.importorskip("distributed")
    found = Reopened()
    with found.stack:
        yield found


@pytest.fixture
def cluster(reopened):
    return reopened.get()


def test_values_of_earlier_rounds_are_freed(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("dcme_w2v.cluster.dask_executor.POLL_SECONDS", 1e-4)  # often in vain
    handles = []
    gc.collect()
    gc.disable()
    try:
        count = lambda *_: handles.append(len(cluster._tasks))  # noqa: E731
        run_rounds(cluster, work(tmp_path), 8, end_round=count)
    finally:
        gc.enable()
    assert max(handles[3:]) <= handles[2]  # two rounds are kept


def test_blocks_do_not_change_the_bytes(serial, tmp_path):
    blocks = tuple(Block(name, slice(a, a + 10)) for name in SHAPES for a in range(0, 50, 10))
    tables = run_rounds(serial, work(tmp_path, blocks=blocks, has_parts=False), ROUNDS)
    whole = run_rounds(serial, work(tmp_path, has_parts=False), ROUNDS)
    assert digest(tables) == digest(whole)


def test_a_table_is_fetched_in_pieces(cluster, straight, tmp_path, monkeypatch):
    monkeypatch.setattr("dcme_w2v.cluster.rounds.ROWS_FETCHED", 7)
    found = run_rounds(cluster, work(tmp_path, blocks=blocks_of(SHAPES, 1)), ROUNDS)
    assert {len(rows) for _, rows in found.pieces("input")} == {7, 1}
    assert digest(found) == straight


def test_a_killed_worker_is_replaced(cluster, straight, tmp_path):
    cluster.reporter.lines.clear()
    tables = run_rounds(cluster, work(tmp_path, "exit once"), ROUNDS)
    assert digest(tables) == straight
    assert any("is lost" in line and "repeated" in line for line in cluster.reporter.lines)


def test_a_shard_that_kills_every_worker(cluster, tmp_path):
    """A worker that is killed while it starts is not restarted: there may be none left before."""
    ended = r"shard 2 of round 2 \(part-2.txt\) ended 4 workers|all workers are lost"
    with pytest.raises(ClusterError, match=ended):
        run_rounds(cluster, work(tmp_path, "exit"), ROUNDS)


def test_errors_of_a_task_name_shard_and_worker(cluster, tmp_path):
    with pytest.raises(DivergedError, match=r"shard 2 of round 2 \(part-2.txt\), worker 127"):
        run_rounds(cluster, work(tmp_path, "diverged"), ROUNDS)
    with pytest.raises(ClusterError, match=r"FileNotFoundError.*shard 2 \(part-2.txt\), worker"):
        run_rounds(cluster, work(tmp_path, "missing"), ROUNDS)


def test_an_exception_of_watch_ends_the_wait(cluster, tmp_path):
    class Stopped(Exception):
        pass

    def watch():
        if any("-" in one.name for one in tmp_path.iterdir()):
            raise Stopped

    reached, go = gates(tmp_path)
    cluster.watch = watch
    try:
        with pytest.raises(Stopped):
            run_rounds(cluster, work(tmp_path, "wait"), ROUNDS)
    finally:
        cluster.watch = lambda: None
        reached.read_text()
        go.write_text("")


# ---- addresses, versions, the end ----


@pytest.mark.parametrize(
    "address", ["local", "local:", "local:-1", "local:99999", "http://x:1", "nowhere.json", "tcp:"]
)
def test_an_invalid_address(address):
    with pytest.raises(UsageError, match="cluster"), open_cluster(address):
        pass


def test_an_unreachable_scheduler(monkeypatch):
    engine = pytest.importorskip("dcme_w2v.cluster.dask_executor")
    monkeypatch.setattr(engine, "CONNECT_SECONDS", 1)
    with (
        pytest.raises(ClusterError, match=r"no scheduler answers at tcp://127\.0\.0\.1:9"),
        open_cluster("tcp://127.0.0.1:9"),
    ):
        pass


def test_tls_needs_certificates():
    pytest.importorskip("distributed")
    with pytest.raises(ClusterError, match="certificates"), open_cluster("tls://127.0.0.1:9"):
        pass


def test_nobody_else_can_connect_to_local_workers(cluster):
    """Only the program has the key: a task of another user would run as this one."""
    pytest.importorskip("cryptography")
    distributed = pytest.importorskip("distributed")
    address = cluster._client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    other = distributed.Security.temporary()
    for target, security in ((address, other), (address.replace("tls", "tcp"), None)):
        with pytest.raises(OSError):
            distributed.Client(target, security=security, timeout=5, set_as_default=False)


def test_another_version_on_a_worker_is_named(cluster, monkeypatch):
    engine = pytest.importorskip("dcme_w2v.cluster.dask_executor")
    monkeypatch.setattr(engine, "__version__", "9.9")
    with pytest.raises(ClusterError, match=r"worker 127.0.0.1:\d+ has dcme-w2v .*has dcme-w2v 9.9"):
        cluster.check_versions()


def test_a_missing_engine(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.delitem(sys.modules, "dcme_w2v.cluster.dask_executor", raising=False)
    with pytest.raises(UsageError, match="pip install distributed"), open_cluster("local:2"):
        pass
