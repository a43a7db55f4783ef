"""Text and labels from columns of Parquet, Arrow, JSON lines and CSV."""

import gzip
import importlib
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import write_corpus
from helpers import write_table as write

import dcme_w2v as dw
from dcme_w2v.cli.main import run
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.columns import Table, TableFile, read_rows
from dcme_w2v.formats.documents import read_documents
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.encode import count

ROWS = [
    {"text": "the king\nof england", "label": "a", "meta": {"body": "green tea"}, "n": 1},
    {"text": None, "label": None, "meta": {"body": "the sea"}, "n": 2},
    {"text": "", "label": "b|c", "meta": None, "n": 3},
]
BINARY = ("parquet", "feather", "arrows")
FORMATS = (*BINARY, "jsonl", "csv", "tsv")


def lines_of(path, text, label=(), **more):
    return [row.lines for _, row in read_rows(Table(path, text, label, **more))]


@pytest.mark.parametrize("values", [
    ["a b", "c"], ["a", None, "b"], ["a", ""], ["", "a"], ["a\x0bb", ""], ["a\r", "b"],
    ["a\n", "b"], ["\r", "b", "c"], [None, None], ["a\r", "b\x0bc"], ["a\u2028b", "c"],
])  # fmt: skip
@pytest.mark.parametrize("name", ["t", "t,t", "s.t"])
def test_rows_that_are_read_together_are_the_lines_of_each(tmp_path, values, name):
    path = write(tmp_path / "t.parquet", [{"t": one, "s": {"t": one}} for one in values])
    lines = ["\n".join(row) for row in lines_of(path, name)]
    expected = ("\n".join(lines) + "\n").encode()
    assert TableFile(Table(path, name)).read() == expected


def test_the_row_of_an_error_behind_rows_that_are_read_together(tmp_path):
    rows = [{"t": "a"}] * 9 + [{"t": "a\0"}]
    with pytest.raises(CorpusError, match="row 10 has a NUL"):
        TableFile(Table(write(tmp_path / "t.parquet", rows), "t")).read()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_has_the_same_rows(tmp_path, kind):
    path = write(tmp_path / f"t.{kind}", ROWS)
    documents = list(read_documents([Table(path, "text", "label")]))
    assert [one.labels for one in documents] == [("a",), (), ("b", "c")]
    assert [one.text for one in documents] == [b"the king of england", b"", b""]
    counted = count([path], VocabularyOptions(min_count=1, text_column="text"))
    assert dict(zip(counted.vocabulary, counted.vocabulary.counts, strict=True)) == {
        "the": 1, "king": 1, "of": 1, "england": 1,
    }  # fmt: skip
    with pytest.raises(CorpusError, match="has no column 'body'; its columns: text, label, meta"):
        lines_of(path, "body")


@pytest.mark.parametrize("kind", FORMATS[:-2])
def test_a_file_without_a_named_column_is_an_error_with_its_columns(tmp_path, kind, capsys):
    path = write(tmp_path / f"t.{kind}", ROWS)
    for command in (["vocab", path, "-o", "-"], ["classify", "train", path, "-o", "m"]):
        assert run(command) == 1
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1
        assert "--text-column: text, label, meta, n" in said[0]


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@pytest.mark.parametrize(
    ("values", "lines"),
    [
        (["a b", "c"], [["a b"], ["c"]]),
        (["a\n\nb\r\nc"], [["a", "", "b", "c"]]),  # newlines within a value
        ([None, "a", ""], [[], ["a"], [""]]),  # a null is no sentence
        ([["New-York", "is"], None], [["New-York is"], []]),  # a list of tokens
        ([[["a", "b"], ["c"]], [["d"]]], [["a b", "c"], ["d"]]),  # sentences of tokens
        ([["a b"]], "row 1: 'a b' is not a token"),
        ([[""]], "row 1: '' is not a token"),
        (
            [b"a b", "caf\u00e9".encode()],
            [["a b"], ["caf\u00e9"]],
        ),  # Parquet without the type of text
        ([b"a", b"\xff"], "row 2: x is not UTF-8"),
        ([float("nan"), None], [[], []]),
        ([3], "row 1: x is int, not text"),
        ([{"y": "a"}], "row 1: x is dict, not text"),
        (["a", "b\0"], "row 2 has a NUL"),
    ],
)
def test_values(tmp_path, kind, values, lines):
    if kind == "jsonl" and isinstance(values[0], bytes):
        return
    path = write(tmp_path / f"t.{kind}", [{"x": value} for value in values])
    if isinstance(lines, str):
        with pytest.raises(CorpusError, match=lines):
            lines_of(path, "x")
    else:
        assert lines_of(path, "x") == lines


