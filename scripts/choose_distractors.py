"""Choose the 84 distractor shapes and find how each of them rests: `python -m scripts.choose_distractors`.

Rewrites `distractors.json` from the meshes of `pybullet_data` alone, the same each time (some four minutes). It is run
by hand when the rules below change; the package only reads its result.
"""

import json
import math
from dataclasses import asdict, replace

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull, KDTree

from gcb.envs.bullet import BulletClient, pybullet
from gcb.envs.distractors import TABLE, Shape, add_body, add_distractor, hull_points, mesh_path, mesh_vertices
from gcb.utils.files import write_atomically

COUNT = 84
SMALLEST, LARGEST = 0.035, 0.06
THINNEST = 0.012  # covers less than two pixels otherwise
MESHES = 1000
STARTS = 12
"""Drops per mesh, each from a random orientation."""
STEADY = 0.5
"""The share of the drops that must end on the same side: others are left out as toppling too easily."""
TABLE_THICKNESS = 0.2
STEPS_PER_SECOND = 240


def read_triangles(identity: int) -> np.ndarray:
    """Corner indices of every triangle of a mesh; larger faces are cut into fans."""
    triangles = []
    for line in mesh_path(identity).read_text().splitlines():
        if line.startswith("f "):
            corners = [int(field.split("/")[0]) - 1 for field in line.split()[1:]]
            triangles += [(corners[0], corners[i], corners[i + 1]) for i in range(1, len(corners) - 1)]
    return np.array(triangles)


def hull_centre(vertices: np.ndarray) -> np.ndarray:
    """Centre of mass of the solid hull: the mean of the tetrahedra from an inner point to each facet, by volume."""
    hull = ConvexHull(vertices)
    inner = vertices[hull.vertices].mean(axis=0)
    facets = vertices[hull.simplices]
    volumes = np.abs(np.linalg.det(facets - inner))
    return np.average((facets.sum(axis=1) + inner) / 4, axis=0, weights=volumes)


def surface_points(corners: np.ndarray, count: int, random: np.random.Generator) -> np.ndarray:
    """Points spread evenly over the triangles with these (n, 3, 3) corners."""
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    chosen = corners[random.choice(len(corners), size=count, p=area / area.sum())]
    return np.einsum("nc,nci->ni", random.dirichlet((1, 1, 1), size=count), chosen)


def in_one_piece(points: np.ndarray, longest: float) -> bool:
    """Some meshes have parts that float in the air beside the rest."""
    first, second = KDTree(points).query_pairs(0.05 * longest, output_type="ndarray").T
    near = coo_matrix((np.ones(len(first)), (first, second)), shape=(len(points), len(points)))
    return connected_components(near, directed=False, return_labels=False) == 1


def describe(points: np.ndarray, filled: float) -> np.ndarray:
    """Numbers in which two shapes differ when they look different, free of size and orientation.

    Proportions of the principal axes, share of the hull that is filled, and the histogram of distances between random
    points of the surface (Osada et al. 2002, "D2").
    """
    half = len(points) // 2
    distances = np.linalg.norm(points[:half] - points[half:], axis=1)
    histogram = np.histogram(distances / distances.max(), bins=12, range=(0, 1))[0] / half
    centred = points - points.mean(axis=0)
    spread = np.ptp(centred @ np.linalg.svd(centred, full_matrices=False)[2].T, axis=0)
    return np.concatenate([3 * spread[1:] / spread[0], [2 * min(1.0, filled)], 4 * histogram])


def candidate(identity: int, random: np.random.Generator) -> tuple[Shape, np.ndarray] | None:
    """A mesh whose longest line is scaled to between 3.5 and 6 cm, not yet at rest, and its description.

    None for a mesh with broken numbers (168 has NaN) or loose parts.
    """
    vertices = mesh_vertices(identity)
    if not np.isfinite(vertices).all():
        return None
    hull = ConvexHull(vertices)
    hull_corners = vertices[hull.vertices]
    longest = np.linalg.norm(hull_corners[:, None] - hull_corners[None], axis=-1).max()
    corners = vertices[read_triangles(identity)]
    points = surface_points(corners, 4096, random)
    if not in_one_piece(points, longest):
        return None
    volume = float(np.linalg.det(corners).sum()) / 6
    x, y, z = hull_centre(vertices).round(6).tolist()
    scale = float(f"{random.uniform(SMALLEST, LARGEST) / longest:.6g}")
    return Shape(identity, scale, (x, y, z), (0, 0, 0, 1), 0, (0, 0, 0), 0), describe(points, volume / hull.volume)


