"""Hand-edited and corrupt models and checkpoints: one line naming the folder and the entry."""

import json
import os
import shutil

import numpy as np
import pytest
from helpers import SMALL_SCDV, make_texts, refused, word_vectors

from dcme_w2v.classify.model import Classifier
from dcme_w2v.cli.main import run
from dcme_w2v.errors import FormatError
from dcme_w2v.latent.model import LatentClassifier
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.model import DocumentModel

TEXTS = ["fish swim water fin", "wheel road car", "fish water", "car wheel fast"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    labelled = folder / "labelled"
    lines = [f"{'ab'[number % 2]}\t{text}\n" for number, text in enumerate(TEXTS * 3)]
    labelled.write_text("".join(lines))
    train = ["classify", "train", str(labelled), "--threads", "1", "--quiet", "--epochs", "2"]
    assert run([*train, "--output", str(folder / "text")]) == 0
    assert run([*train, "--hashing", "64", "--output", str(folder / "hashed")]) == 0
    rows = folder / "rows.svm"
    rows.write_text("a 0:1 1:2\nb 2:1 3:2\n" * 5)
    assert run([*train[:2], str(rows), *train[3:], "--output", str(folder / "rows")]) == 0
    fit = ["latent", "fit", str(labelled), "--threads", "1", "--quiet", "--epochs", "2"]
    assert run([*fit, "--output", str(folder / "latent")]) == 0
    fit_documents(make_texts(), word_vectors(), SMALL_SCDV).save(folder / "scdv")
    return folder


def edit(folder, **values):
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def rewrite(folder, old, new):
    path = folder / "model.json"
    path.write_text(path.read_text().replace(old, new))


def replace(folder, name, array):
    """Replace an array of a model, and its entry in the list of arrays."""
    np.save(folder / f"{name}.npy", array)
    listed = json.loads((folder / "model.json").read_text())["arrays"]
    listed[name] = {"dtype": array.dtype.str, "shape": list(array.shape)}
    edit(folder, arrays=listed)


def with_number(folder, name, value, at=0):
    array = np.load(folder / f"{name}.npy")
    array.flat[at] = value
    replace(folder, name, array)


def with_entry(folder, entry, key, value):
    found = json.loads((folder / "model.json").read_text())[entry]
    edit(folder, **{entry: {**found, key: value}})


def without(folder, name):
    listed = json.loads((folder / "model.json").read_text())["arrays"]
    edit(folder, arrays={key: value for key, value in listed.items() if key != name})


def stored_weights(folder):
    return "weights" if (folder / "weights.npy").exists() else "weights_values"


BAD_CLASSIFIERS = [
    ("text", "weights", lambda f: with_number(f, stored_weights(f), np.nan)),
    ("rows", "weights", lambda f: with_number(f, stored_weights(f), np.inf)),
    ("rows", "offset: is", lambda f: replace(f, "offset", np.zeros(3, np.float32))),
    ("rows", "offset: has", lambda f: replace(f, "offset", np.full(2, -np.inf, np.float32))),
    ("text", "idf: has", lambda f: with_number(f, "idf", np.nan)),
    ("text", "idf: there is no", lambda f: without(f, "idf")),
    ("text", "idf: is float32 of shape (2,)", lambda f: replace(f, "idf", np.ones(2, "f4"))),
    ("text", "words_text: invalid UTF-8", lambda f: with_number(f, "words_text", 0xFF)),
    ("text", "words_text: NUL byte", lambda f: with_number(f, "words_text", 0)),
    ("text", "words_offsets: does", lambda f: with_number(f, "words_offsets", -1)),
    ("text", "words_offsets: does", lambda f: replace(f, "words_offsets", np.arange(3))),
    # differences of which wrap around
    ("text", "words_offsets: does", lambda f: with_number(f, "words_offsets", -(2**63), at=2)),
    ("text", "words_offsets: does", lambda f: with_number(f, "words_offsets", 2**62 + 2**61, at=2)),
    ("text", "weights: are of", lambda f: with_entry(f, "features", "hashing", 3)),
    ("hashed", "features: --hashing=109", lambda f: with_entry(f, "features", "hashing", 1 << 40)),
    ("hashed", "weights: are of", lambda f: with_entry(f, "features", "hashing", 65)),
    ("text", "features: unknown option", lambda f: with_entry(f, "features", "ngram", 3)),
    ("text", "features: --ngrams='x'", lambda f: with_entry(f, "features", "ngrams", "x")),
    ("text", "features: is 7", lambda f: edit(f, features=7)),
    ("text", "options: --lr=", lambda f: with_entry(f, "options", "lr", "fast")),
    ("text", "threshold: is 'x', must be a finite", lambda f: edit(f, threshold="x")),
    ("text", "threshold: is True", lambda f: edit(f, threshold=True)),
    ("text", "threshold: is 7, must be 0 to 1", lambda f: edit(f, threshold=7)),
    ("text", "threshold: is 10", lambda f: edit(f, threshold=10**400)),
    ("text", "several_labels: is 'no'", lambda f: edit(f, several_labels="no")),
    ("text", "classes: is 'ab', must be a list", lambda f: edit(f, classes="ab")),
    ("text", "classes: item 2 is 7", lambda f: edit(f, classes=["a", 7])),
    ("text", "classes: item 1 is", lambda f: edit(f, classes=["\ud800", "b"])),
    ("text", "classes: is empty", lambda f: edit(f, classes=[])),
    ("text", "classes: has 'a' twice", lambda f: edit(f, classes=["a", "a"])),
    ("text", "weights", lambda f: edit(f, classes=["a", "b", "c"])),
    ("text", "record: is []", lambda f: edit(f, record=[])),
    ("text", "NaN is not a finite number", lambda f: edit(f, threshold=float("nan"))),
    (
        "text",
        "1e999 is not a finite number",
        lambda f: rewrite(f, '"several_labels": false', '"x": 1e999'),
    ),
    ("text", "arrays: is no object", lambda f: edit(f, arrays=None)),
    (
        "text",
        "idf.npy: differs from its description",
        lambda f: with_entry(f, "arrays", "idf", {"shape": 5}),
    ),
]
BAD_LATENT_MODELS = [
    ("weights: has", lambda f: with_number(f, "weights", np.nan)),
    ("weights: is", lambda f: replace(f, "weights", np.zeros((5, 3), np.float32))),
    ("alpha: has a row", lambda f: with_number(f, "alpha", 0.9999)),
    ("alpha: has a row", lambda f: with_number(f, "alpha", -1)),
    ("alpha: there is no", lambda f: without(f, "alpha")),
    ("alpha: is", lambda f: edit(f, classes=["a", "b", "c"])),
    ("shares: has a row", lambda f: with_number(f, "shares", 3)),
    ("shares: there is no", lambda f: without(f, "shares")),
    ("right: is", lambda f: replace(f, "right", np.ones((4, 3), np.float32))),
    ("weights: are of", lambda f: replace(f, "right", np.ones((4, 8), np.float32))),
    ("clusters: is 'no'", lambda f: edit(f, clusters="no")),
    ("options: --latent='x'", lambda f: with_entry(f, "options", "latent", "x")),
    ("words_text: invalid UTF-8", lambda f: with_number(f, "words_text", 0xFF)),
]
BAD_DOCUMENT_MODELS = [
    ("vectors: has", lambda f: with_number(f, "vectors", np.nan)),
    ("vectors: there is no", lambda f: without(f, "vectors")),
    ("weights: has", lambda f: with_number(f, "weights", np.inf)),
    ("idf: has", lambda f: with_number(f, "idf", -np.inf)),
    ("weights: has a number beyond 1e+06", lambda f: with_number(f, "weights", 3e38)),
    ("vectors: has a number beyond 1e+06", lambda f: with_number(f, "vectors", -3e38)),
    ("counts: has a number below 0", lambda f: with_number(f, "counts", -5)),
    ("mixture_means: has", lambda f: with_number(f, "mixture_means", np.nan)),
    ("posterior_shares: has", lambda f: with_number(f, "posterior_shares", np.nan)),
    ("posterior_starts: indptr", lambda f: with_number(f, "posterior_starts", 9, at=1)),
    ("posterior_topics: entry 0", lambda f: with_number(f, "posterior_topics", 5)),
    ("posterior_topics: entry 0", lambda f: with_number(f, "posterior_topics", -1)),
    ("words_text: duplicate word", lambda f: with_number(f, "words_text", ord("1"), at=1)),
    ("words_text: invalid UTF-8", lambda f: with_number(f, "words_text", 0xC3)),
    ("topics: is 0", lambda f: edit(f, topics=0)),
    ("topics: is '5'", lambda f: edit(f, topics="5")),
    ("topics: is 1000000", lambda f: edit(f, topics=10**15)),
    ("posterior_topics: entry", lambda f: edit(f, topics=2)),
    ("threshold: is -1", lambda f: edit(f, threshold=-1)),
    ("options: --covariance=full", lambda f: with_entry(f, "options", "covariance", "full")),
    ("mixture_covariance: is", lambda f: with_entry(f, "options", "covariance", "diag")),
    ("facts: is 1", lambda f: edit(f, facts=1)),
]


def check_refused(load, folder, entry):
    with pytest.raises(FormatError) as caught:
        load(folder)
    message = caught.value.message
    assert message.startswith(str(folder)) and entry in message and "\n" not in message
    assert message.endswith("fit the model again")


@pytest.mark.parametrize(("model", "entry", "damage"), BAD_CLASSIFIERS)
def test_a_damaged_classifier_names_its_entry(models, tmp_path, model, entry, damage):
    folder = shutil.copytree(models / model, tmp_path / "model")
    Classifier.load(folder)
    damage(folder)
    check_refused(Classifier.load, folder, entry)


@pytest.mark.parametrize(("entry", "damage"), BAD_DOCUMENT_MODELS)
def test_a_damaged_model_of_documents_names_its_entry(models, tmp_path, entry, damage):
    folder = shutil.copytree(models / "scdv", tmp_path / "model")
    DocumentModel.load(folder)
    damage(folder)
    check_refused(DocumentModel.load, folder, entry)


@pytest.mark.parametrize(("entry", "damage"), BAD_LATENT_MODELS)
def test_a_damaged_model_of_latent_classes_names_its_entry(models, tmp_path, entry, damage):
    folder = shutil.copytree(models / "latent", tmp_path / "model")
    LatentClassifier.load(folder)
    damage(folder)
    check_refused(LatentClassifier.load, folder, entry)


def test_repeated_features_are_refused(models, tmp_path):
    folder = shutil.copytree(models / "text", tmp_path / "model")
    offsets, text = np.load(folder / "words_offsets.npy"), np.load(folder / "words_text.npy")
    first = text[: offsets[1]]
    second = slice(offsets[1], offsets[2])
    changed = np.concatenate([first, first, text[second.stop :]])
    offsets[2:] += len(changed) - len(text)
    replace(folder, "words_text", changed)
    replace(folder, "words_offsets", offsets)
    check_refused(Classifier.load, folder, "words_text: duplicate word (words 2)")


@pytest.mark.parametrize("name", ["model.json", "idf.npy"])
def test_pipes_and_devices_in_a_model_are_rejected(models, tmp_path, name):
    folder = shutil.copytree(models / "text", tmp_path / "model")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    check_refused(Classifier.load, folder, f"{name}: is not a regular file")
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    check_refused(Classifier.load, folder, f"{name}: is not a regular file")


def test_a_huge_file_of_zeros_is_rejected_unread(models, tmp_path):
    folder = shutil.copytree(models / "text", tmp_path / "model")
    os.truncate(folder / "model.json", 2 << 30)
    check_refused(Classifier.load, folder, "bytes, the maximum is 1,073,741,824")


def test_commands_report_damaged_models_in_one_line(models, tmp_path, capsys):
    folder = shutil.copytree(models / "text", tmp_path / "model")
    with_number(folder, "idf", np.nan)
    docs = tmp_path / "docs"
    docs.write_text("a\tfish\n")
    for command in (["test", str(folder), str(docs)], ["predict", str(folder), str(docs)],
                    ["explain", str(folder), "a"]):  # fmt: skip
        assert f"{folder}: idf: has" in refused(capsys, run(["classify", *command]))


@pytest.mark.parametrize("command", ["test", "predict"])
def test_no_probability_is_nan(models, tmp_path, capsys, command):
    folder = shutil.copytree(models / "rows", tmp_path / "model")
    docs = tmp_path / "docs.svm"
    docs.write_text("a 0:3e38 1:3e38 2:3e38\n")
    with_number(folder, stored_weights(folder), 3e38)
    assert "NaN or infinite" in refused(capsys, run(["classify", command, str(folder), str(docs)]))
