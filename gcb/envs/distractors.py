"""The 84 small objects that stand about on the table and mean nothing.

The meshes ship with `pybullet_data` (`random_urdfs/`, zlib licence); `distractors.json` says which of them, how large,
and how each one lies at rest. `python -m scripts.choose_distractors` makes that table.

A simulation is rebuilt at every episode, so putting an object in must be cheap and must not leak. Measured on one core,
per object: drawn from the file and colliding as a hull of points held in memory, 0.42 ms; both from the file, 1.0 ms;
both from memory, 0.63 ms (and without explicit normals TinyRenderer draws a smoothed blob). None of the three grows
over 5,000 × `resetSimulation`.
"""

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pybullet_data
from scipy.spatial import ConvexHull

from gcb.envs.bullet import BulletClient, pybullet

MASS = 0.05
FRICTION = 0.6
# Hulls with many small faces creep for seconds without a little resistance to rolling and spinning.
ROLLING_FRICTION = 0.001

TABLE = Path(__file__).with_name("distractors.json")


@dataclass(frozen=True)
class Shape:
    """One object and the pose in which it rests. Lengths in metres, quaternions as (x, y, z, w)."""

    id: int
    """Which mesh of `random_urdfs`."""
    scale: float
    """Metres per unit of the mesh file."""
    centre: tuple[float, float, float]
    """The hull's centre of mass in the units of the file: the body's origin, so that mass and shape agree."""
    rest_quaternion: tuple[float, float, float, float]
    """The orientation at rest, yaw 0."""
    rest_height: float
    """The origin above the table at rest."""
    half_extents: tuple[float, float, float]
    """Half the sides of the axis-aligned box around it, at rest, yaw 0."""
    radius: float
    """No point of it is farther from the vertical through the origin, whatever the yaw."""

    @property
    def height(self) -> float:
        return 2 * self.half_extents[2]


def _load_shapes() -> list[Shape]:
    rows: list[dict[str, Any]] = json.loads(TABLE.read_text())
    for row in rows:
        row.update({name: tuple(value) for name, value in row.items() if isinstance(value, list)})
    return [Shape(**row) for row in rows]


SHAPES: list[Shape] = _load_shapes()


def mesh_path(identity: int) -> Path:
    return Path(pybullet_data.getDataPath()) / "random_urdfs" / f"{identity:03d}" / f"{identity:03d}.obj"


def mesh_vertices(identity: int) -> np.ndarray:
    """All vertices of a mesh, in the units of its file."""
    lines = mesh_path(identity).read_text().splitlines()
    return np.array([line.split()[1:4] for line in lines if line.startswith("v ")], dtype=float)


@functools.lru_cache(maxsize=256)
def hull_points(shape_id: int, scale: float, centre: tuple[float, float, float]) -> list[list[float]]:
    """The corners of the convex hull about the body's origin, in metres; lists, which PyBullet reads fastest."""
    vertices = mesh_vertices(shape_id)
    corners = vertices[np.sort(ConvexHull(vertices).vertices)]
    return ((corners - np.asarray(centre)) * scale).tolist()


def add_distractor(
    client: BulletClient, shape: Shape, xy: Sequence[float], yaw: float, color: Sequence[float], table_z: float
) -> int:
    """Stand `shape` on the table, turned by `yaw` (radians); returns its body id.

    `color` is RGB or RGBA in [0, 1].
    """
    turn = (0.0, 0.0, math.sin(yaw / 2), math.cos(yaw / 2))
    _, orientation = pybullet.multiplyTransforms((0, 0, 0), turn, (0, 0, 0), shape.rest_quaternion)
    return add_body(client, shape, (xy[0], xy[1], table_z + shape.rest_height), orientation, color)


def add_body(
    client: BulletClient, shape: Shape, position: Sequence[float], orientation: Sequence[float], color: Sequence[float]
) -> int:
    """`shape` in any pose, for those who look for its resting one."""
    collision = client.createCollisionShape(
        pybullet.GEOM_MESH, vertices=hull_points(shape.id, shape.scale, shape.centre)
    )
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
