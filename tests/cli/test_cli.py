"""The program as a whole: exit codes, one-line errors, word2vec.c's command lines."""

import re
from pathlib import Path

import click
import pytest
from helpers import ALL_COMMANDS

from dcme_w2v import __version__
from dcme_w2v.cli import machine as doctor
from dcme_w2v.cli.main import program
from dcme_w2v.cli.options import given_options
from dcme_w2v.errors import ResourceError


@pytest.mark.parametrize("name", ALL_COMMANDS)
def test_every_command_has_help_and_suggests_the_nearest_flag(name, cli):
    line = name.removeprefix("dcme-w2v")
    assert cli(f"{line} --help").startswith(f"Usage: {name}")
    assert ALL_COMMANDS[name].help and cli.err == ""
    cli(f"{line} --hlep", code=2)
    assert cli.err == "error: unknown option --hlep; did you mean --help?\n"


@pytest.mark.parametrize(
    "given, meant",
    [
        ("-train c -output v -size 50", "c --output v --dim 50 --preset word2vec"),
        ("-train c -output v --preset likelihood", "c --output v --preset likelihood"),
        ("c -window 3 -sample 0 -iter 2 -alpha .1", "c --window 3 --sample 0 --epochs 2 --lr .1"),
        ("c -cbow 0 -binary 1 -debug 0", "c --model skipgram --format binary --quiet"),
        ("c -cbow 1 -binary 0 -debug 2", "c --model cbow --format text"),
        ("c -hs 1 -negative 0", "c --objective hs"),
        ("c -hs 0 -negative 5", "c --negative 5"),
        ("c -classes 9 -binary 1", "c --classes 9"),
        ("c --min_count 1 -threads 2 -o v", "c --min-count 1 --threads 2 -o v"),
        ("c -save-vocab a -read-vocab b", "c --save-vocab a --read-vocab b"),
        ("c --unk --dim 3 -- -d", "c --unk <unk> --dim 3 -- -d"),
    ],
)
def test_other_spellings_mean_our_options(given, meant):
    command = ALL_COMMANDS["dcme-w2v train"]

    def parsed(line):
        settings = program.context_settings
        ctx = command.make_context("train", line.split(), **settings)
        return ctx.params, {*given_options(ctx)} - {"corpus"}

    assert parsed(given) == parsed(meant)


def test_the_demo_prints_neighbors_of_words_of_a_text(here, cli):
    (here / "c.txt").write_text("bitter coffee strong morning evening\n" * 99)
    out = cli("demo c.txt")
    assert len(re.findall(r"^ +\w+: (\w+ -?[01]\.\d\d(, |\n)){3,5}", out, re.MULTILINE)) == 5
    assert [path.name for path in here.iterdir()] == ["c.txt"]


def test_doctor_prints_what_a_report_needs(cli, monkeypatch):
    assert __version__ in cli("--version")
    monkeypatch.setenv("DCME_W2V_KERNELS", "scalar")
    monkeypatch.setitem(doctor.OPTIONAL, "no_such_package", "nothing")
    lines = cli("doctor").splitlines()
    assert lines[0] == f"dcme-w2v: {__version__}" and "chosen kernels: scalar" in lines
    assert lines[-1].startswith(
        "no_such_package: not installed: pip install no_such_package (nothing)"
    )
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    extras = re.search(r"^zst = .*?(?=^bench)", project, re.MULTILINE | re.DOTALL)[0]
    assert set(re.findall(r'"([\w-]+)>', extras)) <= set(doctor.OPTIONAL)
    assert cli.json("doctor")["packages"]["no_such_package"] is None


@pytest.mark.parametrize(
    "error, code, line",
    [
        (ResourceError("disk full"), 1, "error: disk full\n"),
        (FileNotFoundError(2, "No such file or directory", "x.txt"), 1,
         "error: x.txt: there is no such file or folder; check the name and the order of the "
         "arguments\n"),
        (IsADirectoryError(21, "Is a directory", "d"), 1, "error: d: is a folder; give a file\n"),
        (MemoryError(), 1, "error: out of memory; lower --dim or --features, or give less text\n"),
        (RuntimeError("can't start new thread"), 1,
         "error: can't start new thread; lower --threads, or raise the limits of memory and "
         "threads (ulimit)\n"),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (ValueError("odd\nthing"), 1,
         "error: ValueError: odd thing; a bug, please report what --debug prints\n"),
    ],
)  # fmt: skip
def test_an_error_is_one_line_and_a_traceback_only_with_debug(cli, monkeypatch, error, code, line):
    @click.command()
    def check():
        raise error

    monkeypatch.setattr(program, "get_command", lambda context, name: check)
    cli("check", code=code)
    assert cli.err.lstrip("\n") == line
    cli("--debug check", code=code)
    assert cli.err.lstrip("\n").startswith("Traceback") and cli.err.endswith(line)


