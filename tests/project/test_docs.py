"""The documentation is up to date: its examples run, its flags, files and results exist."""

import ast
import doctest
import importlib
import itertools
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from documentation import PAGES, blocks, command_lines, parse

import dcme_w2v as dw
from dcme_w2v.cli.main import run

pytestmark = pytest.mark.long

RUN = [name for name, text in PAGES.items() if blocks(text, "(?:shell|python)")]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with the files used by the pages: texts, documents, questions and pairs."""
    folder = tmp_path_factory.mktemp("pages")
    words = [f"word{i}" for i in range(110)] + ["king", "queen", "man", "woman", "paris", "array"]
    words += ["file", "files", "numpy"]
    lines = [" ".join(words[(i * j + j) % len(words)] for j in range(12)) for i in range(1500)]
    for name in ("corpus", "old", "text", "heldout"):
        (folder / f"{name}.txt").write_text("\n".join([*lines, "rare words\n"]))
    (folder / "new.txt").write_text("\n".join(" ".join(sorted(line.split())) for line in lines))
    labels = ("numpy", "scipy", "email")
    documents = [f"{labels[i % 3]}\t{labels[i % 3]} {line}\n" for i, line in enumerate(lines[:90])]
    for name in ("documents", "train", "dev", "test", "today"):
        (folder / f"{name}.tsv").write_text("".join(documents))
    sentence = "Ann\tB-PER\nlives\tO\nin\tO\nRome\tB-LOC\n\nOslo\tB-LOC\nis\tO\ncold\tO\n\n"
    for name in ("train", "test"):
        (folder / f"{name}.conll").write_text(sentence * 20)
    (folder / "texts.conll").write_text("Ann\nis\nin\nOslo\n\n" * 20)
    (folder / "questions-words.txt").write_text(": gram\nking queen man woman\n")
    (folder / "table.csv").write_text('label,text\nsport,"a match,\nand a goal"\n')
    pairs = [f"{a}\t{b}\t{i}\n" for i, (a, b) in enumerate(itertools.pairwise(words))]
    (folder / "wordsim353.tsv").write_text("".join(pairs))
    options = ["--epochs", "1", "--dim", "8", "--threads", "1", "--quiet"]
    for target in ("vectors.safetensors", "vectors.txt", "vectors.bin"):
        train = [sys.executable, "-m", "dcme_w2v", "train", "corpus.txt", "--output", target]
        subprocess.run([*train, *options], cwd=folder, check=True)
    return folder


def shape(line):
    """Return a line with each number as 0 and, in a table, each word as w."""
    line = re.sub(r"\d[\d.,]*", "0", line)
    return re.sub(r"[a-z]\w*", "w", line) if "\t" in line else line


def missing_of(shown, printed):
    """Return the shown lines that were not printed in this order; "..." stands for any text."""
    lines = iter([shape(line) for line in printed.splitlines()])
    patterns = [(one, re.escape(shape(one)).replace(r"\.\.\.", ".*")) for one in shown.splitlines()]
    return [one for one, wanted in patterns if not any(re.fullmatch(wanted, at) for at in lines)]


@pytest.mark.parametrize("page", [name for name in RUN if name != "README.md"])
def test_the_snippets_of_a_page_run_and_print_what_is_shown(
    page, files, tmp_path, monkeypatch, capfd
):
    """The test's texts differ from the texts of the pages, so numbers and words may differ, too."""
    work = tmp_path / "work"
    shutil.copytree(files, work)
    monkeypatch.chdir(work)
    names, missing = {}, False
    for language, block in re.findall(
        r"^```(shell|python|output)\n(.*?)^```", PAGES[page], re.M | re.S
    ):
        out, err = capfd.readouterr()
        if language == "output":  # of the block before
            assert missing_of(block, out + err) == []
            continue
        if language == "python":
            try:
                exec(compile(block, page, "exec"), names)
            except ModuleNotFoundError as error:  # of an optional package
                if error.name.startswith("dcme_w2v"):
                    raise
                missing = True
            except NameError:  # a name of a block before that needs this package
                if not missing:
                    raise
            continue
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("dcme-w2v demo "):  # whose text the fixture replaces
                continue
            if line.startswith("dcme-w2v ") and not {"|", "*"} & {*line}:
                arguments = shlex.split(line)[1:]
                limit = ["--epochs", "1"] if "train" in arguments[:2] else []
                assert run([*arguments, *limit]) == 0, line
            elif line:
                shell = line.replace("dcme-w2v ", f"{shlex.quote(sys.executable)} -m dcme_w2v ")
                assert subprocess.run(["sh", "-c", shell]).returncode == 0, line


