"""Requests are validated strictly."""

import json

import pytest
from pydantic import ValidationError

from gcb.explorer.choices import ByDataset, ByExample, ByGoal, TaskRequest

GOOD = {"scene": {"seed": 1}, "task": {"by": "example", "seed": 2}}


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        (
            {"by": "example", "seed": 2, "rotation": -180, "drawer_before": 0, "drawer_after": 1},
            ByExample,
        ),
        ({"by": "example", "seed": 2, "color_seed": 0, "name": "drawer", "video": True}, ByExample),
        ({"by": "goal", "name": "drawer", "drawer_after": 0.5}, ByGoal),
        ({"by": "dataset", "index": 7}, ByDataset),
    ],
)
def test_valid_requests_are_parsed(task: dict, expected: type) -> None:
    assert type(TaskRequest.model_validate_json(json.dumps({**GOOD, "task": task})).task) is expected


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
        {"task": {"by": "magic"}},
        {"task": {"by": "dataset", "index": -1}},
        {"task": {"by": "goal", "drawer_after": 1.01}},
        {"task": {"by": "goal", "name": "x" * 41}},
        {"task": {"by": "example", "seed": 2, "rotation": 181}},
        {"task": {}},
        {"task": None},
    ],
)
def test_invalid_requests_are_rejected(changes: dict) -> None:
    with pytest.raises(ValidationError):
        TaskRequest.model_validate_json(json.dumps({**GOOD, **changes}))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_must_be_finite(number: str) -> None:
    text = json.dumps({**GOOD, "task": {"by": "goal", "drawer_after": 0.123}}).replace("0.123", number)
    with pytest.raises(ValidationError):
        TaskRequest.model_validate_json(text)


def test_equal_choices_have_equal_hashes() -> None:
    first, second = TaskRequest.model_validate(GOOD), TaskRequest.model_validate(GOOD)
    assert first == second
    assert hash(first.task) == hash(second.task)
