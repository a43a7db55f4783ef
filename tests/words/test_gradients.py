"""The references of test_objectives are gradients, and so are the classifier's steps in the core.

Directions are compared with central differences of the function that they ascend, in double
precision. The core computes in float: a step at rate 1 gives its direction to six digits.
"""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import MODELS, options_of
from reference import NOISE, Reference, Stream, rates_of
from reference_objectives import OBJECTIVES, Alias, Paper
from reference_subwords import SubwordReference
from scipy.sparse import csr_matrix
from scipy.special import entr, log_softmax, logsumexp, softmax

from dcme_w2v._core import models as core

ITEMS, DIM = 11, 3
COUNTS = np.array([40, 31, 22, 15, 11, 9, 5, 4, 3, 2, 1])
TINY = 1e-8  # of a rate


def slope(function, x, by=1e-6):
    """Central differences of a function by an array, which is changed in place."""
    found = np.empty_like(x)
    for place in np.ndindex(*x.shape):
        kept = x[place]
        x[place] = kept + by
        above = function()
        x[place] = kept - by
        below = function()
        x[place] = kept
        found[place] = (above - below) / (2 * by)
    return found


def close(found, wanted, tolerance=1e-6):
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


# ---- words: the references ----


def settings(**changes):
    given = {"dim": DIM, "negative": 6, "prior": 0.5, "clusters": 3, "top_items": 3, "beta": 0.01}
    given["rates"] = "equal"
    return dataclasses.replace(options_of({}), **{**given, **changes})


def of_words(kind, **changes):
    """An objective of `reference_objectives` over random rows, and a context."""
    random = np.random.default_rng(3)
    output, h = random.uniform(-1, 1, (ITEMS, DIM)), random.uniform(-1, 1, DIM)
    return OBJECTIVES[kind](COUNTS, settings(**changes), output), output, h


def check_step(step, contexts, output):
    """Compare the directions of contexts and output rows with the gradient of minus the loss."""

    def ascended():
        return -np.sum(step(0)[1])

    close(step(0)[0], slope(ascended, contexts))
    before, wanted = output.copy(), slope(ascended, output)
    step(TINY)
    close((output - before) / TINY, wanted)


@pytest.mark.parametrize("target", [0, 4, 10])
@pytest.mark.parametrize("virtual", [1, 2.5])
@pytest.mark.parametrize("kind", ["ns", "nce", "hs"])
def test_a_step_ascends_minus_its_loss(kind, virtual, target):
    made, output, h = of_words(kind, objective=kind, virtual_samples=virtual)

    def step(rate):
        made.begin(Stream(17))
        return made.step(target, h, rate)

    check_step(step, h, output)


@pytest.mark.parametrize("virtual", [1, 2.5])
@pytest.mark.parametrize("objective", ["ns", "nce"])
def test_a_block_ascends_minus_its_losses(objective, virtual):
    made, output, _ = of_words("block", objective=objective, virtual_samples=virtual, negative=4)
    targets = [0, 3, 0, 10, 1]
    contexts = np.random.default_rng(4).uniform(-1, 1, (len(targets), DIM))

    def step(rate):
        made.begin(Stream(17))
        return made.step_block(targets, contexts, rate)

    check_step(step, contexts, output)


@pytest.mark.parametrize("top_items", [0, 3, ITEMS])
@pytest.mark.parametrize("target", [0, 10])
def test_the_papers_step_ascends_the_dual_bound(top_items, target):
    """(8) at the center of the context's cluster; with beta N below 1 all items move at once."""
    made, output, h = of_words("dcme", top_items=top_items)
    assert isinstance(made, Paper)
    alpha = made.alpha[made.nearest(h)[0]].copy()

    def bound():
        scores = output @ h + made.prior
        return scores[target] - alpha @ scores - entr(alpha).sum()

    wanted, of_rows, value = slope(bound, h), slope(bound, output), bound()
    before = output.copy()
    gradient, loss = made.step(target, h, 0.7)
    close(gradient, wanted)
    close(loss, -value)
    close((output - before) / 0.7, of_rows)


