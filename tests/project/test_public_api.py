"""Public names: lazy, listed, visible to type checkers; imports of the program."""

import ast
import importlib
import inspect
import json
import re
import sys
from pathlib import Path

import pytest
from helpers import python

import dcme_w2v as dw

# Slow to import: only where they are used.
SLOW = {
    "difflib", "hashlib", "matplotlib", "numpy", "pyarrow", "scipy", "sklearn", "smart_open",
    "subprocess", "threadpoolctl", "tqdm",
}  # fmt: skip
BARE = "import __future__, contextlib, importlib, warnings"  # as site-packages may at the start


def modules_after(code):
    """Return the names of all modules that a new process imports by running code."""
    command = f"import json, sys\n{code}\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    return set(json.loads(python("-c", command, check=True).stdout.splitlines()[-1]))


def test_public_names_are_listed_and_found_once():
    assert sorted(dw.__all__) == sorted([*dw._MODULES, "__version__"])
    assert dir(dw) == sorted(dw.__all__)
    for name, module in dw._MODULES.items():
        found = getattr(dw, name)
        assert found is getattr(importlib.import_module(module), name, sys.modules[module])
        assert dw.__dict__[name] is found
    with pytest.raises(AttributeError, match="has no attribute 'Vektors'"):
        dw.Vektors  # noqa: B018


@pytest.mark.parametrize(
    "owner, name, answer",
    [
        (dw, "load_model", "use dw.load(file)"),
        (dw, "most_similar", "use v.most_similar(word)"),
        (dw, "Vectorz", "did you mean Vectors?"),
        (dw.Vectors, "vocab", "use v.words"),
        (dw.Vectors, "key_to_index", "use v.index(word)"),
    ],
)
def test_names_of_other_programs_get_a_hint(owner, name, answer):
    with pytest.raises(AttributeError) as error:
        getattr(owner, name)
    assert str(error.value).endswith(f"has no attribute {name!r}; {answer}")


PARAMETERS = """
check: path
classes: vectors classes seed threads
compare: a b topn min_count
encode: vectors texts output pooling dim unit tokenize encoding_errors threads progress
eval_analogies: vectors questions limit method
eval_likelihood: model corpus window analogies threads
eval_similarity: vectors pairs limit
eval_sts: vectors pairs pooling dim tokenize
explore: files output labels color limit method seed progress
info: path
load: path
phrases: corpus output read_table save_table threads progress options
plot: files output fields words labels limit method seed
predict_word: model text topn
save_sentence_model: vectors folder tokenize dim limit numbers pooling
vocab: corpus merge threads progress options
"""


def test_functions_have_these_parameters():
    functions = (name for name in dw.__all__ if inspect.isfunction(getattr(dw, name)))
    found = {name: " ".join(inspect.signature(getattr(dw, name)).parameters) for name in functions}
    found.pop("train")  # of which the declared options are the table
    assert "\n".join(f"{name}: {one}" for name, one in found.items()) == PARAMETERS.strip()


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda v: dw.eval_likelihood(v), "no text to score; pass a corpus, or use analogies"),
        (lambda v: dw.eval_likelihood(v, ["a b"]), "requires its context vectors"),
        (lambda v: dw.phrases(["a b"], "o", mincount=1), "did you mean min_count?"),
        (lambda v: v["B" * 100_000], "is not among the 2 words"),
        (lambda v: dw.train(), "no corpus was given"),
        (lambda v: dw.plot({}, "o.png"), "files must be paths, not dict"),
        (lambda v: dw.explore({}, "o.html"), "files must be paths, not dict"),
        (lambda v: dw.vocab(["a b"], sentences="paragraphs"), "is available only for text files"),
        (lambda v: dw.eval_analogies(v, "q", restrict_vocab=5), "use limit"),
        (lambda v: v.most_similar("a", topn=None), "use topn=len(v) for all words"),
    ],
)
def test_wrong_arguments_are_one_line_in_terms_of_python(call, message):
    with pytest.raises(dw.errors.DcmeError, match=re.escape(message)) as caught:
        call(dw.Vectors(["a", "b"], [[1, 0], [0, 1]]))
    assert "--" not in str(caught.value)


@pytest.mark.parametrize(
    "function, known, answer",
    [
        (dw.train, {"sg": 1}, "use model"),
        (dw.train, {"cbow_mean": 0}, "omit it: CBOW always takes the mean"),
        (dw.train, {"corpus_file": "c"}, "the first argument"),
        (dw.train, {"mincount": 2}, "did you mean min_count?"),
        (dw.LatentClassModel, {"n_components": 3}, "use latent"),
        (dw.SCDV, {"n_components": 3}, "use clusters"),
        (dw.MaxentClassifier, {"C": 3}, "use l2"),
        (dw.FusedFeatures, {"max_iter": 3}, "use rounds"),
    ],
)
def test_names_of_other_programs_are_answered(function, known, answer):
    with pytest.raises(TypeError, match=re.escape(answer)):
        function(**known)


