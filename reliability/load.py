"""The explorer under load: its own load test, of which the table tells."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from reliability.rows import Row, row
from reliability.stage import TESTS

TEST = TESTS / "explorer" / "test_load.py"
SAID = "all answered, memory and threads within the test's bounds, nothing left behind by visitors who go early"


def run(folder: Path, quick: bool) -> Iterator[Row]:
    """Hundreds of requests from several clients on loopback; a minute, and a part of `make test`: not if quick."""
    if quick:
        return
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={folder / 'tmp'}"]
    ended = subprocess.run(
        [*words, str(TEST)], capture_output=True, text=True, check=False, cwd=TESTS.parent, env=os.environ
    )
    numbers = {name: int(value) for name, value in re.findall(r"^(\w+) = (\d+)$", TEST.read_text(), re.MULTILINE)}
    clients, rounds = numbers["CLIENTS"], numbers["ROUNDS"]
    requests = clients * rounds * (numbers["LOOKS"] + 4) + clients
    wrong = [] if ended.returncode == 0 else [ended.stdout[-400:]]
    yield row("load", f"requests of {clients} visitors at once to `gcb explore`", requests, SAID, wrong)
