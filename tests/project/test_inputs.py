"""What every public function and estimator makes of odd texts, labels and counts."""

import numpy as np
import pytest

import dcme_w2v as dw
from dcme_w2v.errors import DcmeError, UsageError

TEXTS = ["tea leaf green", "boat sea sail", "tea cup leaf", "boat sail wind"] * 6
LABELS = ["a", "b"] * 12
ROWS = np.random.default_rng(0).random((24, 5))


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Vectors and estimators by name."""
    vectors = dw.train(TEXTS, dim=8, min_count=1, epochs=1, threads=1)
    path = str(tmp_path_factory.mktemp("inputs") / "v.safetensors")
    vectors.save(path)
    return {
        "vectors": vectors, "path": path,
        "classifier": dw.TextClassifier().fit(TEXTS, LABELS),
        "documents": dw.SCDV(vectors, clusters=2).fit(TEXTS),
        "encoder": dw.SentenceEncoder(vectors).fit(TEXTS),
        "search": dw.Search().fit(TEXTS),
    }  # fmt: skip


# ---- texts ----

# What takes texts: a function of the fitted objects and the texts, which gives one result per text.
TAKE_TEXTS = {
    "TextClassifier.fit": lambda f, x: dw.TextClassifier(tune=False).fit(x, LABELS).predict(x),
    "TextClassifier.predict": lambda f, x: f["classifier"].predict(x),
    "TextClassifier.predict_proba": lambda f, x: f["classifier"].predict_proba(x),
    "TextClassifier.predict_top": lambda f, x: f["classifier"].predict_top(x),
    "TextClassifier.decision_function": lambda f, x: f["classifier"].decision_function(x),
    "Predictor.predict": lambda f, x: f["classifier"].model_.predict(x),
    "SCDV.fit": lambda f, x: dw.SCDV(f["vectors"], clusters=1).fit_transform(x).toarray(),
    "SCDV.transform": lambda f, x: f["documents"].transform(x).toarray(),
    "SentenceEncoder.fit": lambda f, x: dw.SentenceEncoder(f["vectors"]).fit_transform(x),
    "SentenceEncoder.transform": lambda f, x: f["encoder"].transform(x),
    "Search.fit": lambda f, x: dw.Search().fit(x).search(["tea"] * 24),
    "Search.search": lambda f, x: f["search"].search(x),
}
OPTIONAL_TEXTS = {  # take paths, too
    "train": lambda f, x: dw.train(x, dim=4, min_count=1, threads=1),
    "vocab": lambda f, x: dw.vocab(x, min_count=1),
    "phrases": lambda f, x: dw.phrases(x, "out"),
    "eval_likelihood": lambda f, x: dw.eval_likelihood(f["vectors"], x),
}
EMPTY = (None, float("nan"), "", " \n", b"", [], (), [[]])
WRONG = {
    "tea\0leaf": "contains a NUL", b"tea\0": "contains a NUL", ("tea\0", "leaf"): "contains a NUL",
    b"\xff tea": "is not UTF-8", (b"\xff",): "is not UTF-8",
    (None,): "is neither a text nor", 3: "is neither a text nor", 1.5: "is neither a text nor",
    ("",): "the token '' is empty", ("a b",): "contains whitespace",
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:1 of 24 texts are empty")
@pytest.mark.parametrize("name", TAKE_TEXTS)
@pytest.mark.parametrize("empty", EMPTY, ids=repr)
def test_empty_texts_are_documents_without_tokens(fitted, name, empty):
    assert len(TAKE_TEXTS[name](fitted, [*TEXTS[:-1], empty])) == 24


@pytest.mark.parametrize("name", TAKE_TEXTS)
@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_what_is_no_text_is_one_error_with_its_position(fitted, name, wrong):
    with pytest.raises(DcmeError, match=r"^\w+ 23:? .*" + WRONG[wrong]):
        TAKE_TEXTS[name](fitted, [*TEXTS[:-1], wrong])


@pytest.mark.parametrize("name", TAKE_TEXTS | OPTIONAL_TEXTS)
@pytest.mark.parametrize("one", ["king queen ball", "the king has a ball", b"king queen", 5])
def test_one_text_is_no_list_of_texts(fitted, name, one):
    with pytest.raises(UsageError, match=r"(pass|use) a list|must be a path, a list of paths, or"):
        (TAKE_TEXTS | OPTIONAL_TEXTS)[name](fitted, one)


def test_a_list_without_paths_is_an_error_of_encode(fitted):
    for texts in ([["tea"]], [None], [b"tea"], None):
        with pytest.raises(UsageError, match="files must be paths"):
            dw.encode(fitted["vectors"], texts, "o.npy")


# ---- paths ----

TAKE_PATHS = {
    "load": lambda f, path: dw.load(path),
    "info": lambda f, path: dw.info(path),
    "check": lambda f, path: dw.check(path),
    "compare": lambda f, path: dw.compare(path, f["vectors"]),
    "classes": lambda f, path: dw.classes(path, 2),
    "predict_word": lambda f, path: dw.predict_word(path, "a _"),
    "train": lambda f, path: dw.train(TEXTS, init=path),
    "Search.load": lambda f, path: dw.Search.load(path),
    "Vectors.save": lambda f, path: f["vectors"].save(path),
    "Search.save": lambda f, path: f["search"].save(path),
    "TextClassifier.save": lambda f, path: f["classifier"].save(path),
    "eval_similarity": lambda f, path: dw.eval_similarity(f["vectors"], path),
    "eval_analogies": lambda f, path: dw.eval_analogies(f["vectors"], path),
    "read_vocab": lambda f, path: dw.train(TEXTS, read_vocab=path),
    "explore": lambda f, path: dw.explore(f["vectors"], path),
    "Table": lambda f, path: dw.Table(path, "text"),
    "save_sentence_model": lambda f, path: dw.save_sentence_model(f["vectors"], path),
}


@pytest.mark.parametrize("name", TAKE_PATHS)
@pytest.mark.parametrize("wrong", [5, None, 2.5])
def test_what_is_no_path_is_one_error_with_its_type(fitted, name, wrong):
    if wrong is None and name in ("train", "read_vocab", "explore"):
        return  # the default
    message = f"(path|output) must be a path, not {type(wrong).__name__}"
    with pytest.raises(TypeError, match=message):
        TAKE_PATHS[name](fitted, wrong)


@pytest.mark.parametrize("name", TAKE_PATHS)
def test_an_empty_path_is_one_error_with_its_argument(fitted, name):
    with pytest.raises(ValueError, match=r"^\S+: the path is empty; choose a file$"):
        TAKE_PATHS[name](fitted, "")


# ---- counts ----

TAKE_COUNTS = {  # and the least count of each
    "most_similar topn": (1, lambda f, n: f["vectors"].most_similar("tea", topn=n)),
    "most_similar limit": (1, lambda f, n: f["vectors"].most_similar("tea", limit=n)),
    "Vectors.load": (0, lambda f, n: dw.Vectors.load(f["path"], limit=n)),
    "predict_top": (0, lambda f, n: f["classifier"].predict_top(TEXTS[:1], n)),
    "explain": (1, lambda f, n: f["classifier"].explain(TEXTS[0], count=n)),
    "search": (1, lambda f, n: f["search"].search(["tea"], n)),
    "classes": (1, lambda f, n: dw.classes(f["path"], n)),
    "compare topn": (1, lambda f, n: dw.compare([f["path"]], [f["path"]], topn=n)),
    "compare min_count": (1, lambda f, n: dw.compare([f["path"]], [f["path"]], min_count=n)),
    "predict_word": (1, lambda f, n: dw.predict_word(f["vectors"], "tea _", topn=n)),
    "explore limit": (3, lambda f, n: dw.explore(f["path"], limit=n)),
    "explore color": (1, lambda f, n: dw.explore(f["path"], color=n)),
    "plot limit": (3, lambda f, n: dw.plot(f["path"], limit=n)),
    "plot seed": (0, lambda f, n: dw.plot(f["path"], seed=n)),
    "save_sentence_model dim": (1, lambda f, n: dw.save_sentence_model(f["path"], "o", dim=n)),
    "save_sentence_model limit": (1, lambda f, n: dw.save_sentence_model(f["path"], "o", limit=n)),
    "encode dim": (1, lambda f, n: dw.encode(f["path"], "none", "o.npy", dim=n)),
    "eval_similarity": (1, lambda f, n: dw.eval_similarity(f["path"], "none", limit=n)),
    "eval_analogies": (1, lambda f, n: dw.eval_analogies(f["path"], "none", limit=n)),
    "eval_likelihood": (1, lambda f, n: dw.eval_likelihood(f["vectors"], ["tea"], window=n)),
    "most_common": (0, lambda f, n: dw.vocab(TEXTS).most_common(n)),
    "search name": (0, lambda f, n: f["search"].name(n)),
    "search beginning": (0, lambda f, n: f["search"].beginning(n)),
    "Table group": (0, lambda f, n: dw.Table("none", "text", group=n)),
    "train dim": (1, lambda f, n: dw.train(TEXTS, dim=n)),
    "vocab": (1, lambda f, n: dw.vocab(TEXTS, min_count=n)),
    "TextClassifier": (1, lambda f, n: dw.TextClassifier(features=n).fit(TEXTS, LABELS)),
    "threads": (1, lambda f, n: f["classifier"].model_.predict_top(TEXTS, threads=n)),
    "MaxentClassifier": (1, lambda f, n: dw.MaxentClassifier(epochs=n).fit(ROWS, LABELS)),
}


@pytest.mark.parametrize("name", TAKE_COUNTS)
@pytest.mark.parametrize("value", [-1, 1.5, "3", True, float("nan"), 10**20, 10**400, "below"])
def test_counts_have_bounds_and_are_integers(fitted, name, value):
    least, call = TAKE_COUNTS[name]
    value = least - 1 if value == "below" else value
    with pytest.raises(UsageError, match=r"must be|does not fit in 64 bits") as found:
        call(fitted, value)
    assert len(str(found.value)) < 300


def test_thresholds_have_bounds_and_are_numbers(fitted):
    for value in (-1, 2, float("nan"), "0.5", 0):
        if value != 0:
            with pytest.raises(UsageError, match="must be a number from 0 to 1"):
                fitted["classifier"].predict(TEXTS, min_probability=value)
        with pytest.raises(UsageError, match="must be above 0 and at most 1"):
            fitted["search"].duplicates(value)


# ---- labels ----


@pytest.mark.parametrize("estimator", [
    dw.TextClassifier, dw.MaxentClassifier, dw.LatentClassModel, dw.FusedFeatures,
])  # fmt: skip
def test_numbers_with_fractions_are_no_labels(estimator):
    rows = TEXTS if estimator is dw.TextClassifier else ROWS
    with pytest.raises(ValueError, match=r"label|continuous"):
        estimator().fit(rows, [1.5, 2.5] * 12)