def test_functions_take_paths_and_what_train_returned(here):
    lines = [["new", "york", word] for word in "abcd"] * 20
    v = dw.train(lines, dim=4, threads=1, output="v.safetensors", min_count=1)
    page = dw.explore(here / "v.safetensors", here / "page.html", method="pca")
    assert Path("page.html").read_text(encoding="utf-8") == page
    assert len(dw.explore([v, "v.safetensors"], method="pca")) > len(page)
    assert dw.vocab(lines, min_count=1).most_common(2) == [("new", 80), ("york", 80)]
    assert dict(dw.vocab(lines, min_count=1).items())["d"] == 20
    table = dw.phrases(lines, here / "o", min_count=1, threshold=1)
    assert dw.phrases(["of new york"], "again", read_table=table).joined == 1
    Path("t").write_text("new york a\nnew york b\n")
    asked = ["new", "_", "a"], "new _ a"
    assert len({str(dw.predict_word(v, one, topn=1)) for one in asked}) == 1
    with pytest.raises(dw.errors.UsageError, match="one gap"):
        dw.predict_word(v, "new york")
    forms = lines[:2], ["new york a", "new york b"], here / "t"
    one, *others = (dw.eval_likelihood(v, form) for form in forms)
    assert others == [one, one]
    assert (dw.classes("v.safetensors", 2) == dw.classes(v, 2)).all()
    found = [dw.encode(given, "t", "o.npy") for given in (v, "v.safetensors")]
    assert [rows.shape for rows in found] == [(2, 4)] * 2
    with pytest.raises(TypeError, match="must be a path, not range"):
        dw.train(lines, init=range(3))


HELP = """
from dcme_w2v.cli.main import COMMANDS, run
for line in [*COMMANDS, "", "scdv fit", "scdv topics",
             "classify train", "eval likelihood"]:
    assert run([*line.split(), "--help"]) == 0
"""


def test_objects_are_printed_briefly_and_shown_as_tables():
    lines = [["a<b", "w&", f"w{i % 7}", f"v{i % 5}"] for i in range(60)]
    v = dw.train(lines, dim=4, epochs=1, threads=1, min_count=1)
    texts, labels = [" ".join(line) for line in lines], [line[2] for line in lines]
    classifier = dw.TextClassifier(threads=1).fit(texts, labels).model_
    documents = dw.SCDV(v, clusters=2).fit(texts).model_
    turned = v.changed(vectors=v.vectors[::-1])
    lists = [
        v.most_similar("w1"), dw.predict_word(v, "w1 _ w2"), classifier.explain(label="w1"),
        dw.compare(v, turned, min_count=1, topn=3), dw.compare(v, v, min_count=1),
    ]  # fmt: skip
    for one in (v, v.words, classifier, documents):
        assert len(repr(one)) < 250 and " at 0x" not in repr(one)
    for one in (v, classifier, documents, *lists):
        shown = one._repr_html_()
        assert shown.startswith("<table>") and not re.search("a<b|w&(?!amp;)", shown)
    assert "<th>word</th><th>similarity</th>" in lists[0]._repr_html_()
    assert type(lists[0])(lists[0] * 9)._repr_html_().count("<tr>") == 52


def test_importing_the_package_imports_nothing_else():
    assert modules_after("import dcme_w2v") - modules_after(BARE) == {"dcme_w2v"}


def test_help_imports_nothing_slow():
    new = modules_after(HELP)
    assert "click" in new
    assert {name.partition(".")[0] for name in new} & SLOW == set()


def test_static_tools_see_the_names():
    """The branch with the imports is not one that a tool knows not to be run."""
    tree = ast.parse(Path(dw.__file__).read_bytes())
    value = next(
        one.value for one in tree.body
        if isinstance(one, ast.Assign) and one.targets[0].id == "TYPE_CHECKING"
    )  # fmt: skip
    branch = next(one for one in tree.body if isinstance(one, ast.If))
    names = {alias.name for one in branch.body for alias in one.names}
    assert not isinstance(value, ast.Constant) and names >= {*dw._MODULES}


def test_a_call_of_the_package_of_search_says_what_to_call():
    assert dw.Search
    with pytest.raises(TypeError, match=r"use dw.Search\(\).fit\(texts\).search\(queries\)"):
        dw.search("tea")