@pytest.mark.parametrize(
    ("text", "label", "lines", "labels"),
    [
        ("text,meta.body", (), ["the king", "of england green tea"], ()),
        (("meta.body", "text"), "n", ["green tea the king", "of england"], ("1",)),
        ("meta.body", "label,n", ["green tea"], ("a", "1")),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_columns_are_joined_and_fields_are_found(tmp_path, kind, text, label, lines, labels):
    path = write(tmp_path / f"t.{kind}", ROWS)
    _, row = next(read_rows(Table(path, text, label)))
    assert (row.lines, row.labels) == (lines, labels)


@pytest.mark.parametrize("kind", FORMATS)
def test_names_of_columns_are_unicode_and_may_have_dots_and_commas(tmp_path, kind):
    names = ["Größe", "本文", "a.b", "c,d"]
    path = write(tmp_path / f"t.{kind}", [dict(zip(names, "wxyz", strict=True))])
    assert [lines_of(path, name) for name in names] == [[["w"]], [["x"]], [["y"]], [["z"]]]


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv", "nothing"])
def test_files_without_rows(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pa = pytest.importorskip("pyarrow")
        importlib.import_module("pyarrow.parquet").write_table(
            pa.table({"text": pa.array([], pa.string())}), path
        )
    else:
        path.write_text({"jsonl": "", "csv": "text,n\n", "nothing": ""}[kind])
    assert lines_of(str(path), "text") == []
    full = write(tmp_path / "u.jsonl", [{"text": "tea"}])
    counted = count([str(path), full], VocabularyOptions(min_count=1, text_column="text"))
    assert list(counted.vocabulary) == ["tea"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("share", [0.3, 0.7, 0.97])
def test_a_truncated_file_is_one_error_with_the_row(tmp_path, kind, share):
    rows = [{"text": f"{'green tea ' * 50}{number}", "n": number} for number in range(200)]
    whole = tmp_path / f"w.{kind}"
    write(whole, rows)
    content = whole.read_bytes()
    cut = tmp_path / f"t.{kind}"
    cut.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CorpusError, match=r"row \d+") as found:
        lines_of(str(cut), "text,n" if kind in ("csv", "tsv") else "text")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"x": "a"}\nnot json\n', "row 2 is not JSON"),
        ('{"x": "a"}\n[1]\n', "row 2 is no JSON object"),
        ('[{"x": "a"}]', "is a JSON array; write one object a line"),
        ('\n [\n  {"x": "a"}\n]\n', "is a JSON array; write one object a line"),
        ('{\n "x": "a"\n}\n', "row 1 is not JSON .*; write one object a line"),
        ('{"x": "a"}\n{"x": ["b"]}\n', "row 2 mixes text with lists"),
        ('{"x": "a"}\n' + '{"y": ' * 100_000, "row 2 is not JSON"),
        ('x,y\n1,2\n"a,b\n', "row 2 is not CSV"),
        ("x,y\n1\n", "row 1 has 1 fields, the header 2"),
        (b"x,y\n\xff,2\n", "row 1 is not UTF-8"),
        ("x,y\n1,2\n".encode("utf-16"), "row 1 is not UTF-8"),
        (b'{"x": "\xff"}\n', "row 1 is not JSON"),
        (b"PAR1 and no more", "row 1: is no whole Parquet"),
        ("x,x\n1,2\n", "has two columns 'x'"),
        ("\0" * 1000, "has no column 'x'; its columns: .{0,70}$"),
        ('{"x": ' + "1" * 5000 + "}\n", "row 1 is not JSON .Exceeds"),
        (b"\xff\xff\xff\xff and no more", "row 1: is no whole an Arrow|row 1"),
    ],
)
def test_damaged_files(tmp_path, content, message):
    path = tmp_path / "t"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    if content in (b"PAR1 and no more", b"\xff\xff\xff\xff and no more"):
        pytest.importorskip("pyarrow")
    with pytest.raises(CorpusError, match=message):
        lines_of(str(path), "x")


@pytest.mark.parametrize("start", ['{"x": "', 'x,y\n"'])
def test_a_line_without_end_is_an_error(tmp_path, monkeypatch, start):
    monkeypatch.setattr("dcme_w2v.formats.columns.LINE_BYTES", 1000)
    path = tmp_path / "t"
    path.write_text(start + "a" * 5000)
    with pytest.raises(CorpusError, match="is longer than 1,000 bytes"):
        lines_of(str(path), "x")


