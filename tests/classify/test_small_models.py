"""Small models: encoding and decoding, kept weights, bytes on disk, damaged files."""

import tracemalloc
from dataclasses import replace
from pathlib import Path
from weakref import ref

import numpy as np
import pytest
from data import run_all
from helpers import link_all
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, load_npz, save_npz

from dcme_w2v.classify import compact, train
from dcme_w2v.classify import small as job
from dcme_w2v.classify.features import TextFeatures
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.model import Classifier, load_classifier
from dcme_w2v.classify.options import ClassifyOptions, FeatureOptions, ShrinkOptions, kept_weights
from dcme_w2v.classify.predict import measured, predict
from dcme_w2v.classify.shrink import WeightRanking, shrink, squares_of
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.errors import CorpusError, FormatError, UsageError
from dcme_w2v.formats.artifact import Model
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.training.progress import QUIET

WORDS = [f"{a}{b}{c}" for a in "abcdeä" for b in "xyz" for c in "klm"]


def probabilities(model, texts):
    return np.concatenate(list(model.log_probabilities(model.rows(texts), 1)))


def size_of(path):
    return Path(path).stat().st_size


@pytest.fixture(scope="module")
def made(tmp_path_factory):
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
    texts = [line.split("\t")[1].encode() for line in lines]
    rows = load_classifier(place / "text").text.transform(texts).matrix()
    save_npz(place / "rows.npz", rows)
    run_all(place, f"{train} vectors --labels labels.txt".replace("train.tsv", "rows.npz"))
    return place, texts[90:]


@pytest.fixture
def texts(made, here):
    """Return the texts of test.tsv; the current folder has links to all files."""
    folder, texts = made
    link_all(folder, here)
    return texts


# ---- coding ----


# ---- models ----


@pytest.mark.bits
@pytest.mark.parametrize("name", ["text", "bigrams", "hashed", "log"])
def test_a_small_model_round_trips(name, texts):
    whole = load_classifier(name)
    model = shrink(whole, ShrinkOptions(keep="1/3"))
    model.save("s")
    loaded = load_classifier("s")
    found = probabilities(loaded, texts)
    assert found.tobytes() == probabilities(model, texts).tobytes()
    assert model.size() == size_of("s")
    assert loaded.explain(label="class1", count=3) == model.explain(label="class1", count=3)
    assert (found.argmax(axis=1) == probabilities(whole, texts).argmax(axis=1)).mean() > 0.8


@pytest.mark.parametrize(
    "line, docs",
    [
        ("classify shrink vectors --keep 0.3", "rows.npz"),
        ("fuse fit train.tsv --unlabeled test.tsv --preset paper", "test.tsv"),
    ],
)
def test_predict_and_probabilities_agree(line, docs, texts, cli, monkeypatch):
    """All that predicts takes the same form of the documents: `predict` did not."""
    cli(f"{line} --output s --quiet")
    found = load_classifier("s")
    rows = csr_matrix(load_npz(docs)) if docs == "rows.npz" else found.rows(texts)
    wanted = np.concatenate(list(found.log_probabilities(rows, 1))).argmax(axis=1)
    names = [found.classes[j] for j in wanted]
    assert [one[0][0] for _, one in predict(found, [docs])] == names
    assert len(found.explain(label=names[0], count=2)) == 2


@pytest.mark.parametrize(
    "keep, total, expected",
    [(None, 50, 50), ("7", 50, 7), ("1", 50, 1), ("0.1", 50, 5), ("1/20", 100, 5), ("1.0", 9, 9)],
)
def test_how_many_weights_are_kept(keep, total, expected):
    assert kept_weights(keep, total) == expected


@pytest.mark.parametrize("keep", ["0", "-1", "2.5", "x", "1/0", "nan", "0.0", "1/2/3", ""])
def test_invalid_numbers_of_weights(keep):
    with pytest.raises(UsageError, match="keep="):
        ShrinkOptions(keep=keep)


@pytest.mark.parametrize("centered", [False, True])
def test_weights_of_many_features_take_few_bytes_while_they_get_levels(centered, monkeypatch):
    """They were copied in double precision."""
    monkeypatch.setattr("dcme_w2v.classify.trainer.WEIGHTS_AT_ONCE", 1 << 15)
    weights = Weights(1 << 14, 128, 1.0)
    weights.table[:] = np.random.default_rng(1).normal(size=weights.table.shape)
    ranking = WeightRanking(weights, np.ones(1 << 14), centered=centered)
    tracemalloc.start()
    found = ranking.shrunk(127, ranking.count)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12 * found.evidence.levels.nnz + (2 << 20)


@pytest.mark.bits
def test_rows_are_scored_alike_before_and_after_all_weights_are_made(texts):
    shrink(load_classifier("text"), ShrinkOptions(keep="1/3")).save("s")
    some, every = load_classifier("s"), load_classifier("s")
    assert every.weights.table.any(axis=1).all()
    for part in (slice(0, 3), slice(2, None)):
        text = [texts[i] for i in range(len(texts))[part]]
        assert probabilities(some, text).tobytes() == probabilities(every, text).tobytes()
        assert "weights" not in vars(some)


