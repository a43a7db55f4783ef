"""Test the readers with mutated files: checkpoints, models, vectors, rows, text.

A reader may accept an input, or reject it with an error of one line; a crash, a hang or another
exception is a failure, and its input is kept. Each input is determined by the seed, the name of the
file and its number, so that a run can be split: ``--first 5000 --inputs 1000``. `make fuzz`
calls this program after the fuzzers of the C core.
"""

import argparse
import contextlib
import gzip
import io
import json
import mmap
import os
import random
import signal
import struct
import sys
import tempfile
import traceback
import warnings
import xml.etree.ElementTree
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from data import SMALL, write_files
from helpers import write_table
from mutations import mutation
from scipy import sparse

from dcme_w2v import Vectors
from dcme_w2v.cli.main import run
from dcme_w2v.errors import DcmeError, DcmeWarning
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.platform import peak_memory
from dcme_w2v.text.encode import encode
from dcme_w2v.words.check import check

SECONDS = 60  # for an input
MOST_MEMORY = 500 << 20
QUICK = "--epochs 1 --threads 1 --quiet --output o"
SAVED = ("data-00000-of-00001.arrow", "dataset_info.json", "state.json")
TABLES = ("parquet", "feather", "arrows") if find_spec("pyarrow") else ()
TEXT = b"a b c d e f g\n" * 30 + "żółć 東京\n".encode() * 9


def read_vectors(path):
    """Load vectors, and verify that `check` agrees on whether they can be loaded."""
    report = check(path)
    try:
        Vectors.load(path)
    except DcmeError:
        if not report.faults:
            raise RuntimeError("check finds no fault in a file that cannot be loaded") from None
        raise


def read_text(path):
    """Count and number words."""
    options = VocabularyOptions(min_count=1, encoding_errors="replace")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DcmeWarning)
        encode([path], options, _block_bytes=64)


def read_plot(path):
    """Draw words, and verify that the picture is well-formed, whatever their characters are."""
    command(f"plot {path} --output o.svg --method pca --limit 5")
    xml.etree.ElementTree.parse("o.svg")


def read_address(path):
    """Count the words of a file that is given by its address, with a column of texts."""
    command(f"vocab file://{Path(path).resolve()} --text-column text --min-count 1 --output o")


COLUMNS = f"--text-column text --label-column label {QUICK}"

# A file of `write_files` or `write_more`, and what reads it: a function, or a command line.
READERS = {
    **dict.fromkeys(("v.txt", "v.bin", "v.safetensors"), read_vectors),
    "i.bin": "neighbors i.bin aa unseen",
    "voc": "vocab --merge voc --output o",
    "tab": "phrases c.txt --output o --read-table tab",
    "text": read_text,
    "text.gz": read_text,
    "ck/000001.safetensors": f"train c.txt --output o --resume ck --quiet {SMALL}",
    "kc/000001.safetensors": f"classify train d.txt --resume kc {QUICK}",
    "ta": f"train c.txt --output o --init ta --init-vocab union --quiet {SMALL}",
    "order": "eval likelihood order c.txt",
    "tagged": f"classify train tagged --by token {QUICK}",
    "k": "classify predict k d.txt",
    "m": "transform m d.txt --output o.npz",
    "z": "classify predict z d.txt",
    "f": "classify predict f d.txt",
    "s": "classify predict s d.txt",
    **{f"{one}.npz": f"classify test kr {one}.npz --labels l.txt" for one in ("csr", "csc", "coo")},
    "w.svm": "classify test kr w.svm",
    **{f"x.{one}": f"vocab x.{one} --text-column x --min-count 1 --output o" for one in TABLES},
    "l.txt": "classify test kr w.npz --labels l.txt",
    # layouts and types of labels
    "x.mtx": "classify test kr x.mtx --labels l.txt",
    "types.jsonl": f"classify train types.jsonl {COLUMNS}",
    "types.csv": f"classify train types.csv {COLUMNS} --sample-weight-column w",
    "flags.csv": f"classify train flags.csv --text-column text --label-column a,b {QUICK}",
    "last.txt": f"classify train last.txt {QUICK}",
    "u.conllu": f"classify train u.conllu --by token {QUICK}",
    "folder/a/1": f"classify train folder {QUICK}",
    "hive/label=a/1.jsonl": f"classify train hive {COLUMNS}",
    "address.jsonl": read_address,
    "scripts.txt": f"vocab scripts.txt --tokenize words --min-count 1 {QUICK[-10:]}",
    "marks.txt": read_plot,
    **({f"saved/{one}": f"classify train saved {COLUMNS}" for one in SAVED} if TABLES else {}),
}  # fmt: skip
SLOW = {
    "marks.txt": 100
}  # a file whose reader takes so many times as long gets as many fewer inputs


