"""The commands classify train, test, predict and explain: files, streams, exit codes, errors."""

import json
import re

import pytest
from helpers import invoke

from dcme_w2v.classify.model import Classifier, load_classifier
from dcme_w2v.cli.main import run

ANIMALS = ["cat dog mouse", "dog cat bird", "mouse bird cat", "bird dog"]
TOOLS = ["saw axe file", "axe drill saw", "drill file axe", "file saw"]


def lines(animals="animals", tools="tools"):
    pairs = [*((animals, text) for text in ANIMALS), *((tools, text) for text in TOOLS)]
    return "".join(f"{label}\t{text}\n" for label, text in pairs * 3)


@pytest.fixture
def docs(tmp_path):
    path = tmp_path / "docs.tsv"
    path.write_text(lines(), encoding="utf-8")
    return str(path)


@pytest.fixture
def model(tmp_path, docs):
    path = str(tmp_path / "model")
    invoke("classify train", docs, "--output", path, "--quiet")
    return path


def test_train_test_predict_explain(docs, model):
    result = invoke("classify test", model, docs, "--json")
    found = json.loads(result.stdout)
    assert found["accuracy"] == 1 and found["documents"] == 24
    assert {"top5_accuracy", "log_likelihood", "macro_f1", "micro_f1"} <= set(found)
    assert "accuracy\t1.0000\n" in invoke("classify test", model, docs).stdout
    result = invoke("classify predict", model, "-", stdin="cat bird\n\nsaw\nanimals\tsaw\n")
    labels = [line.split("\t")[0] for line in result.stdout.splitlines()]
    assert len(labels) == 4 and labels[0] == "animals" and labels[2:] == ["tools", "tools"]
    highest_weighted = invoke("classify explain", model, "tools", "-k", "4").stdout.splitlines()
    assert {line.split("\t")[0] for line in highest_weighted} == {"saw", "axe", "file", "drill"}


def test_class_names_with_any_character(tmp_path):
    path = tmp_path / "d.tsv"
    path.write_text(lines("a b/ü\u3000'", "\u2028 {}"), encoding="utf-8")
    model = str(tmp_path / "m")
    invoke("classify train", path, "--output", model, "--quiet")
    assert Classifier.load(model).classes == sorted(["a b/ü\u3000'", "\u2028 {}"])
    assert invoke("classify predict", model, "-", stdin="cat\n").stdout.startswith("a b/ü\u3000'\t")


def test_several_labels(tmp_path):
    path = tmp_path / "d.txt"
    text = "".join(
        f"__label__living __label__pet {a}\n__label__tool {t}\n__label__living {a} wood\n"
        for a, t in zip(ANIMALS, TOOLS, strict=True)
    )
    path.write_text(text * 4)
    held, model = tmp_path / "0.5", str(tmp_path / "m")  # ./0.5 is a file, 0.5 would be a share
    held.write_text(text)
    options = ["--epochs", "20", "--holdout", f"{tmp_path}/./0.5", "--threads", "1", "--quiet"]
    invoke("classify train", path, "--output", model, *options)
    found = json.loads(invoke("classify test", model, path, "--json").stdout)
    assert found["precision_at_1"] == 1 and found["label_ranking_average_precision"] == 1
    assert found["micro_f1"] > 0.8
    assert {"ndcg_at_5", "coverage", "macro_f1"} <= set(found)
    sets = invoke("classify predict", model, path, "-k", "0", "--no-probabilities").stdout
    rows = [set(line.split("\t")) - {""} for line in sets.splitlines()]
    wanted = [set(re.findall("__label__([a-z]+)", line)) for line in (text * 4).splitlines()]
    both = sum(len(a & b) for a, b in zip(rows, wanted, strict=True))
    assert found["micro_f1"] == pytest.approx(2 * both / sum(map(len, rows + wanted)))


def test_holdout_early_stopping_and_log(tmp_path, docs):
    log, model = tmp_path / "log", str(tmp_path / "m")
    options = ["--holdout", "0.25", "--patience", "2", "--epochs", "50", "--log-json", str(log)]
    result = invoke("classify train", docs, "--output", model, *options)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    epochs = [record for record in records if record["event"] == "epoch"]
    assert 3 <= len(epochs) < 50
    assert {"seconds", "loss", "heldout_accuracy", "heldout_log_likelihood"} <= set(epochs[0])
    assert "the best on held-out documents" in result.stderr
    assert records[-1]["event"] == "end"
    saved = json.loads((tmp_path / "m" / "model.json").read_text())["record"]["epochs"]
    assert [epoch["heldout_accuracy"] for epoch in saved] == [e["heldout_accuracy"] for e in epochs]


