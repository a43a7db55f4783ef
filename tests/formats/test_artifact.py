"""Files of arrays with a record: written whole, read by other programs, refused when damaged."""

import json
from pathlib import Path

import numpy as np
import pytest
from helpers import edit

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats import artifact
from dcme_w2v.formats.artifact import load_model, read_tensors, save_model, words_arrays
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import ChunkedArray

ARRAYS = {
    "x": np.arange(6, dtype=np.float32).reshape(2, 3),
    "bytes": np.arange(3, dtype=np.uint8),
    "none": np.empty((0, 3), dtype=np.int64),
    "number": np.array(7, dtype=np.float64),
    **words_arrays(Words.from_words(["tea", "grün"])),
}


@pytest.fixture
def path():
    save_model("m", "thing", 1, ARRAYS, {"options": {"k": 2}, "name": "ä\"'"})
    return Path("m")


@pytest.mark.parametrize("mapped", [False, True])
def test_what_is_written_is_read(path, monkeypatch, mapped):
    monkeypatch.setattr(artifact, "READ_BYTES", 0 if mapped else 1 << 20)
    model = load_model(path, "thing", 1)
    assert model.description == {"options": {"k": 2}, "name": "ä\"'"}
    assert model.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        found = model.arrays[name]
        assert found.dtype == array.dtype and found.flags.aligned and not found.flags.writeable
        np.testing.assert_array_equal(found, array)
    assert list(model.words()) == ["tea", "grün"]
    assert isinstance(model.arrays["x"], np.memmap) == mapped


def test_the_library_of_the_format_reads_a_file(path):
    library = pytest.importorskip("safetensors.numpy", reason="pip install safetensors")
    found = library.load_file(path)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
    library.save_file({"x": ARRAYS["x"]}, "theirs", {"by": "another"})
    np.testing.assert_array_equal(read_tensors("theirs")[1]["x"], ARRAYS["x"])
    with pytest.raises(FormatError, match="theirs: was not written by this program"):
        load_model("theirs", "thing", 1)


def test_a_failed_write_keeps_the_old_model(path):
    before = path.read_bytes()
    pieces = ChunkedArray((4,), np.dtype("f4"), lambda: iter([np.ones(3, "f4")]))
    for arrays in ({"x": pieces}, {"x": np.array([{}])}, {"x": np.ones(2, complex)}):
        with pytest.raises(ValueError, match=r"chunks have 12 bytes|cannot be written"):
            save_model(path, "thing", 1, arrays, {})
    assert path.read_bytes() == before and [one.name for one in Path().iterdir()] == ["m"]


def test_only_a_file_of_its_kind_is_replaced(path):
    Path("letter").write_text("Dear Ann")
    Path("empty").touch()
    for target, kind in (("m", "other"), ("letter", "thing")):
        with pytest.raises(UsageError, match="already exists, but is not a"):
            save_model(target, kind, 1, ARRAYS, {})
    for target in ("/dev/null", "m.gz"):
        with pytest.raises(
            UsageError, match="a model cannot be written to a pipe or to a compressed"
        ):
            save_model(target, "thing", 1, ARRAYS, {})
    save_model("empty", "thing", 2, ARRAYS, {})
    with pytest.raises(
        FormatError, match=r"has format version 2 .*, but this program reads version 1"
    ):
        load_model("empty", "thing", 1)
    with pytest.raises(FormatError, match="is a 'thing' file; use a 'other' file"):
        load_model("m", "other", 1)
    with pytest.raises(FormatError, match="no such file"):
        load_model("nothing", "other", 1)


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
RECORD = {"dcme_w2v": '{"kind":"thing","version":1}'}


