"""Files of word vectors: bytes, round trips, variants and errors."""

import bz2
import contextlib
import gzip
import struct
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from fasttext_models import write_model
from helpers import COMPRESSORS, edit, python, save
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import dcme_w2v as dw
from dcme_w2v import Vectors
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats import artifact
from dcme_w2v.formats.vectors.vectors_reader import BLOCK


def same_words(path, words, matrix, **options):
    """Check words and bits of a file."""
    loaded = Vectors.load(path, **options)
    assert list(loaded.words) == words and same_bits(loaded.vectors, matrix)
    return loaded


SUFFIX = {"text": ".txt", "binary": ".bin", "safetensors": ".safetensors"}
FORMATS = [*SUFFIX]
QUICK = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

finite_floats = (
    st.integers(0, 2**32 - 1)
    .filter(lambda bits: bits & 0x7F800000 != 0x7F800000)
    .map(lambda bits: struct.unpack("<f", struct.pack("<I", bits))[0])
)
good_words = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\t\n\v\f\r "),
    min_size=1,
    max_size=8,
)


@st.composite
def vectors(draw):
    words = draw(st.lists(good_words, min_size=1, max_size=6, unique=True))
    shape = (len(words), draw(st.integers(1, 7)))
    return words, draw(arrays(np.float32, shape, elements=finite_floats))


def same_bits(a, b):
    return a.shape == b.shape and (a.view(np.uint32) == np.ascontiguousarray(b).view("u4")).all()


# ---- the bytes ----


def test_text_is_header_words_and_shortest_numbers():
    third, tiny = np.float32(1) / np.float32(3), 1e-9
    rows = [[third, -0.0], [tiny, 1e-45], [100.0, -16777216.0], [3.4028235e38, 0.00012]]
    path = save(Path("v.txt"), ["the", "naïve", "\u00a0", "</s>"], rows)
    assert path.read_bytes() == (
        b"4 2\n"
        b"the 0.33333334 -0.0\n"
        b"na\xc3\xafve 1e-09 1e-45\n"
        b"\xc2\xa0 100.0 -16777216.0\n"
        b"</s> 3.4028235e+38 0.00012\n"
    )


def test_numbers_are_the_shortest_texts_and_are_read_exactly():
    """Of subnormals, powers of two, their neighbors and random bits; middles of two floats."""
    near = (np.arange(1, 255)[:, None] << 23) + np.arange(-3, 4)
    random = np.random.default_rng(1).integers(0x7F7FFFFF, size=20_000)
    bits = np.concatenate([np.arange(1, 2000), near.ravel(), random]).astype(np.uint32)
    numbers = bits.view(np.float32)
    lines = save(Path("v.txt"), [f"w{i}" for i in range(len(bits))], numbers[:, None]).read_text()
    texts = [line.split()[1] for line in lines.splitlines()[1:]]
    assert list(map(Decimal, texts)) == list(map(Decimal, map(str, numbers)))
    middles = (numbers.astype(float) + (bits + 1).view(np.float32)) / 2
    for exact in (numbers, *(np.nextafter(middles, to) for to in (0, middles, np.inf))):
        rows = map("w{} {}\n".format, range(len(bits)), map(Decimal, exact.astype(float).tolist()))
        Path("v").write_text("".join(rows))
        assert same_bits(Vectors.load("v").vectors[:, 0], exact.astype(np.float32))


def test_binary_is_header_words_and_little_endian_floats():
    path = save(Path("v.bin"), ["a", "bc"], [[1.0, -2.0], [0.5, 0.0]])
    assert path.read_bytes() == (
        b"2 2\n"
        b"a \x00\x00\x80\x3f\x00\x00\x00\xc0\n"
        b"bc \x00\x00\x00\x3f\x00\x00\x00\x00\n"
    )  # fmt: skip


