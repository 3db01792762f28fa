"""The demo in miniature: every picture that it promises."""

import io

from rich.console import Console

from gcb.cli.demo import PICTURES, DemoSize, demo

TINY = DemoSize(transitions=120, preset="smoke", steps=4, episodes=2, tasks=40, scenes=2)


def test_the_demo_makes_what_it_promises(tmp_path):
    said = io.StringIO()
    demo(tmp_path, Console(file=said, width=200), TINY)
    text = said.getvalue()
    for name, _ in PICTURES:
        assert (tmp_path / name).stat().st_size > 0
        assert name in text
    assert "never told" in text
    report = (tmp_path / "report.html").read_text()
    assert "2 runs of gcb, blind in Button and Drawer" in report
    assert "data:video/mp4" in report
    lines = text.splitlines()
    assert lines[-2:] == [
        f"the report: {tmp_path / 'report.html'}",
        f"tell it what to do: gcb explore {tmp_path / 'agent'}",
    ]
