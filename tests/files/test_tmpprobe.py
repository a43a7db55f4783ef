import os
from pathlib import Path
import pytest
from path_rows import WRITING, ids, state
from dcme_w2v.cli.main import run
from dcme_w2v.files import atomic

CASES = [(row, name) for row in WRITING for name in row.writes]


def new(before, after):
    return sorted(str(p)[-40:] for p in after.keys() - before.keys())


@pytest.mark.parametrize("kind", ["full", "parent", "missing", "rofs", "slash", "dangling", "long"])
@pytest.mark.parametrize("row, output", CASES, **ids)
def test_probe(row, output, kind, work, capsys):
    suffix = Path(row.writes[output]).suffix
    if kind == "full":
        p = f"full{suffix}"
        Path(p).symlink_to("/dev/full")
    elif kind == "parent":
        p = f"c.txt/o{suffix}"
    elif kind == "missing":
        p = f"nowhere/o{suffix}"
    elif kind == "rofs":
        p = f"/proc/o{suffix}"
    elif kind == "slash":
        p = f"newdir{suffix}/"
    elif kind == "dangling":
        p = f"dang{suffix}"
        Path(p).symlink_to("nowhere/x")
    else:
        p = "x" * 300 + suffix
    before = state(work)
    capsys.readouterr()
    rc = run(row.arguments(**{output: p}))
    out, err = capsys.readouterr()
    after = state(work)
    errs = [l for l in err.splitlines() if l.startswith("error")]
    print(
        "PROBE",
        kind,
        output,
        row.role if hasattr(row, "role") else "",
        row.line[:40],
        "rc",
        rc,
        "errs",
        len(errs),
        (errs or ["-"])[-1][:170].replace(str(work), ""),
        "NEW",
        new(before, after) if rc else "",
    )
