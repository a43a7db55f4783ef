"""Output in an encoding that lacks a character."""

import os
import subprocess
import sys

from dcme_w2v.cli.streams import print_json

PROGRAM = [sys.executable, "-m", "dcme_w2v"]


def test_an_encoding_that_lacks_a_character_is_named(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("2 2\n日本 1 0\n本 0.5 1\n", encoding="utf-8")
    ended = subprocess.run(
        [*PROGRAM, "neighbors", str(path), "本"], capture_output=True, timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "latin1"},
    )  # fmt: skip
    assert ended.returncode == 1
    assert b"cannot represent '\\u" in ended.stderr
    assert b"set PYTHONIOENCODING=utf-8" in ended.stderr
    assert b"a bug" not in ended.stderr


ASCII = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}


def test_a_word_that_the_locale_cannot_spell_is_printed_as_given(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("2 2\n日本 1 0\nkönig 0.5 1\n", encoding="utf-8")
    command = [*PROGRAM, "neighbors", str(path), "könig", "ü"]
    ended = subprocess.run(command, env=ASCII, timeout=120, capture_output=True)
    assert ended.stdout.startswith("könig\t日本\t".encode())
    assert "no vector for ü" in ended.stderr.decode()


def test_a_name_that_the_locale_cannot_spell_is_written(tmp_path):
    corpus = tmp_path / "text"
    corpus.write_text("word " * 20)
    command = [*PROGRAM, "vocab", str(corpus), "--output", str(tmp_path / ("ü" * 120))]
    subprocess.run(command, env=ASCII, timeout=120, check=True, capture_output=True)
    assert (tmp_path / ("ü" * 120)).is_file()


def test_json_has_no_nan(capsys):
    print_json({"a": [float("nan"), 1.5], "b": float("inf")})
    assert capsys.readouterr().out == '{"a": [null, 1.5], "b": null}\n'
