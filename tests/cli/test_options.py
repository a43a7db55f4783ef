"""Options become flags and flags become options; defaults; an error is one line with a remedy."""

import copy
import pickle
from dataclasses import dataclass
from fractions import Fraction

import click
import numpy as np
import pytest
from helpers import ALL_COMMANDS

from dcme_w2v import errors
from dcme_w2v.cli.command import Group
from dcme_w2v.cli.options import Value, collect, options_of
from dcme_w2v.declarations import (
    Checked,
    check_conflicts,
    flag_of,
    option,
    options_in,
)
from dcme_w2v.errors import UsageError, in_python_terms, in_shell_terms
from dcme_w2v.options import CheckpointOptions, VocabularyOptions
from dcme_w2v.words.options import OutputOptions, PresetOptions, TrainOptions, resolved
from dcme_w2v.words.train import train

CLASSES = (PresetOptions, VocabularyOptions, TrainOptions, CheckpointOptions, OutputOptions)

pytestmark = pytest.mark.filterwarnings("ignore::dcme_w2v.errors.DcmeWarning")


def parse(arguments, *classes):
    """Run a command with the options of some classes, and return the objects it creates."""

    @click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"]})
    def program():
        pass

    @program.command(warns=False)
    @click.argument("rest", nargs=-1)
    @click.option("-k", type=int, default=3)
    @options_of(*classes)
    def make(rest, k, **values):
        objects = [collect(cls, values) for cls in classes]
        assert not values
        return [rest, k, *objects]

    return program.main(["make", *arguments], prog_name="dcme-w2v", standalone_mode=False)


def train_options(*arguments):
    return parse(list(arguments), TrainOptions)[2]


def test_defaults_come_from_the_dataclasses():
    assert parse([], *CLASSES)[2:] == [cls() for cls in CLASSES]


@pytest.mark.parametrize("item", [item for cls in CLASSES for item in options_in(cls)],
                         ids=lambda item: item.name)  # fmt: skip
def test_every_spelling_of_every_option_sets_its_field(item):
    kind, flags = item.type, [flag_of(item.name), *([f"-{item.word2vec}"] if item.word2vec else [])]
    if kind is bool:
        found = parse([flag_of(item.name)], *CLASSES)[2:]
        assert True in [getattr(made, item.name, None) for made in found]
        return
    value = {int: 7, float: 0.25, str: item.choices[-1:]}[kind]
    value = (value[0] if value else "3") if kind is str else value
    for flag in flags:
        found = [getattr(made, item.name, None) for made in parse([flag, str(value)], *CLASSES)[2:]]
        assert value in found
        assert parse([f"{flag}={value}"], *CLASSES) == parse([flag, str(value)], *CLASSES)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--dim", "0"], "dim=0 must be at least 1"),
        (["-size", "x"], "dim='x' must be an integer"),
        (["--sample", "2"], "sample=2.0 must be at most 1"),
        (["--lr", "0"], "lr=0.0 must be more than 0"),
        (["--lr", "nan"], "lr=nan must be a finite number"),
        (["--model", "glove"], "model must be cbow or skipgram, not 'glove'"),
    ],
)
def test_the_dataclass_validates_values(arguments, message):
    with pytest.raises(UsageError) as caught:
        train_options(*arguments)
    assert str(caught.value) == message
    assert in_shell_terms(caught.value.message) == f"--{message.replace('=', ' ')}"


@pytest.mark.parametrize(
    "value",
    [10**400, -(10**400), 2**64, Fraction(10**400), pytest.param(10**5000, id="5000 digits")],
)
@pytest.mark.parametrize("cls", CLASSES)
def test_numbers_beyond_64_bits_are_one_line(cls, value):
    for item in options_in(cls):
        if item.type in (int, float):
            with pytest.raises(UsageError, match="64 bits"):
                cls(**{item.name: value})


def test_numpy_numbers_become_python_numbers():
    options = TrainOptions(dim=np.int16(7), lr=np.float32(0.5), sample=0)
    assert repr((options.dim, options.lr, options.sample)) == "(7, 0.5, 0.0)"
    with pytest.raises(UsageError, match="dim=True must be an integer"):
        TrainOptions(dim=True)
    with pytest.raises(UsageError, match="deterministic=1 must be True or False"):
        TrainOptions(deterministic=1)


def test_values_and_words_may_begin_with_a_dash():
    rest, k, options = parse(["-", "--noise-power", "-0.5", "-k12", "--", "-hz"], TrainOptions)
    assert (rest, k, options.noise_power) == (("-", "-hz"), 12, -0.5)


@dataclass(frozen=True)
class MadeUp(Checked):
    group = "Model"
    kind: str = option("a", "the kind", choices=("a", "b"))
    size: int = option(1, "the size", only={"kind": ("a",)}, strict=True)
    half: bool = option(False, "half of it", needs=("size",), strict=True)
    whole: bool = option(False, "all of it", unless=("half",), strict=True)
    more: int | None = option(None, "the rest", advanced=True, only={"size": (2,)})


@pytest.mark.parametrize(
    "values, message",
    [
        ({"kind": "b", "size": 2}, "size=2 is not supported with kind=b; use kind=a"),
        ({"half": True}, "half requires size"),
        ({"size": 2, "half": True, "whole": True}, "whole is not supported with half; omit one"),
        ({"kind": "b"}, None),
        ({"size": 2, "half": True}, None),
        ({"kind": "b", "more": 3}, None),
    ],
)
def test_conflicts_are_declared(values, message):
    if message is None:
        check_conflicts(options_in(MadeUp), values)
        return
    with pytest.raises(UsageError) as caught:
        check_conflicts(options_in(MadeUp), values)
    assert str(caught.value).startswith(message)


