"""The path guard: whatever the outputs of a command are called, no file of the user's is lost.

`ROWS` has every command with all its paths. A new command, or a new path of a command, needs to be
in there; then everything below is tried with it.
"""

import ast
import contextlib
import gzip
import os
import shutil
import stat
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest
from helpers import ALL_COMMANDS
from scipy.sparse import csr_matrix, save_npz

import dcme_w2v
from dcme_w2v.cli.main import run
from dcme_w2v.paths import Paths

CORPUS = "".join(f"{a}{b} {b}{c} {c}{a} aa bb cc\n" for a in "abc" for b in "abc" for c in "abc")
DOCS = "".join(f"{'xy'[i % 2]}\t{('aa bb ab', 'cc bc ca')[i % 2]} ac\n" for i in range(20))
SMALL = "--dim 4 --epochs 1 --min-count 1 --sample 0 --threads 1 --quiet"


@dataclass(frozen=True)
class Row:
    """A command line with a name in braces for each path.

    `reads` has the file of the workspace for each path that is read, `writes` a new name for each
    that is written; `folders` are those of `reads` that may be a folder, `kept` those of `writes`
    that are folders, and `texts` parameters that are not paths.
    """

    line: str
    reads: dict[str, str]
    writes: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    again: bool = True  # may be run twice

    @property
    def command(self):
        words = self.line.split()
        return " ".join(words[: 1 + (f"dcme-w2v {' '.join(words[:2])}" in ALL_COMMANDS)])

    def arguments(self, **paths):
        return [word.format(**{**self.reads, **self.writes, **paths}) for word in self.line.split()]

    def flag(self, name):
        """What messages call a parameter."""
        param = next(
            one for one in ALL_COMMANDS[f"dcme-w2v {self.command}"].params if one.name == name
        )
        if isinstance(param, click.Argument):
            return param.metavar or param.name.upper()
        return next(flag for flag in param.opts if flag.startswith("--"))


