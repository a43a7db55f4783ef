"""Small models: encoding and decoding, kept weights, bytes on disk, damaged files."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import refused, run_all
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, load_npz, save_npz

from dcme_w2v._core import fused as core
from dcme_w2v.classify.model import Classifier, load_classifier
from dcme_w2v.classify.pipeline import predict, predict_labels
from dcme_w2v.cli.main import program, run
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.formats.word_list import Words
from dcme_w2v.small_models.options import ShrinkOptions, kept_weights
from dcme_w2v.small_models.shrink import ShrunkModel, WeightRanking, shrink, squares_of

WORDS = [f"{a}{b}{c}" for a in "abcdeä" for b in "xyz" for c in "klm"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Documents of three classes, and classifiers of their words, hash values and rows."""
    place, random = tmp_path_factory.mktemp("shrink"), np.random.default_rng(3)
    lines = []
    for number in range(150):
        label = number % 3
        own = random.choice(WORDS[label * 18 : label * 18 + 18], 5)
        lines.append(f"class{label}\t{' '.join(own)} {' '.join(random.choice(WORDS, 4))}\n")
    (place / "train.tsv").write_text("".join(lines[:90]))
    (place / "test.tsv").write_text("".join(lines[90:]))
    (place / "labels.txt").write_text("".join(line.split("\t")[0] + "\n" for line in lines))
    train = "classify train train.tsv --solver lbfgs --threads 1 --output"
    run_all(
        place,
        f"{train} text",
        f"{train} bigrams --ngrams 2",
        f"{train} hashed --hashing 512",
        f"{train} log --weighting log",
    )
    rows = load_classifier(place / "text").rows([line.split("\t")[1].encode() for line in lines])
    save_npz(place / "rows.npz", csr_matrix(rows))
    run_all(place, f"{train} vectors --labels labels.txt".replace("train.tsv", "rows.npz"))
    return place


def probabilities(model, texts):
    return np.concatenate(list(model.log_probabilities(model.rows(texts), 1)))


def texts_of(folder):
    return [line.split("\t")[1].encode() for line in (folder / "test.tsv").read_text().splitlines()]


def small(folder, name, **options):
    model = load_classifier(folder / name)
    return shrink(model, ShrinkOptions(**options))


# ---- coding ----


@settings(max_examples=60)
@given(st.integers(0, 30), st.integers(1, 9), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_levels_round_trip(rows, classes, seed, share):
    random = np.random.default_rng(seed)
    dense = random.integers(-127, 128, (rows, classes)) * (random.random((rows, classes)) < share)
    levels = csr_matrix(dense.astype(np.int8))
    kinds = random.integers(0, 32, rows).astype(np.uint8)
    starts, columns = levels.indptr.astype(np.int64), levels.indices.astype(np.int32)
    data = core.pack_levels(starts, columns, levels.data, kinds, classes)
    found = core.unpack_levels(data, kinds, classes, levels.nnz)
    for one, other in zip(found, (starts, columns, levels.data), strict=True):
        np.testing.assert_array_equal(one, other)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1)), unique=True))
def test_words_round_trip(texts):
    words = sorted(text.encode() for text in texts if text)
    made = Words.from_words(words)
    data = core.pack_words(made.text, made.offsets)
    text, offsets = core.unpack_words(data, len(words), len(made.text))
    assert text.tobytes() == b"".join(words)
    np.testing.assert_array_equal(offsets, made.offsets)


@given(st.lists(st.integers(0, 2**32 - 1)), st.lists(st.integers(0, 255)))
def test_numbers_round_trip(large, codes):
    for numbers, bits in ((large, 0), (codes, 8)):
        data = core.pack_numbers(np.array(numbers, dtype=np.uint32), bits)
        assert core.unpack_numbers(data, len(numbers), bits).tolist() == numbers


@settings(max_examples=40)
@given(st.binary(max_size=200), st.integers(0, 20), st.integers(0, 60))
def test_damaged_bytes_are_read_within_bounds(data, rows, count):
    given_bytes = np.frombuffer(data, dtype=np.uint8)
    kinds = np.zeros(rows, dtype=np.uint8)
    for read in (
        lambda: core.unpack_levels(given_bytes, kinds, 5, min(count, 5 * rows)),
        lambda: core.unpack_words(given_bytes, rows, count),
    ):
        try:
            read()
        except ValueError as error:
            assert "damaged" in str(error)
    assert len(core.unpack_numbers(given_bytes, count, 0)) == count


# ---- models ----


