"""The commands of the group classify: files, streams, exit codes, errors."""

import gzip
import json
import math
import re
import subprocess
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from helpers import PROGRAM, described, records

import dcme_w2v as dw
from dcme_w2v.classify.model import Classifier, load_classifier
from dcme_w2v.errors import FormatError
from dcme_w2v.formats.columns import Table, read_rows
from dcme_w2v.formats.sparse_io import read_labels

ANIMALS = ["cat dog mouse", "dog cat bird", "mouse bird cat", "bird dog"]
TOOLS = ["saw axe file", "axe drill saw", "drill file axe", "file saw"]
TRAIN = "classify train d.tsv --output m --threads 1"


def write(text, path="d.tsv"):
    Path(path).write_text(text, encoding="utf-8")


def lines(animals="animals", tools="tools"):
    pairs = [*((animals, text) for text in ANIMALS), *((tools, text) for text in TOOLS)]
    return "".join(f"{label}\t{text}\n" for label, text in pairs * 3)


@pytest.fixture
def model(cli):
    write(lines())
    cli(f"{TRAIN} --quiet")


def test_train_test_predict_explain(model, cli):
    found = cli.json("classify test m d.tsv")
    assert found["accuracy"] == 1 and found["documents"] == 24
    assert {"top5_accuracy", "log_likelihood", "macro_f1", "micro_f1"} <= set(found)
    assert "accuracy\t1.0000\n" in cli("classify test m d.tsv")
    labels = cli.rows("classify predict m -", stdin="cat bird\n\nsaw\nanimals\tsaw\n")
    assert (
        len(labels) == 4 and labels[0][0] == "animals" and labels[2][0] == labels[3][0] == "tools"
    )
    highest = cli.rows("classify explain m tools -k 4")
    assert {row[0] for row in highest} == {"saw", "axe", "file", "drill"}


@pytest.mark.parametrize("several", [False, True])
def test_measures_of_each_class_equal_those_of_scikit_learn(model, cli, several):
    metrics = pytest.importorskip("sklearn.metrics")
    extra = "animals|tools\tcat saw\n" * several
    write(f"animals\tsaw axe\nplants\tcat\n{extra}{lines()}", "t.tsv")
    found = cli.json("classify test m t.tsv --per-class")["per_class"]
    wanted = [line.partition("\t")[0].split("|") for line in Path("t.tsv").read_text().splitlines()]
    top = "0" if several else "1"
    answers = [row[::2] for row in cli.rows(f"classify predict m t.tsv -k {top}")]
    for one in found:
        truth, chosen = ([one["label"] in own for own in rows] for rows in (wanted, answers))
        scores = metrics.precision_recall_fscore_support(truth, chosen, zero_division=0)
        figures = [one[name] for name in ("precision", "recall", "f1", "support")]
        assert figures == pytest.approx([float(part[1]) for part in scores])
    assert [one["label"] for one in found] == ["animals", "tools"]
    printed = cli.rows("classify test m t.tsv --per-class")
    assert printed[-2][:2] == ["animals", f"{found[0]['precision']:.4f}"]
    if several:
        assert "one label per document" in cli.error("classify test m t.tsv --confusion c")
        return
    cli("classify test m t.tsv --confusion c")
    counts = [line.split("\t") for line in Path("c").read_text().splitlines()]
    assert counts == [["label", "predicted", "documents"], ["animals", "animals", "12"],
                      ["tools", "tools", "12"], ["animals", "tools", "1"],
                      ["plants", "animals", "1"]]  # fmt: skip


def test_each_prediction_is_an_object_of_a_line(model, cli):
    found = [json.loads(one) for one in cli("classify predict m d.tsv --json").splitlines()]
    rows = cli.rows("classify predict m d.tsv")
    assert [[one["label"], f"{one['probability']:.6f}"] for one in found] == rows
    first = json.loads(cli("classify predict m d.tsv --json -k 2").splitlines()[0])
    assert first["labels"] == ["animals", "tools"] and sum(first["probabilities"]) == 1
    assert first["label"] == "animals" and first["probability"] == first["probabilities"][0]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".json", ".parquet"])
