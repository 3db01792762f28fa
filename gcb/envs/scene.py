"""Scenes: everything that is random about an episode, as plain data that can be stored, rebuilt or varied.

Sampling never touches the simulator, so a scene depends only on the random generator.
"""

import colorsys
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from gcb.envs.backgrounds import Clip, ClipBank
from gcb.envs.distractors import SHAPES, SPLITS
from gcb.envs.layout import (
    CABINET_HIGH,
    CABINET_LOW,
    DRAWER_TOLERANCE,
    FRAME_HALF,
    HANDLE_CLOSED,
    HANDLE_RADIUS,
    SETTLED,
    TRAVEL,
    WORKSPACE_HIGH,
    WORKSPACE_LOW,
    Layout,
    slide_axis,
)
from gcb.errors import GCBError

MAX_DISTRACTORS = 4
DISTRACTOR_LOW = np.array([0.44, -0.3])
DISTRACTOR_HIGH = np.array([0.92, 0.3])
CABINET_CLEARANCE = 0.03  # room for the fingers around the moving parts
DISTRACTOR_CLEARANCE = 0.005

ANALOGY_XY_STD = 0.08
ANALOGY_YAW_STD = np.radians(5.0)
ANALOGIES = ("strict", "loose", "free")

Color = tuple[float, float, float]


@dataclass(frozen=True)
class Distractor:
    """An object on the table; `shape` is an index into `gcb.envs.distractors.SHAPES`."""

    shape: int
    xy: tuple[float, float]
    yaw: float
    color: Color


@dataclass(frozen=True)
class Scene:
    """The initial state, the appearance and the task of one episode."""

    task: str
    cabinet_xy: tuple[float, float]
    cabinet_yaw: float
    opening: float
    target: float  # the opening to reach, in the drawer task
    bottom_open: bool
    colors: dict[str, Color]
    distractors: tuple[Distractor, ...]
    clip: Clip | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def sample_scene(
    layout: Layout,
    rng: np.random.Generator,
    task: str | None = None,
    bank: ClipBank | None = None,
    distractor_split: str = "train",
) -> Scene:
    """Sample a scene for one episode, with a random task unless `task` is given."""
    task = task or str(rng.choice(layout.tasks))
    xy, yaw = _sample_pose(layout, rng)
    opening, target = sample_opening(rng)
    scene = Scene(task, xy, yaw, opening, target, bool(rng.integers(2)), {}, ())
    return _sample_appearance(scene, rng, bank, distractor_split)


def sample_analogy(
    scene: Scene,
    mode: str,
    layout: Layout,
    rng: np.random.Generator,
    bank: ClipBank | None = None,
    distractor_split: str = "train",
) -> Scene:
    """Sample an analogous scene: another pose of the cabinet, and new colours, distractors and video.

    `strict` (the paper's text) adds noise to the pose and keeps the task, the openings and the target. `loose` (the
    authors' release) adds noise to the pose and keeps only the task. `free` keeps what `strict` keeps and samples
    a new pose, independently of the original one.
    """
    if mode not in ANALOGIES:
        raise GCBError(f"analogy is {mode!r}; accepted: {', '.join(ANALOGIES)}.")
    xy, yaw = _sample_pose(layout, rng) if mode == "free" else _jitter_pose(scene, layout, rng)
    analogous = replace(scene, cabinet_xy=xy, cabinet_yaw=yaw)
    if mode == "loose":
        opening, target = sample_opening(rng)
        analogous = replace(analogous, opening=opening, target=target, bottom_open=bool(rng.integers(2)))
    return _sample_appearance(analogous, rng, bank, distractor_split)


def sample_opening(rng: np.random.Generator) -> tuple[float, float]:
    """Sample the drawer's opening and its target.

    The target is in the same half as the opening; if the goal would already be reached, it is the opposite extreme.
    """
    opening = rng.uniform(0.0, TRAVEL)
    half = TRAVEL / 2
    upper = opening > half
    target = rng.uniform(half, TRAVEL) if upper else rng.uniform(0.0, half)
    if abs(target - opening) < DRAWER_TOLERANCE + SETTLED:  # a goal image may be SETTLED short of its target
        target = 0.0 if upper else TRAVEL
    return float(opening), float(target)


