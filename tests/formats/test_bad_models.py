"""Hand-edited and corrupt models and checkpoints: one line naming the file and the entry."""

import json
import shutil

import numpy as np
import pytest
from data import SMALL_SCDV, make_texts, run_all, word_vectors
from helpers import rewrite

import dcme_w2v as dw
from dcme_w2v.errors import FormatError
from dcme_w2v.formats.artifact import read_artifact
from dcme_w2v.scdv.fit import fit_documents

TEXTS = ["fish swim water fin", "wheel road car", "fish water", "car wheel fast"]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "docs").write_text(
        "".join(f"{'ab'[i % 2]}\t{one}\n" for i, one in enumerate(TEXTS * 3))
    )
    (folder / "rows.svm").write_text("a 0:1 1:2\nb 2:1 3:2\n" * 5)
    (folder / "tokens").write_text("Ann\tB\nsits\tO\n\nBob\tB\n\n" * 5)
    (folder / "texts").write_text("".join(f"{text}\n" for text in TEXTS * 5))
    fit_documents(make_texts(), word_vectors(), SMALL_SCDV).save(folder / "scdv")
    train = "classify train docs --threads 1 --epochs 2 --output"
    run_all(
        folder,
        f"{train} text",
        f"{train} hashed --hashing 64",
        f"{train} rows".replace("docs", "rows.svm"),
        f"{train} token --by token".replace("docs", "tokens"),
        "latent fit docs --threads 1 --epochs 2 --output latent",
        "fuse fit docs --unlabeled texts --final beside --output beside",
        "fuse fit docs --unlabeled texts --no-choose --output distill",
        "classify shrink text --keep 0.5 --output small",
    )
    return folder


def damage(path, what, value=None):
    """Set a number "x[i]" of an array, replace it "x=", leave it out "-x", or set an entry."""
    head, arrays = read_artifact(path)
    name, _, at = what.removesuffix("]").partition("[")
    if what.startswith("-"):
        del arrays[what[1:]]
    elif at:
        name += "_values" * (name not in arrays)
        arrays[name] = arrays[name].copy()
        arrays[name].flat[int(at)] = value
    elif what.endswith("="):
        arrays[name.removesuffix("=")] = value
    else:
        *above, last = what.split(".")
        (head[above[0]] if above else head)[last] = value
    rewrite(path, json.dumps(head).replace("Infinity", "1e999"), arrays)


BAD = [
    ("text", "weights[0]", np.nan, "weights"),
    ("rows", "offset=", np.zeros(3, np.float32), "offset: is"),
    ("text", "idf[0]", 1e30, "idf: contains numbers outside"),
    ("text", "words_text[0]", 255, "words_text: invalid UTF-8"),
    ("text", "words_offsets[2]", 2**62 + 2**61, "words_offsets: does"),
    ("hashed", "features.hashing", 1 << 40, "features: --hashing=109"),
    ("text", "features.ngram", 3, "features: unknown option"),
    ("text", "options.lr", "fast", "options: --lr="),
    ("text", "threshold", 7, "threshold: is 7, must be 0 to 1"),
    ("text", "several_labels", "no", "several_labels: is 'no'"),
    ("text", "classes", ["a", 7], "classes: is ['a', 7], must be distinct"),
    ("text", "classes", ["a", "a"], "classes: is ['a', 'a'], must be distinct"),
    ("text", "classes", ["a", "b", "c"], "weights"),
    ("latent", "alpha[0]", 0.9999, "alpha: contains a row"),
    ("latent", "shares[0]", 3, "shares: contains a row"),
    ("latent", "right=", np.ones((4, 8), np.float32), "weights: cover"),
    ("latent", "clusters", "no", "clusters: is 'no'"),
    ("scdv", "idf[0]", 3e38, "idf: contains a number whose size exceeds 1e+06"),
    ("scdv", "counts[0]", -5, "counts: contains a negative number"),
    ("scdv", "mixture_means[0]", np.nan, "mixture_means: has"),
    ("scdv", "posterior_starts[1]", 9, "posterior_starts, posterior_topics: indptr"),
    ("scdv", "posterior_topics[0]", -1, "indices must be >= 0"),
    ("scdv", "words_text[1]", ord("1"), "words_text: duplicate word"),
    ("scdv", "topics", 10**15, "topics: is 1000000"),
    ("scdv", "threshold", -1, "threshold: is -1"),
    ("scdv", "options.covariance", "diag", "options: --covariance must be tied or spherical"),
    ("beside", "levels_data[0]", 0, "levels_data"),
    ("beside", "levels_indices[0]", 2, "levels_indices"),
    ("beside", "levels_indptr=", np.zeros(0, np.int64), "levels_indptr"),
    ("beside", "weights=", np.zeros(3, np.float32), "weights"),
    ("beside", "options", {"levels": 0}, "options"),
    ("distill", "weights=", np.zeros((0, 2), np.float32), "weights"),
    ("distill", "bias", -1, "bias"),
    ("small", "rows", 10**12, ""),
    ("small", "entries", 1, ""),
    ("small", "words_length", 10**15, ""),
    ("small", "idf_step", 1e300, ""),
    ("small", "coding", {"levels": 0}, ""),
    ("small", "levels=", np.zeros(3, np.uint8), ""),
    ("small", "words=", np.full(900, 255, np.uint8), ""),
    ("small", "values=", np.full(8, np.nan, np.float32), ""),
    ("small", "biases=", np.zeros(3, np.float32), ""),
    ("text", "calibration", ["logistic", 1, None], "calibration"),
    ("text", "calibration", ["normalized", 0, 1, 1], "noise fraction of the calibration"),
    ("text", "threshold", np.inf, "the number 1e999 is not finite"),
    ("token", "tag_pairs=", np.zeros((2, 2), np.int64), "tag_pairs: is int64 of shape"),
    ("token", "tag_pairs[0]", -1, "tag_pairs: contains a negative number"),
]


def check_refused(path, said):
    with pytest.raises(FormatError) as caught:
        dw.load(path)
    message = caught.value.message
    assert message.startswith(str(path)) and said in message
    assert message.endswith("again")


@pytest.mark.parametrize("model, what, value, said", BAD)
def test_a_damaged_model_names_its_entry(models, tmp_path, model, what, value, said):
    path = shutil.copy(models / model, tmp_path / "m")
    dw.load(path)
    damage(path, what, value)
    check_refused(path, said)


def integers_in(value, place=()):
    """Yield the place of each integer of a record."""
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    for name, one in parts:
        if isinstance(one, dict | list):
            yield from integers_in(one, (*place, name))
        elif type(one) is int:
            yield (*place, name)


@pytest.mark.parametrize(
    "model", ["text", "hashed", "rows", "token", "latent", "scdv", "beside", "distill", "small"]
)
def test_an_integer_of_400_digits_is_one_line(models, tmp_path, model):
    head, arrays = read_artifact(models / model)
    places = [*integers_in(head)]
    assert places
    for *above, last in places:
        record = json.loads(json.dumps(head))
        inner = record
        for name in above:
            inner = inner[name]
        inner[last] = 10**400
        rewrite(tmp_path / "m", json.dumps(record), arrays)
        with pytest.raises(FormatError, match="does not fit in 64 bits"):
            dw.load("m")


def test_scores_that_overflow_are_one_line(models, here, cli):
    damage(shutil.copy(models / "rows", here / "m"), "weights[0]", 3e38)
    (here / "docs.svm").write_text("a 0:3e38 1:3e38 2:3e38\n")
    for command in ("test", "predict"):
        assert "NaN or infinite" in cli.error(f"classify {command} m docs.svm")
