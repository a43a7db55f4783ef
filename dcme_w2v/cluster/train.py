"""`dcme_w2v.train`: word vectors on one machine or on a cluster."""

import functools
from contextlib import AbstractContextManager
from typing import Any

from dcme_w2v.formats.sentences import CorpusLike
from dcme_w2v.training.interrupts import ReceivedSignal
from dcme_w2v.training.progress import Reporter
from dcme_w2v.words import train as one_machine
from dcme_w2v.words.job import TrainJob


@functools.wraps(one_machine.train)
def train(corpus: CorpusLike | None = None, **options: Any) -> Any:  # noqa: D103
    return one_machine.train(corpus, run=train_job, **options)


def train_job(
    job: TrainJob,
    reporter: Reporter,
    signals: AbstractContextManager[ReceivedSignal] | None = None,
    dry_run: bool = False,
) -> Any:
    """Train on the cluster of the job if it names one; see `words.train.train_job`."""
    if job.cluster is None:
        return one_machine.train_job(job, reporter, signals, dry_run)
    from . import word_training

    return word_training.train(job, reporter, signals, dry_run)
