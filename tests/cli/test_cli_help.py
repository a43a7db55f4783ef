"""Help in groups with examples, hints for names of other programs, completion, standard input."""

import re
import runpy
import shlex
import sys

import pytest
from documentation import COMMANDS, ROOT, parse

from dcme_w2v.hints import _COMMANDS, _OPTIONS, hints


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example_that_parses(name, cli):
    example = COMMANDS[name].example
    line = f"{name.removeprefix('dcme-w2v ')} --help"
    assert cli(line).rstrip().endswith(example.splitlines()[-1])
    for part in example.replace("\n", " | ").split(" | "):
        if part.startswith("dcme-w2v "):
            parse(["dcme-w2v", *shlex.split(part)[1:]])


def test_help_texts_have_at_most_fifteen_words():
    """Besides their defaults in parentheses."""
    options = [one for command in COMMANDS.values() for one in command.params]
    texts = {
        re.sub(r"\([^(]*default:[^)]*\)", "", getattr(one, "help", None) or "") for one in options
    }
    assert [one for one in texts if len(one.split()) > 15] == []


@pytest.mark.parametrize(
    "name, most, named",  # named by pages and messages
    [
        ("train", 32, {"--output-tables", "--max-vocab", "--output-vectors", "--log-json"}),
        ("classify train", 30, {"--loss", "--class-weight", "--subwords", "--log-json"}),
        ("latent fit", 16, set()),
        ("fuse fit", 13, set()),
    ],
)
def test_plain_help_has_the_options_that_most_people_set(name, most, named, cli):
    plain, every = (
        re.findall(r"^  (?:-\w, )?(--[\w-]+)", cli(f"{name} {flag}"), re.MULTILINE)
        for flag in ("--help", "--help-all")
    )
    assert named <= set(plain) < set(every) and len(plain) <= most
    params = COMMANDS[f"dcme-w2v {name}"].params
    assert {one.opts[-1] for one in params if not getattr(one, "hidden", True)} <= set(every)


@pytest.mark.parametrize(
    "line, answer",
    [
        ("glove", "train"),
        ("doesnt_match", "neighbors"),
        ("similarity", "eval similarity"),
        ("skipgram", "train --model skipgram"),
        ("help", "--help"),
        ("classify fit", "train"),
    ],
)
def test_commands_of_other_programs_get_a_hint(line, answer, cli):
    name = line.split()[-1]
    assert f"unknown command {name}; use {answer}" in cli.error(f"{line} x")


def test_hints_name_existing_commands():
    for instead in hints(_COMMANDS).values():
        for one in instead.split("|"):
            name = one.partition(" --")[0].partition(",")[0]
            names = {f"dcme-w2v {name}", f"dcme-w2v classify {name}", f"dcme-w2v latent {name}"}
            assert one.startswith("--") or names & set(COMMANDS), one


@pytest.mark.parametrize(
    "arguments, answer",
    [
        ("--workers 3", "use --threads"),
        ("--vector_size 50", "use --dim"),
        ("--sg 1", "use --model skipgram"),
        ("--lower", "use --tokenize words"),
        ("-minn 3", "use --subwords MIN-MAX"),
        ("-minCount 5", "did you mean --min-count?"),
        ("-threats=4", "did you mean --threads?"),
        ("--zzz", "see dcme-w2v train --help"),
    ],
)
def test_options_of_other_programs_get_a_hint(arguments, answer, cli):
    error = cli.error(f"train text --output v {arguments}")
    name = re.split("[ =]", arguments)[0]
    assert error.startswith(f"error: unknown option {name.replace('_', '-')}; ") and answer in error


def test_hints_name_existing_options():
    flags = {flag for _, one in COMMANDS.items() for param in one.params for flag in param.opts}
    hinted = set(
        re.findall(r"(?:^|\|)(--?[\w-]+)", "|".join(hints(_OPTIONS).values()), re.MULTILINE)
    )
    assert hinted <= flags | {"--progress", "--header"}


def test_word2phrase_command_lines_work(here, cli):
    (here / "text").write_text("new york is big\nin new york it rains\n" * 20)
    cli("phrases -train text -output joined -threshold 0.5 -min-count 2 -debug 0")
    assert "new_york" in (here / "joined").read_text()


def test_every_command_has_a_manual_page(tmp_path, monkeypatch):
    script = runpy.run_path(str(ROOT / "scripts" / "make_man.py"))
    monkeypatch.setattr(sys, "argv", ["make_man.py", str(tmp_path / "man")])
    script["main"]()
    for name, command in COMMANDS.items():
        page = (tmp_path / "man" / f"{name.replace(' ', '-')}.1").read_text().replace(r"\-", "-")
        assert page.startswith('.TH "') and f".B {name}\n" in page
        for param in command.params:
            assert getattr(param, "hidden", True) or param.opts[0] in page, param.opts
        assert "\b" not in page and r"\e" not in page
