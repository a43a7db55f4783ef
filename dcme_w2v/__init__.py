"""Word vectors, document vectors and many-class text classification."""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # not from typing, whose import takes as long as the rest
if TYPE_CHECKING:
    from typing import Any

    from dcme_w2v import errors as errors
    from dcme_w2v.cluster.estimator import MaxentClassifier as MaxentClassifier
    from dcme_w2v.cluster.train import train as train
    from dcme_w2v.few_labels.estimator import FusedFeatures as FusedFeatures
    from dcme_w2v.latent.estimator import LatentClassModel as LatentClassModel
    from dcme_w2v.scdv.estimator import SCDV as SCDV
    from dcme_w2v.words.vectors import Vectors as Vectors

__version__ = "0.1.0"

# Public name -> module, which is imported when the name is first used. A new name needs a line here
# and an import above for type checkers.
_MODULES = {
    "FusedFeatures": "dcme_w2v.few_labels.estimator",
    "LatentClassModel": "dcme_w2v.latent.estimator",
    "MaxentClassifier": "dcme_w2v.cluster.estimator",
    "SCDV": "dcme_w2v.scdv.estimator",
    "Vectors": "dcme_w2v.words.vectors",
    "errors": "dcme_w2v.errors",
    "train": "dcme_w2v.cluster.train",
}

__all__ = [
    "SCDV",
    "FusedFeatures",
    "LatentClassModel",
    "MaxentClassifier",
    "Vectors",
    "__version__",
    "errors",
]
__all__ += ["train"]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_MODULES[name])
    found = module if _MODULES[name] == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
