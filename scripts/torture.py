"""Torture tests: kill training at random times, make writes fail, and check that nothing is lost.

    kills    signals 9, 15 and 2 at random times and inside random writes of `train` and `classify
             train`; each resumed run must end with the same bytes as an uninterrupted run
    writes   each writing call fails once (no space, I/O error, read-only) or writes only half
    starts   SIGINT at random times while a command starts; it must print at most one line and end
             with the exit code for the signal
    soak     one long run, whose resident memory must stay flat

Kills during a rename, concurrent readers and writers, and planted files are tested in
tests/formats/test_hostile_files.py. `make torture` runs that file and short forms of kills, writes
and starts; `make torture-long` runs all parts at full length. The script prints one line of counts
per part. It needs Linux and a C compiler.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import errno
import importlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SHIM = ROOT / "tests" / "faults" / "shim.c"
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # in memory, where flushing is fast
FAIL, KILL, HALF = range(3)  # the same numbers as in shim.c
PATIENCE, HANG = 300, 71  # seconds to wait; an exit code that no run has
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ERRORS = (errno.ENOSPC, errno.EIO, errno.EROFS)

# The runs differ in these options: objectives, models and formats.
CASES = (
    ("--objective", "ns", "--format", "binary"),
    ("--objective", "nce", "--model", "skipgram", "--format", "text"),
    ("--objective", "dcme", "--window-mode", "fixed", "--format", "safetensors"),
    ("--objective", "nce", "--virtual-samples", "2", "--window-mode", "fixed"),
    ("--objective", "ns", "--deterministic", "--threads", "2"),
    ("--objective", "ns", "--format", "binary", "--cluster", "local:0", "--shards", "3"),
)
COLUMNS = ("--text-column", "text", "--label-column", "label")
CLASS_CASES = (
    ("docs.tsv", "--objective", "dcme"),
    ("docs.tsv", "--objective", "dcme", "--dcme-update", "paper", "--patience", "2"),
    ("docs", "--objective", "nce", "--l2", "1e-4"),  # one folder per class
    ("docs.jsonl", "--sample-weight-column", "weight", *COLUMNS),  # lists of labels
)
COMMON = ("--dim", "24", "--epochs", "2", "--threads", "1", "--min-count", "2", "--quiet")
JSON_LINE = '{{"label": ["c{0}", "c0"], "text": "{1}", "weight": 1.5}}\n'
OLD = b""  # any output may replace an empty file


@dataclass
class Run:
    """The files of one training run in its own folder."""

    folder: Path
    case: tuple[str, ...]
    straight: dict[str, bytes] = field(default_factory=dict)

    @property
    def outputs(self) -> list[Path]:
        """Return the bytes of the files that a successful run writes, except files with times."""
        format = dict(zip(self.case[::2], self.case[1::2], strict=False)).get("--format")
        suffix = ".safetensors" if format == "safetensors" else ".bin"
        return [self.folder / f"v{suffix}"]

    def arguments(self, every: str) -> list[str]:
        """Return the command line, which starts, or resumes if there is a checkpoint."""
        keep = str(self.folder / "k")
        files = ["--output", str(self.outputs[0]), "--log-json", str(self.folder / "log")]
        state = ["--checkpoint", keep, "--resume", keep, "--checkpoint-every", every]
        corpus = str(self.folder.parent / "corpus.txt")
        return ["train", corpus, *COMMON, *self.case, *files, *state]

    def fresh(self) -> Run:
        """Empty the folder, then write an old file at the path of each output."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        for path in self.outputs:
            path.write_bytes(OLD)
        return self

    def problem(self) -> str | None:
        """Return what is wrong with the existing files after any run, finished or not."""
        from dcme_w2v.errors import DcmeError
        from dcme_w2v.training.checkpoint_folder import Checkpoint, generations_in

        for path in self.outputs:
            if path.exists() and content_of(path) not in (OLD, self.straight[path.name]):
                return f"{path.name} is neither the old file nor the new one"
        try:
            for one in generations_in(self.folder / "k"):
                Checkpoint.load(one)
        except DcmeError as failure:
            return str(failure)
        return None

    def unfinished(self) -> str | None:
        """Return what is wrong with the files after a run that reported success."""
        found = {path.name: content_of(path) for path in self.outputs}
        for name, data in self.straight.items():
            if found.get(name) != data:
                return f"{name} differs from the uninterrupted run"
        left = [path.name for path in self.folder.rglob(".*.part")]
        return f"the run left {left} behind" if left else None


def content_of(path: Path) -> bytes:
    """Return the bytes of a file, without the record of an artifact, because it contains times."""
    data = path.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :] if data[8:9] == b"{" else data


