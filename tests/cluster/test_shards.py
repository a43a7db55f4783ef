"""Shards of a corpus: they cover it, are counted as one text, trained in rounds and mixed."""

import lzma
from pathlib import Path

import numpy as np
import pytest
from data import corpus, write_corpus
from helpers import COMPRESSORS, options_of, write, write_table
from hypothesis import given, settings
from hypothesis import strategies as st

from dcme_w2v.cluster import mixing
from dcme_w2v.cluster import words as cluster
from dcme_w2v.cluster.address import open_cluster
from dcme_w2v.cluster.shards import count, cut
from dcme_w2v.cluster.words import Plan
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.corpus import Corpus
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.text import encode as one_machine
from dcme_w2v.text.encode import encode
from dcme_w2v.training.executor import Executor
from dcme_w2v.training.progress import Reporter

ALL = VocabularyOptions(min_count=1)

PACKED = lzma.compress(b"a b c\n" * 4000)


def counted(paths, shards, options=ALL, given=None):
    with open_cluster("local:0") as cluster:
        return count(cluster, cut(paths, shards, options), options, given)[0]


def same(found, wanted):
    assert list(found.vocabulary) == list(wanted.vocabulary)
    np.testing.assert_array_equal(found.vocabulary.counts, wanted.vocabulary.counts)
    for name in ("tokens", "types", "replaced", "skipped", "files"):
        assert getattr(found, name) == getattr(wanted, name), name


@pytest.fixture
def files():
    """Plain and compressed files; the first has a byte order mark, the last no line end."""
    texts = [Path(write_corpus(Path(f"{i}"), 80 + 40 * i, i)).read_bytes() for i in range(4)]
    return [
        write("a.txt", b"\xef\xbb\xbf" + texts[0]),
        write("b.txt.xz", lzma.compress(texts[1] + b"\n")),
        write("c.txt", texts[2] + b"\n\n\n"),
        write("d.txt", texts[3]),
    ]


@pytest.mark.parametrize("sentences", ["lines", "paragraphs"])
@pytest.mark.parametrize("shards", [1, 3, 6])
def test_the_ids_equal_those_of_one_machine(files, shards, sentences):
    for path in ("a.txt", "d.txt"):
        lines = Path(path).read_bytes().split(b"\n")
        Path(path).write_bytes(
            b"\n".join(line + b"\n \n" * (i % 4 > 2) for i, line in enumerate(lines))
        )
    options = VocabularyOptions(min_count=1, sentences=sentences)
    whole = one_machine.encode(files, options)
    words, ids = whole.vocabulary, np.array(whole.ids)
    found = []
    for shard in cut(files, shards, options):
        part = encode(shard.corpus(), options, vocabulary=words)
        found.append(np.array(part.ids))
    np.testing.assert_array_equal(np.concatenate(found), ids)


def test_the_rarest_words_are_dropped_on_workers_before_memory_ends(monkeypatch):
    """Words that one shard has dropped and another not are counted again."""
    numbers = np.random.default_rng(5).zipf(1.2, 300_000) % 150_000
    lines = [" ".join(map(str, row)) for row in numbers.reshape(-1, 10).tolist()]
    path = write("c", "\n".join(lines).encode())
    with monkeypatch.context() as patch:
        patch.setattr(Corpus.__init__, "__defaults__", (20_000,))
        patch.setattr("dcme_w2v.text.reading.memory_for", lambda held: 5_000_000)
        with pytest.warns(match=r"fewer than \d+ times .* count parts") as caught:
            found = counted([path], 3)
    least = int(str(caught[0].message).split("fewer than ")[1].split()[0])
    assert len(caught) == 1 and least > 3
    wanted = one_machine.count([path], VocabularyOptions(min_count=least))
    assert dict(found.vocabulary.items()) == dict(wanted.vocabulary.items())
    assert (found.tokens, found.out_of_vocabulary) == (wanted.tokens, wanted.out_of_vocabulary)