def test_documents_without_features_are_counted(tmp_path):
    path, model = tmp_path / "d.tsv", str(tmp_path / "m")
    path.write_text(lines() + "no label here\nanimals\t\ntools\t...\n")
    result = invoke("classify train", path, "--output", model)
    assert "1 without a label left out" in result.stderr
    assert "2 without any feature" in result.stderr
    path.write_text("animals\tcat\nunheard\tsaw\nonly text\nanimals\t\n")
    found = json.loads(invoke("classify test", model, path, "--json").stdout)
    assert found["documents"] == 3
    assert found["unknown_label_documents"] == 1 and found["unlabelled_documents"] == 1
    assert found["accuracy"] <= 2 / 3
    assert len(invoke("classify predict", model, path).stdout.splitlines()) == 4


def test_a_model_that_does_not_fit_is_kept_whole(tmp_path, docs, capfd):
    given = ["--output", str(tmp_path / "m"), "--max-bytes", "10"]
    assert run(["classify", "train", docs, *given, "--quiet"]) == 2
    error = capfd.readouterr().err
    whole = re.fullmatch(r"error: --max-bytes 10: .* bytes; the whole model is in (.*)\n", error)
    assert not (tmp_path / "m").exists() and len(load_classifier(whole[1]).classes) == 2


def test_a_document_with_thousands_of_labels(tmp_path, capfd):
    path, model = tmp_path / "d.tsv", str(tmp_path / "m")
    path.write_text("|".join(f"l{i}" for i in range(10_000)) + "\tone two\n" + "a\tthree\n" * 50)
    assert run(["classify", "train", str(path), "--output", model, "--epochs", "1"]) == 0
    assert "3 trees of labels" in capfd.readouterr().err
    assert len(load_classifier(model).classes) == 10_001


WITHOUT_LABELS = [
    ("d.tsv", "one\ntwo\n", "", "give LABEL<TAB>TEXT"),
    ("d.csv", "one\ntwo\n", "", "name the columns by --text-column and --label-column"),
    ("d.csv", "a,b\none,\n", "--text-column a", "name their column by --label-column"),
    ("d.jsonl", '{"a": "one"}\n', "--text-column a", "name their column by --label-column"),
    (
        "d.csv",
        "a,b\none,\n",
        "--text-column a --label-column b",
        "all rows are empty in column 'b'; name another column by --label-column",
    ),
]


@pytest.mark.parametrize("command", ["train", "test"])
@pytest.mark.parametrize("name, text, options, advice", WITHOUT_LABELS)
def test_files_without_labels_get_the_advice_for_their_columns(
    tmp_path, capfd, model, command, name, text, options, advice
):
    path = tmp_path / name
    path.write_text(text)
    given = [path, "--output", tmp_path / "m"] if command == "train" else [model, path]
    assert run(["classify", command, *map(str, given), *options.split()]) == 1
    message = f"error: {path}: no document has a label; {advice}\n"
    assert capfd.readouterr().err.endswith(message)


FAILURES = [
    ("animals\tcat\nanimals\tdog\n", [], 1, "all documents have the label 'animals'"),
    ("cat\ndog\n", [], 1, "no document has a label"),
    ("a\t\nb\t.\n", [], 1, "no words"),
    ("a\tx\nb\ty\n", ["--patience", "2"], 2, "--holdout"),
    (
        "a\tx\nb\ty\n",
        ["--top-items", "4"],
        2,
        "--top-items 4: is not of --dcme-update robust; give --exact-clusters",
    ),
    ("a\tx\nb\ty\n", ["--labels", "x"], 2, "--labels x"),
]


@pytest.mark.parametrize("text, options, code, message", FAILURES)
def test_failures_are_one_line_and_leave_no_file(tmp_path, capfd, text, options, code, message):
    path = tmp_path / "d.tsv"
    path.write_text(text)
    arguments = ["train", str(path), "--output", str(tmp_path / "m"), "--quiet"]
    arguments += [one.format(docs=path) for one in options]
    assert run(["classify", *arguments]) == code
    streams = capfd.readouterr()
    assert streams.err.startswith("error: ") and streams.err.count("\n") == 1
    assert message in streams.err
    assert streams.out == ""
    assert [file.name for file in tmp_path.iterdir()] == ["d.tsv"]


