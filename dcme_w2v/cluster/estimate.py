"""Estimates of what a cluster takes and from how many tokens it pays, for --dry-run.

Each worker is taken to be a machine of its own, with the speed and the network below.
"""

from __future__ import annotations

from typing import Any

from dcme_w2v.cluster.engine import local_workers
from dcme_w2v.cluster.words import check_mixed, resolved_for, rounds_of, warning_of
from dcme_w2v.errors import UsageError
from dcme_w2v.options import TrainOptions
from dcme_w2v.training.progress import Reporter
from dcme_w2v.words.job import TrainJob

# Tokens times dimensions that a thread learns with 5 negative samples, by scripts/model_cluster.py
# --measure (AVX-512, 100 dimensions; 1.4e9 with 300).
NUMBERS_A_SECOND = 1.0e9
BYTES_A_SECOND = 1.25e9  # 10 Gbit/s
TASK_SECONDS = 0.0024  # that the scheduler takes for a task
BLOCKS = 32


def shards_of(job: TrainJob) -> int:
    """Return the number of shards, without a connection to the cluster."""
    assert job.cluster.cluster is not None
    local = local_workers(job.cluster.cluster)
    if job.cluster.shards is None and local is None:
        raise UsageError(f"--cluster={job.cluster.cluster}: --dry-run requires --shards, too")
    return job.cluster.shards or max(1, local or 0)


def estimate(job: TrainJob, options: TrainOptions, words: int, tokens: int) -> dict[str, Any]:
    """Return the figures of a run on a cluster, beside those of one machine.

    Parameters
    ----------
    job : TrainJob
    options : TrainOptions
        Resolved.
    words, tokens : int
        Of the vocabulary and the corpus.

    Returns
    -------
    dict
        `shards`, `rounds`, `tokens_a_round` of a shard, `bytes_a_round` that all workers send,
        `worker_memory_bytes`; seconds of an epoch on `one_machine` and on the cluster, both with
        the threads of one worker; and the tokens from which the cluster is faster.
    """
    shards = shards_of(job)
    rounds = rounds_of(job.rounds.rounds, options.epochs, tokens, shards)
    an_epoch = rounds / options.epochs
    tables = 8 * words * options.dim
    count = min(shards, BLOCKS)
    tasks = shards + 2 * count * (shards + 2)
    exchange = 2 * tables / BYTES_A_SECOND + tasks * TASK_SECONDS
    samples = (1 + (options.negative or 0)) / 6
    speed = NUMBERS_A_SECOND / options.dim / samples * (options.threads or 1)
    found: dict[str, Any] = {
        "shards": shards,
        "rounds": rounds,
        "tokens_a_round": round(tokens / shards / an_epoch),
        "bytes_a_round": 2 * (shards - 1) * tables,
        "worker_memory_bytes": round(tables * (3 + 2 / count)) + round(4 * tokens / shards),
        "epoch_seconds_on_one_machine": round(tokens / speed, 1),
        "epoch_seconds_on_the_cluster": round(tokens / speed / shards + an_epoch * exchange, 1),
    }
    if shards > 1:
        pays = speed * an_epoch * exchange * shards / (shards - 1)
        found["cluster_pays_from_tokens"] = round(pays)
    return found


def plan_of(
    job: TrainJob, options: TrainOptions, words: int, tokens: int, reporter: Reporter
) -> dict[str, Any]:
    """Return `estimate` of options that need not be resolved; warn of long rounds."""
    check_mixed(options)
    found = estimate(job, resolved_for(options, words, shards_of(job)), words, tokens)
    if warning := warning_of(found["shards"], found["rounds"]):
        reporter.message(warning)
    return found
