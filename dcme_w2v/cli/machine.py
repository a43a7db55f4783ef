"""The commands ``demo``, which trains on text found on this machine, and ``doctor``."""

import ast
import contextlib
import importlib.metadata
import platform
import re
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.files.atomic import optional_write
from dcme_w2v.files.paths import TEXT

from .command import command
from .options import arguments, flag, json_option
from .streams import print_json

# Words whose nearest neighbors `demo` prints, if the words occur in the text.
SHOWN = ("array", "file", "string", "error", "matrix", "server", "thread", "probability")
LABEL_MIN = 200  # packages and modules with fewer paragraphs than this do not become labels
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests"}
WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")


@command(example="dcme-w2v demo")
@arguments("<texts=[CORPUS]...")
@flag(
    "--collect FILE",
    "write the training text to this file (one paragraph per line) instead of training",
    path=TEXT,
    group="Output",
)
@flag(
    "--documents FILE",
    'write labeled paragraphs to this file (one "label TAB text" per line) instead of training',
    path=TEXT,
    group="Output",
)
def demo(texts: tuple[str, ...], collect: str | None, documents: str | None) -> None:
    """Train word vectors on text from this machine, and print the neighbors of some words.

    The text is the documentation in the installed files of Python, NumPy and SciPy. CORPUS: files
    or folders to train on instead of the documentation. The command requires no network, and writes
    a file only with --collect or --documents.
    """
    import dcme_w2v

    if texts and (collect or documents):
        raise UsageError("CORPUS is not supported with --collect or --documents; omit CORPUS")
    start, shown = time.monotonic(), sys.stderr.isatty()
    if texts:
        vectors = dcme_w2v.train([Path(one) for one in texts], progress=shown)
    else:
        labels = paragraphs_with_labels()
        tokens = sum(line.count(" ") + 1 for line in labels)
        click.echo(f"{tokens:,} tokens of the documentation of Python, numpy and scipy", err=True)
        if collect or documents:
            _write(labels, collect, documents)
            return
        vectors = dcme_w2v.train((line.split() for line in labels), epochs=15, progress=shown)
    words = [word for word in SHOWN if word in vectors]
    for word in words or sorted(vectors.words, key=lambda one: len(one) < 6)[:8]:
        near = vectors.most_similar(word, topn=5)
        click.echo(f"{word:>12}: " + ", ".join(f"{one.word} {one.similarity:.2f}" for one in near))
    click.echo(
        f"from text to neighbors in {time.monotonic() - start:.0f} s; next: "
        "dcme-w2v train YOUR_TEXT --output vectors.bin",
        err=True,
    )


def _write(labels: dict[str, str], collect: str | None, documents: str | None) -> None:
    sizes = Counter(labels.values())
    with optional_write(collect) as text, optional_write(documents) as labeled:
        for line, label in labels.items():
            if text:
                text.write(f"{line}\n".encode())
            if labeled and sizes[label] >= LABEL_MIN:
                labeled.write(f"{label}\t{line}\n".encode())


def paragraphs_with_labels() -> dict[str, str]:
    """Return the distinct paragraphs of the installed documentation, each with a label."""
    labels: dict[str, str] = {}
    for folder in folders():
        for label, text in _texts(folder):
            for line in _paragraphs(text):
                labels.setdefault(line, label)
    if not labels:
        raise CorpusError(
            f"{folders()[0]} contains no documentation to train on; pass a text file as CORPUS"
        )
    return labels


def folders() -> list[Path]:
    """Return the folders of Python's standard library, numpy and scipy."""
    import numpy
    import scipy

    packages = [Path(str(one.__file__)).parent for one in (numpy, scipy)]
    return [Path(sysconfig.get_path("stdlib")), *packages]


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield labeled texts from the text files and Python files below a folder."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if LEFT_OUT.intersection(parts):
            continue
        names = [folder.name, *parts] if folder.name in ("numpy", "scipy") else list(parts)
        label = ".".join(names[:2] if names[0] == folder.name else names[:1]).removesuffix(".py")
        with contextlib.suppress(OSError):
            if path.suffix in (".txt", ".rst", ".md"):
                yield label, path.read_text(encoding="utf-8", errors="replace")
            elif path.suffix in (".py", ".pyi"):
                yield from ((label, text) for text in _strings(path))


def _strings(path: Path) -> Iterator[str]:
    """Yield the string literals in a Python file, most of which are documentation."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _paragraphs(text: str) -> Iterator[str]:
    """Yield a text's paragraphs with at least five words, lowercased and without code examples."""
    for block in re.split(r"\n\s*\n", text):
        lines = (one for one in block.splitlines() if not one.lstrip().startswith((">>>", "...")))
        words = WORD.findall(" ".join(lines).lower())
        if len(words) >= 5:
            yield " ".join(words)


# Maps each optional package to the feature that requires it.
OPTIONAL = {
    "zstandard": "input compressed with zstd",
    "pyarrow": "input from Parquet and Arrow",
    "boto3": "input from s3:// addresses",
    "requests": "input from http:// addresses",
    "scikit-learn": "estimators in scikit-learn's pipelines",
    "distributed": "training on a cluster",
    "cryptography": "encrypted connections between workers",
    "matplotlib": "plots",
    "openTSNE": "plots and explore by t-SNE",
    "tokenizers": "reading tokenizers that other programs wrote",
}


@command(example="dcme-w2v doctor")
@json_option
def doctor(as_json: bool) -> None:
    """Print the version, CPU kernels, number of threads, memory limit and optional packages."""
    found = _found()
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if not isinstance(value, dict):
            click.echo(f"{name}: {', '.join(value) if isinstance(value, list) else value}")
    for name, version in found["packages"].items():
        click.echo(f"{name}: {version or f'not installed: pip install {name}'} ({OPTIONAL[name]})")


def _found() -> dict[str, Any]:
    import numpy as np
    import scipy

    from dcme_w2v import __version__
    from dcme_w2v._core.models import KERNELS
    from dcme_w2v.platform import default_threads, memory_limit
    from dcme_w2v.training.trainer import kernels_named

    return {
        "dcme-w2v": __version__,
        "python": f"{platform.python_version()} {sys.executable}",
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "system": platform.platform(),
        "kernels": KERNELS,
        "chosen kernels": kernels_named(),
        "threads": default_threads(),
        "memory bytes": memory_limit(),
        "packages": {name: _version(name) for name in OPTIONAL},
    }


def _version(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None
