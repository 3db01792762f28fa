"""The requests of the page: bounded numbers, names and pictures; everything else is refused."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Seed = Annotated[int, Field(ge=0, lt=2**31)]
Fraction = Annotated[float, Field(ge=0, le=1)]
TaskName = Annotated[str, Field(min_length=1, max_length=40)]
Picture = Annotated[str, Field(min_length=1, max_length=200_000)]
"""A PNG image of the agent's resolution, in base64."""


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


class ByPictures(Choice, frozen=True):
    """A task given by a visitor's own pictures. Success is judged by a task of the scene, by default its own."""

    by: Literal["pictures"]
    before: Picture
    after: Picture
    name: TaskName | None = None
    drawer_after: Fraction | None = None


TaskChoice = Annotated[ByExample | ByGoal | ByDataset | ByPictures, Field(discriminator="by")]


class TaskRequest(Choice, frozen=True):
    """A scene and the task to do in it."""

    scene: SceneChoice
    task: TaskChoice


class SuccessRequest(Choice, frozen=True):
    """Scenes in which to count successes, each with its own task; the example of a scene has the scene's seed."""

    by: Literal["example", "goal"]
    seed: Seed
    """The first scene; the others have the seeds after it."""
    scenes: Annotated[int, Field(ge=1, le=200)]
    video: bool = False

    def scene(self, number: int) -> SceneChoice:
        """Return the scene of this number, counted from 0."""
        return SceneChoice(seed=(self.seed + number) % 2**31, video=self.video)