def test_predictions_are_a_table_with_the_columns_that_are_kept(model, cli, suffix):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    write('id,label,text\n"2, 3",x,cat bird\n"ü\t4",,saw axe\n', "t.csv")
    line = "classify predict m t.csv --text-column text --keep id,label,id -k 2"
    cli(f"{line} -o o{suffix}")
    names = ("id", "label", "predicted_label", "probability", "labels", "probabilities")
    rows = [row.kept for _, row in read_rows(Table(f"o{suffix}", "id", (), names))]
    assert [row[:3] for row in rows] == [("2, 3", "x", "animals"), ("ü\t4", "", "tools")]
    lists = [["animals", "tools"], ["tools", "animals"]]
    joined = ".csv" in suffix
    assert [row[4] for row in rows] == ["|".join(one) if joined else one for one in lists]
    shown = [["2, 3", "x"], ["ü 4", ""]]  # a tab separates columns of text
    assert [row[:2] for row in cli.rows(line)] == shown
    assert [row[2::2] for row in cli.rows(line)] == lists
    assert [float(row[3]) for row in cli.rows(line)] == [float(row[3]) for row in rows]


@pytest.mark.parametrize("line, question, answer", [
    ("classify predict m -", "saw", "tools"), ("classify predict m -", "s" * 400, "tools|animals"),
    ("classify predict m - --text-column t", '{"t": "saw"}', "tools"),
    ("classify predict m - --json", "x\tsaw axe", "tools"),
    ("neighbors v.txt -k 1", "man", "^man\tking\t0.707107$"),
])  # fmt: skip
def test_each_line_of_an_open_pipe_is_answered_as_it_arrives(model, line, question, answer):
    write("man 1 0\nking 1 1\n", "v.txt")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    command = [*PROGRAM, *line.split()]
    with subprocess.Popen(command, text=True, bufsize=1, **pipes) as process:
        (timer := threading.Timer(100, process.kill)).start()
        for _ in range(2):
            process.stdin.write(f"{question}\n")
            assert re.search(answer, process.stdout.readline())
        process.stdin.write(question)
        process.stdin.close()
        assert re.search(answer, process.stdout.read())
        assert process.wait(60) == 0
        timer.cancel()


def test_compressed_standard_input_and_marks(model, cli):
    text = b"\xef\xbb\xbf" + b"cat bird\r\n\n" * 9000 + b"saw"
    expected = cli("classify predict m -", stdin=text)
    assert len(expected.splitlines()) == 18_001 and expected.endswith("\n")
    assert cli("classify predict m -", stdin=gzip.compress(text)) == expected
    Path("text").write_bytes(text)
    assert cli("classify predict m text") == expected
    error = cli.error("classify predict m -", stdin=b"saw \xff")
    assert "byte 4 of line 1 is not UTF-8" in error


def test_class_names_with_any_character(cli):
    names = ["a b/ü\u3000'", "\u2028 {}"]
    write(lines(*names))
    cli(f"{TRAIN} --quiet")
    names = [" ".join(name.split()) for name in names]
    assert Classifier.load("m").classes == sorted(names)
    assert cli("classify predict m -", stdin="cat\n").startswith(f"{names[0]}\t")


def test_several_labels(cli):
    text = "".join(
        f"__label__living __label__pet {a}\n__label__tool {t}\n__label__living {a} wood\n"
        for a, t in zip(ANIMALS, TOOLS, strict=True)
    )
    write(text * 5)
    write(text, "0.5")  # ./0.5 is a file, 0.5 would be a share
    cli(f"{TRAIN} --epochs 20 --holdout ./0.5")
    assert "--loss hinge --lr" in cli.err
    assert load_classifier("m").options.loss == "hinge" and load_classifier("m").calibration
    found = cli.json("classify test m d.tsv")
    assert found["precision_at_1"] == 1 and found["label_ranking_average_precision"] == 1
    assert {"ndcg_at_5", "coverage", "macro_f1"} <= set(found)
    predicted = cli.rows("classify predict m d.tsv -k 3")
    assert max(sum(map(float, row[1::2])) for row in predicted) > 1.05  # labels by themselves
    rows = [set(row[::2]) for row in cli.rows("classify predict m d.tsv -k 0")]
    wanted = [set(re.findall("__label__([a-z]+)", line)) for line in (text * 5).splitlines()]
    both = sum(len(a & b) for a, b in zip(rows, wanted, strict=True))
    f1 = 2 * both / sum(map(len, rows + wanted))
    assert found["micro_f1"] == pytest.approx(f1) and f1 > 0.8


