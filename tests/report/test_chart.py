"""Charts: round ticks, lines where they belong, nothing taken for markup."""

import numpy as np
import pytest

from gcb.report.chart import Curve, Mark, curves, marks, short, ticks
from gcb.report.html import Html, join, safe, table, tag, void


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.25, 0.5, 0.75, 1.0]),
        (0, 1500, [0, 500, 1000, 1500]),
        (-0.3, 0.6, [-0.5, -0.25, 0, 0.25, 0.5, 0.75]),
        (2, 2, [1, 1.5, 2, 2.5, 3]),
        (0, 0, [-0.5, -0.25, 0, 0.25, 0.5]),
    ],
)
def test_ticks_are_round_and_cover_all(low: float, high: float, expected: list[float]) -> None:
    np.testing.assert_allclose(ticks(low, high), expected, atol=1e-12)


def test_numbers_are_short() -> None:
    assert [short(value) for value in (1500, 0.25, 0.0, 1e-6, 12)] == ["1.5k", "0.25", "0", "1e-6", "12"]


def test_a_line_goes_from_corner_to_corner() -> None:
    line = Curve("one", 0, np.array([0, 100]), np.array([0.0, 1.0]), np.array([0.0, 0.9]), np.array([0.1, 1.0]))
    drawn = str(curves("loss", [line]))
    assert 'points="46.0,194.0 350.0,12.0"' in drawn
    assert drawn.count("<polygon") == 1
    assert curves("loss", []) == ""
    assert "<circle" in curves("loss", [Curve("one", 0, np.array([5]), np.array([1.0]))])


def test_long_lines_are_thinned() -> None:
    steps = np.arange(5000.0)
    drawn = curves("loss", [Curve("one", 0, steps, steps)])
    assert len(drawn) < 12_000


def test_a_mark_stands_at_its_value() -> None:
    drawn = str(marks("success", [Mark("gcb", 1, 0.5, (0.25, 0.75), "50 %", other=0.0)]))
    assert 'class="point" style="left:50.0%"' in drawn
    assert 'class="whisker" style="left:25.0%;width:50.0%"' in drawn
    assert 'class="diamond" style="left:0.0%"' in drawn
    assert "diamond" not in marks("success", [Mark("gcb", 1, 0.5, (0.25, 0.75), "50 %")])


def test_only_markup_is_markup() -> None:
    nasty = '<script>alert("&")</script>'
    escaped = "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;"
    assert tag("p", nasty, title=nasty) == f'<p title="{escaped}">{escaped}</p>'
    assert safe(Html("<b>")) == "<b>"
    assert join(["<", Html("<br>")]) == "&lt;<br>"
    assert void("img", alt='"', loading=None) == '<img alt="&quot;">'
    assert "<script" not in table([nasty], [[nasty, nasty]])
    assert "<script" not in curves(nasty, [Curve(nasty, 0, np.array([1, 2]), np.array([1.0, 2.0]))])