@pytest.mark.parametrize("name", ["text", "bigrams", "hashed", "log"])
def test_a_small_model_round_trips(name, folder, tmp_path):
    model = small(folder, name, keep="1/3")
    model.save(tmp_path / "s")
    loaded = load_classifier(tmp_path / "s")
    texts = texts_of(folder)
    assert probabilities(loaded, texts).tobytes() == probabilities(model, texts).tobytes()
    assert model.size() == sum(file.stat().st_size for file in (tmp_path / "s").iterdir())
    assert loaded.explain("class1", 3) == model.explain("class1", 3)
    whole = probabilities(load_classifier(folder / name), texts)
    same = probabilities(loaded, texts).argmax(axis=1) == whole.argmax(axis=1)
    assert same.mean() > 0.8


def test_columns_of_vectors(folder, tmp_path):
    line = f"fuse shrink {folder}/vectors --keep 0.3 --output {tmp_path}/s --quiet"
    assert run(line.split()) == 0
    model = load_classifier(tmp_path / "s")
    wide = csr_matrix(np.eye(70, dtype=np.float32)[:, :60])
    narrow = csr_matrix((2, 3), dtype=np.float32)
    for matrix in (wide, narrow):
        (found,) = list(model.log_probabilities(matrix, 1))
        assert found.shape == (matrix.shape[0], 3) and np.isfinite(found).all()
    full = load_classifier(folder / "vectors")
    name, _ = model.explain("class0", 1)[0]
    assert name in [column for column, _ in full.explain("class0", 12)]
    again = shrink(model, ShrinkOptions(keep="5"))
    assert set(again.columns) <= set(model.columns)


@pytest.mark.parametrize("kind", ["chosen columns", "binary"])
def test_predict_and_probabilities_agree(kind, folder, tmp_path, monkeypatch):
    """All that predicts takes the same form of the documents: `predict` did not."""
    rows, model = csr_matrix(load_npz(folder / "rows.npz")), str(tmp_path / "s")
    if kind == "binary":
        line = f"fuse fit {folder}/train.tsv --unlabeled {folder}/test.tsv --preset paper"
        assert run([*line.split(), "--output", model, "--quiet"]) == 0
        docs = folder / "test.tsv"
        rows = load_classifier(model).rows(texts_of(folder))
    else:
        line = f"fuse shrink {folder}/vectors --keep 0.3 --output {model} --quiet"
        assert run(line.split()) == 0
        docs = folder / "rows.npz"
    found = load_classifier(model)
    wanted = np.concatenate(list(found.log_probabilities(rows, 1))).argmax(axis=1)
    names = [found.classes[j] for j in wanted]
    assert [one[0][0] for one in predict(found, [str(docs)])] == names
    assert [one[0] for one in predict_labels(found, [str(docs)])] == names
    monkeypatch.setattr("dcme_w2v.classify.best.MIN_CLASSES", 1)
    monkeypatch.setattr("dcme_w2v.classify.best.MAX_SHARE", 1)
    assert [one[0] for one in predict_labels(found, [str(docs)])] == names


@pytest.mark.parametrize(
    ("keep", "total", "expected"),
    [(None, 50, 50), ("7", 50, 7), ("1", 50, 1), ("0.1", 50, 5), ("1/20", 100, 5), ("1.0", 9, 9)],
)
def test_how_many_weights_are_kept(keep, total, expected):
    assert kept_weights(keep, total) == expected


@pytest.mark.parametrize("keep", ["0", "-1", "2.5", "x", "1/0", "nan", "0.0", "1/2/3", ""])
def test_invalid_numbers_of_weights(keep):
    with pytest.raises(UsageError, match="keep="):
        ShrinkOptions(keep=keep)


def test_kept_weights_are_those_of_a_full_sort(folder, monkeypatch):
    """Weights are read in blocks and screened by bins of their impact; ties go to the first."""
    model = load_classifier(folder / "text")
    model.weights.table[:] = np.round(model.weights.table, 1)
    squares = squares_of(model)
    table = model.weights.get()[:-1].astype(float)
    table -= table.mean(axis=1, keepdims=True)
    impact = (table**2 * squares[:, None]).ravel()
    monkeypatch.setattr("dcme_w2v.classify.trainer.WEIGHTS_AT_ONCE", 20)
    for count in (1, 7, 50, 120):
        order = np.argsort(-impact, kind="stable")[:count]
        wanted = np.zeros(impact.size, dtype=bool)
        wanted[order[impact[order] > 0]] = True
        shrunk = WeightRanking(model.weights, squares, True).shrunk(127, count)
        found = shrunk.evidence.levels.toarray()
        assert not (found.ravel()[~wanted]).any()
        assert (np.sign(found.ravel()[wanted]) == np.sign(table.ravel()[wanted])).all()


# ---- the command ----


