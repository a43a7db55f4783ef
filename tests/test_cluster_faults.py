"""A cluster of processes: lost, stopped and new workers, a lost scheduler, signals, versions."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from cluster_work import ROUNDS, SHAPES, Hearing, digest, gates, straight_digest, work
from helpers import train, write_corpus

from dcme_w2v.cluster import rounds
from dcme_w2v.cluster.address import open_cluster
from dcme_w2v.cluster.rounds import run_rounds
from dcme_w2v.errors import ClusterError
from dcme_w2v.files.folders import scratch_folder

dask = pytest.importorskip("dcme_w2v.cluster.dask_executor")
PATIENCE = 120  # seconds until a process is up, on a busy machine


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    return straight_digest(tmp_path_factory.mktemp("none"))


class Processes:
    """A scheduler and workers without a nanny, as `dask scheduler` and `dask worker` start them."""

    def __init__(self, folder, stack):
        self.folder, self.stack, self.workers = folder, stack, []

    def start(self, *command, stderr=subprocess.DEVNULL):
        known = {
            "PYTHONPATH": str(Path(__file__).parent),
            "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "3s",
            "TMPDIR": str(self.folder),
        }
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "--no-dashboard", "--host", "127.0.0.1"],
            env={**os.environ, **known},
            stderr=stderr,
            text=True,
            start_new_session=True,
            cwd=self.folder,
        )
        self.stack.callback(end, process)
        return process

    def open_scheduler(self):
        """Start a scheduler and return its address, from the log that it writes at its start."""
        command = ["distributed.cli.dask_scheduler", "--port", "0"]
        self.scheduler = self.start(*command, stderr=subprocess.PIPE)  # it writes a few lines
        lines = iter(self.scheduler.stderr.readline, "")
        self.address = next(one.split()[-1] for one in lines if "Scheduler at:" in one)
        return self.address

    def worker(self, *more):
        command = ["distributed.cli.dask_worker", self.address, "--no-nanny", "--nthreads", "1"]
        self.workers.append(self.start(*command, *more))


def end(process):
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()
    if process.stderr:
        process.stderr.close()


@pytest.fixture
def processes(tmp_path):
    folder = tmp_path / "dask"
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        yield Processes(folder, stack)


@contextlib.contextmanager
def opened(processes, workers):
    address = processes.open_scheduler()
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


def test_deltas_of_a_lost_worker_are_recomputed(processes, straight, tmp_path, monkeypatch):
    """It is killed between learning and mixing, when no other worker has what it learned."""
    notes_of = rounds.notes_of

    def kill(executor, learned):
        notes = notes_of(executor, learned)
        if notes[1]["round"] == 1:
            os.kill(notes[1]["process"], signal.SIGKILL)
        return notes

    monkeypatch.setattr(rounds, "notes_of", kill)
    with opened(processes, 2) as cluster:
        assert digest(run_rounds(cluster, work(tmp_path), ROUNDS)) == straight
        assert cluster.figures()["lost_workers"] == 1
        assert cluster.reporter.lost.is_set()


def test_the_loss_of_all_workers_is_an_error(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(dask, "WORKER_SECONDS", PATIENCE)
    gates(tmp_path)
    with opened(processes, 1) as cluster:
        monkeypatch.setattr(dask, "WORKER_SECONDS", 0.1)
        task = cluster.submit((tmp_path / "go").read_text, label="shard 1")
        processes.workers[0].kill()
        with pytest.raises(ClusterError, match="all workers are lost"):
            cluster.wait([task])
    assert any("no worker is left; waiting" in line for line in cluster.reporter.lines)


# ---- the scheduler ----


def test_a_stopped_scheduler_is_an_error(processes, tmp_path, monkeypatch):
    gates(tmp_path)
    with opened(processes, 1) as cluster:
        monkeypatch.setattr(dask, "ANSWER_SECONDS", 0.5)
        monkeypatch.setattr(dask, "CLOSE_SECONDS", 0.5)
        task = cluster.submit((tmp_path / "go").read_text)
        processes.scheduler.send_signal(signal.SIGSTOP)
        with pytest.raises(ClusterError, match="lost or does not answer: restart it"):
            cluster.wait([task])


@contextlib.contextmanager
def training(processes, tmp_path, workers):
    """Start `train` as a process, and wait for the first checkpoint."""
    write_corpus(tmp_path / "c.txt", lines=600)
    address = processes.open_scheduler()
    for _ in range(workers):
        processes.worker()
    program = [sys.executable, "-m", "dcme_w2v", "train", str(tmp_path / "c.txt"), "--dim", "8"]
    flags = ["--output", "v.bin", "--epochs", "1000", "--checkpoint", "state", "--shards", "2"]
    with subprocess.Popen(
        [*program, *flags, "--cluster", address],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
        start_new_session=True,
    ) as running:
        processes.stack.callback(end, running)
        lines = iter(running.stderr.readline, "")
        assert any(line.startswith("round 1:") for line in lines)
        yield running


def test_a_killed_scheduler_is_one_line_that_names_resume(processes, tmp_path):
    with training(processes, tmp_path, 1) as running:
        processes.scheduler.kill()
        err = running.communicate(timeout=PATIENCE)[1]
    lines = [line for line in err.splitlines() if not line.startswith("round ")]
    assert running.returncode == 1 and len(lines) == 1, err
    assert "the scheduler of the cluster is lost" in lines[0]
    assert lines[0].endswith("the last checkpoint is in state, resume with --resume state")


@pytest.mark.parametrize(
    "number, code",
    [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.slow)],
)
def test_workers_of_an_external_cluster_keep_running_after_a_signal(
    processes, tmp_path, number, code
):
    with training(processes, tmp_path, 2) as running:
        os.killpg(running.pid, number)
        err = running.communicate(timeout=PATIENCE)[1]
    assert running.returncode == code, err
    assert "resume with --resume state" in err.splitlines()[-1]
    assert all(one.poll() is None for one in processes.workers)
    with open_cluster(processes.address) as cluster:
        assert cluster.workers == 2
        tables = run_rounds(cluster, work(tmp_path), 1)
        assert tables.get("input").shape == SHAPES["input"]


# ---- errors before round 1 ----


def test_a_cluster_without_workers_is_one_line_of_error(processes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(dask, "WORKER_SECONDS", 1.0)
    write_corpus(tmp_path / "c.txt", lines=50)
    address = processes.open_scheduler()
    code = train(str(tmp_path / "c.txt"), str(tmp_path / "v.bin"), "--cluster", address)
    said = capsys.readouterr().err.strip()
    assert code == 1 and "\n" not in said
    assert f"--cluster {address}: has no workers after 1 s; start some with dask worker" in said


# ---- local workers ----


def test_nothing_planted_in_the_temporary_folder_is_followed(tmp_path, monkeypatch):
    planted, victim = tmp_path / "dask-scratch-space", tmp_path / "victim"
    planted.mkdir()
    victim.write_text("precious")
    (planted / "global.lock").symlink_to(victim)
    (planted / "worker.dirlock").symlink_to(victim)
    os.mkfifo(planted / "purge.lock")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_cluster("local:1") as cluster:
        assert cluster.result(cluster.submit(max, 1, 2)) == 2
    assert victim.read_text() == "precious"
    assert sorted(one.name for one in planted.iterdir()) == [
        "global.lock", "purge.lock", "worker.dirlock"
    ]  # fmt: skip


def test_local_workers_have_no_http_port():
    with open_cluster("local:2") as cluster:
        assert cluster._client.scheduler_info()["services"] == {}
        found = cluster._client.run(lambda dask_worker: dask_worker.service_ports)
        assert list(found.values()) == [{}, {}]


KILLED = """
import json, os, sys
from dcme_w2v.cluster import rounds
from dcme_w2v.cluster.address import open_cluster
if __name__ == "__main__":
    with open_cluster("local:2") as cluster:
        print(json.dumps(list(cluster._client.run(os.getpid).values())), flush=True)
        sys.stdin.read()
