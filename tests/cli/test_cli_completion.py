"""Completion of command lines by bash, zsh and fish."""

import click
import pytest

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
