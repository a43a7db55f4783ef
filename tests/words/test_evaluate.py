"""Evaluation equals gensim's on the same file; the commands."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from data import STEMS, analogy_vectors
from helpers import as_gensim

import dcme_w2v as dw
from dcme_w2v import Vectors
from dcme_w2v.errors import CorpusError, FormatError
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.words.evaluate import eval_analogies as analogies
from dcme_w2v.words.evaluate import eval_similarity as similarity


@pytest.fixture
def questions():
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
    path = Path("questions.txt")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def pairs():
    random = np.random.default_rng(5)
    lines = ["Word 1\tWord 2\tHuman (mean)", "# a comment"]
    for a, b in itertools.islice(itertools.combinations(STEMS, 2), 0, 1500, 11):
        lines.append(f"{a.title()}\t{b}\t{random.integers(0, 20) / 2}")
    lines += ["word1\tnever-seen\t3", "", "word1\tword2"]
    path = Path("pairs.tsv")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("limit", [1, 35, 60, 95, 1000])
@pytest.mark.parametrize("spread", [0.02, 0.5, 2.0])
def test_analogies_equal_gensim_in_every_section(questions, limit, spread):
    vectors = analogy_vectors(spread=spread)
    if limit == 1:
        with pytest.raises(FormatError, match="none of 24"):
            analogies(vectors, questions, limit=limit)
        return
    accuracy, sections = as_gensim(vectors).evaluate_word_analogies(
        str(questions), restrict_vocab=limit
    )
    score = analogies(vectors, questions, limit=limit)
    assert score.total.accuracy == accuracy
    for mine, theirs in zip(score.sections, sections, strict=False):
        assert mine.name == theirs["section"]
        assert mine.correct == len(theirs["correct"])
        assert mine.covered == len(theirs["correct"]) + len(theirs["incorrect"])
    assert 0 < score.total.correct < score.total.covered < score.total.questions


@pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")
def test_cosmul_equals_gensim():
    """Question by question: gensim's evaluation ignores its `similarity_function`."""
    whole = analogy_vectors(dim=30, spread=0.4)
    vectors = Vectors(Words.from_words(STEMS), whole.vectors[:60])
    keyed = as_gensim(vectors)
    answers, lines = [], []
    for i, j in itertools.permutations(range(0, 60, 2), 2):
        a, b, c, expected = STEMS[i], STEMS[i + 1], STEMS[j], STEMS[j + 1]
        best, _ = keyed.most_similar_cosmul(positive=[b, c], negative=[a], topn=1)[0]
        answers.append(best == expected)
        lines.append(f": {i} {j}\n{a} {b} {c} {expected}\n")
    Path("questions.txt").write_text("".join(lines))
    found = analogies(vectors, "questions.txt", method="3cosmul")
    assert [one.correct for one in found.sections] == answers
    assert 0 < sum(answers) < len(answers)


@pytest.mark.parametrize("limit", [20, 95, 300_000])
def test_similarity_equals_gensim(pairs, limit):
    vectors = analogy_vectors(spread=1.0)
    pearson, spearman, oov_percent = as_gensim(vectors).evaluate_word_pairs(
        str(pairs), restrict_vocab=limit
    )
    score = similarity(vectors, pairs, limit=limit)
    assert score.spearman == pytest.approx(spearman[0], abs=1e-12)
    assert score.pearson == pytest.approx(pearson[0], abs=1e-6)
    assert 100 * (1 - score.covered / score.pairs) == pytest.approx(oov_percent, abs=1e-9)
    assert score.skipped_lines == 2


@pytest.mark.parametrize(
    "text", ["", "a\tb\t1\n", "word1\tword2\t1\n", "word1\tword2\t1\nword3\tword4\t1\n"]
)
def test_undefined_correlation_is_an_error(text):
    path = Path("pairs.tsv")
    path.write_text(text)
    with pytest.raises(
        FormatError, match=r"pairs\.tsv.* (with different ratings|contains no word pairs)"
    ):
        similarity(analogy_vectors(), path)


@pytest.mark.parametrize("score", [analogies, similarity])
def test_bytes_that_are_not_utf8_name_the_file(score):
    path = Path("latin1.txt")
    path.write_bytes(b"caf\xe9\tword1\t3\n")
    with pytest.raises(CorpusError, match=r"latin1\.txt:1 is not UTF-8"):
        score(analogy_vectors(), path)


def test_analogies_count_what_they_skip_and_split_semantic_from_syntactic(questions):
    score = analogies(analogy_vectors(), questions)
    assert score.skipped_lines == 1
    assert [part.syntactic for part in score.sections] == [False, True, False, True]
    assert score.semantic.questions + score.syntactic.questions == score.total.questions
    assert score.semantic.accuracy != score.syntactic.accuracy
    assert score.as_dict()["coverage"] == score.total.covered / score.total.questions


