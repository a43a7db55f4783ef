"""`Vectors` as a Python object: look-ups, slices, copies, gensim."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from dcme_w2v import Vectors
from dcme_w2v.errors import UnknownWordError, UsageError
from dcme_w2v.formats.vectors.subwords import Subwords
from dcme_w2v.formats.vocabulary import Vocabulary

WORDS = ["king", "queen", "New_York", "żółć", "man"]


def make_vectors(**more):
    matrix = np.arange(15, dtype=np.float32).reshape(5, 3)
    return Vectors(WORDS, matrix, counts=[9, 7, 5, 3, 2], **more)


def with_context():
    return make_vectors(context=Vectors(WORDS, np.eye(5, 3)), manifest={"loss": 1.5})


def test_rows_by_word():
    v = make_vectors()
    assert v["queen"].tolist() == [3, 4, 5] and v["queen"].dtype == np.float32
    assert v[["man", "king"]].tolist() == [[12, 13, 14], [0, 1, 2]]
    assert v[np.array(["man"])].shape == (1, 3) and v[[]].shape == (0, 3)
    assert (v.index("man"), len(v), v.dim) == (4, 5, 3)
    assert list(v) == WORDS and repr(v) == "Vectors(5 words, 3 dimensions)"
    assert v.get("x") is None and v.get("x", 7) == 7
    assert "king" in v and "King" not in v and 3 not in v and "\ud800" not in v
    with pytest.raises(TypeError, match="use a word"):
        v[3]


def test_words_behave_as_a_sequence():
    words = make_vectors().words
    assert (words[-1], words[np.int64(1)]) == ("man", "queen")
    assert list(words[::-2]) == WORDS[::-2] and list(reversed(words)) == WORDS[::-1]
    assert words.index("man") == 4 and words.count("man") == 1 and words.count("x") == 0
    for arguments in (("x",), ("king", 1), ("man", 0, 4)):
        with pytest.raises(ValueError, match="not in the word list"):
            words.index(*arguments)
    with pytest.raises(IndexError):
        words[5]


@pytest.mark.parametrize("key", [slice(2), slice(1, 4), slice(None, None, -2), slice(3, 3)])
def test_a_slice_has_the_vectors_of_its_rows(key):
    v = with_context()[key]
    assert list(v) == WORDS[key]
    assert v.vectors.tolist() == np.arange(15).reshape(5, 3)[key].tolist()
    assert v.counts.tolist() == [9, 7, 5, 3, 2][key]
    assert v.context.vectors.tolist() == np.eye(5, 3)[key].tolist()
    assert all(v[word].tolist() == make_vectors()[word].tolist() for word in v)


@pytest.mark.parametrize(
    "asked, found",
    [("King", "king"), ("MAN", "man"), ("New York", "New_York"), (" man", "man"), ("qeen", "queen"),
     ("amn", "man"), ("queeen", "queen"),
     (unicodedata.normalize("NFD", "żółć"), "żółć"), ("nothing", None), (3, None)],
)  # fmt: skip
def test_an_unknown_word_is_a_key_error_with_the_known_spelling(asked, found):
    with pytest.raises(KeyError) as caught:
        make_vectors().index(asked)
    assert isinstance(caught.value, UnknownWordError)
    assert str(caught.value).startswith(f"{asked!r} is not among the 5 words")
    assert (f"did you mean {found!r}?" in str(caught.value)) == (found is not None)


def test_arrays_are_read_only_and_not_copied():
    matrix = np.ones((1, 2), dtype=np.float32)
    v = Vectors(["a"], matrix)
    assert np.shares_memory(v.vectors, matrix) and matrix.flags.writeable
    for array in (v.vectors, v["a"], make_vectors().counts, v[:1].vectors):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 2
    v[["a"]][0, 0] = 2  # a copy
    sides = Vectors(["a"], matrix, neighbors=(matrix, matrix), subwords=Subwords(3, 3, matrix))
    for array in (*sides.neighbors, sides.subwords.rows, v.words.text, v.words.offsets):
        assert not array.flags.writeable
    assert matrix.tolist() == [[1, 1]]


@pytest.mark.parametrize("name", ["words", "vectors", "counts", "context", "manifest", "subwords"])
def test_objects_cannot_be_changed(name):
    v = with_context()
    v.most_similar("king")
    for change in (lambda: setattr(v, name, ["x"]), lambda: delattr(v, name)):
        with pytest.raises(
            AttributeError, match=f"{name} cannot be .*, because Vectors objects are immutable"
        ):
            change()
    with pytest.raises(
        AttributeError, match="text cannot be set, because Words objects are immutable"
    ):
        v.words.text = v.words.text
    counts = Vocabulary.from_counts({"a": 2})
    with pytest.raises(AttributeError, match="because Vocabulary objects are immutable"):
        counts.counts = [3]
    with pytest.raises(ValueError, match="read-only"):
        counts.counts[0] = 3


@pytest.mark.parametrize(
    "more, said",
    [
        *(
            ({"counts": [1, 2, 3, 4, wrong]}, "counts must be a list of nonnegative")
            for wrong in (-5, 1.5, np.nan, "a")
        ),
        ({"counts": [[1]] * 5}, "counts must be a list of nonnegative"),
        ({"counts": [1]}, "1 counts"),
        ({"words": ["king", "", "x", "y", "z"]}, "word 2 is empty"),
        ({"words": ["a", "b", "a", "y", "z"]}, "the word 'a' occurs twice, at positions 0 and 2"),
        ({"words": [1, 2, 3, 4, 5]}, "words must be strings"),
        ({"vectors": [1.0]}, r"vectors has the shape \(1,\)"),
        ({"vectors": [[]] * 5}, r"vectors has the shape \(5, 0\)"),
        ({"vectors": [[1], [2]]}, "5 words, 2 vectors"),
        (
            {"context": Vectors("abcde", np.ones((5, 3)))},
            "the context vectors are for different words",
        ),
        ({"context": Vectors(WORDS, np.ones((5, 2)))}, "must have the shape"),
        ({"context": Vectors("a", np.ones((1, 3)))}, "1 context vectors"),
        ({"neighbors": (np.ones((5, 3)), np.ones((4, 3)))}, "must have the shape"),
    ],
)
def test_parts_that_do_not_fit_are_refused(more, said):
    parts = {"words": WORDS, "vectors": np.ones((5, 3)), **more}
    with pytest.raises(UsageError, match=said):
        Vectors(parts.pop("words"), parts.pop("vectors"), **parts)


def test_gensim_gets_words_vectors_and_counts():
    pytest.importorskip("gensim")
    v = make_vectors()
    keyed = v.to_gensim()
    assert keyed.index_to_key == WORDS and keyed.get_index("man") == 4
    assert keyed.vectors.tolist() == v.vectors.tolist()
    assert keyed.get_vecattr("queen", "count") == 7
    keyed.add_vectors(["new"], np.ones((1, 3)))
    keyed.vectors[0] = 0
    assert v["king"].tolist() == [0, 1, 2] and keyed.get_index("new") == 5
    keyed.save("k")
    assert type(keyed).load("k").index_to_key[-1] == "new"


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda v: v.load("v.safetensors", binary=True), TypeError, "unknown option binary"),
        (
            lambda v: v.load(v),
            TypeError,
            "must be a path, not Vectors; for gensim vectors",
        ),
        (lambda v: v.save("v.txt", write_header=False), TypeError, "use header"),
        (lambda v: v.save("v", format="glove"), ValueError, "format must be text,"),
        (lambda v: v.save("v.npy.gz"), ValueError, "vectors cannot be written to a .npy"),
        (lambda v: v.most_similar([("king", 0.5)]), ValueError, "write a weighted sum"),
        (lambda v: v.most_similar([10**400, 0, 1]), ValueError, r"^\[1.{,60} must be a word or"),
        (lambda v: Vectors(["a"], [[10**400]]), ValueError, "a value is too large"),
        (lambda v: v.most_similar(3), ValueError, r"shape \(\), but must have the shape \(3,\)"),
        (lambda v: v[[0, 1]], KeyError, ".vectors has rows by number"),
        (lambda v: v.wmdistance, AttributeError, "a method of v.to_gensim"),
        (lambda v: v.slices, AttributeError, "'slices'$"),  # not _slice
    ],
)
def test_what_other_programs_have_is_answered(call, error, message):
    v = make_vectors()
    v.save("v.safetensors")
    with pytest.raises(error, match=message):
        call(v)


def test_a_wrong_format_is_an_error(tmp_path):
    make_vectors().save("v.txt")
    make_vectors().save("v.bin")
    Path("glove").write_text("a 1 2\n")
    for name, format in (("v.txt", "safetensors"), ("v.bin", "text"), ("v.txt", "binary"),
                         ("glove", "binary")):  # fmt: skip
        with pytest.raises(ValueError, match=name):
            Vectors.load(tmp_path / name, format)
    with pytest.raises(FileNotFoundError):
        Vectors.load("none")
