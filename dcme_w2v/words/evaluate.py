"""Evaluate word vectors on analogy questions and on rated pairs of words.

On the same file, the results equal the results of `evaluate_word_analogies` and
`evaluate_word_pairs` in gensim 4: words are compared in upper case, the most frequent of several
spellings is used, and the vocabulary is limited to the first `limit` words.
"""

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dcme_w2v.declarations import check_choice, checks_names, whole_number
from dcme_w2v.errors import FormatError
from dcme_w2v.files.opening import read_text
from dcme_w2v.formats.texts import tokens_of
from dcme_w2v.formats.vocabulary import Words
from dcme_w2v.numeric.arrays import F32, F64, I64, Bools, correlations
from dcme_w2v.numeric.nearest import Found, best_rows, cosines_of, error_of_cosines, nearest_rows
from dcme_w2v.platform import PathLike, path_name

from .neighbors import inverse_lengths
from .options import ANALOGY_METHODS
from .vectors import Vectors, load_if_path

# Constant that prevents division by zero in equation (4) of Levy and Goldberg (2014, linguistic
# regularities).
EPSILON = 0.001

# Number of candidate answers; the best candidate that is not in the question is the answer.
CANDIDATES = 5


@dataclass(frozen=True)
class Section:
    """The numbers of questions, covered questions and correct answers in a section."""

    name: str
    questions: int
    covered: int
    correct: int

    @property
    def syntactic(self) -> bool:
        """Whether the questions are syntactic, as in sections whose names begin with "gram"."""
        return self.name.startswith("gram")

    @property
    def accuracy(self) -> float | None:
        """Fraction of covered questions answered correctly, or None if none is covered."""
        return self.correct / self.covered if self.covered else None

    @property
    def coverage(self) -> float | None:
        """Fraction of questions with all words in the vocabulary; None if there is no question."""
        return self.covered / self.questions if self.questions else None


@dataclass(frozen=True)
class AnalogyScore:
    """The result of `eval_analogies`."""

    sections: tuple[Section, ...]
    method: str
    limit: int
    skipped_lines: int

    @property
    def total(self) -> Section:
        """The total counts of questions and correct answers in all sections."""
        return _joined("total", self.sections)

    @property
    def semantic(self) -> Section:
        """The total counts of questions and correct answers in the semantic sections."""
        return _joined("semantic", [part for part in self.sections if not part.syntactic])

    @property
    def syntactic(self) -> Section:
        """The total counts of questions and correct answers in the syntactic sections."""
        return _joined("syntactic", [part for part in self.sections if part.syntactic])

    def as_dict(self) -> dict[str, Any]:
        """Return the results as a dict for JSON output."""
        return {
            "accuracy": self.total.accuracy,
            "semantic_accuracy": self.semantic.accuracy,
            "syntactic_accuracy": self.syntactic.accuracy,
            "coverage": self.total.coverage,
            "questions": self.total.questions,
            "covered": self.total.covered,
            "correct": self.total.correct,
            "skipped_lines": self.skipped_lines,
            "method": self.method,
            "limit": self.limit,
            "sections": [
                {**vars(part), "accuracy": part.accuracy, "coverage": part.coverage}
                for part in self.sections
            ],
        }