def reachable(layout: Layout, xy: np.ndarray, yaw: float) -> bool:
    """Return whether the cabinet is in its area and the handle (and button) are in the gripper's workspace."""
    touched = [xy + (HANDLE_CLOSED + opening) * slide_axis(yaw) for opening in (0.0, TRAVEL)]
    if layout.has_button:
        touched.append(xy)
    low = np.maximum(CABINET_LOW, WORKSPACE_LOW[:2])
    high = np.minimum(CABINET_HIGH, WORKSPACE_HIGH[:2])
    return _inside(xy, CABINET_LOW, CABINET_HIGH) and all(_inside(point, low, high) for point in touched)


def _inside(point: np.ndarray, low: np.ndarray, high: np.ndarray) -> bool:
    return bool(np.all(point >= low) and np.all(point <= high))


def _sample_pose(layout: Layout, rng: np.random.Generator) -> tuple[tuple[float, float], float]:
    while True:
        xy = rng.uniform(CABINET_LOW, CABINET_HIGH)
        yaw = rng.uniform(0.0, 2 * np.pi)
        if reachable(layout, xy, yaw):
            return (float(xy[0]), float(xy[1])), float(yaw)


def _jitter_pose(scene: Scene, layout: Layout, rng: np.random.Generator) -> tuple[tuple[float, float], float]:
    while True:
        xy = np.array(scene.cabinet_xy) + rng.normal(0.0, ANALOGY_XY_STD, 2)
        yaw = scene.cabinet_yaw + rng.normal(0.0, ANALOGY_YAW_STD)
        if reachable(layout, xy, yaw):
            return (float(xy[0]), float(xy[1])), float(yaw)


def _sample_appearance(scene: Scene, rng: np.random.Generator, bank: ClipBank | None, distractor_split: str) -> Scene:
    """Return the scene with new colours, distractors and video."""
    return replace(
        scene,
        colors=_sample_colors(rng),
        distractors=_sample_distractors(rng, np.array(scene.cabinet_xy), scene.cabinet_yaw, SPLITS[distractor_split]),
        clip=bank.sample(rng) if bank else None,
    )


def _sample_colors(rng: np.random.Generator) -> dict[str, Color]:
    """Sample any hue for cabinet and drawers; the handle is dark or light and the button vivid, to stay visible."""
    body = _hsv(rng, (0.15, 0.8), (0.45, 0.9))
    drawer = _hsv(rng, (0.15, 0.8), (0.55, 1.0))
    grey = float(rng.choice([rng.uniform(0.05, 0.15), rng.uniform(0.9, 1.0)]))
    button = _hsv(rng, (0.85, 1.0), (0.85, 1.0))
    return {"frame": body, "drawer": drawer, "bottom": drawer, "handle": (grey, grey, grey), "button": button}


def _hsv(rng: np.random.Generator, saturation: tuple[float, float], value: tuple[float, float]) -> Color:
    return colorsys.hsv_to_rgb(rng.random(), rng.uniform(*saturation), rng.uniform(*value))


def _sample_distractors(
    rng: np.random.Generator, cabinet_xy: np.ndarray, yaw: float, split: range
) -> tuple[Distractor, ...]:
    """Sample 0 to 4 different shapes, clear of each other and of the cabinet with its drawer open."""
    shapes = rng.choice(split, size=rng.integers(MAX_DISTRACTORS + 1), replace=False)
    placed: list[Distractor] = []
    for shape in shapes.tolist():
        while True:
            xy = rng.uniform(DISTRACTOR_LOW, DISTRACTOR_HIGH)
            if _is_clear(xy, SHAPES[shape].radius, cabinet_xy, yaw, placed):
                break
        color = _hsv(rng, (0.2, 1.0), (0.3, 1.0))
        placed.append(Distractor(shape, (float(xy[0]), float(xy[1])), float(rng.uniform(0, 2 * np.pi)), color))
    return tuple(placed)


def _is_clear(xy: np.ndarray, radius: float, cabinet_xy: np.ndarray, yaw: float, placed: list[Distractor]) -> bool:
    axis = slide_axis(yaw)
    outward = float((xy - cabinet_xy) @ axis)
    sideways = float(abs((xy - cabinet_xy) @ np.array([-axis[1], axis[0]])))
    room = radius + CABINET_CLEARANCE
    front = HANDLE_CLOSED + TRAVEL + HANDLE_RADIUS
    if sideways < FRAME_HALF[0] + room and -FRAME_HALF[1] - room < outward < front + room:
        return False
    return all(
        np.linalg.norm(xy - np.array(other.xy)) > radius + SHAPES[other.shape].radius + DISTRACTOR_CLEARANCE
        for other in placed
    )
