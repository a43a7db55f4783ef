"""Hand-edited and corrupt models and checkpoints: one line naming the folder and the entry."""

import json
import os
import shutil

import numpy as np
import pytest
from helpers import SMALL_SCDV, make_texts, refused, word_vectors

from dcme_w2v.classify.model import load_classifier
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
    assert run([*train, "--rank", "2", "--output", str(folder / "rank")]) == 0
    (folder / "tokens").write_text("Ann\tB\nsits\tO\n\nBob\tB\n\n" * 5)
    line = [*train[:2], str(folder / "tokens"), *train[3:], "--by", "token"]
    assert run([*line, "--output", str(folder / "token")]) == 0
    (folder / "unlabelled").write_text("".join(f"{text}\n" for text in TEXTS * 5))
    fit = ["fuse", "fit", str(labelled), "--unlabelled", str(folder / "unlabelled"), "--quiet"]
    for name, flags in (("beside", ["--final", "beside"]), ("distill", ["--no-choose"])):
        assert run([*fit, *flags, "--output", str(folder / name)]) == 0
    shrink = ["fuse", "shrink", str(folder / "text"), "--keep", "0.5", "--quiet"]
    assert run([*shrink, "--output", str(folder / "small")]) == 0
    return folder


def damage(folder, what, value=None):
    """Set a number "x[i]" of an array, replace the array "x=", unlist it "-x", or set an entry."""
    path = folder / "model.json"
    head = json.loads(path.read_text())
    name, _, at = what.removesuffix("]").partition("[")
    if what.startswith("-"):
        del head["arrays"][what[1:]]
    elif at or what.endswith("="):
        name = name.removesuffix("=")
        name += "_values" * (bool(at) and not (folder / f"{name}.npy").exists())
        array = np.load(folder / f"{name}.npy") if at else value
        if at:
            array.flat[int(at)] = value
        np.save(folder / f"{name}.npy", array)
        head["arrays"][name] = {"dtype": array.dtype.str, "shape": list(array.shape)}
    else:
        *above, last = what.split(".")
        (head[above[0]] if above else head)[last] = value
    path.write_text(json.dumps(head).replace("Infinity", "1e999"))