# As their authors publish them: SimLex-999.txt, WordSim-353's set1.csv and combined.tab, rw.txt.
PUBLISHED = {
    "simlex": "word1\tword2\tPOS\tSimLex999\tconc(w1)\tconc(w2)\tconcQ\tAssoc(USF)\tSimAssoc333"
    "\tSD(SimLex)\r\n"
    "{}\t{}\tA\t1.58\t2.72\t2.81\t2\t7.25\t1\t0.41\r\n{}\t{}\tN\t9.2\t1.75\t2.46\t1\t7.11\t1\t0.67\r\n"
    "{}\t{}\tV\t8.77\t3.76\t2.21\t2\t5.94\t1\t1.19\r\n",
    "wordsim csv": "Word 1,Word 2,Human (mean),1,2,3,4\n"
    "{},{},1.58,1,2,1,2\n{},{},9.20,10,9,9,8\n{},{},8.77,9,9,8,9\n",
    "wordsim quoted": '"Word 1";"Word 2";"Human"\n"{}";"{}";1.58\n"{}";"{}";9.2\n"{}";"{}";8.77\n',
    "wordsim tab": "Word 1\tWord 2\tHuman (mean)\n{}\t{}\t1.58\n{}\t{}\t9.20\n{}\t{}\t8.77\n",
    "rare words": "{}\t{}\t1.58\t0\t3\t1\n{}\t{}\t9.2\t10\t9\t9\n{}\t{}\t8.77\t9\t9\t8\n",
    "wordsim annotated": "# Relations:\n# S: siblings\n\n"
    "S\t{}\t{}\t1.58\nh\t{}\t{}\t9.20\nt\t{}\t{}\t8.77\n",
    "spaces": "{} {} 1.58\n{} {} 9.2\n{}\t{}\t8.77\n",
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_rated_pairs_are_read_as_published(name):
    words = ["old", "new", "smart", "sly", "hard", "word"]
    text = PUBLISHED[name].format(*words)
    vectors = Vectors(words, [[1, 0], [0, 1], [3, 1], [3, 2], [1, 1], [2, 1]])
    cosines = [vectors.similarity(*words[i : i + 2]) for i in (0, 2, 4)]
    for encoding in ("utf-8", "utf-8-sig"):
        Path("p").write_bytes(text.encode(encoding))
        found = similarity(vectors, "p")
        assert (found.pairs, found.covered) == (3, 3)
        assert found.skipped_lines == ("ord 1" in text or "word1" in text)
        assert found.pearson == pytest.approx(np.corrcoef(cosines, [1.58, 9.2, 8.77])[0, 1])


def test_zero_vectors_are_wrong_answers_without_warnings(questions, pairs):
    whole = analogy_vectors()
    vectors = Vectors(whole.words, np.where(np.arange(len(whole))[:, None] == 7, 0, whole.vectors))
    score = analogies(vectors, questions)
    assert score.total.covered > 0
    assert np.isfinite(similarity(vectors, pairs).pearson)
    assert "word7" not in [near.word for near in vectors.most_similar("word1", topn=3)]


def test_the_commands_print_the_scores(questions, pairs, cli):
    analogy_vectors().save("v.bin")
    for command, path, score in (
        ("analogies", questions, analogies), ("similarity", pairs, similarity)
    ):  # fmt: skip
        found = score("v.bin", path)
        assert cli.json(f"eval {command} v.bin {path}") == found.as_dict()
        assert f"skipped {found.skipped_lines} line" in cli.err
    assert cli("eval similarity v.bin pairs.tsv").startswith(f"spearman {found.spearman:.4f}\n")


def test_pairs_may_be_lists():
    vectors = dw.Vectors(["tea", "coffee", "car"], [[1, 0], [1, 1], [-1, 1]], counts=[3, 2, 1])
    pairs = [("tea", "coffee", 9), ("tea", "car", 1), ("coffee", "car", 3.5)]
    Path("pairs.tsv").write_text("".join(f"{a}\t{b}\t{n}\n" for a, b, n in pairs))
    assert dw.eval_similarity(vectors, pairs) == dw.eval_similarity(vectors, "pairs.tsv")
    rated = [(number, a, f"{a}  {b}") for a, b, number in pairs]
    Path("rated.tsv").write_text("".join(f"{n}\t{a}\t{b}\n" for n, a, b in rated))
    found, wanted = (dw.eval_sts(vectors, one, pooling="mean") for one in (rated, "rated.tsv"))
    assert replace(found.sets[0], name="rated.tsv") == wanted.sets[0]
    for function, one in ((dw.eval_similarity, [("a", "b", 1)]), (dw.eval_sts, [(1, "a", "b")])):
        with pytest.raises(FormatError, match=r"^pairs: "):
            function(vectors, one)
