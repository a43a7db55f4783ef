"""Merging of models that were trained on the parts of a corpus: by weighted means of their rows.

A row of the merged table is the mean of the models' rows, weighted by the count of its word or
feature in the corpus of each model: the mixture weight of Mann et al. (2009) with weights by row.
"""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dcme_w2v import __version__
from dcme_w2v.classify import model as classify
from dcme_w2v.classify.model import COLUMNS, Classifier
from dcme_w2v.classify.trainer import LowRankWeights, Weights
from dcme_w2v.declarations import flag_of
from dcme_w2v.errors import FormatError, UsageError
from dcme_w2v.files.paths import Paths, Sidecar
from dcme_w2v.formats.model_folder import kind_of_model, replaces
from dcme_w2v.formats.vectors.manifest import read_manifest
from dcme_w2v.formats.vectors.vectors_io import MANIFEST, is_manifest, read_with, written_with
from dcme_w2v.formats.vocabulary import Vocabulary
from dcme_w2v.numeric.arrays import F32, I64, Array, mean_by_counts
from dcme_w2v.numeric.parallel import blocks_of_rows
from dcme_w2v.words import tables
from dcme_w2v.words.vectors import Vectors

VECTORS = "vectors"
SET_APART = ("threads", "deterministic", "format")  # options that do not change the numbers


def merge(sources: Sequence[str], output: str) -> str:
    """Merge word vectors, folders of both tables, or classifiers.

    Parameters
    ----------
    sources : sequence of str
        At least two, of one kind: .npy files of vectors, whose counts are beside them; folders of
        --output-tables; or classifiers. All have the same words (or features and classes), the same
        dimensions and the same training options.
    output : str
        A file of vectors, or the folder of a model of the same kind.

    Returns
    -------
    str
        What was merged, in one line.

    Raises
    ------
    UsageError
        The models are of several kinds, or have other words, dimensions or options; or `output`
        cannot be written.
    FormatError
        A model is corrupt, or has no counts.

    Examples
    --------
    >>> import dcme_w2v as dw
    >>> dw.count_words("corpus.txt", min_count=1).save("corpus.vocab")
    >>> for part in ("one.npy", "two.npy"):
    ...     _ = dw.train("corpus.txt", dim=8, threads=1, read_vocab="corpus.vocab", output=part)
    >>> dw.merge(["one.npy", "two.npy"], "whole.npy")
    '2 models of 60 vectors of 8 merged to whole.npy'
    """
    if len(sources) < 2:
        raise UsageError("give at least two models to merge")
    paths = Paths().reads("MODELS", *sources, sidecars=[b for s in sources for b in read_with(s)])
    kind = _kind_of(sources)
    if kind == VECTORS:
        manifest = Sidecar(f"{output}{MANIFEST}", is_manifest)
        paths.writes("--output", output, [*written_with(output, None), manifest])
    else:
        paths.model("--output", output, replaces(kind))
    paths.check()
    return _MERGES[kind](sources, output)


def _kind_of(sources: Sequence[str]) -> str:
    kinds = [kind_of_model(one) if Path(one).is_dir() else VECTORS for one in sources]
    for source, kind in zip(sources, kinds, strict=True):
        if kind not in _MERGES:
            raise UsageError(f"{source}: is a model of kind {kind}, which cannot be merged")
        if kind != kinds[0]:
            raise UsageError(
                f"{source}: is of kind {kind} and {sources[0]} of kind {kinds[0]}; give models of "
                "one kind"
            )
    return kinds[0]


# ---- word vectors ----


def _merge_vectors(sources: Sequence[str], output: str) -> str:
    found = [Vectors.load(source) for source in sources]
    counts = [_counts_of(source, one.counts) for source, one in zip(sources, found, strict=True)]
    _check_same(sources, [one.words.equals(found[0].words) for one in found], "words")
    _check_same(sources, [one.dim for one in found], "dimensions")
    options = [read_manifest(source).get("options") for source in sources]
    _check_options(sources, options)
    manifest = {"version": __version__, "options": options[0] or {}, "merged": list(sources)}
    merged = _merged([one.vectors for one in found], counts)
    words = found[0].words
    Vectors(words, merged, _vocabulary_counts(counts), manifest=manifest).save(output)
    return _line(len(sources), f"{len(words):,} vectors of {found[0].dim}", output)


def _merge_tables(sources: Sequence[str], output: str) -> str:
    found = [tables.load_tables(source) for source in sources]
    _check_same(sources, [one.vocabulary.equals(found[0].vocabulary) for one in found], "words")
    _check_same(sources, [one.input.shape[1] for one in found], "dimensions")
    _check_options(sources, [one.options for one in found])
    if any(one.neighbors is not None for one in found):
        raise FormatError(f"{sources[0]}: was trained with --word-order, which cannot be merged")
    own = [one.corpus_counts for one in found]
    input = _merged([one.input for one in found], own)
    context = _merged([one.output for one in found], own)
    counts = _vocabulary_counts([one.vocabulary.counts for one in found])
    words = found[0].vocabulary
    vocabulary = Vocabulary(words.text, words.offsets, counts)
    tables.save_tables(output, vocabulary, input, context, found[0].options, np.sum(own, axis=0))
    return _line(len(sources), f"{len(words):,} words of {input.shape[1]} dimensions", output)