def test_holdout_early_stopping_and_log(cli):
    write(lines())
    cli(f"{TRAIN} --holdout 0.25 --patience 2 --epochs 50 --log-json log")
    written = records("log")
    epochs = [record for record in written if record["event"] == "epoch"]
    assert 3 <= len(epochs) < 50
    assert {"seconds", "loss", "heldout_accuracy", "heldout_log_likelihood"} <= set(epochs[0])
    assert "which scored best on the held-out documents" in cli.err
    assert written[-1]["event"] == "end"
    saved = described("m")["record"]["epochs"]
    assert [epoch["heldout_accuracy"] for epoch in saved] == [e["heldout_accuracy"] for e in epochs]


def test_documents_without_features_are_counted(cli):
    write(lines() + "no label here\nanimals\t\ntools\t...\n")
    cli(TRAIN)
    assert "1 without a label left out" in cli.err and "2 without any feature" in cli.err
    write("animals\tcat\nunheard\tsaw\nonly text\nanimals\t\n")
    found = cli.json("classify test m d.tsv")
    assert found["unknown_label_documents"] == found["unlabeled_documents"] == 1
    assert found["documents"] == 3 and found["accuracy"] <= 2 / 3
    assert len(cli.rows("classify predict m d.tsv")) == 4


def test_a_model_that_does_not_fit_is_kept_whole(cli):
    write(lines())
    error = cli.error("classify train d.tsv --output m --max-bytes 10 --quiet")
    whole = re.fullmatch(
        r"error: --max-bytes 10: .* bytes; .*; the uncompressed model was saved as (.*)\n", error
    )
    assert not Path("m").exists() and len(load_classifier(whole[1]).classes) == 2


def test_labels_below_a_probability_are_not_given(model, cli):
    write("animals\tcat\ntools\tsaw axe file\ntools\tcat saw bird\nanimals\taxe\n", "t.tsv")
    rows, truth = cli.rows("classify predict m t.tsv"), ["animals", "tools", "tools", "animals"]
    least = sorted(float(p) for _, p in rows)[1]
    given = [row if float(row[1]) >= least else ["", ""] for row in rows]
    flag = f"--min-probability {least - 1e-6}"
    assert cli.rows(f"classify predict m t.tsv {flag}") == given
    objects = [
        json.loads(one) for one in cli(f"classify predict m t.tsv --json {flag}").split("\n")[:-1]
    ]
    assert [one["label"] or "" for one in objects] == [row[0] for row in given]
    right = [row[0] == label for row, label in zip(given, truth, strict=True) if row[0]]
    found, texts = (
        cli.json(f"classify test m t.tsv {flag}"),
        ["cat", "saw axe file", "cat saw bird"],
    )
    assert found["answered"] == 0.75 and found["answered_accuracy"] == sum(right) / 3
    estimator = dw.TextClassifier.load("m")
    answers = [one or "" for one in estimator.predict(texts, min_probability=least - 1e-6)]
    assert answers == [row[0] for row in given[:3]]
    assert dw.load("m").predict(texts, min_probability=1).tolist() == [None] * 3


def test_a_probability_replaces_the_threshold_of_several_labels(cli):
    write("a|b\tcat dog\na\tcat\nb\tdog\nc\tsaw\n" * 20)
    cli(f"{TRAIN} --quiet")
    write("a|c\tcat saw\nb\tdog saw cat\nc\tthe\n", "t.tsv")
    rows = [
        set(row[::2]) - {""}
        for row in cli.rows("classify predict m t.tsv -k 0 --min-probability 0.8")
    ]
    assert {0} < {*map(len, rows)}
    both = sum(len(a & b) for a, b in zip(rows, [{"a", "c"}, {"b"}, {"c"}], strict=True))
    found = cli.json("classify test m t.tsv --min-probability 0.8")
    assert found["micro_f1"] == pytest.approx(2 * both / (4 + sum(map(len, rows))))
    answers = dw.TextClassifier.load("m").predict(["cat saw", "the"], min_probability=0.8)
    assert [{*one} for one in answers] == [rows[0], rows[2]]


