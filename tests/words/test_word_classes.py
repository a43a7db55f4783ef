"""Classes of words: k-means of unit vectors, as a command."""

from pathlib import Path

import numpy as np
import pytest

import dcme_w2v as dw
from dcme_w2v.errors import FormatError
from dcme_w2v.words.classes import classes


def classes_of(path):
    rows = [line.split(" ") for line in Path(path).read_text().splitlines()]
    return [word for word, _ in rows], [int(number) for _, number in rows]


@pytest.mark.bits
def test_words_of_similar_direction_are_one_class(cli):
    random = np.random.default_rng(1)
    directions = np.repeat(np.eye(3, 5), 4, axis=0)[random.permutation(12)]
    lengths = random.uniform(0.1, 50, size=(12, 1))
    matrix = directions * lengths + random.normal(size=(12, 5)) * lengths / 50
    dw.Vectors([f"w{n}" for n in range(12)], matrix).save("v.txt")
    cli("classes v.txt --classes 3 --output o")
    words, found = classes_of("o")
    assert words == [f"w{n}" for n in range(12)]
    same = directions @ directions.T > 0
    assert np.array_equal(np.equal.outer(found, found), same)
    # numbered by the first word of each class
    assert list(dict.fromkeys(found)) == [0, 1, 2]


def test_vectors_that_are_zero_or_equal_have_a_class():
    found = classes(np.zeros((4, 3), dtype=np.float32), 2)
    assert len(found) == 4 and found[0] == 0
    with pytest.raises(FormatError, match="the vector of word 2 contains NaN"):
        classes(np.array([[1], [np.nan]], dtype=np.float32), 1)
