"""Faults of every kind, a few of each; `python -m reliability` tries many."""

from pathlib import Path

import pytest

from reliability.__main__ import KINDS, main, tried
from reliability.attempts import attempt
from reliability.rows import BEGIN, END, Row, counted, markdown, row, write_between

GOOD = Row("kill -9", "training", 20, "nothing was lost", True)


@pytest.mark.filterwarnings("ignore::gcb.training.collapse.CollapseWarning")  # of runs too small to learn anything
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "load"])
def test_a_few_faults_of_every_kind_are_survived(kind: str) -> None:
    rows = list(tried(kind, quick=True))
    assert rows
    assert not [one for one in rows if not one.ok]
    assert all(one.count for one in rows)


def test_a_process_that_is_killed_says_what_it_had_to_say() -> None:
    def speak() -> None:
        print("one word", flush=True)
        while True:
            pass

    killed = attempt(speak, 3.0)  # on a machine with much else to do it may take a second to come to a word
    assert killed.killed
    assert killed.said == "one word\n"
    assert not killed.told


def test_messages_and_tracebacks_are_told_apart() -> None:
    from gcb.errors import GCBError

    def complain() -> None:
        raise GCBError("the disk is full")

    assert attempt(complain).told
    broken = attempt(lambda: 1 / 0)
    assert not broken.told
    assert "ZeroDivisionError" in broken.said
    assert attempt(lambda: None).code == 0


def test_what_is_wrong_is_told_first_and_decides_the_exit_code(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    bad = row("kill -9", "sweep", 3, "all is well", ["a run\nwas lost", "another, too"])
    assert not bad.ok
    assert bad.happened == "2 wrong, the first: a run was lost"
    for rows, code in (([GOOD], 0), ([GOOD, bad], 1)):
        monkeypatch.setattr("reliability.__main__.tried", lambda name, quick, rows=rows: rows)
        assert main(["kills"]) == code
    assert "WRONG" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["locusts"])
    assert "there is no kind 'locusts'" in capsys.readouterr().err


def test_the_table_is_written_between_its_markers_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(f"# Title\n{BEGIN}\nold\n{END}\nafter\n")
    for _ in range(2):
        write_between(path, markdown([GOOD], "python -m reliability kills", ""))
    text = path.read_text()
    assert text.startswith("# Title\n")
    assert text.endswith(f"{END}\nafter\n")
    assert text.count("| kill -9 | training | 20 | nothing was lost | ok |") == 1
    assert "old" not in text
    path.write_text("no markers")
    with pytest.raises(SystemExit, match="to write between"):
        write_between(path, "text")


def test_counts_come_most_often_first() -> None:
    assert counted({"b": 1, "a": 1, "c": 3}.items()) == "3 c, 1 a, 1 b"