def test_safetensors_have_all_that_vectors_have():
    words, numbers = ["a", "b", "c"], np.arange(6, dtype=np.float32).reshape(3, 2)
    made = {"options": {"dim": 2}, "argv": None}
    context = Vectors(words, numbers + 1)
    v = Vectors(words, numbers, counts=[9, 5, 1], context=context, manifest=made)
    v.save("v.safetensors")
    assert [one.name for one in Path().iterdir()] == ["v.safetensors"]
    for limit in (None, 2):
        found, wanted = Vectors.load("v.safetensors", limit=limit), v[:limit]
        assert list(found.words) == list(wanted.words) and same_bits(found.vectors, wanted.vectors)
        assert same_bits(found.context.vectors, wanted.context.vectors)
        assert found.counts.tolist() == wanted.counts.tolist() and found.manifest == made


@pytest.mark.parametrize(
    "arrays, entries, said",
    [
        ({"vectors": np.ones((3, 1), "f4")}, {}, "vectors: is float32 of shape (3, 1)"),
        ({"vectors": np.ones((2, 1))}, {}, "vectors: is float64"),
        ({"vectors": np.ones((2, 0), "f4")}, {}, "have no dimensions"),
        ({"vectors": np.array([[1], [np.nan]], "f4")}, {}, "vectors: has a number that is NaN"),
        ({"vectors": np.ones((2, 1), "i1")}, {}, "vectors: is int8"),
        ({"counts": np.ones(1, "i8")}, {}, "counts: is"),
        ({"counts": -np.ones(2, "i8")}, {}, "counts: has a negative number"),
        ({"context": np.ones((3, 1), "f4")}, {}, "context: is"),
        ({"words_text": np.frombuffer(b"aa", "u1")}, {}, "words_text: duplicate word"),
        ({}, {"manifest": []}, "manifest: is not a JSON object"),
        ({}, {"manifest": {"options": [1]}}, "manifest.options: is not a JSON object"),
        ({}, {"kind": "scdv"}, "is a 'scdv' file; use a 'vectors' or"),
        ({}, {"version": 2}, "has format version 2"),
    ],
)
def test_wrong_contents_of_safetensors(arrays, entries, said):
    save(Path("v.safetensors"), ["a", "b"], [[1], [2]])
    edit("v.safetensors", arrays, **entries)
    with pytest.raises(FormatError) as caught:
        Vectors.load("v.safetensors")
    assert said in caught.value.message


# What reads all vectors, or says what is nearest.
USES = {
    "neighbors": lambda v: v.most_similar("the"),
    "init": lambda v: dw.train([["the", "a"]] * 9, init=v, dim=4, min_count=1),
    "classes": lambda v: dw.classes(v, 2),
    "similarity": lambda v: dw.eval_similarity(v, "pairs"),
    "encode": lambda v: dw.SentenceEncoder(v).fit([["the"]]),
    "documents": lambda v: dw.SCDV(v, clusters=2).fit([["the"], ["a"]]),
    "predict": lambda v: dw.predict_word(v, "the _ a"),
}


@pytest.mark.parametrize("use", USES)
def test_mapped_vectors_are_checked_where_they_are_used(monkeypatch, use):
    monkeypatch.setattr(artifact, "READ_BYTES", 0)
    rows, name = np.array([[1, 2], [np.nan, 3]], "f4"), "v.safetensors"
    save(Path(name), ["the", "a"], [[1, 2], [2, 3]])
    edit(name, {"vectors": rows, "context": rows, "counts": np.array([2, 1])})
    with pytest.raises(FormatError, match="vectors: has a number that is NaN"):
        Vectors.load(name, mmap=False)
    Path("pairs").write_text("the\ta\t1\na\tthe\t2\n")
    found = Vectors.load(name)
    assert isinstance(found.vectors, np.memmap)
    with pytest.raises(FormatError, match=r"NaN or infinite|norm of vector 2 is not finite"):
        USES[use](found)


CUT = """
import os
import dcme_w2v as dw
from dcme_w2v.formats import artifact
artifact.READ_BYTES = 0
for name in ("v.safetensors", "v.bin"):
    v = dw.Vectors.load(name)
    os.truncate(name, 1)
    for use in (v.most_similar, lambda word: dw.train([[word]], init=v, dim=2),
                lambda word: dw.classes(v, 2), lambda word: dw.encode(v, "t", "o.npy")):
        try:
            use("the")
        except dw.errors.FormatError as error:
            assert f"{name}: the file was truncated" in str(error), error
        else:
            raise AssertionError(name)
"""


