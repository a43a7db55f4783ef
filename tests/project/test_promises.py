"""Equal bits: what docs/reference/promises.md says about results, kind by kind of model."""

import ast
import functools
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from data import DOCS, make_texts, word_vectors
from helpers import parsed
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_info, threadpool_limits

from dcme_w2v import (
    SCDV,
    LatentClassModel,
    TextClassifier,
)
from dcme_w2v.cli.main import run
from dcme_w2v.formats import artifact
from dcme_w2v.numeric.parallel import one_blas_thread

TEXTS = [text.decode() for text in make_texts()]
LABELS = np.arange(len(TEXTS)) % 3


def rows(features=70):
    """Return dense rows, and a label of three for each."""
    found = np.random.default_rng(3).normal(size=(len(TEXTS), features)) + LABELS[:, None] / 4
    return csr_matrix(found.astype(np.float32))


# ---- threads ----

RESULTS = Path(__file__).parent.parent / "results.py"


def digests(blas_threads, threads):
    """Return the digests of results in a process with so many threads of BLAS, and of fits."""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(blas_threads)}
    command = [sys.executable, "-W", "ignore", str(RESULTS), str(threads)]
    return json.loads(subprocess.check_output(command, env=environment))


@pytest.mark.long
@pytest.mark.bits
def test_results_do_not_depend_on_threads():
    wanted, found = digests(1, 1), digests(2, 3)
    assert len(wanted) > 9
    assert [name for name in wanted if found[name] != wanted[name]] == []


def blas_threads():
    """Return how many threads each library has now."""
    return {one["filepath"]: one["num_threads"] for one in threadpool_info()
            if one["user_api"] == "blas"}  # fmt: skip


