"""The same texts under several settings of their features, counted once for each n-gram length."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from dcme_w2v.formats.vocabulary import Words

from .dataset import Dataset
from .features import Choose, TextFeatures
from .options import MANY_FEATURES, SUBWORDS, FeatureOptions
from .tune import Setting

KEPT_BYTES = 1 << 23  # all pairs of words, and subwords, are counted where texts are no longer
SHORT_TEXT = 256  # mean bytes of a document; with few of these, words are rarely seen twice
NAMES = ("features", "ngrams", "lead_ngrams", "subwords", "weighting")


class KeptText(TextFeatures):
    """Features that keep their texts and counts.

    Parameters
    ----------
    options : FeatureOptions
        Options of the features.
    keeps_all : bool
        Whether texts are kept that are longer than `KEPT_BYTES`.

    Attributes
    ----------
    texts, held : list of bytes
        The documents, if they are kept, and those that are held out.
    counts : csr_matrix
        Of the documents.
    """

    def __init__(self, options: FeatureOptions, keeps_all: bool = True) -> None:
        super().__init__(options)
        self._keeps_all, self._bytes = keeps_all, 0
        self.texts: list[bytes] = []
        self._choose: Choose | None = None

    @property
    def is_short(self) -> bool:
        """Whether all pairs of words, and subwords, are counted."""
        return self._bytes <= KEPT_BYTES

    @property
    def has_short_texts(self) -> bool:
        """Whether documents are so short that subwords predict better if there are few of them."""
        return self.is_short and self._bytes <= SHORT_TEXT * len(self.texts)

    def _keeping(self, documents: Iterable[bytes]) -> Iterator[bytes]:
        for text in documents:
            self._bytes += len(text)
            self.texts.append(text)
            if not self._keeps_all and not self.is_short:
                self.texts.clear()
            yield text

    def _note_counts(self, choose: Choose) -> None:
        self._choose = choose

    def fit_counts(
        self, documents: Iterable[bytes], most: Callable[[], int] | None = None
    ) -> csr_matrix:
        """Choose the columns and return the counts; reads the documents once."""
        self.counts = super().fit_counts(self._keeping(documents), most)
        return self.counts

    def with_lengths(self, options: FeatureOptions, most: int) -> tuple[TextFeatures, csr_matrix]:
        """Return features with other n-grams and their counts; single words are counted already."""
        own = ("ngrams", "lead_ngrams", "subwords")
        options = replace(self.options, **{name: getattr(options, name) for name in own})
        if self._choose is not None and _lengths(options) == (1, 1, self.options.subword_lengths):
            names, counts = self._choose(most, is_single=True)
            idf = np.ones(len(names), dtype=np.float32)
            return TextFeatures.restored(options, Words.from_words(names), idf), counts
        text = TextFeatures(options)
        return text, text.fit_counts(self.texts, lambda: most)

    def transform(self, documents: Iterable[bytes]) -> csr_matrix:
        """Return documents as rows."""
        self.held: list[bytes] = list(documents)
        return super().transform(self.held)


class FeatureSets:
    """Settings of the features of texts, and the documents' rows under each.

    Parameters
    ----------
    kept : KeptText
        With the widest setting; see `widest`.
    options : FeatureOptions
        As given.
    fixed : collection of str
        Options that are not searched.
    classes : int
        Number of classes.
    """

    def __init__(
        self, kept: KeptText, options: FeatureOptions, fixed: Collection[str], classes: int
    ) -> None:
        self._kept, self._options, self._classes = kept, options.resolved(), classes
        fixed = {*fixed, *(["features", "subwords"] if options.hashing is not None else [])}
        fixed |= {"lead_ngrams"} if "ngrams" in fixed or self._options.lead_ngrams == 1 else set()
        by_token = options.by == "token"  # whose features are not words
        self._open = [name for name in NAMES if name not in fixed and not by_token]
        self._counted: dict[tuple[int, int, tuple[int, int]], tuple[TextFeatures, csr_matrix]] = {}
        self._counted[_lengths(self._options)] = kept, kept.counts
        self._rows: dict[FeatureOptions, tuple[TextFeatures, csr_matrix]] = {}

    @staticmethod
    def widest(options: FeatureOptions, fixed: Collection[str]) -> FeatureOptions:
        """Return the options with as many features as any setting has."""
        if "features" in fixed or options.hashing is not None or options.by == "token":
            return options
        return replace(options, features=max(MANY_FEATURES, options.most_features))

    def choices(self) -> list[Setting]:
        """Return the settings to try, the setting of the options first."""
        present: dict[str, Any] = {name: getattr(self._options, name) for name in self._open}
        few, many = self._options.most_features, self._options.features_of(self._classes)
        if "features" in present:
            present["features"] = many
        found: list[Setting] = [present]
        if "features" in present and min(many, self._kept.columns) > few:
            found.append({**present, "features": few})
        if "weighting" in present:
            found += [{**one, "weighting": "log"} for one in found]
        if "lead_ngrams" in present:
            found.append({**present, "lead_ngrams": 1})
        if present.get("ngrams") == 1 and self._kept.is_short:
            found.append({**present, "ngrams": 2})
        if "subwords" in present and self._kept.is_short:
            found.append({**present, "subwords": SUBWORDS})
        return found

    def simple(self, is_few: bool) -> Setting:
        """Return the setting of the first trials: single words, or subwords of few short texts."""
        if is_few and "subwords" in self._open and self._kept.has_short_texts:
            return {"subwords": SUBWORDS}
        return {"lead_ngrams": 1} if "lead_ngrams" in self._open else {}

    def matrix(self, setting: Setting) -> csr_matrix:
        """Return the documents' rows."""
        return self.of(setting)[1]

    def of(self, setting: Setting) -> tuple[TextFeatures, csr_matrix]:
        """Return the features and the documents' rows."""
        own: dict[str, Any] = {name: setting[name] for name in self._open if name in setting}
        options = replace(self._options, **own)
        most = options.features_of(self._classes)
        if options not in self._rows:
            if (lengths := _lengths(options)) not in self._counted:
                self._counted[lengths] = self._kept.with_lengths(options, most)
            text, counts = self._counted[lengths]
            self._rows[options] = text.narrowed(options, counts, most)
        return self._rows[options]

    def dataset(self, read: Dataset, setting: Setting) -> Dataset:
        """Return the documents as read, with those held out, under a setting."""
        text, matrix = self.of(setting)
        held = text.transform(self._kept.held)
        return replace(read, text=text, matrix=matrix, held_matrix=held)


def _lengths(options: FeatureOptions) -> tuple[int, int, tuple[int, int]]:
    """Return the longest n-grams of all words, of the first ones, and of characters."""
    everywhere = options.ngrams or 1
    return everywhere, max(everywhere, options.lead_ngrams or 1), options.subword_lengths
