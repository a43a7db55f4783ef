"""Compress models after training or with `classify shrink`; limit the file size if requested."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v.errors import UsageError
from dcme_w2v.files.atomic import STANDARD
from dcme_w2v.files.space import write_with_fallback
from dcme_w2v.formats.artifact import check_model_target
from dcme_w2v.numeric.sparse_rows import CompressedRows, is_dense
from dcme_w2v.training.progress import ProgressLike, Reporter, reporting_to

from . import predict
from .constants import IDLE_IMPACT, SMALL
from .labeled import Labeled
from .model import Classifier, load_classifier
from .options import MAX_LEVELS, ShrinkOptions
from .shrink import KIND, ShrunkModel, WeightRanking, ranking_of, shrink
from .trainer import Weights

USED = 0.99  # stop searching when a model uses this fraction of the allowed file size

Measure = Callable[[Classifier], float]


def shrink_file(
    path: str,
    output: str,
    options: ShrinkOptions,
    holdout: Sequence[str] = (),
    labels: str | None = None,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> dict[str, Any]:
    """Write a compressed copy of a model file, and return its statistics.

    Parameters
    ----------
    path, output : str
        The files.
    options : ShrinkOptions
    holdout : sequence of str
        Labeled documents on which both models are measured.
    labels : str, optional
        File with the labels of the rows if `holdout` is an .npz file.

    Returns
    -------
    dict
        `levels`, `pairs`, `features`, `bytes`, `bytes_before`; with `holdout` also `accuracy`,
        `accuracy_before`, and `chose_levels`, whether these documents chose the levels.

    Raises
    ------
    UsageError
        The model has no linear weights, or no model is as small as required.
    """
    check_model_target(output, KIND)
    model = load_classifier(path)
    if not isinstance(model, Classifier):
        raise UsageError(
            f"{path}: this model has no feature weights that can be shrunk; use a linear classifier"
        )
    if STANDARD in map(str, holdout):
        raise UsageError(
            "--holdout=- is not supported, because the held-out documents are read twice; use a "
            "file"
        )

    def accuracy(one: Classifier) -> float:
        return predict.main_measure(predict.test(one, holdout, labels, threads))

    with reporting_to(progress) as reporter:
        figures: dict[str, Any] = {}
        if holdout:
            reporter.stage("measuring", None, "models")
            figures["accuracy_before"] = accuracy(model)
        if options.max_bytes is None:
            small = shrink(model, options)
        else:
            small = within(model, accuracy if holdout else None, reporter, options)
        if holdout:
            figures["accuracy"] = accuracy(small)
            figures["chose_levels"] = options.max_bytes is not None
        write_with_fallback((output, "model", small.save))
        return {
            "levels": small.coding.levels, **{n: small.record[n] for n in ("pairs", "features")},
            "bytes": small.size(), "bytes_before": Path(path).stat().st_size, **figures,
        }  # fmt: skip


def compressed(
    model: Classifier,
    data: Labeled,
    held: Labeled | None,
    reporter: Reporter,
    max_bytes: int | None = None,
) -> tuple[Classifier, Labeled | None]:
    """Compress a trained model if that is worthwhile; adapt held-out documents to its columns.

    Parameters
    ----------
    model : Classifier
    data : Labeled
        The documents that the model was trained on; by default, all weights that matter for them
        are kept.
    held : Labeled or None
        Held-out documents, which choose the number of levels if `max_bytes` is given.
    reporter : Reporter
    max_bytes : int, optional
    """

    def measure(one: Classifier) -> float:
        assert held is not None
        return predict.main_measure(predict.measured(one, _in_columns(held, one)))

    small: Classifier
    if max_bytes is None:
        small = _without_idle(model, data)
    else:
        own = None if held is None else measure
        small = within(model, own, reporter, ShrinkOptions(max_bytes=max_bytes))
    return small, None if held is None else _in_columns(held, small)


def _in_columns(rows: Labeled, model: Classifier) -> Labeled:
    """Select the columns that a compressed model uses from the rows of documents."""
    if not isinstance(model, ShrunkModel) or model.text is None:
        return rows
    assert model.origin is not None and isinstance(rows.matrix, CompressedRows)
    place = np.full(rows.matrix.shape[1], -1)
    place[model.origin] = np.arange(len(model.origin))
    return replace(rows, matrix=rows.matrix.in_columns(place, len(model.origin)))


def _without_idle(model: Classifier, data: Labeled) -> Classifier:
    """Drop the weights that hardly affect the scores.

    Models with few weights are not changed, nor are models of dense rows, whose columns may cancel
    out.
    """
    weights, squares, rows = model.weights, None, data.matrix
    if not isinstance(weights, Weights) or weights.features * weights.classes <= SMALL[0]:
        return model
    if is_dense(rows):
        return model
    if model.text is None:
        values = np.square(rows.data, dtype=np.float64)
        if data.weights is not None:
            values *= np.repeat(data.weights, np.diff(rows.indptr))
        squares = np.bincount(rows.indices, values, rows.shape[1]).astype(np.float64)
    ranking = ranking_of(model, squares)
    count = ranking.count_without_impact(IDLE_IMPACT)
    shrunk = ranking.shrunk(MAX_LEVELS, count)
    del ranking  # free the ranking's memory
    small = shrink(model, ShrinkOptions(levels=MAX_LEVELS, keep=str(count)), shrunk)
    return replace(small, record={**model.record, **small.record})


def within(
    model: Classifier, measure: Measure | None, reporter: Reporter, options: ShrinkOptions
) -> ShrunkModel:
    """Find the best compressed model whose file has at most `options.max_bytes` bytes.

    For each number of levels, as many weights are kept as fit. The model with the highest accuracy
    is returned. If accuracies are equal or there is no measure, the model with the lowest loss is
    returned.
    """
    assert options.max_bytes is not None
    if options.keep is not None:
        raise UsageError(
            "--max-bytes is not supported with --keep, because the file size determines how many "
            "weights are kept; omit --keep"
        )
    ranking, smallest, count = ranking_of(model), 1 << 62, options.max_bytes // 2
    best: tuple[float, float, ShrunkModel] | None = None

    def is_better(levels: int) -> bool:
        """Compress the model to a number of levels; return whether the result is a new best."""
        nonlocal best, count, smallest
        chosen = replace(options, levels=levels)
        fitting, size = _largest(model, chosen, ranking, count)
        if fitting is None:
            smallest = min(smallest, size)
            return False
        count = fitting.record["pairs"]
        value = measure(fitting) if measure is not None else 0.0
        shown = f", accuracy {value:.4f}" if measure is not None else ""
        reporter.message(
            f"with {levels} quantization levels, {count:,} of {ranking.count:,} weights fit into "
            f"{size:,} bytes{shown}"
        )
        if best is not None and (value, -fitting.record["loss"]) <= best[:2]:
            return False
        best = value, -fitting.record["loss"], fitting
        return True

    fewer, more = (2, 4, 8), (16, 32, 64, MAX_LEVELS)
    for side in (more, fewer[::-1]):
        for levels in side:
            if not is_better(levels) and measure is None and best is not None:
                break  # the loss has a single minimum, and the search has passed it
        if measure is None and best is not None and best[2].coding.levels != more[0]:
            break
    if best is None:
        raise UsageError(
            f"--max-bytes={options.max_bytes}: the smallest possible model requires {smallest:,} "
            "bytes; raise --max-bytes"
        )
    return best[2]


def _largest(
    model: Classifier, options: ShrinkOptions, ranking: WeightRanking, guess: int
) -> tuple[ShrunkModel | None, int]:
    """Return the largest model of at most `options.max_bytes` bytes, and its size.

    If no model is small enough, return None and the smallest possible size.

    Starting from a first guess, the number of weights grows by 10% to 100% until the model no
    longer fits. It is then interpolated between the last two numbers, so that models far larger
    than `options.max_bytes` are never built.
    """
    limit = options.max_bytes or 0

    def made(count: int) -> tuple[ShrunkModel, int]:
        shrunk = ranking.shrunk(options.levels, count)
        found = shrink(model, replace(options, keep=str(count)), shrunk)
        return found, found.size()

    best, used = made(1)
    if used > limit:
        return None, used
    low, high, above = 1, ranking.count + 1, 0
    for _ in range(2 * ranking.count.bit_length()):
        if used > USED * limit or high - low < 2:
            break
        if above:
            share = ((1 + USED) / 2 * limit - used) / (above - used)
            middle = low + round(min(max(share, 0.05), 0.95) * (high - low))
        else:
            room = min(max(limit / used, 1.1), 2.0)
            middle = min(guess if low == 1 else round(low * room) + 1, ranking.count)
        middle = min(max(middle, low + 1), high - 1)
        tried, size = made(middle)
        if size <= limit:
            # A model stops growing once most additional weights are rounded to level 0.
            more = tried.record["pairs"] - best.record["pairs"]
            is_full = not above and 2 * more < middle - low
            low, best, used = middle, tried, size
            if is_full:
                break
        else:
            high, above = middle, size
        del tried  # free this model's memory before the next trial
    return best, used
