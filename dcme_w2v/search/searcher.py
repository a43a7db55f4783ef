"""The class `Search`, which indexes and searches documents and finds near-duplicates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix, vstack

from dcme_w2v.declarations import whole_number
from dcme_w2v.errors import UsageError
from dcme_w2v.formats.artifact import load_model, rows_arrays, save_model, words_arrays
from dcme_w2v.formats.corpus import Sentence
from dcme_w2v.formats.texts import Text, as_texts, bytes_of, tokens_of
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import Array
from dcme_w2v.numeric.shown import Shown
from dcme_w2v.platform import PathLike
from dcme_w2v.scdv.model import count_rows
from dcme_w2v.sentences.options import EncodeOptions
from dcme_w2v.sentences.table import SentenceTable
from dcme_w2v.text.token_ids import Numbering
from dcme_w2v.text.tokenizer import TokenizeLike, Tokenizer
from dcme_w2v.words.vectors import Vectors, for_text

from .duplicates import Duplicate, duplicates
from .index import GRAMS, Index, gram_rows
from .options import SearchOptions

KIND, VERSION = "search", 1
BEGINNING = 200  # maximum number of characters that search results show per document
LISTS = ("words", "names", "beginnings")
COUNTS = ("count_starts", "count_columns", "count_values")
OF_GRAMS = ("gram_starts", "gram_columns", "gram_values")


class Hit(NamedTuple):
    """A search result: the row (from 0) and the score of a document."""

    row: int
    score: float


class Search(Shown):
    """A search index that ranks texts by BM25 scores of words and character n-grams.

    Parameters
    ----------
    k1, b : float, default 1.2, 0.6
        BM25 parameters. Higher values of `k1` reward repeated words more, and higher values of `b`
        penalize long documents more.
    characters : float, default 1
        Weight of the score of character n-grams; the score of words has the weight 1.
    vectors : path or Vectors, optional
        Word vectors. For documents found by words or n-grams, the cosine similarity to the query is
        added to the score.
    vector_weight : float, default 0.1
        Weight of the cosine similarity.
    tokenize : {"words", "whitespace"} or dict, default "words"
        How texts are split into tokens. A dict sets options of "words": ``{"keep_case": True}``.

    Notes
    -----
    Several threads may use a fitted object at the same time.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> found = dw.Search().fit(["green tea with milk", "a fast red car", "coffee and milk"])
    >>> [(hit.row, round(hit.score, 2)) for hit in found.search(["cars", "milk tea"], k=1)[1]]
    [(0, 0.86)]
    >>> found.search(["unknown"])
    [[]]
    """

    _names = _beginnings = Words.from_words([])

    def __init__(
        self,
        *,
        k1: float = 1.2,
        b: float = 0.6,
        characters: float = 1.0,
        vectors: PathLike | Vectors | None = None,
        vector_weight: float = 0.1,
        tokenize: TokenizeLike = "words",
    ) -> None:
        self.options = SearchOptions(k1, b, characters, vector_weight)
        self.vectors = vectors
        self.tokenizer = Tokenizer.of(tokenize) or Tokenizer()
        self._index: Index | None = None

    @classmethod
    def of(cls, options: SearchOptions, vectors: PathLike | Vectors | None = None) -> Search:
        """Create a `Search` from an options object."""
        return cls(**asdict(options), vectors=vectors)

    def fit(self, texts: Iterable[Sentence], names: Iterable[str] = ()) -> Search:
        """Build an index of documents.

        Parameters
        ----------
        texts : iterable of str, bytes or lists of str
            Documents. A list has the tokens of one document; a null is an empty document.
        names : iterable of str, optional
            A name for each document, which the `search` command prints.

        Raises
        ------
        ValueError
            `texts` contains an item that is not a text, or a NUL character.
        """
        numbering = Numbering(Words.from_words([]), None, self.tokenizer)
        beginnings: list[str] = []
        batches = list(numbering.batches(_noted(as_texts(texts), beginnings)))
        known = numbering.known
        counts = vstack(
            [
                csr_matrix((0, known), dtype=np.float32),
                *(count_rows(one, known) for one in batches),
            ],
            format="csr",
        )
        words = numbering.words_of(np.arange(known))
        rows = None
        if self.vectors is not None:
            table = SentenceTable(for_text(self.vectors), EncodeOptions())
            rows = table.vectors_of([word] for word in words)
        index = Index(words, counts, gram_rows(list(words)), self.options, rows)
        # Copy `names` only now: it can be incomplete before all texts have been read.
        named = list(names)
        if named and len(named) != len(beginnings):
            raise UsageError(
                f"there are {len(named)} names for {len(beginnings)} documents; pass one name per "
                "document"
            )
        return self._set(index, Words.from_words(named), Words.from_words(beginnings))

    def search(self, queries: Iterable[Sentence], k: int = 10) -> list[list[Hit]]:
        """Return each query's best documents in descending order of score; ties are in row order.

        Parameters
        ----------
        queries : iterable of str, bytes or lists of str
        k : int
            Maximum number of documents per query. Documents with a score of 0 are not returned.

        Returns
        -------
        list of list of Hit
            Scores are at most 1 plus the weights of n-grams and vectors.

        Raises
        ------
        ValueError
            `k` is less than 1, or `queries` is one text.
        """
        whole_number("k", k)
        index = self._fitted()
        found = []
        for text in as_texts(queries, "text"):
            rows, scores = index.best(index.query(self._tokens(text)), k)
            found.append([Hit(*one) for one in zip(rows.tolist(), scores.tolist(), strict=True)])
        return found

    def duplicates(self, threshold: float | None = None) -> list[Duplicate]:
        """Find pairs of near-duplicate documents.

        Parameters
        ----------
        threshold : float, optional
            Minimum similarity, 0 to 1. The default separates edited copies of a text from unrelated
            texts.
        """
        return duplicates(self._fitted(), threshold)

    def name(self, row: int) -> str:
        """Return a document's name or, if documents have no names, its number counted from 1."""
        row = self._checked(row)
        return self._names[row] if len(self._names) else str(row + 1)

    def beginning(self, row: int) -> str:
        """Return the first characters of a document as one line."""
        return self._beginnings[self._checked(row)]

    def _checked(self, row: int) -> int:
        return whole_number("row", row, 0, self._fitted().counts.shape[0] - 1)

    def save(self, path: PathLike) -> None:
        """Write the index to a single file, which `load` can read."""
        index = self._fitted()
        arrays: dict[str, Array] = {}
        for name, words in zip(LISTS, (index.words, self._names, self._beginnings), strict=True):
            arrays |= words_arrays(words, name)
        arrays |= rows_arrays(COUNTS, index.counts) | rows_arrays(OF_GRAMS, index.grams)
        if index.rows is not None:
            arrays["rows"] = index.rows
        record = {
            "documents": index.counts.shape[0],
            "words": len(index.words),
            "options": asdict(self.options),
            **self.tokenizer.entry(),
        }
        save_model(path, KIND, VERSION, arrays, record)

    @classmethod
    def load(cls, path: PathLike) -> Search:
        """Load an index that `save` wrote; search results are the same as before saving.

        Raises
        ------
        FormatError
            The file is not a search index, or is corrupt.
        """
        model = load_model(path, KIND, VERSION)
        words, names, beginnings = map(model.texts, LISTS)
        counts = model.rows(COUNTS, len(beginnings), len(words))
        grams = model.rows(OF_GRAMS, len(words), GRAMS)
        if len(names) not in (0, len(beginnings)):
            raise model.fault("names_offsets", "does not match the number of documents")
        rows = None
        if "rows" in model.arrays:
            rows = model.array("rows", "float32", len(words), None)
        found = cls.of(model.options("options", SearchOptions))
        found.tokenizer = Tokenizer.of_entry(model.description, str(path))
        return found._set(Index(words, counts, grams, found.options, rows), names, beginnings)

    def __len__(self) -> int:
        return self._fitted().counts.shape[0]

    def _facts(self) -> dict[str, Any]:
        index = self._index
        size = {} if index is None else {"documents": len(self), "words": len(index.words)}
        return size | asdict(self.options)

    def _set(self, index: Index, names: Words, beginnings: Words) -> Search:
        self._index, self._names, self._beginnings = index, names, beginnings
        return self

    def _fitted(self) -> Index:
        if self._index is None:
            raise UsageError("this Search object has no documents; call fit first")
        return self._index

    def _tokens(self, text: Text) -> list[str]:
        split, _ = self.tokenizer.tokenize(text)
        return tokens_of(split.decode("utf-8", "replace"))


def _noted(texts: Iterable[Text], beginnings: list[str]) -> Iterable[Text]:
    """Yield texts, and append the beginning of each text to the list `beginnings`."""
    for text in texts:
        start = bytes_of(text)[: 8 * BEGINNING].decode("utf-8", "replace")
        line = " ".join(start.split())
        beginnings.append(line if len(line) <= BEGINNING else line[: BEGINNING - 1] + "…")
        yield text
