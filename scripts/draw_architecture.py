"""Draw docs/images/architecture.png, the picture in docs/method.md: python -m scripts.draw_architecture"""

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

OUT = Path(__file__).parents[1] / "docs" / "images" / "architecture.png"
IMAGE, NETWORK, POLICY, LOSS = "#e8edf2", "#d5e5d8", "#f3dfc4", "#f0d4d4"
INK = "#2b3440"


def box(ax: Axes, x: float, y: float, text: str, color: str, width: float = 1.9, height: float = 0.8) -> None:
    """Draw a box centred at (x, y)."""
    corner = (x - width / 2, y - height / 2)
    style = "round,pad=0.02,rounding_size=0.1"
    ax.add_patch(FancyBboxPatch(corner, width, height, boxstyle=style, facecolor=color, edgecolor=INK, lw=0.9))
    ax.text(x, y, text, ha="center", va="center", fontsize=9, color=INK, linespacing=1.35)


def arrow(ax: Axes, *points: tuple[float, float], text: str = "", style: str = "-") -> None:
    """Draw an arrow along these points, with a text beside its middle."""
    xs, ys = zip(*points, strict=True)
    ax.plot(xs[:-1], ys[:-1], color=INK, lw=1.1, ls=style)
    properties = {"arrowstyle": "-|>", "color": INK, "lw": 1.1, "ls": style, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", points[-1], points[-2], arrowprops=properties)
    if text:
        middle = points[len(points) // 2 - 1], points[len(points) // 2]
        x, y = (sum(values) / 2 for values in zip(*middle, strict=True))
        ax.text(x, y + 0.12, text, ha="center", va="bottom", fontsize=8, color=INK)


def draw() -> Figure:
    figure = Figure(figsize=(10, 5.2), layout="constrained")
    ax = figure.subplots()
    ax.set(xlim=(0, 13.2), ylim=(0.1, 6.9))
    ax.axis("off")
    box(ax, 1.1, 5.9, "state $s_t$", IMAGE)
    box(ax, 1.1, 4.4, "goal $g$", IMAGE)
    box(ax, 1.1, 2.3, "example\n$(s_a, g_a)$", IMAGE)
    box(ax, 3.7, 4.1, "one trunk\n(convolutions)", NETWORK, height=4.4)
    for y in (5.9, 4.4, 2.3):
        arrow(ax, (2.1, y), (2.7, y))
    box(ax, 6.4, 5.9, "$\\psi(s)$: linear", NETWORK)
    box(ax, 6.4, 4.4, "$\\varphi(s, g)$: fuses\ntwo feature maps", NETWORK, height=1.0)
    box(ax, 6.4, 2.3, "$\\varphi(s_a, g_a)$", NETWORK)
    arrow(ax, (4.7, 5.9), (5.4, 5.9))
    arrow(ax, (4.7, 4.4), (5.4, 4.4))
    arrow(ax, (4.7, 2.3), (5.4, 2.3))
    box(ax, 9.0, 2.3, "bottleneck\n16 noisy numbers", NETWORK)
    arrow(ax, (7.4, 2.3), (8.0, 2.3))
    box(ax, 11.9, 5.2, "policy for goals\n$\\pi(\\psi(s), \\varphi(s, g))$", POLICY, width=2.3, height=1.1)
    box(ax, 11.9, 2.7, "policy for analogies\n$\\pi(\\psi(s), b)$", POLICY, width=2.3, height=1.1)
    arrow(ax, (7.4, 5.9), (10.35, 5.9), (10.35, 5.5), (10.7, 5.5))
    arrow(ax, (7.4, 4.4), (10.35, 4.4), (10.35, 4.95), (10.7, 4.95))
    arrow(ax, (9.0, 5.9), (9.0, 3.15), (10.35, 3.15), (10.35, 3.0), (10.7, 3.0))
    arrow(ax, (10.0, 2.3), (10.7, 2.45))
    box(ax, 6.4, 0.75, "metric $L_\\varphi$, and walks along it: partners", LOSS, width=4.6)
    arrow(ax, (7.4, 4.1), (7.7, 4.1), (7.7, 1.2), style=":")
    arrow(ax, (4.1, 0.75), (1.1, 0.75), (1.1, 1.85), style="--")
    ax.text(2.6, 0.9, "in training: the pair of a partner", ha="center", va="bottom", fontsize=8, color=INK)
    return figure


if __name__ == "__main__":
    draw().savefig(OUT, dpi=140)