CORPUS = np.array([0, 1, 2, 1, 3, 4, 8, 5, 0, 7, 2], dtype=np.uint32)
CORPUS[[6, 10]] |= 1 << 31


@pytest.mark.parametrize("model", MODELS)
def test_rows_ascend_the_losses_of_a_text(model):
    """Of the exact gradient by a word's rate, and by four times the learning rate for neighbors."""
    order = model.get("model", "cbow") == "cbow"
    changes = {**model, "window": 2, "gradient": "exact", "sample": 0.0,
               "lr": TINY, "min_lr": TINY, "epochs": 1, "word_order": order,
               "rates": "count" if order else "equal"}  # fmt: skip
    rates, four = rates_of(COUNTS, settings(**changes)), np.full(ITEMS, 4)
    random = np.random.default_rng(5)
    tables = [random.uniform(-1, 1, (ITEMS, DIM)) for _ in range(4)]

    def trained():
        run = Reference(CORPUS, COUNTS, settings(**changes), OBJECTIVES["ns"])
        run.loss_every = 1
        run.input, run.left, run.right = (tables[i].copy() for i in (0, 2, 3))
        run.objective.output[:] = run.output[:] = tables[1]
        run.epoch(0)
        return run

    run = trained()
    moved = [run.input, run.objective.output, run.left, run.right]
    for table, now, times in zip(tables, moved, (np.sqrt(rates), rates, four, four), strict=True):
        wanted = slope(lambda: -np.sum(trained().losses), table)
        close((now - table) / TINY, times[:, None] * wanted, 1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_all_rows_of_a_word_get_the_direction_of_their_mean(model):
    """Undivided, as in fastText: as many times the gradient as the word has rows."""
    sizes = np.arange(ITEMS) % 3
    starts = np.cumsum([0, *sizes])
    buckets = int(starts[-1])
    ngrams = SimpleNamespace(
        starts=starts, numbers=np.arange(buckets), options=SimpleNamespace(buckets=buckets)
    )
    changes = {**model, "window": 2, "gradient": "exact", "sample": 0.0, "lr": TINY,
               "min_lr": TINY, "epochs": 1}  # fmt: skip
    random = np.random.default_rng(5)
    table = random.uniform(-1, 1, (ITEMS + buckets, DIM))
    output = random.uniform(-1, 1, (ITEMS, DIM))

    def trained():
        run = SubwordReference(CORPUS, COUNTS, settings(**changes), OBJECTIVES["ns"], ngrams)
        run.loss_every, run.input = 1, table.copy()
        run.objective.output[:] = output
        run.epoch(0)
        return run

    times = 1 + np.concatenate([sizes, np.repeat(sizes, sizes)])
    wanted = slope(lambda: -np.sum(trained().losses), table)
    close((trained().input - table) / TINY, times[:, None] * wanted, 1e-5)


# ---- classes: the core ----

DOCUMENTS, FEATURES, CLASSES, BIAS = 6, 5, 37, 0.5
LABELS = np.array([0, 3, 3, 36, 20, 9], dtype=np.int32)
WEIGHTS = np.array([1, 2, 0.5, 1, 1.5, 1], dtype=np.float32)
MARGIN = 4
GROUPS = [range(0, 16), range(16, 32), range(32, CLASSES)]


class Problem:
    """Documents of some features, and weights of a classifier, all in the precision of floats."""

    def __init__(self, which=None, scale=1.0):
        which = range(DOCUMENTS) if which is None else which
        random = np.random.default_rng(8)
        dense = random.uniform(0.2, 1, (DOCUMENTS, FEATURES)).astype(np.float32)
        dense *= random.random((DOCUMENTS, FEATURES)) < 0.7
        self.x, self.labels, self.weight = (rows[list(which)] for rows in (dense, LABELS, WEIGHTS))
        self.table = np.zeros((FEATURES + 1, 48), dtype=np.float32)
        self.table[:, :CLASSES] = scale * random.uniform(-1, 1, (FEATURES + 1, CLASSES))
        self.W = self.table[:, :CLASSES].astype(float)
        self.counts = np.random.default_rng(2).integers(1, 9, CLASSES)
        self.documents = core.SparseRows(csr_matrix(self.x))
        self.linear = core.Linear(self.table, CLASSES, BIAS, "scalar")

    def instances(self, sets=None):
        numbers, count = np.arange(len(self.x)), len(self.x)
        labels = self.labels if sets is None else np.concatenate(sets).astype(np.int32)
        ends = None if sets is None else np.cumsum([0, *map(len, sets)]).astype(np.int64)
        return core.Instances(numbers, labels, count, CLASSES, self.weight, ends)

    def scores(self):
        return np.column_stack([self.x, np.full(len(self.x), BIAS)]).astype(float) @ self.W

    def learner(self, rate=1.0, sets=None, **options):
        defaults = {"objective": 0, "loss": 0, "negative": 3, "noise_power": 0.75,
                    "class_clusters": 3, "exact_clusters": 1, "draws": 0, "center_interval": 1e9,
                    "clusters": 3, "top_items": 0, "beta": 1e-9, "dcme_update": 0, "solver": 0,
                    "batch": DOCUMENTS, "epochs": 1, "lr": rate, "min_lr": rate, "l2": 0.0,
                    "dual": 0, "threads": 1, "seed": 1}  # fmt: skip
        return core.Learner({**defaults, **options}, self.documents, self.instances(sets),
                            self.counts, self.linear)  # fmt: skip

    def direction(self, rate=1.0, run=None, epoch=0, **options):
        """What a step over all documents at once adds to the weights, for a rate of 1."""
        run = run or self.learner(rate, **options)
        before = self.table.astype(float)
        assert run.epoch(epoch)
        assert not self.table[:, CLASSES:].any()
        self.loss = run.progress()["loss"]
        return ((self.table - before) / rate)[:, :CLASSES]

    def disturbed(self):
        """The disturbed unigram."""
        stream = Stream(1, 0, 0, 5)
        alpha = self.counts * np.array([0.5 + stream.unit() for _ in range(CLASSES)])
        return alpha / alpha.sum()

    def centers(self):
        """The unigram of each group."""
        return [self.counts[g] / self.counts[g].sum() for g in GROUPS]

    def bounded(self, alpha, groups=GROUPS, exact=(), document=0):
        """The log-likelihood of a document with the bounds of the groups that are not exact."""
        scores, label = self.scores()[document], self.labels[document]
        parts = [
            scores[g] if k in exact else [a @ scores[g] + entr(a).sum()]
            for k, (g, a) in enumerate(zip(groups, alpha, strict=True))
        ]
        return self.weight[document] * (scores[label] - logsumexp(np.concatenate(parts)))

    def likelihood(self):
        scores = self.scores()
        return self.weight @ log_softmax(scores, axis=1)[np.arange(len(scores)), self.labels]


def check_direction(found, problem, function, tolerance=2e-5):
    close(found, slope(function, problem.W), tolerance)


def test_softmax_ascends_the_likelihood():
    problem = Problem()
    wanted = problem.likelihood()
    check_direction(problem.direction(), problem, problem.likelihood)
    close(problem.loss, -wanted)


@pytest.mark.parametrize("sets", [None, [[0, 5], [3], [2, 3, 36], [36], [0, 20, 21], [9]]])
def test_hinge_descends_half_the_squared_hinge(sets):
    problem = Problem(scale=3)
    signs = np.full((DOCUMENTS, CLASSES), -1.0)
    for row, labels in enumerate(sets or LABELS[:, None]):
        signs[row, labels] = 1

    def ascended():
        missing = np.maximum(0, MARGIN - signs * problem.scores())
        return -problem.weight @ (missing**2).sum(axis=1) / 2

    wanted = -ascended() / MARGIN**2
    check_direction(problem.direction(sets=sets, loss=1), problem, ascended, 1e-4)
    close(problem.loss, wanted)


@pytest.mark.parametrize("objective", [2, 3])
def test_class_noise_ascends_minus_its_loss(objective):
    problem = Problem([1])
    noise = problem.counts**0.75
    offset = np.log(3 * noise / noise.sum()) + np.log(CLASSES) if objective == 2 else 0 * noise
    alias, stream = Alias(noise), Stream(1, 0, 0, NOISE)
    drawn = [alias.draw(stream.next()) for _ in range(3)]

    def ascended():
        (scores,) = problem.scores() - offset
        losses = np.logaddexp(0, -scores[problem.labels[0]]) + np.logaddexp(0, scores[drawn]).sum()
        return -problem.weight[0] * losses

    wanted = ascended()
    check_direction(problem.direction(objective=objective), problem, ascended)
    close(problem.loss, -wanted)


@pytest.mark.parametrize("document", range(DOCUMENTS))
@pytest.mark.parametrize(("head", "draws"), [(0, 0), (1, 0), (9, 0), (0, 9)])
def test_dcme_of_classes_ascends_its_bound(document, head, draws):
    """Clusters of 16 classes: scored ones are exact, others have the bound of their center."""
    problem = Problem([document])
    label, alpha, (scores,) = problem.labels[0], problem.centers(), problem.scores()
    bounds = [a @ scores[g] + entr(a).sum() for a, g in zip(alpha, GROUPS, strict=True)]
    order = np.argsort(np.negative(bounds), kind="stable").tolist()
    order.remove(label // 16)
    exact = {label // 16, *order[: 9 if draws else head]}

    def ascended():
        return problem.bounded(alpha, exact=exact)

    wanted = ascended()
    found = problem.direction(
        rate=0.25, objective=1, exact_clusters=head, draws=draws, center_interval=1e-9
    )
    check_direction(found, problem, ascended, 5e-5)
    close(problem.loss, -wanted)


@pytest.mark.parametrize("document", range(DOCUMENTS))
def test_dcme_of_classes_draws_every_other_cluster_equally_often(document):
    """One of the two other clusters is drawn, and the gap of its bound is added twice."""
    problem = Problem([document])
    (label,), (scores,) = problem.labels, problem.scores()
    sums = np.array([np.exp(scores[g]).sum() for g in GROUPS])
    centers = zip(problem.centers(), GROUPS, strict=True)
    bounds = np.exp([a @ scores[g] + entr(a).sum() for a, g in centers])
    own = label // 16
    others = np.delete(2 * (sums - bounds), own) + np.delete(bounds, own).sum()
    wanted = problem.weight[0] * (np.log(sums[own] + others) - scores[label])
    drawn = np.zeros(2)
    for seed in range(200):
        problem = Problem([document])
        problem.direction(rate=0.25, objective=1, exact_clusters=0, draws=1, seed=seed)
        drawn[which := np.argmin(abs(wanted - problem.loss))] += 1
        close(problem.loss, wanted[which])
    assert drawn.min() > 70


def test_a_center_of_classes_moves_to_the_mean_of_what_it_owes():
    """After the first document the first cluster's center is the softmax of its classes there."""
    problem, rate = Problem([3]), 0.25
    run = problem.learner(rate, objective=1, exact_clusters=0, center_interval=1e-9, epochs=2)
    assert run.epoch(0)
    problem.W[:] = problem.table[:, :CLASSES]
    alpha = [softmax(problem.scores()[0, :16]), *problem.centers()[1:]]
    found = problem.direction(rate, run, 1)
    check_direction(found, problem, lambda: problem.bounded(alpha, exact={2}), 5e-5)


@pytest.mark.parametrize("document", range(DOCUMENTS))
@pytest.mark.parametrize("top_items", [0, 4])
def test_algorithm_1_of_classes_ascends_the_dual_bound(document, top_items):
    """With one cluster, whose center is the disturbed unigram."""
    problem = Problem([document])
    alpha = problem.disturbed()

    def ascended():
        return problem.bounded([alpha], [slice(None)])

    wanted = ascended()
    found = problem.direction(objective=1, dcme_update=1, clusters=1, top_items=top_items)
    check_direction(found, problem, ascended)
    close(problem.loss, -wanted)


def shuffled(count):
    """The order of the documents in the first epoch."""
    stream, order = Stream(1, 0, 0, 6), []
    for i in range(count):
        j = stream.next() % (i + 1)
        order.append(order[j] if j < i else i)
        order[j] = i
    return order


def test_documents_of_a_batch_see_the_steps_before_them():
    """Of DCME: what clusters owe is in the scores and the bounds, though not yet in the weights."""
    problem, rate = Problem([0, 3]), 0.25
    alpha, before = problem.centers(), problem.W.copy()
    for one in shuffled(2):
        own = {problem.labels[one] // 16}
        step = slope(lambda at=(alpha, GROUPS, own, one): problem.bounded(*at), problem.W)
        problem.W += rate * step
    wanted = (problem.W - before) / rate
    close(problem.direction(rate, objective=1, exact_clusters=0), wanted, 5e-5)


def test_the_bound_of_algorithm_1_follows_the_steps_online():
    """The loss of one document in 16 is sampled: of the first, and of one after many steps."""
    problem, rate = Problem([*range(DOCUMENTS)] * 3), 0.1
    alpha = problem.disturbed()
    top, losses = np.argsort(-alpha, kind="stable")[:4], []
    rows = np.column_stack([problem.x, np.full(len(problem.x), BIAS)]).astype(float)
    for document in shuffled(len(rows)):
        label, weight, scores = problem.labels[document], problem.weight[document], problem.scores()
        bound = alpha @ scores[document] + entr(alpha).sum()
        losses.append(weight * (bound - scores[document, label]))
        problem.W[:, label] += rate * weight * rows[document]
        problem.W[:, top] -= rate * weight * np.outer(rows[document], alpha[top])
    run = problem.learner(
        rate, objective=1, dcme_update=1, clusters=1, top_items=4, beta=1e9, batch=18
    )
    problem.direction(rate, run)
    close(problem.loss, losses[0] + losses[16], 1e-5)


def test_the_center_of_algorithm_1_is_the_softmax_at_the_mean():
    problem = Problem([1])
    run = problem.learner(objective=1, dcme_update=1, clusters=1, epochs=2)
    assert run.epoch(0)
    problem.W[:] = problem.table[:, :CLASSES]
    alpha, found = [softmax(problem.scores()[0])], problem.direction(1, run, 1)
    check_direction(found, problem, lambda: problem.bounded(alpha, [slice(None)]), 5e-5)


def test_decay_is_an_implicit_step():
    """(1 + rate l2 sum of weights) W is what the weights were, but for the biases."""
    problem, plain = Problem(), Problem()
    before = problem.W.copy()
    shrunk, moved = before + problem.direction(l2=0.5), before + plain.direction()
    close(shrunk[-1], moved[-1])
    close(shrunk[:-1] * (1 + 0.5 * WEIGHTS.sum()), moved[:-1])


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("kind", ["labels", "targets", "latent"])
def test_the_exact_gradient(kind, threads):
    problem, random = Problem(), np.random.default_rng(6)
    instances = problem.instances()
    columns = core.Columns(problem.documents, instances)
    rows = np.zeros((CLASSES, 48), dtype=np.float32)
    rows[:, :CLASSES] = random.random((CLASSES, CLASSES)) + 1e-3
    rows[:, :CLASSES] = np.log(rows[:, :CLASSES]) if kind == "latent" else rows[:, :CLASSES] / 19
    given = rows[LABELS, :CLASSES].astype(float)

    def loss():
        log_p = log_softmax(problem.scores(), axis=1)
        if kind == "labels":
            return -problem.likelihood()
        own = logsumexp(log_p + given, axis=1) if kind == "latent" else (given * log_p).sum(axis=1)
        return -problem.weight @ own

    found, posterior = np.empty((FEATURES + 1, CLASSES)), None
    latent = kind == "latent"
    if latent:
        posterior = np.zeros((DOCUMENTS, 48), dtype=np.float32)
    arguments, targets = (problem.documents, instances, columns), None if kind == "labels" else rows
    value = problem.linear.gradient(*arguments, found, threads, targets, posterior, latent)
    close(problem.linear.gradient(*arguments, None, threads, targets, None, latent), value)
    close(value, loss())
    check_direction(found, problem, loss)
    if posterior is not None:
        wanted = np.exp(log_softmax(log_softmax(problem.scores(), axis=1) + given, axis=1))
        close(posterior[:, :CLASSES], wanted)
