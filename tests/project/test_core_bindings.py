"""The bindings of the C core refuse arrays that do not fit together: none of them crashes."""

import numpy as np
import pytest
from helpers import options_of
from scipy.sparse import csr_matrix

from dcme_w2v._core import codec, models, text
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.trainer import core_values
from dcme_w2v.training.trainer import core_options
from dcme_w2v.words.options import TrainOptions

I64 = np.int64


def of_classes(documents=1, classes=2, labels=(0, 1), sets=None):
    """Return a model, two documents of one feature and their instances."""
    rows = models.SparseRows(csr_matrix(np.ones((2, 1), np.float32)))
    count = 1 if sets else len(labels)
    instances = models.Instances(
        np.full(count, documents - 1), np.array(labels, np.int32), documents, classes, None,
        None if sets is None else np.array(sets, dtype=I64),
    )  # fmt: skip
    return models.Linear(np.zeros((2, 16), np.float32), 2, 1.0), rows, instances


def learner(**given):
    """Open the training of a classifier."""
    linear, *data = of_classes(**given)
    options = core_values(resolved(ClassifyOptions(objective="gd", threads=1, epochs=1), 2))
    return models.Learner(options, *data, np.ones(2, I64), linear)


def loss(**given):
    linear, *data = of_classes(**given)
    return linear.gradient(*data, None, None, 1)


def trainer(width=16, output=16, dim=9, rows=5):
    """Open the training of vectors of five words."""
    tables = np.zeros((5, width), np.float32), np.zeros((rows, output), np.float32)
    options = core_options(options_of({}, dim=dim, window=1), TrainOptions)
    return models.Trainer(options, np.arange(5, dtype=np.uint32), np.ones(5, I64), *tables)


def added(offsets, counts=2):
    table = text.Table()
    table.add(np.full(4, 97, np.uint8), np.array(offsets, dtype=I64), np.ones(counts, I64))
    return table


def of_words(call, *arguments):
    return lambda: call(np.zeros(4, np.uint8), np.array([0, 2, 9], dtype=I64), *arguments)


BYTES, PLACES, IDS = np.full(4, 97, np.uint8), np.arange(3), np.array([9], np.uint32)
KINDS, ROWS = np.zeros((codec.FAULT_KINDS, 3), I64), np.zeros((1, 2), np.float32)
ENTRIES = np.ones(2, np.float32), np.arange(2, dtype=np.int32), np.array([0, 2])  # one row
FAULTS = {
    "an instance of a document that is not there": lambda: learner(documents=10**12),
    "a label that the model has not": lambda: learner(classes=10**8, labels=(0, 10**7)),
    "equal labels in a set": lambda: learner(labels=[1] * 1000, sets=[0, 1000]),
    "descending labels in a set": lambda: learner(labels=[1, 0], sets=[0, 2]),
    "tables narrower than the vectors": lambda: trainer(dim=17),
    "tables of two widths": lambda: trainer(output=32),
    "a table without a row for each word": lambda: trainer(rows=4),
    "offsets beyond the text": lambda: added([0, 2, 10**12]),
    "negative offsets": lambda: added([-9, 2, 4]),
    "descending offsets": lambda: added([0, 3, 2]),
    "fewer offsets than words": lambda: added([0, 2], counts=5),
    "counts of words beyond the text": of_words(text.format_counts, np.ones(2, I64)),
    "n-grams of words beyond the text": of_words(text.ngrams_of, 1, 2, 9),
    "faults of words beyond the text": of_words(codec.check_words, KINDS),
    "duplicates of words beyond the text": of_words(codec.find_duplicates, KINDS),
    "too few kinds of faults": lambda: codec.check_words(BYTES, PLACES, KINDS[1:]),
    "rows of words that are not there": lambda: codec.write_rows(True, ROWS, BYTES, PLACES, 2),
    "rows whose words are not there": lambda: codec.write_rows(True, ROWS, BYTES[:1], PLACES, 1),
    "counts in columns without a factor": lambda: codec.weight_counts(
        *ENTRIES, True, ROWS[0, :1], None
    ),
    "counts in columns without a block": lambda: codec.weight_counts(
        *ENTRIES, True, ROWS[0], BYTES[:1]
    ),
    "products of rows that are not there": lambda: codec.add_products(
        ENTRIES[1], ENTRIES[0], ENTRIES[2], np.array([1]), np.zeros((2, 2), np.float32)
    ),
    "products of columns that are not there": lambda: codec.add_products(
        ENTRIES[1], ENTRIES[0], ENTRIES[2], np.array([0]), np.zeros((1, 1), np.float32)
    ),
    "copies of rows that are not there": lambda: codec.copy_rows(
        ENTRIES[0], ENTRIES[2], np.array([-1])
    ),
    "copies of entries that are not there": lambda: codec.copy_rows(
        ENTRIES[0][:1], ENTRIES[2], np.array([0])
    ),
    "copies of rows that do not ascend": lambda: codec.copy_rows(
        ENTRIES[0], np.array([1, 0]), np.array([0])
    ),
    "a transposed matrix without room": lambda: codec.transpose(
        ENTRIES[1], ENTRIES[0], ENTRIES[2], np.array([0]), 2, np.zeros(1, np.int32), ROWS[0]
    ),
    "ids without a final number": lambda: text.Renumbering().add(
        IDS, IDS, False, np.append(IDS, IDS)
    ),
    "ids without a role": lambda: text.Pairs(0).count(IDS, BYTES),
    "ids without a word": lambda: text.text_of(IDS, BYTES, PLACES),
    "labels that the scores have not": lambda: loss(classes=10**8, labels=(0, 10**7)),
}
UNOPENED = [models.Run, models.Trainer, models.Learner, models.Linear, models.LabelTree,
            models.Composer, models.SparseRows, text.Pairs, text.Tokenizer]  # fmt: skip


