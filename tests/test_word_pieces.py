"""Pieces of words, as tokenizers splits them."""

import numpy as np
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


LETTERS = st.text("abé水", min_size=1, max_size=8)


@given(st.lists(LETTERS, unique=True, max_size=20), st.lists(LETTERS, max_size=5))
def test_beginnings_are_the_longest_of_the_first_words(words, more):
    expected = [
        max((j for j, one in enumerate(words) if i != j and word.startswith(one)),
            key=lambda j: len(words[j]), default=-1)
        for i, word in enumerate(words)
    ]  # fmt: skip
    assert np.array_equal(WordPieces(words).beginnings(len(words)), expected)
    characters = character_pieces([*words, *more])
    assert not set(characters) & {*words, *more}
    found = WordPieces([*words, *characters]).beginnings(len(words))
    assert np.array_equal(found, expected)
