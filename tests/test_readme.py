"""The README is up to date: its tables are rendered, its commands and flags exist."""

import re
import runpy

import click
import pytest
from documentation import COMMANDS, PAGES, ROOT, blocks, command_lines, parse

README = PAGES["README.md"]


def test_its_results_are_up_to_date():
    tables = runpy.run_path(str(ROOT / "scripts" / "benchmarks" / "tables.py"))
    assert tables["with_results"](README) == README


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name):
    assert f"`{name}`" in README


@pytest.mark.parametrize("line", command_lines(README), ids=" ".join)
def test_the_examples_parse(line):
    parse(line)


def test_every_flag_of_the_readme_exists():
    known = {flag for command in COMMANDS.values() for param in command.params
             if isinstance(param, click.Option) for flag in param.opts}  # fmt: skip
    named = set(re.findall(r"`(?:dcme-w2v )?(?:[a-z]+ )?(--?[a-z][a-z0-9-]*)", README))
    assert named - known - {"--help"} == set()


def test_the_links_lead_to_files():
    for target in re.findall(r"\]\(([^):]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_python_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = "king queen man woman word0 word1 word2 word3"
    (tmp_path / "corpus.txt").write_text(f"{line}\n" * 50)
    pytest.importorskip("gensim")
    (example,) = blocks(README, "python")
    names = {"texts": ["word0 word1", "word2 word3"] * 9, "labels": ["a", "b"] * 9}
    exec(example.replace("SCDV(", "SCDV(clusters=1, vectors="), names)
    assert names["classifier"].predict(names["rows"]).shape == (18,)


def test_the_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert {"demo", "test", "lint", "docs", "bench", "ctest", "wheel", "clean"} <= targets
    for name, text in PAGES.items():
        named = set(re.findall(r"(?:^    |`)make ([a-z-]+)", text, re.MULTILINE))
        assert named <= targets, name
