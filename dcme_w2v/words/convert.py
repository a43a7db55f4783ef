"""Center or reduce word vectors, and write them in the formats of other programs."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.paths import READS, WRITES, guard
from dcme_w2v.formats.vectors.vectors_io import check_target, metadata_of
from dcme_w2v.numeric.arrays import F32, I8
from dcme_w2v.numeric.nearest import nearest_rows
from dcme_w2v.numeric.parallel import blocks_of_rows, one_blas_thread
from dcme_w2v.training.progress import ProgressLike, reporting_to

from .check import load_without_faults
from .neighbors import inverse_lengths
from .options import ConvertOptions
from .vectors import Vectors

_LARGEST = 127
_SAMPLE, _K = 300, 10  # number of sampled words, and number of neighbors compared per word


def as_int8(matrix: F32) -> tuple[I8, F32]:
    """Quantize rows to int8, with a scale per row: row i is approximately ``codes[i] * scales[i]``.

    The number with the largest magnitude in a row gets the code 127 or -127. Cosines can be
    computed from the codes alone. A row of zeros has the scale 0.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)

    Returns
    -------
    codes : ndarray of int8, shape (n, d)
    scales : ndarray of float32, shape (n,)
    """
    codes = np.empty(matrix.shape, dtype=np.int8)
    scales = np.empty(len(matrix), dtype=np.float32)
    for rows in blocks_of_rows(len(matrix)):
        # Use float64, because 127 divided by a subnormal number overflows in float32.
        block = matrix[rows].astype(np.float64)
        largest = np.abs(block).max(axis=1)
        factor = _LARGEST / np.where(largest > 0, largest, 1)
        codes[rows] = np.rint(block * factor[:, None])
        scales[rows] = largest / _LARGEST
    return codes, scales


def agreement(matrix: F32, codes: I8, seed: int = 1) -> float:
    """Return the fraction of nearest neighbors that int8 quantization preserves.

    Parameters
    ----------
    matrix : ndarray of float32, shape (n, d)
    codes : ndarray of int8, shape (n, d)
    seed : int
        Seed of the sample of rows.

    Returns
    -------
    float
        Share of the 10 nearest neighbors, over 300 rows or all if there are fewer.
    """
    k = min(_K, len(matrix) - 1)
    if k < 1:
        return 1.0
    rows = np.random.default_rng(seed).permutation(len(matrix))[:_SAMPLE]
    own = [[row] for row in rows.tolist()]
    lengths = np.concatenate(
        [inverse_lengths(codes[part].astype(np.float32)) for part in blocks_of_rows(len(codes))]
    )
    # Scale the queries to unit length, so that dot products do not overflow.
    queries = matrix[rows] * inverse_lengths(matrix[rows])[:, None]
    full = nearest_rows(matrix, inverse_lengths(matrix), queries, own, k)
    less = nearest_rows(codes, lengths, codes[rows] * lengths[rows][:, None], own, k)
    common = [len({*a.tolist()} & {*b.tolist()}) for (a, _), (b, _) in zip(full, less, strict=True)]
    return sum(common) / (k * len(rows))


def centered(matrix: F32) -> F32:
    """Return vectors, shape (n, d), with their mean vector subtracted from each row.

    References
    ----------
    Mu and Viswanath 2018, All-but-the-Top: Simple and Effective Postprocessing for Word
    Representations, ICLR.
    """
    mean = matrix.mean(axis=0, dtype=np.float64)
    with np.errstate(over="ignore"):  # no check: the writer raises an error for infinite vectors
        return np.asarray(matrix - mean.astype(np.float32))


def convert(
    source: str, target: str, options: ConvertOptions, progress: ProgressLike = False
) -> Vectors:
    """Convert vectors to another format, with the requested changes; return the written vectors.

    Messages report rows that were left out and variance that was lost.

    Raises
    ------
    UsageError
        An option does not fit the format of the target, or the paths conflict.
    """
    paths = (READS, "IN", source), (WRITES, "OUT", target)
    guard(*paths)
    format = check_target(target, options.format)
    if format == "tsv":
        guard(*paths, (WRITES, "OUT", str(metadata_of(target))))
    if options.no_header and format != "text":
        raise UsageError(
            f"--no-header is supported only for text output, but {target} is not a text file; omit "
            "--no-header"
        )
    with reporting_to(progress) as reporter:
        vectors, faults = _loaded(source, options)
        for what, count in faults.items():
            reporter.message(f"{source}: rows skipped: {count:,} ({what})")
        matrix = vectors.vectors
        if options.postprocess == "center":
            matrix = centered(matrix)
        if options.reduce is not None:
            matrix, share = reduced(matrix, options.reduce)
            reporter.message(
                f"{source}: the reduction to {options.reduce} dimensions retains "
                f"{100 * share:.1f}% of the variance"
            )
        if options.unit:
            matrix = matrix * inverse_lengths(matrix)[:, None]
        if matrix is not vectors.vectors:
            vectors = vectors.changed(vectors=matrix, context=None, neighbors=None, subwords=None)
        vectors.save(target, options.format, header=not options.no_header)
    return vectors


def _loaded(source: str, options: ConvertOptions) -> tuple[Vectors, Mapping[str, int]]:
    """Read vectors and, with --invalid=skip, count the skipped rows by kind of fault."""
    if options.invalid == "error":
        return Vectors.load(source, limit=options.limit), {}
    if is_stream(source) or Path(source).is_dir():
        kind = "stream" if is_stream(source) else "folder"
        raise UsageError(
            f"--invalid: invalid rows cannot be skipped in {source}, which is a {kind}; use a "
            "word-vector file"
        )
    vectors, faults = load_without_faults(source)
    return vectors[: options.limit], faults


def reduced(matrix: F32, dim: int) -> tuple[F32, float]:
    """Reduce vectors by PCA; also return the fraction of variance that the result retains.

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
        raise UsageError(
            f"--reduce={dim}: the vectors have only {matrix.shape[1]} dimensions; lower --reduce"
        )
    scale = np.float32(max(matrix.max(), -matrix.min())) or np.float32(1)
    rows = centered(matrix / scale)  # divide by `scale`, so that products of rows do not overflow
    with one_blas_thread():
        variances, directions = np.linalg.eigh((rows.T @ rows).astype(np.float64))
        found = rows @ directions[:, ::-1][:, :dim].astype(np.float32)
    kept = float(variances[-dim:].sum() / max(variances.sum(), np.finfo(np.float64).tiny))
    with np.errstate(over="ignore"):  # no check: the writer raises an error for infinite vectors
        return found * scale, kept
