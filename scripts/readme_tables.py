"""Write the option tables of the README from the dataclasses, or check that they are up to date.

A table stands between `<!-- options: CLASS ... -->` and `<!-- end of options -->` and has the
options of the classes of dcme_w2v/options.py, documents/options.py and classify/options.py.
`--check` changes nothing and fails where the README differs; `make lint` and tests/test_readme.py
call it so.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path

from dcme_w2v import options
from dcme_w2v.classify import options as classify_options
from dcme_w2v.cli.options import spellings, value_name
from dcme_w2v.documents import options as document_options
from dcme_w2v.options import declaration_of

ROOMS = (options, document_options, classify_options)
README = Path(__file__).parent.parent / "README.md"

BLOCK = re.compile(r"(<!-- options: ([\w ]+) -->\n).*?(<!-- end of options -->)", re.DOTALL)


def main() -> None:
    """Rewrite the README, or with --check say whether that would change it."""
    old = README.read_text(encoding="utf-8")
    new = with_tables(old)
    if sys.argv[1:] == ["--check"]:
        if new != old:
            sys.exit("error: README.md: option tables are old; run scripts/readme_tables.py")
    else:
        README.write_text(new, encoding="utf-8")


def with_tables(text: str) -> str:
    """Return the README with every table made anew."""

    def fill(match: re.Match[str]) -> str:
        found = {name: cls for room in ROOMS for name, cls in vars(room).items()}
        classes = [found[name] for name in match[2].split()]
        return match[1] + table(classes) + match[3]

    return BLOCK.sub(fill, text)


def table(classes: list[type]) -> str:
    """Return the options of some dataclasses as a Markdown table."""
    rows = ["| option | value | default | meaning |", "|---|---|---|---|"]
    rows += [row(cls, item) for cls in classes for item in dataclasses.fields(cls)]
    return "\n".join(rows) + "\n"


def row(cls: type, item: dataclasses.Field[object]) -> str:
    """Return one option as a row."""
    flags = ", ".join(f"`{flag}`" for flag in spellings(item))
    value = value_name(cls, item).replace("|", ", ")
    default = "" if item.default is None else f"{item.default}"
    return f"| {flags} | {value} | {default} | {declaration_of(item).help.replace('|', ', ')} |"


if __name__ == "__main__":
    main()
