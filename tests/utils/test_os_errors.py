"""Errors of the system as messages, and paths that are refused before they are used."""

from pathlib import Path

import pytest

from gcb.errors import GCBError
from gcb.utils.os_errors import check_path, os_error_message


def test_the_message_names_the_file_and_the_reason() -> None:
    with pytest.raises(OSError) as error:
        Path("nowhere/x").read_bytes()
    assert os_error_message(error.value) == "nowhere/x: No such file or directory"
    assert os_error_message(OSError("no room")) == "no room"
    assert os_error_message(OSError()) == "OSError"


@pytest.mark.parametrize("path", ["x", "x/" * 1500, "é" * 127, ""])
def test_possible_paths_pass(path: str) -> None:
    check_path("out", Path(path))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("a\0b", r"out is 'a\\x00b'; a path cannot have a NUL"),
        ("x" * 256, "too long for a path; accepted: names of at most 255 bytes, 4095 in all"),
        ("é" * 128, "too long"),
        ("x/" * 2500, "too long"),
    ],
)
def test_impossible_paths_are_named_in_short(path: str, message: str) -> None:
    with pytest.raises(GCBError, match=message) as error:
        check_path("out", path)
    assert len(str(error.value)) < 200
