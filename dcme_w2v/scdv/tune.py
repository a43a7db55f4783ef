"""The search for clusters and power on held-out labelled documents: ``scdv fit --tune``.

The candidates' document vectors are classified by the squared hinge loss, and the search is that of
`classify train --tune`, whose feature stage they are. Called by `dcme_w2v.cli.scdv`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, vstack

from dcme_w2v.classify.dataset import numbers_of
from dcme_w2v.classify.options import ClassifyOptions, resolved
from dcme_w2v.classify.tune import HINGE_CLASSES, Search, Setting, Tuned
from dcme_w2v.errors import CorpusError, UsageError
from dcme_w2v.formats.documents import Document
from dcme_w2v.scdv.fit import fit_documents
from dcme_w2v.scdv.model import DocumentModel
from dcme_w2v.scdv.options import ScdvOptions
from dcme_w2v.training.progress import Reporter
from dcme_w2v.words.vectors import Vectors

DOCUMENTS = 5000  # learned from and held out, at most: the rows of all candidates are in memory
CLUSTERS, POWERS = (20, 60, 120), (1.0, 0.5)
SEARCHED = {
    "scdv": ("clusters", "power"),
    "bowv": ("clusters", "power"),
    "weighted-average": ("power",),
    "average": ("power",),
}


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
        self._models: dict[int, DocumentModel] = {}
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
        counts = Counter(word for text in self._texts for word in set(text.split()))
        kept = [word for word, count in counts.items() if count >= self._options.min_df]
        if self._vectors.subwords is None:
            kept = [word for word in kept if word.decode() in self._vectors.words]
        return max(1, len(kept))

    def matrix(self, setting: Setting) -> csr_matrix:
        """Return the documents' rows."""
        own: dict[str, Any] = {name: setting[name] for name in self._searched if name in setting}
        options = dataclasses.replace(self._options, **own)
        if options not in self._rows:
            if options.clusters not in self._models:
                self._models[options.clusters] = fit_documents(
                    self._texts, self._vectors, options, threads=self._threads
                )
            model = dataclasses.replace(self._models[options.clusters], options=options)
            parts = list(model.transform(self._texts, self._threads))
            self._rows[options] = csr_matrix(vstack(parts, format="csr"))
        return self._rows[options]


class DocumentSearch(Search):
    """A search for the power first, which needs no other clusters, then for their number."""

    def __init__(self, sets: DocumentSets, *others: Any, **named: Any) -> None:
        super().__init__(sets, *others, **named)
        self._sets = sets

    def _stages(self) -> Sequence[Callable[[Setting], list[Setting]]]:
        return (self._powers, self._clusters)

    def _powers(self, best: Setting) -> list[Setting]:
        return [{**best, "power": power} for power in POWERS if "power" in best]

    def _clusters(self, best: Setting) -> list[Setting]:
        most = self._sets.most_clusters
        return [{**best, "clusters": min(n, most)} for n in CLUSTERS if "clusters" in best]


def tune_documents(
    documents: Sequence[Document],
    vectors: Vectors,
    options: ScdvOptions,
    fixed: Collection[str],
    seconds: float,
    threads: int | None = None,
    reporter: Reporter | None = None,
) -> tuple[ScdvOptions, Tuned]:
    """Choose the number of clusters and the power.

    Parameters
    ----------
    documents : sequence of Document
        Those with a label are used, 5,000 of them at most, drawn at random.
    vectors : Vectors
        Word vectors.
    options : ScdvOptions
        As given.
    fixed : collection of str
        Names of options that are not searched.
    seconds : float
        No trial is begun afterwards.
    threads : int, optional
    reporter : Reporter, optional

    Returns
    -------
    ScdvOptions
        The options with the choice.
    Tuned
        Its setting has the options of this search only.

    Raises
    ------
    UsageError
        Nothing is left to choose.
    CorpusError
        There are too few documents with labels, or all have the same.
    """
    given = f"--tune={seconds:g}"
    searched = [name for name in SEARCHED.get(options.features, ()) if name not in fixed]
    if not searched:
        raise UsageError(
            f"{given}: nothing is left to choose for --features={options.features}; omit it, or "
            "--clusters and --power"
        )
    labelled = [one for one in documents if one.labels]
    classes = sorted({label for one in labelled for label in one.labels})
    if len(classes) < 2:
        raise CorpusError(
            f"{given}: {len(labelled)} documents of {len(classes)} labels are too few to choose "
            'settings; give lines "label TAB text" of two labels or more, or omit it'
        )
    order = np.random.default_rng(options.seed).permutation(len(labelled))[:DOCUMENTS]
    some = [labelled[i] for i in np.sort(order)]
    sets = DocumentSets([one.text for one in some], vectors, options, searched, threads)
    loss = "hinge" if len(classes) <= HINGE_CLASSES else None
    wanted = ClassifyOptions(loss=loss, l2=0.0, threads=threads, seed=options.seed)
    judge = resolved(wanted, len(classes))
    labels = numbers_of([one.labels for one in some], classes)
    tuned = DocumentSearch(sets, labels, len(classes), judge, seconds, reporter=reporter).run()
    chosen: dict[str, Any] = {name: tuned.setting[name] for name in searched}
    return dataclasses.replace(options, **chosen), dataclasses.replace(tuned, setting=chosen)
