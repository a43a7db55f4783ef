"""`TextClassifier` is the classifier of ``classify train``, and reads and writes its files."""

import json
import pickle
from copy import deepcopy
from decimal import Decimal
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from helpers import described, edit
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dcme_w2v as dw
from dcme_w2v import TextClassifier
from dcme_w2v.declarations import flag_of
from dcme_w2v.errors import DcmeWarning, FormatError, UsageError

WORDS = {"tea": "green black cup milk sugar leaf", "road": "red bus stop wheel train car"}
TOPICS = ["tea", "road", "road"] * 30
RANDOM = np.random.default_rng(4)
TEXTS = [" ".join(RANDOM.choice([*WORDS[one].split(), "the", "a"], 9)) for one in TOPICS]


def written(labels):
    """Write texts and labels as documents."""
    lines = zip(labels, TEXTS, strict=True)
    Path("d.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in lines))


LABELS = {
    "names": (lambda topic: topic, lambda topic: topic),
    "numbers": (lambda topic: len(topic) * 4, lambda topic: len(topic) * 4),
    "lists": (lambda topic: [topic, topic[0]], lambda topic: f"{topic}|{topic[0]}"),
}


@pytest.mark.bits
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize(
    "options", [{}, {"subwords": "2-3", "loss": "softmax"}, {"class_weight": "balanced"}]
)
def test_it_has_the_bits_of_the_shell(cli, kind, options):
    label, name = LABELS[kind]
    written(map(name, TOPICS))
    flags = [f"{flag_of(name)}={value}" for name, value in options.items()]
    cli("classify train d.tsv -o m --quiet", *flags)
    model = TextClassifier(**options).fit(TEXTS, [label(topic) for topic in TOPICS])
    shell, found = TextClassifier.load("m"), model.predict_proba(TEXTS)
    order = [shell.classes_.tolist().index(str(one)) for one in model.classes_]
    assert np.array_equal(shell.predict_proba(TEXTS)[:, order], found)
    model.save("n")
    assert np.array_equal(TextClassifier.load("n").predict_proba(TEXTS)[:, order], found)
    same, answers = dw.load("n"), model.predict(TEXTS)
    assert str(same.predict_top(TEXTS[:1])[0][0][0]) == cli.rows("classify predict n d.tsv")[0][0]
    assert type(same) is type(model) and [*same.predict(TEXTS)] == [*answers]
    if kind == "lists":
        assert {*answers[0]} == {*label(TOPICS[0])} and model.score(TEXTS, answers) == 1
        assert sorted(map(len, answers)) == [2] * len(TEXTS)
    else:
        assert answers.tolist() == [label(topic) for topic in TOPICS]
        assert model.classes_.tolist() == sorted({label(topic) for topic in TOPICS})


@pytest.mark.bits
def test_tokens_series_and_generators_are_texts():
    model = TextClassifier().fit(iter(TEXTS), iter(TOPICS))
    tokens = [text.split() for text in TEXTS]
    series = pytest.importorskip("pandas").Series(TEXTS, index=range(7, 97))
    for texts in (series, np.array(TEXTS), [text.encode() for text in TEXTS], tokens):
        assert np.array_equal(model.predict_proba(texts), model.predict_proba(TEXTS))
    assert TextClassifier(tokens="spaces").fit(tokens, TOPICS).score(tokens, TOPICS) == 1
    assert model.predict_proba([]).shape == (0, 2) and len(model.predict([])) == 0


@pytest.mark.parametrize("labels, one", [([1.0, 2.0], 2), ([["a"], ["c"]], "c")])
def test_weights_are_of_labels_as_they_are_given(labels, one):
    y = [labels[number % 4 == 0] for number in range(len(TEXTS))]
    models = (
        TextClassifier(class_weight=given).fit(["green tea"] * 90, y) for given in (None, {one: 9})
    )
    assert [model.predict(["tea"])[0] == labels[1] for model in models] == [False, True]
    with pytest.raises(ValueError, match="class_weight: no document has the label '3'"):
        TextClassifier(class_weight={3: 2}).fit(TEXTS, y)


def test_it_works_in_scikit_learns_tools():
    pipeline = make_pipeline(FunctionTransformer(), clone(TextClassifier(epochs=2)))
    grid = {"textclassifier__lr": [0.5, 2.0], "textclassifier__subwords": ["none", "2-3"]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(TEXTS, TOPICS)
    assert search.score(TEXTS, TOPICS) == 1 and search.best_estimator_[-1].epochs == 2
    folds = cross_val_score(pipeline, TEXTS, TOPICS, cv=2, error_score="raise")
    assert folds.tolist() == [1, 1]


def test_labels_with_a_bar_are_one_label():
    with pytest.warns(UserWarning, match=r"'\w+\|z' counts as a single label; if a text has"):
        model = TextClassifier().fit(TEXTS, [f"{topic}|z" for topic in TOPICS])
    assert {one.partition("|")[2] for one in model.classes_} == {"z"}


def test_models_of_other_kinds_are_refused(cli):
    Path("t").write_text("EU B\nrejects O\n\nPeter B\nBlack O\n\n" * 5)
    Path("x.svm").write_text("x 0:1 2:0.5\ny 1:1 2:.25\n" * 10)
    for line in ("t --by token", "x.svm"):
        cli(f"classify train {line} -o m --quiet")
        assert not isinstance(dw.load("m"), TextClassifier)
        with pytest.raises(UsageError, match="m: this model does not classify texts"):
            TextClassifier.load("m")
        Path("m").unlink()


class _Name(str, Enum):
    TEN, NINE = "10", "9"


KINDS = {
    "large integers": [2**64 - 1, 1],
    "beyond numpy": [2**70, -7],
    "unsigned": [2**63, 2**63 + 1],
    "floats that are integers": [1.0, 20.0],
    "numpy's": list(np.array([3, 20], dtype=np.uint8)),
    "booleans": [True, False],
    "text": ["10", "9"],
    "enumerations": [_Name("9"), _Name("10")],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("several", [False, True])
def test_labels_keep_their_type_and_order(kind, several):
    """Also in a file, and whatever loads it."""
    own = dict(zip(WORDS, KINDS[kind], strict=True))
    y = [[own[topic]] if several else own[topic] for topic in TOPICS]
    y[0] = [*own.values()] if several else y[0]
    model = TextClassifier(threads=1, tune=False).fit(TEXTS, y)
    model.save("m")
    given = [one.value if isinstance(one, Enum) else one for one in KINDS[kind]]
    expected, last = sorted(given), dict(zip(WORDS, given, strict=True))[TOPICS[-1]]
    p = model.predict_proba(TEXTS)
    for one in (model, TextClassifier.load("m"), dw.load("m")):
        assert one.classes_.tolist() == expected
        assert {*map(type, one.classes_.tolist())} == {type(expected[0]) if kind not in (
            "floats that are integers", "numpy's") else int}  # fmt: skip
        assert np.array_equal(one.predict_proba(TEXTS), p)
        assert [*one.predict(TEXTS)][-1] == ([last] if several else last)
        assert one.predict_top(TEXTS[-1:])[0][0][0] == last
        scores = one.decision_function(TEXTS)
        best = scores.argmax(axis=1) if several else (scores > 0).astype(int)
        assert (best == p.argmax(axis=1)).all()
        assert one.explain(label=last).label == last and one.explain(TEXTS[-1]).label == last


@pytest.mark.parametrize("labels, message", [
    (["x"], "there are 2 texts, but 1 labels"), (["x", "x"], "all documents have the label 'x'"),
    (["x", None], "y has 1 rows without a label"), (["x", " "], "is empty"),
    (["x y", "x  y"], "would have the same spelling as another label"),
    (np.ones((2, 1, 1)), "y has more than two dimensions"), (2 * np.eye(2), "y has the entry 2.0"),
    (["a", 1], "'a' and 1 have different types"), ([1, True], "1 and True have different"),
    ([1.5, 2], "1.5 .type float. is not supported; use integers, booleans, or Unicode text"),
    ([b"a", b"b"], "type "
        "bytes"), (["a\0", "a"], "without NUL"), ([float("inf"), 1], "inf .type "
        "float"),
    ([Decimal("1.10"), Decimal("1.1")], "type "
        "Decimal"), ([("a", 1), ["b"]], "different types"),
    (["\ud800", "a"], "Unicode text without NUL"),
    (["a\nb", "a"], "would become 'a b' in files; rename the label"),
    ([" a", "b"], "would become 'a' in files"), (["1.0", "2.0"], "would become '1' in files"),
    ("ab", "y='ab' must contain one label per text"), (5, "y=5 must contain one label"),
    (None, "y=None must contain one label"), ({"a": 0, "b": 1}, "must contain one label per text"),
    ([[0, 0, 1], [1, 0, 0]], "an indicator matrix"),
    ([["a"], 3], "both lists of labels and 3; pass a list"),
])  # fmt: skip
def test_other_labels_are_an_error_at_fit(labels, message):
    with pytest.raises(ValueError, match=message):
        TextClassifier().fit(["a", "b"], labels)


def test_no_text_is_an_error():
    with pytest.raises(ValueError, match="no text has a label; use texts with at least two dif"):
        TextClassifier().fit([], [])


def test_lists_of_one_label_stay_lists_after_a_load():
    model = TextClassifier(threads=1).fit(["tea", "sea", "x"] * 9, [["a"], ["b"], float("nan")] * 9)
    model.save("m")
    for one in (model, dw.load("m")):
        assert one.predict(["tea", "sea"]) == [["a"], ["b"]]


@pytest.mark.parametrize("kind", ["float16", "float32", "object"])
def test_numbers_of_numpy_are_labels(kind):
    labels = np.array([1, 2], kind)
    for y in (labels, list(labels), labels[:, np.newaxis]):
        assert TextClassifier().fit(["a", "b"], y).classes_.tolist() == [1, 2]


def test_an_empty_list_is_none_of_the_labels_and_none_is_unlabeled(cli):
    y = [[], None, ["a"], ["b"], ["a", "b"]] * 20
    texts = ["red bus", "unknown", "tea", "milk", "tea milk"] * 20
    model = TextClassifier(threads=1).fit(texts, y)
    assert model.predict(["red bus", "tea", "tea milk"])[0] == []
    assert model.model_.record["documents"] == 80
    assert model.predict_proba(["red bus"]).max() < 0.3
    rows = [{"text": text, "label": own} for text, own in zip(texts, y, strict=True)]
    Path("d.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    cli("classify train d.jsonl --text-column text --label-column label -o m --threads 1")
    assert "20 with none of the labels" in cli.err and "20 without a label" in cli.err
    shell = dw.load("m")
    assert np.array_equal(shell.predict_proba(texts), model.predict_proba(texts))
    assert shell.predict(["red bus"]) == [[]]
    found = cli.json("classify test m d.jsonl --text-column text --label-column label")
    assert found["documents"] == 80 and found["exact_match"] == 1
    assert found["precision_at_1"] == 0.75 and found["ndcg_at_1"] == 1
    Path("w.jsonl").write_text(json.dumps({"text": "tea", "label": []}) + "\n")
    both = "d.jsonl w.jsonl --text-column text --label-column label"
    assert cli.json(f"classify test m {both}")["micro_precision"] < 1


@pytest.mark.parametrize("options", [{"epochs": 3, "loss": "softmax"}, {"lr": 0.25}, {}])
def test_a_loaded_model_shows_how_it_was_trained(options):
    model = TextClassifier(threads=1, **options).fit(TEXTS, TOPICS)
    model.save("m")
    loaded, facts = dw.load("m"), dw.info("m")
    found = loaded.get_params()
    assert repr(found) == repr(TextClassifier.load("m").get_params())
    assert {name: found[name] for name in options} == options
    assert found["loss"] == facts["options"]["loss"] == options.get("loss", "hinge")
    assert facts["options"]["l2"] is not None and found["objective"] == "gd"
    again = clone(loaded).fit(TEXTS, TOPICS)
    assert again.score(TEXTS, TOPICS) == 1


def test_a_pickle_is_not_much_larger_than_the_file():
    random = np.random.default_rng(0)
    texts = [" ".join(f"w{i}" for i in random.integers(0, 5000, 40)) for _ in range(500)]
    model = TextClassifier(threads=1, loss="softmax", subwords="none")
    model.fit(texts, [f"c{i % 20}" for i in range(500)])
    model.save("m")
    size = Path("m").stat().st_size
    before = len(pickle.dumps(model))
    p = model.predict_proba(texts)
    assert len(pickle.dumps(model)) == before < 1.5 * size
    for same in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        assert np.array_equal(same.predict_proba(texts), p)


@pytest.fixture(scope="module")
def fitted():
    """A classifier of two labels, of three, and of several labels a text."""
    three = [*TOPICS[:60], *["other"] * 30]
    texts = [*TEXTS[:60], *[f"{text} cloud" for text in TEXTS[60:]]]
    several = np.array([[one == "tea", True, False, one == "road"] for one in TOPICS], dtype=int)
    return {
        "two": (TextClassifier().fit(TEXTS, TOPICS), TEXTS, 1),
        "three": (TextClassifier().fit(texts, three), texts, 3),
        "several": (TextClassifier().fit(TEXTS, several), TEXTS, 4),
        "lists": (TextClassifier().fit(TEXTS, [[one, one[0]] for one in TOPICS]), TEXTS, 4),
    }


@pytest.mark.parametrize("kind", ["two", "three", "several", "lists"])
def test_scores_are_features_times_weights_plus_biases(fitted, kind):
    model, texts, columns = fitted[kind]
    rows, names = model.transform(texts), model.get_feature_names_out()
    assert rows.dtype == np.float32 and rows.shape == (len(texts), len(names))
    assert model.coef_.shape == (columns, len(names)) and model.intercept_.shape == (columns,)
    assert names[rows[0].indices].tolist() == [one for one in names if rows[0, [*names].index(one)]]
    scores = (rows @ model.coef_.T + model.intercept_).squeeze()
    known = slice(None) if kind != "several" else [0, 1, 3]  # no text has the label 2
    found = model.decision_function(texts)
    assert found.shape == scores.shape
    assert np.allclose(scores.T[known], found.T[known], atol=1e-4)
    assert "bus" in names and model.fit_transform(TEXTS, TOPICS).shape[0] == len(TEXTS)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_an_indicator_matrix_gives_such_matrices(form):
    y = form(np.array([[one == "tea", one == "road", 0] for one in TOPICS], dtype=np.int8))
    model = TextClassifier().fit(TEXTS, y)
    model.save("m")
    assert model.predict_proba(TEXTS)[:, 2].max() == 0 and model.score(TEXTS, y) == 1
    for one in (model, TextClassifier.load("m")):
        for continues in (False, True):
            found = (one.partial_fit(TEXTS, y) if continues else one).predict(TEXTS)
            assert type(found) is type(y) and found.dtype == y.dtype
            assert abs(found - y).sum() == 0 and one.classes_.tolist() == [0, 1, 2]
    edit("m", record={**described("m")["record"], "label_lists": []})
    assert abs(TextClassifier.load("m").predict(TEXTS) - y).sum() == 0
    for wrong in (7, [True, "<i8", [1]], [True, "O", [2]], [True, "?", 2], [1, "<i8", [3]]):
        edit("m", record={**described("m")["record"], "label_indicator": wrong})
        with pytest.raises(FormatError, match="label_indicator"):
            TextClassifier.load("m")
    with pytest.raises(UsageError, match="a different form than in the first call"):
        model.partial_fit(TEXTS, y[:, :2])
    with pytest.raises(UsageError, match="X has 90 rows, but y has 89"):
        TextClassifier().fit(TEXTS, y[1:])


def test_texts_of_weight_0_are_left_out_and_others_count_as_often():
    weights = np.array([0, 1, 2] * 30)
    odd = [*TEXTS[:3], "zebra", *TEXTS[4:]]
    weighted = TextClassifier(weighting="log").fit(odd, TOPICS, sample_weight=np.where(
        np.arange(90) == 3, 0, weights + 1.0))  # fmt: skip
    assert "zebra" not in weighted.get_feature_names_out()
    sets = [[one, "all"] if one == "tea" else [one] for one in TOPICS]
    model = TextClassifier(tune=False).fit(TEXTS, sets)
    wrong = [["all"], *sets[1:]]
    copies = model.score([TEXTS[0]] * 4 + TEXTS, [wrong[0]] * 4 + wrong)
    assert model.score(TEXTS, wrong, [5.0] + [1.0] * 89) == pytest.approx(copies)
    assert copies < model.score(TEXTS, wrong)
    with pytest.raises(UsageError, match="sample_weight has the shape"):
        TextClassifier().fit(TEXTS, TOPICS, [1.0])
    with pytest.raises(UsageError, match="sample_weight: weights must be numbers"):
        TextClassifier().fit(TEXTS, TOPICS, [10**400] * 90)
    with pytest.raises(UsageError, match="use a positive number"):
        TextClassifier(class_weight={"tea": 10**400}).fit(TEXTS, TOPICS)


def test_empty_and_missing_texts_are_told():
    with pytest.warns(UserWarning, match="3 of 93 texts are empty or missing"):
        model = TextClassifier().fit([*TEXTS, None, " ", float("nan")], [*TOPICS, *TOPICS[:3]])
    with pytest.warns(UserWarning, match="1 of 2 texts are empty or missing"):
        model.predict(["green tea", None])


def test_partial_fit_learns_new_labels_and_words():
    model = TextClassifier().partial_fit(TEXTS, TOPICS)
    before = model.predict(TEXTS)
    model.save("m")
    for one in (
        model,
        TextClassifier.load("m"),
        TextClassifier(init="m"),
        TextClassifier(init=model),
    ):
        for _ in range(2):
            with pytest.warns(DcmeWarning, match="all new documents have the label 'sea'"):
                one.partial_fit(["a gray whale", "the whale swims"] * 20, ["sea"] * 40)
        assert one.classes_.tolist() == ["road", "sea", "tea"]
        assert one.predict(["whale", "bus"]).tolist() == ["sea", "road"]
        assert (one.predict(TEXTS) == before).mean() > 0.9
    with pytest.raises(
        UsageError, match="labels have the type text, but the new label '3' does not"
    ):
        model.partial_fit(TEXTS, [3, 4, 5] * 30)
    with pytest.raises(UsageError, match="a different form"):
        model.partial_fit(TEXTS, [[one] for one in TOPICS])
    with pytest.raises(
        UsageError, match=r"ngrams=2 cannot be changed, .* was trained with 1; omit"
    ):
        TextClassifier(init=model, ngrams=2).fit(TEXTS, TOPICS)


def test_without_a_search_nothing_is_compared(cli):
    model = TextClassifier(tune=False).fit(TEXTS, TOPICS)
    choice = model.model_.record["choice"]
    assert choice["trials"] == [] and model.model_.calibration.kind == "softmax"
    assert (model.predict(TEXTS) == TOPICS).mean() > 0.95
    written(TOPICS)
    cli("classify train d.tsv --tune 0 -o m")
    assert np.array_equal(dw.load("m").predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert "calibrating" not in cli.err and "without a comparison" in cli.err


def test_without_a_search_the_weights_stay_whole():
    texts = [" ".join(f"w{i}x{j}" for j in range(25)) for i in range(100)]
    labels = [i % 40 for i in range(100)]
    for tune, is_whole in {False: True, None: False}.items():
        made = dw.TextClassifier(tune=tune, subwords="none", loss="softmax", epochs=1).fit(
            texts, labels
        )
        assert made.model_.weights.features * 40 > 1 << 16 or not is_whole
        assert ("pairs" not in made.model_.record) == is_whole
