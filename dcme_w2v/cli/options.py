"""Turns the option dataclasses into flags of a click command, and flags back into objects.

Every group is of the class `Group` below, so that an unknown flag or command is one line that
names the nearest. Bounds, types and choices are checked in one place only: by the
dataclass (dcme_w2v/options.py) when `collect` makes it.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from dcme_w2v.errors import UsageError
from dcme_w2v.options import declaration_of, flag_of, types_of

T = TypeVar("T")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Group(click.Group):
    """A group that names the nearest for an unknown command, or flag of itself or a command.

    It looks at the flags before click does, which would read ``-hx`` as ``-h -x``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, or where there is nothing to parse show the help, which is wrong usage."""
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


def options_of(*classes: type) -> Callable[[Decorated], Decorated]:
    """Add every option of the dataclasses to a click command.

    The values reach the command as keywords; `collect` makes objects of them.

    Parameters
    ----------
    *classes : type
        Dataclasses whose fields were declared with `dcme_w2v.options.option`.
    """

    def decorate(function: Decorated) -> Decorated:
        items = [(cls, item) for cls in classes for item in dataclasses.fields(cls)]
        for cls, item in reversed(items):
            function = _click_option(cls, item)(function)
        return function

    return decorate


def collect(cls: type[T], values: dict[str, Any]) -> T:
    """Take a dataclass's fields out of a command's keywords and make the object.

    Raises
    ------
    UsageError
        A value is of the wrong type, out of bounds or not one of the choices.
    """
    names = [item.name for item in dataclasses.fields(cls)]  # type: ignore[arg-type]
    return cls(**{name: values.pop(name) for name in names})


def spellings(item: dataclasses.Field[Any]) -> list[str]:
    """Return an option's flags: ``--dim``, and word2vec.c's as ``--size`` and ``-size``."""
    alias = declaration_of(item).word2vec
    flags = [flag_of(item.name)] + ([f"--{alias}", f"-{alias}"] if alias else [])
    return list(dict.fromkeys(flags))


def value_name(cls: type, item: dataclasses.Field[Any]) -> str:
    """Return what ``--help`` calls an option's value: its choices, or N, X or TEXT."""
    declared = declaration_of(item)
    if declared.choices:
        return "|".join(declared.choices)
    kind, _ = types_of(cls)[item.name]
    return declared.metavar or {int: "N", float: "X", str: "TEXT", bool: ""}[kind]


def _reader(kind: type) -> Callable[[Any], Any]:
    """Return what reads a value as its type where that goes; if not, the dataclass complains."""

    def read(value: Any) -> Any:
        try:
            return kind(value)
        except ValueError:
            return value

    return read


def _click_option(cls: type, item: dataclasses.Field[Any]) -> Callable[[Decorated], Decorated]:
    kind, _ = types_of(cls)[item.name]
    shape: dict[str, Any] = {"is_flag": True}
    if kind is not bool:
        shape = {"type": _reader(kind), "metavar": value_name(cls, item)}
    return click.option(
        *spellings(item),
        item.name,
        default=item.default,
        show_default=item.default is not None,
        help=declaration_of(item).help,
        **shape,
    )


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
