"""The Gymnasium environment behind both ids in `gcb.envs.ENVS`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from gcb.envs.backgrounds import composite, open_bank
from gcb.envs.bullet import connect, pybullet
from gcb.envs.cabinet import Cabinet
from gcb.envs.checks import check_choice, check_count, check_scene, check_size, check_video, checked_action
from gcb.envs.distractors import SHAPES, SPLITS, add_distractor
from gcb.envs.expert import Expert
from gcb.envs.goal_reward import GOAL, OBSERVATION, GoalReward, image_memory
from gcb.envs.layout import (
    BUTTON,
    BUTTON_TOGGLES,
    GRAVITY,
    HORIZON,
    SETTLED,
    SOLVER_ITERATIONS,
    SUBSTEP_SECONDS,
    SUBSTEPS,
    TABLE_Z,
    Layout,
    goal_reached,
)
from gcb.envs.sawyer import Sawyer
from gcb.envs.scene import ANALOGIES, Scene, sample_analogy, sample_scene
from gcb.errors import GCBError

RENDERER = "tiny"
CAMERA_TARGET = [0.7, 0.0, -0.25]
CAMERA_YAW, CAMERA_PITCH = 90.0, -37.0
FIELD_OF_VIEW, NEAR, FAR = 60.0, 0.1, 2.0
TABLE_COLOR = [0.55, 0.45, 0.35, 1.0]
MAX_ATTEMPTS = 100  # scenes to try until the expert solves one
SIMULATION = ("_client", "_table", "arm", "cabinet", "_bank", "_memory", "_reward")
"""Attributes that a copy of an environment creates again."""


@dataclass(frozen=True)
class Example:
    """An example of a task in some scene: images of its state and goal, with the hidden states."""

    state_image: np.ndarray
    goal_image: np.ndarray
    state: np.ndarray
    goal_state: np.ndarray
    scene: Scene


class TabletopEnv(gym.Env):
    """A Sawyer arm in front of a cabinet, with image observations, 5-D actions and a sparse reward.

    Every reset rebuilds the simulation from a `Scene`, so that an episode depends only on its seed (restoring a
    PyBullet state is not always exact).
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 24}  # noqa: RUF012 (the form Gymnasium asks for)

    def __init__(
        self,
        layout: Layout,
        *,
        image_size: int = 64,
        task: str | None = None,
        video: str | Path | None = None,
        video_split: str = "train",
        distractor_split: str = "train",
        analogy: str | None = None,
        terminate_at_success: bool = True,
        max_steps: int = HORIZON,
        render_mode: str | None = None,
        render_size: int = 256,
        goal_memory: int = 20_000,
    ):
        """Create the environment.

        `task` fixes the task, which is random otherwise. `video` is "builtin" or a directory of clips; `video_split` is
        "train" or "eval", and so is `distractor_split`: which shapes lie on the table. `analogy` ("strict", "loose" or
        "free", see `sample_analogy`) adds an `Example` to the `info` of every reset.
        `goal_memory` is the number of images that `compute_reward` can recognise.
        """
        check_choice("task", task, (None, *layout.tasks))
        check_choice("analogy", analogy, (None, *ANALOGIES))
        check_choice("distractor_split", distractor_split, tuple(SPLITS))
        check_choice("render_mode", render_mode, (None, *self.metadata["render_modes"]))
        check_video(video)
        check_size("image_size", image_size)
        check_size("render_size", render_size)
        check_count("max_steps", max_steps)
        check_count("goal_memory", goal_memory)
        self.layout = layout
        self.render_mode = render_mode
        self._image_size, self._render_size = image_size, render_size
        self._task, self._analogy, self._distractor_split = task, analogy, distractor_split
        self._terminate_at_success, self._max_steps = terminate_at_success, max_steps
        self._video, self._video_split, self._goal_memory = video, video_split, goal_memory

        image = gym.spaces.Box(0, 255, (image_size, image_size, 3), np.uint8)
        self.observation_space = gym.spaces.Dict({"observation": image, "achieved_goal": image, "desired_goal": image})
        self.action_space = gym.spaces.Box(-1.0, 1.0, (5,), np.float32)

        self._connect()
        self._view = pybullet.computeViewMatrixFromYawPitchRoll(
            CAMERA_TARGET, layout.camera_distance, CAMERA_YAW, CAMERA_PITCH, 0.0, 2
        )
        self._projection = pybullet.computeProjectionMatrixFOV(FIELD_OF_VIEW, 1.0, NEAR, FAR)
        self._start_joints = Sawyer.solve(self._client, layout.gripper_start)
        self._scene: Scene | None = None
        self._playing = False

    def _connect(self) -> None:
        """Create what is not copied with the environment: the simulation, the clips and the memory of images."""
        self._client = connect()
        self._bank = open_bank(self._video, self._video_split) if self._video else None
        self._memory = image_memory(self.layout, self._goal_memory)
        self._reward = GoalReward(self.layout, self._image_size, self._memory)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in SIMULATION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Complete a copy (`copy.deepcopy`, pickle): rebuild the simulation and repeat the actions since its scene."""
        vars(self).update(state)
        self._connect()
        if self._scene is not None:
            actions = self._actions
            self.load_scene(self._scene)
            for action in actions:
                self._advance(action)

    # ---- Gymnasium -------------------------------------------------------------------------------------------

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start an episode.

        `options` may contain "scene" (a `Scene` to use instead of a random one), and "task" and "analogy", which
        override the arguments of the constructor.
        """
        super().reset(seed=seed)
        options = dict(options or {})
        scene, task = options.pop("scene", None), options.pop("task", self._task)
        analogy = options.pop("analogy", self._analogy)
        if options:
            raise GCBError(f"unknown reset option {next(iter(options))!r}; accepted: scene, task, analogy.")
        check_choice("task", task, (None, *self.layout.tasks))
        check_scene(scene, self.layout)
        self._playing = False
        scene, attempts, (self._goal_image, self._goal_state) = self._sample_solvable(scene, task)
        example = self.example(analogy, scene) if analogy else None
        self.load_scene(scene)
        self._playing = True
        info = {**self._info(self.state()), "scene": scene.to_dict(), "attempts": attempts}
        if example:
            info["example"] = example
        self._memory.add(GOAL, self._goal_image, self._goal_state, scene.task)
        return self._observation(info["state"]), info

    def step(self, action: np.ndarray):
        if not self._playing:
            raise GCBError("step was called before reset.")
        self._advance(checked_action(action))
        info = self._info(self.state())
        success = info["success"]
        terminated = success and self._terminate_at_success
        truncated = not terminated and self.steps >= self._max_steps
        return self._observation(info["state"]), float(success), terminated, truncated, info

    def compute_reward(self, achieved_goal: Any, desired_goal: Any, info: Any) -> np.ndarray | float:
        """Return 1 where the achieved goal reaches the desired one, else 0, for single goals or batches.

        Goals are images that this environment, or another one of this process, has returned (in an observation, with
        channels first or last), or hidden states. `info` is a dict, one for each goal, or None: a dict may have the
        "task" and, beside an achieved image, its "state"; what it lacks is remembered from when the image was returned.
        Other images are refused.
        """
        return self._reward(achieved_goal, desired_goal, info)

    def render(self) -> np.ndarray | None:
        return self.image(self._render_size) if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        if self._client.isConnected():
            self._client.disconnect()

    # ---- the scene -------------------------------------------------------------------------------------------

    @property
    def scene(self) -> Scene:
        """The scene that was loaded last."""
        if self._scene is None:
            raise GCBError("there is no scene before the first reset.")
        return self._scene

    def load_scene(self, scene: Scene) -> None:
        """Rebuild the simulation with this scene in its initial state."""
        client = self._client
        client.resetSimulation()
        client.setGravity(0.0, 0.0, GRAVITY)
        client.setPhysicsEngineParameter(
            fixedTimeStep=SUBSTEP_SECONDS, numSolverIterations=SOLVER_ITERATIONS, deterministicOverlappingPairs=1
        )
        half = [0.6, 0.9, 0.02]
        self._table = client.createMultiBody(
            0.0,
            client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=half),
            client.createVisualShape(pybullet.GEOM_BOX, halfExtents=half, rgbaColor=TABLE_COLOR),
            [0.85, 0.0, TABLE_Z - half[2]],
        )
        self.arm = Sawyer(client, self._start_joints)
        self.cabinet = Cabinet(client, self.layout, scene)
        for item in scene.distractors:
            add_distractor(client, SHAPES[item.shape], item.xy, item.yaw, item.color, TABLE_Z)
        self._scene = scene
        self._actions: list[np.ndarray] = []
        self.steps = 0

    def state(self) -> np.ndarray:
        """Return the hidden state; `layout.state_names` names its components."""
        position, quaternion = self.arm.pose()
        parts = [position, quaternion, [self.arm.tip_distance()], self.cabinet.handle()]
        if self.layout.has_button:
            parts += [self.cabinet.bottom(), self.cabinet.button()[2:]]
        return np.concatenate(parts).astype(np.float32)

    def image(self, size: int) -> np.ndarray:
        """Render the current camera image, with the video background if there is one."""
        flags = 0 if self._bank else pybullet.ER_NO_SEGMENTATION_MASK
        _, _, pixels, _, segmentation = self._client.getCameraImage(
            size, size, self._view, self._projection, shadow=0, renderer=pybullet.ER_TINY_RENDERER, flags=flags
        )
        image = np.asarray(pixels, np.uint8).reshape(size, size, 4)[..., :3].copy()
        clip = self.scene.clip
        if self._bank and clip:
            body = np.asarray(segmentation).reshape(size, size)
            background = (body < 0) | (body == self._table)
            image = composite(image, background, self._bank.frame(clip, self.steps, size))
        return image

    def example(self, mode: str, scene: Scene | None = None) -> Example:
        """Sample an example of the same task in an analogous scene, with the environment's random generator.

        This leaves the simulation in the example's goal state; `reset` loads the episode's own scene afterwards.
        """
        scene = scene or self.scene
        for _ in range(MAX_ATTEMPTS):
            analogous = sample_analogy(scene, mode, self.layout, self.np_random, self._bank, self._distractor_split)
            self.load_scene(analogous)
            state_image, state = self.image(self._image_size), self.state()
            goal = self._play_to_goal()
            if goal:
                return Example(state_image, goal[0], state, goal[1], analogous)
        raise GCBError(f"The expert failed in {MAX_ATTEMPTS} analogous scenes: no analogy of this scene is solvable.")

    # ---- internals -------------------------------------------------------------------------------------------

    def _sample_solvable(
        self, scene: Scene | None, task: str | None
    ) -> tuple[Scene, int, tuple[np.ndarray, np.ndarray]]:
        """Return a scene that the expert solves, the number of scenes tried, and the goal (image, hidden state)."""
        for attempts in range(1, 2 if scene else MAX_ATTEMPTS + 1):
            candidate = scene or sample_scene(self.layout, self.np_random, task, self._bank, self._distractor_split)
            self.load_scene(candidate)
            goal = self._play_to_goal()
            if goal:
                return candidate, attempts, goal
        raise GCBError("The expert cannot solve the task of this scene, so it has no goal image.")

    def _play_to_goal(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Play the noise-free expert and return (goal image, goal state), or None if it fails.

        The goal state is the hidden state in the goal image, except for the button: its goal is by definition the depth
        at which it toggles, not where the expert happens to hold it.
        """
        expert = Expert(self)
        for _ in range(max(self._max_steps, HORIZON)):  # a shorter episode has the same goals
            self._advance(expert.action())
            if self._solved():
                return self.image(self._image_size), self._as_goal(self.state())
        return None

    def _solved(self) -> bool:
        """Return whether the expert is done. This is stricter than success: the drawer has to be at its target."""
        if self.scene.task == "drawer":
            return abs(self.cabinet.opening() - self.scene.target) < SETTLED
        state = self.state()
        return self.cabinet.bottom_arrived() and bool(goal_reached(state, self._as_goal(state), True))

    def _as_goal(self, state: np.ndarray) -> np.ndarray:
        goal = state.copy()
        if self.layout.has_button:
            goal[BUTTON] = self.layout.button_z - BUTTON_TOGGLES
        return goal

    def _advance(self, action: np.ndarray) -> None:
        self.arm.apply(action)
        for _ in range(SUBSTEPS):
            self._client.stepSimulation()
            self.cabinet.after_substep()
        self._actions.append(action)
        self.steps += 1

    def _observation(self, state: np.ndarray) -> dict[str, np.ndarray]:
        image = self.image(self._image_size)
        self._memory.add(OBSERVATION, image, state.copy(), self.scene.task)
        return {"observation": image, "achieved_goal": image.copy(), "desired_goal": self._goal_image.copy()}

    def _info(self, state: np.ndarray) -> dict[str, Any]:
        task = self.scene.task
        success = bool(goal_reached(state, self._goal_state, task == "button"))
        return {"state": state, "goal_state": self._goal_state.copy(), "task": task, "success": success}
