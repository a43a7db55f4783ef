"""Text and labels from columns of Parquet, Arrow, JSON lines and CSV."""

import functools
import gzip
import json
import re
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from data import write_corpus
from helpers import python
from helpers import write_table as write

import dcme_w2v as dw
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.columns import Table, kind_of_table, read_rows
from dcme_w2v.formats.corpus import Corpus
from dcme_w2v.formats.documents import read_documents
from dcme_w2v.formats.sparse_io import read_svmlight
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text.cache import LAST
from dcme_w2v.text.encode import count, encode

ROWS = [
    {"text": "the king\nof england", "label": "a", "meta": {"body": "green tea"}, "n": 1},
    {"text": None, "label": "d", "meta": {"body": "the sea"}, "n": 2},
    {"text": "", "label": "b|c", "meta": None, "n": 3},
]
package = pytest.importorskip
BINARY = ("parquet", "feather", "arrows")
FORMATS = (*BINARY, "jsonl", "csv", "tsv")


def lines_of(path, text, label=(), **more):
    rows = read_rows(Table(path, text, label, **more))
    return [[] if row.text is None else row.text.decode().split("\n") for _, row in rows]


def text_of(path, name):
    return b"".join(bytes(block.text) for block in Corpus([Table(path, name)]))


@pytest.mark.parametrize("values", [
    ["a b", "c"], ["a", None, "b"], ["a", ""], ["", "a"], ["a\x0bb", ""], ["a\r", "b"],
    ["a\n", "b"], ["\r", "b", "c"], [None, None], ["a\r", "b\x0bc"], ["a\u2028b", "c\u0085"],
])  # fmt: skip
@pytest.mark.parametrize("name", ["t", "t,t", "s.t"])
def test_rows_that_are_read_together_are_the_lines_of_each(values, name):
    path = write("t.parquet", [{"t": one, "s": {"t": one}} for one in values])
    lines = ["\n".join(row) for row in lines_of(path, name)]
    assert text_of(path, name) == ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_has_the_same_rows(kind):
    path = write(f"t.{kind}", ROWS)
    warned = pytest.warns(UserWarning, match=rf"2 of 3 rows, the first at t\.{kind}:2, have no")
    with warned as told:
        documents = list(read_documents([Table(path, "text", "label")]))
    assert len(told) == 1
    assert [one.labels for one in documents] == [("a",), ("d",), ("b", "c")]
    assert [one.text for one in documents] == [b"the king of england", b"", b""]
    counted = count([path], VocabularyOptions(min_count=1, text_column="text")).vocabulary
    assert sorted(counted) == ["england", "king", "of", "the"] and set(counted.counts) == {1}
    with pytest.raises(
        CorpusError, match="has no column 'body'; choose one of its columns: text, label"
    ):
        lines_of(path, "body")


@pytest.mark.parametrize("kind", FORMATS[:-2])
def test_a_file_without_a_named_column_is_an_error_with_its_columns(kind, cli):
    path = write(f"t.{kind}", ROWS)
    for command in (f"vocab {path} -o -", f"classify train {path} -o m"):
        cli(command, code=1)
        assert "--text-column: text, label, meta, n" in cli.err and cli.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