@dataclass(frozen=True)
class SimilarityScore:
    """The result of `eval_similarity`: Spearman and Pearson correlations, and coverage.

    `by_ngrams` is the number of covered pairs with an out-of-vocabulary word, whose vector is the
    mean of the vectors of its character n-grams.
    """

    spearman: float
    pearson: float
    pairs: int
    covered: int
    skipped_lines: int
    by_ngrams: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Return the results as a dict for JSON output."""
        return {**vars(self), "coverage": self.covered / self.pairs}


@checks_names
def eval_analogies(
    vectors: Vectors | PathLike,
    questions: PathLike,
    *,
    limit: int = 30_000,
    method: str = "3cosadd",
) -> AnalogyScore:
    r"""Evaluate word vectors on a file of questions such as "a is to b as c is to ?".

    Parameters
    ----------
    vectors : Vectors or path
        Word vectors, in descending order of word frequency.
    questions : path
        File with questions in word2vec's format: each question is a line of four words. Lines such
        as ``: capitals`` start a section. Lines with more or fewer than four words are counted and
        skipped.
    limit : int
        Use only the first `limit` words.
    method : {"3cosadd", "3cosmul"}
        Score of an answer: 3cosadd (Mikolov et al. 2013), or 3cosmul (equation 4 in Levy and
        Goldberg 2014, with cosines shifted to [0, 1]).

    Returns
    -------
    AnalogyScore
        Accuracy and coverage of each section and of all sections together.

    Raises
    ------
    FormatError
        No question consists of words that have vectors, or the file is not UTF-8.

    Examples
    --------
    >>> from pathlib import Path
    >>> import dcme_w2v as dw
    >>> v = dw.Vectors(["man", "woman", "king", "queen"], [[1, 0], [1, 1], [4, 0], [4, 3]])
    >>> _ = Path("questions.txt").write_text(": family\nman woman king queen\n")
    >>> dw.eval_analogies(v, "questions.txt").total
    Section(name='total', questions=1, covered=1, correct=1)
    """
    vectors = load_if_path(vectors, limit)
    check_choice("--method", method, ANALOGY_METHODS)
    spelled, first = _upper_case(vectors.words, limit)
    names, section_of, asked, skipped = _read_questions(questions)
    numbers, covered = _numbered_questions(questions, asked, spelled, len(first), limit)
    answers = np.full(len(numbers), -1)
    answers[covered] = _answers(vectors.vectors[: len(first)], first, numbers[covered, :3], method)
    right = covered & (answers == numbers[:, 3])
    counts = [
        np.bincount(section_of[chosen], minlength=len(names)).tolist()
        for chosen in (np.ones_like(covered), covered, right)
    ]
    sections = tuple(
        Section(name, *three) for name, three in zip(names, zip(*counts, strict=True), strict=True)
    )
    return AnalogyScore(sections, method, limit, skipped)


@checks_names
def eval_similarity(
    vectors: Vectors | PathLike,
    pairs: PathLike | Sequence[tuple[str, str, float]],
    *,
    limit: int = 300_000,
) -> SimilarityScore:
    r"""Compute the correlations between human ratings and the cosines of word pairs.

    Parameters
    ----------
    vectors : Vectors or path
        Word vectors, in descending order of word frequency. If the vectors have `subwords`,
        out-of-vocabulary words are represented by their character n-grams.
    pairs : path, or sequence of two words and a rating each
        Rated pairs of words. Each line of a file contains two words and a rating, separated by
        tabs, commas, semicolons or spaces. The rating is the first number after the words. Further
        columns are ignored, so that the published files of SimLex-999, WordSim-353 and RareWords
        can be used. ``#`` starts a comment. Other lines, such as a heading, are counted and
        skipped.
    limit : int
        Use only the first `limit` words.

    Raises
    ------
    FormatError
        The pairs whose words have vectors have fewer than two different ratings or cosines, or the
        file is not UTF-8.

    Examples
    --------
    >>> from pathlib import Path
    >>> import dcme_w2v as dw
    >>> v = dw.Vectors(["tea", "coffee", "car"], [[1, 0], [1, 1], [-1, 1]])
    >>> _ = Path("pairs.tsv").write_text("tea\tcoffee\t9\ntea\tcar\t1\ncoffee\tcar\t3\n")
    >>> round(dw.eval_similarity(v, "pairs.tsv").spearman, 3)
    1.0
    """
    vectors = load_if_path(vectors, limit)
    spelled, _ = _upper_case(vectors.words, limit)
    rated, ratings, skipped = _read_pairs(pairs)
    name = os.fspath(pairs) if isinstance(pairs, str | os.PathLike) else "pairs"
    if not rated:
        raise FormatError(
            f"{name} contains no word pairs; write each line as WORD TAB WORD TAB RATING"
        )

    def vector_of(word: str) -> F32 | None:
        """Return a word's vector, ignoring case, or else the vector of its n-grams."""
        number = spelled.get(word.upper())
        if number is not None:
            return np.asarray(vectors.vectors[number])
        return None if vectors.subwords is None else vectors.subwords.vector_of(word)

    found = [[vector_of(word) for word in pair] for pair in rated]
    covered = np.array([all(one is not None for one in pair) for pair in found], dtype=bool)
    gold = np.array(ratings)[covered]
    if len(set(gold.tolist())) < 2:
        raise FormatError(
            f"{name}: only {len(gold)} of {len(rated)} pairs have both words among the first "
            f"{min(limit, len(vectors.words)):,} words of the vocabulary; provide at least two "
            "such pairs, with different ratings"
        )
    kept = np.flatnonzero(covered).tolist()
    cosines = _cosines([found[i] for i in kept], name)
    pearson, spearman = correlations(gold, cosines)
    return SimilarityScore(
        spearman,
        pearson,
        len(rated),
        len(gold),
        skipped,
        sum(any(word.upper() not in spelled for word in rated[i]) for i in kept),
    )