def test_the_threads_of_blas_are_restored_by_the_last_user():
    """Also if the users are in different threads; threadpoolctl obeys only one of them."""
    with threadpool_limits(2, "blas"), ThreadPoolExecutor(1) as other:
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        other.submit(first.__enter__).result()
        assert set(blas_threads().values()) == {1}
        second.__enter__()
        other.submit(first.__exit__, None, None, None).result()
        assert set(blas_threads().values()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
        assert 2 in before.values()


LATER = """
import json
import numpy
from threadpoolctl import threadpool_info
from dcme_w2v.numeric.parallel import one_blas_thread

def threads():
    return sorted({one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})

found = [threads()]
with one_blas_thread():
    import scipy.linalg
    with one_blas_thread():
        found.append(threads())
print(json.dumps([*found, threads()]))
"""


def test_the_copy_of_blas_that_is_loaded_later_has_one_thread_too():
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    found = subprocess.check_output([sys.executable, "-c", LATER], env=environment)
    before, nested, after = json.loads(found)
    assert nested == [1]
    assert before == after != nested


# ---- what is saved ----


def fused(path):
    """Fit a classifier from few labels."""
    Path("docs.tsv").write_text(DOCS)
    assert run(f"fuse fit docs.tsv --unlabeled docs.tsv --no-choose --output {path}".split()) == 0


SAVED = {
    "words": lambda path: word_vectors().save(path),
    "scdv": lambda path: SCDV(word_vectors(), clusters=3, iterations=3)
    .fit(TEXTS)
    .model_.save(path),
    "latent": lambda path: LatentClassModel(latent=3).fit(rows(), LABELS)._model.save(path),
    "clusters": lambda path: LatentClassModel(latent=3).fit(rows())._model.save(path),
    "texts": lambda path: TextClassifier().fit(TEXTS, LABELS).save(path),
    "fused": fused,
}


@pytest.mark.bits
@pytest.mark.filterwarnings("ignore:6 of 80 texts are empty")
@pytest.mark.parametrize("kind", SAVED)
def test_arrays_are_saved_as_they_lie_in_memory(kind, monkeypatch):
    """A product has other bits in another layout, and what is read from a file is in C order."""
    seen, write = {}, artifact.tensor_pieces
    monkeypatch.setattr(
        artifact,
        "tensor_pieces",
        lambda arrays, *more: write(seen.setdefault("arrays", arrays), *more),
    )
    SAVED[kind]("model.safetensors")
    arrays = {name: one for name, one in seen["arrays"].items() if isinstance(one, np.ndarray)}
    assert [name for name, one in arrays.items() if not one.flags.c_contiguous] == []
    assert arrays or kind == "words"


# ---- the page ----

PROMISES = {
    "a model is saved and loaded from its file": [
        "test_arrays_are_saved_as_they_lie_in_memory",
        "test_a_saved_model_is_loaded_bit_identically",
        "test_it_has_the_bits_of_the_shell",
    ],
    "a Python object is pickled or copied": [
        "test_what_users_get_cannot_change_what_was_learned",
        "test_a_pickled_classifier_learns_as_the_original",
    ],
    "a killed run is resumed from its `--checkpoint`": [
        "test_a_signal_saves_and_resume_continues",
        "test_a_stopped_run_resumes_to_the_same_bytes",
    ],
    "the number of threads (`--threads`)": [
        "test_results_do_not_depend_on_threads",
        "test_deterministic_is_the_same_for_any_threads",
    ],
    "the number of BLAS threads (`OPENBLAS_NUM_THREADS`)": [
        "test_results_do_not_depend_on_threads",
    ],
    "the processor, but not its instruction set": ["test_results_do_not_depend_on_threads"],
    "the number of workers in a cluster": [
        "test_any_number_of_workers_writes_the_same_bytes",
        "test_workers_give_the_same_bytes_as_one_process",
    ],
    "the number of queries answered together": ["test_equal_words_are_in_order_of_frequency"],
}


# Each promise about files and runs, by its first words, and its tests.
GUARDS = {
    "A command writes only the": ["test_a_command_reads_and_writes_what_it_declares"],
    "If an output is also": [
        "test_an_output_that_is_an_input_is_an_error",
        "test_redirected_standard_input_and_output_are_checked",
    ],
    "A command fails if an": ["test_an_output_in_an_input_folder_is_an_error"],
    "A command fails if two": ["test_two_equal_outputs_are_an_error"],
    "Files are written atomically:": [
        "test_a_failed_write_keeps_the_old_model",
        "test_a_write_that_fails_or_does_not_reach_the_disk_leaves_nothing",
    ],
    "If two runs write": [
        "test_several_writers_leave_the_file_of_one_of_them",
        "test_readers_never_mix_versions",
    ],
    "If an output is a symbolic link": [
        "test_symbolic_links_are_kept_and_hard_links_unchanged",
        "test_a_folder_that_becomes_a_link_while_files_are_written_is_not_followed",
    ],
    "Pipes, devices, process substitutions": [
        "test_pipes_are_written_to_and_kept",
        "test_process_substitution_and_open_files_are_written_to",
    ],
    "A new model replaces an": ["test_a_model_replaces_only_a_model"],
    "A run does not overwrite": ["test_the_folder_of_an_earlier_run_is_not_overwritten"],
    "The temporary files of a": ["test_only_what_is_ours_is_removed"],
    "If training receives SIGINT": [
        "test_a_signal_saves_and_resume_continues",
        "test_a_signalled_process_ends_with_one_line",
        "test_nohup_is_respected",
    ],
    "If standard error cannot": ["test_messages_that_cannot_be_written_are_dropped"],
    "If a command needs": [
        "test_a_closed_stdin_is_an_error_before_any_work",
        "test_a_closed_stdout_is_an_error_before_any_work",
    ],
    "If the log can": ["test_a_failing_log_warns_once_and_is_an_error_at_the_end"],
    "If the program can determine": ["test_insufficient_memory_is_an_error_before_training"],
    "Small compressed files cannot": [
        "test_what_decompresses_to_far_more_is_not_held",
        "test_documents_that_decode_to_far_more_are_not_held",
        "test_what_decodes_to_far_more_is_an_error",
        "test_flipped_bits_are_errors_and_no_crash",
    ],
    "If the distinct words": [
        "test_the_rarest_words_are_dropped_before_memory_ends",
        "test_the_rarest_words_are_dropped_on_workers_before_memory_ends",
    ],
    "Results that cannot be": [
        "test_files_that_cannot_be_written_are_kept_elsewhere",
        "test_vectors_that_cannot_be_written_are_in_the_last_checkpoint",
    ],
    "If another program writes": ["test_a_folder_filled_during_training_is_not_replaced"],
}


ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "promises.md").read_text(encoding="utf-8")


@functools.cache
def functions():
    """Return the decorators of every function of the test files."""
    files = (ROOT / "tests").glob("*/test_*.py")
    nodes = (node for file in files for node in parsed(file).body)
    return {
        one.name: {*map(ast.unparse, one.decorator_list)}
        for one in nodes
        if isinstance(one, ast.FunctionDef)
    }


def test_each_promise_has_tests():
    promises = re.findall(r"^- (.*)", PAGE, re.MULTILINE)
    assert len(promises) == len(GUARDS) <= 20
    assert all(one.startswith(key) for one, key in zip(promises, GUARDS, strict=True))
    assert {name for names in GUARDS.values() for name in names} <= functions().keys()


def test_each_row_of_the_page_has_tests():
    table = PAGE.partition("## Equal results")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (.*?) \|", table, re.MULTILINE)[1:] == [*PROMISES]
    tests = {name for name, own in functions().items() if "pytest.mark.bits" in own}
    assert {name for names in PROMISES.values() for name in names} - tests == set()