@pytest.mark.parametrize(
    "values, lines",
    [
        (["a b", "c"], [["a b"], ["c"]]),
        (["a\n\nb\r\nc"], [["a", "", "b", "c"]]),  # newlines within a value
        ([None, "a", ""], [[], ["a"], [""]]),  # a null is no sentence
        ([["New-York", "is"], None], [["New-York is"], []]),  # a list of tokens
        ([[["a", "b"], ["c"]], [["d"]]], [["a b", "c"], ["d"]]),  # sentences of tokens
        ([["a b"]], "row 1: the token 'a b' is empty or contains whitespace"),
        ([[""]], "row 1: the token '' is empty"),
        ([b"a b", "café".encode()], [["a b"], ["café"]]),  # Parquet without the type of text
        ([b"a", b"\xff"], "row 2: is not UTF-8"),
        ([float("nan"), None], [[], []]),
        ([3], "row 1: 3 is neither a text nor"),
        ([{"y": "a"}], "row 1: the text is a dict"),
        (["a", "b\0"], "row 2: the text contains a NUL"),
        (["a"] * 9 + ["a\0"], "row 10: the text contains a NUL"),
    ],
)
def test_values(kind, values, lines):
    if kind == "jsonl" and isinstance(values[0], bytes):
        return
    path = write(f"t.{kind}", [{"x": value} for value in values])
    if isinstance(lines, str):
        for read in (lambda: lines_of(path, "x"), lambda: text_of(path, "x")):
            with pytest.raises(CorpusError, match=lines):
                read()
    else:
        assert lines_of(path, "x") == lines


@pytest.mark.parametrize(
    "text, label, lines, labels",
    [
        ("text,meta.body", (), ["the king", "of england green tea"], ()),
        (("meta.body", "text"), "n", ["green tea the king", "of england"], ("1",)),
        ("meta.body", "label,n", ["green tea"], ("a", "1")),
    ],
)
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_columns_are_joined_and_fields_are_found(kind, text, label, lines, labels):
    path = write(f"t.{kind}", ROWS)
    _, row = next(read_rows(Table(path, text, label)))
    assert (row.text.decode().split("\n"), row.labels) == (lines, labels)
    with pytest.raises(
        CorpusError, match=r"has no column 'meta\.text'; choose one of its columns: "
    ):
        lines_of(path, "meta.text")


@pytest.mark.parametrize("kind", FORMATS)
def test_names_of_columns_are_unicode_and_may_have_dots_and_commas(kind):
    names = ["Größe", "本文", "a.b", "c,d"]
    path = write(f"t.{kind}", [dict(zip(names, "wxyz", strict=True))])
    assert [lines_of(path, (name,)) for name in names] == [[[one]] for one in "wxyz"]


def test_whitespace_and_lines_are_the_same_in_files_columns_and_lists():
    text = "bonjour\u00a0! a\u202fb c\u2028d e\u0085f\x1cg\x0bh\x0ci"
    Path("t").write_text(f"{text}\n", encoding="utf-8", newline="")
    tokens = [word.decode() for word in text.encode().split()]
    assert len(tokens) == 6
    for corpus in ("t", [text], [tokens]):
        assert sorted(dw.vocab(corpus, min_count=1)) == sorted(tokens)
    for kind in ("parquet", "jsonl", "csv"):
        for value in [text] if kind == "csv" else [text, tokens]:
            path = write(f"t.{kind}", [{"x": value}])
            assert sorted(dw.vocab(path, min_count=1, text_column="x")) == sorted(tokens)
            (document,) = read_documents([Table(path, "x")])
            assert [word.decode() for word in document.words] == tokens


