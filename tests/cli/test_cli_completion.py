"""Completion of command lines by bash, zsh and fish."""

import os
import shutil
import subprocess
import sys

import click
import pytest
from helpers import ALL_COMMANDS

from dcme_w2v.cli.main import program, run

SHELLS = ("bash", "zsh", "fish")


@pytest.fixture
def complete(monkeypatch, capfd):
    """Return what completes a command line as requested by a shell."""

    def completed(line, shell="bash"):
        words = line.split(" ")
        monkeypatch.setenv("_DCME_W2V_COMPLETE", f"{shell}_complete")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", words[-1] if shell == "fish" else str(len(words) - 1))
        with pytest.raises(SystemExit) as end:
            run([])
        found = capfd.readouterr()
        assert (end.value.code, found.err) == (0, "")
        lines = found.out.splitlines()
        if shell == "zsh":
            return lines[1::3]
        return [one.split(",")[1].split("\t")[0] for one in lines if "," in one]

    return completed


@pytest.mark.parametrize("shell", SHELLS)
def test_commands_are_completed(complete, shell):
    assert complete("dcme-w2v trai", shell) == ["train"]
    assert complete("dcme-w2v classify tr", shell) == ["train"]
    assert set(complete("dcme-w2v ", shell)) == set(program.list_commands(click.Context(program)))


@pytest.mark.parametrize("shell", SHELLS)
def test_options_of_every_command_are_completed(complete, shell):
    for line, command in ALL_COMMANDS.items():
        flags = {flag for one in command.params for flag in one.opts if flag.startswith("--")}
        assert flags <= {*complete(f"{line} --", shell), "--help"}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes(tmp_path):
    command = tmp_path / "dcme-w2v"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dcme_w2v "$@"\n')
    command.chmod(0o755)
    script = """
        source <(_DCME_W2V_COMPLETE=bash_source dcme-w2v)
        COMP_WORDS=(dcme-w2v classify tr) COMP_CWORD=2
        _dcme_w2v_completion dcme-w2v
        echo "${COMPREPLY[@]}"
    """
    ended = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert ended.stdout == "train\n"
