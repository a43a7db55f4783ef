"""The examples of the API's page and of docstrings print what they show."""

import doctest
import importlib
import os
import random
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import dcme_w2v as dw

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
TEXT = PAGE.read_text(encoding="utf-8")
MODULES = sorted({*dw._MODULES.values()} - {"dcme_w2v.errors"})


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A folder with corpus.txt: 400 lines of ten of sixty words."""
    monkeypatch.chdir(tmp_path)
    words = ["king", "queen", "man", "woman", "the", "and", "a"] + [f"w{i}" for i in range(53)]
    shuffled = random.Random(1)
    lines = [" ".join(shuffled.sample(words, 10)) for _ in range(400)]
    Path("corpus.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def failures_of(examples, name, names):
    """Run examples, at least one, and return doctest's report of failures."""
    said = []
    test = doctest.DocTestParser().get_doctest(examples, names, name, None, None)
    assert test.examples
    doctest.DocTestRunner().run(test, said.append)
    return "".join(said)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
def test_examples_of_the_page_print_what_they_show(corpus):
    pytest.importorskip("sklearn")
    blocks = re.findall(r"^```pycon\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert failures_of("\n".join(blocks), PAGE.name, {}) == ""


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_print_what_they_show(name, corpus):
    """Every public name has an example."""
    pytest.importorskip("matplotlib" if "plots" in name else "sklearn")
    module = importlib.import_module(name)
    for public in (one for one in dw.__all__ if dw._MODULES.get(one) == name):
        assert ">>>" in getattr(dw, public).__doc__, public
    for test in doctest.DocTestFinder().find(module):
        said = []
        doctest.DocTestRunner().run(test, said.append)
        assert "".join(said) == ""


def test_the_backend_for_annif_trains_and_suggests(tmp_path, monkeypatch):
    """Against stubs of Annif's classes: its own are not installed."""
    page = (PAGE.parent / "howto" / "annif.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)

    class AnnifBackend:
        def __init__(self, datadir):
            self.datadir, self.project = datadir, SimpleNamespace(subjects=None)

    class SuggestionBatch:
        from_sequence = staticmethod(lambda found, subjects: found)

    suggestion = SimpleNamespace(SubjectSuggestion=SimpleNamespace, SuggestionBatch=SuggestionBatch)
    stubs = {"annif": SimpleNamespace(), "annif.suggestion": suggestion}
    stubs["annif.backend"] = SimpleNamespace(backend=SimpleNamespace(AnnifBackend=AnnifBackend))
    for name, module in stubs.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if shutil.which("dcme-w2v") is None:
        pytest.skip("the command is not installed beside Python")
    names = {}
    exec(compile(code, "annif.md", "exec"), names)
    documents = [
        SimpleNamespace(text=f"w{i % 3}\nu{i % 2} common", subject_set=[i % 3, 3 + i % 2])
        for i in range(90)
    ]
    backend = names["DcmeBackend"](str(tmp_path))
    backend._train(SimpleNamespace(documents=documents), {}, jobs=1)
    backend.initialize()
    (found,) = backend._suggest_batch(["w2 u0"], {"limit": 100})
    assert len(found) == 5 and all(0 <= one.score <= 1 for one in found)
    assert {one.subject_id for one in found[:2]} == {2, 3}
