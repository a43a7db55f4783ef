"""`dcme-w2v search`: what it reads and prints."""

import json
from pathlib import Path

import pytest


@pytest.fixture
def docs(here):
    Path("docs.txt").write_text("green tea\nred\ta fast car\n\ncoffee with milk\n")
    return here


def test_answers(docs, cli):
    first, second = cli.rows("search docs.txt --query cars --query", "GREEN tea")
    assert (first[:3], first[4]) == (["1", "1", "docs.txt:2 [red]"], "a fast car")
    assert (second[:3], second[4]) == (["2", "1", "docs.txt:1"], "green tea")
    assert cli.err == "4 documents\n"
    found = cli.json("search docs.txt --query milk")
    hit = found["hits"][0]
    assert (found["query"], hit["document"], hit["rank"]) == ("milk", 4, 1)
    Path("queries").write_text("milk\nzzz\ntea\tzzz\n")
    rows = cli.rows("search docs.txt -k 1 --query queries --quiet")
    assert [row[0] for row in rows] == ["1", "3"]


def test_an_index_takes_the_place_of_documents(docs, cli):
    assert cli("search docs.txt --output index --b 0.3") == ""
    assert cli("search index --query tea") == cli("search docs.txt --b 0.3 --query tea")
    for given in ("--b 0.1", "--vectors docs.txt --query a"):
        assert "the options of a saved index cannot be changed" in cli.error(
            f"search index {given}"
        )


def test_lines_of_standard_input_are_answered(docs, cli):
    printed = cli("search docs.txt --json", stdin=b"tea\nzzz\n\nmilk")
    answers = [json.loads(line) for line in printed.splitlines()]
    assert [len(one["hits"]) for one in answers] == [1, 0, 0, 1]
    assert cli.err.count("2 of 4 queries have no results") == 1
    assert cli("search docs.txt --query", "zzz", code=1) == ""


def test_tables_are_read(docs, cli):
    Path("t.csv").write_text("title,body\none,green tea\ntwo,black coffee\n")
    (row,) = cli.rows("search t.csv --text-column title,body --query", "coffee")
    assert row[4] == "two black coffee"


def test_duplicates(docs, cli):
    Path("same.txt").write_text("green tea and milk\nother\nGreen tea, and milk!\n")
    assert cli.rows("search same.txt --duplicates") == [["1.0000", "same.txt:1", "same.txt:3"]]
    found = cli.json("search same.txt --duplicates")["duplicates"]
    assert found == [{"document": 1, "other": 3, "similarity": 1.0}]
    assert cli("search same.txt --duplicates --threshold 1 --quiet").count("\n") == 1