def write_more(folder):
    """Write the files that only these readers have."""
    (folder / "text").write_bytes(TEXT)
    (folder / "text.gz").write_bytes(gzip.compress(TEXT, mtime=0))
    tagged = "EU NNP B-ORG\nrejects VBZ O\n\nPeter NNP B-PER\nB. NNP I-PER\n\n"
    (folder / "tagged").write_text(tagged * 5)
    (folder / "w.svm").write_text("x 0:1 2:0.5\ny 1:1 2:.25\n" * 10)
    for kind in TABLES:
        write_table(folder / f"x.{kind}", [{"x": "green tea"}, {"x": None}, {"x": "car"}] * 9)
    write_layouts(folder)
    rows = sparse.load_npz("w.npz")
    for kind in ("csr", "csc", "coo"):
        sparse.save_npz(f"{kind}.npz", rows.asformat(kind))
    for line in (
        *(f"convert v.txt v.{suffix}" for suffix in ("bin", "safetensors")),
        f"train c.txt --output o --output-tables order --preset likelihood --negative 2 {SMALL}",
    ):
        command(line)


def write_layouts(folder):
    """Write labeled documents of other layouts."""
    labels = (1, 2.0, "b", "c|d", True, [], None, ["1", "x"])
    rows = [{"text": f"green tea {i}", "label": one} for i, one in enumerate(labels * 3)]
    write_table(folder / "types.jsonl", rows)
    write_table(folder / "address.jsonl", rows)
    written = ("a", "1", "2.0", "['a', 'b']", "c|d", "")
    rows = [{"text": f"tea {i}", "label": one, "w": i % 3} for i, one in enumerate(written * 3)]
    write_table(folder / "types.csv", rows)
    rows = [{"text": f"tea {i % 3}", "a": i % 2, "b": int(i % 3 == 0)} for i in range(18)]
    write_table(folder / "flags.csv", rows)
    entries = "1 1 1\n2 2 .5\n20 3 -1e3\n"
    (folder / "x.mtx").write_text(
        f"%%MatrixMarket matrix coordinate real general\n20 3 3\n{entries}"
    )
    (folder / "last.txt").write_text("green tea __label__a\nred __label__b car __label__a\n" * 9)
    token = "{}\tTea\ttea\t{}" + "\t_" * 6 + "\n"
    words = (
        token.format(1, "NOUN")
        + token.format("1.1", "X")
        + token.format(2, "VERB")
        + token.format("2-3", "VERB")
    )
    (folder / "u.conllu").write_text(f"# sent_id = 1\n# text = Tea\n{words}\n" * 5)
    for name in ("folder/a/1", "folder/a/2", "folder/b/1", "folder/b/2"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"green {name[7]}\ntea\n")
    for label in "ab":
        (folder / f"hive/label={label}").mkdir(parents=True)
        write_table(folder / f"hive/label={label}/1.jsonl", [{"text": f"tea {label}"}] * 9)
    scripts = "हिन्दी ไทย שָׁלוֹם İzmir cafe\u0301 می\u200cخواهم 東京\n"  # noqa: RUF001
    (folder / "scripts.txt").write_text(scripts * 9, "utf-8")
    words = ("tea\x01cup", "bo\ufffeat", "\uffffsail", "\ufeffx", "東", "\U0001f600", "$a_b^{")
    lines = (f"{word} {i % 3} {i}\n" for i, word in enumerate(words))
    (folder / "marks.txt").write_text("".join(lines), "utf-8")
    if TABLES:
        (folder / "saved").mkdir()
        rows = [{"text": f"tea {i % 5}", "label": i % 2} for i in range(20)]
        write_table(folder / "saved" / SAVED[0], rows, "arrows")
        names = {"names": ["a", "b"], "_type": "ClassLabel"}
        features = {"text": {"dtype": "string", "_type": "Value"}, "label": names}
        (folder / "saved" / SAVED[1]).write_text(json.dumps({"features": features}))
        files = [{"filename": SAVED[0]}]
        state = {"_data_files": files, "_fingerprint": "f", "_split": None}
        (folder / "saved" / SAVED[2]).write_text(json.dumps(state))