def test_kept_weights_are_those_of_a_full_sort(texts, monkeypatch):
    """Weights are read in blocks and screened by bins of their impact; ties go to the first."""
    model = load_classifier("text")
    model.weights.table.flags.writeable = True
    model.weights.table[:] = np.round(model.weights.table, 1)
    squares = squares_of(model)
    table = model.weights.get()[:-1].astype(float)
    table -= table.mean(axis=1, keepdims=True)
    impact = (table**2 * squares[:, None]).ravel()
    monkeypatch.setattr("dcme_w2v.classify.trainer.WEIGHTS_AT_ONCE", 20)
    for count in (1, 7, 50, 120):
        order = np.argsort(-impact, kind="stable")[:count]
        wanted = np.zeros(impact.size)
        kept = order[impact[order] > 0]
        wanted[kept] = np.sign(table.ravel()[kept])
        shrunk = WeightRanking(model.weights, squares, True).shrunk(127, count)
        np.testing.assert_array_equal(
            np.sign(shrunk.evidence.levels.matrix().toarray()).ravel(), wanted
        )
    model.weights.table[:] = 0
    with pytest.raises(CorpusError, match="all weights of the model are 0"):
        shrink(model, ShrinkOptions())


# ---- the command ----


@pytest.mark.parametrize("limit", [-100, 10**9])
def test_models_within_a_number_of_bytes(limit, texts, cli):
    if limit < 0:  # less than all weights take
        limit += shrink(load_classifier("text"), ShrinkOptions()).size()
    line = f"classify shrink text --max-bytes {limit} --output s --quiet"
    found = cli.json(f"{line} --holdout test.tsv")
    assert found["bytes"] == size_of("s") <= limit
    assert found["bytes"] > 0.97 * limit or limit == 10**9
    assert found["accuracy"] > 0.5 and found["accuracy_before"] > 0.8
    assert cli.json("classify test s test.tsv")["accuracy"] == found["accuracy"]
    without = cli.json(line)
    assert without["bytes"] <= limit and "accuracy" not in without


@pytest.mark.parametrize("guess", [12, 400])
@pytest.mark.parametrize("levels", [2, 8])
def test_the_search_for_the_largest_model_starts_from_any_guess(levels, guess, texts):
    """Most of the file is JSON, so the first weights hardly enlarge it."""
    model = load_classifier("text")
    ranking, limit = job.ranking_of(model), shrink(model, ShrinkOptions()).size() - 100
    options = ShrinkOptions(levels=levels, max_bytes=limit)

    def size(count):
        made = ranking.shrunk(levels, count)
        return shrink(model, replace(options, keep=str(count)), made).size()

    largest = max(filter(limit.__ge__, map(size, range(1, ranking.count, 20))))
    found, used = job._largest(model, options, ranking, guess)
    assert 0.98 * largest < found.size() == used <= limit


# ---- damaged files ----


def test_a_small_model_of_several_labels_keeps_calibration_and_threshold(texts, cli):
    lines = Path("train.tsv").read_text().splitlines()
    both = [f"class{i % 3}|{line}\n" for i, line in enumerate(lines)]
    Path("several.tsv").write_text("".join(both))
    cli("classify train several.tsv --loss hinge --threads 1 --output m")
    cli("classify shrink m --levels 127 --output s")
    model, found = load_classifier("m"), load_classifier("s")
    assert model.calibration and found.calibration == model.calibration
    assert found.threshold == model.threshold
    ours, theirs = (np.exp(probabilities(one, texts)) for one in (found, model))
    assert ours == pytest.approx(theirs, abs=0.05)


@pytest.mark.parametrize("docs", ["train.tsv", "rows.npz --labels labels.txt"])
def test_a_classifier_is_written_within_a_number_of_bytes_by_its_training(docs, texts, cli):
    line = f"classify train {docs} --output s --threads 1 --holdout 0.2 --loss hinge --lr 0.5"
    for limit in (2500, 3000):  # the second model replaces the first one
        found = cli.json(f"{line} --max-bytes {limit}")
        assert size_of("s") <= limit and found["pairs"] > 0
    held = float(cli.err.split("held-out: accuracy ")[1].split(",")[0])
    assert held > 0.5  # held-out documents have the columns of the small model
    cli(line)  # a classifier replaces a small model
    assert load_classifier("s").weights.features > 0


def holding(words_length=0, **arrays):
    """Return a model's file that holds packed arrays."""
    return Model("m", {"words_length": words_length}, arrays)


@settings(max_examples=50)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], min_codepoint=1)), unique=True))
def test_words_round_trip(texts):
    made = Words.from_words(sorted(text.encode() for text in texts if text))
    model = holding(words=compact.pack_words(made), words_length=len(made.text))
    assert list(compact.unpack_words(model, len(made))) == list(made)


