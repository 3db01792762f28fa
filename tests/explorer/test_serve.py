"""`gcb explore`: its port, its output, and its shutdown."""

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
from gcb.explorer.serve import listen, page_url


def test_the_next_free_port_is_used_if_one_is_taken() -> None:
    with listen("127.0.0.1", 8600) as first, listen("127.0.0.1", first.getsockname()[1]) as second:
        assert first.getsockname()[0] == second.getsockname()[0] == "127.0.0.1"
        assert second.getsockname()[1] > first.getsockname()[1]
        assert page_url(first) == f"http://127.0.0.1:{first.getsockname()[1]}/"


def test_page_urls_open_in_a_browser() -> None:
    with listen("0.0.0.0", 8600) as every:
        assert page_url(every) == f"http://localhost:{every.getsockname()[1]}/"
    if socket.has_ipv6:
        with listen("::1", 8600) as sixth:
            assert page_url(sixth).startswith("http://[::1]:")


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("no.such.host.invalid", 8000, "no.such.host.invalid"),
        ("192.0.2.1", 8000, "192.0.2.1, port 8000"),
        ("127.0.0.1", 70_000, "port is 70000"),
        ("127.0.0.1", -1, "port is -1"),
    ],
)
def test_invalid_hosts_and_ports_are_named(host: str, port: int, message: str) -> None:
    with pytest.raises(GCBError, match=re.escape(message)):
        listen(host, port)


def test_only_this_machine_is_served_by_default() -> None:
    assert Explore().host == "127.0.0.1"


@pytest.mark.parametrize("wrong", ["nowhere", "empty", "other"])
def test_a_path_that_is_no_run_gives_a_message(wrong: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(SystemExit) as end:
        main(["explore", str(tmp_path / wrong)])
    assert end.value.code == 2
    assert re.search(r"gcb: .* is not a (folder|directory|run)", capsys.readouterr().err)


def test_it_prints_its_url_and_stops_cleanly_on_ctrl_c(run: Path) -> None:
    command = [sys.executable, "-m", "gcb", "explore", str(run), "--port", "8650"]
    environment = {**os.environ, "COLUMNS": "300", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        url = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert url, line
        with urllib.request.urlopen(url.group()) as page:
            assert b"gcb explorer" in page.read()
        server.send_signal(signal.SIGINT)
        out, errors = server.communicate(timeout=120)
    assert server.returncode == 0, errors
    assert "Stopped." in out
    assert "Traceback" not in errors


BUSY = """
import sys, threading, torch
from gcb.cli.main import main

def compute():
    matrix = torch.rand(64, 64)
    while True:
        matrix @ matrix

threading.Thread(target=compute, daemon=True).start()
main(["explore", sys.argv[1], "--port", "8670"])
"""
"""A thread that is inside PyTorch whenever the server is stopped: with the loader's own it happens now and then."""


def test_stopping_while_an_agent_computes_does_not_abort(run: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", BUSY, str(run)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        url = re.search(r"http://127\.0\.0\.1:\d+/", server.stdout.readline())
        assert url
        urllib.request.urlopen(url.group()).close()
        server.send_signal(signal.SIGINT)
        out, errors = server.communicate(timeout=120)
    assert (server.returncode, out) == (0, "Stopped.\n"), errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data", "{}/nowhere"], "{}/nowhere"),
        (["--data", "{}"], "{} is not a dataset"),
        (["--device", "cuda"], "device is 'cuda'; available on this machine: cpu"),
    ],
)
def test_a_wrong_dataset_or_device_is_said_in_the_terminal(
    options: list[str], message: str, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    if "cuda" in options and torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    with pytest.raises(SystemExit) as end:
        main(["explore", str(run), *(option.format(tmp_path) for option in options)])
    assert end.value.code == 2
    assert message.format(tmp_path) in capsys.readouterr().err


def test_three_runs_are_too_many(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explore", *[str(run)] * 3])
    assert "3 runs are given; accepted: one, or two side by side" in capsys.readouterr().err