def test_compressed_files_and_standard_input(tmp_path, monkeypatch, capsys):
    plain = write(tmp_path / "t.jsonl", ROWS)
    packed = tmp_path / "t.jsonl.gz"
    packed.write_bytes(gzip.compress((tmp_path / "t.jsonl").read_bytes()))
    assert lines_of(str(packed), "text") == lines_of(plain, "text")
    stream = io.TextIOWrapper(io.BytesIO((tmp_path / "t.jsonl").read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    assert run(["vocab", "-", "--text-column", "meta.body", "--min-count", "1", "-o", "-"]) == 0
    assert "green 1" in capsys.readouterr().out
    whole = tmp_path / "t.parquet.gz"
    whole.write_bytes(gzip.compress(b"PAR1" + bytes(99)))
    with pytest.raises(CorpusError, match="decompress"):
        lines_of(str(whole), "text")


def test_a_folder_of_files_with_different_columns(tmp_path):
    for kind in ("parquet", "jsonl"):
        write(tmp_path / f"t.{kind}", ROWS)
    options = VocabularyOptions(min_count=1, text_column="text")
    assert count([str(tmp_path)], options).tokens == 8
    write(tmp_path / "u.jsonl", [{"other": "a"}])
    with pytest.raises(CorpusError, match=r"u\.jsonl: has no column 'text'; its columns: other"):
        count([str(tmp_path)], options)


def test_a_folder_of_parquet_without_a_named_column_is_an_error(tmp_path, capsys):
    write(tmp_path / "t.parquet", ROWS * 9)
    assert run(["vocab", str(tmp_path), "-o", "-"]) == 1
    warning, error = capsys.readouterr().err.splitlines()
    assert "1 Parquet or Arrow file skipped" in warning and "--text-column" in error


@pytest.mark.parametrize(("kind", "is_long"), [("parquet", 0), ("jsonl", 0), ("jsonl", 1)])
def test_memory_does_not_grow_with_the_file(tmp_path, kind, is_long):
    """One row group of 40 MB, neither compressed nor a dictionary; or long rows."""
    if not Path("/proc/self/status").exists():
        pytest.skip("/proc shows the peak of the memory")
    code = (
        "import sys; from dcme_w2v.cli.main import run; code = run(sys.argv[1:]); "
        "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]); sys.exit(code)"
    )
    lines = [" ".join(f"w{i * j % 997}" for j in range(40)) for i in range(1, 1001)]
    lines = [" ".join(lines)] if is_long else lines
    peaks = []
    for copies in (60, 240):
        path = str(tmp_path / f"{copies}.{kind}")
        if kind == "parquet":
            pa = pytest.importorskip("pyarrow")
            importlib.import_module("pyarrow.parquet").write_table(
                pa.table({"t": lines * copies}), path, use_dictionary=False, compression="none"
            )
        else:
            Path(path).write_text(
                "".join(json.dumps({"t": line}) + "\n" for line in lines) * copies
            )
        size = Path(path).stat().st_size
        line = ["vocab", path, "--text-column", "t", "--threads", "1", "-o", str(tmp_path / "v")]
        done = subprocess.run([sys.executable, "-c", code, *line], capture_output=True, check=True)
        peaks.append(int(done.stdout) * 1024)
    assert peaks[1] - peaks[0] < 0.4 * size


@pytest.mark.parametrize(
    ("sentences", "lines"),
    [("lines", ["One. Two", "three!"]), ("whole", ["One. Two three!"]),
     ("split", ["One.", "Two", "three!"])],
)  # fmt: skip
@pytest.mark.parametrize("source", ["column", "list"])
def test_what_a_sentence_is(tmp_path, sentences, lines, source):
    text = "One. Two\nthree!"
    corpus = [text] * 3
    if source == "column":
        corpus = write(tmp_path / "t.jsonl", [{"x": text}] * 3)
    column = {"text_column": "x"} if source == "column" else {}
    found = dw.phrases(corpus, tmp_path / "out", sentences=sentences, threshold=1e9, **column)
    assert (tmp_path / "out").read_text().splitlines() == lines * 3
    assert found.lines == 3 * len(lines)


def test_classification_by_columns(tmp_path, capsys):
    rows = [{"body": f"the {name} {number}", "kind": name} for number in range(20)
            for name in ("tea", "car")]  # fmt: skip
    docs, held = write(tmp_path / "t.parquet", rows), write(tmp_path / "h.csv", rows)
    columns = ["--text-column", "body", "--label-column", "kind"]
    model = str(tmp_path / "model")
    assert run(["classify", "train", docs, "-o", model, "--holdout", held, *columns]) == 0
    assert run(["classify", "test", model, held, *columns, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1
    assert run(["classify", "predict", model, docs, "--text-column", "body"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows)
    assert run(["classify", "predict", model, docs, "--label-column", "kind"]) == 2
    assert "requires --text-column" in capsys.readouterr().err


COLUMNS = {
    "list": list,
    "generator": iter,
    "pandas": lambda texts: package("pandas").Series(texts),
    "pandas string": lambda texts: package("pandas").Series(texts, dtype="string"),
    "lists of tokens": lambda texts: package("pandas").Series([t and t.split() for t in texts]),
    "arrow": lambda texts: package("pyarrow").chunked_array([texts]),
    "polars": lambda texts: package("polars").Series(texts),
    "polars list": lambda texts: package("polars").Series([t and t.split() for t in texts]),
    "datasets": lambda texts: package("datasets").Dataset.from_dict({"t": texts})["t"],
}
package = pytest.importorskip


@pytest.mark.filterwarnings("ignore:Cannot (locate|pickle)")  # of datasets, by dill
@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_in_python(kind):
    column = COLUMNS[kind](["the king", None, "of the sea"])
    assert sorted(dw.count_words(column, min_count=1)) == ["king", "of", "sea", "the"]


def test_rows_that_are_dicts():
    rows = [{"t": {"a": "the king"}}, {"t": None}, {"t": {"a": "of\nthe sea"}}]
    for items in (rows, iter(rows)):
        found = dw.count_words(items, text_column="t.a", min_count=1)
        assert sorted(found) == ["king", "of", "sea", "the"]


@pytest.mark.parametrize(
    ("items", "column", "message"),
    [
        ([{"t": "the king"}], None, "sentence 0 is a dict: name its text by text_column"),
        ([{"t": "the king"}], "u", "has no column 'u'; its columns: t"),
        (["the king", "the tea"], "t", "item 1 is str"),
    ],
)
def test_errors_of_rows_in_memory(items, column, message):
    with pytest.raises((UsageError, CorpusError), match=message):
        dw.count_words(iter(items), text_column=column)


def test_a_table_without_a_column_is_an_error(tmp_path):
    path = write(tmp_path / "t.csv", ROWS)
    with pytest.raises(UsageError, match="has no column of text"):
        dw.count_words(Table(path))


@pytest.mark.parametrize(
    "line",
    [
        "vocab t.csv --output o --min-count 1",
        "vocab t.csv --output o --min-count 1 --tokenize words",
        "encode v.npy t.csv --output o.npy",
        "classify predict m t.csv",
    ],
)
def test_csv_without_a_column_is_warned_of(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("label,text\n" + "pet,the cat\npet,a dog\n" * 40)
    Path("d.tsv").write_text("pet\tthe cat\ncar\tthe bus\n" * 20)
    dw.train(["the cat"] * 40, dim=2, epochs=1, min_count=1, sample=0).save("v.npy")
    assert run(["classify", "train", "d.tsv", "--output", "m", "--quiet"]) == 0
    capsys.readouterr()
    assert run(line.split()) == 0
    error = capsys.readouterr().err
    assert "t.csv: is read as text, not CSV; name its column" in error and "label,text" in error
    assert error.count("warning: t.csv") == 1


def test_the_error_of_a_missing_column_lists_nested_fields(tmp_path):
    path = write(tmp_path / "t.jsonl", ROWS)
    with pytest.raises(CorpusError, match=r"its columns: text, label, meta, n, meta\.body"):
        lines_of(path, "meta.text")


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_a_saved_model_scores_the_rows_of_a_table(tmp_path, capsys, kind):
    corpus = write_corpus(tmp_path / "c.txt", lines=60)
    lines = [*Path(corpus).read_text().splitlines()[:9], ""]
    Path(tmp_path / "h.txt").write_text("\n".join(lines) + "\n")
    table = write(tmp_path / f"h.{kind}", [{"t": line, "n": 1} for line in lines])
    model = str(tmp_path / "model")
    train = ["train", corpus, "--quiet", "--epochs", "1", "--dim", "4", "-o", f"{model}.npy"]
    assert run([*train, "--output-tables", model]) == 0
    found = []
    for text in ([str(tmp_path / "h.txt")], [table, "--text-column", "t"]):
        for command in (["score"], ["eval", "likelihood"]):
            assert run([*command, model, *text]) == 0
            found.append(capsys.readouterr().out)
    assert found[:2] == found[2:] and len(found[0].splitlines()) == 10


def test_a_cluster_trains_on_a_table_as_on_text(tmp_path):
    corpus = write_corpus(tmp_path / "c.txt", lines=60)
    lines = Path(corpus).read_text().splitlines()
    table = write(tmp_path / "c.jsonl", [{"t": line} for line in lines])
    options = {"epochs": 1, "dim": 4, "cluster": "local:0", "shards": 1, "threads": 1}
    vectors = dw.train(corpus, **options), dw.train(table, text_column="t", **options)
    assert np.array_equal(vectors[0].vectors, vectors[1].vectors)