@pytest.mark.parametrize(
    "content", [
        '\n%s{"x": "a"}\n\n  \n{"x": "b"}\r\n\r\n{"x": "c"}\n\n' % (" \n" * 99),
        '\ufeff\r\n {"x": "a"}\n{"x": "b"}\n{"x": "c"}', '\n\nx,y\na,1\n\nb,2\r\n\r\n"c",3\n\n',
    ],
)  # fmt: skip
def test_blank_lines_are_no_rows(content):
    Path("t").write_bytes(content.encode())
    assert lines_of("t", "x") == [["a"], ["b"], ["c"]]
    table = dw.Table("t", "x")
    assert [document.words for document in read_documents([table])] == [[b"a"], [b"b"], [b"c"]]
    if "{" in content:
        assert kind_of_table("t") == "JSON lines"
        for read in (lambda: list(read_documents(["t"])), lambda: dw.vocab("t")):
            with pytest.raises(CorpusError, match="t is JSON lines; select its text column"):
                read()


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv", "nothing"])
def test_files_without_rows(kind):
    if kind == "parquet":
        pa, parquet = package("pyarrow"), package("pyarrow.parquet")
        parquet.write_table(pa.table({"text": pa.array([], pa.string())}), f"t.{kind}")
    else:
        Path(f"t.{kind}").write_text("text,n\n" if kind == "csv" else "")
    assert lines_of(f"t.{kind}", "text") == []
    full = write("u.jsonl", [{"text": "tea"}])
    counted = count([f"t.{kind}", full], VocabularyOptions(min_count=1, text_column="text"))
    assert list(counted.vocabulary) == ["tea"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("share", [0.3, 0.7, 0.97])
def test_a_truncated_file_is_one_error_with_the_row(kind, share):
    rows = [{"text": f"{'green tea ' * 50}{number}", "n": number} for number in range(200)]
    path = Path(write(f"t.{kind}", rows))
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(CorpusError, match=r"row \d+"):
        lines_of(str(path), "text,n" if kind in ("csv", "tsv") else "text")


@pytest.mark.parametrize(
    "content, message",
    [
        ('{"x": "a"}\nnot json\n', "row 2: the line is not valid JSON"),
        ('{"x": "a"}\n[1]\n', "row 2: the line is not a JSON object"),
        ('[{"x": "a"}]', "is a JSON array; write one JSON object per line"),
        ('\n [\n  {"x": "a"}\n]\n', "is a JSON array; write one JSON object per line"),
        (
            '{\n "x": "a"\n}\n',
            "row 1: the line is not valid JSON .*; write one JSON object per line",
        ),
        ('{"x": "a"}\n{"x": ["b"]}\n', "row 2: the text columns contain both text and lists"),
        ('{"x": "a"}\n' + '{"y": ' * 100_000, "row 2: the line is not valid JSON"),
        ('x,y\n1,2\n"a,b\n', "row 2: unexpected end of data; repair the file"),
        ("x,y\n1\n", "row 1: the row has 1 fields, but the header has 2"),
        (b"x,y\n\xff,2\n", "row 1: is not UTF-8"),
        ("x,y\n1,2\n".encode("utf-16"), "row 1: is not UTF-8"),
        (b'{"x": "\xff"}\n', "row 1: is not UTF-8"),
        (b"PAR1 and no more", "row 1: Parquet magic bytes not found in footer"),
        ("x,x\n1,2\n", "has two columns named 'x'"),
        pytest.param("Parquet", "has two columns named 'x'; rename one", id="Parquet"),
        pytest.param(
            "x\na\0b\n" * 9,
            "row 1: (the text contains a NUL character|line contains NUL)",
            id="NUL in a field",
        ),
        # csv of Python 3.10 accepts no NUL
        (
            "\0" * 1000,
            "NUL" if sys.version_info < (3, 11) else "has no column 'x'; choose .{0,100}$",
        ),
        ('{"x": ' + "1" * 5000 + "}\n", "row 1: the line is not valid JSON .Exceeds"),
        (b"\xff\xff\xff\xff and no more", "row 1: .*; repair the file, or get it again"),
    ],
)
def test_damaged_files(content, message):
    Path("t").write_bytes(content.encode() if isinstance(content, str) else content)
    if content in (b"PAR1 and no more", b"\xff\xff\xff\xff and no more"):
        pytest.importorskip("pyarrow")
    if content == "Parquet":
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.table([["a"], ["b"]], names=["x", "x"]), "t")
    with pytest.raises(CorpusError, match=message):
        lines_of("t", "x")


@pytest.mark.parametrize("kind", BINARY)
def test_flipped_bits_are_errors_and_no_crash(kind):
    data = Path(write(f"t.{kind}", [{"x": "green tea"}, {"x": "car"}] * 9)).read_bytes()
    random, failed = np.random.default_rng(0), 0
    for _ in range(200):
        place = int(random.integers(len(data)))
        flipped = bytes([data[place] ^ 1 << int(random.integers(8))])
        Path("f").write_bytes(data[:place] + flipped + data[place + 1 :])
        try:
            lines_of("f", "x")
        except CorpusError as error:
            failed += bool(str(error))
    assert failed