ROWS = [
    Row(f"train {{corpus}} --output {{output}} --output-context {{output_context}} --save-vocab "
        "{save_vocab} --log-json {log_json} --read-vocab {read_vocab} --init {init} --holdout "
        "{holdout} --init-context {init_context} --output-tables {output_tables} "
        f"--cache-dir . {SMALL}",
        {"corpus": "c.txt", "read_vocab": "voc", "init": "i.npy", "init_context": "i2.npy",
         "holdout": "h.txt"},
        {"output": "o", "output_context": "oc", "save_vocab": "ov", "log_json": "ol",
         "output_tables": "ot"},
        folders=("corpus", "holdout"), kept=("output_tables",), texts=("cache_dir", "corpus_too")),
    Row(f"train {{corpus}} --output {{output}} --output-context {{output_context}} {SMALL}",
        {"corpus": "c.txt"}, {"output": "o.npy", "output_context": "oc.npy"}),
    Row(f"train {{corpus}} --output {{output}} --output-context {{output_context}} {SMALL}",
        {"corpus": "c.txt"}, {"output": "o", "output_context": "oc"}),
    Row(f"train {{corpus}} --output {{output}} --checkpoint {{checkpoint}} {SMALL}",
        {"corpus": "c.txt"}, {"output": "o", "checkpoint": "ock"},
        folders=("corpus",), kept=("checkpoint",), again=False),
    Row(f"train {{corpus}} --output {{output}} --resume {{resume}} --checkpoint {{checkpoint}} "
        f"--checkpoint-every 1 {SMALL}",
        {"corpus": "c.txt", "resume": "ck"}, {"output": "o", "checkpoint": "ock"},
        kept=("checkpoint",), again=False),
    Row("vocab {corpus} --output {output} --min-count 1",
        {"corpus": "c.txt"}, {"output": "o"}, folders=("corpus",)),
    Row("vocab --merge {corpus} --output {output}", {"corpus": "voc"}, {"output": "o"}),
    Row("phrases {corpus} --output {output} --save-table {save_table} --read-table {read_table} "
        "--cache-dir .",
        {"corpus": "c.txt", "read_table": "tab"}, {"output": "o", "save_table": "ot"},
        folders=("corpus",), texts=("cache_dir", "corpus_too")),
    Row("merge {models} tb --output {output}", {"models": "ta"}, {"output": "om"},
        kept=("output",)),
    Row("merge {models} i2.npy --output {output}", {"models": "i.npy"}, {"output": "o.npy"}),
    Row("convert {source} {target}", {"source": "i.npy"}, {"target": "o.txt"}),
    Row("convert {source} {target}", {"source": "v.txt"}, {"target": "o.npy"}),
    Row("classify train {docs} --output {output} --holdout {holdout} --log-json {log_json} "
        "--epochs 1 --quiet",
        {"docs": "d.txt", "holdout": "d2.txt"}, {"output": "om", "log_json": "ol"},
        folders=("docs",), kept=("output",)),
    Row("classify train {docs} --output {output} --resume {resume} --checkpoint {checkpoint} "
        "--checkpoint-every 1 --epochs 1 --threads 1 --quiet",
        {"docs": "d.txt", "resume": "kc"}, {"output": "om", "checkpoint": "okc"},
        kept=("output", "checkpoint"), again=False),
    Row("classify train {docs} --output {output} --labels {labels} --epochs 1 --quiet",
        {"docs": "r.npz", "labels": "l.txt"}, {"output": "om"}, kept=("output",)),
    Row("fuse fit {labelled} --unlabelled {unlabelled} --output {output} --log-json {log_json} "
        "--statistics {statistics} --final tied --rounds 1 --quiet",
        {"labelled": "d.txt", "unlabelled": "d2.txt"},
        {"output": "om", "log_json": "ol", "statistics": "os.npz"},
        folders=("labelled", "unlabelled"), kept=("output",)),
    Row("fuse fit {labelled} --labels {labels} --unlabelled {unlabelled} --output {output} "
        "--final tied --rounds 1 --quiet",
        {"labelled": "w.npz", "labels": "l.txt", "unlabelled": "w2.npz"}, {"output": "om"},
        kept=("output",)),
    Row("fuse fit {labelled} --reference {reference} --resume-statistics {resume_statistics} "
        "--output {output} --quiet",
        {"labelled": "d.txt", "reference": "k", "resume_statistics": "part.npz"},
        {"output": "om"}, folders=("labelled",), kept=("output",), texts=("keep",)),
    Row("fuse statistics {model} {docs} --output {output} --quiet",
        {"model": "k", "docs": "d.txt"}, {"output": "o.npz"}, folders=("docs",)),
    Row("fuse transform {model} {docs} --output {output}",
        {"model": "f", "docs": "d.txt"}, {"output": "o.svm"}, folders=("docs",)),
    Row("fuse shrink {model} --holdout {holdout} --output {output} --quiet",
        {"model": "k", "holdout": "d.txt"}, {"output": "om"}, folders=("holdout",),
        kept=("output",), texts=("keep",)),
    Row("fuse shrink {model} --holdout {holdout} --labels {labels} --output {output} --quiet",
        {"model": "kr", "holdout": "w.npz", "labels": "l.txt"}, {"output": "om"},
        kept=("output",)),
    Row("fuse levels {model}", {"model": "f"}),
    Row("latent fit {docs} --output {output} --holdout {holdout} --log-json {log_json} --quiet",
        {"docs": "d.txt", "holdout": "d2.txt"}, {"output": "om", "log_json": "ol"},
        folders=("docs",), kept=("output",), texts=("choose",)),
    Row("latent fit {docs} --output {output} --labels {labels} --quiet",
        {"docs": "r.npz", "labels": "l.txt"}, {"output": "om"}, kept=("output",),
        texts=("choose",)),
    Row("latent transform {model} {docs} --output {output} --labels {labels}",
        {"model": "zv", "docs": "v.svm"}, {"output": "o.svm", "labels": "ol"}),
    Row("latent plot {model} {docs} --output {output} --method pca",
        {"model": "z", "docs": "d.txt"}, {"output": "o.png"}, folders=("docs",),
        texts=("method",)),
    Row("scdv fit {docs} --vectors {vectors} --output {output} --clusters 2 --quiet",
        {"docs": "d.txt", "vectors": "i.npy"}, {"output": "om"}, folders=("docs",),
        kept=("output",)),
    Row("scdv transform {model} {docs} --output {output} --labels {labels}",
        {"model": "m", "docs": "d.svm"}, {"output": "o.svm", "labels": "ol"}, folders=("docs",)),
    Row("scdv plot {rows} --output {output} --labels {labels} --method pca",
        {"rows": "r.npz", "labels": "l.txt"}, {"output": "o.png"}, texts=("method",)),
    Row("eval analogies {vectors} {questions}", {"vectors": "v.txt", "questions": "q.txt"}),
    Row("eval similarity {vectors} {pairs}", {"vectors": "v.txt", "pairs": "p.txt"}),
    Row("eval likelihood {model} {corpus} --context {context} --read-vocab {read_vocab} "
        "--analogies {questions} --window 2",
        {"model": "v.txt", "corpus": "c.txt", "context": "v.txt", "read_vocab": "voc",
         "questions": "q.txt"}),
    Row("neighbors {vectors} aa", {"vectors": "v.txt"}, texts=("words",)),
    Row("analogy {vectors} aa bb cc", {"vectors": "v.txt"}, texts=("words",)),
    Row("similarity {vectors} aa bb", {"vectors": "v.txt"}, texts=("words",)),
    Row("odd-one-out {vectors} aa bb cc", {"vectors": "v.txt"}, texts=("words",)),
    Row("check {file}", {"file": "v.txt"}),
    Row("info {file}", {"file": "v.txt"}),
    Row("plot {files} --output {output}", {"files": "log"}, {"output": "o.png"},
        texts=("fields", "column", "words", "method")),
    Row("classify test {model} {docs}", {"model": "k", "docs": "d.txt"}, texts=("labels",)),
    Row("classify predict {model} {docs}", {"model": "k", "docs": "d.txt"}, texts=("labels",)),
    Row("classify explain {model} x", {"model": "k"}, texts=("label",)),
    Row("latent show {model} --documents {documents}", {"model": "z", "documents": "d.txt"}),
    Row("scdv topics {model} --coherence {coherence}", {"model": "m", "coherence": "d.txt"},
        texts=("word",)),
    Row("scdv search {model} {index} --queries {queries} --documents {documents} --lm 0.5 "
        "--labels {labels}",
        {"model": "m", "index": "r.npz", "queries": "d2.txt", "documents": "d.txt",
         "labels": "l.txt"}, texts=("query", "judgements")),
]  # fmt: skip
WRITING = [row for row in ROWS if row.writes]
ids = {"ids": lambda row: row.line[:60] if isinstance(row, Row) else str(row)}
ONE_OUTPUT = [(row, name) for row in WRITING for name in row.writes]
ONE_FILE = [(row, name) for row, name in ONE_OUTPUT if name not in row.kept]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Everything that commands read."""
    folder = tmp_path_factory.mktemp("made")
    with chdir(folder):
        texts = {
            "c.txt": CORPUS, "h.txt": CORPUS[:90], "d.txt": DOCS, "d2.txt": DOCS, "d.svm": DOCS,
            "l.txt": "x\ny\n" * 10, "q.txt": "aa bb cc ab\n",
            "v.svm": "1 0:1 1:2\n2 2:1\n" * 10, "p.txt": "aa\tbb\t1\naa\tcc\t2\nab\tbb\t3\n",
        }  # fmt: skip
        event = '{"event": "epoch", "seconds": 1, "epoch": %d, "loss": 1}\n'
        texts["log"] = event % 1 + event % 2
        for name, text in texts.items():
            Path(name).write_text(text)
        for line in (
            f"train c.txt --output v.txt {SMALL}",
            f"train c.txt --output o --checkpoint ck --checkpoint-every 1 {SMALL}",
            f"train c.txt --output-tables ta --output o {SMALL}",
            f"train c.txt --output-tables tb --output i.npy {SMALL}",
            f"train c.txt --output i2.npy {SMALL}",
            "vocab c.txt --output voc --min-count 1",
            "phrases c.txt --output o --save-table tab --threshold 0 --min-count 1",
            "classify train d.txt --output k --epochs 1 --quiet",
            "latent fit d.txt --output z --quiet",
            "latent fit v.svm --output zv --quiet",
            "classify train d.txt --output k --epochs 1 --threads 1 --checkpoint kc "
            "--checkpoint-every 1 --quiet",
            "scdv fit d.txt --vectors v.txt --output m --clusters 2 --quiet",
            "scdv transform m d.txt --output r.npz",
            "fuse fit d.txt --unlabelled d2.txt --output f --final tied --quiet",
            "fuse statistics k d.txt --output part.npz --quiet",
        ):
            assert run(line.split()) == 0
        for name in ("w.npz", "w2.npz"):
            save_npz(name, csr_matrix([[1.0, 0, 0.5], [0, 1, 0.25]] * 10))
        train = "classify train w.npz --labels l.txt --output kr --epochs 1 --quiet"
        assert run(train.split()) == 0
        assert run(["fuse", "shrink", "k", "--keep", "0.5", "--output", "s", "--quiet"]) == 0
        Path("o").unlink()
        Path("o.json").unlink()
    return folder


@contextlib.contextmanager
def chdir(folder):
    before = Path.cwd()
    os.chdir(folder)
    yield
    os.chdir(before)


@pytest.fixture
def work(made, tmp_path, monkeypatch):
    """A copy to work in, with a folder and a link to itself."""
    folder = tmp_path / "work"
    shutil.copytree(made, folder)
    (folder / "sub").mkdir()
    (folder / "here").symlink_to(".")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def declared(monkeypatch):
    """What commands declare to the guard as written."""
    found = []
    check = Paths.check

    def recording_signals(paths):
        if not found:  # by the command; the functions that it calls declare their own again
            found.extend(paths._written)
        check(paths)

    monkeypatch.setattr(Paths, "check", recording_signals)
    return found


def state(folder):
    """Every name below a folder, with what it is and holds."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[path] = path.readlink()
        else:
            found[path] = path.read_bytes() if path.is_file() else stat.S_IFMT(path.stat().st_mode)
    return found


