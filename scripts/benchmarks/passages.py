"""Make known-item data for the suite `search`: lines "query TAB passage".

It also writes sections.tsv for the suite `continued`: "section TAB package name and first line".

`python scripts/benchmarks/passages.py FOLDER` writes files from this machine: manual pages (the
query is the summary) and Debian packages (the query is the first line of the description). For
packages, run `apt-get update -o Acquire::Languages=en` first.
"""

from __future__ import annotations

import gzip
import random
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

WORDS = 300  # maximum length of a passage from a manual page
QUERY, PASSAGE = 2, 20  # minimum number of words
_REQUESTS = re.compile(
    r"[.'](?:TH|ds|de|ie|if|el|nr|so|ad|n[fh]|hy|sp|ti|ta|in|PD|R[SE]|fi|ft|tr|[rb][mr]|ne)\b"
)
_ESCAPES = [
    (r"\\f(?:\[\w*\]|\(..|.)|\\s[-+]?\d|\\[&%/,^|)c]", ""), (r"\\\((?:aq|cq|oq)|\\\*\(Aq", "'"),
    (r"\\\((?:em|en|hy|mi)", "-"), (r"\\\(..|\\\[[^\]]*\]", ""), (r"\\([-'`. ])", r"\1"),
]  # fmt: skip


def read(path: Path, most: int = 20000) -> tuple[list[str], list[str]]:
    """Return the queries and passages in a file, or a random sample if the file is large."""
    lines = path.read_text(encoding="utf-8").splitlines()
    some = random.Random(0).sample(lines, most) if len(lines) > most else lines
    pairs = [line.split("\t") for line in some]
    return [query for query, _ in pairs], [passage for _, passage in pairs]


def _plain(line: str) -> str:
    """Return a line of roff without its markup."""
    if line[:1] in (".", "'"):
        line = "" if _REQUESTS.match(line) else re.sub(r"^[.']\s*\S*", "", line).replace('"', " ")
    for pattern, text in _ESCAPES:
        line = re.sub(pattern, text, line)
    return line


def manual_pages() -> Iterator[tuple[str, str]]:
    """Yield the summary and the first words of each manual page."""
    for path in sorted(Path("/usr/share/man").glob("man*/*.gz")):
        if path.is_symlink():
            continue
        text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
        parts = [
            " ".join(map(_plain, one.split("\n"))) for one in re.split(r"(?m)^\.S[Hh] +", text)
        ]
        for number, part in enumerate(parts):
            found = re.match(r'"?NAME"?\s.*?\s-+\s+(.*)', " ".join(part.split()), re.IGNORECASE)
            if found:
                yield found[1], " ".join(" ".join(parts[number + 1 :]).split()[:WORDS])
                break


def packages() -> Iterator[tuple[str, str]]:
    """Yield the first line of each description, and its other lines."""
    for path in sorted(Path("/var/lib/apt/lists").glob("*_main_i18n_Translation-en*")):
        command = ["/usr/lib/apt/apt-helper", "cat-file", str(path)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for found in re.finditer(r"^Description-en: (.*)\n((?: .*\n)+)", text, re.MULTILINE):
            yield found[1], found[2].replace("\n .\n", "\n")


def sections() -> Iterator[tuple[str, str]]:
    """Yield the section of each package, and its name with the first line of its description."""
    for path in sorted(Path("/var/lib/apt/lists").glob("*_main_binary-*_Packages*")):
        command = ["/usr/lib/apt/apt-helper", "cat-file", str(path)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for one in text.split("\n\n"):
            found = dict(re.findall(r"^(Package|Section|Description): (.*)$", one, re.MULTILINE))
            if len(found) == 3:
                name = found["Package"].replace("-", " ")
                yield found["Section"], f"{name} {found['Description']}"


def write(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write the pairs that are long enough, without repeated passages."""
    seen: dict[str, str] = {}
    for query, passage in pairs:
        query, passage = " ".join(query.split()), " ".join(passage.split())
        if len(query.split()) >= QUERY and len(passage.split()) >= PASSAGE:
            seen.setdefault(passage, query)
    lines = "".join(f"{query}\t{passage}\n" for passage, query in seen.items())
    path.write_text(lines.replace("\0", " "), encoding="utf-8")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    write(folder / "manual pages.tsv", manual_pages())
    write(folder / "packages.tsv", packages())
    lines = sorted("\t".join(one) + "\n" for one in sections())
    (folder.parent / "sections.tsv").write_text("".join(lines), encoding="utf-8")
