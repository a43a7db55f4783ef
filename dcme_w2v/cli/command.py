"""Base class of every command: help in groups with an example, usage without arguments."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import click

from dcme_w2v.cli.options import PATHS, Declared, Value, given_options
from dcme_w2v.declarations import warn_of_options
from dcme_w2v.errors import DcmeWarning, UsageError

# Heading in the help -> names of the parameters below it.
GROUPS: dict[str, tuple[str, ...]] = {
    "Input": (
        "vectors", "labels", "min_count", "max_vocab", "encoding_errors", "allow_truncated",
        "allow_binary", "strict", "merging", "read_vocab", "init", "init_context",
        "init_vocab", "unk", "holdout", "cache_dir",
        "read_table", "queries", "documents", "judgements", "unlabelled", "reference",
        "resume_statistics",
    ),
    "Features": (
        "by", "features", "tokens", "ngrams", "hashing", "hashing_signs", "weighting", "norm",
        "term_frequency", "min_df", "max_df",
    ),
    "Objective": (
        "objective", "loss", "negative", "noise_power", "prior", "dcme_update", "class_clusters",
        "exact_clusters", "draws", "centre_interval", "clusters", "top_items", "beta", "gradient",
    ),
    "Model": (
        "preset", "model", "dim", "window", "window_mode", "word_order", "neighbor_classes",
        "block", "epochs", "sample", "lr", "min_lr", "input_rate", "subwords", "buckets",
        "covariance",
        "sparsity", "centre", "power", "tfidf", "tolerance",
        "iterations", "latent", "unsupervised", "unlabelled", "choose", "starts", "columns",
        "rounding", "freedom", "rank", "lsa", "balance", "smoothing", "solver", "batch",
        "patience", "l2", "bias", "tune", "passes", "threshold", "scorer", "connectors",
        "clusters",
    ),
    "Cluster": ("cluster", "shards", "rounds", "mix", "distribute"),
    "Fused features": (
        "levels", "impact", "keep", "initial", "rounds", "final", "folds", "choose", "optimiser",
        "shrinkage", "max_bytes", "coding", "words",
    ),
    "Run": (
        "threads", "seed", "deterministic", "checkpoint", "checkpoint_every", "resume", "dry_run",
        "quiet", "log_json", "memory",
    ),
    "Output": (
        "output", "output_context", "output_tables", "output_fasttext", "vectors", "format",
        "postprocess", "classes", "sum_context",
        "save_vocab", "save_table", "statistics", "as_json",
    ),
    "Spellings of word2vec.c": ("corpus_too", "cbow", "binary", "hs", "debug"),
}  # fmt: skip
MANY = 12  # minimum number of options for grouping


class Command(click.Command):
    """A command of this program.

    Parameters
    ----------
    example : str
        Example shown by `--help`.
    resolve_flags : callable, optional
        Changes the values in the context before anything else, where some follow from others.
    """

    def __init__(
        self,
        *arguments: Any,
        example: str = "",
        resolve_flags: Callable[[click.Context], None] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*arguments, **more)
        self.example = example
        self._resolve_flags = resolve_flags
        self.help = self.help and self.help.replace("\\b", "\b")  # raw docstrings
        for param in self.params:
            _complete_values(param)

    def arranged(self, args: list[str]) -> list[str]:
        """Return the arguments in the form that is parsed."""
        return args

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse; show the help if an argument is required and none is given."""
        needed = any(param.required or param.name == "corpus" for param in self.params)
        if not args and needed and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(UsageError.exit_code)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, with warnings of options that have no effect or an unusual value."""
        if self._resolve_flags is not None:
            self._resolve_flags(ctx)
        if ctx.params.get("quiet"):
            warnings.simplefilter("ignore", DcmeWarning)
        given = given_options(ctx)
        classes = dict.fromkeys(one.declared for one in self.params if isinstance(one, Declared))
        warn_of_options(classes, given, ctx.params)
        return super().invoke(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        records = {
            param.name: record
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            and (record := param.get_help_record(ctx)) is not None
        }
        groups = GROUPS if len(records) >= MANY else {}
        for heading, names in groups.items():
            if heading == "Objective" and "objective" not in records:
                continue  # means other clusters there
            if heading == "Cluster" and "cluster" not in records:
                continue  # other rounds
            if heading == "Input" and "output_context" in records:
                names = tuple(name for name in names if name != "vectors")  # which are written
            found = [records.pop(name) for name in names if name in records]
            if found:
                with formatter.section(heading):
                    formatter.write_dl(found)
        if records:
            with formatter.section("Other" if groups else "Options"):
                formatter.write_dl(list(records.values()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the example."""
        if self.example:
            with formatter.section("Example"):
                for line in self.example.splitlines():
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _complete_values(param: click.Parameter) -> None:
    """Set the type of a parameter so that shells complete its files or choices."""
    value = param.metavar or (param.name or "").upper()
    if not isinstance(param.type, click.types.StringParamType):
        return
    if value.removesuffix("...") in PATHS:
        param.type = click.Path()
    elif "|" in value:
        param.type = Value(str, tuple(value.split("|")))