def names_of(name, exists=True):
    """Other names of a file or folder in the workspace, links included."""
    yield name
    yield f"./{name}"
    yield f"sub/../{name}"
    yield f"here/{name}"
    yield str(Path(name).absolute())
    link = Path("sub", f"link{Path(name).suffix}")
    link.symlink_to(Path("..", name))
    yield str(link)
    link.unlink()
    if exists and Path(name).is_file():
        os.link(name, link)
        yield str(link)
        link.unlink()


def refused(work, capsys, row, **paths):
    """Run a command that must change nothing; return its one line of error."""
    before = state(work)
    capsys.readouterr()
    assert run(row.arguments(**paths)) == 2, paths
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert state(work) == before
    return err


# ---- the table ----


def test_every_command_and_every_path_is_in_the_table():
    commands = {name for name, one in ALL_COMMANDS.items() if not isinstance(one, click.Group)}
    assert commands == {f"dcme-w2v {row.command}" for row in ROWS}, "add a row to ROWS"
    numbers = ("N", "X", "N|Nm", "0|1", "0")
    for name in commands:
        rows = [row for row in ROWS if f"dcme-w2v {row.command}" == name]
        known = {one for row in rows for one in (*row.reads, *row.writes, *row.texts)}
        for param in ALL_COMMANDS[name].params:
            shown = param.metavar or ""
            a_choice = isinstance(param.type, click.Choice) or ("|" in shown and shown.islower())
            a_number = shown in numbers or isinstance(param.type, click.types.IntParamType)
            if not (getattr(param, "is_flag", False) or a_choice or a_number):
                assert param.name in known, f"{name}: add {param.name} to its row"


