"""Translates a command's arguments before click parses them.

Other spellings become the options of this program: the flags of word2vec.c (``-size 100 -cbow 0``)
and long flags with one dash. An unknown option is an error that names the nearest
one, or the option that replaces an option of another program.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from dcme_w2v.declarations import declaration_of, flag_of, options_in
from dcme_w2v.errors import UsageError
from dcme_w2v.words.habits import table

if TYPE_CHECKING:
    from .command import Command

MIN_SIMILARITY = 0.7  # of suggested names, from 0 to 1

# word2vec.c's switches, by value. -train is the corpus, with word2vec.c's defaults.
SWITCHES = table("""
-cbow=0: --model skipgram
-cbow=1: --model cbow
-binary=0: --format text
-binary=1: --format binary
-hs=0:
-hs=1: --objective hs
-debug=0: --quiet
-debug=1 -debug=2:
""")
SWITCHED = {name.partition("=")[0] for name in SWITCHES}
CORPUS = "-train"

# Options of other programs, in the form of `_plain_name`, and what to use instead.
OPTION_HINTS = table("""
workers thread num-threads: --threads
vector-size embedding-size: --dim
window-size ws: --window
sg: --model skipgram
epoch max-iter: --epochs
neg negative-samples negatives: --negative
ns-exponent: --noise-power
min-alpha: --min-lr
step-size eta learning-rate: --lr
subsample t: --sample
loss: --objective
max-final-vocab: --max-vocab
input: CORPUS, without a flag
topn: -k
word-ngrams: --ngrams
minn maxn: --subwords MIN-MAX
bucket: --hashing
pretrained-vectors: --init
verbose: --quiet
autotune-validation autotune-duration: --tune
save-output: --output-context
merge-context-vectors sum-context ensemble: --vectors sum
""")


@dataclass(frozen=True)
class Given:
    """An option as given: its spelling, the flag that it means, and its value, if it has one."""

    spelled: str
    flag: str
    value: str | None = None

    def written(self) -> list[str]:
        """Return the arguments that click parses."""
        if self.value is None:
            return [self.flag]
        return [f"{self.flag}={self.value}"] if self.flag[:2] == "--" else [self.flag, self.value]


def translated(command: Command, ctx: click.Context, args: list[str]) -> list[str]:
    """Return the arguments of a command in the spelling that click parses.

    Raises
    ------
    UsageError
        An option is unknown, or two spellings of one option disagree.
    """
    found, rest = _read(command, ctx, args)
    if command.word2vec:
        found = _without_switches(found, {param.name for param in command.params})
    written = [one.written() if isinstance(one, Given) else [one] for one in found]
    return [part for parts in written for part in parts] + rest


def check_flags(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    """Raise if an option of a group, before the name of the command, is unknown."""
    flags = _flags(command, ctx)
    for argument in args:
        if argument == "--" or argument[:1] != "-":
            return
        if (flag := argument.partition("=")[0]) not in flags:
            raise UsageError(f"unknown option {flag}; {_option_hint(flag, flags, ctx)}")


def _read(
    command: Command, ctx: click.Context, args: list[str]
) -> tuple[list[Given | str], list[str]]:
    """Return options and words in their order, and the words from ``--`` on."""
    flags, aliases = _flags(command, ctx), _aliases(command)
    found: list[Given | str] = []
    left = list(args)
    while left:
        argument = left.pop(0)
        if argument == "--":
            return found, [argument, *left]
        if argument[:1] != "-" or argument == "-":
            found.append(argument)
            continue
        name, equals, value = argument.partition("=")
        flag = name if name in flags else aliases.get(name, name)
        glued = re.fullmatch("(-[a-z])([0-9]+)", name)  # -k10
        takes_value = True
        if flag in flags:
            option = flags[flag]
            following = left[0] if left else ""
            is_bare = getattr(option, "is_bare", False) and following[:1] == "-" != following
            takes_value = not (option.is_flag or option.count or is_bare)  # --tune without a value
        elif glued is not None and glued[1] in flags:
            flag, equals, value = glued[1], "=", glued[2]
        elif not (command.word2vec and flag in {*SWITCHED, CORPUS}):
            raise UsageError(f"unknown option {name}; {_option_hint(name, flags, ctx)}")
        if not equals and takes_value and left:
            equals, value = "=", left.pop(0)
        found.append(Given(name, flag, value if equals else None))
    return found, []


def _without_switches(found: list[Given | str], names: set[str | None]) -> list[Given | str]:
    """Replace the switches of word2vec.c by options; ``-train FILE`` becomes an argument."""
    given = {one.flag: one for one in found if isinstance(one, Given)}
    is_tree = "-hs" in given and given["-hs"].value == "1"
    made: list[Given | str] = []
    for one in found:
        if isinstance(one, str) or one.flag not in (*SWITCHED, CORPUS):
            is_unused = isinstance(one, Given) and one.flag == "--negative" and one.value == "0"
            made += [] if is_unused and is_tree else [one]
        elif one.flag == CORPUS:
            made.append(one.value or "")
        elif one.flag == "-binary" and given.get("--classes", one).value not in (one.value, "0"):
            continue  # classes are text, in word2vec.c, too
        else:
            made += _switched(one, given)
    if CORPUS in given and "preset" in names and "--preset" not in given:
        made.append(Given(CORPUS, "--preset", "word2vec"))
    return made


def _switched(one: Given, given: Mapping[str, Given]) -> Iterator[Given]:
    """Yield the option that a switch means, unless another option contradicts it."""
    said = f"{one.flag} {one.value or ''}"
    if (meaning := SWITCHES.get(f"{one.flag}={one.value}")) is None:
        values = [name.partition("=")[2] for name in SWITCHES if name.startswith(f"{one.flag}=")]
        raise UsageError(f"{said}: must be {' or '.join(values)}")
    flag, _, value = meaning.partition(" ")
    if flag:
        other = given.get(flag)
        if other is not None and other.value != (value or None):
            raise UsageError(f"{said} and {other.spelled} {other.value} disagree; give one")
        yield Given(one.flag, flag, value or None)
    negative = given.get("--negative")
    if one.flag == "-hs" and one.value == "1" and negative and negative.value != "0":
        raise UsageError(
            f"{said} and {negative.spelled} {negative.value}: are not trained together; "
            "give -negative 0"
        )


def _flags(command: click.Command, ctx: click.Context) -> dict[str, click.Option]:
    options = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
    return {flag: one for one in options for flag in (*one.opts, *one.secondary_opts)}


def _aliases(command: Command) -> dict[str, str]:
    """Return other spellings of a command's flags: word2vec.c's, one dash for two."""
    found: dict[str, str] = {}
    for param in command.params:
        for flag in param.opts:
            if flag[:2] == "--":
                found[flag[1:]] = flag
    for cls in command.declared:
        for item in options_in(cls):
            if (name := declaration_of(item).word2vec) is not None:
                found |= {f"-{name}": flag_of(item.name), f"--{name}": flag_of(item.name)}
    return found


# ---- hints ----


def _option_hint(flag: str, known: Iterable[str], ctx: click.Context) -> str:
    """Return what to use instead of an option of another program, or the nearest name."""
    name = plain_name(flag)
    instead = OPTION_HINTS.get(name, "")
    if instead.split(" ")[0] in known or instead.startswith("CORPUS"):
        return f"use {instead}"
    return nearest(flag, known, ctx)


def nearest(name: str, known: Iterable[str], ctx: click.Context) -> str:
    """Return a hint with the nearest name."""
    spelled = {plain_name(one): one for one in known}
    near = difflib.get_close_matches(plain_name(name), spelled, 1, MIN_SIMILARITY)
    return f"did you mean {spelled[near[0]]}?" if near else f"see {ctx.command_path} --help"


def plain_name(flag: str) -> str:
    """Return ``min-count`` for ``--min-count``, ``-minCount`` and ``--min_count``."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", flag.lstrip("-")).replace("_", "-").lower()
