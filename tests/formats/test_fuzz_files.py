"""Damaged files: cut anywhere, or with a changed byte; fuzz/fuzz_files.py with few inputs."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from fasttext_models import WORDS, write_model
from scipy.sparse import csr_matrix, save_npz

from dcme_w2v import Vectors
from dcme_w2v.errors import DcmeError, DcmeWarning
from dcme_w2v.formats.sparse_io import read_npz

pytestmark = pytest.mark.long

FUZZ = Path(__file__).parents[1] / "fuzz" / "fuzz_files.py"
KINDS = {
    "model of fastText": (
        lambda path: write_model(path, words=WORDS[:2], buckets=3, dim=2),
        Vectors.load,
    ),
    "matrix": (lambda path: save_npz(path, csr_matrix(np.eye(3))), read_npz),
}


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_one_line_of_error_or_other_files(kind):
    """Never another exception, and no allocation of a size from a corrupt header."""
    make, read = KINDS[kind]
    path = Path("x.npz")
    make(path)
    whole = path.read_bytes()
    cut = [whole[:end] for end in range(4, len(whole), 15)]
    for at in range(4, len(whole), 1 if len(whole) < 300 else 5):
        cut += [whole[:at] + byte + whole[at + 1 :] for byte in (b"\x7f", b"\xff")]
    for data in (*cut, whole + b"\0"):
        path.write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DcmeWarning)
            try:
                read(path)
            except DcmeError as error:
                assert "x.npz" in str(error) and "\n" not in str(error)
            else:
                assert kind != "model of fastText" or len(data) == len(whole)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="each reader is tried in a forked process")
def test_no_reader_crashes_or_hangs(tmp_path):
    command = [sys.executable, FUZZ, "--inputs", "3", "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(", 0 readers failed\n")
    assert list(tmp_path.iterdir()) == []