@pytest.mark.parametrize("row", ROWS, **ids)
def test_a_command_writes_what_it_has_declared_and_changes_nothing_else(row, work, declared):
    if "plot" in row.line:
        pytest.importorskip("matplotlib")
    before = state(work)
    assert run(row.arguments()) == 0
    after = state(work)
    assert {path: after.get(path) for path in before} == before
    allowed = {Path(one.path).absolute() for one in declared if one.identity is not None}
    new = after.keys() - before.keys()
    assert all(allowed & {path, *path.parents} for path in new), new
    assert all((work / name).exists() for name in row.writes.values())
    if row.again:
        assert run(row.arguments()) == 0  # a file that is named is replaced
        assert state(work).keys() == after.keys()


# ---- clashes ----


@pytest.mark.parametrize(
    ("row", "output", "source"),
    [
        (row, output, source)
        for row, output in ONE_OUTPUT
        for source in row.reads
        if (output, source) != ("checkpoint", "resume")  # may well be one folder
    ],
    **ids,
)
def test_no_output_is_an_input_under_any_name(row, output, source, work, capsys):
    for name in names_of(row.reads[source]):
        err = refused(work, capsys, row, **{output: name})
        assert f"{row.flag(output)} {name}" in err
        assert f"{row.flag(source)} {row.reads[source]}" in err
    for name in names_of(row.reads[source]):
        target = row.reads[source]
        err = refused(work, capsys, row, **{source: name, output: target})
        assert f"{row.flag(source)} {name}" in err and f"{row.flag(output)} {target}" in err


