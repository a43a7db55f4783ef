"""Encode blocks of sentences as vectors, using a table of pooled rows."""

import contextlib
import json
from collections.abc import Iterable, Iterator

import numpy as np
from scipy import sparse

from dcme_w2v.errors import FormatError, UsageError, import_optional
from dcme_w2v.formats.corpus import Sentence
from dcme_w2v.formats.texts import Text, Tokenized, as_texts, blocks, joined
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, unit_vectors
from dcme_w2v.numeric.parallel import ordered_map
from dcme_w2v.text.token_ids import Batch, Numbering
from dcme_w2v.text.tokenizer import WordPieces, character_pieces
from dcme_w2v.words.vectors import Vectors

from .options import EncodeOptions
from .pooling import Pooling

_BLOCK_BYTES = 1 << 20


class LibraryTokenizer:
    """A tokenizer.json file, whose rules Hugging Face's tokenizers library executes."""

    is_whitespace = False

    def __init__(self, path: str) -> None:
        package = import_optional("tokenizers", " to read it", f"{path}: ", UsageError)
        self._path = path
        with _refused(path):
            self._loaded = package.Tokenizer.from_file(path)
        self._loaded.no_truncation()
        self._loaded.no_padding()
        model = json.loads(self._loaded.to_str())["model"]
        self._unknown = model.get("unk_id")
        if self._unknown is None and model.get("unk_token") is not None:
            self._unknown = self._loaded.token_to_id(model["unk_token"])

    def tokenize(self, text: Text | memoryview) -> tuple[bytes, int]:
        """Split lines into tokens and join the tokens with spaces, like `Tokenizer.tokenize`."""
        if isinstance(text, Tokenized):
            return text.text, -1
        lines = bytes(text).decode(errors="replace").split("\n")[:-1]
        with _refused(self._path):
            found = self._loaded.encode_batch(lines, add_special_tokens=False)
        kept = (
            [token for token, id in zip(one.tokens, one.ids, strict=True) if id != self._unknown]
            for one in found
        )
        # Drop tokens that contain whitespace: vocabulary words never contain it.
        encoded = ((token.encode() for token in one) for one in kept)
        rows = (b" ".join(token for token in one if token.split() == [token]) for one in encoded)
        return b"".join(row + b"\n" for row in rows), -1


