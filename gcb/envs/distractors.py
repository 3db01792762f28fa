"""Distractor objects: small shapes on the table that have nothing to do with the task.

84 are for training and, by default, for evaluation. 24 others are only for evaluation (`distractor_split="eval"`).

The meshes ship with `pybullet_data` (`random_urdfs/`, zlib licence). `distractors.json` and
`eval_distractors.json` list which ones are used, their scale and their resting pose; `python -m
scripts.choose_distractors` generates them.

The simulation is rebuilt for every episode, so adding an object must be cheap and must not leak memory. Measured on one
core, per object: 0.42 ms with the visual shape from the file and the collision hull from memory; 1.0 ms with both from
the file; 0.63 ms with both from memory (where TinyRenderer, without explicit normals, draws a smoothed blob). Memory
does not grow over 5,000 × `resetSimulation` in any of the three.
"""

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gcb.envs.bullet import BulletClient, pybullet, pybullet_data

MASS = 0.05
FRICTION = 0.6
# Without a little rolling and spinning friction, hulls with many small faces creep for seconds.
ROLLING_FRICTION = 0.001

SHAPES_FILES = {
    "train": Path(__file__).with_name("distractors.json"),
    "eval": Path(__file__).with_name("eval_distractors.json"),
}


@dataclass(frozen=True)
class Shape:
    """One object and its resting pose. Lengths are in metres, quaternions are (x, y, z, w)."""

    id: int
    """Number of the mesh in `random_urdfs`."""
    scale: float
    """Metres per unit of the mesh file."""
    centre: tuple[float, float, float]
    """Centre of mass of the hull in the units of the mesh file. It is the origin of the body."""
    rest_quaternion: tuple[float, float, float, float]
    """Orientation at rest, with yaw 0."""
    rest_height: float
    """Height of the origin above the table, at rest."""
    half_extents: tuple[float, float, float]
    """Half the side lengths of the axis-aligned bounding box, at rest, with yaw 0."""
    radius: float
    """Largest distance of any point from the vertical axis through the origin."""
    hull: tuple[int, ...]
    """Which vertices of the mesh are the corners of its convex hull. Listed, because SciPy is slow to import."""

    @property
    def height(self) -> float:
        return 2 * self.half_extents[2]


def _load_shapes(path: Path) -> list[Shape]:
    rows: list[dict[str, Any]] = json.loads(path.read_text())
    for row in rows:
        row.update({name: tuple(value) for name, value in row.items() if isinstance(value, list)})
    return [Shape(**row) for row in rows]


_TRAIN, _EVAL = (_load_shapes(path) for path in SHAPES_FILES.values())
SHAPES: list[Shape] = [*_TRAIN, *_EVAL]
SPLITS = {"train": range(len(_TRAIN)), "eval": range(len(_TRAIN), len(SHAPES))}
"""Indices into `SHAPES`."""


def mesh_path(mesh_id: int) -> Path:
    return Path(pybullet_data.getDataPath()) / "random_urdfs" / f"{mesh_id:03d}" / f"{mesh_id:03d}.obj"


def mesh_vertices(mesh_id: int) -> np.ndarray:
    """Return all vertices of a mesh, in the units of its file."""
    lines = mesh_path(mesh_id).read_text().splitlines()
    return np.array([line.split()[1:4] for line in lines if line.startswith("v ")], dtype=float)


@functools.lru_cache(maxsize=256)
def hull_points(shape: Shape) -> list[list[float]]:
    """Return the corners of the convex hull relative to the body's origin, in metres; lists are fastest in PyBullet."""
    corners = mesh_vertices(shape.id)[list(shape.hull)]
    return ((corners - np.asarray(shape.centre)) * shape.scale).tolist()


def add_distractor(
    client: BulletClient, shape: Shape, xy: Sequence[float], yaw: float, color: Sequence[float], table_z: float
) -> int:
    """Place `shape` on the table, turned by `yaw` (radians), and return its body id.

    `color` is RGB or RGBA in [0, 1].
    """
    turn = (0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2))
    _, orientation = pybullet.multiplyTransforms((0, 0, 0), turn, (0, 0, 0), shape.rest_quaternion)
    return add_body(client, shape, (xy[0], xy[1], table_z + shape.rest_height), orientation, color)


def add_body(
    client: BulletClient, shape: Shape, position: Sequence[float], orientation: Sequence[float], color: Sequence[float]
) -> int:
    """Add `shape` in any pose and return its body id."""
    collision = client.createCollisionShape(pybullet.GEOM_MESH, vertices=hull_points(shape))
    visual = client.createVisualShape(
        pybullet.GEOM_MESH,
        fileName=str(mesh_path(shape.id)),
        meshScale=[shape.scale] * 3,
        visualFramePosition=[-shape.scale * value for value in shape.centre],
        rgbaColor=[*color[:3], color[3] if len(color) > 3 else 1.0],
    )
    body = client.createMultiBody(MASS, collision, visual, position, orientation)
    client.changeDynamics(
        body,
        -1,
        lateralFriction=FRICTION,
        rollingFriction=ROLLING_FRICTION,
        spinningFriction=ROLLING_FRICTION,
    )
    return body
