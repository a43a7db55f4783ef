"""Writes trained vectors with their character n-grams as a model of fastText; for the train job.

The bytes are in `dcme_w2v.formats.vectors.fasttext`.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import atomic_write
from dcme_w2v.files.compress import compression_of
from dcme_w2v.formats.vectors.fasttext import (
    ENTRY,
    HEAD,
    MATRIX,
    MODELS,
    NAMES,
    NEGATIVE_SAMPLING,
    SIZES,
    VERSION,
)
from dcme_w2v.formats.vectors.vectors_io import blocks_of
from dcme_w2v.formats.vectors.vectors_reader import FASTTEXT
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32
from dcme_w2v.options import SubwordOptions

from .options import TrainOptions

_UPDATE_INTERVAL = 100  # fastText's default; has no effect on a trained model


def check_model_name(path: str) -> None:
    """Raise `UsageError` if a model could not be read again under this name."""
    if compression_of(path) is not None:
        raise UsageError(f"{path}: models of fastText are not compressed; name a .bin file")


def save_model(
    path: str,
    vocabulary: Vocabulary,
    tables: tuple[Sequence[F32], Sequence[F32]],
    options: TrainOptions,
    subwords: SubwordOptions,
    tokens: int,
) -> None:
    """Write a model, atomically.

    Parameters
    ----------
    path : str
    vocabulary : Vocabulary
    tables : two sequences of ndarray of float32
        The input vectors, of the words and then of n-grams, and the context vectors.
    options : TrainOptions
        Resolved.
    subwords : SubwordOptions
    tokens : int
        Tokens of the corpus.
    """
    words = len(vocabulary)
    with atomic_write(path) as file:
        file.write(_head(options, subwords, vocabulary, sum(map(len, tables[0])) - words))
        file.write(SIZES.pack(words, words, 0, tokens, -1))
        file.writelines(_entries(vocabulary))
        for parts in tables:
            file.write(MATRIX.pack(0, sum(map(len, parts)), options.dim))
            for part in parts:
                for _, block in blocks_of(part):
                    file.write(block.astype("<f4", copy=False).data.cast("B"))


def _head(
    options: TrainOptions, subwords: SubwordOptions, vocabulary: Vocabulary, buckets: int
) -> bytes:
    shortest, longest = subwords.lengths
    numbers = {
        "dim": options.dim,
        "window": options.window,
        "epochs": options.epochs,
        "min_count": int(np.min(vocabulary.counts)),
        "negative": options.negative,
        "word_ngrams": 1,
        "loss": NEGATIVE_SAMPLING,
        "model": next(number for number, name in MODELS.items() if name == options.model),
        "buckets": buckets,
        "shortest": shortest,
        "longest": longest,
        "update_interval": _UPDATE_INTERVAL,
    }
    magic = int.from_bytes(FASTTEXT, "little")
    return HEAD.pack(magic, VERSION, *(numbers[name] for name in NAMES), options.sample)


def _entries(vocabulary: Vocabulary) -> Iterator[bytes]:
    text, ends = vocabulary.text.tobytes(), vocabulary.offsets.tolist()
    for number, count in enumerate(vocabulary.counts.tolist()):
        yield text[ends[number] : ends[number + 1]] + b"\0" + ENTRY.pack(count, 0)
