"""The command ``doctor``: facts about the machine for bug reports."""

import contextlib
import importlib.metadata
import platform
import sys
from typing import Any

import click

from .command import Command
from .options import json_option
from .streams import print_json

# Package -> what it adds.
OPTIONAL = {
    "zstandard": "input compressed with zstd",
    "pyarrow": "input from Parquet and Arrow",
    "boto3": "input from s3:// addresses",
    "requests": "input from http:// addresses",
    "scikit-learn": "estimators in scikit-learn's pipelines",
    "distributed": "training on a cluster",
    "cryptography": "encrypted connections of workers",
    "usearch": "neighbors --index",
    "matplotlib": "plots",
    "openTSNE": "plots and explore by t-SNE",
    "tokenizers": "tokenizers that other programs wrote",
}


@click.command(cls=Command, example="dcme-w2v doctor")
@json_option
def doctor(as_json: bool) -> None:
    """Print the version, the kernels, the threads, the memory and the optional packages."""
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
    from dcme_w2v._core.train import has_kernels
    from dcme_w2v.declarations import default_threads
    from dcme_w2v.numeric.core import INSTRUCTION_SETS, kernels_named
    from dcme_w2v.numeric.memory import memory_limit

    kernels = [name for name in INSTRUCTION_SETS if has_kernels(name)]
    return {
        "dcme-w2v": __version__,
        "python": f"{platform.python_version()} {sys.executable}",
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "system": platform.platform(),
        "kernels": kernels,
        "chosen kernels": kernels_named() or kernels[-1],
        "threads": default_threads(),
        "memory bytes": memory_limit(),
        "packages": {name: _version(name) for name in OPTIONAL},
    }


def _version(package: str) -> str | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    return None
