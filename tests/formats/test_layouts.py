"""Layouts and odd values of labeled input: each is read, refused or warned of, in every format."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers import described
from helpers import write_table as write

import dcme_w2v as dw
from dcme_w2v.formats.records import write_rows

TEXTS = ["tea leaf", "boat sea", "tea cup", "boat sail"] * 3
COLUMNS = "--text-column text --label-column label"
TYPED = ("jsonl", "parquet")
TRAIN = "classify train {} -o m --quiet --threads 1"


def written(kind, labels):
    """Write labeled texts; return the path and its options."""
    if kind in ("svm", "fasttext", "txt"):
        start = "__label__{} {}" if kind == "fasttext" else "{}\t{}"
        start = "{0} {2}:1" if kind == "svm" else start
        rows = [start.format(*one) for one in zip(labels, TEXTS, [1, 2, 1, 2] * 3, strict=True)]
        Path(f"t.{kind}").write_text("\n".join(rows) + "\n")
        return f"t.{kind}"
    rows = [{"text": t, "label": one} for t, one in zip(TEXTS, labels, strict=True)]
    return f"{write(f't.{kind}', rows)} {COLUMNS}"


@pytest.mark.parametrize("kind", ["txt", "fasttext", "svm", "csv", *TYPED])
@pytest.mark.parametrize("labels, is_wrong", [
    ([1.5, 2.5], True), ([1.5, 2], True), ([1.0, 2.0], False), ([1, 2], False),
    (["v1.5", "2"], False), (["1.5", "2"], None), (["1e3", "2"], None), (["-1", "+1"], False),
])  # fmt: skip
def test_labels_that_are_numbers_are_integers(cli, kind, labels, is_wrong):
    """Text that looks like a number is text in the formats that distinguish the two."""
    if kind == "parquet":
        labels = [float(one) if 2.5 in labels or 1.5 in labels else one for one in labels]
    line = TRAIN.format(written(kind, labels * 6))
    if is_wrong or (is_wrong is None and kind not in TYPED):
        assert "a label is text or an integer; group the numbers" in cli.error(line)
    else:
        cli(line)
        assert len(dw.load("m").classes_) == 2


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize("labels, said", [
    ([[0, 0, 1], [1, 0, 0]], "row 1: label is [0, 0, 1], which looks like a row of an indicator"),
    ([[True, False], [True, True]], "row 2: label is [True, True], which looks like a row of an"),
    ([[1, 2], [2]], None), ([["a", "a"], ["b"]], None),
    ([[0, 1], [1, 0]], "every document has all 2 labels, including '0'; for each"),
    ([["a", "b"], ["b", "a"]], "every document has all 2 labels, including 'a'; for each"),
])  # fmt: skip
def test_rows_of_an_indicator_matrix_are_no_labels(cli, kind, labels, said):
    found = cli.run(TRAIN.format(written(kind, labels * 6)).replace("--quiet", ""))
    assert said in cli.err if said else "documents of 2 classes" in cli.err and not found
    assert bool(found) == ("row" in (said or "")) and ("warning" in cli.err) == (
        "all 2" in str(said)
    )


@pytest.mark.parametrize("kind", ["txt", "fasttext", "csv", "jsonl"])
@pytest.mark.parametrize("labels, is_odd", [
    ([0, 1, "spam"], True), (["1", "ham", "spam"], True), ([0, 1, 2], False),
    (["v1", "v2", "v3"], False), (["1", "2", "spam"], False),
])  # fmt: skip
def test_no_and_yes_beside_names_are_warned_of(cli, kind, labels, is_odd):
    cli(TRAIN.format(written(kind, labels * 4)).replace("--quiet", ""))
    assert ("if 0 and 1 mean no and yes" in cli.err) == is_odd


@pytest.mark.parametrize("value, kind", [({}, "dict"), ([None], "NoneType"), ([["a"]], "list")])
def test_other_values_are_no_labels(cli, value, kind):
    said = cli.error(TRAIN.format(written("jsonl", [value, "b"] * 6)))
    assert f"row 1: label has a value of type {kind}; labels must be text, integers, or" in said


@pytest.mark.parametrize("kind", ["csv", *TYPED])
def test_a_name_with_a_comma_is_quoted(cli, kind):
    rows = [
        {"the, text": t, 'a "label"': one, "k": 1} for t, one in zip(TEXTS, "abab" * 3, strict=True)
    ]
    path = write(f"t.{kind}", rows)
    names = ("--text-column", '"the, text"', "--label-column", 'a "label"')
    cli(TRAIN.format(path), *names)
    cli(f"classify predict m {path} --json", *names[:2], "--keep", 'k,"the, text"')
    assert json.loads(cli.out.splitlines()[0])["the, text"] == "tea leaf"
    assert len(dw.vocab(dw.Table(path, '"the, text"'), min_count=1)) == 6
    assert len(dw.vocab(dw.Table("rows", ["the, text"], rows=rows), min_count=1)) == 6
    cli(TRAIN.format(path), "--text-column", "the, text", code=1)
    assert 'choose one of its columns: "the, text", ' in cli.err


@pytest.mark.parametrize("text, code, said", [
    ("label,text\na,foo\rbar\nb,x\n", 1, "row 1: has a carriage return within a line; replace"),
    ("label,text\ra,foo\rb,x\r", 1, "row 1: has a carriage return within a line; replace"),
    ('label,text\na,"foo\rbar"\nb,x\n', 0, ""), ("label,text\r\na,foo\r\nb,x\r\n", 0, ""),
])  # fmt: skip
def test_a_carriage_return_in_csv(cli, text, code, said):
    Path("t.csv").write_bytes(text.encode())
    cli(TRAIN.format(f"t.csv {COLUMNS}"), code=code)
    assert said in cli.err


@pytest.mark.parametrize("line", ["vocab t -o - --min-count 1", "classify train t -o m"])
def test_lines_that_end_with_carriage_returns_are_warned_of(cli, line):
    Path("t").write_bytes(b"a\ttea\rb\tboat\ra\tcup\r")
    cli.run(line)
    assert "carriage returns within the first line" in cli.err
    Path("t").write_bytes(b"a\ttea\r\nb\tboat\r\n")
    cli.run(line)
    assert "carriage" not in cli.err


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_kept_columns_keep_their_types(cli, kind):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    cli(TRAIN.format(written("txt", ["a", "b"] * 6)))
    columns = {
        "wide": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "narrow": pa.array([1, None, -1], pa.int8()),
        "half": pa.array([1.5, 0, None], pa.float32()),
        "class": pa.array(["x", None, "y"]).dictionary_encode(),
        "items": pa.array([[1], [], None], pa.list_(pa.int16())), "none": pa.nulls(3),
    }  # fmt: skip
    times = pa.array([1, 2, None], pa.timestamp("ns", "UTC"))
    if find_spec("pandas"):
        columns["time"] = times
    table = pa.table({"text": ["tea", "boat", None], "time": times, **columns})
    (parquet.write_table if kind == "parquet" else feather.write_feather)(table, "t")
    if "time" not in columns:
        message = cli.error("classify predict m t --text-column text --keep time -o o.parquet")
        assert "pip install pandas" in message
    cli(f"classify predict m t --text-column text --keep {','.join(columns)} -o o.parquet")
    assert parquet.read_table("o.parquet").select([*columns]).equals(table.select([*columns]))
    for value, kept in (
        ("a\ud800", "a?"),
        (["\udfff", "b"], ["?", "b"]),
        ({"x": "\ud800"}, {"x": "?"}),
    ):
        path = write("s.jsonl", [{"text": "tea", "n": value}])
        cli(f"classify predict m {path} --text-column text --keep n -o o.parquet")
        assert parquet.read_table("o.parquet")["n"].to_pylist() == [kept]
    rows = [{"text": "tea", "n": n} for n in [1] * 10_000 + [2**64 - 1]]
    cli(f"classify predict m {write('t.jsonl', rows)} --text-column text --keep n -o o.parquet")
    found = parquet.read_table("o.parquet")["n"]
    assert found.type == pa.uint64() and found[-1].as_py() == 2**64 - 1


@pytest.mark.parametrize(
    "values, first, last",
    [
        ([1, "a"], "1", "a"),
        ([True, 1], "true", "1"),
        ([2**70, "a\ud800"], str(2**70), "a?"),
        ([2**64 - 1, -1], str(2**64 - 1), "-1"),
        ([[1], {"x": None}], "[1]", '{"x": null}'),
        ([1, 1.5], 1.0, 1.5),
    ],
)
@pytest.mark.parametrize("repeated", [1, 10_000])
def test_kept_columns_of_several_types_become_text(values, first, last, repeated):
    parquet = pytest.importorskip("pyarrow.parquet")
    for one, other, ends in ((*values, (first, last)), (*values[::-1], (last, first))):
        rows = [(value, None) for value in [one] * repeated + [other]]
        write_rows("o.parquet", ["n", "empty"], rows, ".parquet", False)
        found = parquet.read_table("o.parquet")["n"]
        assert (found[0].as_py(), found[-1].as_py()) == ends


@pytest.mark.parametrize("kind", ["csv", "jsonl", "txt"])
@pytest.mark.parametrize("name, is_null", [("nan", True), ("NA", True), ("N", False)])
def test_a_class_that_may_mean_no_label_is_warned_of(cli, kind, name, is_null):
    cli(TRAIN.format(written(kind, [name, "b", "c"] * 4)).replace("--quiet", ""))
    said = f"4 documents have the label {name!r}, which is treated as a class"
    assert (said in cli.err) == is_null


# ---- layouts ----


def folder_of(tree):
    """Write files, given as paths and contents."""
    for path, content in tree.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content)


FILES = {
    f"d/{label}/{i}.txt": f"{text} {i}\nmore\tof it\n"
    for label, text in (("a", "tea leaf"), ("b", "boat sea"))
    for i in range(5)
}


@pytest.mark.parametrize("more, said", [
    ({}, None), ({"d/.git/x": "a\tb\n"}, None), ({"d/c/1": "x y\n", "d/c/2": "x\n"}, None),
    ({"d/readme": "about\n"}, "d/readme is not in a subfolder"),
    ({"d/a/deep/x": "tea\n"}, "there are folders in d/a"),
    ({"d/c/1": "x\ty\n"}, "only some of the files have labels in their lines"),
    ({"d/c/1": "__label__x y\n"}, "only some of the files have labels in their lines"),
    ({"d/ /1": "x\n"}, "name of this file's folder is not a valid label"),
])  # fmt: skip
def test_a_folder_with_a_subfolder_per_class(cli, more, said):
    folder_of({**FILES, **more})
    if said:
        assert said in cli.error(TRAIN.format("d"))
        return
    cli("classify train d -o m --threads 1")
    assert f"d: the {3 if 'd/c/1' in more else 2} subfolders are read as classes" in cli.err
    cli("classify test m d")
    assert f"documents\t{10 + 2 * ('d/c/1' in more)}\n" in cli.out
    assert len(cli("classify predict m d").splitlines()) >= 10
    assert set(dw.load("m").classes_) == {"a", "b", *(["c"] if "d/c/1" in more else [])}


def test_a_folder_whose_lines_have_labels_is_read_by_line(cli):
    folder_of({"d/x/1.tsv": "a\ttea\nb\tboat\n" * 5, "d/y/2.tsv": "a\tcup\nb\tsea\n" * 5})
    cli(TRAIN.format("d"))
    assert set(dw.load("m").classes_) == {"a", "b"} and "subfolders" not in cli.err


@pytest.mark.parametrize("kind", ["csv", *TYPED, "txt"])
def test_folders_of_hive_give_columns(cli, kind):
    for label in ("a b", "c", "__HIVE_DEFAULT_PARTITION__"):
        text = "boat" if label == "c" else "tea"
        folder = Path(f"d/year=1984/label={label.replace(' ', '%20')}")
        folder.mkdir(parents=True)
        if kind == "txt":
            (folder / "1").write_text(f"{text} x\n")
            continue
        write(folder / f"part-0.{kind}", [{"text": f"{text} {i}"} for i in range(5)])
    if kind == "txt":  # without columns, folders are classes
        assert "there are folders in d/year=1984" in cli.error(TRAIN.format("d"))
        cli(TRAIN.format("d/year=1984"))
        assert set(dw.load("m").classes_) >= {"c"}
        return
    cli(f"classify train d {COLUMNS} -o m --threads 1")
    assert set(dw.load("m").classes_) == {"a b", "c"} and "5 without a label" in cli.err
    cli("classify predict m d --json --text-column text --keep year,label")
    assert json.loads(cli.out.splitlines()[-1])["label"] == "c"
    assert json.loads(cli.out.splitlines()[-1])["year"] == "1984"
    assert len(dw.vocab(dw.Table("d", "text"), min_count=1)) == 7


def dataset(folder, numbers, names, in_schema):
    """Write a folder as datasets does by save_to_disk."""
    pa = pytest.importorskip("pyarrow")
    features = {"text": {"dtype": "string", "_type": "Value"},
                "label": {"names": names, "_type": "ClassLabel"}}  # fmt: skip
    if isinstance(numbers[0], list):
        features["label"] = {"feature": features["label"], "_type": "Sequence"}
    about = {"info": {"features": features}}
    schema = pa.table({"text": TEXTS, "label": numbers}).schema
    schema = schema.with_metadata({"huggingface": json.dumps(about)} if in_schema else {})
    Path(folder).mkdir(parents=True)
    table = pa.table({"text": TEXTS, "label": numbers}, schema=schema)
    name = "data-00000-of-00001.arrow"
    with pa.OSFile(f"{folder}/{name}", "wb") as sink, pa.ipc.new_stream(sink, schema) as out:
        out.write_table(table)
    Path(folder, "state.json").write_text(json.dumps({
        "_data_files": [{"filename": name}], "_fingerprint": "f", "_format_columns": None,
        "_format_kwargs": {}, "_format_type": None, "_output_all_columns": False, "_split": None,
    }))  # fmt: skip
    facts = {"builder_name": "x", "features": features}
    Path(folder, "dataset_info.json").write_text(json.dumps(facts))


@pytest.mark.parametrize("in_schema", [True, False])
@pytest.mark.parametrize("numbers", [[0, 1], [0, None], [1, -1], [[0, 1], [1]], [0, 2]])
def test_folders_of_datasets_have_names_of_classes(cli, numbers, in_schema):
    numbers = [*numbers, 1, 0] * 3 if numbers[0] != [0, 1] else [*numbers, [0], []] * 3
    dataset("d", numbers, ["tea", "sea"], in_schema)
    line = f"classify train d {COLUMNS} -o m --threads 1"
    if 2 in numbers:
        assert (
            "class 2 has no name, because the file contains names for only 2 classes"
            in cli.error(f"{line} --quiet")
        )
        return
    cli(line)
    assert set(dw.load("m").classes_) == {"tea", "sea"}
    assert ("3 without a label" in cli.err) == (None in numbers or -1 in numbers)
    assert "for tables, select the text column with --text-column" in cli.error(TRAIN.format("d"))


def test_one_split_of_a_folder_of_datasets_is_named(cli):
    for split in ("train", "test"):
        dataset(f"d/{split}", [0, 1] * 6, ["tea", "sea"], True)
    Path("d/dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    said = cli.error(f"{TRAIN.format('d')} {COLUMNS}")
    assert (
        "d: this dataset has several splits, but only one split can be read; use one of d/train, "
        "d/test" in said
    )
    cli(f"{TRAIN.format('d/train')} {COLUMNS} --holdout d/test")


@pytest.mark.parametrize("layout", ["integer", "real", "pattern", "array", "symmetric"])
def test_matrix_market(cli, layout):
    from scipy import io, sparse

    rows = sparse.csr_matrix(
        [[1, 0, 2], [0, 3, 0], [2, 0, 1]] * (1 if layout == "symmetric" else 4)
    )
    given = rows.toarray() if layout == "array" else rows.tocoo()
    io.mmwrite("x.mtx", given, field=layout if layout in ("integer", "real", "pattern") else None,
               symmetry="symmetric" if layout == "symmetric" else "general")  # fmt: skip
    sparse.save_npz("x.npz", (rows > 0) * 1.0 if layout == "pattern" else rows * 1.0)
    Path("y").write_text("a\nb\na\n" * (rows.shape[0] // 3))
    found = [
        (cli(f"{TRAIN.format(path)} --labels y"), cli(f"classify predict m {path}"))
        for path in ("x.npz", "x.mtx")
    ]
    assert found[0] == found[1] and found[0][1].count("\n") == rows.shape[0]


@pytest.mark.parametrize("text, said", [
    ("", "the first line"), ("a b\n", "the first line"),
    ("%%MatrixMarket vector array real general\n1 1\n", "the first line"),
    ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 1\n", "the first line"),
    ("%%MatrixMarket matrix coordinate real general\n9 9 999999999999\n1 1 1\n", "too short"),
    ("%%MatrixMarket matrix array real general\n999999 999999\n1\n", "too short"),
    ("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 1 nan\n", "is not a valid Matrix"),
    ("%%MatrixMarket matrix coordinate real general\n2 2 1\n9 1 1\n", "is not a valid Matrix"),
    ("%%MatrixMarket matrix coordinate real general\n2 9999999999 1\n1 1 1\n", "is not a valid"),
])  # fmt: skip
def test_damaged_matrix_market(cli, text, said):
    Path("x.mtx").write_text(text)
    Path("y").write_text("a\nb\n")
    assert said in cli.error(f"{TRAIN.format('x.mtx')} --labels y")


def test_addresses_of_files_are_paths(cli, here):
    Path("a b.tsv").write_text("a\ttea\nb\tboat\n" * 6)
    address = f"file://{here}/a%20b.tsv"
    cli(TRAIN.format(address))
    assert cli(f"classify predict m {address}") == cli("classify predict m", "a b.tsv")
    cli(f"vocab {address} -o - --min-count 1")
    assert "tea 6" in cli.out
    write("t.jsonl", [{"text": "tea"}])
    assert list(dw.vocab(dw.Table(f"file://localhost{here}/t.jsonl", "text"), min_count=1)) == [
        "tea"
    ]
    assert "is the same file as" in cli.error(f"vocab {address} --output", "a b.tsv")
    cli(f"vocab {address.replace('file:', 'FILE:')} -o - --min-count 1")
    assert "refers to another machine" in cli.error("vocab file://host/x -o -")
    assert "there is no such file" in cli.error(f"vocab file://{here}/none -o -")


def test_vectors_for_the_embedding_projector(cli):
    vectors = dw.Vectors(["tea", "ö"], [[1, 0.5], [0, -2]], counts=[5, 3])
    vectors.save("v.safetensors")
    cli("convert v.safetensors p.tsv --to tsv")
    assert Path("p.tsv").read_text() == "1.0\t0.5\n0.0\t-2.0\n"
    assert Path("p.metadata.tsv").read_text() == "word\tcount\ntea\t5\nö\t3\n"
    dw.Vectors(["tea", "ö"], [[1, 0.5], [0, -2]]).save("w.txt")
    cli("convert w.txt q.tsv --to tsv")
    assert Path("q.metadata.tsv").read_text() == "tea\nö\n"
    assert "choose a file" in cli.error("convert v.safetensors - --to tsv")
    Path("r.metadata.tsv").write_text("2 1\na 1\nb 2\n")
    assert "is the same file as" in cli.error("convert r.metadata.tsv r.tsv --to tsv")
    assert cli.rows("neighbors v.safetensors TEA --ignore-case")[0][0] == "tea"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_column_of_weights(cli, kind):
    """Of two labels of each text, the heavier one is learned; a weight of 0 leaves out."""
    rows = [
        {"text": text, "label": label, "w": weight}
        for text in TEXTS
        for label, weight in ((text.split()[0], 9.0), ("boat", 0.5), ("none", 0.0))
    ]
    line = f"{TRAIN.format(write(f't.{kind}', rows))} {COLUMNS}"
    cli(f"{line} --sample-weight-column w")
    model = dw.load("m")
    assert model.classes_.tolist() == ["boat", "tea"]
    assert model.predict(["tea leaf", "boat sea"]).tolist() == ["tea", "boat"]
    assert "requires --text-column" in cli.error("classify train t -o m --sample-weight-column w")
    for wrong in (-1.0, None, float("nan")):
        path = write(f"u.{kind}", [*rows, {"text": "tea", "label": "tea", "w": wrong}])
        said = cli.error(f"{TRAIN.format(path)} {COLUMNS} --sample-weight-column w")
        assert (
            f"{path}:37: the document weight " in said
            and "is not a finite nonnegative number" in said
        )
    path = write(f"z.{kind}", [{**row, "w": 0} for row in rows])
    said = cli.error(f"{TRAIN.format(path)} {COLUMNS} --sample-weight-column w")
    assert f"{path}: all labeled documents have the weight 0; choose another column" in said


WEIGHTED = [("tea leaf", "tea", 3), ("tea cup", "boat", 2), ("sail", "boat", 1), ("x", "tea", 0)]


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_a_held_out_document_of_weight_w_counts_as_w_documents(cli, kind):
    def table(name, rows):
        return write(f"{name}.{kind}", [dict(zip(("text", "label", "w"), x)) for x in rows])  # noqa: B905

    even = [(text, text.split()[0], 1) for text in TEXTS]
    line = f"classify train {{}} -o m --threads 1 {COLUMNS} --sample-weight-column w --holdout {{}}"
    line += " --solver sgd --epochs 2"
    once = [(text, label, 1) for text, label, _ in WEIGHTED[:3]]
    copies = [(text, label, 1) for text, label, weight in WEIGHTED for _ in range(weight)]
    found = {}
    for rows, count in ((WEIGHTED, 3), (copies, 6), (once, 3)):
        cli(line.format(table("even", even), table("held", rows)))
        (said,) = (one for one in cli.err.splitlines() if one.startswith("held-out: "))
        assert f"({count} documents)" in said
        epochs = [
            round(one[f"heldout_{name}"], 6)
            for one in described("m")["record"]["epochs"]
            for name in ("accuracy", "log_likelihood")
        ]
        found[str(rows)] = (said.partition(" (")[0], epochs)
    assert found[str(WEIGHTED)] == found[str(copies)] != found[str(once)]
    half = [(text, label, i // 2 % 2) for i, (text, label, _) in enumerate(even * 20)]
    for rows in (half, [row for row in half if row[2]]):  # 120 documents
        cli(line.format(table("half", rows), "0.5"))
        assert "62 documents of 2 classes" in cli.err and "(58 documents)" in cli.err
    wrong = table("wrong", [(text, label, None) for text, label, _ in even])
    for train, held in ((table("even", even), wrong), (wrong, "0.9")):
        assert f"wrong.{kind}:1: the document weight " in cli.error(line.format(train, held))