def test_a_mapped_file_that_is_cut_is_an_error():
    """Reading its numbers would end the process."""
    save(Path("v.safetensors"), ["the", "a"], [[1, 2], [2, 3]])
    write_model(Path("v.bin"))
    Path("t").write_text("the\n")
    python("-c", CUT, check=True)


def test_an_array_without_words_is_no_file_of_vectors():
    np.save("v.npy", np.ones((2, 1), "f4"))
    with pytest.raises(FormatError, match=r"v\.npy is a numpy array without words"):
        Vectors.load("v.npy")
    with pytest.raises(UsageError, match=r"vectors cannot be written to a \.npy"):
        Vectors(["a"], [[1]]).save("w.npy")


def test_a_record_of_another_kind_is_not_replaced():
    Path("v.bin.json").write_text('["mine"]')
    with pytest.warns(UserWarning, match="was not overwritten, because it is not a manifest"):
        Vectors(["a"], [[1]], manifest={"options": {}}).save("v.bin")
    assert Path("v.bin.json").read_text() == '["mine"]' and Vectors.load("v.bin")["a"] == 1
    with pytest.raises(ValueError, match="not JSON compliant"):
        Vectors(["a"], [[1]], manifest={"options": {}, "loss": np.nan}).save("w.bin")


# ---- round trips ----


@QUICK
@pytest.mark.parametrize("format", FORMATS)
@given(data=vectors())
def test_round_trip_of_any_words_and_bits(format, data):
    same_words(save(Path(f"v{SUFFIX[format]}"), *data), *data)


@pytest.mark.parametrize("format", ["text", "binary"])
def test_round_trip_over_many_blocks(format):
    matrix = np.random.default_rng(2).standard_normal((9000, 300)).astype(np.float32)
    words = [f"w{i}" for i in range(len(matrix))]
    path = save(Path("v"), words, matrix, format=format)
    assert path.stat().st_size > BLOCK
    same_words(path, words, matrix)
    same_words(path, words[:8000], matrix[:8000], limit=8000)


@pytest.mark.parametrize("format", ["text", "binary"])
def test_gensim_reads_every_format(format):
    models = pytest.importorskip("gensim.models")
    words = ["the", "naïve", "\u00a0x", "</s>", "日本"]
    matrix = np.random.default_rng(3).standard_normal((5, 4)).astype(np.float32)
    path = save(Path(f"v{SUFFIX[format]}"), words, matrix, counts=np.arange(5, 0, -1))
    theirs = models.KeyedVectors.load_word2vec_format(str(path), binary=format == "binary")
    assert theirs.index_to_key == words and same_bits(theirs.vectors, matrix)


# ---- files of other programs ----

EXPECTED = [[1.5, -0.25], [1e-9, 300.0]]

FLOATS = [struct.pack("<2f", *row) for row in EXPECTED]


@pytest.mark.parametrize(
    "content",
    [
        b"2 2\na 1.5 -0.25\nb 1e-9 3e2\n",
        b"2 2\na 1.5 -0.25 \nb 1e-09 300 \n",  # word2vec.c, fastText
        b"2 2 \r\na 1.5 -0.25\r\nb 1e-9 +300.0\r\n",
        b"2 2\na 1.50000000000000000000000 -.25\nb .000000001 300.",  # no line end at the end
        b"\xef\xbb\xbf2 2\na 1.5 -0.25\nb 1E-9 3E+02\n\n",  # byte order mark, blank last line
        b"2\t2\na\t1.5\t-0.25\nb  1e-9  300\n",
        b"a 1.5 -0.25\nb 1e-9 300\n",  # GloVe: no header
        b"2 2\na %bb %b" % (*FLOATS,),
        b"2 2\na %b\nb %b\n" % (*FLOATS,),
    ],
)
@pytest.mark.parametrize("pack", [bytes, *COMPRESSORS.values()])
def test_variants_of_text_give_the_same_vectors(content, pack):
    Path("v").write_bytes(pack(content))
    same_words("v", ["a", "b"], np.array(EXPECTED, dtype=np.float32))


