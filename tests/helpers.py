"""Helpers of several test modules: options, commands, saved models; their data are in data.py.

Test modules do not import one another (test_architecture.py).
"""

import ast
import bz2
import csv
import functools
import gzip
import io
import json
import lzma
import signal
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import zstandard
from scipy import sparse

from dcme_w2v import Vectors
from dcme_w2v.cli.main import program, run
from dcme_w2v.formats.artifact import read_artifact, tensor_pieces
from dcme_w2v.formats.vectors.tables import WordTables
from dcme_w2v.formats.vectors.vectors_io import read_manifest, save_vectors
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.cache import LAST, HeldOutLines
from dcme_w2v.text.encode import encode
from dcme_w2v.training import trainer as engine
from dcme_w2v.words.likelihood import pieces
from dcme_w2v.words.options import TrainOptions, resolved

# ---- options of training ----

OBJECTIVES = [
    {"objective": "ns"},
    {"objective": "nce"},
    {"objective": "nce", "virtual_samples": 2.0},
    {"objective": "dcme"},
    {"objective": "hs"},
]
MODELS = [
    *[{"model": "cbow", "window_mode": mode} for mode in ("shrink", "fixed")],
    {"model": "skipgram"},
]


def options_of(options, words=None, **more):
    """Return resolved options of a small training with one thread."""
    given = {"dim": 8, "clusters": 3, "threads": 1, "sample": 1e-3} | options | more
    return resolved(TrainOptions(**given), words)


# ---- files ----

COMPRESSORS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=0),
    "zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}


def write(path, data):
    """Write bytes, with the folders above; return the path as text."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(data)
    return str(path)


@functools.cache
def parsed(path):
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_bytes())


def described(model):
    """Return the record of a saved model."""
    return read_artifact(model)[0]


def rewrite(model, record, arrays):
    """Write a model by hand, from a record and its arrays."""
    text = record if isinstance(record, str) else json.dumps(record)
    Path(model).write_bytes(b"".join(map(bytes, tensor_pieces(arrays, {"dcme_w2v": text}))))


def edit(model, arrays=(), **entries):
    """Change arrays and entries of a saved model."""
    record, kept = read_artifact(model)
    rewrite(model, {**record, **entries}, {**kept, **dict(arrays)})


def records(path):
    """Return the objects in a file of JSON lines."""
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def arrays_in(model):
    """Return the bytes of the arrays of a saved model, by name."""
    return {name: array.tobytes() for name, array in read_artifact(model)[1].items()}


def link_all(folder, here):
    """Link the files of a folder that a test only reads into the current one."""
    for path in folder.iterdir():
        (here / path.name).symlink_to(path)


def unit_rows(rows):
    """Return rows at length 1."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


# ---- the command `train` ----


def topic_margin(path):
    """How much more similar words of a topic of `write_corpus` are to each other than to others."""
    vectors = Vectors.load(path)
    fish, wheel = (
        unit_rows(vectors[[word for word in vectors.words if word.startswith(topic)]])
        for topic in ("fish", "wheel")
    )
    own = ((fish @ fish.T).mean() + (wheel @ wheel.T).mean()) / 2
    return own - (fish @ wheel.T).mean()


def words_of(parts):
    """Return the words of the parts of a command line, which are texts and paths."""
    return " ".join(map(str, parts)).split()


def train(corpus, output, *flags, quiet=True):
    """Run `dcme-w2v train`; return its exit code."""
    fixed = ("--dim 16", *["--quiet"] * quiet)
    return run(words_of(["train", corpus, "--output", output, *fixed, *flags]))


PROGRAM = [sys.executable, "-m", "dcme_w2v"]


def python(*arguments, **more):
    """Run Python in a process of its own, which has to end within minutes."""
    given = {"capture_output": True, "text": True, "timeout": 200, **more}
    return subprocess.run([sys.executable, *map(str, arguments)], **given)


def signalled(number, *line):
    """Send a signal to a command that trains, in a process; return its exit code and messages.

    The process has a limit of CPU time: it may outlive the tests if they are killed.
    """
    resource = pytest.importorskip("resource")
    with subprocess.Popen(
        [*PROGRAM, *words_of([*line, "--quiet --log-json -"])], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (120, 120)),
    ) as child:  # fmt: skip
        try:
            assert any('"stage": "training"' in one for one in child.stdout)
            child.send_signal(number)
            _, said = child.communicate(timeout=120)
        finally:
            child.kill()
    return child.returncode, said


