"""Scenes and examples sampled from a visitor's choices, rendered before and after the expert's rollout."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gcb.envs import make_env
from gcb.envs.backgrounds import ClipBank, open_bank
from gcb.envs.layout import CABINET_HIGH, CABINET_LOW, DRAWER_TOLERANCE, SETTLED, TRAVEL, Layout
from gcb.envs.scene import Scene, reachable, sample_analogy, sample_scene
from gcb.envs.tabletop import TabletopEnv
from gcb.errors import GCBError
from gcb.explorer.choices import ByExample, SceneChoice
from gcb.explorer.display import data_url, task_label
from gcb.utils.seeding import episode_seed

DISPLAY_SIZE = 256
"""Side of the images for people, in pixels; the agent sees images of its dataset's size."""
CACHE_SIZE = 128
"""Rendered scenes in each cache, about 40 KB each."""
MAX_TRIES = 50
STREAM = 7_001
"""Separates the explorer's scenes from those of `gcb eval`; both use evaluation seeds, which no training set has."""
CONNECT_LOCK = threading.Lock()
MIN_MOVE = DRAWER_TOLERANCE + SETTLED


@dataclass(frozen=True, eq=False)
class RenderedScene:
    """A scene with its task: the initial state and the goal, as images."""

    scene: Scene
    before: np.ndarray
    """The initial observation of the agent."""
    after: np.ndarray
    """The goal image of the agent."""
    hidden_goal: np.ndarray
    before_url: str
    """The initial state for people, as a data URL."""
    after_url: str
    solved: bool
    """Whether the initial state already satisfies the goal."""

    @property
    def label(self) -> str:
        lower = (TRAVEL, 0.0) if self.scene.bottom_open else (0.0, TRAVEL)  # the button toggles the lower drawer
        return task_label(self.scene.task, (self.scene.opening, lower[0]), (self.scene.target, lower[1]))


class SceneRenderer:
    """Samples and renders scenes in simulators of its own, one at a time, each in a fraction of a second."""

    def __init__(self, env: str, options: Mapping[str, Any], clips: Path | None = None) -> None:
        """`clips` is a directory of background videos; by default the built-in ones are used."""
        self._source = clips or "builtin"
        self._env, self._options = env, {name: value for name, value in options.items() if name != "video"}
        self._lock = threading.Lock()
        self._small, self._large = self.make_env(), self.make_env(image_size=DISPLAY_SIZE)
        self._bank: ClipBank = open_bank(self._source, "eval")
        self.scene = lru_cache(CACHE_SIZE)(self._scene)
        self.scene_with_task = lru_cache(CACHE_SIZE)(self._scene_with_task)
        self.example = lru_cache(CACHE_SIZE)(self._example)

    @property
    def layout(self) -> Layout:
        return self._small.layout

    def make_env(self, **options: Any) -> TabletopEnv:
        """Make a simulator that renders background videos and does not terminate at success."""
        given = {**self._options, "video": self._source, "video_split": "eval", "terminate_at_success": False}
        # Connecting redirects the process's stdout; two at once could leave it redirected.
        with CONNECT_LOCK:
            return make_env(self._env, **{**given, **options})

    def close(self) -> None:
        self._small.close()
        self._large.close()

    def _scene(self, choice: SceneChoice) -> RenderedScene:
        """Render a scene by its seed, one in which the expert succeeds at every task. `video` changes nothing else."""
        rng = _generator(choice.seed, 0)

        def sample() -> Scene:
            scene = sample_scene(self.layout, rng)
            return replace(scene, clip=self._bank.sample(_generator(choice.seed, 1)) if choice.video else None)

        return self._first_solvable(sample, self.layout.tasks)

    def _scene_with_task(self, choice: SceneChoice, task: str | None, drawer_after: float | None) -> RenderedScene:
        """Render the scene with a task; if left out, with its own."""
        scene = self.scene(choice).scene
        if task in (None, scene.task) and drawer_after is None:
            return self.scene(choice)
        return self._render(self._set_task(scene, task, drawer_after))

    def _example(self, choice: SceneChoice, example: ByExample) -> RenderedScene:
        """Render an example of a task, in a scene analogous to the agent's."""
        scene = self._set_task(self.scene(choice).scene, example.name, example.drawer_after)
        opening = scene.opening if example.drawer_before is None else example.drawer_before * TRAVEL
        if scene.task == "drawer" and abs(scene.target - opening) < MIN_MOVE:
            moved, least = abs(scene.target - opening) / TRAVEL, MIN_MOVE / TRAVEL
            raise GCBError(f"the drawer moves by {moved:.0%} of its travel; it must move by at least {least:.0%}.")
        scene, rng = replace(scene, opening=opening), _generator(example.seed, 2)
        return self._first_solvable(lambda: self._sample_example(scene, example, rng), (scene.task,))

    def _sample_example(self, scene: Scene, example: ByExample, rng: np.random.Generator) -> Scene:
        if example.rotation:
            scene = _rotate(scene, np.radians(example.rotation), self.layout, rng)
        analogous = sample_analogy(scene, "strict", self.layout, rng)
        if example.color_seed is not None:
            colors = sample_analogy(scene, "strict", self.layout, _generator(example.color_seed, 3)).colors
            analogous = replace(analogous, colors=colors)
        return replace(analogous, clip=self._bank.sample(_generator(example.seed, 4)) if example.video else None)

    def _set_task(self, scene: Scene, task: str | None, drawer_after: float | None) -> Scene:
        task = task or scene.task
        if task not in self.layout.tasks:
            raise GCBError(f"task is {task!r}; it must be one of {', '.join(self.layout.tasks)}.")
        return replace(scene, task=task, target=scene.target if drawer_after is None else drawer_after * TRAVEL)

    def _first_solvable(self, sample: Callable[[], Scene], tasks: tuple[str, ...]) -> RenderedScene:
        """Sample scenes until the expert succeeds at all these tasks in one, and render that one."""
        for _ in range(MAX_TRIES):
            scene = sample()
            try:
                for task in tasks:
                    if task != scene.task:
                        with self._lock:
                            self._small.reset(options={"scene": replace(scene, task=task)})
                return self._render(scene)
            except GCBError:  # the expert fails in about one scene of 25
                continue
        raise GCBError(f"the expert failed in {MAX_TRIES} scenes sampled for these choices; change one of them.")

    def _render(self, scene: Scene) -> RenderedScene:
        with self._lock:
            small, info = self._small.reset(options={"scene": scene})
            large, _ = self._large.reset(options={"scene": scene})
        return RenderedScene(
            scene,
            small["observation"],
            small["desired_goal"],
            info["goal_state"],
            data_url(large["observation"]),
            data_url(large["desired_goal"]),
            info["success"],
        )


def _generator(seed: int, purpose: int) -> np.random.Generator:
    """Return a generator per seed and purpose, so that changing one choice leaves the others' samples unchanged."""
    return np.random.default_rng([episode_seed("eval", STREAM, seed), purpose])


def _rotate(scene: Scene, angle: float, layout: Layout, rng: np.random.Generator) -> Scene:
    """Rotate the cabinet, at a position where all of it is reachable."""
    yaw = scene.cabinet_yaw + angle
    while True:
        xy = rng.uniform(CABINET_LOW, CABINET_HIGH)
        if reachable(layout, xy, yaw):
            return replace(scene, cabinet_xy=(float(xy[0]), float(xy[1])), cabinet_yaw=float(yaw))
