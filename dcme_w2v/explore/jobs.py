"""Makes the page of one or two files."""

import os
from collections.abc import Sequence

from dcme_w2v.errors import UsageError
from dcme_w2v.files.compress import uncompressed_name
from dcme_w2v.files.paths import Paths
from dcme_w2v.formats.vectors.sidecars import read_with
from dcme_w2v.platform import PathLike
from dcme_w2v.plots.layout import ITERATIONS, check_method
from dcme_w2v.training.progress import Quiet, Reporter
from dcme_w2v.words.quantize import agreement, as_int8

from .items import read_items
from .page import layout_of, write_page

MAX_FILES = 2


def explore_page(
    files: PathLike | Sequence[PathLike],
    output: PathLike,
    *,
    labels: str | None = None,
    color: int = 1,
    limit: int = 50_000,
    method: str = "tsne",
    seed: int = 1,
    reporter: Reporter | None = None,
) -> None:
    """Write a page of HTML to explore vectors: neighbors, analogies and a map.

    Parameters
    ----------
    files : path or sequence of paths
        One or two files of word vectors, or of rows of documents (.npz, .svm).
    output : str
        The page; ``-`` is standard output.
    labels : str, optional
        A file with a line for each row, with columns separated by tabs.
    color, limit : int
        Column of the labels, from 1, that colors the points; number of rows of each file.
    method : {"tsne", "pca"}
        Projection of the map.
    seed : int
    reporter : Reporter, optional

    Raises
    ------
    UsageError
        There are more than two files, or the name of `output` has the suffix of another format.
    DcmeError
        openTSNE is not installed (extra ``explore``) and the method is t-SNE.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.train("corpus.txt", dim=8, epochs=1, threads=1, output="v.npy")
    >>> dw.explore_page("v.npy", "page.html", method="pca")
    """
    listed = [files] if isinstance(files, str | os.PathLike) else files
    sources, output = [os.fspath(path) for path in listed], os.fspath(output)
    beside = [one for path in sources for one in read_with(path)]
    paths = Paths().reads("VECTORS", *sources, sidecars=beside)
    paths.reads("--labels", labels).writes("--output", output).check()
    _check(sources, output, method)
    reporter = reporter or Quiet()
    every, layouts = [read_items(path, labels, color, limit, seed) for path in sources], []
    for path, items in zip(sources, every, strict=True):
        reporter.stage(f"map of {path}", ITERATIONS if method == "tsne" else None, "iterations")
        layouts.append(layout_of(items, method, seed, reporter.advance))
    size = write_page(output, every, layouts, seed)
    for items in every:
        share = 100 * agreement(items.matrix, as_int8(items.matrix)[0], seed)
        reporter.message(
            f"{items.title}: {len(items.names):,} rows; 10 nearest neighbors by the page's 8-bit "
            f"vectors agree to {share:.1f} %"
        )
    reporter.message(f"page: {output}, {size / 1e6:.1f} MB")


def _check(sources: Sequence[str], output: str, method: str) -> None:
    """Raise `UsageError` for a number of files, a name of a page or a method that is not valid."""
    check_method(method)
    if not 1 <= len(sources) <= MAX_FILES:
        raise UsageError(f"{len(sources)} files; give one, or two to compare")
    if uncompressed_name(output).suffix.lower() not in ("", ".html", ".htm"):
        raise UsageError(f"{output}: name a file that ends in .html, or - for standard output")
