"""Grids by name: the paper's Table 1, comparisons, and the ablations of its appendix."""

from gcb.errors import lookup
from gcb.methods import METHODS
from gcb.runs.ablations import ABLATIONS
from gcb.sweep.grid import Grid, Variant

ENVS = ("drawer", "button_drawer")


def grids() -> dict[str, Grid]:
    """Return every named grid. Methods of plugins are included in those that compare all methods."""
    figures = dict.fromkeys(ablation.figure for ablation in ABLATIONS.values())
    return {
        # The paper's Table 1: every method in both environments, with and without video distractors.
        "table1": Grid(tuple(METHODS), ENVS, (False, True)),
        # GCB beside goal-conditioned BC and goal-agnostic BC.
        "reference": Grid(("gcb", "gcbc", "goal_agnostic_bc"), ENVS, (False, True)),
        # Every method on Button and Drawer, without video distractors.
        "comparison": Grid(tuple(METHODS)),
        # The ablations of each figure; "components" and "partners" are not in the paper.
        **{figure: ablation_grid(figure) for figure in figures},
        "ablations": ablation_grid(),
    }


def ablation_grid(figure: str | None = None) -> Grid:
    """Return the ablations of a figure, or all, together with unchanged GCB."""
    ablations = [ablation for ablation in ABLATIONS.values() if figure in (None, ablation.figure)]
    variants = [Variant(ablation.name, dict(ablation.changes), envs=(ablation.env,)) for ablation in ablations]
    envs = tuple(dict.fromkeys(ablation.env for ablation in ablations))
    return Grid(("gcb",), envs, variants=(Variant(), *variants))


def named_grid(name: str) -> Grid:
    """Return the grid of this name."""
    return lookup(grids(), name, "grid", also="; or a .yaml file")