BAD = [
    ("text", "weights[0]", np.nan, "weights"),
    ("rows", "weights[0]", np.inf, "weights"),
    ("rows", "offset=", np.zeros(3, np.float32), "offset: is"),
    ("rows", "offset=", np.full(2, -np.inf, np.float32), "offset: has"),
    ("text", "idf[0]", np.nan, "idf: has"),
    ("text", "-idf", None, "idf: there is no"),
    ("text", "idf=", np.ones(2, "f4"), "idf: is float32 of shape (2,)"),
    ("text", "words_text[0]", 255, "words_text: invalid UTF-8"),
    ("text", "words_text[0]", 0, "words_text: NUL byte"),
    ("text", "words_offsets[0]", -1, "words_offsets: does"),
    ("text", "words_offsets=", np.arange(3), "words_offsets: does"),
    ("text", "words_offsets[2]", -(2**63), "words_offsets: does"),
    ("text", "words_offsets[2]", 2**62 + 2**61, "words_offsets: does"),
    ("text", "features.hashing", 3, "weights: are of"),
    ("hashed", "features.hashing", 1 << 40, "features: --hashing=109"),
    ("hashed", "features.hashing", 65, "weights: are of"),
    ("text", "features.ngram", 3, "features: unknown option"),
    ("text", "features.ngrams", "x", "features: --ngrams='x'"),
    ("text", "features", 7, "features: is 7"),
    ("text", "options.lr", "fast", "options: --lr="),
    ("text", "threshold", "x", "threshold: is 'x', must be a finite"),
    ("text", "threshold", True, "threshold: is True"),
    ("text", "threshold", 7, "threshold: is 7, must be 0 to 1"),
    ("text", "threshold", 10**400, "threshold: is 10"),
    ("text", "several_labels", "no", "several_labels: is 'no'"),
    ("text", "classes", "ab", "classes: is 'ab', must be a list"),
    ("text", "classes", ["a", 7], "classes: item 2 is 7"),
    ("text", "classes", ["\ud800", "b"], "classes: item 1 is"),
    ("text", "classes", [], "classes: is empty"),
    ("text", "classes", ["a", "a"], "classes: has 'a' twice"),
    ("text", "classes", ["a", "b", "c"], "weights"),
    ("text", "record", [], "record: is []"),
    ("text", "threshold", float("nan"), "NaN is not a finite number"),
    ("text", "arrays", None, "arrays: is no object"),
    ("text", "arrays.idf", {"shape": 5}, "idf.npy: differs from its description"),
    ("latent", "weights[0]", np.nan, "weights: has"),
    ("latent", "weights=", np.zeros((5, 3), np.float32), "weights: is"),
    ("latent", "alpha[0]", 0.9999, "alpha: has a row"),
    ("latent", "alpha[0]", -1, "alpha: has a row"),
    ("latent", "-alpha", None, "alpha: there is no"),
    ("latent", "classes", ["a", "b", "c"], "alpha: is"),
    ("latent", "shares[0]", 3, "shares: has a row"),
    ("latent", "-shares", None, "shares: there is no"),
    ("latent", "right=", np.ones((4, 3), np.float32), "right: is"),
    ("latent", "right=", np.ones((4, 8), np.float32), "weights: are of"),
    ("latent", "clusters", "no", "clusters: is 'no'"),
    ("latent", "options.latent", "x", "options: --latent='x'"),
    ("latent", "words_text[0]", 255, "words_text: invalid UTF-8"),
    ("scdv", "vectors[0]", np.nan, "vectors: has"),
    ("scdv", "-vectors", None, "vectors: there is no"),
    ("scdv", "weights[0]", np.inf, "weights: has"),
    ("scdv", "idf[0]", -np.inf, "idf: has"),
    ("scdv", "weights[0]", 3e38, "weights: has a number beyond 1e+06"),
    ("scdv", "vectors[0]", -3e38, "vectors: has a number beyond 1e+06"),
    ("scdv", "counts[0]", -5, "counts: has a number below 0"),
    ("scdv", "mixture_means[0]", np.nan, "mixture_means: has"),
    ("scdv", "posterior_shares[0]", np.nan, "posterior_shares: has"),
    ("scdv", "posterior_starts[1]", 9, "posterior_starts: indptr"),
    ("scdv", "posterior_topics[0]", 5, "posterior_topics: entry 0"),
    ("scdv", "posterior_topics[0]", -1, "posterior_topics: entry 0"),
    ("scdv", "words_text[1]", ord("1"), "words_text: duplicate word"),
    ("scdv", "words_text[0]", 195, "words_text: invalid UTF-8"),
    ("scdv", "topics", 0, "topics: is 0"),
    ("scdv", "topics", "5", "topics: is '5'"),
    ("scdv", "topics", 10**15, "topics: is 1000000"),
    ("scdv", "topics", 2, "posterior_topics: entry"),
    ("scdv", "threshold", -1, "threshold: is -1"),
    ("scdv", "options.covariance", "full", "options: --covariance=full"),
    ("scdv", "options.covariance", "diag", "mixture_covariance: is"),
    ("scdv", "facts", 1, "facts: is 1"),
    ("beside", "values[0]", np.nan, "values"),
    ("beside", "values=", np.zeros(8, np.float32), "values"),
    ("beside", "values=", np.zeros(1), "levels_data"),
    ("beside", "levels_data[0]", 0, "levels_data"),
    ("beside", "levels_data[0]", -128, "levels_data"),
    ("beside", "levels_indices[0]", 2, "levels_indices"),
    ("beside", "levels_indices[0]", -1, "levels_indices"),
    ("beside", "levels_indptr[0]", 5, "levels_indptr"),
    ("beside", "levels_indptr=", np.zeros(0, np.int64), "levels_indptr"),
    ("beside", "weights=", np.zeros(3), "weights"),
    ("beside", "-weights", None, "weights"),
    ("beside", "biases=", np.zeros(3), "biases"),
    ("beside", "-biases", None, "table"),
    ("beside", "options", {"levels": 0}, "options"),
    ("beside", "binary", 1, "binary"),
    ("beside", "final", "x", "final"),
    ("beside", "loss", "x", "loss"),
    ("beside", "record", 3, "record"),
    ("beside", "initial[0]", np.inf, "initial"),
    ("beside", "initial=", np.zeros((2, 2), np.float32), "initial"),
    ("beside", "initial_bias", None, "initial_bias"),
    ("distill", "table=", np.zeros((0, 2), np.float32), "table"),
    ("distill", "-table", None, "table"),
    ("distill", "table[0]", np.nan, "table"),
    ("distill", "bias", -1, "bias"),
    ("distill", "offset=", np.full(2, np.nan, np.float32), "offset"),
    ("small", "rows", 10**12, ""),
    ("small", "rows", -1, ""),
    ("small", "rows", 3, ""),
    ("small", "entries", 1, ""),
    ("small", "entries", "x", ""),
    ("small", "words_length", 10**15, ""),
    ("small", "words_length", 2, ""),
    ("small", "idf_step", 1e300, ""),
    ("small", "coding", {"levels": 0}, ""),
    ("small", "classes", ["a"], ""),
    ("small", "levels=", np.zeros(3, np.uint8), ""),
    ("small", "words=", np.full(900, 255, np.uint8), ""),
    ("small", "values=", np.zeros(1, np.float32), ""),
    ("small", "values=", np.full(8, np.nan, np.float32), ""),
    ("small", "biases=", np.zeros(3, np.float32), ""),
    ("small", "idf=", np.zeros(2, np.float32), ""),
    ("text", "threshold", np.inf, "1e999 is not a finite number"),
    ("rank", "output[0]", np.nan, "output: "),
    ("rank", "output=", np.zeros((2, 1), np.float32), "weights: "),
    ("rank", "output=", np.zeros((1, 2), np.float32), "output: "),
    ("token", "tag_pairs=", np.zeros((2, 2), np.int64), "tag_pairs: is int64 of shape"),
    ("token", "tag_pairs[0]", -1, "tag_pairs: has a negative number"),
    ("token", "-tag_pairs", None, "tag_pairs: there is no such array"),
]
LOADERS = {"scdv": DocumentModel.load, "latent": LatentClassifier.load}


