"""Curves and intervals as small SVG pictures that take their colours from the page, by day and by night."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gcb.report.html import Html, join, tag

WIDTH, HEIGHT = 360, 220
LEFT, RIGHT, TOP, BOTTOM = 46, 10, 12, 26
MOST_POINTS = 300
COLOURS = 6
"""Colours that the page has; after them they begin anew."""

Scale = Callable[[float], float]


@dataclass(frozen=True, eq=False)
class Curve:
    """A line, with a band around it where there is one."""

    label: str
    colour: int
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


@dataclass(frozen=True)
class Mark:
    """A number with its interval in a row, and beside it another to compare it with."""

    label: str
    colour: int
    value: float
    interval: tuple[float, float]
    text: str
    other: float | None = None


def curves(title: str, lines: Sequence[Curve]) -> Html:
    """A chart of lines over training steps."""
    lines = [_thinned(line) for line in lines if len(line.x)]
    if not lines:
        return Html("")
    parts = [(line.low, line.high, line.y) for line in lines]
    y_ticks = ticks(_least(parts), _most(parts))
    x_ticks = ticks(0.0, max(float(line.x.max()) for line in lines))
    across = _scale(x_ticks[0], x_ticks[-1], LEFT, WIDTH - RIGHT)
    up = _scale(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    grid = [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=_n(up(y)), y2=_n(up(y)), class_="grid") for y in y_ticks]
    grid += [_text(LEFT - 5, up(y) + 3.5, short(y), "end") for y in y_ticks]
    grid += [_text(across(x), HEIGHT - 9, short(x), "middle") for x in x_ticks]
    drawn = [part for line in lines for part in _line(line, across, up)]
    picture = _svg(f"{title}: {', '.join(line.label for line in lines)}", *grid, *drawn)
    return tag("figure", picture, tag("figcaption", title), class_="chart")


def marks(title: str, rows: Sequence[Mark]) -> Html:
    """Shares between 0 and 1 in rows, each a dot on its interval; a diamond is the number to compare it with.

    Made of boxes instead of a picture: it stays readable at every width.
    """
    if not rows:
        return Html("")
    lines = []
    for row in rows:
        low, high = row.interval
        parts = [tag("i", class_="whisker", style=f"left:{_percent(low)};width:{_percent(high - low)}")]
        if row.other is not None:
            parts.append(tag("i", class_="diamond", style=f"left:{_percent(row.other)}"))
        parts.append(tag("i", class_="point", style=f"left:{_percent(row.value)}"))
        track = tag("div", *parts, class_=f"track c{row.colour % COLOURS}", aria_hidden="true")
        lines.append(tag("li", tag("span", row.label), " ", tag("b", row.text), track))
    scale = tag(
        "div", *(tag("span", f"{share} %") for share in (0, 25, 50, 75, 100)), class_="scale", aria_hidden="true"
    )
    return tag("figure", tag("ul", *lines), scale, tag("figcaption", title), class_="marks")


def legend(labels: Sequence[str]) -> Html:
    """Which colour is which."""
    return tag("ul", *(tag("li", label, class_=f"c{i % COLOURS}") for i, label in enumerate(labels)), class_="legend")


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-12):
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


def short(value: float) -> str:
    """A number in a few signs: 1.5k, 0.25."""
    if abs(value) >= 1000:
        return f"{value / 1000:g}k"
    return f"{value:.3g}".replace("e-0", "e-").replace("e+0", "e")


def _thinned(line: Curve) -> Curve:
    every = -(-len(line.x) // MOST_POINTS)
    band = (None if part is None else part[::every] for part in (line.low, line.high))
    return Curve(line.label, line.colour, line.x[::every], line.y[::every], *band)


def _line(line: Curve, across: Scale, up: Scale) -> list[Html]:
    colour = f"c{line.colour % COLOURS}"
    path = " ".join(f"{_n(across(x))},{_n(up(y))}" for x, y in zip(line.x, line.y, strict=True))
    parts = [tag("polyline", points=path, class_=f"line {colour}")]
    if len(line.x) == 1:
        parts.append(tag("circle", cx=_n(across(line.x[0])), cy=_n(up(line.y[0])), r=4, class_=f"dot {colour}"))
    if line.low is None or line.high is None:
        return parts
    edge = [*zip(line.x, line.high, strict=True), *zip(line.x[::-1], line.low[::-1], strict=True)]
    band = " ".join(f"{_n(across(x))},{_n(up(y))}" for x, y in edge)
    return [tag("polygon", points=band, class_=f"band {colour}"), *parts]


def _least(parts: Sequence[tuple[np.ndarray | None, ...]]) -> float:
    return min(float(part.min()) for group in parts for part in group if part is not None)


def _most(parts: Sequence[tuple[np.ndarray | None, ...]]) -> float:
    return max(float(part.max()) for group in parts for part in group if part is not None)


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def _text(x: float, y: float, text: str, anchor: str) -> Html:
    return tag("text", text, x=_n(x), y=_n(y), text_anchor=anchor)


def _svg(title: str, *parts: Html) -> Html:
    return tag("svg", tag("title", title), join(parts), viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img")


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _n(value: float) -> str:
    return f"{value:.1f}"
