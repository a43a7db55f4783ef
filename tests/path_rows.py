"""Every command with all its paths, and a folder to run it in, for test_paths*.py."""

import os
import re
import shutil
import stat
import zlib
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


PLACE = re.compile(r"\{(\w+)(<<?|>>?)(.+?)\}")


class Row:
    """A command line with its paths: {name<file} is read, {name>file} is written.

    Of {name<<file} and {name>>folder} the first may be a folder, the second is one. Parameters that
    are not paths are `texts`; `again`: the line may be run twice.
    """

    def __init__(self, line, texts="", again=True):
        self.line, self.texts, self.again = line.replace("SMALL", SMALL), texts.split(), again
        found = PLACE.findall(line)
        self.reads = {name: file for name, sign, file in found if "<" in sign}
        self.writes = {name: file for name, sign, file in found if ">" in sign}
        self.folders = [name for name, sign, _ in found if sign == "<<"]
        self.kept = [name for name, sign, _ in found if sign == ">>"]

    @property
    def command(self):
        words = self.line.split()
        return " ".join(words[: 1 + (f"dcme-w2v {' '.join(words[:2])}" in ALL_COMMANDS)])

    def arguments(self, **paths):
        if "plot" in self.line:
            pytest.importorskip("matplotlib")
        words = self.line.split()
        return [PLACE.sub(lambda found: paths.get(found[1], found[3]), word) for word in words]

    def flag(self, name):
        """The name of a parameter in messages."""
        param = next(
            one for one in ALL_COMMANDS[f"dcme-w2v {self.command}"].params if one.name == name
        )
        if isinstance(param, click.Argument):
            return param.metavar or param.name.upper()
        return next(flag for flag in param.opts if flag.startswith("--"))


