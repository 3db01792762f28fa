"""What the tests of the data share."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that die leave their writes to the system, which loses none: only a power cut needs fsync."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
