"""Every command that reads word vectors takes every format, and answers as with text."""

import shutil

import pytest

FORMATS = {  # and the options of convert
    "o.bin": "",
    "o.safetensors": "",
    "o.txt.gz": "",
    "o.bin.zst": "",
    "folder": "--to sentence-transformers",
}
COMMANDS = {  # and whether the answer has the numbers of the vectors alone
    "neighbors {} aa": True,
    "neighbors {} -- +aa -bb": True,
    "eval analogies {} q.txt": True,
    "eval similarity {} p.txt": True,
    "eval sts {} sts.tsv --pooling mean": True,
    "encode {} c.txt --pooling mean": True,
    "convert {} - --limit 2 --unit": True,
    "classes {} --classes 2 --output -": True,
    "info {}": False,
    "check {}": False,
    "explore {} --output page.html --method pca": False,
    "plot {} --output page.png --method pca": False,
    "scdv fit c.txt --vectors {} --clusters 2 --output model": False,
    "train c.txt --init {} --output o --epochs 1 --min-count 1 --dim 4 --quiet": False,
}


@pytest.fixture(scope="module")
def answers():
    """The answers of the commands for text."""
    return {}


@pytest.mark.parametrize("name", FORMATS)
def test_every_reader_takes_every_format(made, cli, answers, name):
    pytest.importorskip("matplotlib")
    for file in ("c.txt", "q.txt", "p.txt", "sts.tsv", "v.txt"):
        shutil.copy(made / file, file)
    cli(f"convert v.txt {name} {FORMATS[name]}")
    for line, is_exact in COMMANDS.items():
        if is_exact and line not in answers:
            answers[line] = cli(line.format("v.txt"))
        if name == "folder":  # whose vectors are pooled
            cli(line.replace("--pooling mean", "").format(name))
        elif not is_exact:
            cli(line.format(name))
        else:
            assert cli(line.format(name)).replace(name, "v.txt") == answers[line], line
