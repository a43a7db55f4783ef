"""The folder of a model: round trips, and errors for other folders."""

import json

import numpy as np
import pytest

from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files import temporary
from dcme_w2v.files.folders import atomic_folder
from dcme_w2v.formats import model_folder
from dcme_w2v.formats.model_folder import load_model, save_model, words_arrays
from dcme_w2v.formats.vocabulary import Words

WORDS = Words.from_words(["a", "über"])
ARRAYS = {
    "means": np.arange(6, dtype=np.float32).reshape(2, 3),
    "none": np.zeros((0, 3), dtype=np.int64),
    **words_arrays(WORDS),
}


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path / "model", "thing", 1, ARRAYS, {"options": {"k": 2}})
    return tmp_path / "model"


def change(folder, **values):
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_a_saved_model_round_trips(folder):
    model = load_model(folder, "thing", 1)
    assert model.description == {"options": {"k": 2}}
    for name, array in ARRAYS.items():
        assert model.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(model.arrays[name], array)
    assert isinstance(model.arrays["means"], np.memmap)
    assert not model.arrays["means"].flags.writeable
    assert list(model.words()) == ["a", "über"]


def test_a_new_folder_that_another_run_is_removing_is_made_again(folder, monkeypatch):
    """Between a folder's creation and its lock, another may have taken it for a stale one."""
    removed, lock = [], temporary.lock

    def removing(number):
        if not removed:
            removed.extend(folder.parent.glob(".new.*"))
            removed[0].rmdir()
        return lock(number)

    monkeypatch.setattr(temporary, "lock", removing)
    with atomic_folder(folder.parent / "new"):
        pass
    assert sorted(path.name for path in folder.parent.iterdir()) == ["model", "new"]


def test_a_model_that_another_run_replaces_meanwhile_is_replaced(folder, monkeypatch):
    """The other run removes the model whose JSON file is about to be read."""
    read = model_folder._read_head

    def replaced(path, number):
        monkeypatch.setattr(model_folder, "_read_head", read)
        save_model(folder, "thing", 1, ARRAYS, {"n": 2})
        return read(path, number)

    monkeypatch.setattr(model_folder, "_read_head", replaced)
    save_model(folder, "thing", 1, ARRAYS, {"n": 3})
    assert load_model(folder, "thing", 1).description["n"] == 3


def test_a_model_of_another_kind_or_with_more_in_its_folder_is_not_replaced(folder):
    with pytest.raises(UsageError, match="is not a model of kind other"):
        save_model(folder, "other", 1, {}, {})
    (folder / "notes").mkdir()
    (folder / "notes" / "letter.txt").write_text("dear")
    with pytest.raises(UsageError, match=r"other content \(notes\)"):
        save_model(folder, "thing", 1, {}, {})
    (folder / "notes").rename(folder.parent / "notes")
    (folder / "none.npy").unlink()
    (folder / "none.npy").symlink_to(folder.parent / "notes" / "letter.txt")
    with pytest.raises(UsageError, match=r"other content \(none.npy\)"):
        save_model(folder, "thing", 1, {}, {})
    assert (folder.parent / "notes" / "letter.txt").read_text() == "dear"
    assert (folder / "means.npy").exists()


def test_a_failed_write_keeps_the_old_model(folder):
    with pytest.raises(ValueError, match="Python objects"):
        save_model(folder, "thing", 1, {"x": np.array([{}])}, {})
    assert load_model(folder, "thing", 1).arrays.keys() == ARRAYS.keys()
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["../x", "a/b", "A", "", "x.y", "1x"])
def test_names_cannot_escape_the_folder(folder, name):
    with pytest.raises(ValueError, match="array name"):
        save_model(folder, "thing", 1, {name: np.ones(1)}, {})
    change(folder, arrays={name: {"dtype": "<f4", "shape": [2, 3]}})
    with pytest.raises(FormatError, match="no array's name"):
        load_model(folder, "thing", 1)


@pytest.mark.parametrize(
    "damage, message",
    [
        (lambda folder: (folder / "means.npy").unlink(), "no such file"),
        (lambda folder: (folder / "means.npy").write_bytes(b""), "is corrupt"),
        (lambda folder: (folder / "means.npy").write_bytes(b"PK\3\4..."), "is corrupt"),
        (lambda folder: np.save(folder / "means.npy", np.ones(3)), "differs from its description"),
        (
            lambda folder: np.save(folder / "words_offsets.npy", np.array([0, 9, 3])),
            "words_offsets: does not",
        ),
        (lambda folder: change(folder, arrays=[]), "arrays: is no object"),
        (lambda folder: (folder / "model.json").write_text("[]"), "is corrupt"),
        (lambda folder: (folder / "model.json").write_text("{"), "is corrupt"),
    ],
)
def test_a_damaged_folder_is_an_error(folder, damage, message):
    damage(folder)
    with pytest.raises(FormatError, match=message):
        load_model(folder, "thing", 1).words()
