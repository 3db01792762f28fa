"""The demo, very small, writes every file it announces."""

import io
import re

from rich.console import Console

from gcb.cli.demo import OUTPUTS, DemoSize, demo

TINY = DemoSize(
    transitions=120,
    preset="smoke",
    steps=4,
    episodes=2,
    curve_points=2,
    curve_episodes=1,
    tasks=40,
    scenes=2,
    film_episodes=2,
)


def test_the_demo_writes_every_output(tmp_path):
    said = io.StringIO()
    demo(tmp_path, Console(file=said, width=200), TINY)
    text = said.getvalue()
    for name, _ in OUTPUTS:
        assert (tmp_path / name).stat().st_size > 0
        assert name in text
    assert "goal-agnostic BC" in text
    assert re.search(r"trained_agent\.mp4: button-drawer, successful in [012] of 2 scenes", text)
    assert text.index("trained_agent.mp4") < text.index("Collect a dataset")
    assert re.search(r"│ 2 +│.*│ 4 +│", text.replace("\n", ""))  # the curve's two points
    report = (tmp_path / "report.html").read_text()
    assert "2 runs of gcb, goal_agnostic_bc in" in report
    assert "data:video/mp4" in report
    lines = text.splitlines()
    assert lines[-2:] == [
        f"report: {tmp_path / 'report.html'}",
        f"try the agent in your browser: gcb explore {tmp_path / 'agent'}",
    ]