@pytest.mark.parametrize("label", [[], ["plants"]])
@pytest.mark.parametrize("flags", ["--loss softmax", "--loss softmax --max-bytes 9000"])
def test_what_features_contribute_adds_up_to_the_difference_of_scores(cli, flags, label):
    write(lines() + "plants\tsaw cat leaf\n" * 3)
    cli(f"{TRAIN} {flags}")
    text = "cat saw saw leaf"
    row = cli.rows("classify predict m -k 3", stdin=text)[0]
    odds = dict(zip(row[::2], map(float, row[1::2]), strict=True))
    own = label[0] if label else row[0]
    other = next(name for name in odds if name != own)
    found = cli.json("classify explain m -k 2", *label, "--text", text)
    assert (found["label"], found["against"], len(found["features"])) == (own, other, 2)
    total = sum(part for _, part in found["features"]) + found["rest"]
    assert total == pytest.approx(math.log(odds[own] / odds[other]), abs=1e-3)
    shown = cli.rows("classify explain m -k 1", *label, "--text", text)
    assert shown[0] == [f"{own} - {other}", f"{total:.4f}"] and shown[-1][0] == "(the rest)"
    explained = dw.TextClassifier.load("m").explain(text, own, 2)
    assert [list(pair) for pair in explained] == found["features"] and explained.against == other


@pytest.mark.parametrize("line, message", [
    ("t.txt --by token", "the model does not classify texts"),
    ("d.tsv --objective tree", "the model does not store a weight for each word-label"),
])  # fmt: skip
def test_what_cannot_be_explained_is_an_error(cli, line, message):
    write("EU B\nrejects O\n\n" * 5, "t.txt")
    write(lines())
    cli(f"classify train {line} -o m --quiet")
    assert message in cli.error("classify explain m --text saw")


@pytest.mark.parametrize("flags", [
    "", "--loss softmax", "--solver lbfgs", "--objective nce", "--max-bytes 9000",
    "--cluster local:0 --shards 1",
])  # fmt: skip
def test_class_weights_multiply_the_loss_and_are_recorded(cli, flags):
    write("one\tcat\ntwo\tdog\n" * 5 + "one=a\tsaw\none=a\tsaw\none=a\tsaw\nb\tsaw\n" * 10)
    for weight, best in ((2, "one=a"), (5, "b")):
        cli(f"{TRAIN} {flags} --class-weight one=a=1 --class-weight b={weight}")
        assert cli.rows("classify predict m -", stdin="saw")[0][0] == best
        assert described("m")["record"]["class_weight"] == {"one=a": 1.0, "b": weight}


def test_a_document_with_thousands_of_labels(cli, monkeypatch):
    for module in ("options", "choose"):
        monkeypatch.setattr(f"dcme_w2v.classify.{module}.TABLE_CLASSES", 2000)
    write("|".join(f"l{i}" for i in range(2000)) + "\tone two\n" + "a\tthree\n" * 50)
    cli(f"{TRAIN} --epochs 1")
    assert "3 label trees" in cli.err and len(load_classifier("m").classes) == 2001


@pytest.mark.parametrize("command", ["train {} --output n", "test m {}"])
@pytest.mark.parametrize(
    "name, text, options, advice",
    [
        ("n.tsv", "one\ntwo\n", "", "write each line as LABEL<TAB>TEXT"),
        ("n.csv", "one\ntwo\n", "", "select the columns with --text-column and --label-column"),
        ("n.csv", "a,b\none,\n", "--text-column a", "select the label column with --label-column"),
        ("n.jsonl", '{"a": "one"}\n', "--text-column a", "select the label column with"),
        ("n.csv", "a,b\none,\n", "--text-column a --label-column b",
         "column 'b' is empty in all rows; choose another column with --label-column"),
    ],
)  # fmt: skip
def test_files_without_labels_get_the_advice_for_their_columns(
    cli, model, command, name, text, options, advice
):
    write(text, name)
    error = cli.error(f"classify {command.format(name)} {options}")
    assert f"error: {name}: no document has a label; {advice}" in error