@pytest.mark.parametrize("row", [row for row in WRITING if "i.npy" in row.reads.values()], **ids)
def test_no_output_is_a_file_that_belongs_to_an_input(row, work, capsys):
    source = next(name for name, path in row.reads.items() if path == "i.npy")
    for output in row.writes:
        for name in names_of("i.vocab"):
            err = refused(work, capsys, row, **{output: name})
            assert f"i.vocab (beside {row.flag(source)} i.npy)" in err


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    ("row", "output", "other"),
    [(row, one, two) for row in WRITING for one in row.writes for two in row.writes if one != two],
    **ids,
)
def test_no_two_outputs_are_one_file_under_any_name(row, output, other, there, work, capsys):
    target = row.writes[other]
    if there:
        Path(target).touch()
    for name in names_of(target, exists=there):
        err = refused(work, capsys, row, **{output: name})
        assert f"{row.flag(output)} {name}" in err and f"{row.flag(other)} {target}" in err


@pytest.mark.parametrize("row", WRITING, **ids)
def test_no_path_is_one_that_belongs_to_an_output(row, work, capsys, declared):
    with contextlib.suppress(ModuleNotFoundError):
        run(row.arguments())
    beside = {one.path: one.shown.replace("=", " ") for one in declared if "(beside" in one.shown}
    for path in row.writes.values():
        shutil.rmtree(path) if Path(path).is_dir() else Path(path).unlink(missing_ok=True)
    for path in beside:
        Path(path).unlink(missing_ok=True)
    for path, shown in beside.items():
        for output, target in row.writes.items():
            if not shown.endswith(f" {target})"):
                assert shown in refused(work, capsys, row, **{output: path})
        for source, name in row.reads.items():
            if Path(name).is_file():
                shutil.copy(name, path)
                assert shown in refused(work, capsys, row, **{source: path})
                Path(path).unlink()
        Path(path).write_text("A letter of mine.\n")
        assert shown in refused(work, capsys, row)
        Path(path).unlink()


@pytest.mark.parametrize(
    ("row", "output", "source"),
    [(row, output, one) for row, output in ONE_OUTPUT for one in row.folders],
    **ids,
)
def test_no_output_is_in_a_folder_that_is_read(row, output, source, work, capsys):
    Path("in", "deep").mkdir(parents=True)
    shutil.copy(row.reads[source], "in/a.txt")
    shutil.copy(row.reads[source], "in/deep/b.txt")
    Path("there").write_text("")
    os.link("there", "in/deep/linked")
    Path("there2").write_text("")
    Path("in", "deep", "linked2").symlink_to("../../there2")
    for place in ("in/a.txt", "in/deep/b.txt", "in/new", "in/deep/new"):
        for name in names_of(place, exists=Path(place).exists()):
            err = refused(work, capsys, row, **{source: "in", output: name})
            assert f"{row.flag(output)} {name}" in err and f"{row.flag(source)} in" in err
    if output not in row.kept:
        for name in ("there", "there2"):
            err = refused(work, capsys, row, **{source: "in", output: name})
            assert f"{row.flag(output)} {name}" in err and f"{row.flag(source)} in" in err


