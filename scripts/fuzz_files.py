"""Feed mutated files to the readers that are Python's: checkpoints, models, vectors, text.

A reader may take an input, or refuse it with an error of this package; anything else is a failure,
and its input is kept. Called by `make fuzz`, behind the fuzzers of the C core.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.checkpoints.folder import (
    Checkpoint,
    CheckpointFolder,
    Position,
    fingerprint_of,
    record_of,
)
from dcme_w2v.checkpoints.record import RECORD
from dcme_w2v.cli.main import run
from dcme_w2v.errors import DcmeError
from dcme_w2v.options import TrainOptions, VocabularyOptions
from dcme_w2v.text.encode import encode
from dcme_w2v.text.vocabulary import Vocabulary
from dcme_w2v.words.check import check_vectors
from dcme_w2v.words.defaults import resolved
from dcme_w2v.words.trainer import Trainer
from dcme_w2v.words.vectors import Vectors
from dcme_w2v.words.vectors_io import save_vectors

Reader = Callable[[Path], Any]
TEXT = b"a b c d e f g\n" * 30 + "żółć 東京\n".encode() * 9
TOKENS = (
    b'"', b"{", b"}", b"[", b"]", b",", b":", b"null", b"true", b"-1", b"1e999", b"NaN", b"0",
    b"9" * 30, b'"epoch"', b'"files"', b"../../x", b"\0", b"\xff", b"\n", b" ", b"\r\n", b"nan",
    b"[" * 2000, b"\\u0000", b"0.5", b"{}", b"2 2\n",
)  # fmt: skip
VALUES = (None, True, -1, 0, 1 << 70, 1e300, "", "x", [], {}, [1, 2], {"epoch": 1}, "../../x")


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Return some bytes changed in a few places."""
    found = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at = chance.randint(0, len(found))
        kind = chance.randrange(4)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            found[at:at] = chance.choice(TOKENS)
        elif kind == 2:
            del found[at : at + chance.choice((1, 5, 50))]
        else:
            found[at:at] = found[chance.randint(0, len(found)) :][: chance.randint(1, 40)]
    return bytes(found)


def mutated_json(data: bytes, chance: random.Random) -> bytes:
    """Return a JSON text with a value of another kind somewhere, or with changed bytes."""
    if chance.random() < 0.5:
        return mutated(data, chance)
    record = json.loads(data)
    place: Any = record
    while True:
        key = chance.choice(list(place) if isinstance(place, dict) else range(len(place)))
        if isinstance(place[key], (dict, list)) and place[key] and chance.random() < 0.8:
            place = place[key]
            continue
        if chance.random() < 0.2:
            del place[key]
        else:
            place[key] = chance.choice(VALUES)
        return json.dumps(record).encode()


def checkpoint_reader(folder: Path) -> tuple[Path, Reader]:
    """Save a checkpoint; return the path of its record, and what resumes from it."""
    corpus = folder / "corpus"
    corpus.write_bytes(TEXT)
    options = VocabularyOptions(min_count=1)
    with encode([str(corpus)], options) as encoded:
        fingerprint = fingerprint_of(encoded)
        training_options = resolved(TrainOptions(dim=4, threads=1, epochs=2))
        training = Trainer(np.array(encoded.ids), encoded.counts, training_options)
        training.epoch(0)
        record = record_of(options, training_options, fingerprint, training, Position(1))
        saved = CheckpointFolder(str(folder / "k"), resuming=False)
        path = saved.save(record, training, encoded.vocabulary)

    def read(record_path: Path) -> None:
        found = Checkpoint.load(record_path.parent)
        found.check_options(options, training_options)
        found.check_corpus(fingerprint)
        found.restore(training)

    return path / RECORD, read


def read_vectors(path: Path) -> None:
    """Load vectors, and see that `check` agrees on whether they can be."""
    report = check_vectors(path)
    try:
        Vectors.load(path)
    except DcmeError:
        if not report.faults:
            raise RuntimeError("check finds no fault in what cannot be loaded") from None
        raise


def read_text(path: Path) -> None:
    """Count and number words."""
    options = VocabularyOptions(min_count=1, encoding_errors="replace", allow_truncated=True)
    with encode([str(path)], options, _block_bytes=64):
        pass


def command(*arguments: str) -> None:
    """Run a command line and raise as for a reader: what it refuses, or what it did not foresee."""
    said = io.StringIO()
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())),
    ):
        code = run(list(arguments))
    if code:
        if "a bug" in said.getvalue() or code not in (1, 2):
            raise RuntimeError(said.getvalue())
        raise DcmeError(said.getvalue().rstrip("\n"))


def models(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Train a classifier and fit document vectors; return their files and what reads them."""
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
        command("scdv", "transform", topics, str(documents), "--output", str(folder / "x.npz"))

    found: list[tuple[str, Path, Reader]] = []
    for name, read in (("classes", predict), ("topics", transform)):
        found += [(f"{path.stem} of {name}", path, read) for path in (folder / name).iterdir()]
    return found


def targets(folder: Path) -> list[tuple[str, Path, Reader]]:
    """Return names, files to start from, and readers."""
    record, resume = checkpoint_reader(folder)
    vectors = folder / "vectors"
    matrix = np.linspace(-1, 1, 60, dtype=np.float32).reshape(20, 3)
    words = Vocabulary.from_counts({f"w{i}": 20 - i for i in range(20)})
    found = [("checkpoint", record, resume)]
    for format in ("text", "binary", "npy"):
        save_vectors(vectors.with_suffix(".npy"), words, matrix, format=format)
        path = vectors.with_name(f"{format}.npy")
        shutil.move(vectors.with_suffix(".npy"), path)
        found.append((format, path, read_vectors))
    shutil.move(vectors.with_suffix(".vocab"), folder / "npy.vocab")
    words.save(folder / "words")
    found.append(("vocabulary", folder / "words", Vocabulary.load))
    for name, data in (("corpus", TEXT), ("corpus.gz", gzip.compress(TEXT))):
        (folder / name).write_bytes(data)
        found.append((name, folder / name, read_text))
    return found + models(folder)


def fuzz(name: str, path: Path, read: Reader, inputs: int, chance: random.Random) -> None:
    """Read mutated files, and end the program at the first that does worse than be refused."""
    data = path.read_bytes()
    refused = 0
    for _ in range(inputs):
        changed = (mutated_json if path.suffix == ".json" else mutated)(data, chance)
        path.write_bytes(changed)
        try:
            read(path)
        except DcmeError as error:
            refused += 1
            if "\n" in str(error):
                sys.exit(f"error: {name}: more than a line: {error}")
        except BaseException:
            kept = Path(f"{name.replace(' ', '_')}.crash")
            kept.write_bytes(changed)
            print(f"error: {name}: the input is in {kept}", file=sys.stderr)
            raise
    path.write_bytes(data)
    read(path)
    print(f"{name}: {inputs} inputs, {refused} refused, the others taken", flush=True)


def main() -> None:
    """Fuzz all readers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=20_000, help="for each reader")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as folder:
        for name, path, read in targets(Path(folder)):
            inputs = wanted.inputs // 10 if " of " in name else wanted.inputs
            fuzz(name, path, read, inputs, random.Random(wanted.seed))


if __name__ == "__main__":
    main()
