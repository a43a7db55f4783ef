"""`scdv fit --tune`: the search for settings of document vectors on held-out labeled documents.

The vectors of each candidate are classified with the squared hinge loss. The search is the same as
for `classify train --tune`, with other candidates. In the end, the best setting is compared with
the mean of the word vectors and with tf-idf.
"""

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from dcme_w2v.classify.dataset import numbers_of
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.tune import HINGE_CLASSES, Search, Setting, Tuned
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.documents import Document
from dcme_w2v.training.progress import QUIET, Reporter
from dcme_w2v.words.vectors import Vectors

from .fit import count_words, fit_documents
from .model import DocumentModel
from .options import ScdvOptions
from .options import resolved as resolved_vectors

DOCUMENTS = 5000  # training and held-out, at most: the rows of all candidates are in memory
CANDIDATES: dict[str, tuple[Any, ...]] = {  # in the order of the search
    "power": (1.0, 0.5),
    "tfidf": (0.0, 1.0, 2.0, 4.0),
    "center": (False, True),
    "clusters": (20, 60, 120),
}
COMPOSED = ("power", "tfidf", "center")
SEARCHED = {
    "scdv": (*COMPOSED, "clusters"),
    "bowv": (*COMPOSED, "clusters"),
    "weighted-average": COMPOSED,
    "average": COMPOSED,
}
BASELINES = ("weighted-average", "tfidf")


class DocumentSets:
    """Vectors of the same documents under several settings.

    Parameters
    ----------
    texts : sequence of bytes
        The documents.
    vectors : Vectors
        Word vectors.
    options : ScdvOptions
        As given.
    searched : collection of str
        Options that are searched.
    threads : int, optional
    """

    def __init__(
        self,
        texts: Sequence[bytes],
        vectors: Vectors,
        options: ScdvOptions,
        searched: Collection[str],
        threads: int | None,
    ) -> None:
        self._texts, self._vectors, self._threads = texts, vectors, threads
        self._options, self._searched = options, searched
        self._models: dict[tuple[Any, ...], DocumentModel] = {}
        self._rows: dict[ScdvOptions, csr_matrix] = {}

    def choices(self) -> list[Setting]:
        """Return the setting of the options; `DocumentSearch` has the others."""
        present = {name: getattr(self._options, name) for name in self._searched}
        if "clusters" in present:
            present["clusters"] = min(present["clusters"], self.most_clusters)
        return [present]

    @functools.cached_property
    def most_clusters(self) -> int:
        """The number of words with vectors."""
        counted = count_words(self._texts, self._vectors, self._options)
        return max(1, counted.with_vectors)

    def matrix(self, setting: Setting) -> csr_matrix:
        """Return the documents' rows."""
        own: dict[str, Any] = {name: setting[name] for name in self._searched if name in setting}
        options = replace(self._options, **own)
        if "features" in setting:
            options = ScdvOptions(features=setting["features"], min_df=self._options.min_df)
            options = resolved_vectors(options)
        if options not in self._rows:
            key = options.features, options.clusters, options.center
            if key not in self._models:  # a model with tf-idf serves all its weights
                fitted = replace(options, tfidf=options.tfidf or 1.0)
                self._models[key] = fit_documents(
                    self._texts, self._vectors, fitted, threads=self._threads
                )
            model = replace(self._models[key], options=options)
            parts = list(model.transform(self._texts, self._threads))
            self._rows[options] = vstack(parts, format="csr")
        return self._rows[options]


class DocumentSearch(Search):
    """A search for one option after the other; the options that need other clusters are last."""

    def __init__(self, sets: DocumentSets, *others: Any, **named: Any) -> None:
        super().__init__(sets, *others, **named)
        self._sets = sets

    def _stages(self) -> Sequence[Callable[[Setting], list[Setting]]]:
        return (*(functools.partial(self._values, name) for name in CANDIDATES), self._baselines)

    def _values(self, name: str, best: Setting) -> list[Setting]:
        values = CANDIDATES[name] if name in best else ()
        if name == "clusters":
            values = tuple(min(n, self._sets.most_clusters) for n in values)
        return [{**best, name: value} for value in values]

    def _baselines(self, best: Setting) -> list[Setting]:
        return [{**best, "features": name} for name in BASELINES]


def tune_documents(
    documents: Sequence[Document],
    vectors: Vectors,
    options: ScdvOptions,
    fixed: Collection[str],
    seconds: float,
    threads: int | None = None,
    reporter: Reporter = QUIET,
) -> tuple[ScdvOptions, Tuned, str]:
    """Choose the number of clusters, the power, the weight of tf-idf and the centering.

    Parameters
    ----------
    documents : sequence of Document
        At most 5,000 documents with a label are used, sampled at random.
    vectors : Vectors
        Word vectors.
    options : ScdvOptions
        As given.
    fixed : collection of str
        Names of options that are not searched.
    seconds : float
        No trial starts after this time.
    threads : int, optional
    reporter : Reporter, optional

    Returns
    -------
    ScdvOptions
        The options with the choice.
    Tuned
        Its setting has only the options of this search.
    str
        A note if the mean of the vectors or tf-idf is better on the held-out documents, else "".

    Raises
    ------
    UsageError
        Nothing is left to choose.
    CorpusError
        There are too few documents with labels, or all have the same.
    """
    given, options = f"--tune={seconds:g}", resolved_vectors(options)
    searched = [name for name in SEARCHED.get(options.features, ()) if name not in fixed]
    if not searched:
        raise UsageError(
            f"{given}: nothing is left to choose for --features={options.features}; omit it, or "
            "the options that --tune searches"
        )
    labeled = [one for one in documents if one.labels]
    classes = sorted({label for one in labeled for label in one.labels})
    if len(classes) < 2:
        raise CorpusError(
            f"{given}: {len(labeled)} documents of {len(classes)} labels are too few to choose "
            'settings; give lines "label TAB text" of two labels or more, or omit it'
        )
    order = np.random.default_rng(options.seed).permutation(len(labeled))[:DOCUMENTS]
    some = [labeled[i] for i in np.sort(order)]
    sets = DocumentSets([one.text for one in some], vectors, options, searched, threads)
    loss = "hinge" if len(classes) <= HINGE_CLASSES else None
    wanted = ClassifyOptions(loss=loss, l2=0.0, threads=threads, seed=options.seed)
    judge = resolved(wanted, len(classes))
    labels = numbers_of([one.labels for one in some], classes)
    tuned = DocumentSearch(sets, labels, len(classes), judge, seconds, reporter=reporter).run()
    chosen: dict[str, Any] = {name: tuned.setting[name] for name in searched}
    winner, note = tuned.setting.get("features"), ""
    if winner is not None:
        kind = "tf-idf" if winner == "tfidf" else "the mean of the word vectors"
        note = f"; {kind} alone has this accuracy, which is better: --features {winner}"
    return replace(options, **chosen), replace(tuned, setting=chosen), note
