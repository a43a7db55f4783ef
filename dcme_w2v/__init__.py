"""Word vectors, document vectors and many-class text classification."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # not from typing, whose import takes as long as the rest
if TYPE_CHECKING:
    from typing import Any

    from dcme_w2v import errors
    from dcme_w2v.cluster.estimator import MaxentClassifier
    from dcme_w2v.cluster.train import train
    from dcme_w2v.explore.info import describe
    from dcme_w2v.explore.page import explore_page
    from dcme_w2v.few_labels.estimator import FusedFeatures
    from dcme_w2v.formats.columns import Table
    from dcme_w2v.latent.estimator import LatentClassModel
    from dcme_w2v.merging import merge
    from dcme_w2v.plots.points import plot
    from dcme_w2v.scdv.estimator import SCDV
    from dcme_w2v.sentences.encoder import SentenceEncoder
    from dcme_w2v.sentences.folder import save_sentence_model
    from dcme_w2v.sentences.jobs import encode_files
    from dcme_w2v.sentences.sts import eval_sts
    from dcme_w2v.text.encode import count_words
    from dcme_w2v.text.phrases import phrases
    from dcme_w2v.words.check import check_vectors
    from dcme_w2v.words.classes import word_classes
    from dcme_w2v.words.evaluate import eval_analogies, eval_similarity
    from dcme_w2v.words.language_model import eval_likelihood
    from dcme_w2v.words.predictions import predict_word, score
    from dcme_w2v.words.vectors import Vectors

__version__ = "0.1.0"

# A module, imported when one of its public names, which follow, is first used. A new name needs
# an import above for type checkers, too.
_MODULES = {
    name: f"{__name__}.{module}"
    for module, *names in map(
        str.split,
        """
few_labels.estimator FusedFeatures
latent.estimator LatentClassModel
cluster.estimator MaxentClassifier
scdv.estimator SCDV
formats.columns Table
sentences.encoder SentenceEncoder
words.vectors Vectors
words.check check_vectors
text.encode count_words
explore.info describe
sentences.jobs encode_files
errors errors
words.evaluate eval_analogies eval_similarity
words.language_model eval_likelihood
sentences.sts eval_sts
explore.page explore_page
merging merge
text.phrases phrases
plots.points plot
words.predictions predict_word score
sentences.folder save_sentence_model
cluster.train train
words.classes word_classes
""".strip().splitlines(),
    )
    for name in names
}

__all__ = [
    "SCDV",
    "FusedFeatures",
    "LatentClassModel",
    "MaxentClassifier",
    "SentenceEncoder",
    "Table",
    "Vectors",
    "__version__",
    "check_vectors",
    "count_words",
    "describe",
    "encode_files",
    "errors",
    "eval_analogies",
    "eval_likelihood",
    "eval_similarity",
    "eval_sts",
    "explore_page",
    "merge",
    "phrases",
    "plot",
    "predict_word",
    "save_sentence_model",
    "score",
    "train",
    "word_classes",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        habits = importlib.import_module("dcme_w2v.words.habits")
        owner = f"module {__name__!r}"
        raise AttributeError(habits.attribute_advice(habits.NAMES, owner, name, __all__))
    module = importlib.import_module(_MODULES[name])
    found = module if _MODULES[name] == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
