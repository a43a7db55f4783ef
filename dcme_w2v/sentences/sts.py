"""Evaluate sentence vectors on rated sentence pairs, such as the SemEval STS data sets."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dcme_w2v.errors import FormatError
from dcme_w2v.files.opening import read_lines
from dcme_w2v.files.paths import as_paths
from dcme_w2v.formats.corpus import expand
from dcme_w2v.numeric.arrays import F64, correlations
from dcme_w2v.numeric.nearest import cosines_of
from dcme_w2v.platform import PathLike
from dcme_w2v.text.tokenizer import TokenizeLike
from dcme_w2v.words.vectors import Vectors, for_text

from .options import EncodeOptions
from .pooling import Components
from .table import SentenceTable


@dataclass(frozen=True)
class StsSet:
    """The correlations of cosines with ratings for one file of sentence pairs."""

    name: str
    pearson: float
    spearman: float
    pairs: int
    zero_rows: int


@dataclass(frozen=True)
class StsScore:
    """The result of `eval_sts`.

    Attributes
    ----------
    sets : tuple of StsSet
        One for each file.
    skipped_lines : int
        Lines that are not "score TAB sentence TAB sentence", such as pairs without a score.
    """

    sets: tuple[StsSet, ...]
    skipped_lines: int

    @property
    def pearson(self) -> float:
        """Mean Pearson correlation over the files."""
        return float(np.mean([one.pearson for one in self.sets]))

    @property
    def spearman(self) -> float:
        """Mean Spearman correlation over the files."""
        return float(np.mean([one.spearman for one in self.sets]))

    def as_dict(self) -> dict[str, Any]:
        """Return the results as a dict for JSON output."""
        return {
            "pearson": self.pearson,
            "spearman": self.spearman,
            "skipped_lines": self.skipped_lines,
            "sets": [asdict(one) for one in self.sets],
        }


def eval_sts(
    vectors: PathLike | Vectors,
    pairs: PathLike | Sequence[PathLike] | Sequence[tuple[float, str, str]],
    *,
    pooling: str = "static",
    dim: int | None = None,
    tokenize: TokenizeLike = None,
) -> StsScore:
    r"""Compute the correlations between human ratings and the cosines of sentence vectors.

    Parameters
    ----------
    vectors : path or Vectors
        Word vectors. Without word counts, vectors are assumed to be in descending order of word
        frequency.
    pairs : path, sequence of paths, or sequence of a score and two sentences each
        Rated pairs of sentences, or files or folders with lines "score TAB sentence TAB sentence".
    pooling, dim, tokenize
        See `dcme_w2v.SentenceEncoder`. For ``usif``, the components are computed separately for
        each file.

    Returns
    -------
    StsScore
        Pearson's and Spearman's correlations for each file.

    Raises
    ------
    FormatError
        A file does not contain two pairs with different scores.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> from pathlib import Path
    >>> vectors = dw.Vectors(["tea", "coffee", "car"], [[2, 0], [2, 1], [0, 2]])
    >>> _ = Path("pairs.tsv").write_text("4.5\ttea\tcoffee\n0.5\ttea\tcar\n")
    >>> dw.eval_sts(vectors, "pairs.tsv", pooling="mean").sets[0].pairs
    2
    """
    options = EncodeOptions(pooling=pooling, dim=dim)
    table = SentenceTable(for_text(vectors, tokenize), options)
    sets, skipped = [], 0
    own: Any = pairs if isinstance(pairs, list | tuple) else ()
    is_list = bool(own) and all(isinstance(one, list | tuple) for one in own)
    for path in ["pairs"] if is_list else map(str, expand(as_paths(pairs))):
        lines = map(_line, own) if is_list else (line for _, line in read_lines(path))
        scores, sentences, others = _read(path, lines)
        rows = table.vectors_of(sentences)
        if pooling == "usif":
            rows = Components.of(rows).removed_from(rows)
        cosines = cosines_of(rows[::2], rows[1::2])
        zeros = int((~rows.any(axis=1)).sum())
        pearson, spearman = correlations(scores, cosines) if np.ptp(cosines) > 0 else (0.0, 0.0)
        sets.append(StsSet(path, pearson, spearman, len(scores), zeros))
        skipped += others
    return StsScore(tuple(sets), skipped)


def _line(pair: Any) -> bytes:
    """Format a score and two sentences as a tab-separated line."""
    return "\t".join(" ".join(str(one).split()) for one in pair).encode()


def _read(path: str, lines: Iterable[bytes]) -> tuple[F64, list[bytes], int]:
    """Parse lines into scores and sentence pairs; also return the number of skipped lines."""
    scores, sentences, skipped = [], [], 0
    for line in lines:
        score, *texts = line.rstrip(b"\r\n").split(b"\t")
        try:
            number = float(score)
        except ValueError:
            number = math.nan
        if len(texts) >= 2 and math.isfinite(number):
            scores.append(number)
            sentences += texts[:2]
        else:
            skipped += 1
    if len(scores) < 2 or len(set(scores)) < 2:
        raise FormatError(
            f"{path}: at least two pairs with different scores are required; on each line, write a "
            "score and two sentences, separated by tabs"
        )
    return np.array(scores), sentences, skipped
