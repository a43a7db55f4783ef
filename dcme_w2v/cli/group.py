"""Base class of command groups: errors with a hint for unknown options and commands."""

import click

from dcme_w2v.errors import UsageError

from .command import Command
from .spellings import check_flags, nearest, plain_name

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
