"""The class of every group of commands: an unknown flag or command is one line with the nearest."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import click

from dcme_w2v.errors import UsageError


class Group(click.Group):
    """A group that names the nearest for an unknown command, or flag of itself or a command.

    It looks at the flags before click does, which would read ``-hx`` as ``-h -x``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, or where there is nothing to parse show the help, which is wrong usage."""
        if ctx.resilient_parsing:  # by a shell that completes: nothing is wrong yet
            return super().parse_args(ctx, args)
        if not args:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        _check_flags(self, ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names, and check its flags."""
        known = self.list_commands(ctx)
        if args[0] not in known and not ctx.resilient_parsing:
            raise UsageError(f"unknown command {args[0]}; {_hint(args[0], known, ctx)}")
        name, command, rest = super().resolve_command(ctx, args)
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
            raise UsageError(f"unknown option {flag}; {_hint(flag, takes_value, ctx)}")


def _hint(name: str, known: Iterable[str], ctx: click.Context) -> str:
    """Say which name is nearest, if any is near; the same number of dashes is nearer."""
    dashes = len(name) - len(name.lstrip("-"))
    ordered = sorted(known, key=lambda flag: flag.startswith("-" * dashes + "-"))
    spelled = {_plain_name(flag): flag for flag in reversed(ordered)}
    near = difflib.get_close_matches(_plain_name(name), spelled, 1, 0.5)
    return f"did you mean {spelled[near[0]]}?" if near else f"see {ctx.command_path} --help"


def _plain_name(flag: str) -> str:
    """Return ``min-count`` for ``--min-count``, ``-minCount`` and ``--min_count``."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "-", flag.lstrip("-")).replace("_", "-").lower()
