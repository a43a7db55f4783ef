"""Compare what two versions of the program write: `compare_versions.py OLD NEW`.

OLD and NEW are Python interpreters that have dcme-w2v installed, or checkouts with a `.venv`. Both
run the command lines of compare_versions.tsv on a small corpus that this script makes. Vectors,
rows, models and printed answers have to agree bit for bit; entries of JSON that name the version,
the command, times or the machine are left out. Then the new version reads the models and
checkpoints of the old one. One line is printed for each command; the exit code is 1 if anything
differs.
"""

import argparse
import contextlib
import gzip
import hashlib
import importlib
import json
import os
import pkgutil
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

# Entries of JSON that may differ between two runs of one version.
LEFT_OUT = re.compile(
    "version|command|argv|program|time|.*seconds|date|created|finished|started|host|machine|cpu"
    "|kernels|commit|platform|python|per_second|memory|pid|id|identifier"
    "|weighting"  # of document vectors, removed
)

# Options and values in JSON that have another name in the new version.
RENAMED = {
    "centre": "center", "centred": "centered", "centre_interval": "center_interval",
    "unlabelled": "unlabeled",
}  # fmt: skip

# Abbreviations in the list of command lines.
SHORT = {
    "TRAIN": "train {i}/corpus.txt --threads 1 --quiet --dim 12 --epochs 2 --min-count 2",
    "CLASSIFY": "classify train {i}/train.tsv --threads 1 --quiet",
}


@dataclass(frozen=True)
class Command:
    """A command line as both versions spell it, and what to compare."""

    name: str
    kind: str
    old: str
    new: str

    @property
    def checkpoints(self) -> str:
        """The folder whose first checkpoint ends the run, or nothing."""
        return "" if self.kind in ("writes", "reads", "prints") else f"o/{self.kind}"


def read_commands() -> list[Command]:
    """Return the command lines listed beside this script."""
    lines = Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    renamed = [line.split(" => ") for line in lines if " => " in line]
    commands = []
    for name, kind, old in (line.split("\t") for line in lines if "\t" in line):
        for short, full in SHORT.items():
            old = old.replace(short, full)
        new = old
        for before, after in renamed:
            new = new.replace(before, after)
        commands.append(Command(name, kind, old, new))
    return commands


