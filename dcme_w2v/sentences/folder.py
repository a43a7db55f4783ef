"""Write pooled word vectors as a static-embedding folder.

sentence-transformers and model2vec average the rows of a text's tokens; with the pooled rows, this
mean equals the sentence vector of ``--pooling static``.
"""

import json
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from dcme_w2v import __version__
from dcme_w2v.declarations import check_choice, whole_number
from dcme_w2v.errors import UsageError
from dcme_w2v.files.paths import FOLDER, READS, guard
from dcme_w2v.formats.artifact import command_of, recorded_arguments
from dcme_w2v.formats.vectors.static_folder import check_static_target, save_static_folder
from dcme_w2v.platform import PathLike, path_name
from dcme_w2v.text.tokenizer import ENTRY, TokenizeLike
from dcme_w2v.words.convert import as_int8
from dcme_w2v.words.vectors import Vectors, for_text

from .pooling import Pooling
from .table import pooled_rows

POOLED = {
    "static": "whitening by the square root of frequencies, unit rows drawn to beginnings of "
    "words, SIF weights, idf^0.5",
    "mean": "mean",
}
NUMBERS = ("float32", "float16", "int8")


def save_sentence_model(
    vectors: PathLike | Vectors,
    folder: PathLike,
    *,
    tokenize: TokenizeLike = None,
    dim: int | None = None,
    limit: int | None = None,
    numbers: str = "float32",
    pooling: str = "static",
) -> Vectors:
    """Write vectors as a folder that sentence-transformers and model2vec can load.

    Parameters
    ----------
    vectors : path or Vectors
        Word vectors. Without word counts, vectors are assumed to be in descending order of word
        frequency.
    folder : path
        Folder to write atomically. An existing folder is replaced only if this function wrote the
        existing folder.
    tokenize : {"whitespace", "words"} or dict, optional
        How programs that load the folder split text into tokens. By default, text is split in the
        same way as the training text of the vectors, which is recognized if it was lowercase
        without punctuation. A dict sets options of "words": ``{"keep_case": True}``.
    dim : int, optional
        Keep only this number of dimensions: those with the highest variance.
    limit : int, optional
        Keep only this number of words: the first words of `vectors`.
    numbers : {"float32", "float16", "int8"}
        Number format of the vectors. With int8, the folder contains a scale for each row, which
        older versions of sentence-transformers cannot read.
    pooling : {"static", "mean"}
        ``static`` is best for sentences; ``mean`` stores the vectors unchanged, so that words or
        IDs keep their nearest neighbors.

    Returns
    -------
    Vectors
        The words and word pieces in the folder, with their vectors before rounding to `numbers`.

    Raises
    ------
    UsageError
        `folder` exists and contains something that this function did not write.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> words, rows = ["tea", "green", "car"], [[2, 0], [2, 1], [0, 2]]
    >>> dw.save_sentence_model(dw.Vectors(words, rows, counts=[5, 3, 2]), "model")
    Vectors(37 words, 2 dimensions)
    >>> dw.Vectors.load("model").words[:5]
    Words(['tea', 'green', 'car', '0', '1']; 5 words)
    """
    check_choice("numbers", numbers, NUMBERS)
    check_choice("--pooling", pooling, POOLED)
    for name, count in (("dim", dim), ("limit", limit)):
        if count is not None:
            whole_number(name, count)
    source = None if isinstance(vectors, Vectors) else path_name(vectors)
    guard((READS, "IN", source), (FOLDER, "OUT", folder))
    check_static_target(path_name(folder))
    loaded = for_text(vectors, tokenize)
    manifest = loaded.manifest or {}
    if manifest.get("pooled"):
        raise UsageError(
            f"{source or 'vectors'}: the vectors are already pooled; use the original word vectors"
        )
    tokenizer = loaded.tokenizer
    pooled = Pooling.of(pooling, loaded.vectors, loaded.counts, dim)
    words, rows, _ = pooled_rows(pooled, loaded, limit)
    layout = tokenizer.to_json(words)
    table = np.zeros((len(layout["model"]["vocab"]), rows.shape[1]), dtype=np.float32)
    table[: len(rows)] = rows
    codes, scales = as_int8(table) if numbers == "int8" else (table.astype(numbers), None)
    made = {
        "options": {},
        **manifest,
        "version": __version__,
        "tokenizer": tokenizer.entry().get(ENTRY),
    }
    made["pooling"] = POOLED[pooling]
    made["pieces"] = pooled.axes is not None
    text = _card(PurePath(folder).name, rows.shape, POOLED[pooling], manifest)
    save_static_folder(folder, layout, codes, scales, made, text)
    return Vectors(words, rows, manifest={**made, "pooled": True})


def _card(
    name: str,
    shape: tuple[int, ...],
    pooling: str,
    manifest: Mapping[str, Any],
) -> str:
    """Return the text of the model card: a YAML header followed by Markdown."""
    tags = ["sentence-transformers", "model2vec", "static-embeddings", "dcme-w2v"]
    head = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": tags,
    }
    # Write values as JSON strings, which are also valid YAML.
    lines = [f"{key}: {json.dumps(value)}" for key, value in head.items()]
    lines = ["---", *lines, "---", f"# {_plain(name) or 'Static embeddings'}", ""]
    lines += [
        f"Static embeddings of {shape[0]:,} words with {shape[1]} dimensions, made by dcme-w2v "
        f"{__version__}.",
        f"A sentence vector is the mean of the rows of its words; pooling: {pooling}.",
        "",
        "```python",
        "from sentence_transformers import SentenceTransformer",
        f'model = SentenceTransformer("{_plain(name)}")',
        "from model2vec import StaticModel",
        f'model = StaticModel.from_pretrained("{_plain(name)}")',
        "```",
    ]
    corpus = manifest.get("corpus")
    if isinstance(corpus, list) and corpus:
        lines += ["", "## Data", ""]
        for one in corpus:  # `corpus` may be invalid, because users can edit the manifest
            path, size = (
                (one.get("path"), one.get("bytes")) if isinstance(one, dict) else (None,) * 2
            )
            if isinstance(path, str):
                end = f", {size:,} bytes" if isinstance(size, int) else ""
                lines.append(f"- {_plain(PurePath(path).name)}{end}")
    commands = [command_of(manifest.get("argv")), command_of(recorded_arguments())]
    if any(commands):
        lines += ["", "## Commands", "", *(f"    {_plain(one)}" for one in commands if one)]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Convert text to one line that can be encoded as UTF-8."""
    return " ".join(text.split()).encode(errors="replace").decode()
