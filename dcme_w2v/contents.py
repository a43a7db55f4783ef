"""Load or describe word vectors, models and checkpoint folders (`load` and `info`).

Both functions detect the kind of a file from its content.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.formats.artifact import (
    OF_CLASSES,
    command_of,
    kind_of_artifact,
    load_artifact,
    read_artifact,
)
from dcme_w2v.formats.vectors.static_folder import is_static_folder
from dcme_w2v.formats.vectors.vectors_io import CHECKPOINT, KIND, read_manifest
from dcme_w2v.formats.vectors.vectors_reader import kind_of_file, open_rows
from dcme_w2v.platform import PathLike, path_name
from dcme_w2v.training.checkpoint_folder import generations_in
from dcme_w2v.words.vectors import Vectors

Facts = dict[str, Any]
SHOWN = 10  # maximum number of list entries to print


def load(path: PathLike) -> Any:
    """Load word vectors or a model of any kind.

    Parameters
    ----------
    path : path
        Word vectors in any format, or a model.

    Returns
    -------
    Vectors or model
        `Vectors` for word vectors and for files of ``train --output-tables``, `TextClassifier` for
        a ``classify`` model trained on texts, and `Search` for a ``search`` index. Other models
        that predict classes have ``predict(texts)``, ``predict_top(texts, topn)``,
        ``explain(label)`` and ``classes_``, as `TextClassifier` has. An ``scdv`` model has
        ``transform(texts)``, which takes UTF-8 bytes and yields a few hundred rows at a time.

    Raises
    ------
    FormatError
        The file contains neither vectors nor a model, or is corrupt.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> dw.Vectors(["tea", "coffee"], [[1, 0], [2, 1]]).save("v.txt")
    >>> dw.load("v.txt")
    Vectors(2 words, 2 dimensions)
    """
    kind = kind_of_artifact(path)
    if kind in (None, CHECKPOINT):
        return Vectors.load(path)
    model = load_artifact(path)
    if kind not in OF_CLASSES or not model.is_of_texts:
        return model
    from dcme_w2v.classify.text_classifier import TextClassifier

    return TextClassifier.of(model)


def info(path: PathLike) -> Facts:
    """Describe the contents of a file or folder.

    Parameters
    ----------
    path : path
        A file or folder with word vectors, a model or checkpoints.

    Returns
    -------
    dict
        A dict with the keys ``file`` and ``kind``, and other keys that depend on the kind. If the
        file records the command line that created it, ``made_by`` is this command line.

    Raises
    ------
    FormatError
        The path does not contain word vectors, a model or checkpoints, or is corrupt.
    UsageError
        The path is a stream, such as a pipe.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> dw.Vectors(["tea", "coffee"], [[1, 0], [2, 1]]).save("v.txt")
    >>> dw.info("v.txt")["kind"], dw.info("v.txt")["rows"]
    ('word vectors', 2)
    """
    name = path_name(path)
    if is_stream(name):
        raise UsageError(f"{name} is a stream, which info cannot read; save the data to a file")
    more: Facts = {}
    if Path(name).is_dir() and not is_static_folder(name):
        generations = generations_in(Path(name))
        if not generations:
            raise FormatError(
                f"{name} is a folder without checkpoints or static embeddings; use a vector file "
                "or a model file"
            )
        more["generations"] = [one.name for one in generations]
        name = str(generations[-1])
    kind = kind_of_artifact(name)
    if kind not in (None, KIND):
        record, arrays = read_artifact(name)
        found = record | more | {"kind": f"model: {kind}"}
        found["arrays"] = {key: f"{one.dtype} {one.shape}" for key, one in arrays.items()}
    else:
        found = _vectors(name)
        if kind is not None:
            found.setdefault("argv", read_artifact(name)[0].get("argv"))
    facts: Facts = {"file": name, "kind": found.pop("kind")}
    if (command := command_of(found.pop("argv", None))) is not None:
        facts["made_by"] = command
    return facts | {key: value for key, value in found.items() if value is not None}


def _vectors(path: str) -> Facts:
    """Describe a word-vector file based on its header and its manifest."""
    kind = "folder" if Path(path).is_dir() else kind_of_file(path)
    facts: Facts = {"kind": "word vectors", "format": kind}
    if kind is None:
        with open_rows(path) as reader:
            facts["format"] = "binary" if reader.binary else "text"
            return facts | {
                "rows": reader.promised,
                "dimension": reader.dim,
                **(read_manifest(path) or {}),
            }
    found = Vectors.load(path)
    return facts | {"rows": len(found), "dimension": found.dim, **(found.manifest or {})}


# ---- text ----


def as_text(facts: Mapping[str, Any], indent: str = "") -> str:
    """Format a mapping as ``key: value`` lines, with nested mappings indented below their keys."""
    lines = []
    for key, value in facts.items():
        name = f"{indent}{_printable(key.replace('_', ' '))}"
        if isinstance(value, Mapping) and value:
            lines += [f"{name}:", as_text(value, indent + "  ")]
        else:
            lines.append(f"{name}: {_shown(value)}")
    return "\n".join(lines)


def _shown(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not given"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        more = f" ... ({len(value)} in total)" if len(value) > SHOWN else ""
        return ", ".join(_shown(one) for one in value[:SHOWN]) + more
    if isinstance(value, Mapping):
        return ", ".join(f"{_printable(key)} {_shown(one)}" for key, one in value.items())
    return _printable(str(value))


def _printable(text: str) -> str:
    """Escape control characters, because a terminal would interpret them."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