class ClassRun(Run):
    """The files of one run of ``classify train``."""

    @property
    def outputs(self) -> list[Path]:
        """Return the bytes of the model."""
        return [self.folder / "m"]

    def arguments(self, every: str) -> list[str]:
        """Return the command line, which starts, or resumes if there is a checkpoint."""
        docs, *case = self.case
        keep, docs = str(self.folder / "k"), str(self.folder.parent / docs)
        files = ["--output", str(self.folder / "m"), "--log-json", str(self.folder / "log")]
        state = ["--checkpoint", keep, "--resume", keep, "--checkpoint-every", every]
        fixed = ["--epochs", "6", "--holdout", "0.2", "--threads", "1", "--quiet"]
        fixed += ["--tune", "0", "--subwords", "none"]  # no comparisons, which have no checkpoints
        return ["classify", "train", docs, *fixed, *case, *files, *state]


class Shim:
    """The preloaded library that makes writing calls fail; see tests/faults/shim.c."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(os.environ["LD_PRELOAD"])

    def arm(self, at: int, action: int, argument: int) -> None:
        """Make call number `at` fail or kill the process; with 0, only count calls."""
        self._library.fault_arm(ctypes.c_long(at), action, int(argument))

    def calls(self) -> int:
        """Return the number of writing calls since `arm`."""
        return int(self._library.fault_calls())


def start(run: Run, every: str, fault: tuple[int, int, int] = (0, FAIL, 0)) -> int:
    """Start a run in a child, which writes its call count to `calls`, its messages to `err`."""
    from dcme_w2v.cli.main import main

    shim, code = Shim(), 70
    child = os.fork()
    if child:
        return child
    with contextlib.suppress(BaseException):
        number = os.open(run.folder / "err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(number, 2)
        try:
            shim.arm(*fault)
            main(run.arguments(every))
        except SystemExit as end:
            code = int(end.code or 0)
        done = shim.calls()
        shim.arm(0, FAIL, 0)
        sys.stderr.flush()
        (run.folder / "calls").write_text(str(done))
        (run.folder / "modules").write_text("\n".join(sys.modules))
    os._exit(code)


def end(child: int) -> int:
    """Wait for a child; return its exit code, minus the signal that killed it, or HANG."""
    late = time.monotonic() + PATIENCE
    while time.monotonic() < late:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return HANG


@contextlib.contextmanager
def workplace(seed: int) -> Iterator[Path]:
    """Create a folder with a corpus that follows Zipf's law, and documents of sixty classes."""
    chance = random.Random(seed)
    words = [f"word{i}" for i in range(1500)]
    weights = [1 / (i + 5) for i in range(1500)]
    with tempfile.TemporaryDirectory(prefix="torture-", dir=MEMORY) as name:
        tokens = chance.choices(words, weights, k=60_000)
        lines = (" ".join(tokens[i : i + 15]) for i in range(0, len(tokens), 15))
        Path(name, "corpus.txt").write_text("\n".join(lines), encoding="utf-8")
        starts = [i % 60 * 20 for i in range(4000)]
        texts = [" ".join(chance.choices(words[i : i + 60], k=12)) for i in starts]
        for file, line in (("docs.tsv", "c{0}\t{1}\n"), ("docs.jsonl", JSON_LINE)):
            lines = (line.format(*one) for one in zip(starts, texts, strict=True))
            Path(name, file).write_text("".join(lines), encoding="utf-8")
        for i in dict.fromkeys(starts):
            own = [text for start, text in zip(starts, texts, strict=True) if start == i]
            Path(name, "docs", f"c{i}").mkdir(parents=True)
            Path(name, "docs", f"c{i}", "0.txt").write_text("\n".join(own), encoding="utf-8")
        yield Path(name)


Straight = tuple[Run, float, int]


def straight_runs(place: Path) -> list[Straight]:
    """Run each case without interruption; return its outputs, seconds and number of calls.

    The first run of a case says what it imports, so that later children share the modules.
    """
    found = []
    kinds = [*((Run, case) for case in CASES), *((ClassRun, case) for case in CLASS_CASES)]
    for number, (kind, case) in enumerate(kinds):
        run = kind(place / f"run{number}", case)
        for _ in range(2):
            began = time.monotonic()
            if code := end(start(run.fresh(), "0.03s")):
                said = (run.folder / "err").read_text()
                sys.exit(f"error: {run.arguments('0.03s')}: exit code {code}: {said}")
            seconds = time.monotonic() - began
            for name in (run.folder / "modules").read_text().splitlines():
                if name.startswith(("dcme_w2v.", "numpy.", "scipy.")):
                    importlib.import_module(name)
        run.straight = {path.name: content_of(path) for path in run.outputs}
        found.append((run, seconds, int((run.folder / "calls").read_text())))
    return found