REFUSED = [
    ("train c.txt --objective hs --vectors sum", "is not supported with --objective hs"),
    ("train c.txt --objective hs --holdout 0.1", "is not supported with --objective hs"),
    ("train c.txt --objective hs --output-tables t", "is not supported with --objective hs"),
    ("train c.txt --subwords 3-6 --objective nce", "not supported with --objective nce"),
    ("train c.txt --subwords 6-3", "from 1 to 99 characters"),
    ("train c.txt --subwords 3-6 --vectors sum", "is not supported with --vectors sum"),
    ("train c.txt --word-order --cluster local:0", "--word-order"),
    ("train c.txt --word-order --model skipgram", "--word-order"),
    ("train c.txt --word-order --objective hs", "--word-order"),
    ("classify train d.txt --quiet --loss hinge --solver lbfgs", "is not for --solver lbfgs"),
    ("classify train d.txt --quiet --loss hinge --objective nce", "is not for --objective nce"),
    ("classify train d.txt --solver lbfgs --checkpoint x", "is not supported with --solver lbfgs"),
    ("classify train d.txt --tune --checkpoint x", "is not supported with --checkpoint"),
    ("classify train d.txt --tune --cluster local:2", "is not supported with --cluster"),
    ("classify train d.txt --objective tree --tune", "is not supported with trees of labels"),
    ("classify train d.txt --cluster local:x", "local:N"),
    ("classify train d.txt --shards 2", "--cluster"),
    ("classify train d.txt --cluster local:0 --distribute gradient", "--solver"),
    ("classify train d.txt --cluster local:0 --checkpoint x", "--checkpoint"),
    ("train c.txt --cluster local:0 --objective dcme", "dcme: is not supported with --cluster"),
    ("train c.txt --cluster local:0 --objective hs", "hs: is not supported with --cluster"),
    ("train c.txt --cluster local:0 --rounds 3", "--rounds 3: must be a multiple of --epochs"),
    ("train c.txt --cluster local:0 --holdout 0.1", "is not supported with --cluster"),
    ("train c.txt --init-context i.safetensors", "requires --init"),
    ("latent fit d.txt --choose 2,500 --holdout 0.2 --quiet", "give fewer"),
    ("classify train d.txt --tune 0", "--tune 0.0: must be more than 0"),
    ("scdv fit d.txt --vectors v.txt --tolerance inf", "a finite number"),
    ("plot i.safetensors --labels c.txt", "is not an option of word vectors"),
    ("plot r.npz --labels c.txt", "has more lines than 20 rows"),
    ("fuse statistics m d.txt", "is a model of kind"),
    ("transform k d.txt", "is a model of kind"),
]


MISTAKES = [
    ("neighbors king v.txt", "king: there is no such file or folder; check the name"),
    ("neighbors http://a/v.bin king", "only text is read from addresses"),
    ("neighbors v.txt king -k 0", "-k: 0 is not in the range"),
    ("neighbors k king", "k: is of kind 'classifier'; give a file of word vectors"),
    ("vocab --merge c.txt --output x", "is not a word, a space and a count; give what vocab"),
    ("classify train d.txt --output x --holdout 0.999", "leaves 0 of"),
    ("encode v.txt", "no TEXTS is given; see dcme-w2v encode --help"),
    ("encode v.txt c.txt", "no --output is given; see dcme-w2v encode --help"),
    ("train c.txt --output s3://a/b.bin", "s3://a/b.bin: is an address; write a file"),
    ("classify train d.txt --output ~/m", "write $HOME for ~"),
    ("train c.txt --output . --format binary", "is a folder; give a file"),
    ("train c.txt --output o.npy", "name .safetensors; convert writes .npy"),
    ("eval analogies v.txt d.txt", "d.txt: has no questions; give lines of four words"),
    ("eval similarity v.txt c.txt", "c.txt: has no pairs; give lines of"),
]


@pytest.mark.parametrize("line, message", MISTAKES)
def test_a_natural_mistake_is_answered(line, message, work, cli):
    assert message in cli.error(line)


@pytest.mark.parametrize(
    "line, message",
    [
        ("neighbors v.txt", "the words are empty"),
        ("info", "FILE: is empty; name a file"),
        ("classify test m d --labels", "--labels: is empty"),
        ("eval likelihood m c --read-vocab", "--read-vocab: is empty"),
    ],
)
def test_an_empty_variable_of_the_shell_is_no_word_and_no_file(line, message, work, cli):
    assert message in cli.error(line, "")


@pytest.mark.parametrize("line, message", REFUSED)
def test_what_does_not_go_together_is_one_line(line, message, made, here, cli, monkeypatch):
    """Options that exclude each other, and files of another kind."""
    monkeypatch.chdir(made)
    kind = "png" if "plot" in line else "bin" if line.startswith("train") else "npz"
    output = here / f"new.{kind}"
    assert message in cli.error(f"{line} --output {output}")
    assert not list(here.iterdir())


@pytest.mark.parametrize(
    "given, message",
    [
        ("train -cbow 0 --model cbow", "-cbow 0 and --model cbow disagree"),
        ("train -hs 1 --objective ns", "-hs 1 and --objective ns disagree"),
        ("train -cbow 2", "-cbow 2: must be 0 or 1"),
        ("train -cbow", "requires an argument"),
        ("train -sizee 3", "unknown option -sizee; see dcme-w2v train --help"),
        ("train --output v", "no corpus; give files or folders, or - for standard input"),
        ("train text", "no --output; give the file for the vectors, or --dry-run"),
        ("train text -output v -binary 1 --format text",
         "-binary 1 and --format text disagree; give one"),
        ("train text --output v --save-vocab v", "--save-vocab v: is the same file"),
        ("train text --output v -window 0", "--window 0: must be at least 1"),
        ("train text --output", "requires an argument"),
        ("demo none", "none: there is no such file or folder"),
        ("train text -save-vocab v", "or --dry-run; dcme-w2v vocab counts alone"),
        ("trian", "unknown command trian; did you mean train?"),
        ("print-sentence-vectors m", "use encode"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_writes_nothing(given, message, here, cli):
    assert message in cli.error(given)
    assert not list(here.iterdir())
