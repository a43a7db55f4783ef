"""The manifest of a vector file: how the vectors were made, with the command line."""

import json
import os
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dcme_w2v import __version__
from dcme_w2v.errors import FormatError, warn, without_secrets
from dcme_w2v.files.atomic import atomic_write, is_stream
from dcme_w2v.files.opening import read_json
from dcme_w2v.platform import PathLike, peak_memory

from ..artifact import recorded_arguments

MANIFEST = ".json"  # follows the name of the vector file


def manifest_of(
    options: Mapping[str, Any],
    corpus: Iterable[tuple[str, int | None]],
    vocabulary: int,
    tokens: Mapping[str, int],
    seconds: Mapping[str, float],
    loss: float | None,
    **more: Any,
) -> dict[str, Any]:
    """Return the manifest of a training run.

    Parameters
    ----------
    options : mapping
        The options as used, with derived values filled in.
    corpus : iterable of (path, bytes)
        The files that were read, and their sizes; None for streams.
    vocabulary : int
        Number of words.
    tokens : mapping of str to int
        `corpus`: tokens of one pass over the corpus. The others are counts of all epochs and add
        up to `corpus` times epochs: `trained` targets, `out_of_vocabulary` tokens, tokens that
        were dropped by subsampling (`subsampled`), targets without context words
        (`without_context`), and `held_out` tokens.
    seconds : mapping of str to float
        Wall time: `count` of counting words, `train` of training, `total`.
    loss : float, optional
        Mean loss of the last epoch.
    **more
        Further keys, such as held-out scores.
    """
    system = platform.uname()  # its `processor` would start another process
    return {
        "version": __version__,
        "options": {
            name: without_secrets(value) if isinstance(value, str) else value
            for name, value in options.items()
        },
        "corpus": [{"path": without_secrets(path), "bytes": size} for path, size in corpus],
        "vocabulary": vocabulary,
        "tokens": dict(tokens),
        **{f"{name}_seconds": round(value, 3) for name, value in seconds.items()},
        "peak_memory_bytes": peak_memory(),
        "loss": loss,
        "argv": recorded_arguments(),
        "python": platform.python_version(),
        "platform": f"{system.system}-{system.release}-{system.machine}",
        **more,
    }


def write_manifest(manifest: Mapping[str, Any] | None, path: PathLike) -> None:
    """Write the manifest to PATH.json; commands also work without it.

    Nothing is written for a stream or for vectors without a manifest. A file of another kind is
    not replaced.
    """
    if manifest is None or is_stream(path):
        return
    target = Path(f"{os.fspath(path)}{MANIFEST}")
    if target.exists() and target.stat().st_size and read_manifest(path) is None:
        warn(f"{target}: is not a manifest and was not replaced; the manifest was not written")
        return
    with atomic_write(target) as file:
        file.write(json.dumps(manifest, indent=2, allow_nan=False).encode() + b"\n")


def read_manifest(path: PathLike) -> dict[str, Any] | None:
    """Return the manifest in PATH.json; None if there is no such file or it is not one."""
    try:
        found = read_json(f"{os.fspath(path)}{MANIFEST}", "remove it")
    except (OSError, FormatError):
        return None
    return found if isinstance(found.get("options"), dict) else None


def audit_line(manifest: Mapping[str, Any]) -> str:
    """Return the token counts as one line; tokens that the counts miss are named."""
    tokens = manifest["tokens"]
    read = tokens["corpus"] * manifest["options"]["epochs"]
    parts = ["trained", "out_of_vocabulary", "subsampled", "without_context"]
    parts += ["held_out"] * (tokens["held_out"] > 0)
    account = " + ".join(f"{tokens[part]:,} {part.replace('_', ' ')}" for part in parts)
    lost = read - sum(tokens[part] for part in parts)
    return f"tokens: {read:,} read = {account}" + (f" + {lost:,} unaccounted for" if lost else "")
