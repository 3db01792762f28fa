"""Grids by name: the paper's table, the comparison with reference, and the ablations of its appendix."""

from collections.abc import Callable

from gcb.errors import lookup
from gcb.methods import METHODS
from gcb.sweep.grid import Grid, Variant

ABLATIONS_GRID = "ablations"


def table1() -> Grid:
    """The paper's Table 1: every method, both worlds, with and without video."""
    return Grid(tuple(METHODS), ("drawer", "button_drawer"), ("plain", "video"))


def reference() -> Grid:
    """GCB between cloning that is told its goal and cloning that never is, in every world."""
    return Grid(("gcb", "gcbc", "goal_agnostic_bc"), ("drawer", "button_drawer"), ("plain", "video"))


def comparison() -> Grid:
    """Every method on Button and Drawer, without video."""
    return Grid(tuple(METHODS), ("button_drawer",))


READY: dict[str, Callable[[], Grid]] = {one.__name__: one for one in (table1, reference, comparison)}


def ready_grids() -> dict[str, Callable[[], Grid]]:
    """Every grid that has a name: also each ablation's figure, and all ablations together."""
    from gcb.runs.ablations import ABLATIONS

    figures = dict.fromkeys(one.figure for one in ABLATIONS.values())
    grids = {figure: lambda figure=figure: ablation_grid(figure) for figure in figures}
    return {**READY, **grids, ABLATIONS_GRID: ablation_grid}


def ablation_grid(figure: str | None = None) -> Grid:
    """The ablations of a figure, or all, each beside the method as it is."""
    from gcb.runs.ablations import ABLATIONS

    chosen = [one for one in ABLATIONS.values() if figure in (None, one.figure)]
    variants = [Variant(one.name, one.changes, envs=(one.env,)) for one in chosen]
    envs = tuple(dict.fromkeys(one.env for one in chosen))
    return Grid(("gcb",), envs, variants=(Variant(), *variants))


def ready_grid(name: str) -> Grid:
    """The grid of this name."""
    grids = READY if name in READY else ready_grids()
    return lookup(grids, name, "grid", also="; or name a .yaml file")()
