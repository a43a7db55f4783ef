"""A cluster of processes: lost, stopped and new workers, a lost scheduler, signals, strangers."""

import contextlib
import json
import multiprocessing
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from data import write_corpus
from helpers import PROGRAM, python, train

from dcme_w2v.cluster.address import open_cluster
from dcme_w2v.errors import ClusterError, DivergedError, UsageError
from dcme_w2v.training.progress import Reporter

pytestmark = pytest.mark.long

dask = pytest.importorskip("dcme_w2v.cluster.dask_executor")
distributed = pytest.importorskip("distributed")
PATIENCE = 120  # seconds until a process is up, on a busy machine


class Hearing(Reporter):
    """Records messages; `lost` is set when a worker is lost."""

    def __init__(self):
        super().__init__()
        self.lines, self.lost = [], threading.Event()

    def message(self, message, **fields):
        self.lines.append(message)
        if "was lost" in message:
            self.lost.set()


# ---- tasks ----


def learned(number, shard, rows):
    return rows + np.random.default_rng([number, shard]).random(rows.shape), os.getpid()


def mixed(pairs):
    return np.mean([rows for rows, _ in pairs], axis=0)


def process_of(pair):
    return pair[1]


def exits(folder, times):
    """Kill the own process, as often as given."""
    (Path(folder) / str(os.getpid())).touch()
    if len(list(Path(folder).iterdir())) <= times:
        os._exit(9)
    return os.getpid()


def diverges():
    raise DivergedError("training diverged")


def in_rounds(cluster, after=lambda number, processes: None, rounds=3):
    """Learn and mix as a training does; `after` is called between both."""
    rows = cluster.submit(np.zeros, 50, number=0)
    for number in range(rounds):
        shards = [cluster.submit(learned, number, k, rows, number=k) for k in range(3)]
        cluster.wait(shards)
        after(number, cluster.all([cluster.submit(process_of, one) for one in shards]))
        rows = cluster.submit(mixed, shards, number=1)
        cluster.wait([rows])
    return cluster.result(rows).tobytes()


@pytest.fixture(scope="module")
def straight():
    with open_cluster("local:0") as cluster:
        return in_rounds(cluster)


# ---- clusters ----


class Reopened:
    """A cluster of two workers for all tests, reopened after a test that loses all of them."""

    def __init__(self):
        self.stack, self.cluster = contextlib.ExitStack(), None

    def get(self):
        if self.cluster is not None:
            try:
                self.cluster._client.wait_for_workers(2, timeout=15)
                assert self.cluster.workers >= 2
                return self.cluster
            except (TimeoutError, ClusterError):
                self.stack.close()
        self.cluster = self.stack.enter_context(open_cluster("local:2", Hearing()))
        return self.cluster


@pytest.fixture(scope="module")
def reopened():
    found = Reopened()
    with found.stack:
        yield found


@pytest.fixture
def cluster(reopened):
    found = reopened.get()
    found.reporter.lines.clear()
    return found


class Processes:
    """A scheduler and workers without a nanny, as `dask scheduler` and `dask worker` start them."""

    def __init__(self, folder, stack):
        self.folder, self.stack, self.workers = folder, stack, []

    def start(self, *command, stderr=subprocess.DEVNULL):
        folders = [str(folder) for folder in Path(__file__).parents[:2]]
        path = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
        known = {"PYTHONPATH": path, "TMPDIR": str(self.folder)}
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

    def worker(self):
        command = ["distributed.cli.dask_worker", self.address, "--no-nanny", "--nthreads", "1"]
        self.workers.append(self.start(*command))


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


# ---- workers ----


def test_a_worker_that_joins_in_round_2_is_used(processes, straight):
    found = []

    def after(number, pids):
        found.append(set(pids))
        if number == 0:
            processes.worker()
            cluster._client.wait_for_workers(2, timeout=PATIENCE)
            assert cluster.workers == 2

    with opened(processes, 1) as cluster:
        assert in_rounds(cluster, after) == straight
    assert len(found[0]) == 1 and len(set.union(*found)) == 2


