"""Memory and disk space required and available for a training run; for the trainer."""

import tempfile
from pathlib import Path
from typing import Any

from dcme_w2v._core.train import row_stride
from dcme_w2v.errors import OutOfMemoryError, ResourceError
from dcme_w2v.files.atomic import is_stream
from dcme_w2v.files.disk import free_bytes
from dcme_w2v.formats.vectors.subwords import WordNgrams
from dcme_w2v.formats.vectors.vectors_io import format_of
from dcme_w2v.numeric.memory import memory_limit
from dcme_w2v.platform import file_limit
from dcme_w2v.text.encode import EncodedCorpus
from dcme_w2v.training.checkpoint_folder import KEPT

from .job import TrainJob
from .options import TrainOptions

PROCESS_BYTES = 24 << 20  # Python, NumPy, this package
WORD_BYTES = 28  # count, offset, probability of being kept, cell of the noise distribution
SAVED_BYTES = 22  # at most, a word's count in a file
TREE_BYTES_A_WORD = 120  # paths of some 20 steps, and what building them takes
TEXT_BYTES_A_NUMBER = 13  # approximate bytes: sign, nine digits, point, space


def resource_estimate(
    job: TrainJob, corpus: EncodedCorpus, options: TrainOptions, ngrams: WordNgrams | None = None
) -> dict[str, Any]:
    """Return the required and available resources of a run, in tokens and bytes.

    ``disk`` lists the output folders with the bytes needed and free; folders on one file system
    share an entry. The tables of a cluster are collected in a temporary file; the memory of the
    workers is not included.
    """
    words, text = len(corpus.vocabulary), len(corpus.vocabulary.text)
    state = 0
    if options.objective == "dcme" and options.block == 1:
        state = options.clusters * words * (5 if options.dcme_update == "paper" else 17)
    tree = words * TREE_BYTES_A_WORD if options.objective == "hs" else 0
    buckets, lists = 0, 0
    if ngrams is not None:  # and the vectors of the words, which are means
        buckets = ngrams.options.buckets
        lists = ngrams.starts.nbytes + ngrams.numbers.nbytes + words * options.dim * 4
    rows = (4 if options.word_order else 2) * words + buckets
    tables = rows * row_stride(words + buckets, options.dim) * 4
    saving = words * SAVED_BYTES + text
    own = tables if job.cluster.cluster is None else 0
    training = own + words * WORD_BYTES + text + state + tree + lists
    memory = PROCESS_BYTES + max(training + saving, corpus.counting_bytes)
    checkpoint = rows * options.dim * 4 + text + 22 * words + state
    files = {}
    for path in (job.output, job.output_context):
        if path is not None and not is_stream(path):
            is_text = (job.format or format_of(path)) == "text"
            number_bytes = TEXT_BYTES_A_NUMBER if is_text else 4
            files[path] = words * options.dim * number_bytes + text
    if job.output_fasttext is not None and not is_stream(job.output_fasttext):
        files[job.output_fasttext] = rows * options.dim * 4 + text + 10 * words
    largest = list(files.values())
    if job.output_tables is not None:
        largest.append(words * options.dim * 4)
        files[job.output_tables] = rows * options.dim * 4 + text + 16 * words
    folders = [(Path(path).parent, size) for path, size in files.items()]
    if job.cluster.cluster is not None:
        folders.append((Path(job.cache_dir or tempfile.gettempdir()), tables))
    if job.checkpoints.folder is not None:
        largest += [max(words, buckets) * options.dim * 4, state]
        folders.append((Path(job.checkpoints.folder), (KEPT + 1) * checkpoint))
    return {
        "threads": options.threads,
        "vocabulary": words,
        "tokens": corpus.tokens,
        "distinct_words": corpus.types,
        "out_of_vocabulary": corpus.out_of_vocabulary,
        "memory_bytes": memory,
        "counting_bytes": corpus.counting_bytes,
        "memory_available_bytes": memory_limit(),
        "cache_bytes": len(corpus.ids) * 4,
        "output_bytes": sum(files.values()),
        "largest_file_bytes": max(largest, default=0),
        "file_limit_bytes": file_limit(),
        "checkpoint_bytes": checkpoint if job.checkpoints.folder else 0,
        "disk": _by_file_system(folders),
    }


def resource_shortage(plan: dict[str, Any]) -> ResourceError | None:
    """Return an error if there is not enough memory or disk space, otherwise None."""
    memory, limit = plan["memory_bytes"], plan["memory_available_bytes"]
    if limit is not None and memory > limit:
        return OutOfMemoryError(
            f"training needs {memory:,} bytes of memory, {limit:,} are available: lower --dim, "
            "--max-vocab, --clusters or --buckets, or raise --min-count"
        )
    longest, limit = plan["largest_file_bytes"], plan["file_limit_bytes"]
    if limit is not None and longest > limit:
        return ResourceError(
            f"vectors or checkpoints need a file of about {longest:,} bytes, the file-size limit "
            f"is {limit:,}: raise it with ulimit -f, or lower --dim"
        )
    for one in plan["disk"]:
        if one["bytes"] > one["free_bytes"]:
            return ResourceError(
                f"{one['folder']}: vectors and checkpoints need about {one['bytes']:,} bytes, "
                f"{one['free_bytes']:,} are free: free some space or choose another folder"
            )
    return None


def plan_line(plan: dict[str, Any]) -> str:
    """Return the required resources as one line."""
    disk = sum(one["bytes"] for one in plan["disk"])
    threads = f"{plan['threads']} thread" + "s" * (plan["threads"] != 1)
    return (
        f"training: {threads}, {plan['memory_bytes'] / 1e6:,.0f} MB of memory, "
        f"up to {disk / 1e6:,.0f} MB of disk"
    )


def _by_file_system(folders: list[tuple[Path, int]]) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for folder, size in folders:
        there = folder if folder.exists() else folder.parent
        entry = found.setdefault(
            there.stat().st_dev,
            {"folder": str(there), "bytes": 0, "free_bytes": free_bytes(there)},
        )
        entry["bytes"] += size
    return list(found.values())


def corpus_line(corpus: EncodedCorpus) -> str:
    """Return the size of a corpus as one line."""
    kept = f"{len(corpus.vocabulary):,} words in the vocabulary"
    line = f"{corpus.tokens:,} tokens in {corpus.lines:,} lines, {kept}"
    for name, count in (("replaced", corpus.replaced), ("skipped", corpus.skipped)):
        if count:
            line += f", {count:,} tokens that are not UTF-8 {name}"
    return line


def unk_line(corpus: EncodedCorpus, unk: str) -> str:
    """Return how many tokens became the word of --unk as one line."""
    if unk not in corpus.vocabulary:
        return f"warning: no vector for {unk}: all words are in the vocabulary"
    return f"{corpus.unk_tokens:,} tokens of other words are trained as {unk}"
