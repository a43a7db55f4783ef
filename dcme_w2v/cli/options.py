"""Convert option dataclasses to click options, and parsed values back to dataclass objects.

Only the dataclass checks bounds, types and choices, in `collect`. Flags that several commands share
are also declared here.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from dcme_w2v.declarations import Declaration, ThreadsOptions, flag_of, options_in
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.paths import READS, WRITES
from dcme_w2v.formats.columns import with_columns
from dcme_w2v.options import ColumnOptions, LogOptions, SeedsOptions, TokenizerOptions

from .streams import print_json

T = TypeVar("T")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class Option(click.Option):
    """A click option that has a heading in the help; only ``--help-all`` shows advanced options.

    `path` is the role of a path, `declared` the declaration if the option is a dataclass field,
    `word2vec` its name in word2vec.c, and `bare` its value if it is given without one.
    """

    def __init__(
        self,
        *arguments: Any,
        group: str = "Other",
        advanced: bool = False,
        declared: Declaration | None = None,
        word2vec: str | None = None,
        path: str | None = None,
        bare: str | None = None,
        **more: Any,
    ) -> None:
        if bare is not None:
            more |= {"is_flag": False, "flag_value": bare, "metavar": f"[{more['metavar']}]"}
        super().__init__(*arguments, **more)
        self.group, self.advanced, self.bare = group, advanced, bare
        self.declared, self.word2vec, self.path = declared, word2vec, path

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Add the option to the parser, including the hidden name that word2vec.c uses."""
        shown = self.opts
        self.opts = [*shown, f"-{self.word2vec}"] if self.word2vec else shown
        super().add_to_parser(parser, ctx)
        self.opts = shown


# Prefix that protects values such as -1 in --tune=-1, which click would parse as an option.
# The prefix is NUL, because program arguments cannot contain NUL.
EXPLICIT = "\0"


