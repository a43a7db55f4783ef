"""What users of document vectors, few labels and latent classes meet: labels, progress, output."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import make_texts, word_vectors

from dcme_w2v import SCDV, FusedFeatures, LatentClassModel, MaxentClassifier
from dcme_w2v.cli.main import program, run
from dcme_w2v.errors import ResourceError
from dcme_w2v.files import disk

TOPICS = {"tea": "cup leaf pot water green", "bus": "wheel road stop seat driver"}
ROWS = np.kron(np.eye(2), np.ones((20, 3))) + np.random.default_rng(1).random((40, 6)) / 4
TRUTH = np.repeat(["tea", "bus"], 20)
SHOWN = np.isin(np.arange(40) % 20, [0, 1, 2])


def invoke(line, code=0):
    result = CliRunner().invoke(program, line.split())
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Documents with stop words in each, and vectors of their words."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(2)
    lines = []
    for topic, words in list(TOPICS.items()) * 30:
        own = [*random.choice(words.split(), 5).tolist(), "is", "if", "the"]
        lines.append(f"{topic}\t{' '.join(random.permutation(own))}\n")
    (tmp_path / "docs.tsv").write_text("".join(lines))
    (tmp_path / "labelled.tsv").write_text("".join(lines[:8]))
    (tmp_path / "texts.txt").write_text("".join(line.split("\t")[1] for line in lines))
    return tmp_path


@pytest.mark.parametrize("marks", ["int", "object", "list", "str"])
@pytest.mark.parametrize("estimator", ["FusedFeatures", "LatentClassModel"])
def test_minus_one_is_a_row_without_a_label(estimator, marks):
    """scikit-learn's convention; a string "-1" is what numpy makes of it beside other strings."""
    truth = np.repeat([3, 5], 20) if marks == "int" else TRUTH
    y = [one if shown else -1 for one, shown in zip(truth.tolist(), SHOWN, strict=True)]
    if marks != "list":
        y = np.array(y, dtype={"str": str, "object": object}.get(marks))
    for options in [{"unlabelled": "use"}, {}] if estimator == "LatentClassModel" else [{}]:
        model = {"FusedFeatures": FusedFeatures, "LatentClassModel": LatentClassModel}[estimator]
        found = model(**options).fit(ROWS, y)
        assert found.classes_.tolist() == sorted(set(truth.tolist()))
        assert (found.predict(ROWS) == truth).all(), options


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("few_labels.jobs", "fuse fit labelled.tsv --unlabelled texts.txt --output m"),
        ("latent.jobs", "latent fit docs.tsv --output m"),
        ("latent.jobs", "latent fit texts.txt --unsupervised --latent 2 --output m"),
    ],
)
def test_free_space_is_checked_before_the_work(module, line, here, monkeypatch):
    """The work itself would fail the test."""
    monkeypatch.setattr(disk, "free_bytes", lambda folder: 100)
    for name in ("fit", "learn"):
        monkeypatch.setattr(
            f"dcme_w2v.{module}.{name}", lambda *_: pytest.fail("worked"), raising=False
        )
    result = CliRunner().invoke(program, line.split())
    assert isinstance(result.exception, ResourceError), result.output
    assert "100 are free" in str(result.exception)


def test_token_lists_are_documents_of_scdv():
    texts = [text.decode() for text in make_texts()]
    wanted = SCDV(word_vectors(), clusters=2).fit_transform(texts)
    tokens = [text.split() for text in texts]
    for documents in (tokens, [tuple(one) for one in tokens], [np.array(one) for one in tokens]):
        found = SCDV(word_vectors(), clusters=2).fit(documents).transform(documents)
        assert (found != wanted).nnz == 0
    with pytest.raises(ValueError, match=r"token 1 of document 0 .*whitespace"):
        SCDV(word_vectors()).fit([["w1", "w2 w3"]])


