"""Detects formats of vectors by magic bytes, and rejects files that are not read as vectors."""

from pathlib import Path

from dcme_w2v.errors import FormatError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.platform import PathLike

from ..npy import MAGIC

FASTTEXT = (793712314).to_bytes(4, "little")  # start of fastText's .bin files
_LONGEST_HEADER = 100_000_000  # of safetensors
_PICKLE = tuple(b"\x80" + bytes([protocol]) for protocol in range(2, 6))

# Start of the file -> what it is, and what to do.
_FOREIGN: dict[tuple[bytes, ...], tuple[str, str]] = {
    (FASTTEXT,): (
        "a model of fastText",
        "give its .bin file itself, not compressed or by a pipe; convert writes its word vectors",
    ),
    _PICKLE: (
        "a Python pickle, such as gensim's save() writes, which can run code",
        "write the vectors in Python: "
        "gensim.models.KeyedVectors.load(FILE).save_word2vec_format(VECTORS, binary=True)",
    ),
    (b"\x89HDF\r\n\x1a\n",): ("an HDF5 file", "write it as text, one word and its numbers a line"),
    (b"PAR1",): ("a Parquet file", "write it as text, one word and its numbers a line"),
    (b"SQLite format 3\0",): ("an SQLite database", "write its vectors as text"),
}


def kind_of_file(path: PathLike) -> str | None:
    """Return "npy", "safetensors" or "fasttext"; None for rows of words, and for a stream."""
    if is_stream(path):
        return None
    with Path(path).open("rb") as file:
        head = file.read(16)
    for magic, kind in ((MAGIC, "npy"), (FASTTEXT, "fasttext")):
        if head.startswith(magic):
            return kind
    return "safetensors" if is_safetensors_head(head) else None


def refuse_unsupported(path: str, head: bytes) -> None:
    """Raise for the start of a file of another format.

    Raises
    ------
    FormatError
        The message names the format and what to do.
    """
    for starts, (what, remedy) in _FOREIGN.items():
        if head.startswith(starts):
            raise FormatError(f"{path}: is {what}, not word vectors; {remedy}")
    if is_safetensors_head(head):
        raise FormatError(
            f"{path}: is a safetensors file; give the file itself, not compressed or by a pipe"
        )


def is_safetensors_head(head: bytes) -> bool:
    """Return whether a file that starts so is a safetensors file: a length, then JSON."""
    return head[8:9] == b"{" and int.from_bytes(head[:8], "little") < _LONGEST_HEADER
