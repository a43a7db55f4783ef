"""What each command and function imports: nothing that it does not use."""

import subprocess
import sys

import pytest
from data import make_texts, run_all

# Packages and their parts that take long to import, with what is printed for each.
PROBE = """
import contextlib, io, os, sys
with contextlib.redirect_stdout(io.StringIO()):
    {code}
places = ((name, getattr(module, "__file__", None) or "") for name, module in sys.modules.items())
found = {{name.partition(".")[0] for name, place in places if "site-packages" in place}}
parts = {{"scipy.optimize", "scipy.stats", "scipy.ndimage"}} & sys.modules.keys()
others = "asyncio multiprocessing sqlite3 ssl http.client difflib hashlib subprocess".split()
others = sys.modules.keys() & others
found = {{name for name in found if name[0] != "_"}} - {{"Cython", "cython"}}  # helpers of scipy
print(*sorted(found | parts | others), file=sys.stderr)
"""
NUMPY, COMMAND = {"numpy"}, {"click", "numpy"}
OF_SCIPY = {"charset_normalizer", "difflib", "hashlib", "subprocess"}  # f2py has the first
SPARSE = COMMAND | OF_SCIPY | {"scipy", "threadpoolctl"}
ALLOWED = [
    ("vocab text.txt --output words", COMMAND),
    ("phrases text.txt --output joined", COMMAND),
    ("train text.txt --output w.txt --epochs 1 --threads 1 --quiet --min-count 1", COMMAND),
    ("neighbors v.bin w1", COMMAND),
    ("convert v.bin v.txt", COMMAND),
    ("info c", COMMAND),
    ("classify train docs.tsv --output t --quiet", SPARSE),
    ("classify predict c docs.tsv --output p.tsv", COMMAND),
    ("classify explain c a", COMMAND),
    ("classify predict l docs.tsv --output p.tsv", COMMAND | {"threadpoolctl"}),
    ("latent show l", COMMAND | {"threadpoolctl"}),
    ("fuse shrink c --output s", SPARSE),
    ("classify predict small docs.tsv --output p.tsv", COMMAND),
    ("classify predict f docs.tsv --output p.tsv", SPARSE),
    ("transform l docs.tsv --output p.svm", SPARSE),
    ("transform d docs.tsv --output p.svm", SPARSE),
    ("scdv topics d", SPARSE),
    ("encode v.bin text.txt --output e.npy", SPARSE),
    ("search index --query w1", SPARSE),
    ("dw.TextClassifier()", NUMPY),
    ("dw.load('c').predict(['w1 w2'])", NUMPY),
    ("dw.load('v.bin')", NUMPY),
    ("dw.load('index')", SPARSE),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model of each kind."""
    place = tmp_path_factory.mktemp("models")
    texts = [text.decode() for text in make_texts()]
    (place / "text.txt").write_text("\n".join(texts))
    labeled = (f"{'ab'[i % 2]}\t{'ab'[i % 2]} {text}" for i, text in enumerate(texts))
    (place / "docs.tsv").write_text("\n".join(labeled))
    run_all(
        place,
        "train text.txt --output v.bin --min-count 1 --dim 8 --quiet",
        "classify train docs.tsv --output c --quiet",
        "latent fit docs.tsv --output l --latent 2 --quiet",
        "fuse fit docs.tsv --unlabeled docs.tsv --no-choose --output f --quiet",
        "scdv fit docs.tsv --vectors v.bin --clusters 2 --output d --quiet",
        "fuse shrink c --output small --quiet",
        "search text.txt --output index --quiet",
    )
    return place


@pytest.mark.parametrize("line, allowed", ALLOWED)
def test_only_what_is_used_is_imported(place, line, allowed):
    code = f"import dcme_w2v as dw; {line}"
    if not line.startswith("dw."):
        code = f"from dcme_w2v.cli.main import run; assert run({line.split()}) == 0"
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(code=code)], cwd=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    imported = set(done.stderr.splitlines()[-1].split())
    assert "numpy" in imported
    assert imported <= allowed
