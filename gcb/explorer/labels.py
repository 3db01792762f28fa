"""Tasks in words, for the captions of pictures."""

import numpy as np

from gcb.analysis.embed import Tasks
from gcb.analysis.geometry import openings
from gcb.envs.layout import TRAVEL


def share(opening: float) -> float:
    """An opening in metres as a share of the drawer's travel."""
    return float(np.clip(opening / TRAVEL, 0.0, 1.0))


def drawer_words(before: float, after: float) -> str:
    """Setting the drawer, by shares of its travel."""
    verb = "open" if after > before else "close"
    return f"{verb} the drawer: {100 * before:.0f} to {100 * after:.0f} %"


def button_words(lower_opens: bool) -> str:
    """Pressing the button, which moves the lower drawer."""
    return f"press the button: lower drawer {'opens' if lower_opens else 'closes'}"


def words_of_change(task: str, before: np.ndarray, after: np.ndarray) -> str:
    """A task by the openings (in metres) of the drawers before and after it."""
    if task == "button" and len(after) > 1:
        return button_words(bool(after[1] > TRAVEL / 2))
    return drawer_words(share(before[0]), share(after[0]))


def words_of_tasks(tasks: Tasks, pose: np.ndarray | None) -> list[str]:
    """One caption for each task of a dataset; where its hidden states mean nothing to us, the task's name."""
    if pose is None or tasks.hidden_state is None or tasks.hidden_goal is None:
        return [str(name) for name in tasks.task]
    before, after = openings(tasks.hidden_state, pose), openings(tasks.hidden_goal, pose)
    return [words_of_change(str(name), *change) for name, *change in zip(tasks.task, before, after, strict=True)]