@pytest.mark.parametrize(("row", "output"), [one for one in ONE_OUTPUT if "model" in one[0].reads])
def test_no_output_is_in_a_model_that_is_read(row, output, work, capsys):
    model = row.reads["model"]
    for name in names_of(f"{model}/new{Path(row.writes[output]).suffix}", exists=False):
        assert f"MODEL {model}" in refused(work, capsys, row, **{output: name})


def test_nothing_is_read_or_logged_in_a_folder_that_is_replaced(work, capsys):
    fit = next(row for row in ROWS if row.line.startswith("scdv fit"))
    shutil.copy("v.txt", "m/vectors.npy")
    err = refused(work, capsys, fit, vectors="m/vectors.npy", output="here/m")
    assert "--vectors m/vectors.npy" in err and "--output here/m" in err
    train = next(row for row in ROWS if row.line.startswith("classify train"))
    err = refused(work, capsys, train, output="k", log_json="k/log")
    assert "--log-json k/log" in err and "--output k" in err
    err = refused(work, capsys, train, output="new", log_json="new/log")
    assert "--log-json new/log" in err and "--output new" in err
    resume = next(row for row in ROWS if "{resume}" in row.line)
    err = refused(work, capsys, resume, output="ck/000001/v", checkpoint="ck")
    assert "--output ck/000001/v" in err and "--checkpoint ck" in err
    err = refused(work, capsys, resume, output="ck/v")
    assert "--output ck/v" in err and "--resume ck" in err


@pytest.mark.parametrize("command", ["vocab", "phrases", "convert"])
def test_standard_input_and_output_are_files_as_any(command, work):
    """`dcme-w2v vocab - --output c.txt < c.txt`, and `... c.txt --output - >> c.txt`."""
    source = "v.txt" if command == "convert" else "c.txt"
    before = state(work)
    dcme = [sys.executable, "-m", "dcme_w2v", command]
    for first, second, stdin, stdout in (
        ("-", source, source, os.devnull), (source, "-", os.devnull, source)
    ):  # fmt: skip
        flag = [] if command == "convert" else ["--output"]
        with Path(stdin).open() as given, Path(stdout).open("a") as taken:
            done = subprocess.run(
                [*dcme, first, *flag, second], stdin=given, stdout=taken, stderr=subprocess.PIPE,
                text=True, check=False,
            )  # fmt: skip
        assert done.returncode == 2 and f" {first}" in done.stderr and f" {second}" in done.stderr
        assert state(work) == before


@pytest.mark.parametrize("row", [row for row in WRITING if row.kept != ("output",)], **ids)
def test_an_empty_name_and_that_of_a_folder_are_refused(row, work, capsys):
    for name in row.reads:
        assert f"{row.flag(name)}: is empty" in refused(work, capsys, row, **{name: ""})
    for name in row.writes:
        assert f"{row.flag(name)}: is empty" in refused(work, capsys, row, **{name: ""})
        if name not in row.kept:
            err = refused(work, capsys, row, **{name: "sub/new/"})
            assert "sub/new/: is the name of a folder" in err


# ---- special files and links ----


@contextlib.contextmanager
def reader_of(path):
    """Read a pipe to its end in a thread; gives a list with what came."""
    came = []
    thread = threading.Thread(target=lambda: came.append(Path(path).read_bytes()), daemon=True)
    thread.start()
    yield came
    thread.join(60)


@pytest.mark.parametrize(("row", "output"), ONE_FILE, **ids)
def test_a_pipe_is_written_to_and_stays(row, output, work, capsys):
    if "plot" in row.line:
        pytest.importorskip("matplotlib")
    pipe = f"pipe{Path(row.writes[output]).suffix}"
    os.mkfifo(pipe)
    if pipe.endswith(".npy"):  # two files
        assert "npy needs two files" in refused(work, capsys, row, **{output: pipe})
        return
    with reader_of(pipe) as came:
        assert run(row.arguments(**{output: pipe})) == 0
    assert stat.S_ISFIFO(Path(pipe).stat().st_mode)
    assert came and came[0]
    assert not list(work.glob(f"{pipe}.*"))