def check_refused(folder, said, load=load_classifier):
    with pytest.raises(FormatError) as caught:
        load(folder)
    message = caught.value.message
    assert message.startswith(str(folder)) and said in message and "\n" not in message
    assert message.endswith("again")


@pytest.mark.parametrize(("model", "what", "value", "said"), BAD)
def test_a_damaged_model_names_its_entry(models, tmp_path, model, what, value, said):
    folder, load = shutil.copytree(models / model, tmp_path / "m"), LOADERS.get(model)
    (load or load_classifier)(folder)
    damage(folder, what, value)
    check_refused(folder, said, load or load_classifier)


def test_repeated_features_are_refused(models, tmp_path):
    folder = shutil.copytree(models / "text", tmp_path / "model")
    offsets, text = np.load(folder / "words_offsets.npy"), np.load(folder / "words_text.npy")
    first = text[: offsets[1]]
    second = slice(offsets[1], offsets[2])
    changed = np.concatenate([first, first, text[second.stop :]])
    offsets[2:] += len(changed) - len(text)
    damage(folder, "words_text=", changed)
    damage(folder, "words_offsets=", offsets)
    check_refused(folder, "words_text: duplicate word (words 2)")


@pytest.mark.parametrize("name", ["model.json", "idf.npy"])
def test_pipes_and_devices_in_a_model_are_rejected(models, tmp_path, name):
    folder = shutil.copytree(models / "text", tmp_path / "model")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    check_refused(folder, f"{name}: is not a regular file")
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    check_refused(folder, f"{name}: is not a regular file")


def test_a_huge_file_of_zeros_is_rejected_unread(models, tmp_path):
    folder = shutil.copytree(models / "text", tmp_path / "model")
    os.truncate(folder / "model.json", 2 << 30)
    check_refused(folder, "bytes, the maximum is 1,073,741,824")


def test_commands_report_damaged_models_in_one_line(models, tmp_path, capsys):
    folder = shutil.copytree(models / "text", tmp_path / "model")
    damage(folder, "idf[0]", np.nan)
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
    damage(folder, "weights[0]", 3e38)
    assert "NaN or infinite" in refused(capsys, run(["classify", command, str(folder), str(docs)]))
