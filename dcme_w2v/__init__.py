"""Train word vectors, document vectors, and text classifiers with many classes."""

import importlib

# Importing TYPE_CHECKING from `typing` would be slow. Type checkers treat this name as true.
TYPE_CHECKING = __name__ == ""
if TYPE_CHECKING:
    from typing import Any

    from dcme_w2v import errors
    from dcme_w2v.classify.estimator import MaxentClassifier
    from dcme_w2v.classify.text_classifier import TextClassifier
    from dcme_w2v.contents import info, load
    from dcme_w2v.few_labels.estimator import FusedFeatures
    from dcme_w2v.formats.columns import Table
    from dcme_w2v.latent.estimator import LatentClassModel
    from dcme_w2v.pages.explore import explore
    from dcme_w2v.plots.plot import plot
    from dcme_w2v.scdv.estimator import SCDV
    from dcme_w2v.search.searcher import Search
    from dcme_w2v.sentences.encoder import SentenceEncoder
    from dcme_w2v.sentences.folder import save_sentence_model
    from dcme_w2v.sentences.jobs import encode
    from dcme_w2v.sentences.sts import eval_sts
    from dcme_w2v.text.encode import vocab
    from dcme_w2v.text.phrases import phrases
    from dcme_w2v.words.check import check
    from dcme_w2v.words.classes import classes
    from dcme_w2v.words.compare import compare
    from dcme_w2v.words.evaluate import eval_analogies, eval_similarity
    from dcme_w2v.words.language_model import eval_likelihood
    from dcme_w2v.words.predictions import predict_word
    from dcme_w2v.words.train import train
    from dcme_w2v.words.vectors import Vectors

__version__ = "0.1.0"

# Maps each public name to its module, which is imported when one of its names is first used.
# To add a public name, add an entry here and, for type checkers, an import above.
_MODULES = {
    "FusedFeatures": "dcme_w2v.few_labels.estimator",
    "LatentClassModel": "dcme_w2v.latent.estimator",
    "MaxentClassifier": "dcme_w2v.classify.estimator",
    "SCDV": "dcme_w2v.scdv.estimator",
    "Search": "dcme_w2v.search.searcher",
    "SentenceEncoder": "dcme_w2v.sentences.encoder",
    "Table": "dcme_w2v.formats.columns",
    "TextClassifier": "dcme_w2v.classify.text_classifier",
    "Vectors": "dcme_w2v.words.vectors",
    "check": "dcme_w2v.words.check",
    "classes": "dcme_w2v.words.classes",
    "compare": "dcme_w2v.words.compare",
    "encode": "dcme_w2v.sentences.jobs",
    "errors": "dcme_w2v.errors",
    "eval_analogies": "dcme_w2v.words.evaluate",
    "eval_likelihood": "dcme_w2v.words.language_model",
    "eval_similarity": "dcme_w2v.words.evaluate",
    "eval_sts": "dcme_w2v.sentences.sts",
    "explore": "dcme_w2v.pages.explore",
    "info": "dcme_w2v.contents",
    "load": "dcme_w2v.contents",
    "phrases": "dcme_w2v.text.phrases",
    "plot": "dcme_w2v.plots.plot",
    "predict_word": "dcme_w2v.words.predictions",
    "save_sentence_model": "dcme_w2v.sentences.folder",
    "train": "dcme_w2v.words.train",
    "vocab": "dcme_w2v.text.encode",
}

__all__ = [
    "SCDV",
    "FusedFeatures",
    "LatentClassModel",
    "MaxentClassifier",
    "Search",
    "SentenceEncoder",
    "Table",
    "TextClassifier",
    "Vectors",
    "__version__",
    "check",
    "classes",
    "compare",
    "encode",
    "errors",
    "eval_analogies",
    "eval_likelihood",
    "eval_similarity",
    "eval_sts",
    "explore",
    "info",
    "load",
    "phrases",
    "plot",
    "predict_word",
    "save_sentence_model",
    "train",
    "vocab",
]


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        hints = importlib.import_module("dcme_w2v.hints")
        raise AttributeError(hints.no_attribute(f"module {__name__!r}", name, __all__))
    module = importlib.import_module(_MODULES[name])
    found = module if _MODULES[name] == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