def _cosines(found: list[list[F32 | None]], pairs: PathLike) -> F64:
    """Return the cosine of each pair of vectors; raise an error if all the cosines are equal."""
    left, right = np.array(found, dtype=np.float64).transpose(1, 0, 2)
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = np.einsum("ij,ij->i", left, right) / np.where(lengths > 0, lengths, 1)
    if len(set(cosines.tolist())) < 2:
        raise FormatError(
            f"{pairs}: the vectors of all {len(found)} covered pairs have the same cosine "
            f"similarity, {cosines[0]:g}, so there is no correlation; use other vectors"
        )
    return np.asarray(cosines)


def _joined(name: str, parts: tuple[Section, ...] | list[Section]) -> Section:
    counts = [(part.questions, part.covered, part.correct) for part in parts]
    return Section(name, *np.sum([(0, 0, 0), *counts], axis=0).tolist())


def covered_questions(words: Words, path: PathLike) -> I64:
    """Return the row indices of the four words in each covered question; the shape is (q, 4).

    Raises
    ------
    FormatError
        None is covered, or the file is not UTF-8.
    """
    spelled, first = _upper_case(words, len(words))
    _, _, questions, _ = _read_questions(path)
    numbers, covered = _numbered_questions(path, questions, spelled, len(first))
    return numbers[covered]


def _numbered_questions(
    path: PathLike,
    questions: list[list[str]],
    spelled: dict[str, int],
    known: int,
    limit: int | None = None,
) -> tuple[I64, Bools]:
    """Return questions as row indices of words (-1 if unknown), and a mask of covered questions."""
    numbers = np.array([[spelled.get(word, -1) for word in line] for line in questions], dtype=int)
    numbers = numbers.reshape(-1, 4)
    covered = np.asarray((numbers >= 0).all(axis=1))
    if not questions:
        raise FormatError(f"{path} contains no questions; write four words per line")
    if not covered.any():
        raise FormatError(
            f"{path}: none of {len(questions)} questions has all four words among the first "
            f"{known:,}; check the case and the language of the "
            f"questions{', or raise --limit' * (known == limit)}"
        )
    return numbers, covered


def _upper_case(words: Words, limit: int) -> tuple[dict[str, int], I64]:
    """Map uppercase spellings to their first rows; return the map, and each word's first row."""
    whole_number("limit", limit)
    spelled: dict[str, int] = {}
    first = [
        spelled.setdefault(word.upper(), number)
        for number, word in enumerate(itertools.islice(words, limit))
    ]
    return spelled, np.array(first, dtype=np.int64)


def _lines(path: PathLike) -> Iterator[str]:
    return (line for _, line in read_text(path_name(path)))


def _read_questions(
    path: PathLike,
) -> tuple[list[str], I64, list[list[str]], int]:
    """Return section names, each question's section and words, and a count of invalid lines."""
    names: list[str] = []
    section_of, questions, skipped = [], [], 0
    for line in _lines(path):
        if line.startswith(":"):
            names.append(line[1:].strip())
            continue
        words = tokens_of(line.upper())
        if len(words) != 4:
            skipped += bool(words)
            continue
        if not names:
            names.append("questions")
        section_of.append(len(names) - 1)
        questions.append(words)
    return names, np.array(section_of, dtype=np.int64), questions, skipped


