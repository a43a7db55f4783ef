"""Files of statistics, one a shard: `fuse statistics` writes them, `fuse fit` adds them.

A file names its features, classes and initial model, so that only files of the same ones are added.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.sparse_io import read_arrays, write_arrays

from .statistics import Statistics

_ARRAYS = ("joint", "counts", "prior", "about")


# What the statistics of a part belong to, as JSON, and how an error names each of it.
IDENTITY = {
    "features": "other features", "classes": "other classes", "model": "another initial model",
    "values": "another impact",
}  # fmt: skip
Identity = Mapping[str, Any]


def identity_of(
    text: TextFeatures | None, columns: int, classes: Sequence[str], model: str | None, binary: bool
) -> Identity:
    """Return the features, classes and initial model that statistics belong to.

    Parameters
    ----------
    text : TextFeatures or None
    columns : int
        Number of features.
    classes : sequence of str
    model : str or None
        Folder of the initial model; None for a model that is fitted.
    binary : bool
        Whether values of features count as 1.
    """
    return {
        "features": hash_of_features(text, columns),
        "classes": list(classes),
        "model": "fitted" if model is None else hash_of_model(model),
        "values": "binary" if binary else "values",
    }


def hash_of_features(text: TextFeatures | None, columns: int) -> str:
    """Return the hash value of the features, which turn documents into rows."""
    digest = hashlib.sha256(str(columns).encode())
    if text is not None:
        options = asdict(text.options)
        for name in asdict(text.tokenizer.options):  # older parts do not have them
            del options[name]
        options |= text.tokenizer.entry()
        digest.update(json.dumps(options, sort_keys=True).encode())
        digest.update(np.ascontiguousarray(text.idf).tobytes())
        if text.names is not None:
            digest.update(text.names.text.tobytes() + text.names.offsets.tobytes())
        if text.buckets is not None:
            digest.update(text.buckets.tobytes())
    return digest.hexdigest()


def hash_of_model(path: str) -> str:
    """Return the hash value of a model's folder."""
    digest = hashlib.sha256()
    for file in sorted(Path(path).iterdir()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.name} {content}\n".encode())
    return digest.hexdigest()


def write_part(path: str, sums: Statistics, identity: Identity) -> None:
    """Write statistics to an .npz file."""
    about = {**identity, "documents": sums.documents, "empty": sums.empty}
    text = np.frombuffer(json.dumps(about, sort_keys=True).encode(), dtype=np.uint8)
    found = (sums.joint, sums.counts, sums.prior, text)
    write_arrays(path, dict(zip(_ARRAYS, found, strict=True)))


def read_parts(paths: Sequence[str], identity: Identity) -> Statistics:
    """Return the sum of parts.

    Raises
    ------
    UsageError
        A part has other features, classes or another initial model, or is given twice.
    """
    sums: Statistics | None = None
    for number, path in enumerate(paths):
        if any(Path(path).samefile(other) for other in paths[:number]):
            raise UsageError(f"--resume-statistics={path}: is given twice")
        found = _read(path, identity)
        if sums is None:
            sums = found
        else:
            sums += found
    assert sums is not None
    return sums


def _read(path: str, identity: Identity) -> Statistics:
    arrays = read_arrays(path, _ARRAYS)
    try:
        about = json.loads(arrays["about"].tobytes())
        counts = int(about["documents"]), int(about["empty"])
        own = {name: about[name] for name in IDENTITY}
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path}: is no file of statistics ({error}); write it again") from None
    for name, what in IDENTITY.items():
        if own[name] != identity[name]:
            raise UsageError(f"--resume-statistics={path}: has statistics of {what}")
    joint, sizes = arrays["joint"], (arrays["counts"].shape, arrays["prior"].shape)
    whole = all(arrays[name].dtype == np.int64 for name in _ARRAYS[:3])
    if not whole or joint.ndim != 2 or sizes != (joint.shape[:1], joint.shape[1:]):
        raise FormatError(f"{path}: its sums do not fit together; write it again")
    found = Statistics(joint, arrays["counts"], arrays["prior"], *counts)
    if joint.shape[1] != len(identity["classes"]) or not found.is_possible():
        raise FormatError(f"{path}: its sums are wrong; write it again")
    return found
