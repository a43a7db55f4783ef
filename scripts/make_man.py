"""Write a manual page for each command, generated from its help.

    python scripts/make_man.py [FOLDER]

`make man` writes them to build/man; read one with `man build/man/dcme-w2v-train.1`, or install all
with `cp build/man/*.1 ~/.local/share/man/man1/`.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from dcme_w2v import __version__
from dcme_w2v.cli.command import SHOW_ALL
from dcme_w2v.cli.main import program

NAME = "dcme-w2v"


class ManFormatter(click.HelpFormatter):
    """Formats the help of a command as a manual page (man(7)) instead of text."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the synopsis; the help text follows as the description."""
        self.write(f".SH SYNOPSIS\n.B {roff(prog)}\n{roff(args)}\n.SH DESCRIPTION\n")

    @contextlib.contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Write a section."""
        self.write(f".SH {roff(name).upper()}\n")
        yield

    def write_paragraph(self) -> None:
        """Write nothing, because macros separate sections and paragraphs."""

    def write_text(self, text: str) -> None:
        r"""Write paragraphs. A paragraph that starts with \b keeps its line breaks."""
        for paragraph in text.split("\n\n"):
            if paragraph.startswith("\b\n"):
                self.write(f".PP\n.nf\n{roff(paragraph[2:])}\n.fi\n")
            else:
                self.write(f".PP\n{roff(' '.join(paragraph.split()))}\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write options or commands with their help."""
        for term, text in rows:
            self.write(f".TP\n.B {roff(term)}\n{roff(text)}\n")


def roff(text: str) -> str:
    """Return text in which the characters that roff treats as markup are escaped."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


def page_of(context: click.Context) -> str:
    """Return the manual page of a command."""
    command, formatter = context.command, ManFormatter()
    context.meta[SHOW_ALL] = True
    name = context.command_path.replace(" ", "-")
    formatter.write(f'.TH "{name.upper()}" 1 "" "{NAME} {__version__}" "{NAME}"\n')
    formatter.write(f".SH NAME\n{roff(name)} \\- {roff(command.get_short_help_str(200))}\n")
    command.format_help(context, formatter)
    text, heading, example = formatter.getvalue().partition(".SH EXAMPLE\n")
    if heading:
        text += f"{heading}.nf\n{roff(example)}.fi\n"
    return text if name == NAME else text + f".SH SEE ALSO\n.BR {roff(NAME)} (1)\n"


def pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of the pages of a command and its subcommands."""
    yield context.command_path.replace(" ", "-"), page_of(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from pages(child, click.Context(child, info_name=name, parent=context))


def main() -> None:
    """Write all manual pages to a folder."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/man")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(program, click.Context(program, info_name=NAME)):
        (folder / f"{name}.1").write_text(text, encoding="utf-8")
    print(f"{len(list(folder.glob('*.1')))} pages: {folder}")


if __name__ == "__main__":
    main()