@pytest.mark.parametrize(("row", "output"), ONE_FILE, **ids)
def test_a_link_stays_and_other_names_of_a_target_keep_what_they_had(row, output, work):
    if "plot" in row.line:
        pytest.importorskip("matplotlib")
    suffix = Path(row.writes[output]).suffix
    link, new, old = Path(f"link{suffix}"), Path("sub", "new"), Path("sub", "old")
    link.symlink_to(new)
    assert run(row.arguments(**{output: str(link)})) == 0
    assert link.is_symlink() and new.stat().st_size and not new.is_symlink()
    if suffix != ".npy":
        new.write_bytes(b'{"event": "end"}\n')
    os.link(new, old)
    content, before = new.read_bytes(), new.stat().st_ino
    for checkpoints in set(row.kept) & {"checkpoint"}:
        shutil.rmtree(row.writes[checkpoints])
    assert run(row.arguments(**{output: str(link)})) == 0
    assert link.is_symlink() and new.stat().st_ino != before
    assert old.read_bytes() == content


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a device")
@pytest.mark.parametrize(("row", "output"), ONE_FILE, **ids)
def test_a_device_is_written_to_and_stays(row, output, work, capsys):
    if "plot" in row.line:
        pytest.importorskip("matplotlib")
    device = f"null{Path(row.writes[output]).suffix}"
    os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    if device.endswith(".npy"):
        assert "npy needs two files" in refused(work, capsys, row, **{output: device})
        return
    assert run(row.arguments(**{output: device})) == 0
    assert stat.S_ISCHR(Path(device).stat().st_mode)
    assert not list(work.glob(f"{device}.*"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_process_substitution_and_open_files_are_written_to(work):
    script = """
        set -e
        dcme_w2v() { "$PYTHON" -m dcme_w2v "$@"; }
        dcme_w2v vocab c.txt --output plain --min-count 1
        dcme_w2v vocab c.txt --output >(gzip > packed.gz) --min-count 1
        wait $!
        { echo before; dcme_w2v vocab c.txt --output /dev/stdout --min-count 1; echo after; } > all
        exec 7> seven; dcme_w2v vocab c.txt --output /dev/fd/7 --min-count 1; echo after >&7
    """
    environment = {**os.environ, "PYTHON": sys.executable}
    subprocess.run(["bash", "-c", script], env=environment, check=True, capture_output=True)
    plain = Path("plain").read_text()
    assert gzip.decompress(Path("packed.gz").read_bytes()).decode() == plain
    assert Path("all").read_text() == f"before\n{plain}after\n"
    assert Path("seven").read_text() == f"{plain}after\n"


def test_a_pipe_whose_reader_goes_away_is_an_error(work, capsys):
    read, write = os.pipe()
    os.close(read)
    assert run(["vocab", "c.txt", "--output", f"/dev/fd/{write}", "--min-count", "1"]) == 1
    assert f"/dev/fd/{write}: cannot be written: Broken pipe" in capsys.readouterr().err
    os.close(write)


# ---- logs, model folders ----


@pytest.mark.parametrize("content", ["A letter.\n", '{"a": 1}\n', "\n", '{"event": "end"}\nDear\n'])
@pytest.mark.parametrize("row", [row for row in WRITING if "log_json" in row.writes], **ids)
def test_a_log_replaces_no_file_that_is_none(row, content, work, capsys):
    Path("mine").write_text(content)
    assert "mine: exists and is not a log" in refused(work, capsys, row, log_json="mine")


def test_a_log_is_continued_by_a_resumed_run_only(work):
    line = f"train c.txt --output o --checkpoint ock --log-json log {SMALL}".split()
    Path("log").write_text('{"event": "end"}\n{"event": "sta')  # as a run that was killed leaves it
    assert run(line) == 0
    first = Path("log").read_text()
    assert "sta\n" not in first and first.startswith('{"event": "start"')
    os.truncate("log", len(first) - 3)
    assert run([*line, "--resume", "ock"]) == 0
    assert Path("log").read_text().startswith(first[:-3] + "\n" + '{"event": "start"')


def test_a_wrong_option_leaves_an_older_log_alone(work, capsys):
    train, classify, *_ = (row for row in WRITING if "log_json" in row.writes)
    Path("log").write_text('{"event": "end"}\n')
    for row, wrong in ((train, ["--lr", "0"]), (classify, ["--patience", "0"])):
        before = state(work)
        assert run([*row.arguments(log_json="log"), *wrong]) == 2
        assert state(work) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "notes").mkdir(),
        lambda folder: (folder / "thesis.tex").write_text("text"),
        lambda folder: (folder / ".hidden").write_text("text"),
        lambda folder: (folder / "model.json").write_text("{}"),
        lambda folder: (folder / "model.json").write_text("{"),
        lambda folder: (folder / "model.json").unlink(),
        lambda folder: (folder / "idf.npy").unlink() or (folder / "idf.npy").mkdir(),
    ],
)
@pytest.mark.parametrize("row", [row for row in WRITING if row.kept == ("output",)], **ids)
def test_a_model_replaces_no_folder_that_holds_anything_else(row, change, work, capsys):
    kinds = {"scdv fit": "m", "fuse fit": "f", "fuse shrink": "s"}
    own = kinds.get(" ".join(row.line.split()[:2]), "k")
    other = "k" if own == "m" else "m"
    assert f"{other}: is not a model of kind" in refused(work, capsys, row, output=other)
    change(Path(own))
    assert f"{own}: is " in refused(work, capsys, row, output=own)
    Path(own).rename("moved")
    Path("link").symlink_to("moved")
    assert "link: is " in refused(work, capsys, row, output="link")


