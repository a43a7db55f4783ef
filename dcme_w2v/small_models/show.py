"""The levels of a model, for `fuse levels`."""

from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.classify.model import load_classifier
from dcme_w2v.errors import UsageError
from dcme_w2v.few_labels.model import FusedModel

from .shrink import ShrunkModel


def levels_of(path: str) -> dict[str, Any]:
    """Return the levels of a model and its bytes on disk.

    Raises
    ------
    UsageError
        It has no levels.
    """
    model = load_classifier(path)
    evidence, weights = None, None
    if isinstance(model, FusedModel):
        evidence, tied = model.fitted.evidence, model.fitted.tied
        weights = tied.weights if tied is not None else None
    elif isinstance(model, ShrunkModel) and model.shrunk is not None:
        evidence = model.shrunk.evidence
    if evidence is None:
        raise UsageError(
            f"{path}: has no levels; fuse shrink gives the weights of any model levels"
        )
    count = len(evidence.values)
    found = np.bincount(evidence.levels.data.astype(np.int64) + count, minlength=2 * count + 1)
    levels = [
        {
            "level": k,
            "value": float(evidence.values[k - 1]),
            "weight": float(weights[k - 1]) if weights is not None else None,
            "positive": int(found[count + k]),
            "negative": int(found[count - k]),
        }
        for k in range(1, count + 1)
    ]
    size = sum(file.stat().st_size for file in Path(path).iterdir())
    return {"levels": levels, "pairs": int(evidence.levels.nnz), "bytes": size}