@pytest.mark.parametrize("start", ['{"x": "', 'x,y\n"'])
def test_a_line_without_end_is_an_error(monkeypatch, start):
    monkeypatch.setattr("dcme_w2v.files.opening.LINE_BYTES", 1000)
    Path("t").write_text(start + "a" * 5000)
    with pytest.raises(CorpusError, match="is longer than 1,000 bytes"):
        lines_of("t", "x")


def test_compressed_files_and_standard_input(cli):
    data = Path(write("t.jsonl", ROWS)).read_bytes()
    Path("t.jsonl.gz").write_bytes(gzip.compress(data))
    assert lines_of("t.jsonl.gz", "text") == lines_of("t.jsonl", "text")
    assert "green 1" in cli("vocab - --text-column meta.body --min-count 1 -o -", stdin=data)
    Path("t.parquet.gz").write_bytes(gzip.compress(b"PAR1" + bytes(99)))
    with pytest.raises(CorpusError, match="decompress"):
        lines_of("t.parquet.gz", "text")


def test_a_folder_of_files_with_different_columns(here):
    for kind in ("parquet", "jsonl"):
        write(f"t.{kind}", ROWS)
    options = VocabularyOptions(min_count=1, text_column="text")
    assert count([str(here)], options).tokens == 8
    write("u.jsonl", [{"other": "a"}])
    with pytest.raises(
        CorpusError, match=r"u\.jsonl has no column 'text'; choose one of its columns: other"
    ):
        count([str(here)], options)


def test_a_folder_of_parquet_without_a_named_column_is_an_error(here, cli):
    write("t.parquet", ROWS * 9)
    cli(f"vocab {here} -o -", code=1)
    warning, error = cli.err.splitlines()
    assert "1 Parquet or Arrow file skipped" in warning and "--text-column" in error