"""


def test_workers_and_their_folder_end_when_the_program_is_killed(tmp_path, monkeypatch):
    """The folder is removed at the next start; folders of running programs stay."""
    script = tmp_path / "program.py"
    script.write_text(KILLED)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as program:
        workers = [os.pidfd_open(one) for one in json.loads(program.stdout.readline())]
        program.kill()
    for one in workers:
        assert select.select([one], [], [], PATIENCE)[0], "a worker is still running"
        os.close(one)
    (left,) = tmp_path.glob(".dcme-w2v-cluster-*")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with scratch_folder("dcme-w2v-cluster-") as mine, scratch_folder("dcme-w2v-cluster-") as other:
        assert not left.exists() and Path(mine).is_dir() and Path(other).is_dir()
    assert not list(tmp_path.glob(".dcme-w2v-cluster-*"))


@pytest.mark.slow
def test_late_results_of_an_unreachable_worker_are_dropped(processes, straight, tmp_path):
    """Stopped for longer than the scheduler waits for a sign of life, then continued."""
    reached, go = gates(tmp_path)

    def stop():
        process = int(reached.read_text())
        os.kill(process, signal.SIGSTOP)
        cluster.reporter.lost.wait(PATIENCE)
        os.kill(process, signal.SIGCONT)
        go.write_text("")

    with opened(processes, 2) as cluster:
        thread = threading.Thread(target=stop, daemon=True)
        thread.start()
        assert digest(run_rounds(cluster, work(tmp_path, "wait"), ROUNDS)) == straight
        thread.join(PATIENCE)
        assert cluster.reporter.lost.is_set()
        assert digest(run_rounds(cluster, work(tmp_path), ROUNDS)) == straight


def test_a_scheduler_that_is_stopped_before_the_connection_is_an_error(processes, monkeypatch):
    for name in ("CONNECT_SECONDS", "CLOSE_SECONDS"):
        monkeypatch.setattr(dask, name, 0.5)
    address = processes.open_scheduler()
    processes.scheduler.send_signal(signal.SIGSTOP)
    with pytest.raises(ClusterError, match="no scheduler answers at tcp"), open_cluster(address):
        pass