# ---- errors of writing ----


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    "words, value, message",
    [
        (["a", "b"], np.nan, "vector of 'b' in row 2 is NaN"),
        (["a", "b"], -np.inf, "vector of 'b' in row 2 is NaN or infinite"),
        (["a", "a"], 1, "duplicate word .'a'. in row 2"),
        (["a", "b c"], 1, "separator in a word .'b c'. in row 2"),
        (["a", "b\v"], 1, "separator in a word"),
        (["a", b"\xf0\x9f"], 1, "invalid UTF-8 in a word"),
        (["a", "b\0"], 1, "NUL byte in a word"),
    ],
)
def test_invalid_vectors_are_not_written(here, format, words, value, message):
    target = save(Path(f"v{SUFFIX[format]}"), ["old"], [[1.0]])
    before = {path: path.read_bytes() for path in here.iterdir()}
    with pytest.raises(FormatError, match=message):
        save(target, words, [[1.0], [value]])
    assert {path: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize("format", FORMATS)
def test_views_with_strides_are_written_correctly(format):
    wide = np.arange(60, dtype=np.float32).reshape(5, 12)
    for view in (wide[:, :5], wide[::2, 1:8:3], wide.T[:5]):
        words = [f"w{k}" for k in range(len(view))]
        same_words(save(Path(f"v{SUFFIX[format]}"), words, view), words, view)


# ---- files that are errors when they are read ----


CORRUPT = {
    "blank row": (b"2 1\na 1\n\nb 2\n", ":3: wrong dimension (expected: 1); run"),
    "no dimension": (b"1 0\na\n", ":1: the vectors have 0 dimensions, but must have 1 to"),
    "too many rows": (b"3000000000 2\na 1 2\n", ":1: the file has 3000000000 rows, but at most"),
    "negative": (b"-1 2\na 1 2\n", ":2: wrong dimension (expected: 1)"),
    "header over 2^63": (b"99999999999999999999 2\na 1 2\n", ":2: wrong dimension"),
    "promises more than the file": (
        b"2000000000 200000\na 1 2\n",
        "the header declares 2000000000 rows",
    ),
    "promises more, packed": (gzip.compress(b"2000000000 200000\na 1 2\n"), ":2: wrong dimension"),
    "packing cut": (gzip.compress(b"1 1\na 1\n")[:-6], "truncated at byte"),
    "corrupt compression": (bz2.compress(b"1 1\na 1\n")[:12] + bytes(30), "is corrupt before byte"),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_damaged_files_are_reported_with_the_place(name):
    content, message = CORRUPT[name]
    Path("v").write_bytes(content)
    with pytest.raises(FormatError) as raised:
        Vectors.load("v")
    assert message in str(raised.value)
    assert str(raised.value).startswith("v")


def test_a_row_longer_than_a_block_is_an_error():
    Path("v").write_bytes(b"2 1\na 1\nb" + b" " * (BLOCK + 9) + b"1\n")
    with pytest.raises(FormatError, match=r":3: no row ends within"):
        Vectors.load("v")


@pytest.mark.parametrize("text, said", [
    ("0.1 0.2 0.3\n0.4 -0.5 0.6\n", "begins with the number 0.1, not with a word"),
    ("2 2\n1e-3 0.2 0.3\n.4 -0.5 0.6\n", "begins with the number 1e-3, not with a word"),
    ('"king" 0.1 0.2\n"a b" 0.3 0.4\n"x" 1 2\n', None),
    ('"king" 0.1 0.2\n"queen" 0.3 0.4\n', "in quotes; in R, write the file with quote=FALSE"),
    ("1984 0.1 0.2\n3.14 0.3 0.4\n", None), ('" 0.1 0.2\n" 0.3 0.4\n', None),
])  # fmt: skip
def test_layouts_that_are_not_word_vectors(text, said):
    Path("v.txt").write_text(text)
    if said is None:
        with contextlib.suppress(FormatError):
            dw.Vectors.load("v.txt")
        return
    with pytest.raises(FormatError, match=said):
        dw.Vectors.load("v.txt")
