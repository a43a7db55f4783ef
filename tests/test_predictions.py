"""`score` and `predict-word`: log-probabilities of lines and tokens, words for a gap."""

import json
import subprocess
import sys

import numpy as np
import pytest
from helpers import refused, train, write_corpus

from dcme_w2v.cli.main import run
from dcme_w2v.words.language_model import LanguageModel
from dcme_w2v.words.predictions import Predictor, score

MODELS = {
    "dcme": ("--objective", "dcme", "--word-order", "--neighbor-classes", "8"),
    "nce": ("--objective", "nce", "--word-order"),
    "ns": ("--objective", "ns"),
}
FIXED = ("--threads", "1", "--epochs", "2", "--sample", "0", "--window-mode", "fixed")


@pytest.fixture(scope="module", params=MODELS)
def folder(request, tmp_path_factory):
    path = tmp_path_factory.mktemp(request.param)
    text = write_corpus(path / "text.txt")
    tables = ("--output-tables", str(path / "model"))
    assert train(text, path / "v.npy", *FIXED, *MODELS[request.param], *tables) == 0
    return path


def lines_of(folder):
    """Lines of known words."""
    lines = (folder / "text.txt").read_text().splitlines()
    return [line for line in lines if len(line.split()) > 4 and "rare" not in line]


def scored(capsys, *arguments):
    capsys.readouterr()
    assert run(["score", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_mean_equals_eval_likelihood(folder, capsys):
    found = scored(capsys, folder / "model", folder / "text.txt").splitlines()
    total = np.nansum([float(line.split("\t")[0]) for line in found])
    count = sum(int(line.split("\t")[1]) for line in found)
    arguments = [str(folder / "model"), str(folder / "text.txt"), "--json"]
    assert run(["eval", "likelihood", *arguments]) == 0
    wanted = json.loads(capsys.readouterr().out)
    suffix = "_with_noise" if "log_probability_with_noise" in wanted else ""
    assert count == wanted["words"]
    assert total / count == pytest.approx(wanted["log_probability" + suffix], rel=1e-5)


def test_a_row_for_each_line_and_token(folder, tmp_path, capsys):
    first = lines_of(folder)[0]
    known = first.split()[0]
    (tmp_path / "t.txt").write_text(f"{first}\n\n{known}\nneverseen {known} neverseen\nxyzzy\n")
    rows = [
        row.split("\t") for row in scored(capsys, folder / "model", tmp_path / "t.txt").splitlines()
    ]
    assert [row[2] for row in rows] == [first, "", known, f"neverseen {known} neverseen", "xyzzy"]
    assert [int(row[1]) for row in rows] == [len(first.split()), 0, 0, 0, 0]
    assert float(rows[0][0]) < 0
    assert all(np.isnan(float(row[0])) for row in rows[1:])
    tokens = scored(capsys, folder / "model", tmp_path / "t.txt", "--tokens").split("\n\n")
    assert [line.split("\t")[0] for line in tokens[0].splitlines()] == first.split()
    objects = scored(capsys, folder / "model", tmp_path / "t.txt", "--json").splitlines()
    records = [json.loads(line) for line in objects]
    assert records[3]["log_probabilities"] == [None, None, None]
    assert records[3]["log_probability"] is None
    assert sum(records[0]["log_probabilities"]) == pytest.approx(float(rows[0][0]), rel=1e-4)


def test_batches_and_standard_input_give_the_same_scores(folder, capsys, monkeypatch):
    model = LanguageModel.load(str(folder / "model"))
    whole = list(score(model, [str(folder / "text.txt")]))
    monkeypatch.setattr("dcme_w2v.text.token_ids.BATCH_DOCUMENTS", 3)
    parts = list(score(model, [str(folder / "text.txt")], threads=2))
    for one, other in zip(whole, parts, strict=True):
        assert one.tokens == other.tokens
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, rtol=1e-5)
    command = [sys.executable, "-m", "dcme_w2v", "score", str(folder / "model"), "-"]
    piped = subprocess.run(
        command, input=(folder / "text.txt").read_bytes(), capture_output=True, check=True
    )
    wanted = scored(capsys, folder / "model", folder / "text.txt")
    for one, other in zip(piped.stdout.decode().splitlines(), wanted.splitlines(), strict=True):
        assert one.split("\t")[1:] == other.split("\t")[1:]
        numbers = [float(line.split("\t")[0]) for line in (one, other)]
        np.testing.assert_allclose(*numbers, rtol=1e-4)


def test_the_distribution_of_a_gap_equals_the_score(folder):
    """Probabilities add up to 1, and a token's is what `score` says."""
    model = LanguageModel.load(str(folder / "model"))
    words = lines_of(folder)[0].split()
    path = folder / "line.txt"
    path.write_text(" ".join(words))
    (line,) = score(model, [str(path)])
    predictor = Predictor(model, k=len(model.words))
    for place in (0, 2, len(words) - 1):
        (answer,) = predictor.gaps([[*words[:place], "_", *words[place + 1 :]]])
        shares = {one["word"]: one["probability"] for one in answer.record["predictions"]}
        assert sum(shares.values()) == pytest.approx(1)
        assert np.log(shares[words[place]]) == pytest.approx(
            line.log_probabilities[place], abs=1e-4
        )
        assert list(shares.values()) == sorted(shares.values(), reverse=True)


def test_wrong_use_is_one_line(folder, tmp_path, capsys):
    (tmp_path / "binary").write_bytes(b"a \0 b\n")
    (tmp_path / "latin").write_bytes(b"caf\xe9 tea\n")
    model = str(folder / "model")
    for arguments, says in (
        (["score", model], "no text"),
        (["score", model, str(tmp_path / "none.txt")], "none.txt"),
        (["score", model, str(tmp_path / "binary")], "NUL"),
        (["score", model, str(tmp_path / "latin")], "not UTF-8"),
        (["score", "-", "-"], "standard input"),
        (["predict-word", "-"], "standard input"),
        (["score", str(tmp_path / "latin"), str(folder / "text.txt")], "latin"),
    ):
        assert says in refused(capsys, run(arguments))
    assert scored(capsys, model, tmp_path / "latin", "--encoding-errors", "skip")