def rows_of(form, count=30):
    return "".join(form.format(i=i, c=i % 2, word=ANIMALS[i % 4]) + "\n" for i in range(count))


DOUBTFUL = [
    (rows_of("{word} and {word} again {i}\tpet"), "longer than texts"),
    (rows_of("id{i}\tpet\t{word}"), "remove a column of numbers"),
    ("label\ttext\n" + rows_of("c{c}\t{word} words"), "the label 'label', which is a class now"),
    (rows_of("c{c}\t{word}<br>words &amp; more"), "texts have markup"),
]


@pytest.mark.parametrize("text, message", DOUBTFUL)
def test_columns_headers_and_markup_that_are_not_labelled_text_are_warned_of(
    tmp_path, capfd, text, message
):
    path = tmp_path / "d.tsv"
    path.write_text(text)
    assert run(["classify", "train", str(path), "--output", str(tmp_path / "m")]) == 0
    error = capfd.readouterr().err
    assert message in error and error.startswith(f"warning: {path}: ")
    assert error.count("warning: ") == 1


def test_the_error_of_a_file_without_labels_names_its_format(tmp_path, capfd):
    path = tmp_path / "d.csv"
    path.write_text("label,text\na,b\n")
    assert run(["classify", "train", str(path), "--output", str(tmp_path / "m"), "--quiet"]) == 1
    assert "name the columns by --text-column" in capfd.readouterr().err


@pytest.mark.parametrize("command", ["test", "predict", "transform"])
def test_columns_that_training_did_not_have_are_warned_of(tmp_path, capfd, command):
    train, other, model = (str(tmp_path / name) for name in ("a.svm", "b.svm", "m"))
    (tmp_path / "a.svm").write_text("one 0:1\ntwo 1:1\n" * 5)
    (tmp_path / "b.svm").write_text("one 0:1 7:1 9:1\n")
    if command == "transform":
        assert run(["latent", "fit", train, "--output", model, "--quiet"]) == 0
        line = ["latent", "transform", model, other, "--output", str(tmp_path / "c.svm")]
    else:
        assert run(["classify", "train", train, "--output", model, "--quiet"]) == 0
        line = ["classify", command, model, other]
    capfd.readouterr()
    assert run(line) == 0
    assert f"warning: {other}: 2 of 3 values are ignored" in capfd.readouterr().err


def test_documents_of_unknown_labels_only_have_no_measures(tmp_path, docs, model, capfd):
    path = tmp_path / "other"
    path.write_text("plants\tcat\nstones\tsaw\n")
    assert run(["classify", "test", model, str(path)]) == 1
    streams = capfd.readouterr()
    assert streams.out == "" and "no label is a class of the model, such as" in streams.err


def test_a_bomb_of_labels_takes_no_memory(tmp_path):
    import gzip
    import tracemalloc

    from dcme_w2v.errors import FormatError
    from dcme_w2v.formats.sparse_io import read_labels

    path = tmp_path / "labels.gz"
    path.write_bytes(gzip.compress(b"\n" * (50 << 20)))
    tracemalloc.start()
    with pytest.raises(FormatError, match="has more lines than 1000 rows"):
        read_labels(str(path), 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_held_out_documents_without_a_known_label_end_with_a_measure(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"c{i % 3}|d{i % 2}\tw{i} common\n" for i in range(60)]
    (tmp_path / "d.tsv").write_text("".join(lines))
    (tmp_path / "h.tsv").write_text("e|f\tw1 common\n" * 5)
    train = "classify train d.tsv --output m --holdout h.tsv --threads 1"
    result = invoke(train)
    assert "held-out: precision at 1 0.0000" in result.stderr
    assert load_classifier(tmp_path / "m").threshold == 0.5


def test_predicted_labels_always_have_the_most_probable_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [("a|b\tw0 v0 x\n" if i % 2 else "c\tw1 v1 y\n") for i in range(100)]
    (tmp_path / "d.tsv").write_text("".join(lines))
    for more in ([], ["--objective", "tree"]):
        invoke("classify train d.tsv --output m --threads 1", *more)
        found = invoke("classify predict m d.tsv -k 0 --no-probabilities")
        assert {frozenset(line.split("\t")) for line in found.stdout.splitlines()} == {
            frozenset("ab"), frozenset("c")
        }  # fmt: skip
