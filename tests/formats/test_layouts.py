"""Layouts and odd values of labeled input: each is read, refused or warned of, in every format."""

import json
from pathlib import Path

import pytest
from helpers import write_table as write

import dcme_w2v as dw

TEXTS = ["tea leaf", "boat sea", "tea cup", "boat sail"] * 3
COLUMNS = "--text-column text --label-column label"
TYPED = ("jsonl", "parquet", "feather", "arrows")
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
    if kind in ("parquet", "feather", "arrows"):
        labels = [float(one) if 2.5 in labels or 1.5 in labels else one for one in labels]
    line = TRAIN.format(written(kind, labels * 6))
    if is_wrong or (is_wrong is None and kind not in TYPED):
        assert "a label is text or an integer; group the numbers" in cli.error(line)
    else:
        cli(line)
        assert len(dw.load("m").classes_) == 2


@pytest.mark.parametrize("line", [
    "classify train {} -o m --quiet", "latent fit {} -o m --quiet",
    "fuse fit {} --unlabeled {} -o m --quiet",
])  # fmt: skip
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_every_training_refuses_fractions(cli, line, kind):
    source, _, columns = written(kind, [1.5, 2.5] * 6).partition(" ")
    assert "a label is text or an integer" in cli.error(f"{line} {columns}".format(source, source))


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
    assert 'its columns: "the, text", ' in cli.err


@pytest.mark.parametrize("text, code, said", [
    ("label,text\na,foo\rbar\nb,x\n", 1, "row 1: has a carriage return within a line; make it"),
    ("label,text\ra,foo\rb,x\r", 1, "row 1: has a carriage return within a line; make it"),
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
    assert "has carriage returns within its first line" in cli.err
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
        "time": pa.array([1, 2, None], pa.timestamp("ns", "UTC")),
    }  # fmt: skip
    table = pa.table({"text": ["tea", "boat", None], **columns})
    (parquet.write_table if kind == "parquet" else feather.write_feather)(table, "t")
    cli(f"classify predict m t --text-column text --keep {','.join(columns)} -o o.parquet")
    assert parquet.read_table("o.parquet").select([*columns]).equals(table.select([*columns]))
    rows = [{"text": "tea", "n": n} for n in [1] * 10_000 + [2**64 - 1]]
    cli(f"classify predict m {write('t.jsonl', rows)} --text-column text --keep n -o o.parquet")
    found = parquet.read_table("o.parquet")["n"]
    assert found.type == pa.uint64() and found[-1].as_py() == 2**64 - 1