ROWS = [
    Row(
        "train {corpus<<c.txt} --output {output>o} --output-context {output_context>oc} "
        "--save-vocab {save_vocab>ov} --log-json {log_json>ol} --read-vocab {read_vocab<voc} "
        "--init {init<i.safetensors} --holdout {holdout<<h.txt} "
        "--init-context {init_context<i2.safetensors} "
        "--output-tables {output_tables>>ot} --cache-dir . SMALL",
        "cache_dir corpus_too cluster unk",
    ),
    Row(
        "train {corpus<<c.txt} --output {output>o} --cluster local:0 --shards 2 --save-vocab "
        "{save_vocab>ov} --checkpoint {checkpoint>>ock} SMALL",
        again=False,
    ),
    Row(
        "train {corpus<c.txt} --output {output>o.safetensors} --output-context "
        "{output_context>oc.safetensors} SMALL"
    ),
    Row("train {corpus<c.txt} --output {output>o} --output-context {output_context>oc} SMALL"),
    Row(
        "train {corpus<<c.txt} --output {output>o} --output-fasttext {output_fasttext>of} "
        "--init {init<i.bin} --subwords 3-6 --buckets 50 SMALL",
        "subwords",
    ),
    Row(
        "train {corpus<<c.txt} --output {output>o} --checkpoint {checkpoint>>ock} SMALL",
        again=False,
    ),
    Row(
        "train {corpus<c.txt} --output {output>o} --resume {resume<ck} --checkpoint "
        "{checkpoint>>ock} --checkpoint-every 1 SMALL",
        again=False,
    ),
    Row("doctor"),
    Row("demo {texts<<c.txt}"),
    Row("demo --collect {collect>o} --documents {documents>od}"),
    Row("vocab {corpus<<c.txt} --output {output>o} --min-count 1"),
    Row(
        "vocab {corpus<c.txt} --output {output>o} --min-count 1 --cluster local:0 --shards 2",
        "cluster",
    ),
    Row("vocab --merge {corpus<voc} --output {output>o}"),
    Row(
        "phrases {corpus<<c.txt} --output {output>o} --save-table {save_table>ot} "
        "--read-table {read_table<tab} --cache-dir .",
        "cache_dir corpus_too",
    ),
    Row("phrases {corpus<<c.txt} --output {output>o} --connectors {connectors<words}"),
    Row("classes {vectors<i.safetensors} --classes 2 --output {output>o}"),
    Row("convert {source<i.safetensors} {target>o.txt}"),
    Row("convert {source<v.txt} {target>o.npy}"),
    Row("convert {source<v.txt} {target>o.safetensors} --quantize int8", "quantize"),
    Row("convert {source<v.txt} {target>o.tsv} --to projector"),
    Row(
        "convert {source<i.safetensors} {target>>om} --to sentence-transformers "
        "--scores {scores<sc.json}",
        "language license",
    ),
    Row(
        "classify train {docs<<d.txt} --output {output>>om} --holdout {holdout<d2.txt} "
        "--log-json {log_json>ol} --epochs 1 --quiet"
    ),
    Row(
        "classify train {docs<d.txt} --output {output>>om} --resume {resume<kc} --checkpoint "
        "{checkpoint>>okc} --checkpoint-every 1 --epochs 1 --threads 1 --quiet",
        again=False,
    ),
    Row(
        "classify train {docs<d.txt} --output {output>>om} --cluster local:0 --shards 2 "
        "--epochs 1 --quiet",
        "cluster",
    ),
    Row(
        "classify train {docs<r.npz} --output {output>>om} --labels {labels<l.txt} --epochs 1 "
        "--quiet"
    ),
    Row(
        "fuse fit {labeled<<d.txt} --unlabeled {unlabeled<<d2.txt} --output {output>>om} "
        "--log-json {log_json>ol} --statistics {statistics>os.npz} --preset paper --quiet"
    ),
    Row(
        "fuse fit {labeled<w.npz} --labels {labels<l.txt} --unlabeled {unlabeled<w2.npz} "
        "--output {output>>om} --preset paper --quiet"
    ),
    Row(
        "fuse fit {labeled<<d.txt} --reference {reference<k} --resume-statistics "
        "{resume_statistics<part.npz} --output {output>>om} --quiet",
        "keep",
    ),
    Row("fuse statistics {model<k} {docs<<d.txt} --output {output>o.npz} --quiet"),
    Row("fuse transform {model<f} {docs<<d.txt} --output {output>o.svm}"),
    Row("fuse shrink {model<k} --holdout {holdout<<d.txt} --output {output>>om} --quiet", "keep"),
    Row(
        "fuse shrink {model<kr} --holdout {holdout<w.npz} --labels {labels<l.txt} --output "
        "{output>>om} --quiet"
    ),
    Row("fuse levels {model<f}"),
    Row(
        "latent fit {docs<<d.txt} --output {output>>om} --holdout {holdout<d2.txt} --log-json "
        "{log_json>ol} --quiet",
        "choose",
    ),
    Row("latent fit {docs<r.npz} --output {output>>om} --labels {labels<l.txt} --quiet", "choose"),
    Row("latent transform {model<zv} {docs<v.svm} --output {output>o.svm} --labels {labels>ol}"),
    Row(
        "scdv fit {docs<<d.txt} --vectors {vectors<i.safetensors} --output {output>>om} "
        "--clusters 2 --quiet"
    ),
    Row("encode {vectors<i.safetensors} {texts<<c.txt} --output {output>o.tsv} --pooling usif"),
    Row("eval sts {vectors<i.safetensors} {pairs<<sts.tsv} --pooling mean"),
    Row("scdv transform {model<m} {docs<<d.svm} --output {output>o.svm} --labels {labels>ol}"),
    Row("eval analogies {vectors<v.txt} {questions<q.txt}"),
    Row("eval similarity {vectors<v.txt} {pairs<p.txt}"),
    Row(
        "eval likelihood {model<v.txt} {corpus<c.txt} --context {context<v.txt} --read-vocab "
        "{read_vocab<voc} --analogies {analogies<q.txt} --window 2"
    ),
    Row("neighbors {vectors<v.txt} aa", "words"),
    Row(
        "predict-word {model<v.txt} aa _ --context {context<v.txt} --read-vocab {read_vocab<voc}",
        "words",
    ),
    Row("check {file<v.txt}"),
    Row("info {file<v.txt}"),
    Row(
        "explore {vectors<v.txt} --output {output>o.html} --labels {labels<lv.txt} --method pca",
        "method",
    ),
    Row("plot {files<log} --output {output>o.png}", "fields column words method labels"),
    Row(
        "plot {files<r.npz} --output {output>o.png} --labels {labels<l.txt} --method pca",
        "fields words method",
    ),
    Row("classify test {model<k} {docs<d.txt}", "labels"),
    Row("classify predict {model<k} {docs<d.txt}", "labels"),
    Row("classify explain {model<k} x", "label"),
    Row("latent show {model<z} --documents {documents<d.txt}"),
    Row("scdv topics {model<m} --coherence {coherence<d.txt}", "word"),
    Row(
        "scdv search {model<m} {index<r.npz} --queries {queries<d2.txt} --documents "
        "{documents<d.txt} --lm 0.5 --labels {labels<l.txt}",
        "query judgments",
    ),
]
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
            f"train c.txt --output-tables tb --output i.safetensors {SMALL}",
            f"train c.txt --output i2.safetensors {SMALL}",
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
    monkeypatch.setattr("dcme_w2v.cli.machine.folders", lambda: [made])
    monkeypatch.setattr("dcme_w2v.cli.machine.LABEL_MIN", 1)
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
