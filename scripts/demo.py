"""Train on real text within a minute and show nearest words: `make demo`.

The text exists on every machine with this package: the documentation in the files of Python's
standard library, numpy and scipy, which are not imported. `make demo CORPUS=FILE` trains on that
file instead. Everything is written to .demo/.

`--collect CORPUS --documents DOCS` only writes the text: a corpus, and documents labelled with the
package or module that they come from. The tutorial starts with it.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

FOLDER = Path(".demo")
VECTORS = FOLDER / "vectors.txt"
VOCABULARY = FOLDER / "vocabulary.txt"

# Words whose neighbours are shown, if the text contains them.
SHOWN = ("array", "file", "string", "error", "matrix", "server", "thread", "probability")

LABEL_MIN = 200  # paragraphs

LEFT_OUT = {"site-packages", "dist-packages", "test", "tests"}

WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


def main() -> None:
    """Collect text if none is given, train, and print the neighbours of some words."""
    parser = argparse.ArgumentParser(description="train on the documentation of Python and numpy")
    parser.add_argument("corpus", nargs="*", help="text to train on instead")
    parser.add_argument("--collect", type=Path, help="only write the text to this file")
    parser.add_argument("--documents", type=Path, help="also write labelled documents")
    parser.add_argument("--cluster", help="train there, see dcme-w2v train --help")
    given = parser.parse_args()
    if given.collect:
        collect(given.collect, given.documents)
        return
    start = time.monotonic()
    FOLDER.mkdir(exist_ok=True)
    corpus = given.corpus or [str(collect(FOLDER / "corpus.txt"))]
    epochs = [] if given.corpus else ["--epochs", "15"]
    where = ["--cluster", given.cluster] if given.cluster else []
    outputs = ["--output", str(VECTORS), "--save-vocab", str(VOCABULARY)]
    run("train", *corpus, *outputs, *epochs, *where)
    show_neighbors(VECTORS, chosen_words(VOCABULARY))
    print(f"\nvectors: {VECTORS}, made from nothing in {time.monotonic() - start:.0f} s")


def collect(target: Path, documents: Path | None = None) -> Path:
    """Write the distinct paragraphs of the installed documentation, one a line.

    Parameters
    ----------
    target : pathlib.Path
        The corpus.
    documents : pathlib.Path, optional
        The same paragraphs as "label TAB text", for labels with at least `LABEL_MIN` of them.
    """
    folders = [Path(sysconfig.get_path("stdlib"))]
    folders += [Path(sysconfig.get_path("platlib"), name) for name in ("numpy", "scipy")]
    labels: dict[str, str] = {}  # paragraph -> label of its first occurrence
    for folder in folders:
        for label, text in texts(folder):
            for line in paragraphs(text):
                labels.setdefault(line, label)
    target.write_text("".join(f"{line}\n" for line in labels), encoding="utf-8")
    words = sum(line.count(" ") + 1 for line in labels)
    print(f"{target}: {words:,} words of the documentation of Python, numpy and scipy", flush=True)
    if documents is not None:
        sizes = Counter(labels.values())
        lines = [f"{label}\t{line}\n" for line, label in labels.items()
                 if sizes[label] >= LABEL_MIN]  # fmt: skip
        documents.write_text("".join(lines), encoding="utf-8")
    return target


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the text files below a folder and the strings of its Python files, with labels."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if LEFT_OUT.intersection(parts):
            continue
        names = [folder.name, *parts] if folder.name in ("numpy", "scipy") else list(parts)
        label = ".".join(names[:2] if names[0] == folder.name else names[:1]).removesuffix(".py")
        if path.suffix in (".txt", ".rst", ".md"):
            yield label, path.read_text(encoding="utf-8", errors="replace")
        elif path.suffix in (".py", ".pyi"):
            yield from ((label, text) for text in strings(path))


def strings(path: Path) -> Iterator[str]:
    """Yield the strings of a Python file, mostly documentation; none if it is not Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def paragraphs(text: str) -> Iterator[str]:
    """Yield a text's paragraphs of five words or more, in lower case, without examples of code."""
    for block in re.split(r"\n\s*\n", text):
        lines = [
            line for line in block.splitlines() if not line.lstrip().startswith((">>>", "..."))
        ]
        words = WORD.findall(" ".join(lines).lower())
        if len(words) >= 5:
            yield " ".join(words)


def chosen_words(vocabulary: Path) -> list[str]:
    """Return the words of `SHOWN` in the vocabulary, or else frequent words that are not short."""
    lines = vocabulary.read_text(encoding="utf-8").split("\n")
    trained = [line.rpartition(" ")[0] for line in lines]
    return [word for word in SHOWN if word in trained] or [w for w in trained if len(w) > 5][:8]


def show_neighbors(vectors: Path, words: list[str]) -> None:
    """Print a line for each word: its five nearest."""
    printed = run("neighbors", str(vectors), *words, "-k", "5", "--json", capture=True)
    for word, near in json.loads(printed)["neighbors"].items():
        print(
            f"{word:>12}:", ", ".join(f"{item['word']} {item['similarity']:.2f}" for item in near)
        )


def run(*arguments: str, capture: bool = False) -> str:
    """Show and run a command of dcme-w2v; end with its exit code if it fails."""
    print("\n$ dcme-w2v", *arguments, flush=True)
    command = [sys.executable, "-m", "dcme_w2v", *arguments]
    done = subprocess.run(
        command, stdout=subprocess.PIPE if capture else None, encoding="utf-8", check=False
    )
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


if __name__ == "__main__":
    main()
