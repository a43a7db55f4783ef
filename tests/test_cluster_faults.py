"""A cluster of processes: workers that are lost, late or new, signals, other versions."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from cluster_work import ROUNDS, SHAPES, Hearing, digest, straight_digest, waiting, work
from helpers import train, write_corpus

from dcme_w2v.cluster.address import open_cluster
from dcme_w2v.cluster.rounds import run_rounds
from dcme_w2v.errors import ClusterError

engine = pytest.importorskip("dcme_w2v.cluster.dask_executor")
PATIENCE = 120  # seconds until a process is up, on a busy machine


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return straight_digest(tmp_path_factory.mktemp("none"))


class Processes:
    """A scheduler and workers without a nanny, as `dask scheduler` and `dask worker` start them."""

    def __init__(self, folder, seconds):
        self.file, self.stack = folder / "scheduler.json", contextlib.ExitStack()
        self.folder, self.seconds, self.workers = folder, seconds, []

    def start(self, *command):
        here = Path(__file__).parent
        known = {
            "PYTHONPATH": str(here),
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": self.seconds,
            "TMPDIR": str(self.folder),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "--scheduler-file", str(self.file)],
            env={**os.environ, **known},
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.folder,
        )
        self.stack.callback(end, process)
        return process

    def scheduler(self):
        self.start(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"
        )
        until(self.file.exists)
        return json.loads(self.file.read_text())["address"]

    def worker(self, *more):
        command = ["distributed.cli.dask_worker", "--no-nanny", "--no-dashboard"]
        self.workers.append(self.start(*command, "--host", "127.0.0.1", "--nthreads", "1", *more))


def end(process):
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()


def until(condition):
    for _ in range(20 * PATIENCE):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"waited {PATIENCE} s in vain")


@pytest.fixture
def processes(tmp_path):
    folder = tmp_path / "dask"
    folder.mkdir()
    found = Processes(folder, "3s")
    with found.stack:
        yield found


@contextlib.contextmanager
def opened(processes, workers):
    address = processes.scheduler()
    for _ in range(workers):
        processes.worker()
    with open_cluster(address, Hearing()) as cluster:
        cluster._client.wait_for_workers(workers, timeout=PATIENCE)
        yield cluster


def test_a_worker_that_joins_in_round_2_is_used(processes, straight, tmp_path):
    records = []

    def end_round(record, tables):
        records.append(record)
        if record.round == 1:
            processes.worker()
            cluster._client.wait_for_workers(2, timeout=PATIENCE)

    with opened(processes, 1) as cluster:
        tables = run_rounds(cluster, work(tmp_path), ROUNDS, end_round=end_round)
        assert digest(tables) == straight
        assert cluster.figures()["workers"] == 2
    took_part = [{note["process"] for note in one.notes} for one in records]
    assert len(took_part[0]) == 1 and len(took_part[0] | took_part[1] | took_part[2]) == 2


def test_deltas_of_a_lost_worker_are_recomputed(processes, straight, tmp_path):
    """It is killed between learning and mixing, when no other worker has what it learned."""
    killed = []

    def account(number, notes):
        if number == 2:
            killed.append(notes[1]["process"])
            os.kill(killed[0], signal.SIGKILL)

    with opened(processes, 2) as cluster:
        assert digest(run_rounds(cluster, work(tmp_path), ROUNDS, account=account)) == straight
        assert cluster.figures()["lost_workers"] == 1
        assert any("is lost" in line for line in cluster.reporter.lines)


@pytest.mark.slow
def test_late_results_of_an_unreachable_worker_are_dropped(processes, straight, tmp_path):
    """Stopped for longer than the scheduler waits for a sign of life, then continued."""
    lost = []

    def stop():
        process = waiting(tmp_path)
        os.kill(process, signal.SIGSTOP)
        try:
            until(lambda: len(cluster._client.nthreads()) == 1)
            lost.append(process)
        finally:
            os.kill(process, signal.SIGCONT)
            (tmp_path / "go").touch()

    with opened(processes, 2) as cluster:
        thread = threading.Thread(target=stop)
        thread.start()
        assert digest(run_rounds(cluster, work(tmp_path, "wait"), ROUNDS)) == straight
        thread.join()
        assert lost
        assert digest(run_rounds(cluster, work(tmp_path), ROUNDS)) == straight


# ---- signals ----


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)],
)
def test_workers_of_an_external_cluster_keep_running_after_a_signal(
    processes, tmp_path, number, code
):
    write_corpus(tmp_path / "c.txt", lines=600)
    address = processes.scheduler()
    for _ in range(2):
        processes.worker()
    program = [sys.executable, "-m", "dcme_w2v", "train", str(tmp_path / "c.txt"), "--dim", "8"]
    flags = ["--output", "v.bin", "--epochs", "1000", "--checkpoint", "state"]
    with subprocess.Popen(
        [*program, *flags, "--shards", "2", "--cluster", address],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        start_new_session=True,
    ) as running:
        until(lambda: list(tmp_path.glob("state/0*")) or running.poll() is not None)
        os.killpg(running.pid, number)
        err = running.communicate(timeout=PATIENCE)[1].decode()
    assert running.returncode == code, err
    assert "resume with --resume state" in err.splitlines()[-1]
    assert all(one.poll() is None for one in processes.workers)
    with open_cluster(address) as cluster:
        assert cluster.workers == 2
        tables = run_rounds(cluster, work(tmp_path), 1)
        assert tables.get("input").shape == SHAPES["input"]


# ---- errors before round 1 ----


def test_a_cluster_without_workers_is_one_line_of_error(processes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(engine, "WORKER_SECONDS", 1.0)
    write_corpus(tmp_path / "c.txt", lines=50)
    address = processes.scheduler()
    code = train(str(tmp_path / "c.txt"), str(tmp_path / "v.bin"), "--cluster", address)
    said = capsys.readouterr().err.strip()
    assert code == 1 and "\n" not in said
    assert f"--cluster {address}: has no workers after 1 s; start some with dask worker" in said


def test_a_worker_of_another_version_is_named(processes, tmp_path):
    preload = tmp_path / "other.py"
    preload.write_text("import dcme_w2v\ndcme_w2v.__version__ = '0.0.9'\n")
    address = processes.scheduler()
    processes.worker("--preload", str(preload))
    pattern = r"worker 127.0.0.1:\d+ has dcme-w2v 0.0.9, .*install the same versions"
    with pytest.raises(ClusterError, match=pattern), open_cluster(address):
        pass


@pytest.mark.slow
def test_a_stopped_worker_does_not_change_the_words(tmp_path, monkeypatch):
    """One of three, for 6 seconds."""
    monkeypatch.chdir(tmp_path)
    write_corpus(tmp_path / "c.txt", lines=600)
    line = ["--dim", "16", "--epochs", "3", "--sample", "0.01", "--shards", "4"]
    assert train("c.txt", "straight.bin", *line, "--cluster", "local:0") == 0
    program = [sys.executable, "-m", "dcme_w2v", "train", "c.txt", "--output", "v.bin", *line]
    command = [*program, "--cluster", "local:3", "--checkpoint", "state"]
    with subprocess.Popen(command, start_new_session=True) as running:
        until(lambda: list(tmp_path.glob("state/0*")) or running.poll() is not None)
        worker = workers_of(running.pid)[0]
        os.kill(worker, signal.SIGSTOP)
        time.sleep(6)
        os.kill(worker, signal.SIGCONT)
        assert running.wait(timeout=PATIENCE) == 0
    assert Path("v.bin").read_bytes() == Path("straight.bin").read_bytes()


def workers_of(program):
    """Return the processes that a program has started as workers."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == program and "spawn_main" in (entry / "cmdline").read_text():
                found.append(int(entry.name))
    return found