@pytest.mark.parametrize("count_of_files", [3, 5])
def test_compressed_files_are_not_divided(count_of_files):
    paths = [
        write(f"{i}.gz", COMPRESSORS["gz"](f"a b w{i}\n".encode() * 9 ** (i + 1)))
        for i in range(count_of_files)
    ]
    spans = [span for part in cut(paths, 3, ALL) for span in part.spans]
    assert [span.path for span in spans] == paths
    assert all(span.begin == 0 and span.end is None for span in spans)
    with pytest.raises(UsageError, match="shards=6: the corpus has too few lines, row groups"):
        cut(paths, 6, ALL)
    with pytest.raises(UsageError, match="the corpus has too few lines"):  # found at the second
        cut([write_corpus(Path("plain"), 90)], 10**12, ALL)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
@pytest.mark.parametrize("sentences", ["lines", "whole"])
def test_tables_are_divided_at_rows(here, suffix, sentences):
    rows = [{"t": f"a b w{i}\nc d w{i % 7}", "n": i} for i in range(40)]
    path, csv = write_table(f"t.{suffix}", rows), write_table(here / "u.csv", rows)
    options = VocabularyOptions(min_count=1, text_column="t", sentences=sentences)
    same(counted([path], 6, options), one_machine.count([path], options))
    same(counted([path, csv], 2, options), one_machine.count([path, csv], options))
    parts = cut([path], 4, options)
    blocks = [[bytes(block.text).split(b"\n") for block in part.corpus()] for part in parts]
    lines = [line.decode() for part in blocks for block in part for line in block if line]
    texts = [row["t"].replace("\n", " ") if sentences == "whole" else row["t"] for row in rows]
    assert "\n".join(lines) == "\n".join(texts) and all(blocks)
    with pytest.raises(UsageError, match="too few lines, row groups"):
        cut([csv], 2, options)


def test_the_error_of_a_row_group_names_the_row_of_the_file():
    rows = [{"t": "a"}] * 7 + [{"t": "b\0"}, {"t": "c"}]
    options = VocabularyOptions(text_column="t")
    parts = cut([write_table("t.parquet", rows)], 3, options)
    with pytest.raises(CorpusError, match="row 8: the text contains a NUL"):
        [list(part.corpus()) for part in parts]


def test_files_missing_on_a_worker_are_named(files):
    parts = cut(files, 3, ALL)
    Path(files[-1]).write_bytes(b"shorter\n")
    with pytest.raises(CorpusError, match=r"d.txt has 8 bytes on this worker, but \d+ bytes"):
        parts[-1].corpus()
    Path(files[-1]).unlink()
    with pytest.raises(
        CorpusError, match=r"d.txt: the file does not exist on this worker; use a path that exists"
    ):
        parts[-1].corpus()
    Path(files[0]).write_bytes(lzma.compress(b"a b\n"))
    with pytest.raises(CorpusError, match=r"a.txt has"):
        parts[0].corpus()


@pytest.mark.parametrize(
    "name, data, said",
    [
        ("zero", b"a b\n" * 50 + b"a\0b\n", "is a NUL byte"),
        ("empty", b"", "--shards 2: the corpus has too few lines"),
        ("broken.xz", PACKED[:-30], "--shards 2: the corpus has too few"),
        ("line", b"one line", "--shards 2: the corpus has too few lines"),
        ("rare", b"a b\nc d\n", "none of the 4 distinct words"),
        ("whole.xz broken.xz", PACKED, "broken.xz: the xz data is truncated at byte"),
    ],
)
def test_errors_of_the_input_are_one_line(cli, name, data, said):
    write(name.split()[0], data)
    if "whole" in name:
        write("broken.xz", data[:-30])
    error = cli.error(f"train {name} --output v --dim 16 --quiet --cluster local:0 --shards 2")
    assert said in error and ("whole" not in name or "(shard 2 (broken.xz" in error)


@settings(max_examples=60)
@given(
    lines=st.lists(st.sampled_from(["", "a", "b b", "cc dd cc", "x" * 40]), min_size=1),
    shards=st.integers(1, 5),
    end=st.sampled_from(["\n", "\r\n", ""]),
)
def test_a_plain_file_is_divided_at_line_ends(tmp_path_factory, lines, shards, end):
    path = tmp_path_factory.mktemp("cut") / "c.txt"
    path.write_bytes(((end or "\n").join(lines) + end).encode())
    try:
        parts = cut([str(path)], shards, ALL)
    except UsageError:
        assert shards > 1
        return
    data = path.read_bytes()
    pieces = [data[span.begin : span.end] for part in parts for span in part.spans]
    assert b"".join(pieces) == data and len(parts) == shards
    assert all(piece.endswith(b"\n") for piece in pieces[:-1])