def test_what_a_lost_worker_has_learned_is_recomputed(cluster, straight):
    """It is killed between learning and mixing, when no other worker has it."""

    def kill(number, pids):
        if number == 1:
            os.kill(pids[1], signal.SIGKILL)

    assert in_rounds(cluster, kill) == straight
    cluster._looked = 0.0
    cluster._look()
    assert any("was lost; its tasks will be run again" in line for line in cluster.reporter.lines)
    assert cluster.figures()["lost_workers"] >= 1


def test_values_of_earlier_rounds_are_freed(cluster, monkeypatch):
    monkeypatch.setattr(dask, "POLL_SECONDS", 1e-4)  # often in vain
    handles = []
    in_rounds(cluster, lambda *_: handles.append(len(cluster._client.futures)), rounds=8)
    assert max(handles[4:]) <= max(handles[:4])  # in the first rounds it depends on the time


def test_a_worker_that_a_task_ends_is_replaced(cluster, tmp_path):
    before = set(cluster._client.run(os.getpid).values())
    cluster.wait([cluster.submit(exits, str(tmp_path), 1)])
    cluster._client.wait_for_workers(2, timeout=PATIENCE)
    assert set(cluster._client.run(os.getpid).values()) - before


def test_a_task_that_ends_every_worker_is_named(cluster, tmp_path):
    """A worker that is killed while it starts is not restarted: there may be none left before."""
    with pytest.raises(ClusterError, match=r"shard 2 ended 4 workers|all workers were lost"):
        cluster.wait([cluster.submit(exits, str(tmp_path), 99, label="shard 2")])


def test_errors_of_a_task_name_shard_and_worker(cluster):
    with pytest.raises(DivergedError, match=r"diverged \(shard 2, worker 127"):
        cluster.wait([cluster.submit(diverges, label="shard 2")])
    missing = Path("/nowhere/part-2.txt")
    with pytest.raises(ClusterError, match=r"FileNotFoundError.*\(shard 1, worker"):
        cluster.wait([cluster.submit(missing.read_bytes, label="shard 1")])


def test_an_exception_of_watch_ends_the_wait(cluster, tmp_path):
    class Stopped(Exception):
        pass

    def watch():
        raise Stopped

    os.mkfifo(tmp_path / "go")
    task = cluster.submit((tmp_path / "go").read_text)
    cluster.watch = watch
    try:
        with pytest.raises(Stopped):
            cluster.wait([task])
    finally:
        cluster.watch = lambda: None
        (tmp_path / "go").write_text("")


def test_a_worker_that_is_stopped_is_named(processes, tmp_path, monkeypatch):
    monkeypatch.setattr(dask, "SILENT_SECONDS", 4)
    os.mkfifo(tmp_path / "go")

    class Told(Exception):
        pass

    def watch():
        if any("has not responded for 4 s" in line for line in cluster.reporter.lines):
            raise Told

    with opened(processes, 1) as cluster:
        task, cluster.watch = cluster.submit((tmp_path / "go").read_text), watch
        processes.workers[0].send_signal(signal.SIGSTOP)
        with pytest.raises(Told):
            cluster.wait([task])
        cluster.watch = lambda: None


def test_a_worker_that_is_stopped_before_the_start_is_an_error_with_the_limit(
    processes, monkeypatch
):
    """One of two workers that the scheduler knows; nothing was sent to it yet."""
    monkeypatch.setattr(dask, "ANSWER_SECONDS", 2.0)
    with opened(processes, 2):
        processes.workers[1].send_signal(signal.SIGSTOP)
        with (
            pytest.raises(ClusterError, match=r"did not answer within 2 s and may have stopped"),
            open_cluster(processes.address),
        ):
            raise AssertionError("the worker is stopped")


