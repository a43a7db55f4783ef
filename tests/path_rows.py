"""A line of every command with all its paths, and a folder to run it in."""

import shutil
import stat
from pathlib import Path

import pytest
from documentation import parse
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v.cli.command import shown_name
from dcme_w2v.cli.main import run
from dcme_w2v.files.paths import FOLDER, LOG, READS, WRITES

CORPUS = "".join(f"{a}{b} {b}{c} {c}{a} aa bb cc\n" for a in "abc" for b in "abc" for c in "abc")
DOCS = "".join(f"{'xy'[i % 2]}\t{('aa bb ab', 'cc bc ca')[i % 2]} ac\n" for i in range(20))
SMALL = "--dim 4 --epochs 1 --min-count 1 --sample 0 --threads 1 --quiet"


class Row:
    """A command line, and its paths by the roles that the command declares."""

    def __init__(self, line):
        self.line, self.words = line, line.replace("SMALL", SMALL).split()
        context = parse(["dcme-w2v", *self.words])
        self.command, self._flags = context.command_path, {}
        self.reads, self.writes, self.folders, self.models = {}, {}, set(), set()
        for param in context.command.params:
            value, role = context.params.get(param.name), getattr(param, "path", None)
            value = value[0] if isinstance(value, tuple) and value else value
            self._flags[param.name] = shown_name(param)
            if value and role == READS:
                self.reads[param.name] = value
            elif value and role in (WRITES, LOG, FOLDER):
                self.writes[param.name] = value
                self.folders |= {param.name} if role == FOLDER else set()
                self.models |= {param.name} if param.metavar == "MODEL" else set()

    def arguments(self, **paths):
        if "plot" in self.words:
            pytest.importorskip("matplotlib")
        given = {**self.reads, **self.writes}
        changed = {given[name]: path for name, path in paths.items()}
        return [changed.get(word, word) for word in self.words]

    def flag(self, name):
        """The name of a parameter in messages."""
        return self._flags[name]


