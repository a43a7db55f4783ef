"""Classifiers on a cluster: the same bytes for any workers, and properties of each method."""

import contextlib
import pickle
import random
import signal
from pathlib import Path

import numpy as np
import pytest
from helpers import arrays_in, records
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix

from dcme_w2v._core.models import SparseRows
from dcme_w2v.classify import train
from dcme_w2v.classify.fit import Job, LbfgsTask, Task
from dcme_w2v.classify.labeled import Labeled
from dcme_w2v.classify.metrics import log_softmax
from dcme_w2v.classify.model import load_classifier
from dcme_w2v.classify.options import ClassifyOptions, DistributeOptions, FeatureOptions, resolved
from dcme_w2v.classify.trainer import Weights
from dcme_w2v.classify.weight_files import Votes
from dcme_w2v.cluster.distribute import Distributed, shards_of
from dcme_w2v.errors import Interrupted
from dcme_w2v.platform import ReceivedSignal
from dcme_w2v.training.progress import Reporter

SETTING = "--ngrams 1 --subwords none --l2 1e-5"  # which one machine would choose by folds
METHODS = {
    "mixture": "--solver lbfgs",
    "mixture of sgd": "--objective gd",
    "vote": "--objective ns",
    "gradient": "--solver lbfgs",
    "iterate": "--objective dcme --epochs 3",
}


def flags_of(method, shards, workers=0):
    """Return the flags of a method on a cluster."""
    cluster = f"--cluster local:{workers} --shards {shards}"
    distribute = "" if " " in method else f"--distribute {method}"
    return f"{METHODS[method]} {distribute} {cluster}"


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


@pytest.fixture
def learn(docs, cli):
    def train(output, flags):
        cli(f"classify train {docs} --output {output} --quiet --threads 1 {SETTING} {flags}")
        return load_classifier(output)

    return train


@pytest.mark.bits
@pytest.mark.parametrize("method", METHODS)
def test_one_shard_equals_one_machine(method, learn):
    flags, on_cluster = METHODS[method], flags_of(method, 1)
    if method == "iterate":  # dcme's clusters start again in every round; gd has none
        flags, on_cluster = (one.replace("dcme", "gd") for one in (flags, on_cluster))
    one, other = learn("one", flags), learn("o", on_cluster)
    rows = one.rows([b"a1 w3", b"b2 c3 w1"])
    expected, found = (next(m.log_probabilities(rows, 1)) for m in (one, other))
    if method == "vote":
        assert found == pytest.approx(expected, abs=1e-6)
    else:
        assert np.array_equal(found, expected)


@pytest.mark.long
@pytest.mark.bits
@pytest.mark.parametrize("method", ["gradient", "iterate"])
def test_workers_give_the_same_bytes_as_one_process(method, learn):
    pytest.importorskip("distributed")
    learn("alone", flags_of(method, 3))
    found = learn("workers", flags_of(method, 3, 2)).record["cluster"]
    assert arrays_in("alone") == arrays_in("workers")
    assert found["bytes_sent"] > 0 and found["shards"] == 3


@pytest.mark.long
def test_the_bytes_on_the_network_are_those_of_the_method(docs, cli):
    """Each iteration of `gradient` sends as much to and from each worker as `mixture` in all."""
    pytest.importorskip("distributed")
    sent = {}
    for method in ("mixture", "gradient"):
        flags = f"{SETTING} {flags_of(method, 2, 2)} --epochs 30 --log-json log"
        cli(f"classify train {docs} --output m --threads 1 {flags}")
        model = load_classifier("m")
        found, epochs = model.record["cluster"], len(model.record["epochs"])
        assert found["document_bytes"] > 4 * 300 * 10
        sent[method] = found["bytes_sent"] - found["document_bytes"]
        weights = 4 * model.features * len(model.classes)
        rounds = 2 * 2 * epochs if method == "gradient" else 2
        assert 0.9 * rounds * weights < sent[method] < 3 * rounds * weights + 20_000
        [line] = [one for one in records("log") if "bytes_sent" in one]
        assert line["bytes_sent"] == found["bytes_sent"] and line["message"] in cli.err
        assert f"{found['bytes_sent'] / 1e6:,.2f} MB sent" in line["message"]
    assert sent["gradient"] > 10 * sent["mixture"]


@pytest.mark.parametrize("shards", [2, 7])
def test_gradient_equals_full_training(learn, shards):
    """Sums are of double precision: each iteration has the loss of one machine."""
    one, other = learn("one", METHODS["gradient"]), learn("m", flags_of("gradient", shards))
    expected, losses = ([e["loss"] for e in m.record["epochs"]] for m in (one, other))
    assert losses == pytest.approx(expected, rel=1e-6)
    assert np.abs(one.weights.get() - other.weights.get()).max() < 1e-3


