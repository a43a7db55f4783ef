"""Classifiers on a cluster: the same bytes for any workers, and properties of each method."""

import contextlib
import hashlib
import json
import pickle
import random
import signal
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from dcme_w2v.classify import estimator, pipeline
from dcme_w2v.classify.fit import Labelled
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.model import Classifier, load_classifier
from dcme_w2v.classify.options import ClassifyOptions, DistributeOptions, FeatureOptions
from dcme_w2v.classify.trainer import Weights, core_documents
from dcme_w2v.classify.voting import VotingWeights
from dcme_w2v.cli.main import run
from dcme_w2v.cluster.distribute import Distributed, scale_scores
from dcme_w2v.errors import UsageError
from dcme_w2v.training.interrupts import Interrupted, ReceivedSignal
from dcme_w2v.training.progress import Quiet

SHORT = ("--quiet", "--threads", "1")
METHODS = {
    "mixture": ["--solver", "lbfgs", "--distribute", "mixture"],
    "mixture of sgd": ["--objective", "gd"],
    "vote": ["--objective", "ns", "--distribute", "vote"],
    "gradient": ["--solver", "lbfgs", "--distribute", "gradient"],
    "iterate": ["--objective", "dcme", "--distribute", "iterate", "--epochs", "3"],
}


@pytest.fixture(scope="module")
def docs(tmp_path_factory):
    chance = random.Random(3)
    lines = []
    for _ in range(300):
        label = chance.choice("abcd")
        own = [f"{label}{chance.randrange(20)}" for _ in range(2)]
        lines.append(f"{label}\t{' '.join(own + [f'w{chance.randrange(40)}' for _ in range(8)])}")
    path = tmp_path_factory.mktemp("docs") / "d.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def train(docs, output, *flags):
    assert run(["classify", "train", str(docs), "--output", str(output), *SHORT, *flags]) == 0
    return Classifier.load(output)


def digest(folder):
    files = sorted(one for one in Path(folder).iterdir() if one.suffix == ".npy")
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


@pytest.mark.parametrize("method", METHODS)
def test_one_shard_equals_one_machine(method, docs, tmp_path):
    if method == "iterate":  # dcme's clusters start again in every round; gd has none
        flags = ["--objective", "gd", "--epochs", "3"]
        on_cluster = [*flags, "--distribute", "iterate"]
    else:
        flags = [one for one in METHODS[method] if one not in ("--distribute", method)]
        on_cluster = METHODS[method]
    one = train(docs, tmp_path / "one", *flags)
    other = train(docs, tmp_path / "o", *on_cluster, "--cluster", "local:0", "--shards", "1")
    rows = one.rows([b"a1 w3", b"b2 c3 w1"])
    expected, found = (next(m.log_probabilities(rows, 1)) for m in (one, other))
    if method == "vote":
        assert found == pytest.approx(expected, abs=1e-6)
    else:
        assert np.array_equal(found, expected)


def test_workers_give_the_same_bytes_as_one_process(docs, tmp_path):
    pytest.importorskip("distributed")
    for method in ("gradient", "iterate"):
        flags = METHODS[method]
        alone, workers = tmp_path / f"{method} 0", tmp_path / f"{method} 2"
        train(docs, alone, *flags, "--cluster", "local:0", "--shards", "3")
        found = train(docs, workers, *flags, "--cluster", "local:2", "--shards", "3")
        assert digest(alone) == digest(workers), method
        assert found.record["cluster"]["bytes_sent"] > 0
        assert found.record["cluster"]["shards"] == 3


def test_gradient_equals_full_training(docs, tmp_path):
    """Sums are of double precision: each iteration has the loss of one machine."""
    one = train(docs, tmp_path / "one", "--solver", "lbfgs")
    for shards in ("2", "7"):
        flags = [*METHODS["gradient"], "--cluster", "local:0", "--shards", shards]
        other = train(docs, tmp_path / shards, *flags)
        expected, losses = ([e["loss"] for e in m.record["epochs"]] for m in (one, other))
        assert losses == pytest.approx(expected, rel=1e-6)
        assert np.abs(one.weights.get() - other.weights.get()).max() < 1e-3