def invoke(line):
    result = CliRunner().invoke(program, line.split())
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.parametrize("limit", [-120, 10**9])
def test_models_within_a_number_of_bytes(limit, folder, tmp_path):
    if limit < 0:  # less than all weights take
        limit += small(folder, "text").size()
    line = f"fuse shrink {folder}/text --max-bytes {limit} --output {tmp_path}/s --json --quiet"
    found = json.loads(invoke(f"{line} --holdout {folder}/test.tsv").stdout)
    size = sum(file.stat().st_size for file in (tmp_path / "s").iterdir())
    assert found["bytes"] == size <= limit
    assert size > 0.97 * limit or limit == 10**9
    assert found["accuracy"] > 0.5 and found["accuracy_before"] > 0.8
    tested = json.loads(invoke(f"classify test {tmp_path}/s {folder}/test.tsv --json").stdout)
    assert tested["accuracy"] == found["accuracy"]
    without = json.loads(invoke(line).stdout)
    assert without["bytes"] <= limit and "accuracy" not in without


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("text --max-bytes 900", "the smallest model takes 1,"),
        ("text --max-bytes 9000 --keep 3", "leave --keep out"),
        ("text --keep 99999", "--keep 99999: there are"),
        ("text --holdout -", "--holdout -: is read more than once"),
        ("none", "is not a model"),
    ],
)
def test_invalid_arguments_of_shrink(line, said, folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    code = run(["fuse", "shrink", *line.split(), "--output", str(tmp_path / "s"), "--quiet"])
    assert said in refused(capsys, code)
    assert not (tmp_path / "s").exists()


def test_weights_of_zero(folder, tmp_path, capsys):
    model = Classifier.load(folder / "text")
    model.weights.table[:] = 0
    model.save(tmp_path / "zero")
    line = ["fuse", "shrink", str(tmp_path / "zero"), "--output", str(tmp_path / "s"), "--quiet"]
    assert "all weights are 0" in refused(capsys, run(line))


# ---- damaged files ----


def edit(path, **values):
    found = json.loads((path / "model.json").read_text())
    (path / "model.json").write_text(json.dumps({**found, **values}))


def replace(path, name, array):
    np.save(path / f"{name}.npy", array)
    listed = json.loads((path / "model.json").read_text())["arrays"]
    listed[name] = {"dtype": array.dtype.str, "shape": list(array.shape)}
    edit(path, arrays=listed)


@pytest.mark.parametrize("name", ["levels_packed", "levels_data", "words_text"])
def test_codings_of_former_versions_name_the_version_that_reads_them(name, folder, tmp_path):
    small(folder, "text", keep="0.5").save(tmp_path / "s")
    edit(tmp_path / "s", coding={"levels": 8, "coding": "packed", "words": "front"})
    assert ShrunkModel.load(tmp_path / "s").coding == ShrinkOptions()
    replace(tmp_path / "s", name, np.zeros(3, np.uint8))
    with pytest.raises(FormatError, match=r"dcme-w2v 0\.1\.0 reads; shrink the model again"):
        ShrunkModel.load(tmp_path / "s")


def test_a_small_model_of_several_labels_keeps_calibration_and_threshold(folder, tmp_path):
    lines = (folder / "train.tsv").read_text().splitlines()
    names = sorted({line.split("\t")[0] for line in lines})
    both = [f"{names[i % len(names)]}|{line}\n" for i, line in enumerate(lines)]
    (tmp_path / "several.tsv").write_text("".join(both))
    train = f"classify train {tmp_path}/several.tsv --loss hinge --threads 1"
    invoke(f"{train} --output {tmp_path}/m")
    model = load_classifier(tmp_path / "m")
    invoke(f"fuse shrink {tmp_path}/m --levels 127 --output {tmp_path}/s")
    found = load_classifier(tmp_path / "s")
    assert model.calibration and found.calibration == model.calibration
    assert found.threshold == model.threshold
    texts = texts_of(folder)
    ours, theirs = (np.exp(probabilities(one, texts)) for one in (found, model))
    assert ours == pytest.approx(theirs, abs=0.05)


@pytest.mark.parametrize("name", ["text", "vectors"])
def test_a_classifier_is_written_within_a_number_of_bytes_by_its_training(name, folder, tmp_path):
    docs = f"{folder}/train.tsv" if name == "text" else f"{folder}/rows.npz"
    more = "" if name == "text" else f" --labels {folder}/labels.txt"
    line = f"classify train {docs}{more} --output {tmp_path}/s --threads 1 --holdout 0.2 --json"
    for limit in (2500, 3000):  # the second model replaces the first one
        result = invoke(f"{line} --max-bytes {limit}")
        size = sum(file.stat().st_size for file in (tmp_path / "s").iterdir())
        assert size <= limit and json.loads(result.stdout)["pairs"] > 0
    invoke(line)  # a classifier replaces a small model
    assert load_classifier(tmp_path / "s").weights.features > 0
    held = float(result.stderr.split("held-out: accuracy ")[1].split(",")[0])
    assert held > 0.5  # held-out documents have the columns of the small model
