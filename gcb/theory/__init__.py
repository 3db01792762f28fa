"""The paper's theory, executable: the exact goal-conditioned bisimulation metric on small worlds.

```python
from gcb.theory import grid_world, metric, on_policy, optimal_policy

world = grid_world(("...", ".#.", "..."))
d = metric(on_policy(world, optimal_policy(world)), c=0.9, scaled=True)  # [task, task]
```
"""

from gcb.theory.builders import drawer_button_world, grid_world, open_plan, random_world, stay_or_switch_world
from gcb.theory.gcmdp import GCMDP
from gcb.theory.metric import Metric, Operator, improve_plans, iterate, metric, sampled_metric
from gcb.theory.policies import evaluate, one_policy_for_all_goals, optimal_policy, random_policy, uniform_policy
from gcb.theory.process import TaskProcess, all_actions, on_policy, quotient
from gcb.theory.relation import bisimulation_classes, state_classes
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
    "drawer_button_world",
    "evaluate",
    "grid_world",
    "improve_plans",
    "iterate",
    "metric",
    "on_policy",
    "one_policy_for_all_goals",
    "open_plan",
    "optimal_policy",
    "quotient",
    "random_policy",
    "random_world",
    "run",
    "sampled_metric",
    "state_classes",
    "stay_or_switch_world",
    "uniform_policy",
]


def run(*arguments, **options) -> list[Verdict]:
    """Check everything and write the report: see `gcb.theory.report.run`."""
    from gcb.theory.report import run as run_all  # torch and matplotlib are needed here only

    return run_all(*arguments, **options)