PEAK = """
import sys
from dcme_w2v.cli.main import run
code = run("vocab t --text-column t --threads 1 -o v".split())
print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])
sys.exit(code)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc shows the peak")
@pytest.mark.parametrize("kind, is_long", [("parquet", 0), ("jsonl", 0), ("jsonl", 1)])
def test_memory_does_not_grow_with_the_file(kind, is_long):
    """One row group of 40 MB, neither compressed nor a dictionary; or long rows."""
    lines = [" ".join(f"w{i * j % 997}" for j in range(40)) for i in range(1, 1001)]
    lines = [" ".join(lines)] if is_long else lines
    peaks = []
    for copies in (60, 240):
        if kind == "parquet":
            table = package("pyarrow").table({"t": lines * copies})
            options = {"use_dictionary": False, "compression": "none"}
            package("pyarrow.parquet").write_table(table, "t", **options)
        else:
            text = "".join(json.dumps({"t": line}) + "\n" for line in lines)
            Path("t").write_text(text * copies)
        peaks.append(int(python("-c", PEAK, check=True).stdout) * 1024)
    assert peaks[1] - peaks[0] < 0.4 * Path("t").stat().st_size


@pytest.mark.parametrize(
    "sentences, lines",
    [("lines", ["One. Two", "three!"]), ("whole", ["One. Two three!"]),
     ("split", ["One.", "Two", "three!"])],
)  # fmt: skip
@pytest.mark.parametrize("source", ["column", "list"])
def test_what_a_sentence_is(sentences, lines, source):
    corpus, column = ["One. Two\nthree!"] * 3, {}
    if source == "column":
        corpus = write("t.jsonl", [{"x": one} for one in corpus])
        column = {"text_column": "x"}
    found = dw.phrases(corpus, "out", sentences=sentences, threshold=1e9, **column)
    assert Path("out").read_text().splitlines() == lines * 3
    assert found.lines == 3 * len(lines)


@pytest.mark.parametrize(
    "text, sentences",
    [
        ("a b\nc\n\nd\n", ["a b c", "d"]),
        ("a\r\nb\r\n\r\n \t\r\nc\r\nd", ["a b", "c d"]),
        ("\n\na\n\n\n\nb c\nd\n\n\n", ["a", "b c d"]),
        ("a", ["a"]),
    ],
)
def test_lines_of_a_paragraph_are_one_sentence(text, sentences):
    Path("t").write_text(text, newline="")
    dw.phrases("t", "out", sentences="paragraphs", threshold=1e9)
    lines = Path("out").read_text().splitlines()
    assert [" ".join(line.split()) for line in lines if line.strip()] == sentences


@pytest.mark.parametrize("block", [1, 2, 5, 13, 200])
@pytest.mark.parametrize("tokenize", ["whitespace", "words"])
def test_paragraphs_do_not_end_where_a_block_does(block, tokenize):
    words = [f"w{n}" for n in range(30)]
    ends = "\n \n\n \n\t\n\r\n\n\n"
    random = np.random.default_rng(block)
    for number in range(3):
        text = "".join(
            word + random.choice([" ", "\n", "\r\n", "\n\n", "\n \n", ends]) for word in words
        )
        Path("t").write_text(text * (number > 0) + "last", newline="")
        Path("u").write_text("other\n")
        options = VocabularyOptions(tokenize, sentences="paragraphs", min_count=1)
        found = encode(["t", "u"], options, _block_bytes=block)
        lengths = np.diff([-1, *np.flatnonzero(found.ids & LAST)])
        paragraphs = re.split(r"\n[ \t\r]*\n", Path("t").read_bytes().decode())
        assert lengths.tolist() == [*filter(None, (len(one.split()) for one in paragraphs)), 1]


def test_classification_by_columns(cli):
    rows = [{"body": f"the {name} {number}", "kind": name} for number in range(20)
            for name in ("tea", "car")]  # fmt: skip
    for name in ("t.parquet", "h.csv"):
        write(name, rows)
    columns = "--text-column body --label-column kind"
    cli(f"classify train t.parquet -o m --holdout h.csv {columns}")
    assert cli.json(f"classify test m h.csv {columns}")["accuracy"] == 1
    assert len(cli.rows("classify predict m t.parquet --text-column body")) == len(rows)
    cli("classify predict m t.parquet --label-column kind", code=2)
    assert "requires --text-column" in cli.err
    cli("classify train t.parquet -o m --text-column kind --label-column body")
    assert "check --text-column and --label-column" in cli.err


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


@pytest.mark.filterwarnings("ignore:Cannot (locate|pickle)")  # of datasets, by dill
@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_in_python(kind):
    column = COLUMNS[kind](["the king", None, "of the sea"])
    assert sorted(dw.vocab(column, min_count=1)) == ["king", "of", "sea", "the"]


def test_rows_that_are_dicts():
    rows = [{"t": {"a": "the king"}}, {"t": None}, {"t": {"a": "of\nthe sea"}}]
    for items in (rows, iter(rows)):
        found = dw.vocab(items, text_column="t.a", min_count=1)
        assert sorted(found) == ["king", "of", "sea", "the"]


@pytest.mark.parametrize(
    "items, column, message",
    [
        (
            [{"t": "the king"}],
            None,
            "the text is a dict; select its text column with text_column",
        ),
        ([{"t": "the king"}], "u", "has no column 'u'; choose one of its columns: t"),
        (["the king", "the tea"], "t", "item 1: text_column requires files or dicts, not str"),
        ([Table("t.csv")], None, "no text column is selected; select one with text_column, or"),
    ],
)
def test_errors_of_rows_in_memory(items, column, message):
    write("t.csv", ROWS)
    with pytest.raises((UsageError, CorpusError), match=message):
        dw.vocab(iter(items), text_column=column)


@pytest.mark.parametrize(
    "line",
    [
        "vocab t.csv --output o --min-count 1",
        "vocab t.csv --output o --min-count 1 --tokenize words",
        "encode v.safetensors t.csv --output o.npy",
        "classify predict m t.csv",
    ],
)
def test_csv_without_a_column_is_warned_of(line, cli):
    Path("t.csv").write_text("label,text\n" + "pet,the cat\npet,a dog\n" * 40)
    Path("d.tsv").write_text("pet\tthe cat\ncar\tthe bus\n" * 20)
    dw.train(["the cat"] * 40, dim=2, epochs=1, min_count=1, sample=0).save("v.safetensors")
    cli("classify train d.tsv --output m --quiet")
    cli(line)
    said = "t.csv is read as text, not as CSV; to read only a column"
    assert said in cli.err and "label,text" in cli.err
    assert cli.err.count("is read as text") == 1


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
def test_a_saved_model_scores_the_rows_of_a_table(cli, kind):
    corpus = Path(write_corpus("c", lines=60)).read_text().splitlines()
    lines = [*corpus[:9], ""]
    Path("h").write_text("\n".join(lines) + "\n")
    write(f"h.{kind}", [{"t": line, "n": 1} for line in lines])
    cli("train c --quiet --epochs 1 --dim 4 -o v.safetensors --output-tables m")
    assert cli("eval likelihood m h") == cli(f"eval likelihood m h.{kind} --text-column t")


@functools.cache
def arrow_bombs():
    """Columns whose 1 MB or more are stored as a few kB."""
    pa = pytest.importorskip("pyarrow")
    text, many = pa.array(["tea " * 500]), 300_000
    rows = pa.DictionaryArray.from_arrays(np.zeros(1000, np.int16), text)
    token = pa.DictionaryArray.from_arrays(np.zeros(many, np.int8), pa.array(["a"]))
    ends = [0, many - 1, many]
    return {
        "pages": rows.cast(pa.string()),
        "dictionary": rows,
        "tokens": pa.ListArray.from_arrays(ends, token),
        "nulls": pa.ListArray.from_arrays(ends, pa.nulls(many, pa.string())),
        "null rows": pa.nulls(many, pa.string()),
        "run ends": pa.RunEndEncodedArray.from_arrays(pa.array([many], pa.int32()), text),
        "views": pa.ListViewArray.from_arrays(
            pa.array([0] * 999, pa.int32()), pa.array([999] * 999, pa.int32()), rows.slice(1)
        ),
    }


@pytest.mark.parametrize(
    "kind, name",
    [
        (kind, name)
        for kind in BINARY
        for name in (
            "pages", "dictionary", "tokens", "nulls", "null rows",
            *(("run ends", "views") if kind != "parquet" else ()),  # which it does not have
        )
    ],
)  # fmt: skip
def test_what_decodes_to_far_more_is_an_error(monkeypatch, name, kind):
    table = package("pyarrow").table({"x": arrow_bombs()[name]})
    monkeypatch.setattr("dcme_w2v.files.opening.ALWAYS_DECODED", 1 << 20)
    if kind != "parquet":
        ipc = package("pyarrow").ipc
        options = ipc.IpcWriteOptions(compression="zstd")
        make = ipc.new_file if kind == "feather" else ipc.new_stream
        with make("t", table.schema, options=options) as file:
            file.write_table(table)
    else:
        flat = name == "pages"
        package("pyarrow.parquet").write_table(
            table, "t", compression="zstd", use_dictionary=not flat, store_schema=False
        )
    assert Path("t").stat().st_size < 40_000
    if name == "dictionary" or (name, kind) == ("null rows", "parquet"):  # some rows at once
        assert len(lines_of("t", "x")) == len(table)
        return
    said = "bytes decompress to at least [0-9,]+ bytes, |row 1: the (column type|text has more)"
    with pytest.raises(CorpusError, match=said):
        text_of("t", "x")


@pytest.mark.parametrize("count, lines", [(1, 5000), (5, 1000)])
def test_a_row_of_csv_has_a_limit(monkeypatch, count, lines):
    monkeypatch.setattr("dcme_w2v.formats.columns.LINE_BYTES", 15_000)
    field = '"' + "tea\n" * lines + '"'
    Path("t").write_text(f"{'y,' * (count - 1)}x\n{','.join([field] * count)}\n")
    with pytest.raises(CorpusError, match=r"row 1: (the row has more than 15,|field larger than)"):
        lines_of("t", "x")


@pytest.mark.parametrize("kind", ["tsv.gz", "jsonl.gz", "parquet"])
def test_documents_that_decode_to_far_more_are_not_held(cli, monkeypatch, kind):
    """As text they are read to the end."""
    monkeypatch.setattr("dcme_w2v.files.opening.ALWAYS_DECODED", 1 << 20)
    rows, columns = [{"y": "ab"[i % 2], "x": "tea"} for i in range(20_000)], ""
    if kind == "tsv.gz":
        Path("t").write_bytes(gzip.compress(b"a\ttea\nb\ttea\n" * 10_000))
    elif kind == "jsonl.gz":
        Path("t").write_bytes(gzip.compress(Path(write("u", rows, "jsonl")).read_bytes()))
    else:
        table = package("pyarrow").Table.from_pylist(rows)
        package("pyarrow.parquet").write_table(table, "t", compression="zstd")
    columns = "" if kind == "tsv.gz" else "--text-column x"
    labels = columns and "--label-column y"
    error = cli.error(f"classify train t -o m --quiet {columns} {labels}")
    assert "t: " in error and "bytes decompress to" in error
    cli(f"vocab t -o - {columns}")


def test_a_row_of_parquet_has_a_limit_of_decoded_bytes(monkeypatch):
    monkeypatch.setattr("dcme_w2v.formats.columns.LINE_BYTES", 100_000)
    write("t.parquet", [{"x": ["ab"]}, {"x": ["ab"] * 40_000}])
    with pytest.raises(
        CorpusError, match="row 2: the text has more than 100,000 bytes; split the text"
    ):
        text_of("t.parquet", "x")


# ---- labels ----

WHOLE = [1, 2, 10, 1, 2, 10]
WAYS = {  # of the same labels
    "integers": WHOLE, "floats": [float(one) for one in WHOLE], "text": [str(one) for one in WHOLE],
    "lists": [[one] for one in WHOLE], "lists of floats": [[float(one)] for one in WHOLE],
    "text of floats": [f"{one}.0" for one in WHOLE], "lists as text": [f"[{n}]" for n in WHOLE],
}  # fmt: skip


LINES = {"tsv": "{}\ta b", "txt": "__label__{} a b", "svm": "{} 1:2"}


@pytest.mark.parametrize(
    ("form", "way"),
    [(form, way) for form in ("jsonl", "csv", "parquet") for way in WAYS]
    + [(form, way) for form in LINES for way in WAYS if "list" not in way],
)
def test_an_integer_is_one_label_however_it_is_written(form, way):
    path, labels = f"d.{form}", WAYS[way]
    if form in LINES:
        Path(path).write_text("\n".join(LINES[form].format(one) for one in labels))
        found = read_svmlight(path)[1] if form == "svm" else labels_in(path)
    else:
        rows = [{"t": "a b", "y": one} for one in labels]
        write(path, rows)
        found = labels_in(dw.Table(path, "t", "y"))
    assert found == [(str(one),) for one in WHOLE]


def labels_in(source):
    return [document.labels for document in read_documents([source])]


@pytest.mark.parametrize("text, labels", [
    ("['a', 'b c']", ("a", "b c")), ('["a","b|c"]', ("a", "b|c")), ("[1, 2.0]", ("1", "2")),
    ("01", ("01",)), ("1.10", ("1.10",)), ("-0.0", ("0",)), ("[b]", ("[b]",)), ("[x", ("[x",)),
    ("1.0|a", ("1", "a")), ("v1.0", ("v1.0",)), ('["it\'s"]', ("it's",)), ("['a',]", ("a",)),
    ("('a', 'b')", ("a", "b")), ("{'e', 'b', 'd', 'a', 'c'}", tuple("abcde")),
    ("('a')", ("a",)), ("(a)", ("(a)",)), ("[ ]", ()), ("()", ()), (" {} ", ()), ("set()", ()),
])  # fmt: skip
def test_lists_that_are_written_as_text(text, labels):
    write("d.csv", [{"t": "a b", "y": text}])
    found = labels_in(dw.Table("d.csv", "t", "y"))
    assert found == [labels] and all(found)  # an unlabeled document has the empty tuple, too


@pytest.mark.parametrize("text", [
    "['a' 'b']", "['a', nan]", "['a', ['b']]", '["a"', "['a'] x",
    "['a\nb']", r"['\N{x}']", "[07]", "{'a': 1}", "('a', nan)",
])  # fmt: skip
def test_lists_that_cannot_be_read_are_refused(text):
    write("d.csv", [{"t": "a b", "y": text}])
    with pytest.raises(CorpusError, match=r"row 1: y is .*which is not a valid list; separate"):
        labels_in(dw.Table("d.csv", "t", "y"))


@pytest.mark.parametrize("kind, opens", [
    ("arrows", "ipc.open_stream"), ("feather", "ipc.open_file"), ("parquet", "parquet.ParquetFile"),
])  # fmt: skip
def test_a_type_that_arrow_does_not_have_is_a_damaged_file(monkeypatch, kind, opens):
    """Such as integers of three bits, in a file with changed bytes."""
    pa = pytest.importorskip("pyarrow")
    write(f"d.{kind}", [{"t": "a"}])
    failed = Mock(side_effect=pa.ArrowNotImplementedError("Integers with less than 8 bits"))
    monkeypatch.setattr(f"pyarrow.{opens}", failed)
    with pytest.raises(CorpusError, match=rf"d\.{kind}: .*Integers with less.*; repair the file"):
        dw.vocab(dw.Table(f"d.{kind}", "t"), min_count=1)


@pytest.mark.parametrize("path", ["d.jsonl", "d.parquet", "d.csv"])
def test_none_of_the_labels_is_not_no_label(path):
    none, null = ([], None) if path != "d.csv" else ("[]", "")
    write(path, [{"t": "a", "y": ["b"]}, {"t": "a", "y": none}, {"t": "a", "y": null}])
    found = labels_in(dw.Table(path, "t", "y"))
    assert [len(one) for one in found] == [1, 0, 0] and [*map(bool, found)] == [True, True, False]


def test_a_name_that_is_twice_in_a_row_is_refused():
    Path("d.jsonl").write_text('{"t": "a", "y": "b", "t": "c"}\n')
    with pytest.raises(CorpusError, match=r"row 1: the line is not valid JSON .*'t' occurs twice"):
        labels_in(dw.Table("d.jsonl", "t", "y"))


@pytest.mark.parametrize("yes, no", [(1, 0), (True, False), (1.0, 0.0), ("1", "0")])
@pytest.mark.parametrize("path", ["d.jsonl", "d.parquet", "d.csv"])
def test_columns_of_0_and_1_are_a_label_each(path, yes, no):
    pairs = [(yes, no), (no, no), (yes, yes), (no, yes)]
    rows = [{"t": "a", "y": own, "obscene": other} for own, other in pairs]
    found = labels_in(dw.Table(write(path, rows), "t", "y,obscene"))
    assert found == [("y",), (), ("y", "obscene"), ("obscene",)] and all(found)


@pytest.mark.parametrize("other", [(2, 1), ("a", 0)])
def test_columns_of_0_and_1_and_more_are_refused(other):
    rows = [{"t": "a", "y": own, "z": two} for own, two in [(0, 1), (1, 1), other]]
    write("d.jsonl", rows)
    with pytest.raises(CorpusError, match="row 3: the label columns contain only 0 and 1"):
        labels_in(dw.Table("d.jsonl", "t", "y,z"))
