"""The command: where it listens, what it says, and how it ends."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from gcb.cli.explore import Explore
from gcb.cli.main import main
from gcb.errors import GCBError
from gcb.explorer.serve import address, listen


def test_a_port_that_is_taken_is_followed_by_the_next() -> None:
    with listen("127.0.0.1", 8600) as first, listen("127.0.0.1", first.getsockname()[1]) as second:
        assert first.getsockname()[0] == second.getsockname()[0] == "127.0.0.1"
        assert second.getsockname()[1] > first.getsockname()[1]
        assert address(first) == f"http://127.0.0.1:{first.getsockname()[1]}/"


def test_addresses_are_as_a_browser_takes_them() -> None:
    with listen("0.0.0.0", 8600) as every:
        assert address(every) == f"http://localhost:{every.getsockname()[1]}/"
    if socket.has_ipv6:
        with listen("::1", 8600) as sixth:
            assert address(sixth).startswith("http://[::1]:")


@pytest.mark.parametrize(
    ("host", "port", "reason"),
    [
        ("no.such.host.invalid", 8000, "no.such.host.invalid"),
        ("192.0.2.1", 8000, "192.0.2.1, port 8000, cannot be served"),
        ("127.0.0.1", 70_000, "port is 70000; accepted: 0 (any that is free) to 65535"),
        ("127.0.0.1", -1, "port is -1"),
    ],
)
def test_impossible_places_are_named(host: str, port: int, reason: str) -> None:
    with pytest.raises(GCBError, match=re.escape(reason)):
        listen(host, port)


def test_only_this_machine_is_served_unless_told_otherwise() -> None:
    assert Explore(Path("run")).host == "127.0.0.1"


@pytest.mark.parametrize("wrong", ["nowhere", "empty", "other"])
def test_a_wrong_run_folder_is_a_message(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(SystemExit) as end:
        main(["explore", str(tmp_path / wrong)])
    assert end.value.code == 2
    assert re.search(r"gcb: .* is not a (folder|run)", capsys.readouterr().err)


def test_it_prints_its_address_and_ends_cleanly_on_ctrl_c(run: Path) -> None:
    command = [sys.executable, "-m", "gcb", "explore", str(run), "--port", "8650"]
    environment = {**os.environ, "COLUMNS": "300", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        said = server.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", said)
        assert found, said
        with urllib.request.urlopen(found.group()) as page:
            assert b"what was done" in page.read()
        server.send_signal(signal.SIGINT)
        out, errors = server.communicate(timeout=120)
    assert server.returncode == 0, errors
    assert "The page is closed." in out
    assert "Traceback" not in errors
