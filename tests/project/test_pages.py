"""The checks of pages find what they are for."""

import re
import runpy
from collections import defaultdict
from pathlib import Path
from statistics import fmean, median

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


ORDINALS = {4: "quarter", 6: "sixth", 12: "twelfth", 16: "sixteenth", 18: "eighteenth"}


def one_in(ratio):
    return ORDINALS[round(ratio)]


def test_claims_follow_from_the_results(tables):
    rows = defaultdict(lambda: defaultdict(dict))
    for one in tables["read"]():
        rows[one["suite"]][one["setting"]][one["metric"]] = float(one["number"])
    cells = rows["quality_time"]
    five, two = cells["dcme-w2v (5 epochs)"], cells["dcme-w2v --epochs 2"]
    similar, word2vec = cells["gensim, our settings, both its tables"], cells["gensim, alpha .05"]
    assert all(two[one] > word2vec[one] for one in ("analogies", "wordsim353", "simlex999"))
    cpu, wall = "CPU seconds, --threads 1", "seconds, --threads 2"
    speed = [*rows["speed"].values(), *rows["speed-kernels"].values()]
    speed = [n for row in speed for name, n in row.items() if "word2vec.c" not in name]
    recipe = {name[:-8]: row for name, row in rows["recipe"].items() if name.endswith(": recipe")}
    ours = [rows["recipe"][f"{name}: defaults"] for name in recipe]
    pairs = list(zip(ours, recipe.values(), strict=True))
    ahead = [one["accuracy"] - other["accuracy"] for one, other in pairs]
    share = [one["CPU seconds"] / other["CPU seconds"] for one, other in pairs]
    gains = [row["fuse fit"] - row["classify train"] for row in rows["few_labels"].values()]
    articles, baselines = rows["many_articles"], rows["classify-baselines"]
    gd, dcme = articles["24,001 classes, gd"], articles["24,001 classes, dcme"]
    exact, auto = (rows["many_classes"][f"59,277 classes, {name}"] for name in ("gd", "auto"))
    lost = [a["accuracy"] - b["accuracy"] for a, b in ((gd, dcme), (exact, auto))]
    lost += [baselines["gd"]["wikipara: accuracy"] - baselines["dcme"]["wikipara: accuracy"]]
    times = "CPU seconds, --threads 2"
    seconds = baselines["gd"]["wikipara: s"] / baselines["dcme"]["wikipara: s"]
    assert (round(seconds), round(gd[times] / dcme[times])) == (2, 5)
    claims = {
        "README.md": [
            f"a {one_in(similar[cpu] / five[cpu])} of gensim's CPU time with similar settings",
            f"a {one_in(max(speed))} to a {one_in(min(speed))} of gensim's CPU time",
            f"in an {one_in(word2vec[cpu] / two[cpu])} of the time",
            f"On {len(ahead)} small data sets",
            f"average {fmean(ahead):.1f} points more accurate",
            f"({min(ahead):.1f} to +{max(ahead):.1f})",
            f"a {one_in(1 / median(share))} of the recipe's time",
            f"On {len(gains)} sets",
            f"adds {min(gains):.1f} to {max(gains):.0f} points of accuracy",
            f"in the median {median(gains):.0f}",
            f"at most {max(lost):.1f} points less accurate than the exact softmax",
            "twice as fast with 1,236 classes and five times as fast with 24,001 classes",
        ],
        "docs/results.md": [
            f"one {one_in(word2vec[cpu] / two[cpu])} of the CPU time",
            f"one {one_in(word2vec[wall] / two[wall])} of gensim's wall-clock time",
            f"one {one_in(similar[cpu] / five[cpu])} of the CPU time",
            f"by up to {max(ahead):.1f} points",
            f"by at most {-min(ahead):.1f} points",
            f"{min(share):.2f} to {max(share):.2f} times",
            f"(median {median(share):.2f})",
        ],
    }
    for page, wanted in claims.items():
        text = " ".join((SCRIPTS.parent / page).read_text(encoding="utf-8").split())
        text = text.replace("\N{MINUS SIGN}", "-")
        assert [one for one in wanted if one not in text] == [], page
