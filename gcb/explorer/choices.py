"""The requests of the page: numbers within bounds, and nothing else."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Seed = Annotated[int, Field(ge=0, lt=2**31)]
Fraction = Annotated[float, Field(ge=0, le=1)]
TaskName = Annotated[str, Field(min_length=1, max_length=40)]


class Choice(BaseModel, frozen=True):
    """Strictly typed, finite and hashable: a choice is also the key under which its rendered scene is cached."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SceneChoice(Choice, frozen=True):
    """The scene in which the agent acts."""

    seed: Seed
    """Evaluation seed; no training set contains these scenes."""
    video: bool = False
    """Whether a video plays in the background."""


class ByExample(Choice, frozen=True):
    """A task given by an example from another scene. Fields left out are as in the agent's own scene."""

    by: Literal["example"] = "example"
    seed: Seed
    """Samples the cabinet's position, the colours and the distractors."""
    name: TaskName | None = None
    drawer_before: Fraction | None = None
    """How far the drawer is open before, as a fraction of its travel."""
    drawer_after: Fraction | None = None
    """How far the drawer is open in the goal, as a fraction of its travel."""
    rotation: Annotated[float, Field(ge=-180, le=180)] = 0.0
    """Degrees by which the cabinet is rotated relative to the agent's scene, plus the noise of an analogy."""
    color_seed: Seed | None = None
    """Samples the colours; if left out, `seed` does."""
    video: bool = False


class ByGoal(Choice, frozen=True):
    """A task given by a goal image of the agent's own scene."""

    by: Literal["goal"]
    name: TaskName | None = None
    drawer_after: Fraction | None = None


class ByDataset(Choice, frozen=True):
    """A task given by a pair (s, g) of the dataset: a point of the map."""

    by: Literal["dataset"]
    index: Annotated[int, Field(ge=0, lt=1_000_000)]


TaskChoice = Annotated[ByExample | ByGoal | ByDataset, Field(discriminator="by")]


class TaskRequest(Choice, frozen=True):
    """A scene and the task to do in it."""

    scene: SceneChoice
    task: TaskChoice
