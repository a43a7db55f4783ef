"""The manifest of vectors: keys, token counts, atomic writes."""

from pathlib import Path

import pytest
from helpers import python

from dcme_w2v.formats.vectors.vectors_io import (
    audit_line,
    manifest_of,
)
from dcme_w2v.options import VocabularyOptions
from dcme_w2v.words.options import OutputOptions, TrainOptions


def make_manifest(trained=60, epochs=2, held_out=0, **more):
    return manifest_of(
        {**vars(VocabularyOptions()), **vars(TrainOptions(epochs=epochs)), **vars(OutputOptions())},
        [("a.txt", 1000), ("-", None)],
        42,
        {
            "corpus": 5000,
            "trained": trained,
            "out_of_vocabulary": 9000,
            "subsampled": 900,
            "without_context": 40,
            "held_out": held_out,
        },
        {"count": 1.00049, "train": 2.0, "total": 3.5},
        0.75,
        **more,
    )


def test_token_counts_add_up_or_the_difference_is_reported():
    assert audit_line(make_manifest(trained=60)) == (
        "tokens: 10,000 read = 60 trained + 9,000 out of vocabulary + 900 subsampled"
        " + 40 without context"
    )
    assert audit_line(make_manifest(trained=50)).endswith(" context + 10 unaccounted for")
    assert audit_line(make_manifest(59, held_out=1)).endswith(" context + 1 held out")
    assert make_manifest()["count_seconds"] == 1.0


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux has this file")
def test_peak_memory_is_not_that_of_the_parent_process():
    size = 1 << 29
    held = (
        b"x" * size
    )  # a new process starts as a copy of its parent, and ru_maxrss with the parent's peak
    code = "from dcme_w2v.platform import peak_memory as peak; print(peak())"
    assert int(python("-c", code, check=True).stdout) < size == len(held)
