"""Base classes for commands and groups, which structure the help and suggest similar names."""

import functools
import warnings
from typing import Any

import click
from click.core import ParameterSource

from dcme_w2v.declarations import (
    check_choice,
    check_conflicts,
    checked_value,
    flag_of,
    with_preset,
)
from dcme_w2v.errors import DcmeWarning, UsageError, warn
from dcme_w2v.files.atomic import STANDARD, check_standard_output
from dcme_w2v.files.paths import READS, guard
from dcme_w2v.hints import command_hint
from dcme_w2v.options import SeedsOptions

from .options import EXPLICIT, Option, Value, collect, given_options
from .streams import ignore_broken_pipe

# Order of the headings in help texts; headings that are not in this list come last.
HEADINGS = ["Input", "Text", "Features", "Objective", "Model", "Cluster", "Run", "Output"]
DEFAULT = SeedsOptions()
MIN_GROUPED = 12  # commands with fewer options than this have no headings in their help


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
    help="Show all options, including research options, and exit.",
)


class Command(click.Command):
    """A command that shows its options under headings, checks paths, and prints an example.

    Parameters
    ----------
    example : str
        Example shown by `--help`.
    warns : bool
        Whether to warn about options without effect here; otherwise the command does.
    guarded : bool
        Whether paths are checked here; otherwise the Python function checks them.
    word2vec : bool
        Whether command lines for word2vec.c are accepted; see `SWITCHES`.
    """

    def __init__(
        self,
        *arguments: Any,
        example: str = "",
        warns: bool = True,
        guarded: bool = True,
        word2vec: bool = False,
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self.example = example
        self._warns, self._guarded, self._word2vec = warns, guarded, word2vec
        if word2vec:
            names = {one.name for one in self.params}
            some = [
                k for k, v in SWITCHES.items() if {one[0] for one in v.values() if one} <= names
            ]
            for one in ("train", *some):
                self.params.append(click.Option([f"-{one}", f"word2vec_{one}"], hidden=True))
        if any(getattr(one, "advanced", False) for one in self.params):
            self.params.append(help_all)
        # The help is the command's raw docstring, where \b is two characters: a backslash and a b.
        self.help = self.help and self.help.replace("\\b", "\b")
        for param in self.params:
            choices = tuple((param.metavar or "").split("|"))
            is_completed = getattr(param, "path", None) or len(choices) > 1
            if is_completed and isinstance(param.type, click.types.StringParamType):
                param.type = Value(str, choices)  # this type lets shells complete the values

    def repeated(self, args: list[str]) -> list[str]:
        """If an option takes several values, insert its flag before each value."""
        options = (one for one in self.params if isinstance(one, Option) and one.multiple)
        many = {flag for one in options if str(one.metavar).endswith("...") for flag in one.opts}
        found, flag = list[str](), ""
        for word in args:
            if word.startswith("-") and word != STANDARD:
                flag = word.partition("=")[0] if word.partition("=")[0] in many else ""
            elif flag and found[-1] != flag:
                found.append(flag)
            found.append(word)
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without arguments, show the help if an argument is required."""
        needed = any(param.required or param.name == "corpus" for param in self.params)
        if not args and needed and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        known = {f"-{one.word2vec}" for one in self.params if isinstance(one, Option)}
        for word in args[: args.index("--")] if "--" in args else args:
            if word[:2] == "-o" and word[2:3].isalpha() and word.partition("=")[0] not in known:
                # Reject -outputs, which click would parse as -o utputs.
                raise click.NoSuchOption(word, ctx=ctx)
        bare = {one.opts[0] for one in self.params if getattr(one, "bare", None)}
        parts = (word.partition("=-") for word in args)
        args = [
            f"{a}={EXPLICIT}-{b}" if dash and a in bare else a + dash + b for a, dash, b in parts
        ]
        rest = super().parse_args(ctx, self.repeated(args))
        if self._word2vec and not ctx.resilient_parsing:
            set_switched(ctx)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Check paths, apply a preset, check for conflicts, and run the command."""
        if ctx.obj is not None:
            ctx.obj()
        if "seeds" in ctx.params and (wanted := collect(SeedsOptions, ctx.params)) != DEFAULT:
            from .seeds import run_seeds

            return run_seeds(ctx, lambda: self._invoke(ctx), wanted)
        return self._invoke(ctx)

    def _invoke(self, ctx: click.Context) -> Any:
        values = ctx.params
        if values.get("quiet"):
            warnings.simplefilter("ignore", DcmeWarning)
        paths = [
            (role, shown_name(param), values[str(param.name)])
            for param in self.params
            if (role := getattr(param, "path", None))
        ]
        written = [value for role, _, value in paths if role != READS and value]
        if values.get("as_json") or values.get("dry_run") or not written:
            check_standard_output()
        if values.get("as_json") and STANDARD in written:
            raise UsageError(
                "--json: JSON and results cannot both be written to standard output; write the "
                "results to a file"
            )
        ignore_broken_pipe(*written)
        given = given_options()
        items = [one.declared for one in self.params if isinstance(one, Option) and one.declared]
        for one in self.params:  # report invalid numbers before missing files
            item = getattr(one, "declared", None)
            if item and one.name in given and item.type in (int, float):
                values[one.name] = checked_value(values[one.name], item)
        if self._guarded:
            guard(*paths)
        if self._warns:
            preset = with_preset(items, {name: values[name] for name in given})
            values.update({name: one for name, one in preset.items() if name in values})
            check_conflicts(items, values, given)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings; only ``--help-all`` includes advanced options."""
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        grouped = len(options) >= MIN_GROUPED
        sections: dict[str, list[tuple[str, str]]] = {name: [] for name in HEADINGS}
        for one in options:
            record = one.get_help_record(ctx)
            is_shown = ctx.meta.get(SHOW_ALL) or not getattr(one, "advanced", False)
            if record is not None and is_shown:
                heading = getattr(one, "group", "Other") if grouped else "Options"
                sections.setdefault(heading, []).append(record)
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage example below the options."""
        if self.example:
            with formatter.section("Example"):
                for line in self.example.splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


command = functools.partial(click.command, cls=Command)


def shown_name(param: click.Parameter) -> str:
    """Return the name of a parameter as it appears in messages."""
    if isinstance(param, click.Argument):
        return param.human_readable_name.strip("[].")
    return max(param.opts, key=len)


class Group(click.Group):
    """A command group that suggests similar names for an unknown command or option."""

    command_class = Command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with the complete first sentence of its help text."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(1000)) for name, one in found if one is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without arguments, show the help and exit with a usage error."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command whose name is the first argument."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            root = ctx.find_root().command
            of_program = root.list_commands(ctx) if isinstance(root, click.Group) else []
            hint = command_hint(args[0], self.list_commands(ctx), of_program)
            raise UsageError(
                f"unknown command {args[0]}{hint or f'; see {ctx.command_path} --help'}"
            ) from None


# ---- compatibility with the command lines of word2vec.c and word2phrase ----

# Each valid value of a word2vec.c or word2phrase switch stands for an option and the option's
# value, or for None if the value requires no option.
SWITCHES: dict[str, dict[str, tuple[str, Any] | None]] = {
    "cbow": {"0": ("model", "skipgram"), "1": ("model", "cbow")},
    "binary": {"0": ("format", "text"), "1": ("format", "binary")},
    "hs": {"0": None, "1": ("objective", "hs")},
    "debug": {"0": ("quiet", True), "1": None, "2": None},
}


def set_switched(ctx: click.Context) -> None:
    """Replace the values of word2vec.c switches with the values of equivalent options.

    Raises
    ------
    UsageError
        A switch has an invalid value, or a given option contradicts it.
    """
    is_hs = ctx.params.get("word2vec_hs") == "1"
    for switch, meanings in SWITCHES.items():
        value = ctx.params.pop(f"word2vec_{switch}", None)
        if value is None:
            continue
        check_choice(f"-{switch}", value, meanings)
        if (meant := meanings[value]) is not None:
            _set(ctx, f"-{switch} {value}", *meant)
    if is_hs and ctx.params["negative"] != 0 and not ctx.params["quiet"]:
        warn(
            "-hs 1: only hierarchical softmax is trained, but word2vec.c would also use negative "
            "sampling; to hide this warning, add -negative 0"
        )
    if ctx.params.get("objective") == "hs" and (is_hs or ctx.params["negative"] == 0):
        ctx.params["negative"] = None
        ctx.set_parameter_source("negative", ParameterSource.DEFAULT)
    if (corpus := ctx.params.pop("word2vec_train", None)) is not None:
        ctx.params["corpus"] = (corpus, *ctx.params["corpus"])
        if "preset" in ctx.params and ctx.params["preset"] is None:
            _set(ctx, "-train", "preset", "word2vec")


def _set(ctx: click.Context, given: str, name: str, value: Any) -> None:
    is_given = ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
    if is_given and ctx.params[name] != value:
        raise UsageError(
            f"{given} and {flag_of(name)}={ctx.params[name]} contradict each other; use only one "
            "of the two options"
        )
    ctx.params[name] = value
    ctx.set_parameter_source(name, ParameterSource.COMMANDLINE)
