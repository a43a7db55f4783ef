"""Held-out lines: how they are chosen, and that they are not counted."""

from collections import Counter
from pathlib import Path

import pytest
from helpers import split, write_corpus

from dcme_w2v.errors import CorpusError
from dcme_w2v.text.split import HeldOutLines

pytestmark = pytest.mark.usefixtures("here")


@pytest.fixture
def text():
    return write_corpus("text.txt")


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_line_is_trained_on_or_held_out(block, threads):
    # each word is on one line only, so that the halves are distinct
    lines = [[f"w{n}x{i}" for i in range(n % 9)] for n in range(200)]
    path = Path("text.txt")
    path.write_text("\n".join(" ".join(line) for line in lines))
    _, whole, _ = split(path)
    found, trained, held = split(path, threads=threads, _block_bytes=block)
    counted = Counter(word for line in trained for word in line)
    assert dict(zip(found.vocabulary, found.vocabulary.counts.tolist(), strict=True)) == counted
    assert trained == whole
    # a word that is only in held-out text is in no vocabulary
    assert held == []
    kept = [line for line in lines if line and line[0] in counted]
    assert trained == kept
    assert 0.55 < found.lines / sum(map(bool, lines)) < 0.85
    tokens = sum(map(len, lines))
    assert found.tokens == tokens == sum(map(len, trained)) + found.held_out_tokens


def test_the_seed_determines_the_held_out_lines(text):
    found = {seed: split(text, seed=seed)[1:] for seed in (1, 2)}
    assert found[1] != found[2]
    assert split(text, seed=1, threads=3, _block_bytes=100)[1:] == found[1]


def test_no_line_held_out_is_an_error():
    path = Path("text.txt")
    path.write_text("a b c a b c\n")
    held = [HeldOutLines(0.5, seed).chosen(0, 1)[0] for seed in range(20)]
    assert any(held)
    assert not all(held)
    with pytest.raises(CorpusError, match="larger share"):
        split(path, 0.5, held.index(False))
    with pytest.raises(CorpusError, match="all 6 tokens are held out"):
        split(path, 0.5, held.index(True))
