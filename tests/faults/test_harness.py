"""The fault injection itself: it detects kills, messages and tracebacks, and writes its table."""

from collections import Counter
from pathlib import Path

import pytest
from helpers.fault_table import Row, in_words, markdown, write_between_markers
from helpers.faults import UNEXPECTED, run_forked

from gcb.errors import GCBError


def test_output_of_a_killed_process() -> None:
    def print_and_wait() -> None:
        print("a line", flush=True)
        while True:
            pass

    ended = run_forked(print_and_wait, kill_after=3.0)  # a busy machine may take a second to print the line
    assert ended.killed
    assert ended.output == "a line\n"
    assert not ended.message


def test_messages_and_tracebacks_are_distinguished() -> None:
    def fail() -> None:
        raise GCBError("the disk\nis full")

    assert run_forked(fail).message == "the disk is full"
    unexpected = run_forked(lambda: 1 / 0)
    assert unexpected.code == UNEXPECTED
    assert not unexpected.message
    assert "ZeroDivisionError" in unexpected.output
    assert run_forked(lambda: None).code == 0


def test_the_table_is_written_between_its_markers(tmp_path: Path) -> None:
    path, begin, end = tmp_path / "page.md", "<!-- faults: begin -->", "<!-- faults: end -->"
    path.write_text(f"# Title\n{begin}\nold\n{end}\nafter\n")
    for _ in range(2):
        write_between_markers(path, "faults", markdown([Row("kill -9", "training", 1000, "nothing | lost")]))
    header = "| fault | target | times | outcome |\n|---|---|---|---|"
    row = "| kill -9 | training | 1,000 | nothing / lost |"
    assert path.read_text() == f"# Title\n{begin}\n\n{header}\n{row}\n\n{end}\nafter\n"
    path.write_text("no markers")
    with pytest.raises(SystemExit, match="to write between"):
        write_between_markers(path, "faults", "text")


def test_counts_are_sorted() -> None:
    assert in_words(Counter({"b": 1, "a": 1, "c": 3})) == "3 c, 1 a, 1 b"
