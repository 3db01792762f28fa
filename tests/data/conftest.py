"""Fixtures of the data tests."""

import os

import pytest


@pytest.fixture(autouse=True)
def _skip_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed processes lose no writes; only a power cut needs fsync."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
