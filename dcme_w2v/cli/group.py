"""Base class of command groups: errors with a hint for unknown options and commands."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import click

from dcme_w2v.cli.command import Command
from dcme_w2v.errors import UsageError

NEAR = 0.7  # minimum similarity of suggested names, from 0 to 1

# Commands of other programs: run as ours, or answered with a hint.
ALIASES = {
    "nn": "neighbors",
    "most-similar": "neighbors",
    "distance": "neighbors",
    "word-analogy": "analogy",
    "word2phrase": "phrases",
}
COMMAND_HINTS = {
    "skipgram": "dcme-w2v train --model skipgram",
    "cbow": "dcme-w2v train --model cbow",
    "word2vec": "dcme-w2v train",
    "glove": "dcme-w2v train",
    "vocab-count": "dcme-w2v vocab",
    "analogies": "dcme-w2v analogy VECTORS A B C, or dcme-w2v eval analogies VECTORS QUESTIONS",
    "compute-accuracy": "dcme-w2v eval analogies VECTORS QUESTIONS",
    "doesnt-match": "dcme-w2v odd-one-out VECTORS WORD...",
    "supervised": "dcme-w2v classify train",
    "train-supervised": "dcme-w2v classify train",
    "predict": "dcme-w2v classify predict",
    "predict-prob": "dcme-w2v classify predict",
    "test": "dcme-w2v classify test",
}

# Options of other programs, in the form of `_plain_name`, and what to use instead.
OPTION_HINTS = {
    "workers": "--threads",
    "thread": "--threads",
    "vector-size": "--dim",
    "window-size": "--window",
    "ws": "--window",
    "sg": "--model skipgram",
    "epoch": "--epochs",
    "max-iter": "--epochs",
    "neg": "--negative",
    "ns-exponent": "--noise-power",
    "min-alpha": "--min-lr",
    "step-size": "--lr",
    "eta": "--lr",
    "learning-rate": "--lr",
    "embedding-size": "--dim",
    "num-threads": "--threads",
    "negative-samples": "--negative",
    "negatives": "--negative",
    "subsample": "--sample",
    "t": "--sample",
    "loss": "--objective",
    "max-final-vocab": "--max-vocab",
    "input": "CORPUS, without a flag",
    "topn": "-k",
    "word-ngrams": "--ngrams",
    "minn": "--subwords MIN-MAX",
    "maxn": "--subwords MIN-MAX",
    "bucket": "--hashing",
    "pretrained-vectors": "--init",
    "save-output": "--output-context",
    "merge-context-vectors": "--vectors sum",
    "ensemble": "--vectors sum",
}
NOT_SUPPORTED = {
    "minn": "character n-grams are not supported",
    "maxn": "character n-grams are not supported",
}


class Group(click.Group):
    """A group that suggests a name for an unknown command or option.

    Flags are checked before click parses them, which would read ``-hx`` as ``-h -x``.
    """

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with the complete first sentence of their help."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(1000)) for name, one in found if one is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; without arguments, show the help and exit with the code of a usage error."""
        if ctx.resilient_parsing:  # shell completion: not an error yet
            return super().parse_args(ctx, args)
        if not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        _check_flags(self, ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument and check its flags."""
        known = self.list_commands(ctx)
        plain = _plain_name(args[0])  # doesnt_match is doesnt-match
        if args[0] not in known and ALIASES.get(plain) in known:
            args = [ALIASES[plain], *args[1:]]
        if args[0] not in known and not ctx.resilient_parsing:
            instead = COMMAND_HINTS.get(plain)
            hint = f"use {instead}" if instead else _hint(args[0], known, ctx)
            raise UsageError(f"unknown command {args[0]}; {hint}")
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, Command):
            rest = command.arranged(rest)
        if command is not None and not ctx.resilient_parsing:
            _check_flags(command, click.Context(command, ctx, name), rest)
        return name, command, rest


def _check_flags(command: click.Command, ctx: click.Context, args: list[str]) -> None:
    params = [param for param in command.get_params(ctx) if isinstance(param, click.Option)]
    takes_value = {
        flag: not (param.is_flag or param.count)
        for param in params
        for flag in (*param.opts, *param.secondary_opts)
    }
    rest = iter(args)
    for argument in rest:
        if argument == "--" or (argument[:1] != "-" and not command.allow_interspersed_args):
            return
        if argument[:1] != "-" or argument == "-":
            continue
        flag, equals, _ = argument.partition("=")
        if flag in takes_value:
            if takes_value[flag] and not equals:
                next(rest, None)
        elif argument[:2] == "--" or not takes_value.get(argument[:2]):  # -k10 is -k 10
            raise UsageError(f"unknown option {flag}; {_option_hint(flag, takes_value, ctx)}")


def _option_hint(flag: str, known: Iterable[str], ctx: click.Context) -> str:
    """Return what to use instead of an option of another program, or the nearest name."""
    name = _plain_name(flag)
    instead = OPTION_HINTS.get(name, "")
    if instead.split(" ")[0] in known or instead.startswith("CORPUS"):
        return f"use {instead}"
    return NOT_SUPPORTED.get(name) or _hint(flag, known, ctx)


def _hint(name: str, known: Iterable[str], ctx: click.Context) -> str:
    """Return a hint with the nearest name; names with as many dashes are preferred."""
    dashes = len(name) - len(name.lstrip("-"))
    ordered = sorted(known, key=lambda flag: flag.startswith("-" * dashes + "-"))
    spelled = {_plain_name(flag): flag for flag in reversed(ordered)}
    near = difflib.get_close_matches(_plain_name(name), spelled, 1, NEAR)
    return f"did you mean {spelled[near[0]]}?" if near else f"see {ctx.command_path} --help"


def _plain_name(flag: str) -> str:
    """Return ``min-count`` for ``--min-count``, ``-minCount`` and ``--min_count``."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", flag.lstrip("-")).replace("_", "-").lower()