def phase_of(run: Run) -> str:
    """Return the stage in which a run was killed, judging by its files."""
    if list(run.folder.glob("k/.*.part")):
        return "checkpointing"
    if list(run.folder.glob(".*.part")):
        return "writing"
    with contextlib.suppress(OSError, IndexError, ValueError):
        lines = (run.folder / "log").read_text().splitlines()
        stages = [one["stage"] for one in map(json.loads, lines) if one["event"] == "start"]
        return str(stages[-1])
    return "starting"


def kills(count: int, chance: random.Random, runs: Sequence[Straight]) -> dict[str, Any]:
    """Kill runs `count` times in all; each run is killed several times and then completes."""
    landed: collections.Counter[str] = collections.Counter()
    phases: collections.Counter[str] = collections.Counter()
    failures: list[str] = []
    while sum(landed.values()) < count:
        run, seconds, calls = chance.choice(runs)
        run.fresh()
        for _ in range(chance.randint(1, 4)):
            number = chance.choice(SIGNALS)
            inside = chance.random() < 0.5
            at = chance.randint(1, calls) if inside else 0
            child = start(run, "0.03s", (at, KILL, number))
            if not inside:
                time.sleep(chance.uniform(0, seconds))
                os.kill(child, number)
            code = end(child)
            if code in (-number, 128 + number):
                landed[signal.Signals(number).name] += 1
                phases[phase_of(run)] += 1
            elif code != 0:
                failures.append(f"exit code {code}: {(run.folder / 'err').read_text()}")
            if problem := run.problem():
                failures.append(f"after {signal.Signals(number).name}: {problem}")
        code = end(start(run, "0.03s"))
        if problem := "the resume failed" if code else run.unfinished():
            failures.append(f"{' '.join(run.case)}: {problem}")
    return {"part": "kills", **landed, "phases": dict(phases), "failures": failures}


def faults_of(calls: int) -> Iterator[tuple[int, int, int]]:
    """Yield every fault of a run with this many calls: the call, the kind and the error."""
    for at in range(1, calls + 1):
        yield from ((at, FAIL, number) for number in ERRORS)
        yield at, HALF, 0


def writes(most: int | None, chance: random.Random, runs: Sequence[Straight]) -> dict[str, Any]:
    """Make each writing call fail in a separate run, and check that nothing is lost."""
    failures: list[str] = []
    counts: collections.Counter[str] = collections.Counter()
    todo = []
    for run, *_ in runs:
        end(start(run.fresh(), "1"))
        calls = int((run.folder / "calls").read_text())
        counts["calls"] += calls
        todo += [(run, fault) for fault in faults_of(calls)]
    for run, fault in todo if most is None else chance.sample(todo, most):
        code = end(start(run.fresh(), "1", fault))
        counts["done by half" if fault[1] == HALF else os.strerror(fault[2])] += 1
        counts["ended with an error"] += code != 0
        if wrong := after_fault(run, code):
            failures.append(f"{' '.join(run.case)}, {fault}: {wrong}")
    return {"part": "writes", **counts, "failures": failures}


def after_fault(run: Run, code: int) -> str | None:
    """Return what is wrong with the files after a faulty run and after resuming it, or None."""
    said = (run.folder / "err").read_text()
    if code not in (0, 1, 2) or "a bug" in said:
        return f"exit code {code}: {said!r}"
    if code and (not said.startswith("error: ") or said.count("\n") != 1):
        return f"the message is {said!r}"
    if left := list(run.folder.rglob(".*.part")):
        return f"the run leaves {left} behind"
    if problem := run.problem():
        return problem
    if code and end(start(run, "1")) != 0:
        return f"the run could not be resumed: {(run.folder / 'err').read_text()!r}"
    return run.unfinished()


