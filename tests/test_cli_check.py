"""`dcme-w2v check`: exit codes, text and JSON; its help names every fault."""

from dcme_w2v.cli.main import run


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
