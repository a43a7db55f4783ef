"""Evaluation equals gensim's on the same file, and nearest words equal its most_similar."""

import itertools

import numpy as np
import pytest

from dcme_w2v.errors import DcmeError, FormatError, UsageError
from dcme_w2v.text.words import Words
from dcme_w2v.words import evaluate
from dcme_w2v.words.evaluate import analogies, similarity
from dcme_w2v.words.neighbors import analogy, neighbors
from dcme_w2v.words.vectors import Vectors

STEMS = [f"word{i}" for i in range(60)]


def word_list():
    """Sixty words, some of them again in other cases, more rarely."""
    return STEMS + [s.upper() for s in STEMS[:30]] + [s.capitalize() for s in STEMS[:20]]


def make_vectors(seed=0, dim=12, spread=0.02):
    """Structured so that analogies often hold: stem i = pair (i // 2) plus one of two forms."""
    random = np.random.default_rng(seed)
    words = word_list()
    pairs, forms = random.normal(size=(30, dim)), random.normal(size=(2, dim))
    rows = [
        pairs[STEMS.index(word.lower()) // 2] + forms[STEMS.index(word.lower()) % 2]
        for word in words
    ]
    matrix = np.array(rows) + spread * random.normal(size=(len(words), dim))
    matrix *= random.uniform(0.2, 3, size=(len(words), 1))
    return Vectors(Words.from_words(words), matrix.astype(np.float32))


def as_gensim(vectors):
    models = pytest.importorskip("gensim.models")
    keyed = models.KeyedVectors(vectors.matrix.shape[1])
    keyed.add_vectors(list(vectors.words), vectors.matrix)
    return keyed


@pytest.fixture
def questions(tmp_path):
    random = np.random.default_rng(3)
    lines = []
    for name in ("capital-common", "gram1-adjective", "empty", "gram2-opposite"):
        lines.append(f": {name}")
        for _ in range(0 if name == "empty" else 80):
            i, j = random.choice(30, size=2, replace=False)
            four = [STEMS[2 * i], STEMS[2 * i + 1], STEMS[2 * j], STEMS[2 * j + 1]]
            lines.append(" ".join(w.title() if random.random() < 0.3 else w for w in four))
        lines.append("word1 word2 word3 unheard-of")
    lines += ["word1 word2 word3", "", "word1 word1 word2 word2", "word1 word2 word1 word2"]
    path = tmp_path / "questions.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def pairs(tmp_path):
    random = np.random.default_rng(5)
    lines = ["Word 1\tWord 2\tHuman (mean)", "# a comment"]
    for a, b in itertools.islice(itertools.combinations(STEMS, 2), 0, 1500, 11):
        lines.append(f"{a.title()}\t{b}\t{random.integers(0, 20) / 2}")
    lines += ["word1\tnever-seen\t3", "", "word1\tword2"]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("restrict", [1, 35, 60, 95, 1000])
@pytest.mark.parametrize("spread", [0.02, 0.5, 2.0])
def test_analogies_equal_gensim_in_every_section(questions, restrict, spread):
    vectors = make_vectors(spread=spread)
    if restrict == 1:
        with pytest.raises(FormatError, match="none of 24"):
            analogies(vectors, questions, restrict)
        return
    accuracy, sections = as_gensim(vectors).evaluate_word_analogies(
        str(questions), restrict_vocab=restrict
    )
    score = analogies(vectors, questions, restrict)
    assert score.total.accuracy == accuracy
    for mine, theirs in zip(score.sections, sections, strict=False):
        assert mine.name == theirs["section"]
        assert mine.correct == len(theirs["correct"])
        assert mine.covered == len(theirs["correct"]) + len(theirs["incorrect"])
    assert 0 < score.total.correct < score.total.covered < score.total.questions


@pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")
def test_cosmul_answers_as_gensim_does(tmp_path):
    """Question by question: gensim's evaluation takes the method's name and ignores it."""
    whole = make_vectors(dim=30, spread=0.4)
    vectors = Vectors(Words.from_words(STEMS), whole.matrix[:60])
    keyed = as_gensim(vectors)
    path = tmp_path / "questions.txt"
    answers = []
    for i, j in itertools.permutations(range(0, 60, 2), 2):
        a, b, c, expected = STEMS[i], STEMS[i + 1], STEMS[j], STEMS[j + 1]
        best, _ = keyed.most_similar_cosmul(positive=[b, c], negative=[a], topn=1)[0]
        answers.append(best == expected)
        path.write_text(f"{a} {b} {c} {expected}\n", encoding="utf-8")
        assert analogies(vectors, path, method="3cosmul").total.correct == answers[-1]
    assert 0 < sum(answers) < len(answers)


def test_only_five_answers_are_looked_at_for_words_in_another_case(tmp_path):
    """The five best answers spell a question word in other cases; the sixth is right."""
    spellings = ["abcd", "Abcd", "aBcd", "abCd", "abcD", "ABcd"]
    words = ["king", "man", "queen", *spellings]
    matrix = np.eye(len(words), dtype=np.float32) * 0.01
    matrix[3:, 0] = 1.0
    matrix[:3] += np.array([[0.1], [0.2], [0.0]], dtype=np.float32)
    vectors = Vectors(Words.from_words(words), matrix)
    path = tmp_path / "questions.txt"
    path.write_text(": s\nking man abcd queen\n", encoding="utf-8")
    assert as_gensim(vectors).evaluate_word_analogies(str(path))[0] == 0
    assert analogies(vectors, path).total.correct == 0
    fewer = Vectors(Words.from_words(words[:-1]), matrix[:-1])
    assert as_gensim(fewer).evaluate_word_analogies(str(path))[0] == 1
    assert analogies(fewer, path).total.correct == 1


def test_analogies_in_small_blocks_are_the_same(questions, monkeypatch):
    vectors = make_vectors(spread=0.5)
    whole = analogies(vectors, questions)
    monkeypatch.setattr(evaluate, "BLOCK", 7 * len(vectors.words))
    assert analogies(vectors, questions) == whole


def test_analogies_count_what_they_skip_and_split_semantic_from_syntactic(questions):
    score = analogies(make_vectors(), questions)
    assert score.skipped_lines == 1
    assert [part.syntactic for part in score.sections] == [False, True, False, True]
    assert score.semantic.questions + score.syntactic.questions == score.total.questions
    assert score.as_dict()["coverage"] == score.total.covered / score.total.questions


def test_analogies_without_a_section(tmp_path):
    path = tmp_path / "questions.txt"
    path.write_bytes(b"\xef\xbb\xbfword0 word1 word2 word3\r\n")
    score = analogies(make_vectors(), path)
    assert [(part.name, part.questions) for part in score.sections] == [("questions", 1)]


def test_zero_vectors_answer_nothing_and_do_not_warn(questions, pairs):
    vectors = make_vectors()
    vectors.matrix[7] = 0
    score = analogies(vectors, questions)
    assert score.total.covered > 0
    assert np.isfinite(similarity(vectors, pairs).pearson)
    assert "word7" not in [near.word for near in neighbors(vectors, "word1", 3)]


@pytest.mark.parametrize("restrict", [20, 95, 300_000])
def test_similarity_equals_gensim(pairs, restrict):
    vectors = make_vectors(spread=1.0)
    pearson, spearman, oov_percent = as_gensim(vectors).evaluate_word_pairs(
        str(pairs), restrict_vocab=restrict
    )
    score = similarity(vectors, pairs, restrict)
    assert score.spearman == pytest.approx(spearman[0], abs=1e-12)
    assert score.pearson == pytest.approx(pearson[0], abs=1e-6)
    assert 100 * (1 - score.covered / score.pairs) == pytest.approx(oov_percent, abs=1e-9)
    assert score.skipped_lines == 2


def test_pairs_separated_by_spaces(tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text("word1 word2 3\nword1 word3 1.5\nword4  word5 9\n", encoding="utf-8")
    assert similarity(make_vectors(), path).covered == 3


@pytest.mark.parametrize(
    "text", ["", "a\tb\t1\n", "word1\tword2\t1\n", "word1\tword2\t1\nword3\tword4\t1\n"]
)
def test_no_correlation_is_one_clear_error(tmp_path, text):
    path = tmp_path / "pairs.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=r"pairs\.tsv: .*rated apart"):
        similarity(make_vectors(), path)


@pytest.mark.parametrize("score", [analogies, similarity])
def test_bytes_that_are_not_utf8_name_the_file(tmp_path, score):
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"caf\xe9\tword1\t3\n")
    with pytest.raises(FormatError, match=r"latin1\.txt: is not UTF-8"):
        score(make_vectors(), path)


@pytest.mark.parametrize("arguments", [{"restrict": 0}, {"method": "cosine"}])
def test_wrong_arguments(questions, arguments):
    with pytest.raises(UsageError):
        analogies(make_vectors(), questions, **arguments)


@pytest.mark.parametrize("word", ["word3", "WORD5", "Word0"])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_neighbors_equal_gensim(word, k):
    vectors = make_vectors(spread=1.0)
    expected = as_gensim(vectors).most_similar(word, topn=k)
    got = neighbors(vectors, word, k)
    assert [near.word for near in got] == [near for near, _ in expected]
    np.testing.assert_allclose(
        [near.similarity for near in got], [s for _, s in expected], atol=1e-6
    )


@pytest.mark.parametrize("three", [("word0", "word1", "word2"), ("word4", "word4", "word8")])
def test_analogy_equals_gensim(three):
    vectors = make_vectors(spread=1.0)
    a, b, c = three
    expected = as_gensim(vectors).most_similar(positive=[b, c], negative=[a], topn=15)
    got = analogy(vectors, a, b, c, 15)
    assert [near.word for near in got] == [near for near, _ in expected]
    np.testing.assert_allclose(
        [near.similarity for near in got], [s for _, s in expected], atol=1e-6
    )


def test_equal_neighbors_come_in_order_of_frequency():
    vectors = Vectors(Words.from_words("abcdef"), np.ones((6, 3), dtype=np.float32))
    assert [near.word for near in neighbors(vectors, "c", 10)] == list("abdef")


def test_an_unknown_word_is_an_error():
    with pytest.raises(DcmeError, match="nowhere: not among the 110 words"):
        neighbors(make_vectors(), "nowhere")
    with pytest.raises(DcmeError, match="nowhere"):
        analogy(make_vectors(), "word1", "word2", "nowhere")
    with pytest.raises(UsageError, match="-k 0"):
        neighbors(make_vectors(), "word1", 0)