def make_inputs(folder: Path) -> None:
    """Write a corpus with topics, labeled documents, questions and tags."""
    draw = random.Random(5)
    topics = ["w", "t", "s", "m"]
    words = {t: [t + "".join(p) for p in _suffixes()] for t in topics}

    def sentence(topic: str, length: int) -> list[str]:
        return [
            words[topic if draw.random() < 0.7 else draw.choice(topics)][
                int(40 * draw.random() ** 2.5)
            ]
            for _ in range(length)
        ]

    lines = [" ".join(sentence(topics[i % 4], 12)) for i in range(700)]
    lines[7] += " Straße 東京 naïve"
    lines[8] += " Straße 東京 naïve"
    folder.joinpath("corpus.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with gzip.open(folder / "corpus.txt.gz", "wb") as packed:
        packed.write(folder.joinpath("corpus.txt").read_bytes())
    folder.joinpath("held.txt").write_text(
        "\n".join(" ".join(sentence(t, 10)) for t in topics * 10) + "\n"
    )
    documents = [(f"c{i % 5}", sentence(topics[i % 5 % 4], 20 + i % 5 * 3)) for i in range(360)]
    rows = [
        f"{label}\t{' '.join(text)} only{label} x{i % 7}"
        for i, (label, text) in enumerate(documents)
    ]
    rows[3] = rows[3].replace("c3\t", "c3|c1\t")
    texts = [row.split("\t")[1] for row in rows]
    for name, part in {
        "train.tsv": rows[:200],
        "test.tsv": rows[200:260],
        "few.tsv": rows[:30],
        "unlabelled.txt": texts[100:],
        "unlabelled.tsv": ["\t" + text for text in texts[100:]],
        "queries.txt": texts[:3],
        "questions.txt": [": letters", "wa wb ta tb", "sa sb ma mb", "wc wd sc sd"],
        "pairs.tsv": ["wa\twb\t9", "wa\tta\t2", "sa\tsb\t8", "ma\twc\t1", "tb\tta\t7"],
        "tags.conll": [
            line
            for text in texts[:60]
            for line in [*(f"{w} {'B-' + w[0] if w[0] in 'wt' else 'O'}" for w in text.split()), ""]
        ],
    }.items():
        folder.joinpath(name).write_text("\n".join(part) + "\n", encoding="utf-8")


def _suffixes() -> list[str]:
    letters = "abcdefgh"
    return [*letters, *(a + b for a in letters for b in letters)][:40]


def arguments(command: str, inputs: str, outputs: str) -> list[str]:
    """Return the words of a command line, with the names of folders filled in."""
    return [word.format(i=inputs, o=outputs) for word in shlex.split(command)]


def work(plan: Path) -> None:
    """Run the command lines of a plan in this interpreter, each in a process of its own."""
    import dcme_w2v

    for module in pkgutil.walk_packages(dcme_w2v.__path__, "dcme_w2v."):
        with contextlib.suppress(ImportError):  # of an extra
            importlib.import_module(module.name)  # once, not in each process
    from dcme_w2v.__main__ import main

    for name, words, watched in json.loads(plan.read_text()):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            for stream, suffix in ((1, "out"), (2, "err")):
                target = os.open(
                    f"log/{name}.{suffix}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600
                )
                os.dup2(target, stream)
            os.setpgid(0, 0)
            sys.argv = ["dcme-w2v", *words]
            status: object = 1
            try:
                status = main()
            except SystemExit as end:
                status = end.code
            sys.stdout.flush()
            os._exit(int(status or 0))  # type: ignore[call-overload]
        print(name, _wait(child, Path(watched) if watched else None), flush=True)


def _wait(child: int, watched: Path | None) -> int:
    """Return the exit code of a process; interrupt it once `watched` holds something."""
    end = time.monotonic() + 120
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        elif watched and list(watched.glob("[!.]*/*")):  # no checkpoint that is being written
            os.kill(child, signal.SIGINT)
            watched = None
        time.sleep(0.01)


def run(python: Path, folder: Path, commands: dict[str, tuple[str, str]]) -> dict[str, int]:
    """Run pairs of a command line and its `checkpoints`; return the exit codes."""
    for name in ("o", "log"):
        folder.joinpath(name).mkdir(parents=True, exist_ok=True)
    plan = [
        [name, arguments(line, "../i", "o"), checkpoints]
        for name, (line, checkpoints) in commands.items()
    ]
    folder.joinpath("plan.json").write_text(json.dumps(plan))
    environment = {
        key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")
    } | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    worker = subprocess.run(
        [python, Path(__file__).resolve(), "--plan", "plan.json"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=1200,
    )
    return {name: int(code) for name, code in map(str.split, worker.stdout.splitlines())}


def content(path: Path) -> object:
    """Return what has to agree in a file: a digest, or the JSON without what may differ."""
    data = path.read_bytes()
    if data[:6] == b"\x93NUMPY":
        return _array(data)
    if data[:2] == b"PK":
        with zipfile.ZipFile(path) as parts:
            return {part: _array(parts.read(part)) for part in sorted(parts.namelist())}
    if data[:1] in (b"{", b"["):
        try:
            return _without(json.loads(data))
        except ValueError:
            pass
    if path.suffix == ".safetensors":  # the header has metadata of the run
        data = data[8 + int.from_bytes(data[:8], "little") :]
    return hashlib.sha256(data).hexdigest()


def _array(data: bytes) -> str:
    """Return a digest of a .npy file, without entries of the header that are not numpy's."""
    if data[:6] != b"\x93NUMPY":
        return hashlib.sha256(data).hexdigest()
    long = data[6] > 1
    start = 12 if long else 10
    end = start + int.from_bytes(data[8:start], "little")
    header = re.findall(
        rb"'(?:descr|shape|fortran_order)': *(?:'[^']*'|\([^)]*\)|\w+)", data[start:end]
    )
    if data[end : end + 2] == b'{"':  # JSON as bytes
        return json.dumps(_without(json.loads(data[end:])), sort_keys=True)
    return hashlib.sha256(b"".join(header) + data[end:]).hexdigest()


def _without(value: object) -> object:
    if isinstance(value, dict):
        kept = {
            RENAMED.get(k, k): RENAMED.get(v, v) if isinstance(v, str) else v
            for k, v in value.items()
            if not LEFT_OUT.fullmatch(str(k))
        }
        return {k: _without(v) for k, v in kept.items() if not re.fullmatch("[0-9a-f]{64}", str(v))}
    return [_without(each) for each in value] if isinstance(value, list) else value


def outputs(line: str, command: Command, folder: Path) -> dict[str, object]:
    """Return what a command wrote: the files that it names, and its output if that is an answer."""
    found: dict[str, object] = {}
    words = arguments(line, "../i", "o")
    for key, word in enumerate(words):
        wrote = words[key - 1].startswith(("--output", "--save", "-output", "-save", "--labels"))
        if wrote or (words[0] == "convert" and key == 2):
            for path in _files(folder / word):
                found[str(path.relative_to(folder))] = content(path)
    if command.kind == "prints":
        text = folder.joinpath("log", f"{command.name}.out").read_text(encoding="utf-8")
        try:
            found["output"] = _without(json.loads(text))
        except ValueError:
            found["output"] = text
    return found


def _files(path: Path) -> list[Path]:
    """Return the files of a folder, or a file and its vocabulary."""
    if path.is_dir():
        return sorted(each for each in path.rglob("*") if each.is_file())
    beside = [path.with_suffix(".vocab"), path.with_name(path.name + ".vocab")]
    return [each for each in [path, *beside] if each.is_file()]


def differences(command: Command, old: Path, new: Path) -> list[str]:
    """Return the names of outputs that differ between two folders."""
    before, after = outputs(command.old, command, old), outputs(command.new, command, new)
    return sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def interpreter(text: str) -> Path:
    """Return the Python of an argument: itself, or the Python of a checkout."""
    path = Path(text).absolute()
    return path / ".venv/bin/python" if path.is_dir() else path


def compare(old: Path, new: Path, folder: Path) -> int:
    """Run everything with both versions; return the number of commands that differ."""
    folder.joinpath("i").mkdir()
    make_inputs(folder / "i")
    commands = read_commands()
    before, after = folder / "old", folder / "new"
    with ThreadPoolExecutor(2) as pool:
        lines = {each.name: (each.old, each.checkpoints) for each in commands}
        olds = pool.submit(run, old, before, lines)
        lines = {each.name: (each.new, each.checkpoints) for each in commands}
        news = pool.submit(run, new, after, lines)
        codes = olds.result(), news.result()
    bad = 0
    for each in commands:
        allowed = (0, 130) if each.checkpoints else (0,)
        found = [] if each.checkpoints else differences(each, before, after)
        found += [
            f"{version} ends with {code[each.name]}: {error(where, each.name)}"
            for version, code, where in zip(("old", "new"), codes, (before, after), strict=True)
            if code[each.name] not in allowed
        ]
        bad += report(each.name, found)

    # The new version reads the files of the old one.
    reading = folder / "reading"
    shutil.copytree(before / "o", reading / "o", symlinks=True)
    readers = [each for each in commands if each.kind in ("reads", "prints")]
    exits = run(new, reading, {each.name: (each.new, "") for each in readers})
    for each in readers:
        why = error(reading, each.name)
        if exits[each.name] == 1 and re.search(r"version \d", why):
            print(f"refused   old files, {each.name}: {why}")
        elif exits[each.name]:
            bad += report("old files, " + each.name, [f"ends with {exits[each.name]}: {why}"])
        else:
            bad += report("old files, " + each.name, differences(each, before, reading))
    return bad


def report(name: str, found: list[str]) -> bool:
    """Print a line for a command; return whether anything was found."""
    print(f"DIFFERENT {name}: {'; '.join(found)}" if found else f"same      {name}", flush=True)
    return bool(found)


def error(folder: Path, name: str) -> str:
    """Return the last line that a command wrote to stderr."""
    lines = folder.joinpath("log", f"{name}.err").read_text(errors="replace").splitlines()
    return lines[-1] if lines else ""


def main() -> None:
    """Compare the two versions."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", help="Python interpreter or checkout")
    parser.add_argument("new", help="Python interpreter or checkout")
    parser.add_argument("--keep", metavar="FOLDER", help="keep all outputs in this new folder")
    options = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.keep or scratch).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        bad = compare(interpreter(options.old), interpreter(options.new), folder)
    print(f"{bad} different; {time.monotonic() - start:.0f} s")
    sys.exit(bool(bad))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plan"]:
        work(Path(sys.argv[2]))
    else:
        main()
