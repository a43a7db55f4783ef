"""When a run's state is saved, and what is said about it; called by `dcme_w2v.words.run`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from dcme_w2v.checkpoints.folder import (
    Checkpoint,
    CheckpointFolder,
    Position,
    fingerprint_of,
    record_of,
)
from dcme_w2v.errors import ResourceError
from dcme_w2v.options import CheckpointOptions, TrainOptions, VocabularyOptions
from dcme_w2v.progress import Reporter
from dcme_w2v.text.encode import EncodedCorpus
from dcme_w2v.words.trainer import Trainer


class Keeper:
    """Knows how far a run is, and saves its state when that is due.

    Parameters
    ----------
    folder : CheckpointFolder, optional
        Where checkpoints go; None for a run that keeps none.
    every : CheckpointOptions
        How often.
    options : VocabularyOptions and TrainOptions
        As used.
    corpus : EncodedCorpus
    training : Trainer
    reporter : Reporter

    Attributes
    ----------
    position : Position
    latest : Path or None
        The last checkpoint of this run, or the one that it goes on from.
    """

    def __init__(
        self,
        folder: CheckpointFolder | None,
        every: CheckpointOptions,
        options: tuple[VocabularyOptions, TrainOptions],
        corpus: EncodedCorpus,
        training: Trainer,
        reporter: Reporter,
    ) -> None:
        self.folder = folder
        self.position = Position()
        self.latest: Path | None = None
        self._every = every
        self._options = options
        self._corpus = corpus
        self._training = training
        self._reporter = reporter
        self._fingerprint = fingerprint_of(corpus) if folder is not None else {}
        self._saved = time.monotonic()

    def resume(self, found: Checkpoint) -> None:
        """Put a checkpoint's state into the training, if it is of the same corpus."""
        found.check_corpus(self._fingerprint or fingerprint_of(self._corpus))
        self.position = found.restore(self._training)
        self.latest = found.folder
        ended = self.position.epoch >= self._training.options.epochs
        place = "where all is trained" if ended else f"in epoch {self.position.epoch + 1}"
        self._reporter.talk(f"going on from {found.folder}, {place}")
        if found.record["kernels"] != self._training.kernels:
            self._reporter.talk(
                f"warning: {found.folder} was trained with {found.record['kernels']} kernels and "
                f"this machine uses {self._training.kernels}: the last digits will differ"
            )

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Count the seconds of training, and the epoch when it is over."""
        start = time.monotonic()
        yield
        seconds = time.monotonic() - start
        self.position.seconds += seconds
        self.position.epoch_seconds += seconds

    def end_epoch(self) -> None:
        """Hear that an epoch is over."""
        self.position.epoch += 1
        self.position.epoch_seconds = 0.0

    def is_time(self) -> bool:
        """Tell whether the last checkpoint is so long ago that training should stop for one."""
        seconds = self._every.seconds
        return (
            self.folder is not None
            and seconds is not None
            and time.monotonic() - self._saved >= seconds
        )

    def save_if_due(self) -> None:
        """Save the state where time or the end of an epoch asks for it.

        A checkpoint that cannot be written does not end the run; the one before is still there.
        """
        between = self._training.unfinished is None
        by_epochs = self._every.epochs is not None and self.position.epoch % self._every.epochs == 0
        if self.is_time() or (self.folder is not None and between and by_epochs):
            try:
                self.save()
            except ResourceError as error:
                self._saved = time.monotonic()
                self._reporter.talk(f"warning: {error.message}; training goes on")

    def save(self) -> Path | None:
        """Save the state now and return where; None where no checkpoints are kept.

        Raises
        ------
        ResourceError
            It cannot be written.
        DivergedError
            It is not worth keeping.
        """
        if self.folder is None:
            return None
        self._training.check_finite()
        record = record_of(*self._options, self._fingerprint, self._training, self.position)
        self.latest = self.folder.save(record, self._training, self._corpus.vocabulary)
        self._saved = time.monotonic()
        return self.latest

    def last_state(self) -> str:
        """Say where the last good state is."""
        if self.latest is None:
            return "no state was kept, --checkpoint=FOLDER would"
        return f"the last good state is {self.latest}, which --init={self.latest}/vectors.npy reads"