def rows_of(form):
    return "".join(form.format(i=i, c=i % 2, word=ANIMALS[i % 4]) + "\n" for i in range(30))


@pytest.mark.parametrize(
    "text, message",
    [
        (rows_of("{word} and {word} again {i}\tpet"), "longer than the texts"),
        (rows_of("id{i}\tpet\t{word}"), "remove a leading column of numbers"),
        ("label\ttext\n" + rows_of("c{c}\t{word} words"), "'label', which is treated as a class"),
        (rows_of("c{c}\t{word}<BR />words &amp; more"), "texts contain markup such as <BR />, so"),
        (
            rows_of("c{c}\t{word} <a href='x'>words"),
            "texts contain markup such as <a href='x'>, so",
        ),
    ],
)
def test_columns_headers_and_markup_that_are_not_labeled_text_are_warned_of(cli, text, message):
    write(text)
    cli(TRAIN)
    assert message in cli.err and cli.err.startswith("warning: d.tsv: ")
    assert cli.err.count("warning: ") == 1


@pytest.mark.parametrize("sign", ["<joe@example.org>", "<U>", "<http://x.org>", "< b >", "<T.TO>"])
def test_addresses_and_tickers_are_no_markup(cli, sign):
    write(rows_of(f"c{{c}}\t{{word}} {sign} words"))
    cli(TRAIN)
    assert "warning" not in cli.err


@pytest.mark.parametrize("command", ["test", "predict", "transform"])
def test_columns_that_training_did_not_have_are_warned_of(cli, command):
    write("one 0:1\ntwo 1:1\n" * 5, "a.svm")
    write("one 0:1 7:1 9:1\n", "b.svm")
    kind = "latent" if command == "transform" else "classify"
    cli(f"{kind} {'fit' if kind == 'latent' else 'train'} a.svm --output m --quiet")
    cli(
        f"{'classify ' * (kind != 'latent')}{command} m b.svm"
        + " --output c.svm" * (kind == "latent")
    )
    assert "warning: b.svm: 2 of 3 values are ignored" in cli.err