def _vocabulary_counts(counts: Sequence[I64]) -> I64:
    """Return the sum of the counts; counts of one vocabulary that all trainings read are kept."""
    same = all(np.array_equal(one, counts[0]) for one in counts)
    return np.asarray(counts[0]) if same else np.sum(counts, axis=0)


# ---- classifiers ----


def _merge_classifiers(sources: Sequence[str], output: str) -> str:
    found = [Classifier.load(source) for source in sources]
    first, counts = found[0], []
    for source, one in zip(sources, found, strict=True):
        if isinstance(one.weights, LowRankWeights):
            raise UsageError(f"{source}: is of low rank (--rank), whose factors have no mean")
        counts.append(_counts_of(source, one.counts))
    _check_same(sources, [(one.classes, one.multilabel) for one in found], "classes")
    _check_same(sources, [one.weights.features for one in found], "features")
    arrays, described = zip(*map(_stored_text, found), strict=True)
    _check_same(sources, described, "options of features")
    idf = [one.pop("idf", None) for one in arrays]
    _check_same(sources, arrays, "features")
    _check_same(sources, idf, "idf weights")
    _check_options(sources, [dataclasses.asdict(one.options) for one in found])
    weights = Weights(first.weights.features, len(first.classes), first.options.bias)
    weights.set(_merged([one.weights.get() for one in found], counts))
    shares = np.array([one[-1] for one in counts]) / max(sum(one[-1] for one in counts), 1)
    weights.offset[:] = np.sum(
        [s * one.weights.offset for s, one in zip(shares, found, strict=True)], axis=0
    )
    threshold = float(shares @ [one.threshold for one in found])
    calibration = None
    _check_same(sources, [one.calibration is None for one in found], "probabilities")
    if first.calibration is not None:
        a, b = shares @ np.array([one.calibration for one in found])
        calibration = (float(a), float(b))
    texts = [one.text for one in found if one.text is not None]
    if pairs := [text.tag_pairs for text in texts if text.tag_pairs is not None]:
        texts[0].tag_pairs = np.sum(pairs, axis=0)
    record = {
        "documents": int(sum(one[-1] for one in counts)),
        "merged": list(sources),
        COLUMNS: first.record.get(COLUMNS),
    }
    Classifier(
        first.classes, first.text, first.options, first.multilabel, threshold, record,
        calibration, weights=weights, counts=np.sum(counts, axis=0),
    ).save(output)  # fmt: skip
    what = f"{weights.features:,} features and {len(first.classes):,} classes"
    return _line(len(sources), what, output)


def _stored_text(one: Classifier) -> tuple[dict[str, bytes], dict[str, Any]]:
    """Return what models must have in common: the arrays of the features, without counts."""
    arrays: dict[str, Array] = {}
    described: dict[str, Any] = {}
    classify.store_text(one.text, arrays, described)
    arrays.pop("tag_pairs", None)  # counts, which are added
    return {name: array.tobytes() for name, array in arrays.items()}, described


# ---- all ----

_ADVICE = "train all parts with the same words (--read-vocab), classes and options"


def _merged(parts: Sequence[F32], counts: Sequence[I64]) -> F32:
    """Return the weighted mean of tables; rows that no corpus has keep the plain mean."""
    merged = np.empty(parts[0].shape, dtype=np.float32)
    nowhere = np.sum(counts, axis=0) == 0
    for rows in blocks_of_rows(len(merged)):
        weights = [np.where(nowhere[rows], 1, one[rows]) for one in counts]
        merged[rows] = mean_by_counts(parts[0][rows], [one[rows] for one in parts], weights)
    return merged


def _counts_of(source: str, counts: I64 | None) -> I64:
    if counts is None:
        raise FormatError(
            f"{source}: has no counts; give .npy files with their .vocab files, folders of "
            "--output-tables, or classifiers"
        )
    return counts


def _check_same(sources: Sequence[str], values: Sequence[object], what: str) -> None:
    """Raise where a value differs from the first."""
    for source, one in zip(sources, values, strict=True):
        if one != values[0]:
            found = f"other {what} than {sources[0]}"
            if isinstance(one, int) and not isinstance(one, bool):
                found = f"{one:,} {what} and {sources[0]} has {values[0]:,}"
            raise UsageError(f"{source}: has {found}; {_ADVICE}")


def _check_options(sources: Sequence[str], options: Sequence[Mapping[str, Any] | None]) -> None:
    """Raise where an option that decides what a table means differs; the seed is one of them.

    Tables of other seeds start from other random rows: their directions have nothing in common.
    """
    for source, one in zip(sources, options, strict=True):
        for name, value in (one or {}).items():
            other = (options[0] or {}).get(name, value)
            if value != other and name not in SET_APART:
                raise UsageError(
                    f"{source}: has {flag_of(name)}={value} and {sources[0]} {other}; {_ADVICE}"
                )


def _line(count: int, what: str, output: str) -> str:
    return f"{count} models of {what} merged to {os.fspath(output)}"


_MERGES = {
    VECTORS: _merge_vectors,
    tables.KIND: _merge_tables,
    classify.KIND: _merge_classifiers,
}
