"""Trees of labels: prediction against a plain search, training, files and errors."""

import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data import run_all, text_of
from helpers import arrays_in, link_all
from scipy.sparse import csr_matrix

from dcme_w2v._core.models import LabelTree, SparseRows
from dcme_w2v.classify import label_tree
from dcme_w2v.classify.label_tree import ARRAYS, centroids, coded, decoded, train_trees
from dcme_w2v.classify.labeled import Labeled, instances_of
from dcme_w2v.classify.model import load_classifier
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.errors import UsageError

LABELS, WORDS = 300, 3


def documents(count=2000, seed=0):
    """Return rows of words of two labels, and the labels."""
    random = np.random.default_rng(seed)
    labels = np.sort(random.integers(0, LABELS, (count, 2)), axis=1)
    own = labels.repeat(3, axis=1) * WORDS + random.integers(0, WORDS, (count, 6))
    columns = np.concatenate([own, random.integers(LABELS * WORDS, 1000, (count, 3))], axis=1)
    values = np.full(columns.size, 1 / 3, dtype=np.float32)
    rows = csr_matrix((values, columns.ravel(), np.arange(0, columns.size + 1, 9)), (count, 1000))
    rows.sum_duplicates()
    return rows, [list(dict.fromkeys(one)) for one in labels.tolist()]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    for name, seed in (("train", 0), ("test", 1)):
        (folder / f"{name}.tsv").write_text(text_of(Labeled(*documents(seed=seed))))
    run_all(folder, "classify train train.tsv --output m --objective tree --threads 2")
    return folder


@pytest.fixture
def files(made, here):
    link_all(made, here)


def options_of(**more):
    return resolved(ClassifyOptions(objective="tree", threads=1, **more), LABELS, True)


def plain_search(tree, row, beam):
    """Return labels and scores by the definition of the beam search."""
    arrays, level = tree.arrays, [(0.0, 0)]
    nodes = len(arrays["children"]) - 1
    dense = np.append(np.asarray(row.todense()).ravel(), tree.bias)
    while level[0][1] < nodes:
        found = []
        for score, node in sorted(level, key=lambda one: -one[0])[:beam]:
            first, last = arrays["children"][node : node + 2]
            sums = np.zeros(last - first)
            for row_number in range(*arrays["rows"][node : node + 2]):
                value = dense[arrays["features"][row_number]]
                for i in range(*arrays["starts"][row_number : row_number + 2]):
                    sums[arrays["columns"][i]] += value * arrays["values"][i]
            log_p = -np.logaddexp(0, -sums)
            found += [(score + p, first + c) for c, p in enumerate(log_p)]
        level = found
    best = sorted(level, key=lambda one: -one[0])
    return [int(arrays["labels"][n - nodes]) for _, n in best], [score for score, _ in best]


@pytest.mark.parametrize("levels", [2, 3])
def test_the_search_is_that_of_the_definition(monkeypatch, levels):
    if levels == 3:
        monkeypatch.setattr(label_tree, "ROOT", 3)
        monkeypatch.setattr(label_tree, "BRANCH", 2)
    monkeypatch.setattr(label_tree, "LEAF", 20)
    monkeypatch.setattr(label_tree, "TREES", 1)
    rows, labels = documents(1500)
    (tree,) = train_trees(rows, *instances_of(labels), LABELS, options_of(), lambda done: None)
    nodes = len(tree.arrays["children"]) - 1
    assert nodes == {2: 17, 3: 1 + 2 + 4 + 8 + 16}[levels] or levels == 3
    for beam in (2, 10):
        monkeypatch.setattr(label_tree, "BEAM", beam)
        found, scores = tree.best(SparseRows(rows), 0, 8, 8)
        for d in range(8):
            wanted, by = plain_search(tree, rows[d], beam)
            assert scores[d] == pytest.approx(by[:8], abs=1e-4)
            assert set(found[d][:3]) <= set(wanted[:6])


def test_of_equal_scores_the_first_labels_are_best():
    scores = np.random.default_rng(0).integers(0, 9, 60).astype(np.float32)
    parts = [1, 61], [0, 1], [0], [0, 60], range(60)  # one node, whose feature is the column 0
    types = np.int64, np.int64, np.int32, np.int64, np.uint16
    tree = LabelTree(*map(np.array, parts, types), scores, 1, 0.0)
    for count in range(1, 61):
        best = np.empty((1, count), np.int32)
        tree.best(SparseRows(csr_matrix(np.float32([[1]]))), 0, 1, 1, best, np.float32(best))
        assert best[0].tolist() == np.argsort(-scores, kind="stable")[:count].tolist()


@pytest.mark.bits
def test_training_does_not_depend_on_the_number_of_threads():
    data = Labeled(*documents(800))
    one, two = (
        train_trees(
            data.matrix, *instances_of(data.labels), LABELS, replace(options_of(), threads=n), print
        )
        for n in (1, 2)
    )
    assert one
    for first, second in zip(one, two, strict=True):
        assert all(np.array_equal(first.arrays[name], second.arrays[name]) for name in ARRAYS)


