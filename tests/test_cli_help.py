"""Help in groups with examples, hints for names of other programs, completion, standard input."""

import re
import runpy
import shlex
import sys

import click
import pytest
from documentation import COMMANDS, ROOT, parse

from dcme_w2v.cli.group import ALIASES, COMMAND_HINTS
from dcme_w2v.cli.main import run
from dcme_w2v.cli.spellings import OPTION_HINTS


@pytest.fixture
def vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("4 2\nking 1 0\nqueen 0.9 0.1\nman 0 1\nwoman 0.1 0.9\n")
    return str(path)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example_that_parses(name, capsys):
    example = COMMANDS[name].example
    assert run([*name.split()[1:], "--help"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(example.splitlines()[-1])
    for part in example.replace("\n", " | ").split(" | "):
        if part.startswith("dcme-w2v "):
            parse(["dcme-w2v", *shlex.split(part)[1:]])


@pytest.mark.parametrize(
    ("name", "most"),
    [("train", 28), ("classify train", 25), ("latent fit", 15), ("fuse fit", 12)],
)
def test_plain_help_has_the_options_that_most_people_set(name, most, capsys):
    assert run([*name.split(), "--help"]) == 0
    plain = re.findall(r"^  (?:-\w, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE)
    assert run([*name.split(), "--help-all"]) == 0
    every = re.findall(r"^  (?:-\w, )?(--[\w-]+)", capsys.readouterr().out, re.MULTILINE)
    assert set(plain) < set(every) and len(plain) <= most
    options = [one for one in COMMANDS[f"dcme-w2v {name}"].params if isinstance(one, click.Option)]
    assert {one.opts[-1] for one in options} <= set(every)


@pytest.mark.parametrize("alias", [*ALIASES, "most_similar"])
def test_commands_of_other_programs_run(alias, capsys):
    assert run([alias, "--help"]) == 0
    ours = ALIASES[alias.replace("_", "-")]
    assert capsys.readouterr().out.startswith(f"Usage: dcme-w2v {ours} ")


@pytest.mark.parametrize("name", [*COMMAND_HINTS, "doesnt_match", "vocab_count"])
def test_commands_of_other_programs_get_a_hint(name, capsys):
    assert run([name, "x"]) == 2
    assert COMMAND_HINTS[name.replace("_", "-")] in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ("--workers 3", "use --threads"),
        ("--vector-size 50", "use --dim"),
        ("--learning-rate 1", "use --lr"),
        ("--vector_size 50", "use --dim"),
        ("--sg 1", "use --model skipgram"),
        ("-minn 3", "use --subwords MIN-MAX"),
        ("-minCount 5", "did you mean --min-count?"),
        ("--zzz", "see dcme-w2v train --help"),
    ],
)
def test_options_of_other_programs_get_a_hint(arguments, answer, capsys):
    assert run(["train", "text", "--output", "v", *arguments.split()]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: unknown option {arguments.split()[0]}; ")
    assert answer in err


def test_hints_name_existing_options(capsys):
    flags = {flag for _, one in COMMANDS.items() for param in one.params for flag in param.opts}
    hinted = {hint.split(" ")[0] for hint in OPTION_HINTS.values()} - {"CORPUS,"}
    assert hinted <= flags
    assert run(["classify", "train", "text", "--output", "m", "-minn", "3"]) == 2
    assert "character n-grams are not supported" in capsys.readouterr().err


def test_word2phrase_command_lines_work(tmp_path):
    text, joined = tmp_path / "text", tmp_path / "joined"
    text.write_text("new york is big\nin new york it rains\n" * 20)
    line = f"-train {text} -output {joined} -threshold 0.5 -min-count 2 -debug 0".split()
    assert run(["phrases", *line]) == 0
    assert "new_york" in joined.read_text()


def test_every_command_has_a_manual_page(tmp_path, monkeypatch):
    script = runpy.run_path(str(ROOT / "scripts" / "make_man.py"))
    monkeypatch.setattr(sys, "argv", ["make_man.py", str(tmp_path / "man")])
    script["main"]()
    for name, command in COMMANDS.items():
        page = (tmp_path / "man" / f"{name.replace(' ', '-')}.1").read_text().replace("\\-", "-")
        assert page.startswith('.TH "') and f".B {name}\n" in page
        for param in command.params:
            assert not isinstance(param, click.Option) or param.opts[0] in page, param.opts
        assert "\b" not in page and "\\e" not in page