@given(st.sets(st.integers(0, 2**40 - 1)), st.lists(st.integers(-128, 127)))
def test_numbers_round_trip(ascending, codes):
    model = holding(
        a=compact.pack_ascending(np.array(sorted(ascending), dtype=np.int64)),
        b=compact.pack(np.array(codes, dtype=np.int8)),
    )
    found = compact.unpack_ascending(model, "a", len(ascending), 2**40)
    assert found.tolist() == sorted(ascending)
    assert compact.unpack(model, "b", np.int8, len(codes)).tolist() == codes


@given(st.data())
def test_levels_round_trip(data):
    rows = data.draw(st.integers(0, 9))
    cells = data.draw(st.lists(st.integers(-127, 127), min_size=4 * rows, max_size=4 * rows))
    kinds = np.array(data.draw(st.lists(st.integers(0, 255), min_size=rows, max_size=rows)), "u1")
    levels = csr_matrix(np.array(cells, dtype=np.int8).reshape(rows, 4))
    places, packed = compact.pack_levels(levels, kinds)
    found = compact.unpack_levels(holding(places=places, levels=packed), kinds, 4, levels.nnz)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(levels, name))


ASCENDING = np.array([0, 2, 1 << 62], dtype=np.int64)
DAMAGED = {
    "no compressed bytes": np.arange(9, dtype=np.uint8),
    "cut": compact.pack_ascending(ASCENDING)[:-5],
    "too many numbers": compact.pack_ascending(np.arange(4)),
    "too few numbers": compact.pack_ascending(np.arange(2)),
    "a number that is too high": compact.pack_ascending(ASCENDING),
    "equal numbers": compact.pack(np.array([1, 0, 1])),
    "a sum that is beyond 64 bits": compact.pack(np.array([1, 2**63 - 1, 2**63 - 1])),
    "a negative number": compact.pack(np.array([-1, 1, 1])),
    "a file of nothing": np.zeros(0, dtype=np.uint8),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_numbers_are_an_error(damage):
    with pytest.raises(FormatError, match="m: a: "):
        compact.unpack_ascending(holding(a=DAMAGED[damage]), "a", 3, 1000)


def test_a_flipped_bit_is_an_error_if_it_changes_numbers():
    numbers, errors = np.arange(-20, 20, dtype=np.int8), 0
    packed = compact.pack(numbers)
    for bit in range(8 * len(packed)):
        damaged = packed.copy()
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            found = compact.unpack(holding(a=damaged), "a", np.int8, len(numbers))
            assert found.tolist() == numbers.tolist()  # the bit is between the end and the checksum
        except FormatError as error:
            assert str(error) == "m: a: the compressed bytes are damaged; fit the model again"
            errors += 1
    assert errors > 8 * len(packed) - 8


@pytest.mark.parametrize("docs", ["train.tsv", "rows.npz --labels labels.txt"])
def test_training_writes_the_weights_that_documents_do_not_miss(docs, texts, cli, monkeypatch):
    line = f"classify train {docs} --threads 1 --holdout 0.2 --output"
    whole = cli.json(f"{line} whole")
    monkeypatch.setattr(job, "SMALL", (0, 0))
    monkeypatch.setattr(job, "is_dense", lambda _: False)
    tables, shrink_all, measured = [], job._without_idle, train.measured
    monkeypatch.setattr(
        job, "_without_idle", lambda *own: tables.append(ref(own[0].weights)) or shrink_all(*own)
    )
    monkeypatch.setattr(
        train, "measured", lambda *own: tables.append(tables.pop()()) or measured(*own)
    )
    found = cli.json(f"{line} small")
    assert tables == [None]  # the table of all weights was freed before others are made
    assert 1.2 * size_of("small") < size_of("whole") and found["labels"] == whole["labels"]
    tested = "test.tsv" if docs == "train.tsv" else docs
    before, now = (cli.json(f"classify test {one} {tested}") for one in ("whole", "small"))
    assert now["accuracy"] == before["accuracy"]
    assert now["log_likelihood"] == pytest.approx(before["log_likelihood"], abs=0.02)
    monkeypatch.setattr(job, "is_dense", lambda _: True)
    cli(f"{line} dense")
    assert size_of("dense") == pytest.approx(size_of("whole"), rel=0.01)


@pytest.mark.parametrize("is_text", [False, True])
def test_documents_have_their_weights_where_a_model_is_compressed(is_text, monkeypatch):
    """The second feature occurs only in a document that hardly counts, and has another label."""
    monkeypatch.setattr(job, "SMALL", (0, 0))
    monkeypatch.setattr(job, "is_dense", lambda _: False)
    weights = Weights(2, 2, 1.0)
    weights.set(np.float32([[1, -1], [1, -1], [0, 0]]))
    text = TextFeatures(FeatureOptions(subwords="none", lead_ngrams=1)) if is_text else None
    rows = text.fit_transform([b"one", b"two"]) if text else csr_matrix(np.eye(2, dtype="f4"))
    data = Labeled(rows, [[0], [1]], np.float32([1, 1e-7]))
    own = ["a", "b"], text, ClassifyOptions(), False, 0.5, {}
    small, held = job.compressed(Classifier(*own, weights=weights), data, data, QUIET)
    assert is_text or small.columns.tolist() == [0]
    assert measured(small, held)["accuracy"] > 0.99