# ---- the scheduler ----

NO_LISTENER = """
import socket, sys
import dcme_w2v.cluster.dask_executor as dask
from dcme_w2v.cli.main import run
dask.CONNECT_SECONDS = dask.CLOSE_SECONDS = 0.3
with socket.create_server(("127.0.0.1", 0)) as silent:
    for where in ("127.0.0.1:1", f"127.0.0.1:{silent.getsockname()[1]}"):
        for scheme in ("tcp", "tls"):
            if run(["train", "c.txt", "-o", "v", "--cluster", f"{scheme}://{where}"]) != 1:
                sys.exit("another exit code")
"""


@pytest.mark.parametrize("has_certificates", [True, False])
def test_an_address_without_a_scheduler_is_one_line_and_no_traceback(tmp_path, has_certificates):
    """In a process of its own, whose end may print a traceback, too."""
    write_corpus(tmp_path / "c.txt", lines=50)
    security, known = distributed.Security.temporary(), dict(os.environ)
    names = {
        "CA_FILE": "tls_ca_file",
        "CLIENT__CERT": "tls_client_cert",
        "CLIENT__KEY": "tls_client_key",
    }
    for name, attribute in names.items() if has_certificates else ():
        (tmp_path / attribute).write_text(getattr(security, attribute))
        known[f"DASK_DISTRIBUTED__COMM__TLS__{name}"] = str(tmp_path / attribute)
    done = python("-c", NO_LISTENER, cwd=tmp_path, env=known)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 4
    assert all(one.startswith("error: --cluster t") for one in lines)
    assert all(re.search("no scheduler answered.* with certificates", one) for one in lines)


def test_a_stopped_scheduler_is_an_error(processes, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "go")
    with opened(processes, 1) as cluster:
        monkeypatch.setattr(dask, "ANSWER_SECONDS", 0.5)
        monkeypatch.setattr(dask, "CLOSE_SECONDS", 0.5)
        task = cluster.submit((tmp_path / "go").read_text)
        processes.scheduler.send_signal(signal.SIGSTOP)
        with pytest.raises(ClusterError, match="scheduler does not answer; restart the cluster"):
            cluster.wait([task])


@contextlib.contextmanager
def training(processes, tmp_path, workers):
    """Start `train` as a process, and wait for the first checkpoint."""
    write_corpus(tmp_path / "c.txt", lines=600)
    address = processes.open_scheduler()
    for _ in range(workers):
        processes.worker()
    program = [*PROGRAM, "train", str(tmp_path / "c.txt"), "--dim", "8"]
    flags = ["--output", "v.bin", "--epochs", "1000", "--checkpoint", "state", "--shards", "2"]
    with subprocess.Popen(
        [*program, *flags, "--checkpoint-every", "1", "--cluster", address],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
        start_new_session=True,
    ) as running:
        processes.stack.callback(end, running)
        lines = iter(running.stderr.readline, "")
        assert any(line.startswith("round 2:") for line in lines)
        yield running


def test_a_killed_scheduler_is_one_line_that_names_resume(processes, tmp_path):
    with training(processes, tmp_path, 1) as running:
        processes.scheduler.kill()
        err = running.communicate(timeout=PATIENCE)[1]
    lines = [line for line in err.splitlines() if not line.startswith("round ")]
    assert running.returncode == 1 and len(lines) == 1, err
    assert "the cluster's scheduler does not answer" in lines[0]
    assert lines[0].endswith("; resume with --resume state")


def test_workers_of_an_external_cluster_keep_running_after_a_signal(processes, tmp_path, straight):
    with training(processes, tmp_path, 2) as running:
        os.killpg(running.pid, signal.SIGINT)
        err = running.communicate(timeout=PATIENCE)[1]
    assert running.returncode == 130, err
    assert "resume with --resume state" in err.splitlines()[-1]
    assert all(one.poll() is None for one in processes.workers)
    with open_cluster(processes.address) as cluster:
        assert cluster.workers == 2 and in_rounds(cluster) == straight


