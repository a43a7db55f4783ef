"""What each command and function imports: nothing that it does not use."""

import pytest
from data import make_texts, run_all
from helpers import python

# Runs lines one after the other; prints, after each, the packages and their parts that take long to
# import. A line that starts with dw is a function, others are commands.
PROBE = """
import contextlib, io, sys
import dcme_w2v as dw
for line in sys.stdin.read().splitlines():
    with contextlib.redirect_stdout(io.StringIO()):
        if line.startswith("dw."):
            eval(line)
        else:
            from dcme_w2v.cli.main import run
            assert run(line.split()) == 0, line
    places = ((name, getattr(one, "__file__", None) or "") for name, one in sys.modules.items())
    found = {name.partition(".")[0] for name, place in places if "site-packages" in place}
    others = "scipy.linalg scipy.optimize scipy.stats scipy.ndimage asyncio multiprocessing "
    others += "sqlite3 ssl http.client difflib hashlib subprocess"
    found = {name for name in found if name[0] != "_"} - {"Cython", "cython"}  # helpers of scipy
    print(line, *sorted(found | (sys.modules.keys() & {*others.split()})), sep="\\t")
"""
NUMPY, COMMAND = {"numpy"}, {"click", "numpy"}
OF_SCIPY = {"charset_normalizer", "difflib", "hashlib", "subprocess"}  # f2py has the first
ALLOWED = [
    (NUMPY, ["dw.TextClassifier()", "dw.load('c').predict(['w1 w2'])", "dw.load('v.bin')"]),
    (COMMAND, [
        "vocab text.txt --output words",
        "phrases text.txt --output joined",
        "train text.txt --output w.txt --epochs 1 --threads 1 --quiet --min-count 1",
        "neighbors v.bin w1",
        "convert v.bin v.txt",
        "info c",
        "classify predict c docs.tsv --output p.tsv",
        "classify predict small docs.tsv --output p.tsv",
        "classify explain c a",
    ]),
    (COMMAND | {"hashlib", "threadpoolctl"}, [  # numpy.random has the first
        "classify train docs.tsv --init c --output t --quiet",
        "classify test c docs.tsv",
        "classify predict l docs.tsv --output p.tsv",
        "latent show l",
    ]),
    (COMMAND | OF_SCIPY | {"scipy", "threadpoolctl"}, [
        "classify train docs.tsv --output t --quiet",  # only with few documents
        "classify shrink c --output s",
        "classify predict f docs.tsv --output p.tsv",
        "transform l docs.tsv --output p.svm",
        "transform d docs.tsv --output p.svm",
        "scdv topics d",
        "encode v.bin text.txt --output e.npy",
        "search index --query w1",
        "dw.load('index')",
    ]),
]  # fmt: skip


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
        "classify shrink c --output small --quiet",
        "search text.txt --output index --quiet",
    )
    return place


@pytest.mark.parametrize("allowed, lines", ALLOWED)
def test_only_what_is_used_is_imported(place, allowed, lines):
    done = python("-W", "ignore", "-c", PROBE, cwd=place, input="\n".join(lines))
    assert done.returncode == 0, done.stderr
    found = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line for line, *_ in found] == lines
    for line, *imported in found:
        assert {"numpy"} <= {*imported} <= allowed, line