def test_a_bomb_of_labels_takes_no_memory():
    Path("labels.gz").write_bytes(gzip.compress(b"\n" * (50 << 20)))
    tracemalloc.start()
    with pytest.raises(FormatError, match="has more than 1000 lines"):
        read_labels("labels.gz", 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


@pytest.mark.parametrize("command", ["classify train", "latent fit"])
def test_held_out_documents_without_a_known_label_are_an_error(cli, command):
    write("".join(f"c{i % 3}|d{i % 2}\tw{i} common\n" for i in range(60)))
    write("e|f\tw1 common\n" * 5, "h.tsv")
    error = cli.error(f"{command} d.tsv --output m --holdout h.tsv --quiet")
    assert "--holdout h.tsv: none of the held-out labels occurs in the training documents" in error
    assert "which have labels such as 'c0'; hold" in error
    write("e|f\tw1 common\nc1|e\tw1 common\n", "h.tsv")
    cli(f"{command} d.tsv --output m --holdout h.tsv --quiet")


@pytest.mark.parametrize("command", ["test m", "predict m"])
def test_documents_without_a_feature_of_the_model_are_warned_of(cli, command):
    write(lines())
    cli(f"{TRAIN} --subwords none")
    write("animals\tchat\ntools\tscie\nanimals\tcat\n", "n.tsv")
    cli(f"classify {command} n.tsv")
    assert "warning: n.tsv: 2 of 3 documents contain none of the model's features" in cli.err


@pytest.mark.parametrize("more", ["", "--lr 0.5", "--objective tree"])
def test_predicted_labels_always_have_the_most_probable_one(cli, more):
    write("a|b\tw0 v0 x\nc\tw1 v1 y\n" * 50)
    cli(f"{TRAIN} {more}")
    found = cli.rows("classify predict m d.tsv -k 0")
    assert {frozenset(row[::2]) for row in found} == {frozenset("ab"), frozenset("c")}


@pytest.mark.parametrize("content, classes", [
    ("a | b\tx\n b\ty\n", ["a", "b"]), ("sport \tx\nnews\ty\nsport\tz\n", ["news", "sport"]),
])  # fmt: skip
def test_labels_have_no_spaces_around_them(cli, content, classes):
    Path("s.tsv").write_text(content)
    cli("classify train s.tsv --output s")
    assert load_classifier("s").classes == classes


def test_signs_of_svmlight_and_empty_labels(cli):
    Path("s.svm").write_text("+1 1:1\n1 1:2\n-1 2:1\n")
    cli("classify train s.svm --output s")
    assert load_classifier("s").classes == ["-1", "1"]
    Path("s.txt").write_text("__label__a x\n__label__ y\n")
    assert "line 2 has an empty label" in cli.error("classify train s.txt --output s")


def test_measures_do_not_depend_on_the_order_of_documents(cli, monkeypatch):
    """Also where the first documents of several labels come late."""
    write(lines())
    cli(f"{TRAIN} --quiet")
    monkeypatch.setattr("dcme_w2v.classify.predict.DOCUMENTS_AT_ONCE", 8)
    rows = Path("d.tsv").read_text().splitlines(keepends=True)[:20]
    rows[18:] = ["|".join(["animals", "tools"]) + "\tcat saw\n"] * 2
    found = []
    for order in (rows, rows[::-1]):
        write("".join(order), "t.tsv")
        found.append(cli.json("classify test m t.tsv"))
    assert found[0] == pytest.approx(found[1]) and "precision_at_3" in found[0]
    error = cli.error("classify test m -", stdin="".join(rows))
    assert "a later document has several labels" in error


@pytest.mark.parametrize("line, message", [
    ("t --by token --tune", "6 documents or sentences are not enough to choose settings"),
    ("t --by token --loss hinge", ""),
    ("d.tsv --objective tree --bias 0 --lr 0.0001 --epochs 1", ""),
])  # fmt: skip
def test_few_sentences_and_trees_without_weights(cli, line, message):
    Path("t").write_text("EU B\nrejects O\n\nPeter B\nBlack O\n\n" * 3)
    write(lines())
    command = f"classify train {line} --output m --quiet --threads 1"
    if message:
        assert message in cli.error(command)
    else:
        cli(command)


@pytest.mark.parametrize("several", [False, True])
def test_probabilities_agree_with_what_is_observed(cli, several):
    """On documents of the same source, of which one in four has a wrong label."""
    random = np.random.default_rng(0)
    for path, count in (("d.tsv", 3000), ("t.tsv", 2000)):
        labels, words = random.integers(0, 3, count), random.integers(0, 12, (count, 4))
        numbers = labels[:, None] * 6 + words
        texts = [" ".join(map("w{}".format, own)) for own in numbers]
        wrong = random.random(count) < 0.25
        labels[wrong] = random.integers(0, 3, wrong.sum())
        names = [f"c{one}" + "|even" * int(several and one % 2 == 0) for one in labels]
        write("".join(f"{a}\t{b}\n" for a, b in zip(names, texts, strict=True)), path)
    cli(f"{TRAIN} --quiet --subwords none")
    found = cli.json("classify test m t.tsv --calibration")
    assert found["expected_calibration_error"] < 0.04
    rows = found["calibration"]
    error = sum(abs(row["predicted"] - row["observed"]) * row["count"] for row in rows)
    counted = sum(row["count"] for row in rows)
    assert error / counted == pytest.approx(found["expected_calibration_error"])
    assert counted == 2000 or several
    assert all(row["from"] <= row["predicted"] <= row["to"] for row in rows)
    Path("c.json").write_text(json.dumps(found))
    table = cli.rows("classify test m t.tsv --calibration")
    last = "0.9 to 1.0" if several else "0.8 to 0.9"  # 83% of the labels can be known
    assert table[-1][0] == last and ["probability", "mean", "observed", "number"] in table
    pytest.importorskip("matplotlib")
    cli("plot c.json c.json --output c.svg")
    assert "share that is correct" in Path("c.svg").read_text()
