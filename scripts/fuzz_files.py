"""Test the readers in Python with mutated files: checkpoints, models, vectors, rows, text.

A reader may accept an input, or reject it with an error of one line; a crash, a hang or another
exception is a failure, and its input is kept. Each input is determined by the seed, the reader's
name and its number, so that a run can be split: ``--first 5000 --inputs 1000``. Called by `make
fuzz`, behind the fuzzers of the C core.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import mmap
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_mutations import mutation
from scipy import sparse

from dcme_w2v.cli.main import run
from dcme_w2v.errors import DcmeError
from dcme_w2v.formats.vectors.vectors_io import save_vectors
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.encode import encode
from dcme_w2v.training.checkpoint_folder import (
    Checkpoint,
    CheckpointFolder,
    Position,
    record_of,
)
from dcme_w2v.words.check import check
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.job import TrainJob
from dcme_w2v.words.options import TrainOptions
from dcme_w2v.words.train import WordsRun
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors import Vectors

Reader = Callable[[Path], Any]
TEXT = b"a b c d e f g\n" * 30 + "żółć 東京\n".encode() * 9
KINDS = ("checkpoint", "vectors", "words", "text", "rows", "labels", "classes", "topics", "levels",
         "fused", "latent", "tables", "start", "tokens", "statistics",
         "subwords")  # fmt: skip
SECONDS = 60  # per input


def checkpoint_reader(folder: Path) -> tuple[Path, Reader]:
    """Save a checkpoint; return its path, and a function that resumes from it."""
    corpus = folder / "corpus"
    corpus.write_bytes(TEXT)
    options = VocabularyOptions(min_count=1)
    with encode([str(corpus)], options) as encoded:
        training_options = resolved(TrainOptions(dim=4, threads=1, epochs=2))
        training = Trainer(np.array(encoded.ids), encoded.counts, training_options)
        training.epoch(0)
        task = WordsRun(TrainJob(min_count=1, threads=1), encoded, training)
        fingerprint = task.fingerprint()
        saved = CheckpointFolder(str(folder / "k"), resuming=False)
        record = record_of(
            task.kind, task.options, fingerprint, Position(1), kernels=task.trainer.kernels,
            training=task.trainer.record(), notes=task.notes(),
        )  # fmt: skip
        path = saved.save(record, {**task.tables(), **task.arrays()}, training.state())

    def read(path: Path) -> None:
        found = Checkpoint.load(path)
        found.check_options(task.options)
        found.check_data(fingerprint)
        found.restore(task)

    return path, read


def read_vectors(path: Path) -> None:
    """Load vectors, and verify that `check` agrees on whether they can be loaded."""
    report = check(path)
    try:
        Vectors.load(path)
    except DcmeError:
        if not report.faults:
            raise RuntimeError("check finds no fault in a file that cannot be loaded") from None
        raise


def read_text(path: Path) -> None:
    """Count and number words."""
    options = VocabularyOptions(min_count=1, encoding_errors="replace", allow_truncated=True)
    with encode([str(path)], options, _block_bytes=64):
        pass


def command(*arguments: str) -> None:
    """Run a command line and raise its error, expected or not."""
    said, printed = io.StringIO(), io.BytesIO()
    stdout = io.TextIOWrapper(printed, write_through=True)
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(stdout),
    ):
        code = run(list(arguments))
    if b"\tnan" in printed.getvalue():
        raise RuntimeError("nan was printed")
    if code:
        if "a bug" in said.getvalue() or code not in (1, 2):
            raise RuntimeError(said.getvalue())
        raise DcmeError(said.getvalue().rstrip("\n"))


def models(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Train a classifier and fit document vectors; return them and their readers."""
    labelled, documents = folder / "labelled", folder / "documents"
    lines = ["fish\tswim water fin fish\n", "wheel\troad car wheel fast\n"] * 20
    labelled.write_text("".join(lines))
    documents.write_text("".join(line.partition("\t")[2] for line in lines))
    vectors, classes, topics = (str(folder / name) for name in ("v.txt", "classes", "topics"))
    command("train", str(documents), "--output", vectors, "--dim", "4", "--quiet")
    command("classify", "train", str(labelled), "--output", classes, "--threads", "1")
    command("scdv", "fit", str(documents), "--vectors", vectors, "--output", topics,
            "--clusters", "2", "--covariance", "spherical")  # fmt: skip

    def predict(path: Path) -> None:
        command("classify", "predict", classes, str(documents))

    def transform(path: Path) -> None:
        command("transform", topics, str(documents), "--output", str(folder / "x.npz"))

    return [
        ("model of classes", folder / "classes", predict),
        ("model of topics", folder / "topics", transform),
    ]


