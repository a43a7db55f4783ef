"""Every command with all its paths, and a folder to run it in, for test_paths*.py."""

import os
import shutil
import stat
import zlib
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from helpers import ALL_COMMANDS
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v.cli.main import run
from dcme_w2v.files.paths import Paths

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
        for word, package in (("plot", "matplotlib"), ("--index", "usearch")):
            if word in self.line:
                pytest.importorskip(package)
        return [word.format(**{**self.reads, **self.writes, **paths}) for word in self.line.split()]

    def flag(self, name):
        """The name of a parameter in messages."""
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
        folders=("corpus", "holdout"), kept=("output_tables",),
        texts=("cache_dir", "corpus_too", "cluster", "unk")),
    Row(f"train {{corpus}} --output {{output}} --cluster local:0 --shards 2 --save-vocab "
        f"{{save_vocab}} --checkpoint {{checkpoint}} {SMALL}",
        {"corpus": "c.txt"}, {"output": "o", "save_vocab": "ov", "checkpoint": "ock"},
        folders=("corpus",), kept=("checkpoint",), again=False),
    Row(f"train {{corpus}} --output {{output}} --output-context {{output_context}} {SMALL}",
        {"corpus": "c.txt"}, {"output": "o.npy", "output_context": "oc.npy"}),
    Row(f"train {{corpus}} --output {{output}} --output-context {{output_context}} {SMALL}",
        {"corpus": "c.txt"}, {"output": "o", "output_context": "oc"}),
    Row("train {corpus} --output {output} --output-fasttext {output_fasttext} --init {init} "
        f"--subwords 3-6 --buckets 50 {SMALL}",
        {"corpus": "c.txt", "init": "i.bin"}, {"output": "o", "output_fasttext": "of"},
        folders=("corpus",), texts=("subwords",)),
    Row(f"train {{corpus}} --output {{output}} --checkpoint {{checkpoint}} {SMALL}",
        {"corpus": "c.txt"}, {"output": "o", "checkpoint": "ock"},
        folders=("corpus",), kept=("checkpoint",), again=False),
    Row(f"train {{corpus}} --output {{output}} --resume {{resume}} --checkpoint {{checkpoint}} "
        f"--checkpoint-every 1 {SMALL}",
        {"corpus": "c.txt", "resume": "ck"}, {"output": "o", "checkpoint": "ock"},
        kept=("checkpoint",), again=False),
    Row("doctor", {}),
    Row("demo {texts}", {"texts": "c.txt"}, folders=("texts",)),
    Row("demo --collect {collect} --documents {documents}", {},
        {"collect": "o", "documents": "od"}),
    Row("vocab {corpus} --output {output} --min-count 1",
        {"corpus": "c.txt"}, {"output": "o"}, folders=("corpus",)),
    Row("vocab {corpus} --output {output} --min-count 1 --cluster local:0 --shards 2",
        {"corpus": "c.txt"}, {"output": "o"}, texts=("cluster",)),
    Row("vocab --merge {corpus} --output {output}", {"corpus": "voc"}, {"output": "o"}),
    Row("phrases {corpus} --output {output} --save-table {save_table} --read-table {read_table} "
        "--cache-dir .",
        {"corpus": "c.txt", "read_table": "tab"}, {"output": "o", "save_table": "ot"},
        folders=("corpus",), texts=("cache_dir", "corpus_too")),
    Row("phrases {corpus} --output {output} --connectors {connectors}",
        {"corpus": "c.txt", "connectors": "words"}, {"output": "o"}, folders=("corpus",)),
    Row("merge {models} tb --output {output}", {"models": "ta"}, {"output": "om"},
        kept=("output",)),
    Row("merge {models} i2.npy --output {output}", {"models": "i.npy"}, {"output": "o.npy"}),
    Row("classes {vectors} --classes 2 --output {output}", {"vectors": "i.npy"}, {"output": "o"}),
    Row("convert {source} {target}", {"source": "i.npy"}, {"target": "o.txt"}),
    Row("convert {source} {target}", {"source": "v.txt"}, {"target": "o.npy"}),
    Row("convert {source} {target} --quantize int8", {"source": "v.txt"},
        {"target": "o.safetensors"}, texts=("quantize",)),
    Row("convert {source} {target} --to projector", {"source": "v.txt"}, {"target": "o.tsv"}),
    Row("convert {source} {target} --to sentence-transformers --scores {scores}",
        {"source": "i.npy", "scores": "sc.json"}, {"target": "om"}, kept=("target",),
        texts=("language", "license")),
    Row("classify train {docs} --output {output} --holdout {holdout} --log-json {log_json} "
        "--epochs 1 --quiet",
        {"docs": "d.txt", "holdout": "d2.txt"}, {"output": "om", "log_json": "ol"},
        folders=("docs",), kept=("output",)),
    Row("classify train {docs} --output {output} --resume {resume} --checkpoint {checkpoint} "
        "--checkpoint-every 1 --epochs 1 --threads 1 --quiet",
        {"docs": "d.txt", "resume": "kc"}, {"output": "om", "checkpoint": "okc"},
        kept=("output", "checkpoint"), again=False),
    Row("classify train {docs} --output {output} --cluster local:0 --shards 2 --epochs 1 --quiet",
        {"docs": "d.txt"}, {"output": "om"}, kept=("output",), texts=("cluster",)),
    Row("classify train {docs} --output {output} --labels {labels} --epochs 1 --quiet",
        {"docs": "r.npz", "labels": "l.txt"}, {"output": "om"}, kept=("output",)),
    Row("fuse fit {labeled} --unlabeled {unlabeled} --output {output} --log-json {log_json} "
        "--statistics {statistics} --preset paper --quiet",
        {"labeled": "d.txt", "unlabeled": "d2.txt"},
        {"output": "om", "log_json": "ol", "statistics": "os.npz"},
        folders=("labeled", "unlabeled"), kept=("output",)),
    Row("fuse fit {labeled} --labels {labels} --unlabeled {unlabeled} --output {output} "
        "--preset paper --quiet",
        {"labeled": "w.npz", "labels": "l.txt", "unlabeled": "w2.npz"}, {"output": "om"},
        kept=("output",)),
    Row("fuse fit {labeled} --reference {reference} --resume-statistics {resume_statistics} "
        "--output {output} --quiet",
        {"labeled": "d.txt", "reference": "k", "resume_statistics": "part.npz"},
        {"output": "om"}, folders=("labeled",), kept=("output",), texts=("keep",)),
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
    Row("encode {vectors} {texts} --output {output} --pooling usif",
        {"vectors": "i.npy", "texts": "c.txt"}, {"output": "o.tsv"}, folders=("texts",)),
    Row("eval sts {vectors} {pairs} --pooling mean", {"vectors": "i.npy", "pairs": "sts.tsv"},
        folders=("pairs",)),
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
    Row("neighbors {vectors} aa --index {index}", {"vectors": "v.txt", "index": "n.index"},
        texts=("words",)),
    Row("analogy {vectors} aa bb cc --index {index}", {"vectors": "v.txt", "index": "n.index"},
        texts=("words",)),
    Row("similarity {vectors} aa bb", {"vectors": "v.txt"}, texts=("words",)),
    Row("odd-one-out {vectors} aa bb cc", {"vectors": "v.txt"}, texts=("words",)),
    Row("score {model} {corpus} --context {context} --read-vocab {read_vocab}",
        {"model": "v.txt", "corpus": "c.txt", "context": "v.txt", "read_vocab": "voc"},
        folders=("corpus",)),
    Row("predict-word {model} aa _ --context {context} --read-vocab {read_vocab}",
        {"model": "v.txt", "context": "v.txt", "read_vocab": "voc"}, texts=("words",)),
    Row("check {file}", {"file": "v.txt"}),
    Row("info {file}", {"file": "v.txt"}),
    Row("explore {vectors} --output {output} --labels {labels} --method pca",
        {"vectors": "v.txt", "labels": "lv.txt"}, {"output": "o.html"}, texts=("method",)),
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
         "labels": "l.txt"}, texts=("query", "judgments")),
]  # fmt: skip
WRITING = [row for row in ROWS if row.writes]
ids = {"ids": lambda row: row.line[:60] if isinstance(row, Row) else str(row)}
ONE_OUTPUT = [(row, name) for row in WRITING for name in row.writes]
ONE_FILE = [(row, name) for row, name in ONE_OUTPUT if name not in row.kept]


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """All files that commands read."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        texts = {
            "c.txt": CORPUS, "h.txt": CORPUS[:90], "d.txt": DOCS, "d2.txt": DOCS, "d.svm": DOCS,
            "l.txt": "x\ny\n" * 10, "words": "aa\n", "q.txt": "aa bb cc ab\n",
            "v.svm": "1 0:1 1:2\n2 2:1\n" * 10,
            "sc.json": '{"sets": [], "pearson": 1, "spearman": 1}',
            "sts.tsv": "1\taa bb\tcc\n2\tab\tac\n",
            "p.txt": "aa\tbb\t1\naa\tcc\t2\nab\tbb\t3\n",
        }  # fmt: skip
        event = '{"event": "epoch", "seconds": 1, "epoch": %d, "loss": 1}\n'
        texts["lv.txt"] = "x\ny\nz\n" * 3
        texts["log"] = event % 1 + event % 2
        for name, text in texts.items():
            Path(name).write_text(text)
        for line in (
            f"train c.txt --output v.txt {SMALL}",
            f"train c.txt --output o --checkpoint ck --checkpoint-every 1 {SMALL}",
            f"train c.txt --output-tables ta --output o {SMALL}",
            f"train c.txt --output-tables tb --output i.npy {SMALL}",
            f"train c.txt --output i2.npy {SMALL}",
            f"train c.txt --output o --output-fasttext i.bin --subwords 3-6 --buckets 50 {SMALL}",
            "vocab c.txt --output voc --min-count 1",
            "phrases c.txt --output o --save-table tab --threshold 0 --min-count 1",
            "classify train d.txt --output k --epochs 1 --quiet",
            "latent fit d.txt --output z --quiet",
            "latent fit v.svm --output zv --quiet",
            "classify train d.txt --output k --epochs 1 --threads 1 --checkpoint kc "
            "--checkpoint-every 1 --quiet",
            "scdv fit d.txt --vectors v.txt --output m --clusters 2 --quiet",
            "scdv transform m d.txt --output r.npz",
            "fuse fit d.txt --unlabeled d2.txt --output f --preset paper --quiet",
            "fuse statistics k d.txt --output part.npz --quiet",
        ):
            assert run(line.split()) == 0
        if find_spec("usearch"):
            assert run(["neighbors", "v.txt", "aa", "--index", "n.index"]) == 0
        for name in ("w.npz", "w2.npz"):
            save_npz(name, csr_matrix([[1.0, 0, 0.5], [0, 1, 0.25]] * 10))
        train = "classify train w.npz --labels l.txt --output kr --epochs 1 --quiet"
        assert run(train.split()) == 0
        assert run(["fuse", "shrink", "k", "--keep", "0.5", "--output", "s", "--quiet"]) == 0
        Path("o").unlink()
        Path("o.json").unlink()
    return folder


@pytest.fixture
def work(made, tmp_path, monkeypatch):
    """A copy of the files, with a folder and a link to itself."""
    folder = tmp_path / "work"
    shutil.copytree(made, folder)
    (folder / "sub").mkdir()
    (folder / "here").symlink_to(".")
    monkeypatch.chdir(folder)
    monkeypatch.setattr("dcme_w2v.cli.demo.folders", lambda: [made])
    monkeypatch.setattr("dcme_w2v.cli.demo.LABEL_MIN", 1)
    return folder


@pytest.fixture
def declared(monkeypatch):
    """Outputs that commands declare to the path guard."""
    found = []
    check = Paths.check

    def recording(paths):
        found.extend(paths._written)
        check(paths)

    monkeypatch.setattr(Paths, "check", recording)
    return found


def state(folder):
    """Every name below a folder, with its type and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[path] = path.readlink()
        else:
            found[path] = path.read_bytes() if path.is_file() else stat.S_IFMT(path.stat().st_mode)
    return found


def names_of(name, exists=True):
    """Two of the names of a file or folder, links included; other tests take other ones.

    Which ones follows from the test's name, so that every kind of name meets every command.
    """
    link = Path("sub", f"link{Path(name).suffix}")
    plain = [name, f"./{name}", f"sub/../{name}", f"here/{name}", str(Path(name).absolute())]
    linking = [lambda: link.symlink_to(Path("..", name))]
    if exists and Path(name).is_file():
        linking.append(lambda: os.link(name, link))
    turn = zlib.crc32(f"{os.environ['PYTEST_CURRENT_TEST']} {name}".encode())
    yield plain[turn % len(plain)]
    linking[turn % len(linking)]()
    yield str(link)
    link.unlink()


def refused(work, capsys, row, **paths):
    """Run a command that must change nothing; return its one error line."""
    before = state(work)
    capsys.readouterr()
    assert run(row.arguments(**paths)) == 2, paths
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert state(work) == before
    return err
