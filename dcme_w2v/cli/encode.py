"""The command `encode`, which writes sentence vectors."""

from typing import Any

from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.options import TokenizerOptions, VocabularyOptions
from dcme_w2v.sentences.options import EncodeOptions

from .command import command
from .options import (
    arguments,
    chosen_tokenizer,
    options_of,
    output_option,
    reads_documents,
    threads_option,
)


@command(
    example="dcme-w2v encode vectors.safetensors sentences.txt --output sentences.npy\n"
    "cat sentences.txt | dcme-w2v encode vectors.safetensors",
)
@arguments("<vectors |texts...")
@output_option(
    "X",
    "output file: X.npy, X.npz (sparse rows) or X.tsv (default: tab-separated standard output)",
    default=STANDARD,
)
@options_of(EncodeOptions, TokenizerOptions)
@options_of(VocabularyOptions, only=["encoding_errors"])
@threads_option
@reads_documents("texts", whole=True, columns=["text_column"])
def encode(
    vectors: str,
    texts: tuple[str, ...],
    output: str,
    **values: Any,
) -> None:
    """Encode each sentence as the mean of its words' pooled vectors.

    VECTORS: word vectors in any format, preferably with counts, as .safetensors files have them.
    TEXTS: files or folders, which may be compressed (default: standard input); each line is a
    sentence. A sentence in which no word has a vector becomes a row of zeros.
    """
    import dcme_w2v as dw

    tokenize = chosen_tokenizer(values)
    dw.encode(vectors, texts, output, tokenize=tokenize, progress="stderr", **values)
