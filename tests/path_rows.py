"""A line of every command with all its paths."""

import stat

import pytest
from data import SMALL
from documentation import parse

from dcme_w2v.cli.command import shown_name
from dcme_w2v.cli.main import run
from dcme_w2v.files.paths import FOLDER, READS


class Row:
    """A command line, and its paths by the roles that the command declares."""

    def __init__(self, line):
        self.line, self.words = line, line.replace("SMALL", f"{SMALL} --quiet").split()
        context = parse(["dcme-w2v", *self.words])
        self.command, self._flags = context.command_path, {}
        self.reads, self.writes, self.folders, self.models = {}, {}, set(), set()
        for param in context.command.params:
            value, role = context.params.get(param.name), getattr(param, "path", None)
            value = value[0] if isinstance(value, tuple) and value else value
            self._flags[param.name] = shown_name(param)
            if value and role == READS:
                self.reads[param.name] = value
            elif value and role:
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
    "--output-tables ot SMALL",
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
    "phrases c.txt --output o --save-table ot --read-table tab",
    "phrases c.txt --output o --connectors words",
    "classes i.safetensors --classes 2 --output o",
    "convert i.safetensors o.txt",
    "convert v.txt o.safetensors",
    "convert i.safetensors om --to sentence-transformers",
    "classify train d.txt --output om --holdout d2.txt --log-json ol --epochs 1 --quiet",
    "classify train d.txt --output om --resume kc --checkpoint okc --checkpoint-every 1 "
    "--epochs 1 --threads 1 --quiet",
    "classify train d.txt --output om --init k --epochs 1 --quiet",
    "classify train d.txt --output om --cluster local:0 --shards 2 --epochs 1 --quiet",
    "classify train r.npz --output om --labels l.txt --epochs 1 --quiet",
    "fuse fit d.txt --unlabeled d2.txt --output om --log-json ol --preset paper --quiet",
    "fuse fit w.npz --labels l.txt --unlabeled w2.npz --output om --preset paper --quiet",
    "transform f d.txt --output o.svm",
    "classify shrink k --holdout d.txt --output om --quiet",
    "classify shrink kr --holdout w.npz --labels l.txt --output om --quiet",
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
    "neighbors v.txt aa --stability i.bin",
    "compare v.txt --with i.bin --min-count 1",
    "predict-word tb aa _",
    "check v.txt",
    "info v.txt",
    "explore v.txt --output o.html --labels lv.txt --method pca",
    "plot log --output o.png",
    "plot r.npz --output o.png --labels l.txt --method pca",
    "classify test kr w.npz --labels l.txt --confusion o",
    "classify predict kr w.npz --labels l.txt --output o",
    "classify explain k x",
    "latent show z --documents d.txt",
    "scdv topics m --coherence d.txt",
    "search d.txt --query aa --vectors v.txt --output o",
]
ROWS = [Row(line) for line in LINES]
WRITING = [row for row in ROWS if row.writes]
ids = {"ids": lambda row: row.line[:60] if isinstance(row, Row) else str(row)}
FIRST = {row.command: row for row in reversed(WRITING)}
ONE_FILE = [
    (row, name)
    for row in FIRST.values()
    for name in row.writes.keys() - row.folders - row.models - {"output_tables"}
]


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
