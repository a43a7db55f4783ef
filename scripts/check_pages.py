"""Check that pages are plain Markdown without dead links, and that sentences are short.

    python scripts/check_pages.py

Each link must lead to an existing file in the repository and, after #, to one of its headings. Each
page in docs/ must have a link to it. Directives are not allowed, because GitHub shows them as text.
Sentences in the README, in docs/start and in the guides have at most 30 words. A guide has at most
1,200 words. A decision record has one table and at most 600 other words. The
README has at most 110 lines.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LONGEST, MOST, MOST_OF_RECORD, MOST_LINES = 30, 1200, 600, 110
RESULTS = re.compile(r"<!-- results:.*?<!-- end of results -->", re.DOTALL)
FENCED = re.compile(r"^( *)(```+|~~~+)(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?:    .*\n+)+")
DIRECTIVE = re.compile(r"^ *(?:```|~~~|:::)\{.*", re.MULTILINE)
ROLE = re.compile(r"\{[a-z:-]+\}CODE|^\{[.#]\w.*|^\([\w-]+\)=$", re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def main() -> None:
    """Print all faults, and fail if there are any."""
    pages = list(ROOT.glob("*.md"))
    for folder in (".github", "docs", "examples", "scripts"):
        pages += sorted((ROOT / folder).rglob("*.md"))
    found = [f"{page.relative_to(ROOT)}: {one}" for page in pages for one in faults(page)]
    linked = {path for page in pages for _, path, _ in links(page, prose_of(page))}
    unlinked = [page for page in pages if DOCS in page.parents and page.resolve() not in linked]
    found += [f"{page.relative_to(ROOT)}: no page links to it; add a link" for page in unlinked]
    if found:
        sys.exit("\n".join([*found, f"error: {len(found)} faults in pages"]))


def faults(page: Path) -> Iterator[str]:
    """Yield the faults of a page."""
    text, prose = page.read_text(encoding="utf-8"), prose_of(page)
    for found in [*DIRECTIVE.finditer(text), *ROLE.finditer(prose)]:
        yield f"{found[0]}: GitHub shows this as text; use plain Markdown"
    for line in prose.splitlines():
        if line.count("$") % 2:
            yield f"{line}: GitHub does not show a formula that spans lines; put it on one line"
    for target, path, anchor in links(page, prose):
        if not path.exists():
            yield f"{target}: there is no such file; correct the link"
        elif anchor and anchor not in anchors(path.read_text(encoding="utf-8")):
            yield f"{target}: there is no such heading; correct the link"
    is_guide = page.parent == DOCS / "guides"
    if is_guide and (words := len(text.split())) > MOST:
        yield f"has {words} words; shorten it to {MOST}"
    if page.parent == DOCS / "decisions":
        if (words := len(RESULTS.sub("", text).split())) > MOST_OF_RECORD:
            yield f"has {words} words; shorten it to {MOST_OF_RECORD}"
        if (tables := len(re.findall(r"^\|[ :|-]+\|$", text, re.MULTILINE))) > 1:
            yield f"has {tables} tables; keep one"
    if page == ROOT / "README.md" and (lines := text.count("\n")) > MOST_LINES:
        yield f"has {lines} lines; shorten it to {MOST_LINES}"
    if is_guide or page.parent == DOCS / "start" or page == ROOT / "README.md":
        yield from (f"{len(one.split())} words: {one}" for one in sentences(prose)
                    if len(one.split()) > LONGEST)  # fmt: skip


def prose_of(page: Path) -> str:
    """Return the text of a page without code blocks, and with CODE in place of inline code."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    return re.sub(r"`[^`]+`", "CODE", INDENTED.sub("", text))


def links(page: Path, prose: str) -> Iterator[tuple[str, Path, str]]:
    """Yield each link to a file in the repository: its text, the file and the anchor."""
    for found in LINK.finditer(prose):
        target = found[1] or found[2]
        name, _, anchor = target.partition("#")
        if ":" not in target:
            yield target, (page.parent / name if name else page).resolve(), anchor


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub creates for the headings of a page."""
    found: list[str] = []
    slugs: list[str] = []
    for heading in re.findall(r"^#+ +(.+?) *$", FENCED.sub("", text), re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.lower())
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        found.append(f"{slug}-{slugs.count(slug)}" if slug in slugs else slug)
        slugs.append(slug)
    return set(found)


def sentences(prose: str) -> Iterator[str]:
    """Yield the sentences in paragraphs, list items and table cells."""
    plain = re.sub(r"<[^>]+>", " ", re.sub(r"<!--.*?-->", "", prose, flags=re.DOTALL))
    plain = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", plain)
    blocks = re.split(r"\n\s*\n|\n(?= *(?:[-*]|\d+\.) )|\n(?=#)|\n(?=\|)|(?<= )\|(?= )", plain)
    for block in blocks:
        yield from re.split(r"(?<=[.!?])[\"*)]*\s+", " ".join(block.split()))


if __name__ == "__main__":
    main()