@pytest.mark.parametrize("page", [name for name in PAGES if command_lines(PAGES[name])])
def test_the_command_lines_of_a_page_parse(page):
    for line in command_lines(PAGES[page]):
        parse(line)


# ---- the README ----


def test_the_python_example_prints_what_is_shown(capsys):
    """Other versions of Python have other topics: a part of each line is enough."""
    (example,), (shown,) = (blocks(PAGES["README.md"], kind) for kind in ("python", "text"))
    exec(example, {})
    printed = [ast.literal_eval(line) for line in capsys.readouterr().out.splitlines()]
    wanted = [ast.literal_eval(line) for line in shown.splitlines()]
    assert [len(line) for line in printed] == [len(line) for line in wanted]
    assert all(set(one) & set(other) for one, other in zip(printed, wanted, strict=True))


@pytest.mark.slow
def test_the_shell_example_prints_what_is_shown(tmp_path):
    """Texts of other machines have other neighbors: a word of each comment is enough."""
    [example] = blocks(PAGES["README.md"], "shell")
    program = f"{shlex.quote(sys.executable)} -m dcme_w2v "
    done = subprocess.run(
        ["sh", "-ec", example.replace("dcme-w2v ", program)],
        cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    printed = set(re.findall(r"[a-z]{4,}", done.stdout))
    shown = re.findall(r"# (.*)", example)
    assert [line for line in shown if not printed & set(re.findall(r"[a-z]{4,}", line))] == []
    assert len(shown) == 4


# ---- examples print what they show ----


PACKAGE = Path(dw.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    for path in PACKAGE.rglob("*.py")
    if re.search(r"^\s*>>> ", path.read_text(encoding="utf-8"), re.MULTILINE)
)


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A folder with corpus.txt: 400 lines of ten of sixty words."""
    monkeypatch.chdir(tmp_path)
    words = ["king", "queen", "man", "woman", "the", "and", "a"] + [f"w{i}" for i in range(53)]
    shuffled = random.Random(1)
    lines = [" ".join(shuffled.sample(words, 10)) for _ in range(400)]
    Path("corpus.txt").write_text("\n".join(lines) + "\n")


def failures_of(tests):
    """Run doctests, which must have examples, and return doctest's report of failures."""
    said, found, runner = [], 0, doctest.DocTestRunner()
    for test in tests:
        found += len(test.examples)
        runner.run(test, out=said.append)
    assert runner.tries == found > 0
    return "".join(said)


def examples_of(page):
    """Return the examples of a page as one doctest."""
    examples = "\n".join(blocks(page, "pycon"))
    return [doctest.DocTestParser().get_doctest(examples, {}, "page", None, None)]


@pytest.mark.parametrize("page", [name for name in PAGES if blocks(PAGES[name], "pycon")])
def test_examples_of_a_page_print_what_they_show(page, corpus):
    pytest.importorskip("sklearn")
    assert failures_of(examples_of(PAGES[page])) == ""


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_print_what_they_show(name, corpus):
    pytest.importorskip("matplotlib" if "plots" in name else "sklearn")
    assert failures_of(doctest.DocTestFinder().find(importlib.import_module(name))) == ""


def test_every_public_name_has_an_example():
    names = {*dw.__all__} - {"__version__", "errors"}
    assert [name for name in sorted(names) if ">>>" not in getattr(dw, name).__doc__] == []


def test_a_wrong_example_is_noticed():
    page = "```pycon\n>>> 1 + 1\n2\n>>> 1 + 1\n3\n```\n"
    module = ModuleType("module", "Add.\n\n    >>> 1 + 1\n    3\n")
    for tests in (examples_of(page), doctest.DocTestFinder().find(module)):
        assert "Expected:\n    3\nGot:\n    2\n" in failures_of(tests)
    with pytest.raises(AssertionError):
        failures_of([])
    assert missing_of("1 rows\na\tb\nby ...\n", "12 rows\nc\td\nby me\n") == []
    assert missing_of("1 rows\na\tb\n", "a\tb c\n1 row\n") == ["1 rows", "a\tb"]
