"""`SentenceEncoder`: sentence vectors as a scikit-learn transformer, and its streaming core."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dcme_w2v.errors import CorpusError, FormatError, UsageError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.formats.vectors.manifest import read_manifest
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.numeric.sklearn_base import (
    BaseEstimator,
    TransformerMixin,
    check_fitted,
    options_of,
    parameters,
)
from dcme_w2v.sentences.options import EncodeOptions
from dcme_w2v.sentences.pooling import Components, Pooling
from dcme_w2v.text.token_ids import Batch, Numbering
from dcme_w2v.text.tokenizer import Tokenizer
from dcme_w2v.words.vectors import Vectors

_BLOCK_BYTES = 1 << 20


class SentenceTable:
    """Encodes sentences by the rows of their words.

    Parameters
    ----------
    vectors : Vectors
        With counts, except for the pooling ``mean``.
    options : EncodeOptions
    tokenizer : Tokenizer, optional
        Default: the one that the manifest of the vectors names, else whitespace.

    Attributes
    ----------
    rows : ndarray of float32, shape (n, k)
        The rows of the words of the vocabulary.
    """

    def __init__(
        self, vectors: Vectors, options: EncodeOptions, tokenizer: Tokenizer | None = None
    ) -> None:
        manifest = vectors.manifest or {}
        self.tokenizer = tokenizer or _tokenizer_of(manifest)
        kind = options.pooling
        if manifest.get("pooled"):
            if kind not in ("static", "mean") or options.dim is not None:
                raise UsageError(
                    f"--pooling={kind}: the rows of this folder have a pooling already; leave out "
                    "--pooling and --dim, or give the word vectors"
                )
            kind = "mean"
        self.pooling = Pooling.of(kind, vectors.vectors, vectors.counts, options.dim)
        self.rows = np.ascontiguousarray(self.pooling.rows(vectors.vectors))
        self._subwords = vectors.subwords
        self._numbering = Numbering(vectors.words, tokenizer=self.tokenizer)

    def encode(
        self, blocks: Iterable[bytes], threads: int | None = None
    ) -> Iterator[NDArray[np.float32]]:
        """Encode blocks of lines, each line with its line feed.

        Yields
        ------
        ndarray of float32, shape (lines of the block, k)
            A sentence without any known word is a row of zeros.
        """
        batches = (self._batch(block) for block in blocks)
        yield from ordered_map(self._pooled, batches, threads)

    def _batch(self, block: bytes) -> tuple[Batch, NDArray[np.float32]]:
        """Return the word ids of a block, and the rows of unseen words by their subwords."""
        batch = self._numbering.lines(block)
        unseen = np.empty((0, self.rows.shape[1]), dtype=np.float32)
        if self._subwords is not None and len(batch.ids):
            new = np.unique(batch.ids)
            new = new[new >= len(self.rows)]
            if len(new):
                words = self._numbering.words_of(new.astype(np.int64))
                unseen = self.pooling.unseen_rows(self._subwords.vectors_of(words))
                ranks = np.searchsorted(new, batch.ids) + len(self.rows)
                ids = np.where(batch.ids >= len(self.rows), ranks, batch.ids)
                batch = Batch(batch.starts, ids.astype(np.uint32))
        return batch, unseen

    def _pooled(self, numbered: tuple[Batch, NDArray[np.float32]]) -> NDArray[np.float32]:
        """Return the mean of the rows of the known words of each line."""
        batch, unseen = numbered
        table = self.rows if not len(unseen) else np.concatenate([self.rows, unseen])
        known = batch.ids < len(table)
        kept = np.zeros(len(batch.ids) + 1, dtype=np.int64)
        np.cumsum(known, out=kept[1:])
        starts = kept[batch.starts]
        lengths = np.diff(starts)
        shares = np.repeat((1 / np.maximum(lengths, 1)).astype(np.float32), lengths)
        ids = batch.ids[known].astype(np.int64)
        counts = sparse.csr_matrix((shares, ids, starts), shape=(len(batch), len(table)))
        return np.asarray(counts @ table)


@parameters(EncodeOptions, first={"vectors": None}, last={"tokenize": None, "threads": None})
class SentenceEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Sentence vectors: the mean of the pooled rows of the words.

    Parameters
    ----------
    vectors : path or Vectors
        Word vectors with counts. A path is read by `fit`.
    {options}
    tokenize : {"whitespace", "words"} or TokenizerOptions, optional
        How sentences are split. Default: as the text that the vectors were trained on.
    threads : int, optional
        Default: the CPUs that this process may use. Results do not depend on it.

    Attributes
    ----------
    n_features_out_ : int
        Number of columns.

    Notes
    -----
    With ``pooling="usif"``, `fit` finds the components that the given sentences share, and
    `transform` removes them.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> words, rows = ["tea", "green", "car"], [[2, 0], [2, 1], [0, 2]]
    >>> vectors = dw.Vectors(words, rows, counts=[5, 3, 2])
    >>> dw.SentenceEncoder(vectors, pooling="mean").fit_transform(["green tea", "car", "?"])
    array([[2. , 0.5],
           [0. , 2. ],
           [0. , 0. ]], dtype=float32)
    """

    def fit(self, X: Iterable[str | bytes], y: Any = None) -> SentenceEncoder:
        """Read the vectors and make their rows; only uSIF learns from the sentences X.

        Parameters
        ----------
        X : iterable of str or bytes
            Sentences.
        y : ignored

        Raises
        ------
        ValueError
            A parameter is not valid, or X has items that are not texts.
        """
        self._fitted(X)
        return self

    def fit_transform(self, X: Iterable[str | bytes], y: Any = None) -> NDArray[np.float32]:
        """Fit, and return the vectors of the same sentences."""
        rows = self._fitted(X)
        return rows if self._components is None else self._components.removed_from(rows)

    def transform(self, X: Iterable[str | bytes]) -> NDArray[np.float32]:
        """Return the vectors of sentences, float32, shape (sentences, n_features_out_)."""
        check_fitted(self, "n_features_out_")
        rows = self._encoded(X)
        return rows if self._components is None else self._components.removed_from(rows)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return names of the columns: ``sentence0``, ``sentence1`` and so on."""
        check_fitted(self, "n_features_out_")
        return np.array([f"sentence{i}" for i in range(self.n_features_out_)], dtype=object)

    def _fitted(self, X: Iterable[str | bytes]) -> NDArray[np.float32]:
        if self.vectors is None:
            raise ValueError("SentenceEncoder needs vectors: SentenceEncoder(path or Vectors)")
        options = options_of(self)
        self._table = SentenceTable(
            with_manifest(self.vectors), options, Tokenizer.of(self.tokenize)
        )
        self.n_features_out_ = int(self._table.rows.shape[1])
        self._components: Components | None = None
        rows = self._encoded(X)
        if options.pooling == "usif":
            self._components = Components.of_products(rows.T.astype(np.float64) @ rows)
        return rows

    def _encoded(self, X: Iterable[str | bytes]) -> NDArray[np.float32]:
        parts = self._table.encode(blocks_of(X), self.threads)
        nothing = np.empty((0, self.n_features_out_), dtype=np.float32)
        return np.concatenate([nothing, *parts])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_out_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.no_validation = True
        tags.transformer_tags.preserves_dtype = []  # rows are float32
        return tags


def with_manifest(vectors: str | os.PathLike[str] | Vectors) -> Vectors:
    """Return vectors, loaded if they are a path, with the manifest beside the file."""
    if isinstance(vectors, Vectors):
        return vectors
    loaded, name = Vectors.load(vectors), os.fspath(vectors)
    if loaded.manifest is None and not is_stream(name):
        loaded.manifest = read_manifest(name) or None
    return loaded


class LibraryTokenizer:
    """The tokeniser of a tokenizer.json, by Hugging Face's tokenizers."""

    is_whitespace = False

    def __init__(self, path: str) -> None:
        try:
            from tokenizers import Tokenizer as Loaded
        except ImportError:
            raise UsageError(
                f"{path}: this tokeniser needs the package tokenizers: pip install tokenizers"
            ) from None
        try:
            self._loaded = Loaded.from_file(path)
        except Exception as error:  # what tokenizers raises
            raise FormatError(f"{path}: {str(error).splitlines()[0]}; write it again") from None
        self._loaded.no_truncation()
        self._loaded.no_padding()
        model = json.loads(self._loaded.to_str())["model"]
        self._unknown = model.get("unk_id")
        if self._unknown is None and model.get("unk_token") is not None:
            self._unknown = self._loaded.token_to_id(model["unk_token"])

    def tokenize(self, text: bytes | memoryview) -> tuple[bytes, int]:
        """Return tokens separated by spaces, line by line; see `Tokenizer.tokenize`."""
        lines = bytes(text).decode(errors="replace").split("\n")[:-1]
        found = self._loaded.encode_batch(lines, add_special_tokens=False)
        kept = (
            [token for token, id in zip(one.tokens, one.ids, strict=True) if id != self._unknown]
            for one in found
        )
        # A token with white space is no word.
        rows = (" ".join(token for token in one if token.split() == [token]) for one in kept)
        return "".join(f"{row}\n" for row in rows).encode(), -1


def _tokenizer_of(manifest: Mapping[str, Any]) -> Tokenizer | LibraryTokenizer:
    if file := manifest.get("tokenizer_file"):
        return LibraryTokenizer(file)
    return Tokenizer.of_entry(manifest)


def blocks_of(texts: Iterable[str | bytes]) -> Iterator[bytes]:
    """Yield texts as lines, a block at a time; line ends inside of a text become spaces."""
    if isinstance(texts, str | bytes):
        raise ValueError("give an iterable of sentences, not one sentence")
    if len(getattr(texts, "shape", (0,))) != 1:
        raise ValueError("give sentences of one dimension, as one column of a DataFrame")
    held: list[bytes] = []
    size = 0
    for number, text in enumerate(texts):
        if isinstance(text, str):
            text = text.encode("utf-8", "replace")
        elif not isinstance(text, bytes):
            kind = type(text).__name__
            raise ValueError(f"sentence {number} is a {kind}; give str or bytes")
        if b"\0" in text:
            raise CorpusError(f"sentence {number} has a NUL character; give text")
        held.append(text.replace(b"\n", b" ") + b"\n")
        size += len(text)
        if size >= _BLOCK_BYTES:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
