"""--dry-run: memory and disk of training, classification and SCDV; nothing is written."""

import json

import pytest

from dcme_w2v.cli.main import run
from dcme_w2v.numeric import memory

DOCS = "".join(f"{'xyz'[i % 3]}\taa{i % 4} bb{i % 3} cc dd{i % 7}\n" for i in range(60))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.txt").write_text(DOCS)
    words = ["cc", *(f"aa{i}" for i in range(4)), *(f"bb{i}" for i in range(3))]
    (tmp_path / "v.txt").write_text("".join(f"{w} {i} 1 2\n" for i, w in enumerate(words)))
    return tmp_path


COMMANDS = {
    "train": "train d.txt --output o --min-count 1 --dim 8",
    "classify train": "classify train d.txt --output o --holdout 0.1",
    "scdv fit": "scdv fit d.txt --vectors v.txt --output o --clusters 2",
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dry_run_reports_and_writes_nothing(files, capsys, name):
    before = sorted(path.name for path in files.iterdir())
    assert run([*COMMANDS[name].split(), "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("memory bytes: ") for line in lines)
    assert any(line.startswith("disk of ") for line in lines)
    assert sorted(path.name for path in files.iterdir()) == before


@pytest.mark.parametrize("name", COMMANDS)
def test_more_than_the_available_memory_is_an_error(files, capsys, monkeypatch, name):
    monkeypatch.setattr(memory, "memory_limit", lambda: 100)
    for module in ("dcme_w2v.words.resources", "dcme_w2v.classify.resources",
                   "dcme_w2v.scdv.fit"):  # fmt: skip
        monkeypatch.setattr(f"{module}.memory_limit", lambda: 100)
    assert run([*COMMANDS[name].split(), "--dry-run", "--json"]) == 1
    said = capsys.readouterr()
    plan = json.loads(said.out)
    assert "bytes of memory, 100 are available: lower" in plan["refused"]
    assert plan["refused"] in said.err


def test_only_hash_values_that_occur_take_memory_in_training(files, capsys):
    line = "classify train d.txt --output o --hashing 100000000 --dry-run --json --quiet"
    assert run(line.split()) == 0
    assert json.loads(capsys.readouterr().out)["memory_bytes"] < 1e6
