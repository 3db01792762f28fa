"""A request is numbers within bounds, and nothing else."""

import json

import pytest
from pydantic import ValidationError

from gcb.explorer.choices import ByDataset, ByExample, ByGoal, TaskRequest

GOOD = {"scene": {"seed": 1}, "told": {"by": "example", "seed": 2}}


@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"by": "example", "seed": 2, "turn": -180, "before": 0, "after": 1, "colors": 0}, ByExample),
        ({"by": "goal", "task": "drawer", "after": 0.5}, ByGoal),
        ({"by": "data", "index": 7}, ByDataset),
    ],
)
def test_what_is_meant_is_understood(told: dict, kind: type) -> None:
    assert type(TaskRequest.model_validate_json(json.dumps({**GOOD, "told": told})).told) is kind


@pytest.mark.parametrize(
    "changes",
    [
        {"scene": {"seed": -1}},
        {"scene": {"seed": 2**31}},
        {"scene": {"seed": 10**400}},
        {"scene": {"seed": 1.5}},
        {"scene": {"seed": "1"}},
        {"scene": {"seed": True}},
        {"scene": {"seed": 1, "path": "../../etc/passwd"}},
        {"told": {"by": "magic"}},
        {"told": {"by": "data", "index": -1}},
        {"told": {"by": "goal", "after": 1.01}},
        {"told": {"by": "goal", "task": "x" * 41}},
        {"told": {"by": "example", "seed": 2, "turn": 181}},
        {"told": {}},
        {"told": None},
    ],
)
def test_anything_else_is_refused(changes: dict) -> None:
    with pytest.raises(ValidationError):
        TaskRequest.model_validate_json(json.dumps({**GOOD, **changes}))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_what_is_not_finite_is_refused(number: str) -> None:
    text = json.dumps({**GOOD, "told": {"by": "goal", "after": 0.123}}).replace("0.123", number)
    with pytest.raises(ValidationError):
        TaskRequest.model_validate_json(text)


def test_equal_choices_are_one_key() -> None:
    first, second = TaskRequest.model_validate(GOOD), TaskRequest.model_validate(GOOD)
    assert first == second
    assert hash(first.told) == hash(second.told)
