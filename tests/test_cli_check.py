"""`dcme-w2v check`: exit codes, text and JSON; its help names every fault."""

import json

from click.testing import CliRunner

from dcme_w2v.cli.main import program, run


def test_a_file_without_faults_is_ok(tmp_path, capsys):
    (tmp_path / "v").write_bytes(b"2 3\na 1 2 3\nb 4 5 6\n")
    assert run(["check", str(tmp_path / "v")]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path / 'v'}: text",
        "rows: 2",
        "dimension: 3",
        "OK",
    ]


def test_faults_are_listed_and_set_the_exit_code(tmp_path, capsys):
    (tmp_path / "v").write_bytes(b"4 1\na 1\na 2\na nan\n")
    assert run(["check", str(tmp_path / "v")]) == 1
    lines = capsys.readouterr().out.splitlines()
    place = tmp_path / "v"
    assert f"duplicate word: 1, first at {place}:3 ('a' is in row 1 too)" in lines
    assert f"NaN or infinite number: 1, first at {place}:4" in lines
    assert f"wrong number of rows: 1, first at {place}:1 (4 in the header, 3 in the file)" in lines
    assert "OK" not in lines


def test_json_equals_the_report(tmp_path):
    (tmp_path / "v").write_bytes(b"1 1\na x\n")
    result = CliRunner().invoke(program, ["check", str(tmp_path / "v"), "--json"])
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert (report["format"], report["rows"], report["dimension"]) == ("text", 1, 1)
    assert report["ok"] is False
    assert [(fault["kind"], fault["count"]) for fault in report["faults"]] == [("not a number", 1)]


def test_a_missing_file_is_one_line_of_error(tmp_path, capsys):
    assert run(["check", str(tmp_path / "none")]) == 1
    output = capsys.readouterr()
    assert (
        output.out == ""
        and output.err == f"error: {tmp_path / 'none'}: No such file or directory\n"
    )