def command(line):
    """Run a command line and raise its error, expected or not."""
    said, printed = io.StringIO(), io.BytesIO()
    stdout = io.TextIOWrapper(printed, write_through=True)
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(stdout):
        code = run(line.split())
    if b"\tnan" in printed.getvalue():
        raise RuntimeError("nan was printed")
    if code:
        if "a bug" in said.getvalue() or code not in (1, 2):
            raise RuntimeError(said.getvalue())
        raise DcmeError(said.getvalue().rstrip("\n"))


def fuzz(name, numbers, seed, at):
    """Read mutated files; return the number of those that were rejected."""
    path, reader, refused = Path(name), READERS[name], 0
    whole = path.read_bytes()
    for number in [None, *numbers]:  # first the file itself
        if number is not None:
            at[:8] = struct.pack("q", number)
            changed = mutation(path, whole, random.Random(f"{seed} {name} {number}"))
            path.write_bytes(changed)
        for left in Path().glob("o*"):
            if left.is_file() and left.name != "order":
                left.unlink()
        signal.alarm(SECONDS)  # ends this process if a reader hangs
        try:
            command(reader) if isinstance(reader, str) else reader(name)
        except DcmeError as error:
            refused += 1
            if "\n" in error.message or number is None:
                raise RuntimeError(f"{number}: {error}") from error
        signal.alarm(0)
        if (peak := peak_memory()) > MOST_MEMORY:
            raise RuntimeError(f"{number}: {peak:,} bytes of memory")
        path.write_bytes(whole)
    return refused


def fuzz_aside(name, numbers, seed, kept):
    """Call `fuzz` in its own process, which may crash; report the result."""
    at, whole = mmap.mmap(-1, 8), Path(name).read_bytes()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        with contextlib.suppress(BaseException):
            try:
                refused = fuzz(name, numbers, seed, at)
                print(f"{name}: {len(numbers)} inputs, {refused} rejected", flush=True)
                code = 0
            except BaseException:
                traceback.print_exc()
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    if status:
        number = struct.unpack("q", at[:8])[0]
        end = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an exception"
        place = kept / f"{name.replace('/', '_')}.{number}.crash"
        place.write_bytes(Path(name).read_bytes())
        Path(name).write_bytes(whole)
        print(f"error: {name}: input {number} ended in {end}; it is {place}", file=sys.stderr)
    return not status


def main(arguments=None):
    """Fuzz readers; return 0 if no reader failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=20_000, help="for each reader")
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--files", nargs="+", choices=READERS, default=list(READERS))
    wanted = parser.parse_args(arguments)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    numbers, here = range(wanted.first, wanted.first + wanted.inputs), Path.cwd()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=memory) as folder:
        os.chdir(folder)
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            write_files(Path(folder))
            write_more(Path(folder))
        ended = [
            fuzz_aside(name, numbers[:: SLOW.get(name, 1)], wanted.seed, here)
            for name in wanted.files
        ]
        os.chdir(here)
    print(f"{len(ended) * wanted.inputs} inputs, {ended.count(False)} readers failed", flush=True)
    return 0 if all(ended) else 1


if __name__ == "__main__":
    sys.exit(main())
