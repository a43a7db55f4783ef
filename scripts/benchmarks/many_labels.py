"""Documents with tens of thousands of labels, from paragraphs of articles and their headings.

    python scripts/benchmarks/many_labels.py PARAGRAPHS ARTICLES OUTPUT

A line of PARAGRAPHS is a paragraph, the same line of ARTICLES the heading of its article. A
document is a paragraph without the words of its heading; its labels are the heading, the heading's
words, and its pairs of words that three headings or more have. One document in twenty is in
OUTPUT/test.tsv, the others are in OUTPUT/train.tsv.
"""

import io
import itertools
import lzma
import random
import re
import sys
from collections import Counter
from pathlib import Path

MOST, MIN_WORDS = 212_000, 20


def lines_of(path):
    """Yield the lines of a file, which may be compressed by xz."""
    with (lzma if path.endswith(".xz") else io).open(path, "rt", encoding="utf-8") as lines:
        yield from (line.rstrip("\n") for line in lines)


def write_documents(paragraphs, articles, output):
    """Write the documents."""
    headings = list(lines_of(articles))
    words = {one: re.findall(r"\w+", one.lower()) for one in set(headings)}
    parts = {
        one: set(own) | {f"{a} {b}" for a, b in itertools.pairwise(own)}
        for one, own in words.items()
    }
    counts = Counter(part for own in parts.values() for part in own)
    chance = random.Random(1)
    folder = Path(output)
    folder.mkdir(exist_ok=True)
    written, labels = 0, set()
    with (folder / "train.tsv").open("w") as train, (folder / "test.tsv").open("w") as test:
        for heading, text in zip(headings, lines_of(paragraphs), strict=True):
            kept = [word for word in text.split() if word not in set(words[heading])]
            if len(kept) < MIN_WORDS or written >= MOST:
                continue
            own = [
                f"={heading}",
                *sorted(p for p in parts[heading] if counts[p] >= 3 or " " not in p),
            ]
            own = [one.replace("|", " ") for one in own]
            labels.update(own)
            file = test if chance.random() < 0.05 else train
            file.write(f"{'|'.join(own)}\t{' '.join(kept)}\n")
            written += 1
    print(f"{written:,} documents of {len(labels):,} labels")


if __name__ == "__main__":
    write_documents(*sys.argv[1:])
