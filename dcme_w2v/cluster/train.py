"""`dcme_w2v.train`, and training jobs of word vectors on one machine or on a cluster."""

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dcme_w2v.formats.sentences import CorpusLike
from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import ProgressUpdate, Reporter
from dcme_w2v.words import run
from dcme_w2v.words import train as one_machine
from dcme_w2v.words.job import TrainJob
from dcme_w2v.words.vectors import Vectors


@functools.wraps(one_machine.train)
def train(  # noqa: D103
    corpus: CorpusLike | None = None,
    *,
    progress: bool | Callable[[ProgressUpdate], object] = False,
    **options: Any,
) -> Vectors:
    return one_machine.train_by(train_job, corpus, progress, options)


def train_job(
    job: TrainJob,
    reporter: Reporter,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
) -> Vectors:
    """Train word vectors, on the cluster of the job if it names one; see `words.run.train`."""
    if job.cluster.cluster is None:
        return run.train(job, reporter, signals)
    from . import word_training

    return word_training.train(job, reporter, signals)


def dry_run(job: TrainJob, reporter: Reporter) -> dict[str, Any]:
    """Return the resources that training requires; see `words.run.dry_run`."""
    if job.cluster.cluster is None:
        return run.dry_run(job, reporter)
    from . import word_training

    return word_training.dry_run(job, reporter)