@pytest.mark.parametrize(
    ("estimator", "name", "answer"),
    [
        (LatentClassModel, "n_components", "latent"),
        (LatentClassModel, "n_clusters", "latent"),
        (LatentClassModel, "max_iter", "epochs"),
        (LatentClassModel, "n_jobs", "threads"),
        (LatentClassModel, "C", "l2"),
        (LatentClassModel, "tol", "tolerance"),
        (LatentClassModel, "seed", "random_state"),
        (SCDV, "n_components", "clusters"),
        (SCDV, "max_iter", "iterations"),
        (SCDV, "n_jobs", "threads"),
        (MaxentClassifier, "C", "l2"),
        (MaxentClassifier, "tol", "tolerance"),
        (FusedFeatures, "n_jobs", "threads"),
        (FusedFeatures, "max_iter", "rounds"),
    ],
)
def test_names_of_other_programs_are_answered(estimator, name, answer):
    with pytest.raises(TypeError, match=f"use {answer}"):
        estimator(**{name: 3})


def test_estimators_report_progress():
    updates = []
    LatentClassModel(latent=2, progress=updates.append).fit(ROWS)
    assert {one.stage for one in updates} >= {"singular vectors", "EM from kmeans 1"}
    assert any(one.done for one in updates)
    updates.clear()
    FusedFeatures(progress=updates.append).fit(ROWS, np.where(SHOWN, TRUTH, "-1"))
    assert any(one.stage == "self-training" for one in updates)
    updates.clear()
    SCDV(word_vectors(), clusters=2, progress=updates.append).fit(make_texts())
    assert {one.stage for one in updates} >= {"reading", "Gaussian mixture"}


def test_a_fit_prints_few_lines_and_logs_its_iterations(here):
    word_vectors().save(here / "v.npy")
    (here / "words.txt").write_bytes(b"\n".join(make_texts()) + b"\n")
    for line in ("scdv fit words.txt --vectors v.npy --clusters 2 --output s",
                 "latent fit texts.txt --unsupervised --latent 2 --output l",
                 "fuse fit labelled.tsv --unlabelled texts.txt --output f"):  # fmt: skip
        assert len(invoke(line).stderr.splitlines()) <= 12, line
    invoke("latent fit texts.txt --unsupervised --latent 2 --output m --log-json log --quiet")
    events = [json.loads(line) for line in (here / "log").read_text().splitlines()]
    assert [one for one in events if one["event"] == "progress" and "loss" in one]


def test_search_prints_the_beginning_of_each_text(here):
    word_vectors().save(here / "v.npy")
    texts = [text.decode() for text in make_texts()]
    (here / "words.txt").write_text("\n".join(["x\tw1 w2  w3 " + "w4 " * 50, *texts]) + "\n")
    invoke("scdv fit words.txt --vectors v.npy --clusters 2 --output m --quiet")
    invoke("scdv transform m words.txt --output x.npz")
    line = ["scdv", "search", "m", "x.npz", "w1 w2 w3 w4", "-k", "200"]
    shown = CliRunner().invoke(program, [*line, "--documents", "words.txt", "--show"]).stdout
    (own,) = [one for one in shown.splitlines() if one.split("\t")[2] == "1"]
    text = own.split("\t")[-1]
    assert text.startswith("w1 w2 w3 w4") and len(text) <= 80
    plain = CliRunner().invoke(program, line).stdout
    assert plain == "".join(one.rsplit("\t", 1)[0] + "\n" for one in shown.splitlines())
    found = json.loads(
        CliRunner().invoke(program, [*line, "--documents", "words.txt", "--show", "--json"]).stdout
    )
    assert all("text" in one for own in found["answers"] for one in own)
    (here / "few.txt").write_text("w1\n")
    assert run([*line, "--documents", "few.txt", "--show"]) == 1
    assert run([*line, "--show"]) == 2


def test_topics_and_latent_classes_are_named_by_specific_words(here):
    words = {word for own in TOPICS.values() for word in own.split()}
    (here / "v.txt").write_text("".join(
        f"{w} {i % 2} {1 - i % 2} 0\n" for i, own in enumerate(TOPICS.values()) for w in own.split()
    ) + "is 0 1 0.1\nif 1 0 0.1\nthe 1 0 0.1\n")  # fmt: skip
    invoke("scdv fit docs.tsv --vectors v.txt --clusters 2 --output s --quiet")
    invoke("latent fit texts.txt --unsupervised --latent 2 --output l --quiet")
    for line in ("scdv topics s --words 3 --json", "latent show l -k 3 --json"):
        found = json.loads(invoke(line).stdout)
        for one in found["topics"] if isinstance(found, dict) else found:
            assert {word for word, _ in one["words"]} <= words, line