def new_table(client: BulletClient) -> None:
    """The physics of the worlds, with the top of the table at z = 0."""
    client.resetSimulation()
    client.setGravity(0, 0, -10)
    client.setPhysicsEngineParameter(numSolverIterations=150, deterministicOverlappingPairs=1)
    box = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[1, 1, TABLE_THICKNESS / 2])
    client.createMultiBody(0, box, -1, [0, 0, -TABLE_THICKNESS / 2])


def turn_between(first: np.ndarray, second: np.ndarray) -> float:
    """The angle between two directions, in degrees."""
    return math.degrees(math.acos(min(1.0, max(-1.0, float(first @ second)))))


def drop(client: BulletClient, shape: Shape, orientation: list[float]) -> tuple[list[float], float] | None:
    """The quaternion and height in which it comes to rest, or None if it still moves after three seconds."""
    new_table(client)
    points = np.array(hull_points(shape.id, shape.scale, shape.centre))
    turned = points @ np.reshape(pybullet.getMatrixFromQuaternion(orientation), (3, 3)).T
    body = add_body(client, shape, (0, 0, 0.003 - turned[:, 2].min()), orientation, (1, 1, 1))
    quiet = 0
    for _ in range(3 * STEPS_PER_SECOND):
        client.stepSimulation()
        linear, angular = client.getBaseVelocity(body)
        quiet = quiet + 1 if np.linalg.norm(linear) < 1e-3 and np.linalg.norm(angular) < 0.02 else 0
        if quiet == STEPS_PER_SECOND // 2:
            position, quaternion = client.getBasePositionAndOrientation(body)
            return list(quaternion), position[2]
    return None


def resting(client: BulletClient, shape: Shape, random: np.random.Generator) -> Shape | None:
    """`shape` on the side it falls on most often, with its measures there; None when no side is clearly preferred."""
    rests = [
        drop(client, shape, (turn / np.linalg.norm(turn)).tolist()) for turn in random.standard_normal((STARTS, 4))
    ]
    settled = [rest for rest in rests if rest is not None]
    rotations = [np.reshape(pybullet.getMatrixFromQuaternion(quaternion), (3, 3)) for quaternion, _ in settled]
    downward = [rotation[2] for rotation in rotations]
    alike = [sum(turn_between(one, other) < 5 for other in downward) for one in downward]
    if not alike or max(alike) < STEADY * STARTS:
        return None
    best = int(np.argmax(alike))
    quaternion, height = settled[best]
    turned = np.array(hull_points(shape.id, shape.scale, shape.centre)) @ rotations[best].T
    return replace(
        shape,
        rest_quaternion=tuple(round(float(value), 6) for value in quaternion),
        rest_height=round(height, 6),
        half_extents=tuple(round(float(value) / 2, 5) for value in np.ptp(turned, axis=0)),
        radius=math.ceil(1e5 * np.linalg.norm(turned[:, :2], axis=1).max()) / 1e5,
    )


def stays(client: BulletClient, shape: Shape, yaw: float) -> bool:
    """Whether it stands still for four seconds, more than an episode, when put down by the table."""
    new_table(client)
    body = add_distractor(client, shape, (0, 0), yaw, (1, 1, 1), 0.0)
    start, before = client.getBasePositionAndOrientation(body)
    for _ in range(4 * STEPS_PER_SECOND):
        client.stepSimulation()
    end, after = client.getBasePositionAndOrientation(body)
    turned = pybullet.getAxisAngleFromQuaternion(pybullet.getDifferenceQuaternion(before, after))[1]
    return math.dist(start, end) < 0.0005 and abs(math.remainder(turned, 2 * math.pi)) < math.radians(0.5)


def most_diverse(descriptions: np.ndarray, count: int) -> list[int]:
    """Farthest-point choice: start at the most ordinary one, then always the one least like any chosen so far."""
    distances = np.linalg.norm(descriptions[:, None] - descriptions[None], axis=-1)
    chosen = [int(np.argmin(distances.sum(axis=0)))]
    nearest = distances[chosen[0]].copy()
    while len(chosen) < count:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return sorted(chosen)


def choose() -> list[Shape]:
    client = BulletClient(pybullet.DIRECT)
    shapes, descriptions = [], []
    for identity in range(MESHES):
        random = np.random.default_rng([COUNT, identity])
        found = candidate(identity, random)
        shape = resting(client, found[0], random) if found else None
        if found is None or shape is None or min(shape.half_extents) < THINNEST / 2:
            continue
        if all(stays(client, shape, yaw) for yaw in random.uniform(0, 2 * math.pi, size=4)):
            shapes.append(shape)
            descriptions.append(found[1])
    client.disconnect()
    return [shapes[index] for index in most_diverse(np.array(descriptions), COUNT)]


def main() -> None:
    rows = ",\n".join(json.dumps(asdict(shape)) for shape in choose())
    write_atomically(TABLE, f"[\n{rows}\n]\n".encode())


if __name__ == "__main__":
    main()
