"""What C libraries print is discarded, and nothing else."""

import ctypes
import os
import threading

import pytest

from gcb.utils.quiet import quiet, unsilenced


def test_what_c_prints_is_discarded(capfd: pytest.CaptureFixture[str]) -> None:
    libc = ctypes.CDLL(None)
    print("before")
    with quiet():
        libc.puts(b"banner")
        os.write(2, b"warning\n")
    print("after", flush=True)
    assert capfd.readouterr() == ("before\nafter\n", "")


def test_what_another_thread_prints_meanwhile_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    silenced, end = threading.Event(), threading.Event()

    def load() -> None:
        with quiet():
            silenced.set()
            end.wait(10)

    thread = threading.Thread(target=load)
    thread.start()
    assert silenced.wait(10)
    threading.Timer(0.2, end.set).start()
    with unsilenced():
        print("Stopped.")
    thread.join()
    assert capfd.readouterr().out == "Stopped.\n"