# ---- training in rounds ----


def learn(plan, number, shard, ids):
    """Train on a text from the tables at the start, and return the figures."""
    counts = corpus()[1]
    rows = [plan.begin(block) for block in plan.blocks]
    return plan.learn(number, shard, (cluster.Data(ids, counts), None), rows)[1]


def plan_of(shards, rounds, counts=None, **options):
    return Plan.of(
        options_of({}, **options), shards, rounds, corpus()[1] if counts is None else counts
    )


@pytest.mark.parametrize("epochs, rounds", [(2, 2), (2, 6), (4, 2), (3, 1)])
def test_every_token_is_processed_once_per_epoch(epochs, rounds):
    plan, ids = plan_of(3, rounds, epochs=epochs), corpus()[0]
    notes = [
        learn(plan, number, k, cluster.part_of(ids, k, plan.shards))
        for number in range(rounds)
        for k in range(plan.shards)
    ]
    kinds = ("trained", "subsampled", "without_context")
    assert sum(note[kind] for note in notes for kind in kinds) == epochs * len(corpus()[0])


def test_shards_and_rounds_have_different_random_numbers():
    plan, ids = plan_of(2, 3, epochs=3, sample=1e-3), corpus()[0]
    subsampled = {
        learn(plan, number, shard, ids)["subsampled"] for shard in range(2) for number in range(3)
    }
    assert len(subsampled) == 6
    assert cluster.seed_of(7, 0) == 7
    assert len({cluster.seed_of(seed, k) for seed in range(20) for k in range(20)}) == 400


@pytest.mark.parametrize("gradient", ["word2vec", "exact"])
def test_the_rows_of_a_context_step_together(gradient):
    """Four mixed shards move a context vector about as far as four shards one after the other."""
    counts, curvature = np.array([40, 400, 4000]), 2.0
    given = {"model": "cbow", "objective": "ns", "gradient": gradient, "sample": 0, "lr": 0.01}
    plan = plan_of(4, options_of({}, **given).epochs, counts, **given)
    options = plan.options
    size = cluster.context_size(options)
    rate = cluster.rate_at(options, 0.5 / plan.rounds)
    step = rate * cluster.SLOPE * (1 + options.negative) * curvature  # of each row of a context
    left = (1 - step / (size if gradient == "exact" else 1)) ** (size * counts / 4)[:, None]
    start, learned = np.ones((3, 1), dtype=np.float32), [left.astype(np.float32)] * 4
    (_, steps), _ = plan.steps(0, counts)
    direction = mixing.Directions(np.array([curvature]), np.eye(1))
    mixed = mixing.curvature(3, slice(0, 3), start, learned, steps, direction)
    np.testing.assert_allclose(mixed, left**4, atol=0.05)


class ThreeWorkers(Executor):
    """Runs tasks in this process as for three workers; `fetched` has what the program received."""

    workers = 3

    def __init__(self):
        super().__init__(Reporter())
        self.fetched = []

    def result(self, future):
        self.fetched.append(super().result(future))
        return self.fetched[-1]


@pytest.mark.parametrize("given", [None, Vocabulary.from_counts({"w3": 9, "never": 4})])
@pytest.mark.parametrize("limits", [{"min_count": 1}, {"min_count": 4}, {"max_vocab": 50}])
def test_shards_are_counted_as_one_text(limits, given):
    """Many words have the same count; the program receives only figures and words that it keeps."""
    numbers = (np.random.default_rng(3).zipf(1.3, 30_000) % 5_000).tolist()
    words = [b"w%d" % n if n % 50 else b"w\xff%d" % (n // 7) for n in numbers]
    Path("c.txt").write_bytes(b"\n".join(b" ".join(words[i : i + 9]) for i in range(0, 30_000, 9)))
    options, executor = VocabularyOptions(**limits, encoding_errors="replace"), ThreeWorkers()
    found, _ = count(executor, cut(["c.txt"], 4, options), options, given)
    whole = one_machine.encode(["c.txt"], options, vocabulary=given)
    same(found, whole)
    assert given or found.out_of_vocabulary == whole.out_of_vocabulary
    (received,) = [one for one in executor.fetched if not isinstance(one, dict)]
    assert received is found.vocabulary