def test_advanced_options_are_shown_by_help_all(capsys):
    parse(["--help"], MadeUp)
    plain = capsys.readouterr().out
    assert "--size" in plain and "--help-all" in plain
    assert "--more" not in plain.split()
    parse(["--help-all"], MadeUp)
    assert "--more" in capsys.readouterr().out.split()


# ---- integers of every command ----

# A command with its arguments and required options; every other option is tried after them.
ENDINGS = {"encode": "o.npy", "transform": "o.npz", "plot": "o.png", "explore": "o.html"}


def line_of(name, command):
    """Return a command line with a value for each argument and each required option."""
    words = name.split()[1:]
    for param in command.params:
        if isinstance(param, click.Argument):
            words += [f"{param.name}{i}" for i in range(2 if param.nargs < 0 else param.nargs)]
        elif param.required or param.name == "output":
            value = ENDINGS.get(words[0], "o.bin") if param.name == "output" else "3"
            words += [param.opts[-1], value]
    return words


def counts_in(command):
    """Return the integer options of a command, each with its least value and its largest one."""
    for param in command.params:
        if isinstance(param.type, Value) and param.type.kind is int:
            yield param, param.declared.minimum, param.declared.maximum


@pytest.mark.parametrize("name", [
    name for name, command in ALL_COMMANDS.items() if [*counts_in(command)]
])  # fmt: skip
def test_every_integer_of_every_command_has_bounds(cli, name):
    command = ALL_COMMANDS[name]
    for param, least, most in counts_in(command):
        assert least in (0, 1, 2, 3), param
        beyond = [] if most is None else [str(most + 1)]
        for value in (str(least - 1), "-9", *beyond, "9" * 25, "-" + "9" * 5000, "x", "1.5", ""):
            for flag in {param.opts[0], param.opts[-1]}:
                given = [f"{flag}={value}"] if flag.startswith("--") else [f"{flag}{value or 'y'}"]
                for words in ([flag, value], given):
                    cli(" ".join(line_of(name, command)), *words, code=2)
                    (said,) = cli.err.splitlines()
                    assert said.startswith(f"error: {max(param.opts, key=len)}"), (words, said)
                    assert len(said) < 120 and ("must be" in said or "64 bits" in said), words


# ---- defaults that depend on other options ----


def test_default_sample_depends_on_the_vocabulary_size():
    def sample(words, **given):
        return resolved(TrainOptions(**given), words).sample

    assert sample(10**6) == sample(10**5) == resolved(TrainOptions()).sample == 1e-4
    assert sample(1000) == 0.01 and sample(5) == 1
    assert sample(1000, sample=1e-5) == 1e-5
    assert sample(1000, model="skipgram") == sample(5, objective="dcme") == 1e-3


@pytest.mark.parametrize(
    "given, rate",
    [
        ({}, 5e-4),
        ({"epochs": 20}, 1.25e-4),
        ({"window": 1, "window_mode": "fixed"}, 5e-4 / 3),
        ({"window": 20, "sample": 1e-4}, 5e-4),
        ({"sample": 0}, 1.25e-4),
        ({"sample": 0.002}, 1.25e-4),
        ({"model": "skipgram"}, 5e-4 / 6),
    ],
)
def test_the_default_rate_of_dcme_falls_where_its_steps_add_up(given, rate):
    found = resolved(TrainOptions(objective="dcme", **given), 10**5)
    assert found.lr == pytest.approx(rate, rel=1e-3)
    assert resolved(TrainOptions(objective="dcme", lr=0.1, **given)).lr == 0.1


@pytest.mark.parametrize(
    "flag, given",
    [
        ("model=skipgram", {"model": "skipgram", "window_mode": "fixed"}),
        ("objective=hs", {"objective": "hs", "window_mode": "fixed"}),
        ("window_mode=shrink", {}),
        ("objective=dcme", {"objective": "dcme", "window_mode": "fixed"}),
    ],
)
def test_blocks_are_refused_where_they_are_not_supported(flag, given):
    with pytest.raises(UsageError, match=f"block=16 is not supported with {flag}; "):
        train("c", **given, block=16)
    found = train(["a b"] * 9, **given, block=1, min_count=1, dim=2, threads=1)
    assert found.manifest["options"]["block"] == 1


# ---- errors ----


@pytest.mark.parametrize("name", [name for name in dir(errors) if name.endswith("Error")])
@pytest.mark.parametrize("with_dask", [False, True])
def test_an_error_survives_pickle_and_copy(name, with_dask):
    if with_dask:  # which changes how all errors are pickled
        pytest.importorskip("distributed")
    error = getattr(errors, name)("--min-count=0 must be at least 1")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert str(other) == "min_count=0 must be at least 1"
        assert other.message == "--min-count=0 must be at least 1"


@pytest.mark.parametrize(
    "message, python, shell",
    [
        ("--dim=0 must be at least 1", "dim=0 must be at least 1", "--dim 0 must be at least 1"),
        ("lower --max-vocab or --dim, (--lr=3)", "lower max_vocab or dim, (lr=3)",
         "lower --max-vocab or --dim, (--lr 3)"),
        ("a--b, /x/--c, --d.txt and -k=2", None, None),
        ("use --no-choose", "use choose=False", None),
        ("--read-vocab='a b'", "read_vocab='a b'", "--read-vocab 'a b'"),
    ],
)  # fmt: skip
def test_options_are_named_as_in_python_or_the_shell(message, python, shell):
    assert in_python_terms(message) == (python or message)
    assert in_shell_terms(message) == (shell or message)
