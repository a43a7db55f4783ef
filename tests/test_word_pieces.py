"""Pieces of words, as tokenizers splits them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dcme_w2v.text.tokenizer import MAX_CHARACTERS, WordPieces, character_pieces

WORD = st.text("ab#é水", min_size=1, max_size=8)


@given(st.lists(WORD, unique=True, max_size=20), st.lists(WORD, max_size=20))
def test_pieces_are_the_ones_of_tokenizers(words, texts):
    tokenizers = pytest.importorskip("tokenizers")
    words += character_pieces(words)[::2]
    vocabulary = {word: number for number, word in enumerate([*words, "[UNK]"])}
    model = tokenizers.models.WordPiece(
        vocabulary, unk_token="[UNK]", max_input_chars_per_word=MAX_CHARACTERS
    )
    pieces = WordPieces(words)
    for text in [*texts, "a" * (MAX_CHARACTERS + 1)]:
        expected = [token.id for token in model.tokenize(text)]
        assert pieces.of(text) == (expected if expected != [len(words)] else [])