def test_a_mixture_of_one_epoch_is_one_iteration(learn):
    line = "--objective gd --epochs 1 --cluster local:0 --shards 4 --distribute"
    one, other = (learn(name, f"{line} {name}") for name in ("mixture", "iterate"))
    assert_array_equal(one.weights.get(), other.weights.get())


def test_the_score_factor_maximizes_held_out_likelihood(learn):
    record = learn("m", f"{flags_of('mixture', 4)} --holdout 0.3").record
    assert 0.25 <= record["cluster"]["score_factor"] <= 8


@pytest.mark.parametrize("method, light", [("gradient", 1), ("mixture", 1e-4)])
def test_documents_on_workers_have_their_weights(method, light):
    """The second shard hardly counts, so that the mixture is the model of the first one."""
    chance = np.random.default_rng(0)
    given = resolved(ClassifyOptions(solver="lbfgs", l2=0.01, tolerance=1e-9, threads=1), 3)
    is_first = shards_of(120, 2, given.seed) == 0
    weights = (chance.integers(1, 5, 120) * np.where(is_first, 1, light)).astype(np.float32)
    rows = csr_matrix(chance.normal(size=(120, 6)).astype(np.float32))
    data = Labeled(rows, chance.integers(0, 3, (120, 1)).tolist(), weights)
    remote = Distributed(DistributeOptions("local:0", 2, method))
    alone = data if light == 1 else data.some(np.flatnonzero(is_first))
    one, other = LbfgsTask(alone, 3, given), Task(data, 3, given, job=Job(remote=remote))
    for task in (one, other):
        task.train()
    assert other.weights.get() == pytest.approx(one.weights.get(), abs=1e-3)
    assert other.records[-1]["loss"] == pytest.approx(one.records[-1]["loss"], rel=1e-3)


def test_the_score_factor_has_the_weights_of_documents():
    """Nine tenths of the weight have the label 0, whose score is 1, so that p = sigma(factor)."""
    weights, remote = Weights(1, 2, 1.0), Distributed(DistributeOptions("local:0"))
    weights.set(np.float32([[1, 0], [0, 0]]))
    remote.record = {"distribute": "mixture", "shards": 2}
    rows, shares = csr_matrix(np.ones((2000, 1), np.float32)), np.float32([9, 1] * 1000)
    held = Labeled(rows, [[0], [1]] * 1000, shares)
    assert remote.finish(weights, held)["score_factor"] == pytest.approx(np.log(9), rel=1e-2)


# ---- votes ----


@pytest.mark.bits
def test_a_vote_is_the_mean_of_probabilities(docs, learn, cli):
    loaded = learn("vote", f"{flags_of('vote', 3)} --lead 0")
    assert isinstance(loaded.weights, Votes) and len(loaded.weights.models) == 3
    rows = loaded.rows([b"a1 w3", b"b2 c3 w1"])
    documents = SparseRows(rows)
    each = [np.exp(log_softmax(one.scores(documents, 0, 2, 1))) for one in loaded.weights.models]
    found = next(loaded.log_probabilities(rows, 1))
    assert np.exp(found) == pytest.approx(np.mean(each, axis=0), abs=1e-9)
    copied = pickle.loads(pickle.dumps(loaded.weights)).scores(documents, 0, 2, 1)
    assert np.array_equal(copied, loaded.weights.scores(documents, 0, 2, 1))
    assert cli.json(f"classify test vote {docs}")["accuracy"] > 0.8
    assert cli("classify explain vote a -k 3").startswith("a")


# ---- options ----


def test_an_interrupted_run_keeps_the_current_model(docs):
    """After two rounds: a run that is stopped before the first has no model to keep."""
    received = ReceivedSignal()

    class Stopping(Reporter):
        def epoch(self, record):
            if record["epoch"] == 2:
                received.number = signal.SIGTERM

    def run_it(reporter):
        job = train.TrainJob([str(docs)], "m")
        options = ClassifyOptions(objective="gd", threads=1)
        where = Distributed(DistributeOptions("local:0", 2, "iterate"))
        signals = contextlib.nullcontext(received)
        given = {"progress": reporter, "signals": signals, "remote": where}
        train.train(job, FeatureOptions(), options, **given)

    with pytest.raises(Interrupted, match=r"stopped by SIGTERM in epoch 3: the model so far is in"):
        run_it(Stopping())
    assert len(load_classifier("m.partial").record["epochs"]) == 2
    assert not Path("m").exists()
    with pytest.raises(Interrupted, match="nothing was saved"):
        run_it(Reporter())
