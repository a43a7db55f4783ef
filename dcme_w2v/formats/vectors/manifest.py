"""The manifest of a file of vectors: how it was made, with the command line."""

import contextlib
import dataclasses
import json
import os
import platform
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from dcme_w2v import __version__
from dcme_w2v.errors import FormatError
from dcme_w2v.files.atomic import atomic_write, is_stream
from dcme_w2v.files.opening import read_json
from dcme_w2v.platform import PathLike, peak_memory

_PROGRAM = "dcme-w2v"


def recorded_arguments() -> list[str] | None:
    """Return the arguments of this process if it is the program, None if it is another."""
    if not sys.argv or not _is_program(sys.argv[0]):
        return None
    return [os.fsencode(one).decode("utf-8", "replace") for one in sys.argv]


def command_of(arguments: Any) -> str | None:
    """Return recorded arguments as a command line of the shell; None if there are none."""
    if not isinstance(arguments, list) or not all(type(one) is str for one in arguments):
        return None
    if not arguments:
        return None
    program = _PROGRAM if _is_program(arguments[0]) else arguments[0]
    return shlex.join([program, *arguments[1:]])


def _is_program(path: str) -> bool:
    parts = PurePath(path).parts[-2:]
    return parts[-1:] == (_PROGRAM,) or parts == ("dcme_w2v", "__main__.py")


MANIFEST = ".json"  # behind the name of the vectors


def manifest_of(
    options: Iterable[Any],
    corpus: Iterable[tuple[str, int | None]],
    vocabulary: int,
    tokens: Mapping[str, int],
    seconds: Mapping[str, float],
    loss: float | None,
    **more: Any,
) -> dict[str, Any]:
    """Return the manifest.

    Parameters
    ----------
    options : iterable of dataclass objects
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
        Further keys, such as the figures of held-out text.
    """
    return {
        "version": __version__,
        "options": {
            name: value for part in options for name, value in dataclasses.asdict(part).items()
        },
        "corpus": [{"path": path, "bytes": size} for path, size in corpus],
        "vocabulary": vocabulary,
        "tokens": dict(tokens),
        **{f"{name}_seconds": round(value, 3) for name, value in seconds.items()},
        "peak_memory_bytes": peak_memory(),
        "loss": loss,
        "argv": recorded_arguments(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        **more,
    }


def sidecars_of(vectors: str | None, context: str | None, vocabulary: str | None) -> dict[str, str]:
    """Return the paths of the other files of a model, relative to the vectors' folder."""
    if vectors is None or is_stream(vectors):
        return {}
    folder = Path(str(vectors)).resolve().parent
    return {
        name: os.path.relpath(Path(path).resolve(), folder)
        for name, path in (("context_file", context), ("vocabulary_file", vocabulary))
        if path is not None and not is_stream(path)
    }


@contextlib.contextmanager
def writing_with(
    manifest: Mapping[str, Any] | None,
    path: PathLike,
    *beside: PathLike,
) -> Iterator[list[BinaryIO]]:
    """Open vectors and the files `beside` them, and write the manifest PATH.json.

    A stream, and vectors without a manifest, have no PATH.json.
    """
    text = None
    if manifest is not None and not is_stream(path):
        text = json.dumps(manifest, indent=2, allow_nan=False).encode() + b"\n"
    more = [] if text is None else [f"{os.fspath(path)}{MANIFEST}"]
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(atomic_write(one)) for one in (path, *beside, *more)]
        if text is not None:
            opened[-1].write(text)
        yield opened


def read_manifest(path: str) -> dict[str, Any]:
    """Return the manifest beside vectors, or nothing where there is none."""
    file = Path(f"{path}{MANIFEST}")
    if not file.exists():
        return {}
    found = read_json(file, "remove it, or train again")
    if not isinstance(found.get("options", {}), dict):
        raise FormatError(f"{file}: is not a manifest; remove it, or train again")
    return found


def audit_line(manifest: Mapping[str, Any]) -> str:
    """Return the token counts as one line, with any difference of the sums."""
    tokens = manifest["tokens"]
    read = tokens["corpus"] * manifest["options"]["epochs"]
    parts = ["trained", "out_of_vocabulary", "subsampled", "without_context"]
    parts += ["held_out"] * (tokens["held_out"] > 0)
    account = " + ".join(f"{tokens[part]:,} {part.replace('_', ' ')}" for part in parts)
    lost = read - sum(tokens[part] for part in parts)
    return f"tokens: {read:,} read = {account}" + (f" + {lost:,} unaccounted for" if lost else "")