def few_labels(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Train models on labeled and unlabeled documents; return them and their readers."""
    labelled, unlabelled = folder / "labelled", folder / "unlabelled"
    labelled.write_text("fish\tswim water fin fish\nwheel\troad car wheel fast\n" * 6)
    unlabelled.write_text("swim deep water\ncar on a road\n" * 20)
    one, more = str(labelled), str(unlabelled)
    base, fused, small, latent = (str(folder / n) for n in ("base", "fused", "levels", "latent"))
    statistics = folder / "statistics.npz"
    command("classify", "train", one, "--output", base, "--threads", "1", "--quiet")
    command("fuse", "fit", one, "--unlabeled", more, "--output", fused, "--final", "beside",
            "--initial", "supervised", "--levels", "3")  # fmt: skip
    command("fuse", "shrink", base, "--output", small, "--levels", "3", "--keep", "8")
    command("fuse", "statistics", base, more, "--output", str(statistics))
    command("latent", "fit", one, "--output", latent, "--latent", "3")

    def predict(path: Path) -> None:
        command("classify", "predict", str(path), one)

    def resume(path: Path) -> None:
        command("fuse", "fit", one, "--reference", base, "--resume-statistics", str(path),
                "--output", str(folder / "again"), "--quiet")  # fmt: skip

    found = [("statistics", statistics, resume)]
    for model in (fused, small, latent):
        found.append((f"model of {Path(model).name}", Path(model), predict))
    return found


def tables(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Train a model of word order; return its tables, and what scores text by them."""
    corpus, model = folder / "corpus", str(folder / "tables")
    corpus.write_bytes(TEXT)
    command("train", str(corpus), "--output", str(folder / "v.bin"), "--output-tables", model,
            "--preset", "likelihood", "--dim", "4", "--min-count", "1", "--negative", "2",
            "--epochs", "1", "--window", "2", "--quiet")  # fmt: skip

    def score(path: Path) -> None:
        command("eval", "likelihood", model, str(corpus))

    return [("model of tables", Path(model), score)]


def start(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Train on a text; return its tables, and what continues from them."""
    corpus, model = folder / "corpus", str(folder / "start")
    corpus.write_bytes(TEXT)
    train = ("train", str(corpus), "--output", str(folder / "v.bin"), "--dim", "4", "--epochs", "1",
             "--min-count", "1", "--threads", "1", "--quiet")  # fmt: skip
    command(*train, "--output-tables", model)

    def go_on(path: Path) -> None:
        command(*train, "--init", model, "--init-vocab", "union")

    return [("model of start", Path(model), go_on)]


def subwords(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Train with subwords; return a model in fastText's format, and what reads it."""
    corpus, path = folder / "corpus", folder / "model.bin"
    corpus.write_bytes(TEXT)
    command("train", str(corpus), "--output", str(path), "--format", "fasttext", "--subwords",
            "2-3", "--buckets", "20", "--dim", "4", "--epochs", "1", "--min-count", "1",
            "--quiet")  # fmt: skip
    return [("subwords", path, lambda path: command("neighbors", str(path), "a", "unseen"))]


def tokens(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Return a file of tagged tokens, and what trains on it."""
    path = folder / "tagged"
    path.write_text("EU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\nB. NNP I-PER\n\n" * 5)

    def learn(path: Path) -> None:
        command("classify", "train", str(path), "--by", "token", "--epochs", "1", "--threads", "1",
                "--quiet", "--output", str(folder / "tagger"))  # fmt: skip

    return [("tokens", path, learn)]


def rows(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Train a classifier of sparse rows; return files of rows and of labels, and their readers."""
    table = sparse.random(40, 12, 0.3, "csr", np.float32, np.random.default_rng(1))
    names = "".join(f"{('aß|b', 'b')[number % 2]}\n" for number in range(40))
    labels, model = folder / "rows.labels", str(folder / "of_rows")
    labels.write_text(names, encoding="utf-8")
    svm = folder / "rows.svm"
    kinds = {kind: folder / f"{kind}.npz" for kind in ("csr", "csc", "coo")}
    for kind, path in kinds.items():
        sparse.save_npz(path, table.asformat(kind))
    train = ("classify", "train", "--threads", "1", "--epochs", "1", "--quiet", "--output", model)
    command(*train, str(kinds["csr"]), "--labels", str(labels))
    with svm.open("w") as file:
        for row, label in zip(table, names.split(), strict=True):
            pairs = (f"{i}:{x:.3g}" for i, x in zip(row.indices, row.data, strict=True))
            print(label.replace("|", ","), *pairs, file=file)

    def test(path: Path) -> None:
        own = () if path.suffix == ".svm" else ("--labels", str(labels))
        command("classify", "test", model, str(path), *own)

    def test_labels(path: Path) -> None:
        command("classify", "test", model, str(kinds["csr"]), "--labels", str(path))

    found = [(f"{kind} of rows", path, test) for kind, path in {**kinds, "svm": svm}.items()]
    return [*found, ("labels", labels, test_labels)]


def targets(folder: Path, kinds: Iterable[str]) -> list[tuple[str, Path, Reader]]:
    """Return names, initial files and readers of some kinds."""
    made: dict[str, Callable[[Path], list[tuple[str, Path, Reader]]]] = {
        "checkpoint": lambda folder: [("checkpoint", *checkpoint_reader(folder))],
        "vectors": vectors,
        "words": words,
        "text": text,
        "rows": rows,
        "labels": rows,
        "classes": models,
        "topics": models,
        "levels": few_labels,
        "fused": few_labels,
        "latent": few_labels,
        "statistics": few_labels,
        "tables": tables,
        "tokens": tokens,
        "start": start,
        "subwords": subwords,
    }
    found: dict[str, tuple[str, Path, Reader]] = {}
    for kind in kinds:
        own = folder / kind
        own.mkdir()
        found |= {one[0]: one for one in made[kind](own) if one[0].endswith(kind)}
    return list(found.values())


def vectors(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Return files of vectors."""
    found: list[tuple[str, Path, Reader]] = []
    matrix = np.linspace(-1, 1, 60, dtype=np.float32).reshape(20, 3)
    for suffix in ("txt", "bin", "npy", "safetensors"):
        path = folder / f"v.{suffix}"
        save_vectors(path, twenty_words(), matrix)
        found.append((f"{suffix} of vectors", path, read_vectors))
    path = folder / "bytes.safetensors"
    command("convert", str(folder / "v.npy"), str(path), "--quantize", "int8")
    return [*found, ("bytes of vectors", path, read_vectors)]


def twenty_words() -> Vocabulary:
    """Return a vocabulary."""
    return Vocabulary.from_counts({f"w{i}": 20 - i for i in range(20)})


def words(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Return a file of words and counts."""
    twenty_words().save(folder / "words")
    return [("words", folder / "words", Vocabulary.load)]


def text(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Return files of text."""
    found = []
    for name, data in (("plain", TEXT), ("gzip", gzip.compress(TEXT, mtime=0))):
        (folder / name).write_bytes(data)
        found.append((f"{name} text", folder / name, read_text))
    return found


def fuzz(
    name: str, path: Path, read: Reader, numbers: range, seed: int, at: mmap.mmap
) -> tuple[int, int]:
    """Read mutated files; return the numbers of rejected and of accepted ones."""
    kept = {one: one.read_bytes() for one in path.parent.iterdir() if one.is_file()}
    data, refused = kept[path], 0
    for number in numbers:
        at[:8] = struct.pack("q", number)
        changed = mutation(path, data, random.Random(f"{seed} {name} {number}"))
        for one, content in changed.items():
            one.write_bytes(content)
        signal.alarm(SECONDS)  # ends this process if a reader hangs
        try:
            read(path)
        except DcmeError as error:
            refused += 1
            if "\n" in error.message:
                raise RuntimeError(f"more than one line: {error}") from error
        signal.alarm(0)
        for one in changed:
            one.write_bytes(kept[one])
    read(path)
    return refused, len(numbers) - refused


def fuzz_aside(name: str, path: Path, read: Reader, numbers: range, seed: int) -> bool:
    """Call `fuzz` in its own process, which may crash; report the result."""
    at, kept = (
        mmap.mmap(-1, 8),
        {one: one.read_bytes() for one in path.parent.iterdir() if one.is_file()},
    )
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            code = _report(name, path, read, numbers, seed, at)
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    if not status:
        return True
    number = struct.unpack("q", at[:8])[0]
    end = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an exception"
    place = Path(f"{name.replace(' ', '_')}.{number}.crash").absolute()
    shutil.copytree(path.parent, place, dirs_exist_ok=True)
    for one, content in kept.items():
        one.write_bytes(content)
    print(f"error: {name}: input {number} ended in {end}; it is in {place}", file=sys.stderr)
    return False


def _report(name: str, path: Path, read: Reader, numbers: range, seed: int, at: mmap.mmap) -> int:
    try:
        refused, taken = fuzz(name, path, read, numbers, seed, at)
    except BaseException:
        traceback.print_exc()
        return 1
    print(f"{name}: {len(numbers)} inputs, {refused} rejected, {taken} accepted", flush=True)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Fuzz readers; return 0 if no reader failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=20_000, help="for each reader")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    wanted = parser.parse_args(arguments)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    numbers = range(wanted.first, wanted.first + wanted.inputs)
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as folder:
        found = targets(Path(folder), wanted.kinds)
        ended = [fuzz_aside(*target, numbers, wanted.seed) for target in found]
    print(f"{len(found) * wanted.inputs} inputs, {ended.count(False)} readers failed", flush=True)
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main())
