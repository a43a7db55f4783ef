"""What a command would take, for --dry-run: lines for people, or JSON."""

from __future__ import annotations

from typing import Any

import click

from dcme_w2v.cli.options import plain_option
from dcme_w2v.cli.streams import print_json

dry_run_option = plain_option(
    "--dry-run",
    is_flag=True,
    help="report the memory and disk space needed, then stop",
    group="Run",
)


def show_plan(plan: dict[str, Any], as_json: bool = False) -> None:
    """Print a plan; raise the error under "refused", if the memory or disk space is not there.

    Parameters
    ----------
    plan : dict
        Figures by name, "disk", a list of folders with their bytes, and "refused", an error or
        None.
    as_json : bool
        Print one JSON object; "refused" is the error's message.
    """
    refused = plan["refused"]
    if as_json:
        message = None if refused is None else refused.message
        print_json({**plan, "refused": message}, indent=2)
    else:
        for name, value in plan.items():
            if value is not None and name not in ("refused", "disk"):
                click.echo(f"{name.replace('_', ' ')}: {value:,}")
        for one in plan["disk"]:
            figures = f"{one['bytes']:,} bytes needed at most, {one['free_bytes']:,} free"
            click.echo(f"disk of {one['folder']}: {figures}")
    if refused:
        raise refused