def test_the_score_factor_maximizes_held_out_likelihood(docs, tmp_path):
    flags = ("--solver", "lbfgs", "--cluster", "local:0", "--shards", "4", "--holdout", "0.3")
    model = train(docs, tmp_path / "m", *flags)
    factor = model.record["cluster"]["score_factor"]
    assert 0.25 <= factor <= 8
    weights = Weights(3, 2, 0.1)
    weights.table[:3, :2] = [[0.1, 0], [0, 0.1], [0.05, 0.02]]
    matrix = csr_matrix(np.eye(3, dtype=np.float32))
    holdout = Labelled(matrix, [[0], [1], [-1]])
    before = weights.scores(core_documents(matrix), 0, 3, 1)
    found = scale_scores(weights, holdout)
    assert found == pytest.approx(8, rel=0.01)  # both labels are right: the maximum factor
    assert weights.scores(core_documents(matrix), 0, 3, 1) == pytest.approx(
        found * before, rel=1e-5
    )


# ---- votes ----


def test_a_vote_is_the_mean_of_probabilities(docs, tmp_path, capsysbinary):
    folder = tmp_path / "vote"
    flags = [*METHODS["vote"], "--cluster", "local:0", "--shards", "3"]
    model = train(docs, folder, *flags)
    loaded = load_classifier(folder)
    assert isinstance(loaded.weights, VotingWeights) and len(loaded.weights.models) == 3
    rows = model.rows([b"a1 w3", b"b2 c3 w1"])
    documents = core_documents(rows)
    each = [np.exp(log_softmax(one.scores(documents, 0, 2, 1))) for one in model.weights.models]
    found = next(loaded.log_probabilities(rows, 1))
    assert np.exp(found) == pytest.approx(np.mean(each, axis=0), abs=1e-9)
    copied = pickle.loads(pickle.dumps(loaded.weights))
    assert np.array_equal(
        copied.scores(documents, 0, 2, 1), loaded.weights.scores(documents, 0, 2, 1)
    )
    capsysbinary.readouterr()
    assert run(["classify", "test", str(folder), str(docs), "--json"]) == 0
    assert json.loads(capsysbinary.readouterr().out)["accuracy"] > 0.8
    assert run(["classify", "explain", str(folder), "a", "-k", "3"]) == 0
    assert capsysbinary.readouterr().out.startswith(b"a")
    assert run(["classify", "predict", str(folder), str(docs)]) == 0
    assert capsysbinary.readouterr().out.count(b"\n") == 300


# ---- options ----


def test_the_estimator_below_clusters_does_not_ignore_one():
    """As in a model that an earlier version pickled."""
    with pytest.raises(UsageError, match="import MaxentClassifier from dcme_w2v"):
        estimator.MaxentClassifier(cluster="local:0").fit([[1.0], [0.0]], [0, 1])


def test_an_interrupted_run_keeps_the_current_model(docs, tmp_path):
    """After two rounds: a run that is stopped before the first has no model to keep."""
    folder, received = tmp_path / "m", ReceivedSignal()

    class Stopping(Quiet):
        def epoch(self, record):
            if record["epoch"] == 2:
                received.number = signal.SIGTERM

    def run_it(reporter):
        job = pipeline.TrainJob([str(docs)], str(folder))
        options = ClassifyOptions(objective="gd", threads=1)
        where = Distributed(DistributeOptions("local:0", 2, "iterate"))
        signals = contextlib.nullcontext(received)
        pipeline.train(job, FeatureOptions(), options, reporter, signals, where)

    with pytest.raises(Interrupted, match=r"stopped by SIGTERM in epoch 3: the model so far is in"):
        run_it(Stopping())
    assert len(load_classifier(f"{folder}.partial").record["epochs"]) == 2
    assert not folder.exists()
    with pytest.raises(Interrupted, match="nothing was saved"):
        run_it(Quiet())