def file_of(header, size=8, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + b"\1" * size


def one(size=8, **changed):
    return file_of({"__metadata__": RECORD, "x": {**ENTRY, **changed}}, size)


def two(begin, end, size):
    second = {**ENTRY, "data_offsets": [begin, end]}
    return file_of({"__metadata__": RECORD, "x": ENTRY, "y": second}, size)


@pytest.mark.parametrize(
    "content, said",
    [
        (b"", "is not a safetensors file, or is truncated"),
        (b"words and numbers", "truncated"),
        (file_of({}, length=1 << 63), "truncated"),
        (file_of(b"{"), "its header is corrupt"),
        (file_of(b"[" * 100_000), "its header is corrupt"),
        (file_of(b"\xff\xfe"), "its header is corrupt"),
        (file_of(b'{"x": NaN}'), "its header is corrupt"),
        (file_of(b'{"x": {}, "x": {}}'), "the key 'x' occurs twice"),
        (file_of(b"[]"), "its header is corrupt (no object)"),
        (file_of({"__metadata__": {"dcme_w2v": 1}}), "are not strings"),
        (file_of({}, size=0), "was not written by this program"),
        (file_of({"__metadata__": {"dcme_w2v": "[]"}}, 0), "its record is corrupt (no object)"),
        (file_of({"__metadata__": {"dcme_w2v": "{"}}, 0), "its record is corrupt"),
        (file_of({"x": {}}), "the entry of 'x' is not valid"),
        (one(dtype="BF16"), "'x' has the unsupported type 'BF16'"),
        (one(shape=[-2]), "not valid"),
        (one(shape=[True, 2]), "not valid"),
        (one(shape=2), "not valid"),
        (one(shape=[1 << 62, 4]), "not valid"),
        (one(shape=[10**400]), "does not fit in 64 bits"),
        (one(0, shape=[0, 1 << 70], data_offsets=[0, 0]), "does not fit in 64 bits"),
        (one(data_offsets=[0]), "not valid"),
        (one(data_offsets=[-8, 0]), "not valid"),
        (one(data_offsets=[8, 0]), "has 8 bytes, not the 0"),
        (one(7), "has 7 bytes, not the 8"),
        (one(16, data_offsets=[8, 16]), "the entry of 'x' is not valid"),
        (two(0, 8, 8), "the entry of 'y' is not valid"),
        (two(4, 16, 16), "the entry of 'y' is not valid"),
        (two(8, 16, 12), "has 12 bytes, not the 16"),
    ],
)
@pytest.mark.parametrize("mapped", [False, True])
def test_a_damaged_file_is_one_line(monkeypatch, content, said, mapped):
    monkeypatch.setattr(artifact, "READ_BYTES", 0 if mapped else 1 << 20)
    Path("m").write_bytes(content)
    with pytest.raises(FormatError) as caught:
        load_model("m", "thing", 1)
    assert said in caught.value.message
    assert caught.value.message.startswith("m: ")


def test_other_files_are_refused():
    Path("folder").mkdir()
    for name in ("folder", "/dev/null"):
        with pytest.raises(FormatError, match="is not a regular file"):
            load_model(name, "thing", 1)


@pytest.mark.parametrize(
    "changed, use, said",
    [
        ({"x": np.array([1, np.nan], "f4")}, lambda m: m.array("x", "float32", 2), "NaN"),
        ({}, lambda m: m.array("y", "float32", 2), "no such array"),
        ({}, lambda m: m.array("x", "float64", 2, 3), "must be float64"),
        ({}, lambda m: m.array("x", "float32", None), "must be float32 of shape (any)"),
        ({"words_offsets": np.array([1, 3])}, lambda m: m.words(), "does not ascend"),
        ({"words_offsets": np.array([0, 3])}, lambda m: m.words(), "does not ascend"),
        ({"words_offsets": np.array([0, 3, 3, 8])}, lambda m: m.words(), "empty word"),
        ({}, lambda m: m.value("nothing", int), "there is no such entry"),
        ({}, lambda m: m.value("name", int), "must be an integer"),
        ({}, lambda m: m.strings("options"), "must be a list"),
    ],
)
def test_a_model_checks_what_is_asked_for(path, changed, use, said):
    edit(path, changed)
    with pytest.raises(FormatError) as caught:
        use(load_model(path, "thing", 1))
    assert said in caught.value.message and caught.value.message.endswith("again")
