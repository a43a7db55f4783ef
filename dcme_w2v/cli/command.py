"""Base classes of commands and groups: help in groups, hints for unknown names."""

import functools
import warnings
from typing import Any

import click

from dcme_w2v.declarations import warn_of_options
from dcme_w2v.errors import DcmeWarning, UsageError
from dcme_w2v.words.habits import table

from .options import PATHS, Option, Value, given_options
from .spellings import check_flags, nearest, plain_name, translated

# Headings of the help, in this order; an option declares its own. Others follow.
HEADINGS = ["Input", "Text", "Features", "Objective", "Model", "Cluster", "Run", "Output"]
MIN_GROUPED = 12  # options from which on the help is grouped


def _show_all(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        ctx.meta[SHOW_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


SHOW_ALL = f"{__name__}.show_all"
help_all = click.Option(
    ["--help-all"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_all,
    help="Show all options, also those for research, and exit.",
)


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
        found = (getattr(one, "declared", None) for one in self.params)
        return [*dict.fromkeys(one for one in found if one is not None)]

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


command = functools.partial(click.command, cls=Command)


def _is_advanced(param: click.Parameter) -> bool:
    return isinstance(param, Option) and param.advanced


class _Path(click.Path):
    """A path; an empty one, as of a variable that is not set, would be the current folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not value:
            self.fail("is empty; name a file", param, ctx)
        return value


def _complete_values(param: click.Parameter) -> None:
    """Set the type of a parameter so that shells complete its files or choices."""
    value = param.metavar or (param.name or "").upper()
    if not isinstance(param.type, click.types.StringParamType):
        return
    if value.removesuffix("...") in PATHS:
        param.type = _Path()
    elif "|" in value:
        param.type = Value(str, tuple(value.split("|")))


# Commands of other programs: run as ours, or answered with a hint.
ALIASES = table("""
nn most-similar distance: neighbors
word-analogy: analogy
word2phrase: phrases
""")
COMMAND_HINTS = table("""
skipgram: dcme-w2v train --model skipgram
cbow: dcme-w2v train --model cbow
word2vec glove: dcme-w2v train
fasttext: dcme-w2v train, or dcme-w2v classify train
print-word-vectors: dcme-w2v convert, or dcme-w2v encode --pooling mean
print-sentence-vectors: dcme-w2v encode
quantize: dcme-w2v fuse shrink
vocab-count: dcme-w2v vocab
analogies: dcme-w2v analogy VECTORS A B C, or dcme-w2v eval analogies VECTORS QUESTIONS
compute-accuracy: dcme-w2v eval analogies VECTORS QUESTIONS
doesnt-match: dcme-w2v odd-one-out VECTORS WORD...
supervised train-supervised: dcme-w2v classify train
predict predict-prob: dcme-w2v classify predict
test: dcme-w2v classify test
""")


class Group(click.Group):
    """A group that suggests a name for an unknown command or option."""

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
        check_flags(self, ctx, args)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first argument."""
        known = self.list_commands(ctx)
        plain = plain_name(args[0])  # doesnt_match is doesnt-match
        if args[0] not in known and ALIASES.get(plain) in known:
            args = [ALIASES[plain], *args[1:]]
        if args[0] not in known and not ctx.resilient_parsing:
            instead = COMMAND_HINTS.get(plain)
            hint = f"use {instead}" if instead else nearest(args[0], known, ctx)
            raise UsageError(f"unknown command {args[0]}; {hint}")
        return super().resolve_command(ctx, args)
