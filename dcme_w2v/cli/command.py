"""Base class of every command: help in groups with an example, usage without arguments."""

import warnings
from typing import Any

import click

from dcme_w2v.declarations import warn_of_options
from dcme_w2v.errors import DcmeWarning, UsageError

from .options import PATHS, Declared, Option, Value, given_options
from .spellings import translated

# Headings of the help, in this order; an option declares its own. Others follow.
HEADINGS = ("Input", "Text", "Features", "Objective", "Model", "Cluster", "Run", "Output")
MIN_GROUPED = 12  # options from which on the help is grouped


def _show_all(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[SHOW_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


SHOW_ALL = f"{__name__}.show_all"
help_all = click.Option(
    ["--help-all"], is_flag=True, expose_value=False, is_eager=True, callback=_show_all,
    help="Show all options, also those for research, and exit.",
)  # fmt: skip


class Command(click.Command):
    """A command of this program.

    Parameters
    ----------
    example : str
        Example shown by `--help`.
    warns : bool
        Whether to warn of options without effect; otherwise the command does.
    word2vec : bool
        Whether command lines of word2vec.c are accepted, see `dcme_w2v.cli.spellings`.
    """

    def __init__(
        self,
        *arguments: Any,
        example: str = "",
        warns: bool = True,
        word2vec: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self.example = example
        self.word2vec = word2vec
        self._warns = warns
        self.help = self.help and self.help.replace("\\b", "\b")  # raw docstrings
        for param in self.params:
            _complete_values(param)

    @property
    def declared(self) -> list[type]:
        """The dataclasses of the command's options."""
        return list(dict.fromkeys(one.declared for one in self.params if isinstance(one, Declared)))

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with ``--help-all`` if some options are advanced."""
        found = super().get_params(ctx)
        return [*found, help_all] if any(map(_is_advanced, self.params)) else found

    def arranged(self, args: list[str]) -> list[str]:
        """Return the arguments in the form that is parsed."""
        return args

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; show the help if an argument is required and none is given."""
        needed = any(param.required or param.name == "corpus" for param in self.params)
        if not args and needed and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        if not ctx.resilient_parsing:  # shell completion has half an option
            args = translated(self, ctx, self.arranged(args))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with warnings of options that have no effect or an unusual value."""
        if ctx.params.get("quiet"):
            warnings.simplefilter("ignore", DcmeWarning)
        if self._warns:
            warn_of_options(self.declared, given_options(ctx), ctx.params)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings; advanced ones only for ``--help-all``."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        grouped = len(options) >= MIN_GROUPED
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in HEADINGS}
        for one in options:
            record = one.get_help_record(ctx)
            if record is not None and (ctx.meta.get(SHOW_ALL) or not _is_advanced(one)):
                heading = getattr(one, "group", "Other") if grouped else "Options"
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        if self.example:
            with formatter.section("Example"):
                for line in self.example.splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _is_advanced(param: click.Parameter) -> bool:
    return isinstance(param, Option) and param.advanced


def _complete_values(param: click.Parameter) -> None:
    """Set the type of a parameter so that shells complete its files or choices."""
    value = param.metavar or (param.name or "").upper()
    if not isinstance(param.type, click.types.StringParamType):
        return
    if value.removesuffix("...") in PATHS:
        param.type = click.Path()
    elif "|" in value:
        param.type = Value(str, tuple(value.split("|")))
