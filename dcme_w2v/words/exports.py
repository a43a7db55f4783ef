"""Centers and reduces word vectors, and writes them for other programs: the Embedding Projector.

Word vectors have a mean far from 0, which represents word frequency rather than meaning (Mu and
Viswanath 2018, All-but-the-Top).

The projector reads OUT, lines of numbers separated by tabs, and OUT without its suffix and with
.metadata.tsv, a word a line: see https://projector.tensorflow.org. The other format is described in
`dcme_w2v.formats.vectors.safetensors`.
"""

import contextlib
from pathlib import Path

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import atomic_write, is_stream
from dcme_w2v.files.paths import Sidecar
from dcme_w2v.formats.vectors.safetensors import write_safetensors
from dcme_w2v.formats.vectors.vectors_io import blocks_of, check_before_writing
from dcme_w2v.numeric.arrays import F32

from .neighbors import inverse_lengths
from .options import PostprocessOptions
from .quantize import agreement, as_int8, mean_cosine
from .vectors import Vectors


def centered(matrix: F32) -> F32:
    """Return vectors of shape (n, d) minus their mean vector.

    References
    ----------
    Mu and Viswanath 2018, All-but-the-Top: Simple and Effective Postprocessing for Word
    Representations, ICLR.
    """
    mean = matrix.mean(axis=0, dtype=np.float64)
    return np.asarray(matrix - mean.astype(np.float32))


def changed_by(options: PostprocessOptions, matrix: F32) -> tuple[F32, list[str]]:
    """Return vectors changed by the options of `convert`, and messages of what was lost."""
    notes = []
    if options.postprocess == "center":
        matrix = centered(matrix)
    if options.reduce is not None:
        matrix, kept = reduced(matrix, options.reduce)
        notes.append(f"{options.reduce} dimensions keep {100 * kept:.1f} % of the variance")
    if options.normalize:
        matrix = matrix * inverse_lengths(matrix)[:, None]
    return matrix, notes


def reduced(matrix: F32, dim: int) -> tuple[F32, float]:
    """Return vectors in their first principal components, and the share of variance they keep.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)
    dim : int
        At most d.

    Returns
    -------
    reduced : ndarray of float32, shape (n, dim)
        Centered.
    kept : float
    """
    if dim > matrix.shape[1]:
        raise UsageError(f"--reduce={dim}: the vectors have {matrix.shape[1]} dimensions")
    rows = centered(matrix)
    variances, directions = np.linalg.eigh((rows.T @ rows).astype(np.float64))
    kept = float(variances[-dim:].sum() / max(variances.sum(), np.finfo(np.float64).tiny))
    return rows @ directions[:, ::-1][:, :dim].astype(np.float32), kept


TARGETS = ("projector", "safetensors")
KV = (
    "--to=kv: gensim's .kv files are Python pickles, which are not written here; convert to .bin, "
    "then in Python: gensim.models.KeyedVectors.load_word2vec_format(BIN, binary=True).save(KV)"
)


def exported_with(path: str, to: str) -> list[Sidecar]:
    """Return the files that are written beside a target, whose name is checked."""
    if to != "projector" or not path:
        return []
    if is_stream(path):
        raise UsageError(f"{path}: is a stream, and projector needs two files; give a file")
    return [Sidecar(str(_metadata(path)), lambda _: Path(path).exists())]


def export(path: str, vectors: Vectors, to: str, quantize: str | None = None) -> list[str]:
    """Write vectors in a format of `TARGETS`; the write is atomic.

    Parameters
    ----------
    path : str
    vectors : Vectors
    to : str
    quantize : {"int8"}, optional
        For safetensors.

    Returns
    -------
    list of str
        Messages of what was lost.

    Raises
    ------
    FormatError
        A number is not finite, or a word cannot be written; the target is unchanged.
    """
    check_before_writing(path, vectors.words, vectors.vectors)
    words, matrix, counts = vectors.words, vectors.vectors, vectors.counts
    if to == "projector":
        _write_projector(path, vectors)
    elif quantize is None:
        write_safetensors(path, words, matrix, counts)
    else:
        codes, scales = as_int8(matrix)
        write_safetensors(path, words, matrix, counts, codes, scales)
        return [
            f"int8: mean cosine of vectors before and after {mean_cosine(matrix, codes):.6f}; 10 "
            f"nearest neighbors agree to {100 * agreement(matrix, codes):.1f} %"
        ]
    return []


def _metadata(path: str) -> Path:
    return Path(path).with_suffix(".metadata.tsv")


def _write_projector(path: str, vectors: Vectors) -> None:
    with contextlib.ExitStack() as stack:
        numbers = stack.enter_context(atomic_write(path))
        words = stack.enter_context(atomic_write(_metadata(path)))
        for _, block in blocks_of(vectors.vectors):
            for row in block:
                numbers.write(b"\t".join(b"%.7g" % number for number in row.tolist()) + b"\n")
        words.writelines(f"{word}\n".encode() for word in vectors.words)