# Each command waits for input that never comes, so a run in which the signal is lost hangs.
WAITING = (
    "vocab - --output {0}/out",
    "train - --output {0}/out.bin",
    "classify train - --output {0}/out",
    "classify train {0}/docs.tsv - --output {0}/out",
    "latent fit - --output {0}/out",
    "scdv fit - --vectors {0}/v.txt --output {0}/out",
    "encode {0}/v.txt - --output {0}/out.npy",
    "neighbors {0}/v.txt",
)
# A signal that arrives before the first lines of our program, which SIG_DFL replaces, is Python's.
PROGRAM = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.write(1, b'x')
from dcme_w2v.__main__ import main
main()
"""
START_SECONDS, STARTS_AT_ONCE = 1.5, 4


def starts(count: int, chance: random.Random, place: Path) -> dict[str, Any]:
    """Interrupt starting commands `count` times; several run at once, since they mostly wait."""
    (place / "v.txt").write_text("2 2\nword1 1 2\nword2 2 1\n")
    todo = [
        (chance.choice(WAITING).format(place), chance.uniform(0, START_SECONDS))
        for _ in range(count)
    ]
    with ThreadPoolExecutor(STARTS_AT_ONCE) as pool:
        found = list(pool.map(_interrupted, todo))
    codes = collections.Counter(str(code) for code, _ in found)
    failures = [problem for _, problem in found if problem]
    return {"part": "starts", "codes": dict(codes), "failures": failures}


def _interrupted(one: tuple[str, float]) -> tuple[int, str | None]:
    """Interrupt a command some seconds after its start; return its exit code and any problem."""
    command, seconds = one
    argv, pipe = [sys.executable, "-c", PROGRAM, *command.split()], subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe) as child:
        assert child.stdin and child.stdout and child.stderr
        child.stdout.read(1)
        time.sleep(seconds)
        child.send_signal(signal.SIGINT)
        try:
            code = child.wait(PATIENCE / 10)
        except subprocess.TimeoutExpired:
            child.kill()
            code = HANG
        said = child.stderr.read().decode()
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    is_silent = code == -signal.SIGINT and not errors
    is_told = code == 128 + signal.SIGINT and len(errors) == 1
    if (is_silent or is_told) and "Traceback" not in said and "Exception" not in said:
        return code, None
    return code, f"{command}: exit code {code}: {said!r}"


def soak(minutes: float, place: Path) -> dict[str, Any]:
    """Train for a long time; return the minimum and maximum memory after the first fifth."""
    corpus = str(place / "corpus.txt")
    command = [sys.executable, "-m", "dcme_w2v", "train", corpus, "--epochs", "1000000"]
    command += ["--output", str(place / "v.bin"), "--checkpoint", str(place / "k"), "--quiet"]
    command += ["--checkpoint-every", "30s", "--objective", "dcme", "--threads", "2"]
    with (place / "err").open("w") as err:
        child = subprocess.Popen(command, stderr=err, env={**os.environ, "LD_PRELOAD": ""})
    began, seen = time.monotonic(), []
    while child.poll() is None and (past := time.monotonic() - began) < 60 * minutes:
        status = Path(f"/proc/{child.pid}/status").read_text(encoding="utf-8")
        if past > 12 * minutes:
            seen.append(int(status.partition("VmRSS:")[2].split()[0]))
        time.sleep(1)
    child.send_signal(signal.SIGTERM)
    code = child.wait()
    figures = {"minutes": round(past / 60, 1), "least_kB": min(seen), "most_kB": max(seen)}
    failures = [] if code == 143 else [f"exit code {code}: {(place / 'err').read_text()}"]
    if max(seen) > 1.05 * min(seen):
        failures.append("resident memory is not flat")
    return {"part": "soak", **figures, "failures": failures}


def with_shim() -> None:
    """Restart this script with the shim preloaded, unless it is loaded already."""
    if os.environ.get("LD_PRELOAD", "").endswith("shim.so"):
        return
    built = Path(tempfile.mkdtemp(prefix="shim-"), "shim.so")
    compiler = os.environ.get("CC") or (sysconfig.get_config_var("CC") or "cc").split()[0]
    flags = ["-shared", "-fPIC", "-O1", str(SHIM), "-o", str(built), "-ldl"]
    subprocess.run([compiler, *flags], check=True)
    quiet = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *sys.argv], env={**os.environ, **quiet, "LD_PRELOAD": str(built)}
    )
    shutil.rmtree(built.parent)
    sys.exit(done.returncode)


def main() -> None:
    """Run the requested parts, print their results, and fail if any part failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parts = ["kills", "writes", "starts"]
    parser.add_argument("parts", nargs="*", default=parts, help=f"{' '.join(parts)} soak")
    parser.add_argument("--kills", type=int, default=30, help="number of kills")
    parser.add_argument("--starts", type=int, default=40, help="number of commands to interrupt")
    parser.add_argument("--faults", type=int, default=50, help="number of writes to fail (0: all)")
    parser.add_argument("--minutes", type=float, default=30, help="duration of the soak")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    with_shim()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # child processes inherit this
    failed = False
    with workplace(wanted.seed) as place:
        runs = straight_runs(place) if {"kills", "writes"} & {*wanted.parts} else []
        for part in wanted.parts:
            began, chance = time.monotonic(), random.Random(wanted.seed)
            if part == "soak":
                found = soak(wanted.minutes, place)
            elif part == "kills":
                found = kills(wanted.kills, chance, runs)
            elif part == "starts":
                found = starts(wanted.starts, chance, place)
            else:
                found = writes(wanted.faults or None, chance, runs)
            found["seconds"] = round(time.monotonic() - began, 1)
            failed |= bool(found["failures"])
            print(", ".join(f"{name} {value}" for name, value in found.items()), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