LINES = [
    "train c.txt --output o --log-json ol --read-vocab voc --init i.safetensors --holdout h.txt "
    "--output-tables ot --cache-dir . SMALL",
    "train c.txt --output o --cluster local:0 --shards 2 --checkpoint ock SMALL",
    "train c.txt --output o.safetensors --output-tables oc.safetensors SMALL",
    "train c.txt --output o.ft --format fasttext --init i.bin --subwords 3-6 --buckets 50 SMALL",
    "train c.txt --output o --checkpoint ock SMALL",
    "train c.txt --output o --resume ck --checkpoint ock --checkpoint-every 1 SMALL",
    "doctor",
    "demo c.txt",
    "demo --collect o.txt --documents od",
    "vocab c.txt --output o --min-count 1",
    "vocab c.txt --output o --min-count 1 --cluster local:0 --shards 2",
    "vocab --merge voc --output o",
    "phrases c.txt --output o --save-table ot --read-table tab --cache-dir .",
    "phrases c.txt --output o --connectors words",
    "classes i.safetensors --classes 2 --output o",
    "convert i.safetensors o.txt",
    "convert v.txt o.npy",
    "convert v.txt o.safetensors --quantize int8",
    "convert v.txt o.tsv --to projector",
    "convert i.safetensors om --to sentence-transformers --scores sc.json",
    "classify train d.txt --output om --holdout d2.txt --log-json ol --epochs 1 --quiet",
    "classify train d.txt --output om --resume kc --checkpoint okc --checkpoint-every 1 "
    "--epochs 1 --threads 1 --quiet",
    "classify train d.txt --output om --cluster local:0 --shards 2 --epochs 1 --quiet",
    "classify train r.npz --output om --labels l.txt --epochs 1 --quiet",
    "fuse fit d.txt --unlabeled d2.txt --output om --log-json ol --statistics os.npz "
    "--preset paper --quiet",
    "fuse fit w.npz --labels l.txt --unlabeled w2.npz --output om --preset paper --quiet",
    "fuse fit d.txt --reference k --resume-statistics part.npz --output om --quiet",
    "fuse statistics k d.txt --output o.npz --quiet",
    "transform f d.txt --output o.svm",
    "fuse shrink k --holdout d.txt --output om --quiet",
    "fuse shrink kr --holdout w.npz --labels l.txt --output om --quiet",
    "fuse levels f",
    "latent fit d.txt --output om --holdout d2.txt --log-json ol --quiet",
    "latent fit r.npz --output om --labels l.txt --quiet",
    "transform zv v.svm --output o.svm --labels ol",
    "scdv fit d.txt --vectors i.safetensors --output om --clusters 2 --quiet",
    "encode i.safetensors c.txt --output o.tsv --pooling usif",
    "eval sts i.safetensors sts.tsv --pooling mean",
    "transform m d.svm --output o.svm --labels ol",
    "eval analogies v.txt q.txt",
    "eval similarity v.txt p.txt",
    "eval likelihood tb c.txt --analogies q.txt --window 2",
    "neighbors v.txt aa",
    "predict-word tb aa _",
    "check v.txt",
    "info v.txt",
    "explore v.txt --output o.html --labels lv.txt --method pca",
    "plot log --output o.png",
    "plot r.npz --output o.png --labels l.txt --method pca",
    "classify test kr w.npz --labels l.txt",
    "classify predict kr w.npz --labels l.txt",
    "classify explain k x",
    "latent show z --documents d.txt",
    "scdv topics m --coherence d.txt",
    "scdv search m r.npz --queries d2.txt --documents d.txt --lm 0.5 --labels l.txt",
]
LINES += ["scdv search m r.npz --queries d2.txt --judgments jd --map"]
ROWS = [Row(line) for line in LINES]
WRITING = [row for row in ROWS if row.writes]
ids = {"ids": lambda row: row.line[:60] if isinstance(row, Row) else str(row)}
FIRST = {row.command: row for row in reversed(WRITING)}
ONE_FILE = [
    (row, name)
    for row in FIRST.values()
    for name in row.writes.keys() - row.folders - row.models - {"output_tables"}
]


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
            "one": "x\tcat dog\n" * 4, "plain": "cat dog\nsaw axe\n" * 6, "empty": "",
            "wordless": "a\t\nb\t.\n", "two.txt": "a 1 2\nb 3 4\n", "nan.txt": "a 1 2\nb nan 4\n",
            "short": "a\nb\n", "bytes": "\udcff\n", "ended": '{"event": "end", "seconds": 1}\n',
            "nul": "of\0the\n", "many": " ".join(map(str, range(255))),
            "of": "1\ta\tb\t3\t1\tof\n1\tof\tb\t3\t1\n",
            "jd": "1 1\n", "p.txt": "aa\tbb\t1\naa\tcc\t2\nab\tbb\t3\n",
        }  # fmt: skip
        event = '{"event": "epoch", "seconds": 1, "epoch": %d, "loss": 1}\n'
        texts["lv.txt"] = "x\ny\nz\n" * 3
        texts["log"] = event % 1 + event % 2
        for name, text in texts.items():
            Path(name).write_text(text, "utf-8", "surrogateescape")
        for line in (
            f"train c.txt --output v.txt {SMALL}",
            f"train c.txt --output o --checkpoint ck --checkpoint-every 1 {SMALL}",
            f"train c.txt --output-tables ta --output o {SMALL}",
            f"train c.txt --output-tables tb --output i.safetensors {SMALL}",
            f"train c.txt --output i.bin --format fasttext --subwords 3-6 --buckets 50 {SMALL}",
            "vocab c.txt --output voc --min-count 1",
            "phrases c.txt --output o --save-table tab --threshold 0 --min-count 1",
            "classify train d.txt --output k --epochs 1 --quiet",
            "latent fit d.txt --output z --quiet",
            "latent fit v.svm --output zv --quiet",
            "classify train d.txt --output k --epochs 1 --threads 1 --checkpoint kc "
            "--checkpoint-every 1 --quiet",
            "scdv fit d.txt --vectors v.txt --output m --clusters 2 --quiet",
            "transform m d.txt --output r.npz",
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


def state(folder):
    """Every name below a folder, with its type and content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[path] = path.readlink()
        else:
            found[path] = path.read_bytes() if path.is_file() else stat.S_IFMT(path.stat().st_mode)
    return found


def refused(work, capsys, row, **paths):
    """Run a command that must change nothing; return its one error line."""
    before = state(work)
    capsys.readouterr()
    assert run(row.arguments(**paths)) == 2, paths
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("error: ") and err.count("\n") == 1
    assert state(work) == before
    return err