# `ParamType` is generic only in later versions of click.
@dataclass(frozen=True)
class Value(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A parameter type that leaves invalid values unchanged, so that the dataclass reports them."""

    name = "value"

    kind: type
    choices: tuple[str, ...] = ()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert a value, such as 2^20, to its type; if this fails, return the value unchanged."""
        if isinstance(value, str):
            value = value.removeprefix(EXPLICIT)
        if self.kind is int and re.fullmatch(r"2\^[0-9]{1,2}", str(value)):
            return 1 << int(str(value)[2:])
        if self.kind is int and re.fullmatch(r"[+-]?[0-9]{20,}", str(value)):
            # a number with thousands of digits would make the error message too long
            return 1 << 64
        try:
            return self.kind(value)
        except ValueError:
            return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete a value to a file name if it is a path, or else to one of the choices."""
        if getattr(param, "path", None):
            return [CompletionItem(incomplete, type="file")]
        return [CompletionItem(one) for one in self.choices if one.startswith(incomplete)]


def flag(
    spelled: str,
    help: str,
    *,
    name: str | None = None,
    low: int | None = None,
    high: int | None = None,
    **more: Any,
) -> Callable[[Decorated], Decorated]:
    """Return a decorator for a click option that is not a dataclass field.

    Parameters
    ----------
    spelled : str
        The flags, separated by commas, then a space and the metavar: ``-o,--output FILE``. Without
        a metavar, the option is a switch.
    help : str
        Help text.
    name : str, optional
        Name of the parameter (default: derived from the flag).
    low, high : int, optional
        Bounds of an integer.
    **more
        Arguments of `Option`.
    """
    flags, _, metavar = spelled.partition(" ")
    names = [*flags.split(","), *([name] if name else [])]
    shape: dict[str, Any] = {"metavar": metavar} if metavar else {"is_flag": True}
    if low is not None:
        shape["type"] = Value(int)
        spelled = max(flags.split(","), key=len)
        shape["declared"] = Declaration(spelled, int, False, None, help, minimum=low, maximum=high)
    return click.option(
        *names, cls=Option, help=help, **{"show_default": "default" in more, **shape, **more}
    )


def decorated_by(decorators: Sequence[Callable[..., Any]]) -> Callable[[Decorated], Decorated]:
    """Combine a list of decorators into one, with the first decorator outermost."""
    return lambda function: functools.reduce(lambda f, one: one(f), reversed(decorators), function)


class Argument(click.Argument):
    """A command argument that can have a path role, such as "reads"."""

    def __init__(self, *arguments: Any, path: str | None = None, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.path = path


def arguments(spelled: str) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds the arguments in a pattern such as ``<model <docs...``.

    ``<`` precedes a path that is read, ``>`` one that is written, and ``|`` paths that are read
    from standard input if none is given. A name may be followed by = and its metavar. Brackets
    make an argument optional.
    """
    found = []
    for one in spelled.split():
        sign, one = (one[0], one[1:]) if one[0] in _SIGNS else ("", one)
        name, _, metavar = one.partition("=")
        is_optional = one[:1] == "[" or "[" in metavar or sign == "|"
        shape: dict[str, Any] = {"required": not is_optional}
        if sign == "|":  # click supports no default for an argument that takes several values
            shape["callback"] = lambda ctx, param, value: value or (STANDARD,)
        shape |= {"nargs": -1} if one.endswith("...") else {}
        if metavar:
            shape["metavar"] = metavar.removesuffix("...") if metavar[:1] != "[" else metavar
        name = name.strip("[].").removesuffix("...")
        found.append(click.argument(name, cls=Argument, path=_SIGNS.get(sign), **shape))
    return decorated_by(found)


_SIGNS = {"<": READS, "|": READS, ">": WRITES}


def output_option(
    metavar: str, help: str, path: str = WRITES, required: bool = True, default: str | None = None
) -> Callable[[Decorated], Decorated]:
    """Return a decorator for the option --output, the file or folder that a command writes."""
    return flag(
        f"-o,--output {metavar}",
        help,
        **({"required": required} if default is None else {"default": default}),
        show_default=False,
        word2vec="output",
        path=path,
        group="Output",
    )


json_option = flag("--json", "print JSON", name="as_json", group="Output")
quiet_option = flag("--quiet", "print only errors", group="Run")
count_option = flag(
    "-k N", "number of words to print for each query", name="topn", default=10, low=1
)


def options_of(
    *classes: type,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    advanced: bool | None = None,
) -> Callable[[Decorated], Decorated]:
    """Return a decorator that adds the options of dataclasses to a click command.

    The command gets the values as keyword arguments; `collect` makes objects from them.

    Parameters
    ----------
    *classes : type
        Dataclasses whose fields were declared with `dcme_w2v.declarations.option`.
    only : sequence of str, optional
        The options to add (default: all).
    without : sequence of str, optional
        The options to leave out.
    advanced : bool, optional
        Whether only ``--help-all`` shows them for this command (default: as declared).
    """
    found = []
    for item in (item for cls in classes for item in options_in(cls)):
        if (only and item.name not in only) or item.name in without:
            continue
        flag = flag_of(item.name)
        flags = [flag]
        shape: dict[str, Any] = {"is_flag": True}
        if item.name == "output":
            flags = ["-o", flag]
        if item.type is not bool:
            metavar = "|".join(item.choices) or item.metavar or _METAVARS[item.type]
            shape = {"type": Value(item.type, item.choices), "metavar": metavar, "bare": item.bare}
        elif item.optional:  # a flag with three states: on, off or automatic
            flags = [f"{flag}/--no-{flag[2:]}"]
        one = click.option(
            *flags,
            item.name,
            cls=Option,
            declared=item,
            word2vec=item.word2vec,
            path=item.path,
            default=item.default,
            show_default=item.default is not None and "(default:" not in item.help,
            help=item.help,
            group=item.group,
            advanced=item.advanced if advanced is None else advanced,
            **shape,
        )
        found.append(one)
    return decorated_by(found)


_METAVARS = {int: "N", float: "X", str: "TEXT"}


def collect(cls: type[T], values: dict[str, Any]) -> T:
    """Create a dataclass object from keyword arguments, and remove these from the mapping.

    Raises
    ------
    UsageError
        A value is of the wrong type, out of bounds or not one of the choices.
    """
    names = [item.name for item in options_in(cls) if item.name in values]
    return cls(**{name: values.pop(name) for name in names})


def given_options() -> tuple[str, ...]:
    """Return the names of the parameters that the user passed to the current command."""
    ctx = click.get_current_context()
    default = ParameterSource.DEFAULT
    return tuple(name for name in ctx.params if ctx.get_parameter_source(name) is not default)


def chosen_tokenizer(values: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the tokenizer options from a command's values; return None if the user set none."""
    names = [item.name for item in options_in(TokenizerOptions) if item.name in values]
    rule = {name: values.pop(name) for name in names}
    return rule if {*given_options()} & rule.keys() else None


def reads_documents(
    *names: str, whole: bool = False, columns: Sequence[str] = ("text_column", "label_column")
) -> Callable[[Decorated], Decorated]:
    """Add column options to a command, and apply the options to the paths in some arguments."""

    def decorate(function: Decorated) -> Decorated:
        @functools.wraps(function)
        def reading(**values: Any) -> Any:
            found = collect(ColumnOptions, values)
            own = (
                found.text_column,
                found.label_column,
                whole,
                found.keep or found.sample_weight_column,
            )
            for name in names:
                given = values[name]
                paths = given if isinstance(given, tuple) else () if given is None else (given,)
                tables = with_columns(paths, *own)
                values[name] = tables if isinstance(given, tuple) else next(iter(tables), None)
            return function(**values)

        return options_of(ColumnOptions, only=columns)(reading)  # type: ignore[return-value]

    return decorate


threads_option = options_of(ThreadsOptions)
log_json_option = options_of(LogOptions)
seeds_option = options_of(SeedsOptions)
dry_run_option = flag("--dry-run", "print how much memory the run requires, and exit", group="Run")


def show_plan(plan: dict[str, Any], as_json: bool) -> None:
    """Print the plan of a dry run, or raise the error in its entry "refused" if there is one.

    Parameters
    ----------
    plan : dict
        Estimates by name, and "refused", an error or None.
    as_json : bool
        Print one JSON object; "refused" is the error's message.
    """
    refused = plan["refused"]
    if as_json:
        message = None if refused is None else refused.message
        print_json({**plan, "refused": message}, indent=2)
    else:
        for name, value in plan.items():
            if value is not None and name != "refused":
                click.echo(f"{name.replace('_', ' ')}: {value:,}")
    if refused:
        raise refused