@pytest.mark.parametrize("kind", UNOPENED)
def test_nothing_is_there_before_it_is_opened(kind):
    with pytest.raises(TypeError):
        kind.__new__(kind)


@pytest.mark.parametrize("fault", FAULTS)
def test_arrays_that_do_not_fit_are_an_error(fault):
    with pytest.raises(ValueError, match=r"fit|range|ascend|row"):
        FAULTS[fault]()


def test_arrays_that_fit_are_taken():
    for run in (learner(), learner(labels=(0, 1), sets=[0, 2]), trainer()):
        assert isinstance(run, models.Run) and run.epoch(0)
    assert len(added([0, 1, 4])) == 2


EMPTY, AT_0, NO_IDS = np.zeros(0, np.uint8), np.zeros(1, I64), np.zeros(0, np.uint32)
NO_NUMBERS = np.zeros(0, np.float32)
OF_NOTHING = {
    "encode": lambda: text.Table().encode(b"", 0)[0],
    "words": lambda: sum(map(len, text.Table().words(AT_0[:0]))) - 1,
    "format_counts": lambda: text.format_counts(EMPTY, AT_0, AT_0[:0]),
    "ngrams_of": lambda: text.ngrams_of(EMPTY, AT_0, 1, 2, 9)[1],
    "text_of": lambda: text.text_of(NO_IDS, EMPTY, AT_0),
    "counted": lambda: text.Pairs(0).counted(1)[3],
    "join": lambda: text.Pairs(0).join(NO_IDS, EMPTY),
    "write_entries": lambda: codec.write_entries(EMPTY.view(np.int32), EMPTY.view(np.float32)),
    "write_rows": lambda: codec.write_rows(True, ROWS[:0], EMPTY, AT_0, 0),
    "weight_counts": lambda: (
        codec.weight_counts(NO_NUMBERS, NO_NUMBERS.view(np.int32), AT_0, True, NO_NUMBERS, None)
        or 0
    ),
    "copy_rows": lambda: codec.copy_rows(NO_NUMBERS, AT_0, AT_0[:0]),
    "read_rows": lambda: codec.read_rows(False, EMPTY, 3, 0, None, KINDS, False)[0],
}


@pytest.mark.parametrize("call", OF_NOTHING)
def test_nothing_becomes_nothing(call):
    found = OF_NOTHING[call]()
    assert not (found if isinstance(found, int) else len(found))


def test_negligible_probabilities_are_zero():
    """Products with denormal numbers would take many times as long."""
    scores = np.array([0, -50, -70, -85, -100, -1000], np.float32)
    table = np.zeros((2, 16), np.float32)
    table[1, : len(scores)] = scores
    model = models.Linear(table, len(scores), 1.0)
    rows = models.SparseRows(csr_matrix((1, 1), dtype=np.float32))
    instances = models.Instances(np.zeros(1, I64), np.zeros(1, np.int32), 1, 1)
    posterior = np.zeros((1, 16), np.float32)
    log_alpha = np.zeros((1, 16), np.float32)
    model.gradient(rows, instances, None, None, 1, log_alpha, posterior, True)
    assert posterior[0, 0] == pytest.approx(1)
    assert posterior[0, 1] == pytest.approx(np.exp(-50), rel=1e-5)
    assert not posterior[0, 2:].any()
