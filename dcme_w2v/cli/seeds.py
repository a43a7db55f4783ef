"""Run a command once per seed, and print a table of the measures with their means.

The files of a seed have its number before their suffix: with ``--seeds 3``, ``--output v.bin`` is
v-1.bin, v-2.bin and v-3.bin. `train` and `classify train` write them, and the commands that
evaluate read them. A run is the command with --json; its measures are the fractions in that JSON.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.paths import READS
from dcme_w2v.options import SeedsOptions

from .streams import print_json

# Entries of the JSON output that are settings or details, not measures.
LEFT_OUT = ("options", "choice", "epochs", "calibration", "per_class")
# Options whose output does not fit into a table with one row per seed, and options that runs with
# several seeds cannot share.
NOT_IN_TABLE, ONE_RUN = ("dry_run", "per_class", "calibration"), ("checkpoint", "resume")


def run_seeds(ctx: click.Context, run: Callable[[], Any], wanted: SeedsOptions) -> None:
    """Run a command once per seed, and print a table of the measures.

    Raises
    ------
    UsageError
        An option or path can be used only by a single run.
    """
    params, each = dict(ctx.params), list[dict[str, float]]()
    _check_conflicts(ctx, wanted)
    seeds = _seeds_of(params, wanted)
    for own in [_numbered(ctx, params, seed) for seed in seeds] or [{}]:
        ctx.params = {**params, **own, "as_json": True}
        if "seed" in own and not params["quiet"]:
            click.echo(f"seed {own['seed']}", err=True)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            run()
        each.append(dict(measures_of(json.loads(printed.getvalue()))))
    names = [name for name in each[0] if all(name in one for one in each)]
    found = {name: [one[name] for one in each] for name in names}
    if params.get("as_json"):
        print_json({"seeds": seeds, "measures": {k: summary(v) for k, v in found.items()}})
    else:
        click.echo(table_of(found, seeds, wanted.table or "markdown"))


def _check_conflicts(ctx: click.Context, wanted: SeedsOptions) -> None:
    """Raise an error if an option would have no effect when combined with --seeds or --table."""
    names = {*NOT_IN_TABLE, *(ONE_RUN if wanted.seeds else ()), *(["as_json"] * bool(wanted.table))}
    own = "--table" if wanted.table and not wanted.seeds else "--seeds"
    for param in ctx.command.params:
        if param.name in names and ctx.params.get(param.name):
            own = "--table" if param.name == "as_json" else own
            raise UsageError(
                f"{own} is not supported with {max(param.opts, key=len)}; omit one of the two "
                "options"
            )


def _seeds_of(params: dict[str, Any], wanted: SeedsOptions) -> list[int]:
    """Return N consecutive seeds, of which --seed is the first, or [] for a table of one run."""
    if wanted.seeds is None:
        return []
    first = params.get("seed") or 1
    return list(range(first, first + wanted.seeds))


def _numbered(ctx: click.Context, params: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return a run's parameters, including its seed and output paths that contain the seed.

    An evaluation has no seed, so its first argument (the vectors or the model) also depends on the
    run.
    """
    found: dict[str, Any] = {}
    arguments = [one for one in ctx.command.params if isinstance(one, click.Argument)]
    if "seed" in params:
        found["seed"] = seed
        ctx.set_parameter_source("seed", ParameterSource.COMMANDLINE)
        arguments = []
    for param in ctx.command.params:
        role, path = getattr(param, "path", None), params.get(str(param.name))
        if role is None or not path:
            continue
        if path == STANDARD or (isinstance(path, tuple) and STANDARD in path):
            raise UsageError(
                "--seeds: several runs cannot share standard input or output; use files"
            )
        if role != READS or param in arguments[:1]:
            found[str(param.name)] = numbered(path, seed)
    return found


def numbered(path: str, seed: int) -> str:
    """Insert a seed into an output path: v.bin becomes v-3.bin for seed 3."""
    found = Path(path)
    start, dot, suffixes = found.name.partition(".")
    if not start:
        start, dot, suffixes = found.name, "", ""
    return str(found.with_name(f"{start}-{seed}{dot}{suffixes}"))


def measures_of(found: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield the name and value of each float in a JSON object, including nested objects."""
    if isinstance(found, dict):
        own = str(found.get("name", ""))
        if name == "" and isinstance(last := (found.get("epochs") or [None])[-1], dict):
            yield "loss", last.get("loss", float("nan"))
        for key, value in found.items():
            if key not in LEFT_OUT:
                yield from measures_of(value, " ".join(filter(None, (name, own, key))))
    elif isinstance(found, list):
        for one in found:
            if isinstance(one, dict) and "name" in one:
                yield from measures_of(one, "")
    elif isinstance(found, float):
        yield name.replace("_", " "), found


def summary(values: list[float]) -> dict[str, Any]:
    """Return the mean, the sample standard deviation, and the values."""
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "standard_deviation": deviation, "values": values}


def table_of(found: dict[str, list[float]], seeds: list[int], kind: str) -> str:
    """Format a Markdown, CSV or LaTeX table with one row per measure and one column per seed."""
    head = ["measure", "mean", "standard deviation", *(f"seed {one}" for one in seeds)]
    rows = [head if len(seeds) > 1 else ["measure", "value"]]
    shown = "{:.6g}" if kind == "csv" else "{:.4f}"
    for name, values in found.items():
        numbers = [*list(summary(values).values())[:2], *values] if len(seeds) > 1 else values
        rows.append([name, *(shown.format(one) for one in numbers)])
    if kind == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        return out.getvalue().rstrip("\n")
    if kind == "markdown":
        rows.insert(1, ["---"] * len(rows[0]))
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)
    lines = [" & ".join(map(_escaped, row)) + r" \\" for row in rows]
    columns = "l" + "r" * (len(rows[0]) - 1)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", lines[0], r"\hline", *lines[1:]]
    return "\n".join([*lines, r"\hline", r"\end{tabular}"])


def _escaped(text: str) -> str:
    for sign in "&%$#_":
        text = text.replace(sign, f"\\{sign}")
    return text
