"""What the metric can and cannot tell apart: three tasks of equal length on the toy drawer-and-button table."""

from dataclasses import dataclass

import numpy as np

from gcb.theory.builders import PLACES, drawer_button_mdp
from gcb.theory.gcmdp import GCMDP, Floats, optimal_policy
from gcb.theory.metric import metric
from gcb.theory.process import all_actions, on_policy
from gcb.theory.verdicts import Tally, Verdict

# (top drawer, bottom drawer) before and after; each takes two actions from the middle of the table
FUNCTIONS = {"open": ((0, 0), (1, 0)), "close": ((1, 0), (0, 0)), "press": ((0, 0), (0, 1))}
# (layout, colour)
SCENES = {"": (0, 0), ", other colour": (0, 1), ", mirrored": (1, 0)}
SOURCE = "Eq. (gcbm)"
ZERO = 1e-7


@dataclass(frozen=True)
class Comparison:
    """Distances between the same nine tasks under one metric, scaled by (1 - c)."""

    name: str
    tasks: list[str]
    distances: Floats
    """[task, task]"""

    def between(self, first: str, second: str) -> float:
        return float(self.distances[self.tasks.index(first), self.tasks.index(second)])

    def functions(self) -> list[float]:
        """Return distances of different functions in one scene, which should be positive."""
        names = list(FUNCTIONS)
        return [self.between(a, b) for number, a in enumerate(names) for b in names[number + 1 :]]

    def analogies(self, scene: str) -> list[float]:
        """Return distances of the same function in two scenes, which should be 0."""
        return [self.between(name, name + scene) for name in FUNCTIONS]


def _task(mdp: GCMDP, scene: tuple[int, int], function: str) -> int:
    def state(drawers: tuple[int, int]) -> int:
        name = f"layout{scene[0]}/colour{scene[1]}/{PLACES[1]}/top{drawers[0]}/bottom{drawers[1]}"
        return list(mdp.state_names).index(name)

    before, after = FUNCTIONS[function]
    return mdp.task(state(before), state(after))


def compare(c: float = 0.9) -> list[Comparison]:
    """The nine tasks under the on-policy metric, the same with actions in it, and the metric over all actions."""
    mdp = drawer_button_mdp(gamma=c)
    names = [function + scene for scene in SCENES for function in FUNCTIONS]
    tasks = [_task(mdp, scene, function) for scene in SCENES.values() for function in FUNCTIONS]
    policy_process = on_policy(mdp, optimal_policy(mdp))
    metrics = {
        "on-policy, reward only (Eq. gcbm)": metric(policy_process, c, scaled=True),
        "on-policy, with |π − π′|": metric(policy_process, c, scaled=True, action_weight=1.0),
        "all actions (Definition 4.1)": metric(all_actions(mdp), c, scaled=True),
    }
    return [Comparison(name, names, d[np.ix_(tasks, tasks)]) for name, d in metrics.items()]


def check_functions(comparisons: list[Comparison]) -> list[Verdict]:
    """Check that different functions are apart, and the same function in another scene is at distance 0."""
    reward_only, with_actions, every_action = comparisons
    verdicts = []
    for comparison, source, apart in (
        (reward_only, SOURCE, False),
        (with_actions, "with |π − π′|", True),
        (every_action, "Definition 4.1", True),
    ):
        tally = Tally(source, "open, close and press (two steps each) are told apart", expected=apart)
        for distance in comparison.functions():
            tally.add(float(distance <= ZERO))
        verdicts.append(tally.verdict("distances " + _listed(comparison.functions())))
    for comparison, source, scene, together in (
        (with_actions, "with |π − π′|", ", other colour", True),
        (every_action, "Definition 4.1", ", other colour", True),
        (with_actions, "with |π − π′|", ", mirrored", False),
        (every_action, "Definition 4.1", ", mirrored", False),
    ):
        tally = Tally(source, f"the same function{scene}, is at distance 0", expected=together)
        for distance in comparison.analogies(scene):
            tally.add(distance)
        verdicts.append(tally.verdict())
    mirror = with_actions.between("close", "press, mirrored")
    tally = Tally("with |π − π′|", "close, and press in the mirrored scene, are told apart", expected=False)
    tally.add(float(mirror <= ZERO))
    return [*verdicts, tally.verdict("both go left and push: movements are compared, not what they bring about")]


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)
