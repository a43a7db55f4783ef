"""The documentation is up to date: its examples run, its flags, files and results exist."""

import itertools
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from documentation import PAGES, ROOT, blocks, command_lines, parse

from dcme_w2v.cli.main import run

RUN = [name for name, text in PAGES.items() if blocks(text, "(?:shell|python)")]


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with the files used by the pages: texts, documents, questions and pairs."""
    folder = tmp_path_factory.mktemp("pages")
    words = [f"word{i}" for i in range(40)] + ["king", "queen", "man", "woman", "paris", "array"]
    words += ["file", "files", "numpy"]
    lines = [" ".join(words[(i * j + j) % len(words)] for j in range(12)) for i in range(400)]
    for name in ("corpus", "old", "new", "text", "heldout"):
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")
    labels = ("numpy", "scipy", "email")
    documents = [f"{labels[i % 3]}\t{labels[i % 3]} {line}\n" for i, line in enumerate(lines[:90])]
    for name in ("documents", "train", "test"):
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
    for target in ("vectors.npy", "vectors.txt", "vectors.bin"):
        corpus = str(folder / "corpus.txt")
        assert run(["train", corpus, "--output", str(folder / target), *options]) == 0
    return folder


@pytest.mark.parametrize("page", [name for name in RUN if name != "README.md"])
def test_the_snippets_of_a_page_run(page, files, tmp_path, monkeypatch):
    work = tmp_path / "work"
    shutil.copytree(files, work)
    monkeypatch.chdir(work)
    names, missing = {}, False
    for language, block in re.findall(r"^```(shell|python)\n(.*?)^```", PAGES[page], re.M | re.S):
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
            if " --index " in line and not find_spec("usearch"):
                continue
            if line.startswith("dcme-w2v ") and "|" not in line:
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


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files(page):
    folder = Path(ROOT / page).parent
    for target in re.findall(r"\]\(([^):#]+)\)", PAGES[page]):
        assert (folder / target).exists(), target
