"""The driver of the benchmarks; `make bench` runs the measurements."""

import pytest

from benchmarks.__main__ import main
from benchmarks.rows import Row

GOOD = Row("fast enough", 0.8, 0.6, "ten times a second", at_least=True)
UNLIMITED = Row("informative", 3.0, None, "no limit")


@pytest.mark.parametrize(
    ("row", "ok"),
    [
        (Row("", 1.9, 2.0, ""), True),
        (Row("", 2.1, 2.0, ""), False),
        (Row("", 0.61, 0.6, "", at_least=True), True),
        (Row("", 0.59, 0.6, "", at_least=True), False),
        (Row("", 1e9, None, ""), True),
    ],
)
def test_limits(row, ok):
    assert row.ok == ok


def test_table_and_exit_code(capsys):
    groups = {
        "good": lambda: [GOOD, UNLIMITED],
        "bad": lambda: [Row("too slow", 0.5, 0.6, "six times a second", at_least=True)],
    }
    assert main(["good"], groups) == 0
    printed = capsys.readouterr().out
    assert "fast enough" in printed
    assert "≥ 0.6" in printed
    assert "ok" in printed
    assert "too slow" not in printed
    assert main([], groups) == 1
    assert "FAIL" in capsys.readouterr().out


def test_unknown_group(capsys):
    assert main(["engines"], {"good": lambda: [GOOD]}) == 2
    assert "unknown group 'engines'; accepted: good" in capsys.readouterr().err
