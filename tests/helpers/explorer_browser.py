"""What the browser's tests wait for on the explorer's page."""

import re
from typing import Any

from helpers.explorer_server import wait_for

TIMEOUT_MS = 120_000
READY = "#run:not(:disabled)"
FINISHED = "#outcome.success, #outcome.failure"
TASK = "#scene=4&example=5"
"""A scene whose own task is to move the drawer, and an example."""


def until(page: Any, expression: str) -> None:
    """Poll from here: the page's security policy forbids to evaluate a string inside the page."""
    wait_for(lambda: page.evaluate(expression))


def foreign(requested: str, url: str) -> bool:
    origin = re.match(r"http://[^/]+/", url)
    return not requested.startswith(("data:", origin.group() if origin else url))