def test_the_command_trains_tests_predicts_and_explains(files, cli):
    figures = cli.json("classify test m test.tsv")
    assert figures["precision_at_1"] > 0.9 and figures["micro_f1"] > 0.8
    rows = cli.rows("classify predict m test.tsv -k 2")
    known = Path("test.tsv").read_text().splitlines()
    truth = [set(line.split("\t")[0].split("|")) for line in known]
    pairs = list(zip(rows, truth, strict=True))
    assert np.mean([len({*row[::2]} & own) / len(own) for row, own in pairs]) > 0.85
    p = np.mean([float(row[1]) for row in rows])
    assert abs(p - np.mean([row[0] in own for row, own in pairs])) < 0.1
    every = cli.rows(f"classify predict m -k {LABELS}", stdin="\n".join(known[:50]))
    assert all(len(row) == 2 * LABELS for row in every)
    found = cli.rows("classify explain m c7 -k 3")
    assert {row[0] for row in found} == {"w21", "w22", "w23"}


@pytest.mark.bits
def test_a_model_is_the_same_after_it_is_loaded_and_saved(files):
    load_classifier("m").save("again")
    assert arrays_in("m") == arrays_in("again")


def test_a_signal_ends_training_without_a_model(files, monkeypatch, cli):
    train = label_tree._train_node

    def signalled(*arguments):
        signal.raise_signal(signal.SIGINT)
        return train(*arguments)

    monkeypatch.setattr(label_tree, "_train_node", signalled)
    monkeypatch.setattr(label_tree, "ordered_map", lambda f, items, threads: map(f, items))
    cli("classify train train.tsv --output n --objective tree --quiet", code=130)
    assert "nothing was saved" in cli.err and cli.err.count("\n") == 1
    assert {path.name for path in Path().iterdir()} == {"train.tsv", "test.tsv", "m"}


def test_trees_are_the_default_with_many_labels_only():
    def chosen(classes, **more):
        return resolved(ClassifyOptions(**more), classes, True).objective

    assert chosen(5001) == chosen(100, objective="tree") == "tree"
    assert chosen(5000) == chosen(5001, loss="hinge") == "gd"
    assert resolved(ClassifyOptions(), 10_000).objective == "dcme"
    with pytest.raises(UsageError, match=r"min_lr=5 must be at most lr=0\.5"):
        resolved(ClassifyOptions(objective="tree", min_lr=5), 10_000, multilabel=True)


@pytest.mark.parametrize("name, at, value", [
    ("labels_0", 0, 299), ("children_1", -1, 10**6), ("values_0", 0, 1e35), ("rows_2", 1, 10**9),
    ("children_0", 0, 0), ("starts_1", 1, -1), ("columns_2", 0, 65535),
])  # fmt: skip
def test_a_corrupt_file_is_an_error_of_one_line(files, cli, name, at, value):
    loaded = load_classifier("m")
    tree = loaded.weights.trees[int(name[-1])]
    arrays = {one: np.array(array) for one, array in tree.arrays.items()}
    arrays[name[:-2]][at] = value
    object.__setattr__(tree, "arrays", arrays)
    loaded.save("bad")
    assert "bad" in cli.error("classify test bad test.tsv")


@pytest.mark.parametrize("count", [1, 60])
def test_few_documents_and_empty_ones(cli, count):
    """There are no documents to calibrate on, or some; a document may have no feature."""
    Path("d.tsv").write_text("a\tone two\nb|a\ttwo three\nc\t...\n" * count)
    cli("classify train d.tsv --output m --objective tree")
    assert {len(row) for row in cli.rows("classify predict m d.tsv -k 9")} == {6}


def test_labels_whose_documents_are_all_left_out(cli):
    """Each label has one document, so that groups of labels have none to learn from."""
    random = np.random.default_rng(1)
    words = (" ".join(f"w{one}" for one in random.integers(0, 300, 12)) for _ in range(300))
    Path("d.tsv").write_text("".join(f"a{i}|b{i}\t{text}\n" for i, text in enumerate(words)))
    cli("classify train d.tsv --output m --objective tree --threads 1")
    assert cli.json("classify test m d.tsv")["precision_at_1"] > 0.5


@pytest.mark.bits
def test_weights_in_levels_are_near_and_stay_as_they_are():
    values = np.random.default_rng(0).normal(size=500).astype(np.float32) * 10
    found = decoded(*coded(values))
    assert (np.sign(found) == np.sign(values)).all()
    assert np.abs(np.log(np.abs(found / values))).max() < 0.06
    assert np.array_equal(decoded(*coded(found)), found)
    assert decoded(*coded(np.float32([-2, 2, -2]))).tolist() == [-2, 2, -2]


def test_probabilities_of_one_label_sum_to_one(cli):
    Path("d.tsv").write_text("".join(f"c{i % 3}\tw{i % 3} v{i % 7}\n" for i in range(300)))
    cli("classify train d.tsv --output m --objective tree")
    rows = cli.rows("classify predict m d.tsv -k 3")
    assert [sum(map(float, row[1::2])) for row in rows] == pytest.approx([1] * 300, abs=2e-6)


def test_a_label_is_where_its_heavy_documents_are():
    random = np.random.default_rng(0)
    rows, labels = random.normal(size=(40, 9)).astype(np.float32), np.arange(40, dtype=np.int32) % 5
    weights = random.uniform(0.1, 3, 40).astype(np.float32)

    def found(rows, weights=None):
        own = (csr_matrix(rows), np.arange(40), labels, 5, np.random.default_rng(1))
        return centroids(*own, weights)

    assert found(rows, weights) == pytest.approx(found(weights[:, None] * rows), abs=1e-5)
