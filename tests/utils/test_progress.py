"""Progress: the rate, the time left, and where it is written."""

import io

import pytest

from gcb.utils.progress import Progress, duration


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_written_every_ten_seconds_and_at_the_end() -> None:
    clock, stream = Clock(), io.StringIO()
    with Progress("collecting", 1000, "transitions", stream=stream, clock=clock) as bar:
        for _ in range(10):
            clock.now += 4
            bar.advance(100, success=0.8125)
    assert stream.getvalue().splitlines() == [
        "collecting  30 %  300/1,000 transitions  25/s  0:28 left  success 0.812",
        "collecting  60 %  600/1,000 transitions  25/s  0:16 left  success 0.812",
        "collecting  90 %  900/1,000 transitions  25/s  0:04 left  success 0.812",
        "collecting 100 %  1,000/1,000 transitions  25/s  took 0:40  success 0.812",
    ]


def test_work_of_earlier_sessions_does_not_count_towards_the_rate() -> None:
    clock = Clock()
    with Progress("training", 1000, start=500, stream=io.StringIO(), clock=clock) as bar:
        clock.now += 10
        bar.advance(50)
        assert bar.status() == "550/1,000 steps  5/s  1:30 left"


def test_no_division_by_zero_before_anything_is_done() -> None:
    with Progress("training", 0, stream=io.StringIO(), clock=Clock()) as bar:
        assert bar.status() == "0/0 steps  took 0:00"


def test_a_terminal_gets_a_bar() -> None:
    stream = Terminal()
    with Progress("collecting", 10, "episodes", stream=stream) as bar:
        bar.advance(10, success=0.5)
    assert "collecting" in stream.getvalue()
    assert "10/10 episodes" in stream.getvalue()
    assert "success 0.5" in stream.getvalue()


def test_quiet_writes_nothing() -> None:
    for stream in (io.StringIO(), Terminal()):
        with Progress("collecting", 10, stream=stream, every=0, quiet=True) as bar:
            bar.advance()
        assert stream.getvalue() == ""


@pytest.mark.parametrize(("seconds", "text"), [(0, "0:00"), (7.4, "0:07"), (59.6, "1:00"), (3723, "1:02:03")])
def test_duration_as_text(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_the_last_line_is_written_once() -> None:
    stream, now = io.StringIO(), [0.0]
    with Progress("collecting", 2, every=1.0, stream=stream, clock=lambda: now[0]) as bar:
        for _ in range(2):
            now[0] += 2.0
            bar.advance()
    assert stream.getvalue().count("100 %") == 1


def test_the_work_goes_on_when_nobody_reads_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    clock = Clock()
    with Progress("collecting", 2, stream=Closed(), clock=clock) as bar:
        clock.now += 20
        bar.advance()
        bar.advance()
    assert bar.done == 2
    monkeypatch.setattr("sys.stderr", None)  # as it is if the shell closed it
    with Progress("collecting", 2, clock=clock) as bar:
        bar.advance(2)
    assert bar.done == 2
