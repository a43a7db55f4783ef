"""Output in an encoding that lacks a character."""

import os
from pathlib import Path

from helpers import python

from dcme_w2v.cli.streams import print_json


def ended(line, *more, **environment):
    """Return what a command ends with in such an environment; it prints bytes."""
    words = ("-m", "dcme_w2v", *line.split(), *more)
    return python(*words, env={**os.environ, **environment}, text=False)


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0"}


def test_an_encoding_that_lacks_a_character_is_named():
    Path("v.txt").write_text("2 2\n日本 1 0\n本 0.5 1\n", encoding="utf-8")
    done = ended("neighbors v.txt 本", PYTHONIOENCODING="latin1")
    assert done.returncode == 1
    assert b"cannot represent '\\u" in done.stderr
    assert b"set PYTHONIOENCODING=utf-8" in done.stderr
    assert b"a bug" not in done.stderr


def test_a_word_that_the_locale_cannot_spell_is_printed_as_given():
    Path("v.txt").write_text("2 2\n日本 1 0\nkönig 0.5 1\n", encoding="utf-8")
    done = ended("neighbors v.txt könig ü", **ASCII)
    assert done.stdout.startswith("könig\t日本\t".encode())
    assert "no vector for ü" in done.stderr.decode()


def test_a_name_that_the_locale_cannot_spell_is_written():
    Path("text").write_text("word " * 20)
    assert ended("vocab text --output", "ü" * 120, **ASCII).returncode == 0
    assert Path("ü" * 120).is_file()


def test_json_has_no_nan(capsys):
    print_json({"a": [float("nan"), 1.5], "b": float("inf")})
    assert capsys.readouterr().out == '{"a": [null, 1.5], "b": null}\n'