def _read_pairs(
    given: PathLike | Sequence[tuple[str, str, float]],
) -> tuple[list[list[str]], list[float], int]:
    """Return word pairs, their ratings, and the number of skipped lines.

    The ratings are in the column in which most lines have their first number after the words. A
    first column of single letters is the relation between the words, as in the annotated files
    of WordSim-353.
    """
    if isinstance(given, str | os.PathLike) or not isinstance(given, Iterable):
        lines = [_columns(line) for line in _lines(given) if line.strip() and line[0] != "#"]
    else:
        lines = [list(map(str, one)) for one in given]
    if (long := [line for line in lines if len(line) > 3]) and all(
        len(line[0]) == 1 and line[0].isascii() for line in long
    ):
        lines = [line[len(line) > 3 :] for line in lines]
    numbers = [[_number(text) for text in line[2:]] for line in lines]
    first = (int(np.argmax(np.isfinite(found))) for found in numbers if np.isfinite(found).any())
    column = next((place for place, _ in Counter(first).most_common(1)), 0)
    rated = [len(found) > column and bool(np.isfinite(found[column])) for found in numbers]
    pairs = [line[:2] for line, is_rated in zip(lines, rated, strict=True) if is_rated]
    ratings = [found[column] for found, is_rated in zip(numbers, rated, strict=True) if is_rated]
    return pairs, ratings, len(lines) - len(pairs)


def _columns(line: str) -> list[str]:
    """Split a line at tabs, commas or semicolons, or at spaces if this results in three columns."""
    for delimiter, least in (("\t", 1), (",", 2), (";", 2)):
        if line.count(delimiter) >= least:
            return [column.strip(' "\r\n') for column in line.split(delimiter)]
    columns = tokens_of(line)
    return columns if len(columns) == 3 else []


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan


def _answers(matrix: F32, first: I64, questions: I64, method: str) -> I64:
    """Answer questions, given as row indices of a, b and c; return the row indices of the answers.

    The rows of a question are not answers to it. As in gensim, other spellings of its words are
    skipped too, but only `CANDIDATES` answers are considered. -1 means that there is no answer.
    """
    inverse = inverse_lengths(matrix)
    found = (_by_sum if method == "3cosadd" else _by_product)(matrix, inverse, questions)
    answers = np.full(len(questions), -1)
    for number, (rows, _) in enumerate(found):
        for answer in first[rows].tolist():
            answers[number] = answer
            if answer not in questions[number]:
                break
    return answers


def _by_sum(matrix: F32, inverse: F32, questions: I64) -> Iterator[Found]:
    """Yield the best answers x to each question, ranked by ``cos(x, b - a + c)``."""
    a, b, c = (matrix[rows] * inverse[rows][:, None] for rows in questions.T)
    queries = b + c - a
    queries *= inverse_lengths(queries)[:, None]
    return nearest_rows(matrix, inverse, queries, questions.tolist(), CANDIDATES)


def _by_product(matrix: F32, inverse: F32, questions: I64) -> Iterator[Found]:
    """Yield the best answers x, ranked by ``cos(x, b) * cos(x, c) / (cos(x, a) + EPSILON)``.

    Each cosine is shifted to [0, 1].
    """
    error = error_of_cosines(matrix)

    def bounds(some: slice, tile: slice) -> F32:
        others = matrix[tile] * inverse[tile][:, None]
        given = questions[some]
        a, b, c = (matrix[rows] * inverse[rows][:, None] @ others.T for rows in given.T)
        least = np.maximum(a - error + 1, 0) / 2 + np.float32(EPSILON)
        upper: F32 = (b + error + 1) * (c + error + 1) / (4 * least) * np.float32(1 + 1e-6)
        return upper

    def scores(query: I64, row: I64) -> F64:
        parts = (cosines_of(matrix[given], matrix[row]) for given in questions[query].T)
        a, b, c = ((cosines + 1) / 2 for cosines in parts)
        return np.asarray(b * c / (np.maximum(a, 0) + EPSILON))

    shape = len(questions), *matrix.shape
    return best_rows(shape, bounds, scores, questions.tolist(), CANDIDATES)
