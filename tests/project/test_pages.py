"""The checks of pages find what they are for."""

import re
import runpy
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture(scope="module")
def check():
    return runpy.run_path(str(SCRIPTS / "check_pages.py"), run_name="check_pages")


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS / "benchmarks")
    return runpy.run_path(str(SCRIPTS / "benchmarks" / "tables.py"), run_name="tables")


@pytest.mark.parametrize(
    "text, fault",
    [
        ("[a](none.md)", "none.md: there is no such file"),
        ("[a](page.md#none)", "page.md#none: there is no such heading"),
        ("[a](#none)", "#none: there is no such heading"),
        ('<img src="none.svg">', "none.svg: there is no such file"),
        ("```{toctree}\nb\n```", "```{toctree}: GitHub shows this as text"),
        ("see {ref}`this`", "GitHub shows this as text"),
        ("of $a =\nb$ and `$c`", "does not show a formula that spans lines"),
        ("# A\n# A\n# A\n\n[a](#a) [b](#a-2)", None),
        ("# Two words: `a.b`\n\n[a](#two-words-ab) [b](https://x.org/y#z)", None),
        ("`[a](none.md)`\n\n```text\n[a](none.md) {ref}`b`\n```\n\n    [a](none.md)\n", None),
    ],
)
def test_faults_of_a_page(check, tmp_path, text, fault):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    found = list(check["faults"](page))
    assert bool(found) == (fault is not None)
    assert fault is None or fault in found[0]


def test_sentences_end_at_stops_paragraphs_items_and_cells(check):
    text = (
        "# Title\n\nOne two. Three [four five](x.md)?\n- six\n- seven\n\n| a b | c |\n|---|---|\n"
    )
    found = [one for one in check["sentences"](text) if any(map(str.isalpha, one))]
    assert found == ["# Title", "One two.", "Three four five?", "- six", "- seven", "| a b", "c |"]


def test_two_cells_of_one_name_are_an_error(tables):
    keys = ("suite", "setting", "metric", "number", "spread", "unit", "seeds", "commit", "machine")
    line = dict(zip(keys, ["s", "a", "time", "12.345", "0.51", "s", "1", "c", "m"], strict=True))
    other = {**line, "setting": "b", "spread": ""}
    share = {**line, "setting": "c", "unit": "%"}
    table = tables["table_of"]("s", [line, other, share])
    assert table["rows"] == [["a", "12.3 ± 0.5 s"], ["b", "12.345 s"], ["c", "12.3 ± 0.5%"]]
    shown = tables["markdown_table"](table, "b -> B | setting -> of; time -> t")
    assert shown == "| of | t |\n| --- | --- |\n| B | 12.345 s |\n"
    with pytest.raises(ValueError, match="s: a has time twice"):
        tables["table_of"]("s", [line, line])


def test_pages_name_suites_and_rows_that_exist(tables, monkeypatch):
    run = runpy.run_path(str(SCRIPTS / "benchmarks" / "run.py"), run_name="run")
    suites, rows = {*run["GROUPS"], *run["suites"].ALL}, {one["suite"] for one in tables["read"]()}
    pages = [SCRIPTS.parent / "README.md", *SCRIPTS.rglob("*.md")]
    named = []
    for page in [*pages, *(SCRIPTS.parent / "docs").rglob("*.md")]:
        text = " ".join(page.read_text(encoding="utf-8").split())
        for known, pattern in (
            (suites, r"run\.py ([a-z][\w-]*)|\bsuites? `([\w-]+)`"),
            (rows, r"\brows `([\w-]+)`|<!-- results: \w+ (\S+)"),
        ):
            found = {"".join(one) for one in re.findall(pattern, text)}
            assert found <= known, f"{page.name}: {found - known}"
            named += found
    assert {"readme", "quality_time", "divergence"} <= {*named}
