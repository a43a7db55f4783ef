"""User information and queries of addresses are in no file, output or message."""

import io
import sys
from pathlib import Path

import pytest
from data import CORPUS, DOCS, SMALL

from dcme_w2v.errors import CorpusError, without_secrets
from dcme_w2v.files import opening

TEXTS = {"c": CORPUS, "h": CORPUS, "d": DOCS, "e": DOCS}
QUICK = "--epochs 2 --threads 1"
KEPT = "--checkpoint k --checkpoint-every 1 --log-json log"


def address(name, scheme="http"):
    return f"{scheme}://user:PASSWORD@host/{name}?X-Amz-Signature=TOKEN"


@pytest.fixture(autouse=True)
def texts(monkeypatch):
    """Texts instead of a network."""

    def served(path):
        name = path.split("host/")[1][0]
        if name not in TEXTS:
            raise opening.UnreadableError(f"{path} cannot be opened: no {path}")
        return io.BytesIO(TEXTS[name].encode())

    monkeypatch.setattr(opening, "_open_address", served)


@pytest.mark.parametrize("line, code", [
    (f"train C --output o.bin --holdout H {SMALL} {KEPT}", 0),
    (f"train C --output o.safetensors --output-tables ot {SMALL} --dry-run --json", 0),
    (f"train C --output o.safetensors --output-tables ot {SMALL}", 0),
    ("vocab C --output o --json", 0),
    ("phrases C --output o --save-table ot", 0),
    (f"classify train D --output o --holdout E {QUICK} {KEPT}", 0),
    ("latent fit D --output o", 0),
    (f"classify train D --output o --holdout X {QUICK} --log-json log", 1),
    (f"train X --output o.bin {SMALL} --log-json log", 1),
    ("neighbors C aa", 1),
    ("convert C o.txt", 1),
    (f"train c --output C {SMALL}", 2),
    (f"train C --output o {SMALL} --dim C", 2),
    (f"train C --output o --cluster C {SMALL}", 2),
])  # fmt: skip
def test_secrets_of_addresses_are_nowhere(cli, monkeypatch, line, code):
    Path("c").write_text(CORPUS)
    given = [address(word.lower()) if word in "CDEHX" else word for word in line.split()]
    monkeypatch.setattr(sys, "argv", ["/bin/dcme-w2v", *given])
    assert cli.run(" ".join(given)) == code, cli.err
    found = {"out": cli.out.encode(), "err": cli.err.encode()}
    found |= {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for place, data in found.items():
        assert b"PASSWORD" not in data and b"TOKEN" not in data, place
    assert code == 0 or "/host/" in cli.err


@pytest.mark.parametrize("text, shown", [
    ("http://u:p@h/x?q=T: cannot", "http://h/x: cannot"),
    ("http:/u:p@h:80/x?q=T#f: no", "http:/h:80/x: no"),
    ("url: /x?q=T (by 'https://u@h/y?T')", "url: /x (by 'https://h/y')"),
    ("S3://u:p@p@h/x", "S3://h/x"),
    ("c:/a@b?c and a://b", "c:/a@b?c and a://b"),
])  # fmt: skip
def test_what_is_left_of_addresses(text, shown):
    assert without_secrets(text) == shown
    assert CorpusError(text).message == str(CorpusError(text)) == shown
