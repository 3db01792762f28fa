"""Fault injection. `make test` runs a few faults of every kind; `make faults` many, and writes docs/reliability.md."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from helpers.fault_table import Row, markdown, write_between_markers
from helpers.small_runs import write_slide_dataset

import gcb

ROWS, START = pytest.StashKey[dict[str, list[Row]]](), time.monotonic()
COMMANDS = {"reliability": "make faults", "inputs": "make inputs"}
"""The sections of docs/reliability.md with a table, and the command that writes each."""

Record = Callable[[str, str, int, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options; they exist if tests/faults is named on the command line."""
    parser.addoption("--full", action="store_true", help="inject many faults: ten minutes instead of one")
    parser.addoption("--table", type=Path, help="Markdown file for the table of faults, if all tests pass")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    table, sections = session.config.getoption("table", None), session.config.stash.get(ROWS, {})
    if table and exitstatus == 0:
        minutes = (time.monotonic() - START) / 60
        for section, rows in sections.items():
            command, version = COMMANDS[section], gcb.__version__
            title = f"Version {version}, by `{command}` in {minutes:.0f} minutes on {os.cpu_count()} cores: all passed."
            write_between_markers(table, section, f"{title}\n\n{markdown(rows)}")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Whether to inject many faults instead of a few."""
    return bool(request.config.getoption("full", False))


@pytest.fixture
def record(request: pytest.FixtureRequest) -> Record:
    """Add a row to the table; called after the last assertion of a test."""
    return _recorder(request, "reliability")


@pytest.fixture
def record_input(request: pytest.FixtureRequest) -> Record:
    """Add a row to the table of bad input."""
    return _recorder(request, "inputs")


def _recorder(request: pytest.FixtureRequest, section: str) -> Record:
    rows = request.config.stash.setdefault(ROWS, {})
    return lambda *cells: rows.setdefault(section, []).append(Row(*cells))


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Use one thread: forked processes cannot use their parent's, and equal results need equally many."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small dataset; tests do not change it."""
    return write_slide_dataset(tmp_path_factory.mktemp("faults") / "datasets" / "slide")
