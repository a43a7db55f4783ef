"""`dcme-w2v check`: report the faults of a file of word vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .command import command
from .options import arguments, json_option
from .streams import print_json

if TYPE_CHECKING:
    from dcme_w2v.words.check import Report


@command(example="dcme-w2v check vectors.bin")
@arguments("file")
@json_option
@click.pass_context
def check(context: click.Context, file: str, as_json: bool) -> None:
    r"""Check a file of word vectors.

    The file may be text, binary or npy, also compressed. Prints the format, the number of rows and
    the dimension, then each kind of fault with its count and first position. The exit code is 0
    if there are no faults, otherwise 1.

    \b
    Kinds of faults:
      wrong number of rows      not the number in the header
      wrong dimension           a row has more or fewer numbers than the dimension in the header
      not a number              a field that is not a number
      NaN or infinite number
      duplicate word            the word of an earlier row
      empty word
      invalid UTF-8 in a word   for example a truncated character
      separator in a word       space, tab, line end, vertical tab or form feed
      NUL byte in a word
      bad count                 in the .vocab of an npy file
      length not finite         numbers that are finite, but too large for cosines
      trailing junk             bytes after the last row
      unreadable                not a file of word vectors; the reason is printed
    """
    from dcme_w2v import check_vectors

    report = check_vectors(file)
    print_json(report.as_dict()) if as_json else click.echo(as_text(report))
    context.exit(1 if report.faults else 0)


def as_text(report: Report) -> str:
    """Return a report as lines of text."""
    lines = [f"{report.file}: {report.format or 'unknown format'}"]
    lines += [f"rows: {report.rows}", f"dimension: {report.dimension}"]
    for fault in report.faults:
        detail = f" ({fault.detail})" if fault.detail else ""
        lines.append(f"{fault.kind}: {fault.count}, first at {fault.place}{detail}")
    return "\n".join(lines if report.faults else [*lines, "OK"])
