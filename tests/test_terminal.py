"""What reaches a terminal, and output in an encoding that lacks a character."""

import os
import pty
import subprocess
import sys
import threading

import pytest

from dcme_w2v.cli.streams import print_json

PROGRAM = [sys.executable, "-m", "dcme_w2v"]
EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m"


def on_terminal(*arguments, **more):
    """Run the program with a terminal as its output and errors; return what the terminal gets."""
    ours, theirs = pty.openpty()
    drawn = []

    def read():
        while True:
            try:
                data = os.read(ours, 65536)
            except OSError:  # the other end is closed
                return
            if not data:
                return
            drawn.append(data)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    process = subprocess.Popen([*PROGRAM, *arguments], stdout=theirs, stderr=theirs, **more)
    os.close(theirs)
    process.wait(timeout=120)
    reader.join(timeout=30)
    os.close(ours)
    return b"".join(drawn)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    path = tmp_path_factory.mktemp("terminal") / "text"
    path.write_text(f"a{EVIL}b word word\n" * 20, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    "arguments", [["vocab", "{}", "--output", "-"], ["vocab", f"nowhere{EVIL}", "--output", "-"]]
)
def test_words_and_paths_cannot_command_a_terminal(corpus, arguments):
    drawn = on_terminal(*(one.format(corpus) for one in arguments))
    assert b"\\x1b" in drawn and b"\\u009b31m" in drawn
    assert not {b"\x1b", b"\x07", b"\x9b"} & {drawn[i : i + 1] for i in range(len(drawn))}


def test_a_file_or_pipe_gets_the_words_as_they_are(corpus):
    ended = subprocess.run(
        [*PROGRAM, "vocab", corpus, "--output", "-"], capture_output=True, timeout=120, check=True
    )
    assert f"a{EVIL}b 20".encode() in ended.stdout


def test_an_encoding_that_lacks_a_character_is_named(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("2 2\n日本 1 0\n本 0.5 1\n", encoding="utf-8")
    ended = subprocess.run(
        [*PROGRAM, "neighbors", str(path), "本"], capture_output=True, timeout=120,
        env={**os.environ, "PYTHONIOENCODING": "latin1"},
    )  # fmt: skip
    assert ended.returncode == 1
    assert b"has no '\\u" in ended.stderr and b"set PYTHONIOENCODING=utf-8" in ended.stderr
    assert b"a bug" not in ended.stderr


ASCII = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"}


def test_a_word_that_the_locale_cannot_spell_is_printed_as_given(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("2 2\n日本 1 0\nkönig 0.5 1\n", encoding="utf-8")
    command = [*PROGRAM, "neighbors", str(path), "könig", "ü"]
    ended = subprocess.run(command, env=ASCII, timeout=120, capture_output=True)
    assert ended.stdout.startswith("könig\t日本\t".encode())
    assert "no vector for ü" in ended.stderr.decode()


def test_a_name_that_the_locale_cannot_spell_is_written(tmp_path, corpus):
    command = [*PROGRAM, "vocab", corpus, "--output", str(tmp_path / ("ü" * 120))]
    subprocess.run(command, env=ASCII, timeout=120, check=True, capture_output=True)
    assert (tmp_path / ("ü" * 120)).is_file()


def test_json_has_no_nan(capsys):
    print_json({"a": [float("nan"), 1.5], "b": float("inf")})
    assert capsys.readouterr().out == '{"a": [null, 1.5], "b": null}\n'
