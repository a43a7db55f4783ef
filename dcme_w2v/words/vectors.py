"""The class `Vectors`: words with vectors, in memory or memory-mapped from a file."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np

from dcme_w2v.declarations import checks_names, whole_number
from dcme_w2v.errors import FormatError, UnknownWordError, import_optional, warn
from dcme_w2v.files.paths import WRITES, guard
from dcme_w2v.formats.vectors.static_folder import is_static_folder, load_static_folder
from dcme_w2v.formats.vectors.tables import WordTables
from dcme_w2v.formats.vectors.vectors_io import READ, check_format, load_vectors, save_vectors
from dcme_w2v.formats.vectors.vectors_reader import kind_of_file
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.hints import no_attribute
from dcme_w2v.numeric.arrays import F32, F64, all_finite, check_mapped, infinite_row
from dcme_w2v.numeric.shown import table
from dcme_w2v.options import TokenizerOptions
from dcme_w2v.platform import PathLike, path_name
from dcme_w2v.text.tokenizer import ENTRY, TokenizeLike, Tokenizer

from . import neighbors
from .neighbors import Neighbor, Term

Default = TypeVar("Default")
# The first _LOOKED_AT words show whether --tokenize=words split the training text. There must be at
# least _MIN_WORDS words, and the fraction _MIN_PREPARED of them must not change when split again.
_LOOKED_AT, _MIN_WORDS, _MIN_PREPARED = 10_000, 200, 0.999
_MARK = re.compile("<.*>")  # matches a special token, such as </s> or <unk>
_SHIFT, _RAREST = 2.7, 5  # constants of Zipf's law in `counts_by_order`


class _Habits(type):
    """Metaclass that suggests an alternative for a class attribute known from another library."""

    def __getattr__(cls, name: str) -> Any:
        raise AttributeError(no_attribute(cls.__name__, name, dir(cls)))


class Vectors(WordTables, metaclass=_Habits):
    """Words and their vectors.

    `Vectors` objects are immutable: their arrays are read-only, and threads may share them.
    `changed` returns a copy with other values. Do not write to arrays that you have passed to
    `Vectors`.

    Parameters
    ----------
    words : sequence of str
        Distinct words, by convention in descending order of frequency.
    vectors : array of shape (n, d)
        Array with one vector per row. Float32 arrays are not copied, and may be views or memory
        maps.
    counts : array of int, shape (n,), optional
        Count of each word in the corpus.
    context : Vectors, optional
        The context vectors (output embeddings) of the same words.
    neighbors : tuple of two arrays of shape (n, d), optional
        For models with `word_order`: the vectors of words directly to the left and directly to the
        right of a token.
    manifest : mapping, optional
        Record of the training run that created the vectors: options, corpus, token counts, seconds
        and loss.
    subwords : Subwords, optional
        Vectors of character n-grams, from which vectors of out-of-vocabulary words are computed.

    Attributes
    ----------
    words : Words
        A compact sequence of str.
    vectors : ndarray of float32, shape (n, d)
    counts : ndarray of int64, shape (n,), or None
    context : Vectors or None
    neighbors : tuple of ndarray, or None
    manifest : dict or None
    subwords : Subwords or None

    Raises
    ------
    UsageError
        The numbers of words, vectors and counts differ, or there are no dimensions.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> v = dw.Vectors(["king", "queen", "man"], [[3, 4], [0, 2], [1, 0]], counts=[9, 5, 2])
    >>> v
    Vectors(3 words, 2 dimensions)
    >>> v["king"]
    array([3., 4.], dtype=float32)
    >>> v[["man", "queen"]].shape, "king" in v, len(v), list(v)
    ((2, 2), True, 3, ['king', 'queen', 'man'])
    >>> v[:2].words
    Words(['king', 'queen']; 2 words)
    >>> v["King"]
    Traceback (most recent call last):
      ...
    dcme_w2v.errors.UnknownWordError: 'King' is not among the 3 words; did you mean 'king'?
    """

    _inverse_lengths: F32 | None = None
    _is_finite = False  # whether all vectors are known to be finite

    # ---- files ----

    @classmethod
    @checks_names
    def load(
        cls,
        path: PathLike,
        format: str | None = None,
        *,
        limit: int | None = None,
        mmap: bool = True,
    ) -> Vectors:
        """Read vectors from a file, or from a folder of static embeddings.

        A file of --output-tables has both tables; a folder of static embeddings, as
        sentence-transformers and model2vec load it, has a vector for each token.

        Text and binary files may be compressed (gz, bz2, xz, zst), without a header (text, as
        GloVe's) or without the line end after each vector (binary); ``-`` is standard input. A
        fastText model (.bin) has vectors of character n-grams too: `subwords`.

        Parameters
        ----------
        path : path
        format : {"text", "binary", "safetensors"}, optional
            Detected from the content by default.
        limit : int, optional
            Read the first rows only.
        mmap : bool
            Memory-map the vectors of a large .safetensors file, or the n-grams' vectors of
            a fastText model. Methods that use all mapped vectors check that the vectors are finite.
            Text and binary files are always read. A mapped file must not be truncated or changed,
            but may be replaced.

        Returns
        -------
        Vectors
            With all that a .safetensors file has; with counts from a fastText model.

        Raises
        ------
        FileNotFoundError
            There is no such file.
        FormatError
            The file disagrees with its header or has faults; the message names the first position.
        """
        if not isinstance(path, str | os.PathLike):
            raise TypeError(
                f"path must be a path, not {type(path).__name__}; for gensim vectors, use "
                "Vectors(kv.index_to_key, kv.vectors)"
            )
        name = path_name(path)
        if limit is not None:
            whole_number("limit", limit, 0)
        if Path(path).is_dir() and is_static_folder(path):
            folder = load_static_folder(path, limit)
            made = folder.made
            if made is None:
                made = Tokenizer.nearest_to(folder.tokenizer).entry()
            if not Tokenizer.of_entry(made, name).is_stated_by(folder.tokenizer):
                made = {**made, "tokenizer_file": os.fspath(folder.tokenizer_file)}
            own = {"pooled": True, "unit": folder.is_unit}
            return cls(folder.words, folder.matrix, manifest={**made, **own})
        if Path(path).is_dir():
            raise FormatError(f"{path} is a folder without static embeddings; use a vector file")
        check_format(format, READ)
        return load_vectors(path, format or kind_of_file(path), limit, mmap, cls)

    @checks_names
    def save(self, path: PathLike, format: str | None = None, *, header: bool = True) -> None:
        """Write words and vectors to a file.

        The write is atomic. A .safetensors file has counts, context vectors and the manifest, too.
        The manifest of other files goes to ``PATH.json``.

        Parameters
        ----------
        path : path
            ``-`` is standard output (text, binary).
        format : {"text", "binary", "safetensors", "fasttext", "parquet", "jsonl"}, optional
            Default: by suffix, .bin: binary, .safetensors, .parquet, .jsonl, others: text.
        header : bool
            Write the numbers of rows and dimensions on the first line of text.

        Raises
        ------
        FormatError
            A number is not finite, or a word is empty, repeated, not UTF-8, or contains a separator
            or a NUL byte. The target is unchanged.
        UsageError
            A .safetensors file of another kind, or a .vocab file, would be replaced.
        OSError
            The file cannot be written.
        """
        guard((WRITES, "path", path))
        save_vectors(path, self, format, header)

    def to_gensim(self) -> Any:
        """Copy the vectors to gensim's KeyedVectors, with counts if they are known.

        Returns
        -------
        gensim.models.KeyedVectors

        Raises
        ------
        ImportError
            gensim is not installed.
        """
        gensim = import_optional("gensim.models", " for to_gensim", kind=ImportError)
        keyed = gensim.KeyedVectors(self.dim, len(self), dtype=np.float32)
        keyed.vectors[:] = self.vectors
        keyed.index_to_key = list(self.words)
        keyed.key_to_index = {word: i for i, word in enumerate(keyed.index_to_key)}
        keyed.next_index = len(self)
        if self.counts is not None:
            keyed.expandos["count"] = np.array(self.counts)
        return keyed

    # ---- access to words and their vectors ----

    @property
    def dim(self) -> int:
        """Number of vector dimensions."""
        return int(self.vectors.shape[1])

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[str]:
        return iter(self.words)

    def __contains__(self, word: object) -> bool:
        """Return whether a word has a vector, either its own or the mean of its n-gram vectors."""
        return word in self.words or (isinstance(word, str) and self.get(word) is not None)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(no_attribute("Vectors", name, dir(type(self))))

    def __repr__(self) -> str:
        return f"Vectors({len(self):,} words, {self.dim} dimensions)"

    def _repr_html_(self) -> str:
        words = f"{len(self):,}: {' '.join(self.words[:7])} ..."
        return table({"words": words, "dimensions": self.dim, "trained": how_made(self)}.items())

    @overload
    def __getitem__(self, key: slice) -> Vectors: ...

    @overload
    def __getitem__(self, key: str | Iterable[str]) -> F32: ...

    def __getitem__(self, key: str | Iterable[str] | slice) -> F32 | Vectors:
        """Return the vector of a word, a matrix for a list of words, or `Vectors` for a slice.

        Parameters
        ----------
        key : str, iterable of str, or slice

        Returns
        -------
        ndarray of float32, shape (d,), or (k, d) for k words; or Vectors for a slice

        Raises
        ------
        KeyError
            A word is not in the vocabulary, and has no n-grams with vectors.
        """
        if isinstance(key, str):
            found: F32 | None = self.get(key)
            if found is None:
                raise UnknownWordError(self._unknown(key))
            return found
        if isinstance(key, slice):
            return self._slice(key)
        if not isinstance(key, Iterable):
            raise TypeError(
                f"{key!r} is not a valid key; use a word, a list of words or a slice, or select "
                "rows by index with .vectors[i]"
            )
        if self.subwords is not None:
            rows = [self[word] for word in key]
            return np.array(rows, dtype=np.float32).reshape(-1, self.dim)
        numbers = np.array([self.index(word) for word in key], dtype=np.int64)
        return np.asarray(self.vectors[numbers])

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer that was used for the training text."""
        return Tokenizer.of_entry(self.manifest)

    def _row(self, word: object) -> int | None:
        """Return the row index of a word or, if the word is unknown, of its tokenized form."""
        number = self.words.find(word)
        if number is None and isinstance(word, str) and not self.tokenizer.is_whitespace:
            tokens = self.tokenizer.tokens(word)
            number = self.words.find(tokens[0]) if len(tokens) == 1 else None
        return number

    def index(self, word: str) -> int:
        """Return the row index of a word.

        Raises
        ------
        KeyError
            The word is not in the vocabulary; the message suggests another spelling.
        """
        number = self._row(word)
        if number is None:
            raise UnknownWordError(self._unknown(word))
        return number

    def _unknown(self, word: object) -> str:
        message = f"{word!r} is not among the {len(self):,} words"
        if not isinstance(word, str):
            return f"{message}; words are str, and .vectors has rows by number"
        near = neighbors.nearest_spelling(self.words, word)
        return f"{message}; " + (f"did you mean {near!r}?" if near else "check its spelling")

    @overload
    def get(self, word: str, default: None = None) -> F32 | None: ...

    @overload
    def get(self, word: str, default: Default) -> F32 | Default: ...

    def get(self, word: str, default: Any = None) -> Any:
        """Return the vector of a word, shape (d,), or `default` if the word has no vector.

        An out-of-vocabulary word has a vector if its n-grams have vectors; see `subwords`.
        """
        number = self._row(word)
        if number is not None:
            return np.asarray(self.vectors[number])
        if self.subwords is None or not isinstance(word, str):
            return default
        found = self.subwords.vector_of(word)
        return default if found is None else found

    # ---- similarity ----

    def similarity(self, one: Term, other: Term) -> float:
        """Return the cosine similarity of two words or vectors, or 0 if either vector is zero.

        Raises
        ------
        KeyError
            A word is not in the vocabulary.
        """
        return float(neighbors.unit_vector(self, one) @ neighbors.unit_vector(self, other))

    @checks_names
    def most_similar(
        self,
        positive: Term | Iterable[Term] | None = None,
        negative: Term | Iterable[Term] | None = None,
        topn: int = 10,
        limit: int | None = None,
        among: Iterable[str] | None = None,
    ) -> list[Neighbor]:
        """Return the words with the highest cosine similarity to a query.

        The query is the sum of the unit vectors of `positive` minus the unit vectors of `negative`.
        With ``positive=[b, c], negative=[a]`` it answers "a is to b as c is to ?" (3CosAdd: Mikolov
        et al. 2013, Linguistic regularities in continuous space word representations).

        Parameters
        ----------
        positive, negative : word, vector of shape (d,), or iterable of these, optional
            At least one in total. These words are not returned.
        topn : int
            Number of words to return.
        limit : int, optional
            Use only the first rows, the most frequent words.
        among : iterable of str, optional
            Return only these words.

        Returns
        -------
        list of (word, similarity)
            In descending order; ties in order of frequency.

        Raises
        ------
        KeyError
            A word is not in the vocabulary.
        ValueError
            There is no query, or `topn` or `limit` is below 1.

        Examples
        --------
        >>> import dcme_w2v as dw
        >>> v = dw.Vectors(["king", "queen", "man"], [[3, 4], [0, 2], [1, 0]])
        >>> [word for word, cosine in v.most_similar("king")]
        ['queen', 'man']
        >>> v.most_similar(positive=["king", [1, 0]], negative="queen", topn=1)[0].word
        'man'
        >>> v.most_similar("king", among=["man"])[0].word
        'man'
        """
        query = neighbors.Query(positive, negative)
        return next(neighbors.most_similar(self, [query], topn, limit, among))

    def most_similar_batch(
        self,
        queries: Iterable[str | neighbors.Query],
        topn: int = 10,
        limit: int | None = None,
        among: Iterable[str] | None = None,
    ) -> Iterator[list[Neighbor]]:
        """Yield the result of `most_similar` for each query, much faster than separate calls.

        Parameters
        ----------
        queries : iterable of str or of (positive, negative)
        topn, limit, among
            See `most_similar`.

        Yields
        ------
        list of (word, similarity)

        Raises
        ------
        KeyError
            A word is not in the vocabulary; raised before the first answer.

        Examples
        --------
        >>> import dcme_w2v as dw
        >>> v = dw.Vectors(["king", "queen", "man"], [[3, 4], [0, 2], [1, 0]])
        >>> [near[0].word for near in v.most_similar_batch(["king", (["king", "man"],)])]
        ['queen', 'queen']
        """
        return neighbors.most_similar(self, queries, topn, limit, among)

    def doesnt_match(self, words: Iterable[str]) -> str:
        """Return the word with the lowest cosine similarity to the mean of the words' unit vectors.

        Raises
        ------
        KeyError
            A word is not in the vocabulary.
        """
        return neighbors.doesnt_match(self, words)

    def _inverse(self, limit: int | None = None) -> F32:
        """Return ``1 / norm`` of the first `limit` vectors, shape (n,), or 0 for zero vectors."""
        known = self._inverse_lengths
        if known is None:
            known = neighbors.inverse_lengths(self.vectors[:limit])
            if limit is None:  # do not cache an array that lacks rows
                self._inverse_lengths = known
        return known[:limit]


def load_if_path(vectors: PathLike | Vectors, limit: int | None = None) -> Vectors:
    """Return vectors, loaded from a path if necessary; raise an error if any value is not finite.

    Raises
    ------
    FormatError
        A number is NaN or infinite, or a memory-mapped file was truncated.
    """
    loaded = vectors if isinstance(vectors, Vectors) else Vectors.load(vectors, limit=limit)
    arrays = list(loaded.arrays().values())
    check_mapped(*arrays)
    for array in arrays if not loaded._is_finite else ():
        if not all_finite(array):
            row = infinite_row(array) or 0
            of = repr(loaded.words[row]) if len(array) == len(loaded) else f"n-gram {row + 1}"
            raise FormatError(
                f"{'the vectors' if loaded is vectors else vectors}: {of} has values that are "
                "NaN or infinite; repair it with: dcme-w2v convert IN OUT --invalid=skip"
            )
    loaded._is_finite = True  # cache the result, because checking all values is slow
    return loaded


def how_made(vectors: Vectors) -> str:
    """Describe briefly how vectors were trained; return "" if that is unknown."""
    known = vectors.manifest or {}
    options, tokens = known.get("options", {}), known.get("tokens", {})
    if not isinstance(options, dict) or not {"model", "objective", "epochs"} <= options.keys():
        return ""
    text = f"by {options['model']} with {options['objective']}, {options['epochs']} epochs"
    count = tokens.get("corpus") if isinstance(tokens, dict) else None
    return f"{text} of {count:,} tokens" if isinstance(count, int) else text


def counts_by_order(words: int) -> F64:
    """Estimate word counts by Zipf's law; the words are sorted by descending frequency.

    Word r = 0, 1, ... occurs c / (r + 2.7) times (Mandelbrot 1953), and the last word occurs 5
    times.
    """
    return _RAREST * (words + _SHIFT) / (np.arange(words, dtype=np.float64) + _SHIFT)


def for_text(vectors: PathLike | Vectors, tokenize: TokenizeLike = None) -> Vectors:
    """Return vectors, loaded from a path if necessary, with a tokenizer for new text.

    By default, new text is tokenized like the training text. If the vocabulary looks as if the
    tokenizer ``words`` had prepared the training text, ``words`` is used, with a warning.
    """
    v, tokenizer = load_if_path(vectors), Tokenizer.of(tokenize)
    manifest = v.manifest or {}
    is_open = tokenizer is None and v.tokenizer.is_whitespace and not manifest.get("pooled")
    if is_open and _are_prepared(v.words[:_LOOKED_AT]):
        tokenizer = Tokenizer.of("words")
        name = "the vectors" if isinstance(vectors, Vectors) else os.fspath(vectors)
        warn(
            f"{name}: the words are lowercase and contain no punctuation, so text is split with "
            "--tokenize=words; if this is wrong, use --tokenize=whitespace"
        )
    if tokenizer is None:
        return v
    others = dict.fromkeys((ENTRY, "tokenizer_file"))
    return v.changed(manifest={**manifest, **others, **tokenizer.entry()})


def _are_prepared(words: Words) -> bool:
    """Return whether words look like the output of the tokenizer ``words``."""
    kept = [word.encode() for word in words if not _MARK.fullmatch(word)]
    lines, _ = Tokenizer(TokenizerOptions("words")).tokenize(b"\n".join([*kept, b""]))
    same = sum(b" " + one == found for one, found in zip(kept, lines.split(b"\n"), strict=False))
    return len(kept) >= _MIN_WORDS and same >= _MIN_PREPARED * len(kept)
