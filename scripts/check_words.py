"""Fail if a text contains a listed phrase; docs/glossary.md has the terms to use.

    python scripts/check_words.py

Looks at the README, the changelog, docs/, and the docstrings, comments, help texts and messages of
the package, the core, the scripts and the tests. Words inside identifiers do not count.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

# Phrase to avoid -> phrase to use.
PHRASES = {
    r"told|tells?": "reports, shows, says where ...; detected",
    r"that of|those of|what is|the one of|the ones of": "(name the noun)",
    r"wants|knows|asks for": "requires, supports, has, reports",
    r"rivals?": "baseline, the other program",
    r"noise words?": "negative samples (NS), noise samples (NCE)",
    r"parted by|parts? (the )?words|spaces part": "separated by",
    r"(go|goes|going|went) on (from|with|as)": "resume, continue",
    r"breaks? off": "is truncated",
    r"packed (file|text|or not)s?|plain or packed": "compressed",
    r"likelier|likeliest": "more probable, most probable",
    r"what (it|they) (is|are) good for|lets no": "(say what it does)",
    r"words' shares|share of the words": "unigram probability, log prior",
    r"how probable": "log-likelihood, log-probability",
    r"(that|which|it) (is|are) no": "is not a",
    r"but for": "except",
    r"stands? (\d+|n|N) times|words? (that|which) stands?": "occurs",
    r"nothing but": "only",
    r"processors? (is|are|was|were) (near|far)|far processors": "CPUs that do not share a cache",
    r"not to be edited": "corrupt",
    r"all state": "the whole state",
    r"went astray|run away": "diverge",
    r"first bytes": "magic bytes",
    r"speaks? (most )?for": "highest-weighted",
    r"rounds? of|each round|the rounds": "iteration, epoch",
    r"context rows|noise rows": "input vectors, word vectors",
    r"to the letter": "exactly as in",
    r"a coin": "unpredictable",
    r"how to flatten": "projection method",
    r"left the finite numbers": "diverged (NaN or infinity)",
    r"talk (to|of)": "progress and error messages",
    r"kept apart|keeps? apart": "held out",
    r"hang together|alike|likewise": "similar, equal",
    r"hears? (of|that|from)": "reports",
    r"whoever|nobody else": "callers that, no other thread",
    r"next to nothing": "near zero, very little",
    r"anew": "again",
    r"met at random|nobody meets": "accessed",
    r"ends? well": "succeeds",
    r"(be|is|are) refused": "is an error",
    r"breaks? out|complain\w*": "error",
    r"(word|token)s? (that )?stands? (in|at)": "occurs, is at",
    r"(is|are) owed": "is pending",
}
LISTED = re.compile(
    "|".join(rf"(?<![\w.])({phrase})(?![\w(])" for phrase in PHRASES), re.IGNORECASE
)
SUFFIXES = (".md", ".py", ".pyx", ".pyi", ".c", ".h", ".cff", ".toml", ".yml", "Makefile")


def main() -> None:
    """Print every hit with its place and a replacement, and fail if there is one."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout
    hits = 0
    for name in names.splitlines():
        if not name.endswith(SUFFIXES) or name in LEFT_OUT:
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), 1):
            for match in LISTED.finditer(line):
                hits += 1
                print(f"{name}:{number}: {match[0]!r}: {instead(match[0])}")
    if hits:
        sys.exit(f"error: {hits} phrases to be replaced")


def instead(found: str) -> str:
    """Return the replacement of a phrase."""
    return next(to for what, to in PHRASES.items() if re.fullmatch(what, found, re.IGNORECASE))


LEFT_OUT = ("scripts/check_words.py",)

if __name__ == "__main__":
    main()
