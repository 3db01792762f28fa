"""Scenes and examples sampled from a visitor's choices, rendered before and after the expert's rollout."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gcb.analysis.geometry import openings
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
class PlayedScene:
    """A scene with its task as the agent sees it: the initial state, and the goal that the expert reached."""

    scene: Scene
    before: np.ndarray
    """The initial observation of the agent."""
    after: np.ndarray
    """The goal image of the agent."""
    hidden_goal: np.ndarray
    solved: bool
    """Whether the initial state already satisfies the goal."""

    @property
    def pose(self) -> np.ndarray:
        """The cabinet's (x, y, yaw)."""
        return np.array([*self.scene.cabinet_xy, self.scene.cabinet_yaw])

    @property
    def label(self) -> str:
        """The task as it is judged: by the goal that the expert reached, which may be short of the target."""
        lower = TRAVEL if self.scene.bottom_open else 0.0
        goal = openings(self.hidden_goal[None], self.pose[None])[0].tolist()
        return task_label(self.scene.task, (self.scene.opening, lower), goal)


@dataclass(frozen=True, eq=False)
class RenderedScene(PlayedScene):
    """A scene with its task, also as images for people."""

    before_url: str
    """The initial state, as a data URL."""
    after_url: str


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

    def play_scene(self, choice: SceneChoice) -> PlayedScene:
        """Return a scene by its seed, one in which the expert succeeds at every task. `video` changes nothing else."""
        rng = _generator(choice.seed, 0)

        def sample() -> Scene:
            scene = sample_scene(self.layout, rng)
            return replace(scene, clip=self._bank.sample(_generator(choice.seed, 1)) if choice.video else None)

        return self._first_solvable(sample, self.layout.tasks)

    def play_example(self, scene: Scene, example: ByExample) -> PlayedScene:
        """Return an example of a task, in a scene analogous to the agent's."""
        scene = self._set_task(scene, example.name, example.drawer_after)
        opening = scene.opening if example.drawer_before is None else example.drawer_before * TRAVEL
        if scene.task == "drawer" and abs(scene.target - opening) < MIN_MOVE:
            moved, least = abs(scene.target - opening) / TRAVEL, MIN_MOVE / TRAVEL
            raise GCBError(f"the drawer moves by {moved:.0%} of its travel; it must move by at least {least:.0%}.")
        scene, rng = replace(scene, opening=opening), _generator(example.seed, 2)
        return self._first_solvable(lambda: self._sample_example(scene, example, rng), (scene.task,))

    def _scene(self, choice: SceneChoice) -> RenderedScene:
        return self._render(self.play_scene(choice))

    def _scene_with_task(self, choice: SceneChoice, task: str | None, drawer_after: float | None) -> RenderedScene:
        """Render the scene with a task; if left out, with its own."""
        scene = self.scene(choice).scene
        if task in (None, scene.task) and drawer_after is None:
            return self.scene(choice)
        return self._render(self._play(self._set_task(scene, task, drawer_after)))

    def _example(self, choice: SceneChoice, example: ByExample) -> RenderedScene:
        """Render an example of a task, in a scene analogous to the agent's."""
        return self._render(self.play_example(self.scene(choice).scene, example))

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

    def _first_solvable(self, sample: Callable[[], Scene], tasks: tuple[str, ...]) -> PlayedScene:
        """Sample scenes until the expert succeeds at all these tasks in one, and return that one."""
        for _ in range(MAX_TRIES):
            scene = sample()
            try:
                for task in tasks:
                    if task != scene.task:
                        self._play(replace(scene, task=task))
                return self._play(scene)
            except GCBError:  # the expert fails in about one scene of 25
                continue
        raise GCBError(f"the expert failed in {MAX_TRIES} scenes sampled for these choices; change one of them.")

    def _play(self, scene: Scene) -> PlayedScene:
        with self._lock:
            images, info = self._small.reset(options={"scene": scene})
        return PlayedScene(scene, images["observation"], images["desired_goal"], info["goal_state"], info["success"])

    def _render(self, played: PlayedScene) -> RenderedScene:
        with self._lock:
            images, _ = self._large.reset(options={"scene": played.scene})
        before_url, after_url = data_url(images["observation"]), data_url(images["desired_goal"])
        return RenderedScene(**vars(played), before_url=before_url, after_url=after_url)


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
