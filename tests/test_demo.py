"""The demo in miniature: every picture that it promises."""

import io

from rich.console import Console

from gcb.demo import PICTURES, DemoSize, demo

TINY = DemoSize(transitions=120, preset="smoke", steps=4, episodes=2)


def test_the_demo_makes_what_it_promises(tmp_path):
    said = Console(file=io.StringIO(), width=200)
    demo(tmp_path, said, TINY)
    text = said.file.getvalue()
    for name, _ in PICTURES:
        assert (tmp_path / name).stat().st_size > 0
        assert name in text
    assert "never told" in text