def test_a_scheduler_that_is_lost_when_a_task_fails_is_an_error():
    """Its client does not answer when it is asked for the task's error."""

    class Client:
        status = "running"

        def sync(self, *args, **more):
            raise distributed.TimeoutError

    def silent(timeout=None):
        raise distributed.TimeoutError

    failed = SimpleNamespace(status="error", exception=silent, _exception=silent)
    with pytest.raises(ClusterError, match="scheduler does not answer"):
        dask.DaskExecutor(Client(), Hearing()).wait([failed])


# ---- errors before round 1 ----


def test_a_cluster_without_workers_is_one_line_of_error(processes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(dask, "START_SECONDS", 1.0)
    write_corpus(tmp_path / "c.txt", lines=50)
    address = processes.open_scheduler()
    code = train(str(tmp_path / "c.txt"), str(tmp_path / "v.bin"), "--cluster", address)
    said = capsys.readouterr().err.strip()
    assert code == 1 and "\n" not in said
    assert f"{address}: too few workers connected within 1 s; start workers with dask" in said


def test_another_version_on_a_worker_is_named(cluster, monkeypatch):
    monkeypatch.setattr(dask, "__version__", "9.9")
    with pytest.raises(ClusterError, match=r"worker 127.0.0.1:\d+ has dcme-w2v .*has dcme-w2v 9.9"):
        cluster.check_versions()


@pytest.mark.parametrize("package", ["distributed", "cryptography"])
def test_a_missing_engine(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "dcme_w2v.cluster.dask_executor", raising=False)
    wanted = "pip install distributed cryptography"
    with pytest.raises(UsageError, match=wanted), open_cluster("local:2"):
        pass


# ---- local workers ----


def test_nobody_else_can_connect_to_local_workers(cluster):
    """Only the program has the key: a task of another user would run as this one."""
    address = cluster._client.scheduler.address
    assert address.startswith("tls://127.0.0.1:")
    other = distributed.Security.temporary()
    for target, security in ((address, other), (address.replace("tls", "tcp"), None)):
        with pytest.raises(OSError, match=r"TLS|SSL|reset|Timed out"):
            distributed.Client(target, security=security, timeout=5, set_as_default=False)


def test_local_workers_have_no_http_port(cluster):
    assert cluster._client.scheduler_info()["services"] == {}
    found = cluster._client.run(lambda dask_worker: dask_worker.service_ports)
    assert list(found.values()) == [{}, {}]


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


KILLED = """
import json, os, sys
from dcme_w2v.cluster.address import open_cluster
if __name__ == "__main__":
    with open_cluster("local:2") as cluster:
        print(json.dumps(list(cluster._client.run(os.getpid).values())), flush=True)
        sys.stdin.read()
"""


def test_workers_that_dask_does_not_stop_are_killed(monkeypatch):
    """Python waits at exit for processes that are left; workers of another cluster are kept."""
    with contextlib.ExitStack() as stack:
        with monkeypatch.context() as patch, open_cluster("local:1") as cluster:
            other = stack.enter_context(open_cluster("local:1"))
            [pid], kept = (one._client.run(os.getpid).values() for one in (cluster, other))
            [process] = [one for one in multiprocessing.active_children() if one.pid == pid]
            patch.setattr(dask, "_close", lambda owner: None)
        end = time.monotonic() + PATIENCE
        while process.exitcode is None and time.monotonic() < end:
            time.sleep(0.01)  # Dask's own thread may be about to store the exit code
        assert process.exitcode == -signal.SIGKILL
        assert [*other._client.run(os.getpid).values()] == [*kept]


def test_workers_end_when_the_program_is_killed(tmp_path):
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
    assert len(workers) == 2
    for one in workers:
        assert select.select([one], [], [], PATIENCE)[0], "a worker is still running"
        os.close(one)
