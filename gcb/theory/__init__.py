"""The paper's theory, executable: the exact goal-conditioned bisimulation metric on small MDPs.

```python
from gcb.theory import grid_world, metric, on_policy, optimal_policy

mdp = grid_world(("...", ".#.", "..."))
d = metric(on_policy(mdp, optimal_policy(mdp)), c=0.9, scaled=True)  # [task, task]
```
"""

from gcb.theory.builders import drawer_button_mdp, grid_world, open_plan, random_mdp, stay_or_switch_mdp
from gcb.theory.gcmdp import GCMDP, evaluate, goal_agnostic_policy, optimal_policy, random_policy, uniform_policy
from gcb.theory.metric import Metric, Operator, improve_plans, iterate, metric, sampled_metric
from gcb.theory.process import TaskProcess, all_actions, bisimulation_classes, on_policy, quotient, state_classes
from gcb.theory.verdicts import Verdict, as_markdown

__all__ = [
    "GCMDP",
    "Metric",
    "Operator",
    "TaskProcess",
    "Verdict",
    "all_actions",
    "as_markdown",
    "bisimulation_classes",
    "drawer_button_mdp",
    "evaluate",
    "goal_agnostic_policy",
    "grid_world",
    "improve_plans",
    "iterate",
    "metric",
    "on_policy",
    "open_plan",
    "optimal_policy",
    "quotient",
    "random_mdp",
    "random_policy",
    "run",
    "sampled_metric",
    "state_classes",
    "stay_or_switch_mdp",
    "uniform_policy",
]


def run(*arguments, **options) -> list[Verdict]:
    """Check every claim and write the report; see `gcb.theory.report.run`."""
    from gcb.theory.report import run as run_all  # torch and matplotlib are needed here only

    return run_all(*arguments, **options)