def test_a_link_to_a_model_stays(work):
    Path("link").symlink_to("k")
    before = Path("k", "model.json").stat().st_ino
    assert run(["classify", "train", "d.txt", "--output", "link", "--epochs", "1", "--quiet"]) == 0
    assert Path("link").readlink() == Path("k")
    assert Path("k", "model.json").stat().st_ino != before


# ---- no code writes past the guard ----

WRITERS = ("files.py", "folders.py", "folder.py")


def test_files_are_opened_for_writing_in_one_place():
    found = []
    package = Path(dcme_w2v.__file__).parent
    for path in package.rglob("*.py"):
        if path.name not in WRITERS:
            calls = (
                one for one in ast.walk(ast.parse(path.read_text())) if isinstance(one, ast.Call)
            )
            found += [f"{path.relative_to(package)}:{one.lineno}" for one in calls if _writes(one)]
    assert not found, "write through dcme_w2v.files or dcme_w2v.folders"


def _writes(call):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    owner = getattr(getattr(call.func, "value", None), "id", "")
    if name == "open" and owner != "archive":  # of a zip file that is open
        if "devnull" in ast.unparse(call):
            return False
        modes = [one.value for one in (*call.args[:2], *(k.value for k in call.keywords))
                 if isinstance(one, ast.Constant) and isinstance(one.value, str)]  # fmt: skip
        flags = {one.attr for one in ast.walk(call) if isinstance(one, ast.Attribute)}
        writing = any(set(mode) <= set("rwxabt+") and set(mode) & set("wxa+") for mode in modes)
        return writing or bool(flags & {"O_WRONLY", "O_RDWR", "O_CREAT", "O_APPEND"})
    if owner == "np" or name in ("tofile", "dump"):
        return name in ("save", "savez", "savez_compressed", "savetxt", "tofile", "dump")
    if name == "replace":  # of a path, not of a text or a dataclass
        return len(call.args) == 1 and not call.keywords
    return name in (
        "write_text", "write_bytes", "touch", "mkstemp", "NamedTemporaryFile", "unlink", "remove",
        "rename", "renames", "rmdir", "rmtree", "symlink_to", "hardlink_to", "copyfile", "move",
    )  # fmt: skip


def test_the_check_of_the_source_finds_what_writes():
    for code in (
        "open(p, 'w')", "p.open('ab')", "p.open(mode='r+')", "p.write_text(s)", "np.save(p, x)",
        "os.open(p, os.O_WRONLY)", "p.rename(q)", "p.replace(q)", "shutil.rmtree(p)",
    ):  # fmt: skip
        assert _writes(ast.parse(code).body[0].value), code
    for code in (
        "open(p)",
        "p.open('rb')",
        "s.replace('a', 'b')",
        "replace(o, a=1)",
        "os.open(p, os.O_RDONLY)",
    ):
        assert not _writes(ast.parse(code).body[0].value), code
