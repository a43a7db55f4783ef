"""The same texts under several settings of their features, counted once for each `--ngrams`."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from scipy.sparse import csr_matrix

from .dataset import Dataset
from .features import TextFeatures
from .options import MANY_FEATURES, FeatureOptions
from .tune import Setting

TOKENS = 1_000_000  # pairs of words are counted where the texts have no more words
NAMES = ("features", "ngrams", "weighting")


class KeptText(TextFeatures):
    """Features that keep their texts and counts.

    Attributes
    ----------
    texts, held : list of bytes
        The documents, and those that are held out.
    counts : csr_matrix
        Of the documents.
    """

    def fit_counts(
        self, documents: Iterable[bytes], most: Callable[[], int] | None = None
    ) -> csr_matrix:
        """Choose the columns and return the counts; reads the documents once."""
        self.texts: list[bytes] = list(documents)
        self.counts = super().fit_counts(self.texts, most)
        return self.counts

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
        self._kept, self._options, self._classes = kept, options, classes
        fixed = {*fixed, *(["features"] if options.hashing is not None else [])}
        by_token = options.by == "token"  # whose features are not words
        self._open = [name for name in NAMES if name not in fixed and not by_token]
        self._counted: dict[int, TextFeatures] = {options.ngrams: kept}
        self._counts = {options.ngrams: kept.counts}
        self._rows: dict[FeatureOptions, tuple[TextFeatures, csr_matrix]] = {}

    @staticmethod
    def widest(options: FeatureOptions, fixed: Collection[str]) -> FeatureOptions:
        """Return the options with as many features as any setting has."""
        if "features" in fixed or options.hashing is not None or options.by == "token":
            return options
        return replace(options, features=max(MANY_FEATURES, options.most_features))

    def choices(self) -> list[Setting]:
        """Return the settings to try, the setting of the options first."""
        present = {name: getattr(self._options, name) for name in self._open}
        few, many = self._options.most_features, self._options.features_of(self._classes)
        if "features" in present:
            present["features"] = many
        found: list[Setting] = [present]
        if "features" in present and min(many, self._kept.columns) > few:
            found.append({**present, "features": few})
        if "weighting" in present:
            found += [{**one, "weighting": "log"} for one in found]
        # first words count twice, and start further n-grams; in short texts all words do
        documents, n = self._kept.counts.shape[0], self._options.lead_ngrams or 1
        tokens = float(abs(self._kept.counts).sum())
        if lead := n * (self._options.lead or 0) * documents:
            tokens += documents * n * (n - 1) / 2
            tokens -= min(lead, tokens * n / (n + 1))
        if present.get("ngrams") == 1 and tokens <= TOKENS:
            found.append({**present, "ngrams": 2})
        return found

    def matrix(self, setting: Setting) -> csr_matrix:
        """Return the documents' rows."""
        return self.of(setting)[1]

    def of(self, setting: Setting) -> tuple[TextFeatures, csr_matrix]:
        """Return the features and the documents' rows."""
        own: dict[str, Any] = {name: setting[name] for name in self._open if name in setting}
        options = replace(self._options, **own)
        if options not in self._rows:
            if options.ngrams not in self._counts:
                text = TextFeatures(replace(self._kept.options, ngrams=options.ngrams))
                self._counts[options.ngrams] = text.fit_counts(self._kept.texts)
                self._counted[options.ngrams] = text
            text = self._counted[options.ngrams]
            self._rows[options] = text.narrowed(options, self._counts[options.ngrams])
        return self._rows[options]

    def dataset(self, read: Dataset, setting: Setting) -> Dataset:
        """Return the documents as read, with those held out, under a setting."""
        text, matrix = self.of(setting)
        held = text.transform(self._kept.held)
        return replace(read, text=text, matrix=matrix, held_matrix=held)
