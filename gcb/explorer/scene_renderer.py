"""Scenes and examples, drawn from what a visitor chose and photographed before and after the expert's work."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from gcb.envs import TabletopEnv, make_env
from gcb.envs.backgrounds import ClipBank, open_bank
from gcb.envs.layout import CABINET_HIGH, CABINET_LOW, DRAWER_TOLERANCE, SETTLED, TRAVEL, Layout
from gcb.envs.scene import Scene, reachable, sample_analogy, sample_scene
from gcb.errors import GCBError
from gcb.explorer.choices import ByExample, SceneChoice
from gcb.explorer.images import data_url
from gcb.explorer.labels import button_words, drawer_words, share
from gcb.utils.seeding import episode_seed

DISPLAY_SIZE = 256
"""Side of the pictures for people; the agent sees those of its dataset."""
KEPT = 128
"""Views of each kind that are kept at hand, some 40 KB each."""
TRIES = 50
STREAM = 7_001
"""Tells the explorer's scenes from those of `gcb eval`; both are of evaluation seeds, which no training set uses."""
CONNECTING = threading.Lock()
LEAST_MOVE = DRAWER_TOLERANCE + SETTLED


@dataclass(frozen=True, eq=False)
class View:
    """A scene with its task: what is there, and what shall be."""

    scene: Scene
    before: np.ndarray
    """As the agent sees it."""
    after: np.ndarray
    hidden_after: np.ndarray
    large_before: str
    """As people see it, as the address of a picture."""
    large_after: str
    done: bool
    """Whether there is nothing left to do."""

    @property
    def words(self) -> str:
        if self.scene.task == "button":
            return button_words(not self.scene.bottom_open)
        return drawer_words(share(self.scene.opening), share(self.scene.target))


class SceneRenderer:
    """Draws scenes and looks at them, in simulators of its own; one visitor's look at a time, each a fraction of a
    second.
    """

    def __init__(self, env: str, options: Mapping[str, Any], clips: Path | None = None) -> None:
        """`clips` is a folder of videos; without it the built-in ones play behind the scene."""
        self._source = clips or "builtin"
        self._env, self._options = env, {name: value for name, value in options.items() if name != "video"}
        self._lock = threading.Lock()
        self._small, self._large = self.make(), self.make(image_size=DISPLAY_SIZE)
        self._bank: ClipBank = open_bank(self._source, "eval")
        self.scene = lru_cache(KEPT)(self._scene)
        self.here = lru_cache(KEPT)(self._here)
        self.there = lru_cache(KEPT)(self._there)

    @property
    def layout(self) -> Layout:
        return self._small.layout

    def make(self, **options: Any) -> TabletopEnv:
        """A simulator that shows what scenes hold, clips included, and goes on after success."""
        given = {**self._options, "video": self._source, "video_split": "eval", "terminate_at_success": False}
        # Two that connect at once would each hush the other's output, and one of them for good.
        with CONNECTING:
            return make_env(self._env, **{**given, **options})

    def close(self) -> None:
        self._small.close()
        self._large.close()

    def _scene(self, choice: SceneChoice) -> View:
        """A scene by its number, one in which the expert can do every task. The clip changes nothing else of it."""
        rng = _generator(choice.seed, 0)

        def draw() -> Scene:
            drawn = sample_scene(self.layout, rng)
            return replace(drawn, clip=self._bank.sample(_generator(choice.seed, 1)) if choice.video else None)

        return self._first_possible(draw, self.layout.tasks)

    def _here(self, choice: SceneChoice, task: str | None, after: float | None) -> View:
        """The scene with a task in it; left out, the scene's own."""
        scene = self.scene(choice).scene
        if task in (None, scene.task) and after is None:
            return self.scene(choice)
        return self._look(self._with_task(scene, task, after))

    def _there(self, choice: SceneChoice, told: ByExample) -> View:
        """An example of a task, in a scene that is analogous to the visitor's."""
        here = self._with_task(self.scene(choice).scene, told.task, told.after)
        opening = here.opening if told.before is None else told.before * TRAVEL
        if here.task == "drawer" and abs(here.target - opening) < LEAST_MOVE:
            least = f"{100 * LEAST_MOVE / TRAVEL:.0f} %"
            raise GCBError(f"before and after are too much alike: the drawer must move by at least {least} of its way.")
        model = replace(here, opening=opening)
        rng = _generator(told.seed, 2)
        return self._first_possible(lambda: self._example(model, told, rng), (here.task,))

    def _example(self, model: Scene, told: ByExample, rng: np.random.Generator) -> Scene:
        if told.turn:
            model = _turned(model, np.radians(told.turn), self.layout, rng)
        drawn = sample_analogy(model, "strict", self.layout, rng)
        if told.colors is not None:
            colors = sample_analogy(model, "strict", self.layout, _generator(told.colors, 3)).colors
            drawn = replace(drawn, colors=colors)
        return replace(drawn, clip=self._bank.sample(_generator(told.seed, 4)) if told.video else None)

    def _with_task(self, scene: Scene, task: str | None, after: float | None) -> Scene:
        task = task or scene.task
        if task not in self.layout.tasks:
            raise GCBError(f"task is {task!r}; accepted: {', '.join(self.layout.tasks)}.")
        return replace(scene, task=task, target=scene.target if after is None else after * TRAVEL)

    def _first_possible(self, draw: Callable[[], Scene], tasks: tuple[str, ...]) -> View:
        """The first scene drawn in which the expert can do all these tasks, with its own."""
        for _ in range(TRIES):
            drawn = draw()
            try:
                for task in tasks:
                    if task != drawn.task:
                        self._try(replace(drawn, task=task))
                return self._look(drawn)
            except GCBError:  # the expert fails in one scene of twenty-five
                continue
        raise GCBError(f"the expert failed in {TRIES} scenes like this one; choose something else.")

    def _try(self, scene: Scene) -> None:
        """Raises if the expert cannot do it."""
        with self._lock:
            self._small.reset(options={"scene": scene})

    def _look(self, scene: Scene) -> View:
        with self._lock:
            seen, info = self._small.reset(options={"scene": scene})
            large, _ = self._large.reset(options={"scene": scene})
        return View(
            scene,
            seen["observation"],
            seen["desired_goal"],
            info["goal_state"],
            data_url(large["observation"]),
            data_url(large["desired_goal"]),
            info["success"],
        )


def _generator(seed: int, purpose: int) -> np.random.Generator:
    """A generator for each number and purpose, so that one choice does not change what another draws."""
    return np.random.default_rng([episode_seed("eval", STREAM, seed), purpose])


def _turned(scene: Scene, angle: float, layout: Layout, rng: np.random.Generator) -> Scene:
    """The cabinet turned by an angle, in a place where all of it can be reached."""
    yaw = scene.cabinet_yaw + angle
    while True:
        xy = rng.uniform(CABINET_LOW, CABINET_HIGH)
        if reachable(layout, xy, yaw):
            return replace(scene, cabinet_xy=(float(xy[0]), float(xy[1])), cabinet_yaw=float(yaw))
