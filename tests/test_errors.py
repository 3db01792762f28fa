"""The parts of messages: short values, printable text, suggestions."""

import pytest

from gcb.errors import printable, short, suggestion
from gcb.methods import METHODS


def test_long_values_are_shortened() -> None:
    for value in ("x" * 10_000, list(range(10_000)), {"a": "x" * 10_000}, 10**3000, 10**10_000):
        assert len(short(value)) <= 80


def test_short_values_are_shown_whole() -> None:
    assert [short(value) for value in (3, "a'b", None, [1, 2], {"a": 0.5})] == [
        "3",
        '"a\'b"',
        "None",
        "[1, 2]",
        "{'a': 0.5}",
    ]


def test_control_characters_are_escaped() -> None:
    assert printable("a\x1b[31m\tφ\n\udcff") == "a\\x1b[31m\\tφ\n\\udcff"


@pytest.mark.parametrize(
    ("given", "meant"), [("gbc", "gcbc"), ("GCB", "gcb"), ("ccvae", "cc_vae"), ("goal_agnostic", "goal_agnostic_bc")]
)
def test_the_nearest_name_is_suggested(given: str, meant: str) -> None:
    assert suggestion(given, METHODS) == f"did you mean {meant}?"


def test_all_names_are_listed_if_none_is_near() -> None:
    assert suggestion("zzz", ["one", "two"], " or a path") == "accepted: one, two or a path."
