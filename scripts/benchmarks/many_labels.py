"""Documents with tens of thousands of labels, from paragraphs of articles and their headings.

A line of `paragraphs` is a paragraph, the same line of `articles` the heading of its article. A
document is a paragraph without the words of its heading; its labels are the heading, the heading's
words, and its pairs of words that three headings or more have. One document in twenty is in
test.tsv, the others are in train.tsv.
"""

import io
import itertools
import lzma
import random
import re
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
    parts = {one: {*own, *map(" ".join, itertools.pairwise(own))} for one, own in words.items()}
    counts = Counter(part for own in parts.values() for part in own)
    chance, written, folder = random.Random(1), 0, Path(output)
    folder.mkdir(exist_ok=True)
    with (folder / "train.tsv").open("w") as train, (folder / "test.tsv").open("w") as test:
        for heading, text in zip(headings, lines_of(paragraphs), strict=True):
            kept = [word for word in text.split() if word not in words[heading]]
            if len(kept) < MIN_WORDS or written >= MOST:
                continue
            own = (p for p in parts[heading] if counts[p] >= 3 or " " not in p)
            labels = "|".join(one.replace("|", " ") for one in [f"={heading}", *sorted(own)])
            file = test if chance.random() < 0.05 else train
            file.write(f"{labels}\t{' '.join(kept)}\n")
            written += 1
