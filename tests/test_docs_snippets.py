"""The examples of the API's page and of docstrings print what they show."""

import doctest
import importlib
import random
import re
from pathlib import Path

import pytest

import dcme_w2v as dw

PAGE = Path(__file__).parent.parent / "docs" / "api.md"
TEXT = PAGE.read_text(encoding="utf-8")
MODULES = ["dcme_w2v.words.vectors", "dcme_w2v.words.train", "dcme_w2v.scdv.estimator"]


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
    if name.startswith("dcme_w2v.scdv"):
        pytest.importorskip("sklearn")
    module = importlib.import_module(name)
    found = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    assert found
    for test in found:
        said = []
        doctest.DocTestRunner().run(test, said.append)
        assert "".join(said) == ""


def test_every_public_name_and_error_is_on_the_page():
    errors = {name for name, one in vars(dw.errors).items()
              if isinstance(one, type) and issubclass(one, dw.errors.DcmeError)}  # fmt: skip
    for name in (*errors, *(f"dw.{name}" for name in set(dw.__all__) - {"__version__", "errors"})):
        assert name in TEXT, name


def test_the_table_of_gensims_names_has_existing_options():
    from dcme_w2v.words.train import FIELDS, GENSIM_NAMES

    for name, ours in GENSIM_NAMES.items():
        assert ours in {*FIELDS, "corpus", "progress"}
        assert name in TEXT or name in ("hs", "cbow_mean"), name