class Program:
    """Runs command lines in this process; `out` and `err` are of the last one."""

    def __init__(self, capture, patch):
        self.capture, self.patch = capture, patch

    def run(self, line, *more, stdin=None):
        """Run the words of a line, then arguments as they are; return the exit code."""
        if stdin is not None:
            data = stdin.encode() if isinstance(stdin, str) else stdin
            self.patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
        self.capture.readouterr()
        code = run([*line.split(), *map(str, more)])
        self.out, self.err = self.capture.readouterr()
        return code

    def __call__(self, line, *more, code=0, **others):
        """Run a command that ends with a code; return its output."""
        assert self.run(line, *more, **others) == code, self.err
        return self.out

    def rows(self, line, *more, **others):
        """Return the fields of the lines that a command prints."""
        return [row.split("\t") for row in self(line, *more, **others).splitlines()]

    def json(self, line, *more, **others):
        """Return the object that a command prints with --json."""
        return json.loads(self(f"{line} --json", *more, **others))

    def error(self, line, *more, **others):
        """Run a command that fails; return its only line, an error."""
        code = self.run(line, *more, **others)
        assert self.out == "" and self.err.startswith("error: ") and self.err.count("\n") == 1
        assert code in (1, 2) and "a bug" not in self.err
        return self.err


def stop_in(monkeypatch, trainer, epoch, number):
    """Send a signal once, at the start of an epoch: it is recorded before the epoch ends."""
    start, sent = trainer.epoch, []

    def send(self, now, watch=None):
        if now == epoch and not sent:
            sent.append(number)
            signal.raise_signal(number)
        return start(self, now, watch)

    monkeypatch.setattr(engine, "POLL_SECONDS", 0)
    monkeypatch.setattr(trainer, "epoch", send)


def manifest(output):
    """Return the manifest that was written with vectors."""
    return read_manifest(str(output)) or Vectors.load(output).manifest


def save(path, words, matrix, **options):
    """Write word vectors from words and numbers of any type; return the path."""
    parts = {name: options.pop(name) for name in ("counts", "manifest") if name in options}
    rows = np.asarray(matrix, dtype=np.float32)
    save_vectors(path, WordTables(Words.from_words(words), rows, **parts), **options)
    return path


def lines_of(ids, words):
    """Return the text of encoded lines."""
    spelled = list(words)
    return [
        [spelled[i] for i in piece & ~LAST] for piece in pieces(np.asarray(ids), 1) if len(piece)
    ]


def split(path, fraction=0.3, seed=1, **more):
    """Encode a text with lines held out; return it, and the text of both parts."""
    options = VocabularyOptions(min_count=1)
    found = encode([str(path)], options, holdout=HeldOutLines(fraction, seed), **more)
    ids = np.array(found.ids)
    return found, lines_of(ids, found.vocabulary), lines_of(found.held_out, found.vocabulary)


# ---- word vectors ----


def as_gensim(vectors):
    models = pytest.importorskip("gensim.models")
    keyed = models.KeyedVectors(vectors.vectors.shape[1])
    keyed.add_vectors(list(vectors.words), vectors.vectors)
    return keyed


# ---- document vectors ----


def transform(model, documents, **options):
    """Return the vectors of documents as one matrix."""
    return sparse.vstack(list(model.transform(documents, **options)), format="csr")


# ---- every command ----


def walk(command, name):
    """Yield every command and group under one, with its full name."""
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from walk(found, f"{name} {child}")


ALL_COMMANDS = dict(walk(program, "dcme-w2v"))


def write_table(path, rows, kind=None):
    """Write rows in the format of the suffix, in groups of two rows."""
    path = Path(path)
    kind = kind or path.suffix[1:]
    if kind == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind in ("csv", "tsv"):
        with path.open("w", newline="", encoding="utf-8") as file:
            names = list(rows[0]) if rows else []
            writer = csv.DictWriter(file, names, delimiter="\t" if kind == "tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import feather, parquet

        table = pa.Table.from_pylist(rows)
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=2)
        elif kind == "feather":
            feather.write_feather(table, path, chunksize=2)
        else:
            with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
                out.write_table(table, max_chunksize=2)
    return str(path)