@contextlib.contextmanager
def _refused(path: str) -> Iterator[None]:
    """Convert the errors and Rust panics of the tokenizers library to `FormatError`."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise FormatError(f"{path}: {str(error).splitlines()[0]}; write the file again") from None


def pooled_rows(
    pooling: Pooling, vectors: Vectors, limit: int | None = None
) -> tuple[Words, F32, WordPieces | None]:
    """Return words with their pooled rows; if the rows are whitened, append word pieces."""
    words = vectors.words[:limit]
    if pooling.axes is None:
        return words, pooling.rows(vectors.vectors)[:limit], None
    characters = character_pieces(words)
    pieces = WordPieces([*vectors.words, *characters])
    rows = pooling.rows(vectors.vectors, pieces.beginnings(len(vectors.words)))[:limit]
    more = Words.from_words(characters)
    words = Words(
        np.concatenate([words.text, more.text]),
        np.concatenate([words.offsets, more.offsets[1:] + words.offsets[-1]]),
    )
    return words, np.concatenate([rows, pooling.piece_rows(len(more), rows.shape[1])]), pieces


class SentenceTable:
    """Encode sentences as the means of the pooled rows of their words.

    Parameters
    ----------
    vectors : Vectors
        Word vectors. Without counts, they are assumed to be sorted by word frequency. Text is split
        by their tokenizer.
    options : EncodeOptions

    Attributes
    ----------
    rows : ndarray of float32, shape (n, k)
        The pooled rows of the vocabulary words.
    """

    def __init__(self, vectors: Vectors, options: EncodeOptions) -> None:
        manifest = vectors.manifest or {}
        file = manifest.get("tokenizer_file")
        self.tokenizer = LibraryTokenizer(file) if file else vectors.tokenizer
        kind = options.pooling
        self._is_unit = options.unit or manifest.get("unit") is True
        if manifest.get("pooled"):
            if kind not in ("static", "mean") or options.dim is not None:
                raise UsageError(
                    f"--pooling={kind}: the vectors in this folder are already pooled; omit "
                    "--pooling "
                    "and --dim, or use the original word vectors"
                )
            kind = "mean"
        self.pooling = Pooling.of(kind, vectors.vectors, vectors.counts, options.dim)
        words, rows, self._pieces = pooled_rows(self.pooling, vectors)
        if manifest.get("pieces"):
            self._pieces = WordPieces(words)
        self._subwords = vectors.subwords
        if self._subwords is not None:
            words, rows, self._pieces = vectors.words, rows[: len(vectors)], None
        self.rows = np.ascontiguousarray(rows)
        self._numbering = Numbering(words, tokenizer=self.tokenizer)

    def encode(self, blocks: Iterable[Text], threads: int | None = None) -> Iterator[F32]:
        """Encode blocks of lines; the last line of each block must also end in a line feed.

        Yields
        ------
        ndarray of float32, shape (lines of the block, k)
            A sentence without any known word is a row of zeros.
        """
        batches = (self._batch(block) for block in blocks)
        yield from ordered_map(self._pooled, batches, threads)

    def scaled(self, rows: F32) -> F32:
        """Scale sentence vectors to unit length if the options or the loaded folder require it."""
        return unit_vectors(rows) if self._is_unit else rows

    @property
    def columns(self) -> int:
        """Number of dimensions of the sentence vectors."""
        return int(self.rows.shape[1])

    def transform(self, texts: Iterable[Text]) -> Iterator[sparse.csr_matrix]:
        """Yield the vectors of texts in batches of rows."""
        yield from map(sparse.csr_matrix, self.encode(blocks_of(texts)))

    def vectors_of(self, sentences: Iterable[Sentence], threads: int | None = None) -> F32:
        """Return the vectors of sentences, shape (sentences, k)."""
        parts = self.encode(blocks_of(sentences), threads)
        return np.concatenate([np.empty((0, self.columns), dtype=np.float32), *parts])

    def _batch(self, block: Text) -> tuple[Batch, F32]:
        """Return IDs of words and word pieces, and the rows of words with only n-gram vectors."""
        unseen = np.empty((0, self.rows.shape[1]), dtype=np.float32)
        with self._numbering.lock:
            batch = self._numbering.lines(block)
            is_new = batch.ids >= len(self.rows)
            if not is_new.any():
                return batch, unseen
            new, ranks = np.unique(batch.ids[is_new], return_inverse=True)
            words = self._numbering.words_of(new.astype(np.int64))
        ids = batch.ids.copy()
        if self._subwords is not None:
            unseen = self.pooling.unseen_rows(self._subwords.vectors_of(words))
            ids[is_new] = ranks + len(self.rows)
            return Batch(batch.starts, ids), unseen
        if self._pieces is None:
            return batch, unseen
        pieces = [self._pieces.of(word) for word in words]
        lengths = np.ones(len(ids), dtype=np.int64)
        lengths[is_new] = np.array([len(one) for one in pieces])[ranks]
        found = [piece for rank in ranks.tolist() for piece in pieces[rank]]
        ids, is_new = np.repeat(ids, lengths), np.repeat(is_new, lengths)
        ids[is_new] = found
        starts = np.concatenate([[0], np.cumsum(lengths)])[batch.starts]
        return Batch(starts, ids), unseen

    def _pooled(self, numbered: tuple[Batch, F32]) -> F32:
        """Return the mean of the rows of all known words in each line."""
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
        return counts @ table


def blocks_of(sentences: Iterable[Sentence | Text]) -> Iterator[Text]:
    """Yield blocks of sentences, one per line; line feeds within a sentence become spaces."""
    return map(joined, blocks(as_texts(sentences, "sentence"), _BLOCK_BYTES))
