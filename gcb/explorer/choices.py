"""What a visitor chooses, as a request brings it: numbers within bounds, and nothing else."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Seed = Annotated[int, Field(ge=0, lt=2**31)]
Share = Annotated[float, Field(ge=0, le=1)]
TaskName = Annotated[str, Field(min_length=1, max_length=40)]


class Choice(BaseModel, frozen=True):
    """Whole, finite, of the right type, and hashable: a choice is also the key of what was drawn for it."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SceneChoice(Choice, frozen=True):
    """Where the agent is to act."""

    seed: Seed
    """Which of the scenes; none of them is in any training set."""
    video: bool = False
    """Whether a clip plays behind it."""


class ByExample(Choice, frozen=True):
    """Told by an example from another scene. What is left out is as in the scene itself."""

    by: Literal["example"] = "example"
    seed: Seed
    """Place of the cabinet, and the things about it."""
    task: TaskName | None = None
    before: Share | None = None
    """How far the drawer is open before, as a share of its travel."""
    after: Share | None = None
    """How far it is to be open."""
    turn: Annotated[float, Field(ge=-180, le=180)] = 0.0
    """Degrees by which the cabinet is turned against the scene's, give or take the noise of an analogy."""
    colors: Seed | None = None
    """Which colours; left out, they go with the place."""
    video: bool = False


class ByGoal(Choice, frozen=True):
    """Told by a picture of this very scene as it shall be."""

    by: Literal["goal"]
    task: TaskName | None = None
    after: Share | None = None


class ByDataset(Choice, frozen=True):
    """Told by a task of the dataset: a point of the map."""

    by: Literal["data"]
    index: Annotated[int, Field(ge=0, lt=1_000_000)]


TaskChoice = Annotated[ByExample | ByGoal | ByDataset, Field(discriminator="by")]


class TaskRequest(Choice, frozen=True):
    """A scene, and what is to be done in it."""

    scene: SceneChoice
    told: TaskChoice
