"""--dry-run: memory and disk of training, classification and SCDV; nothing is written."""

import json
from pathlib import Path

import pytest

DOCS = "".join(f"{'xyz'[i % 3]}\taa{i % 4} bb{i % 3} cc dd{i % 7}\n" for i in range(60))


@pytest.fixture(autouse=True)
def files(here):
    Path("d.txt").write_text(DOCS)
    words = ["cc", *(f"aa{i}" for i in range(4)), *(f"bb{i}" for i in range(3))]
    Path("v.txt").write_text("".join(f"{w} {i} 1 2\n" for i, w in enumerate(words)))


COMMANDS = (
    "train d.txt --output o --min-count 1 --dim 8",
    "classify train d.txt --output o --holdout 0.1",
    "scdv fit d.txt --vectors v.txt --output o --clusters 2",
)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_dry_run_reports_and_writes_nothing(cli, line):
    lines = cli(f"{line} --dry-run").splitlines()
    assert any(line.startswith("memory bytes: ") for line in lines)
    assert any(line.startswith("disk of ") for line in lines)
    assert {path.name for path in Path().iterdir()} == {"d.txt", "v.txt"}


@pytest.mark.parametrize("line", COMMANDS)
def test_more_than_the_available_memory_is_an_error(cli, monkeypatch, line):
    for module in ("numeric.memory", "words.resources", "classify.resources", "scdv.fit"):
        monkeypatch.setattr(f"dcme_w2v.{module}.memory_limit", lambda: 100)
    plan = json.loads(cli(f"{line} --dry-run --json", code=1))
    assert "bytes of memory, 100 are available: lower" in plan["refused"]
    assert plan["refused"] in cli.err


def test_only_hash_values_that_occur_take_memory_in_training(cli):
    line = "classify train d.txt --output o --hashing 100000000 --dry-run --quiet"
    assert cli.json(line)["memory_bytes"] < 1e6
