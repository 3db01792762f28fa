"""Choose the 84 distractor shapes of training and 24 for evaluation: `python -m scripts.choose_distractors`.

This regenerates `gcb/envs/distractors.json` and `eval_distractors.json` from the meshes in `pybullet_data`,
deterministically, in about four minutes. Run it when the rules below change; the package only reads the result.
"""

import json
import math
from dataclasses import asdict, replace

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import ConvexHull, KDTree

from gcb.envs.bullet import BulletClient, pybullet
from gcb.envs.distractors import SHAPES_FILES, Shape, add_body, add_distractor, hull_points, mesh_path, mesh_vertices
from gcb.utils.files import write_atomically

COUNT, EVAL_COUNT = 84, 24
SMALLEST, LARGEST = 0.035, 0.06
THINNEST = 0.012  # thinner shapes cover less than two pixels
MESH_COUNT = 1000
DROPS = 12
"""Number of times each mesh is dropped, from random orientations."""
MIN_AGREEMENT = 0.5
"""Fraction of the drops that must end on the same side; meshes below it topple too easily."""
TABLE_THICKNESS = 0.2
STEPS_PER_SECOND = 240


def read_triangles(mesh_id: int) -> np.ndarray:
    """Return the vertex indices of every triangle of a mesh; larger faces are split into fans."""
    triangles = []
    for line in mesh_path(mesh_id).read_text().splitlines():
        if line.startswith("f "):
            corners = [int(field.split("/")[0]) - 1 for field in line.split()[1:]]
            triangles += [(corners[0], corners[i], corners[i + 1]) for i in range(1, len(corners) - 1)]
    return np.array(triangles)


def hull_centroid(vertices: np.ndarray) -> np.ndarray:
    """Return the centre of mass of the convex hull, as the volume-weighted mean of tetrahedra from an inner point."""
    hull = ConvexHull(vertices)
    inner = vertices[hull.vertices].mean(axis=0)
    facets = vertices[hull.simplices]
    volumes = np.abs(np.linalg.det(facets - inner))
    return np.average((facets.sum(axis=1) + inner) / 4, axis=0, weights=volumes)


def surface_points(corners: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Sample points uniformly on the triangles with these (n, 3, 3) corners."""
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    chosen = corners[rng.choice(len(corners), size=count, p=area / area.sum())]
    return np.einsum("nc,nci->ni", rng.dirichlet((1, 1, 1), size=count), chosen)


def is_connected(points: np.ndarray, longest: float) -> bool:
    """Return whether the mesh is one piece; some have parts that float beside the rest."""
    first, second = KDTree(points).query_pairs(0.05 * longest, output_type="ndarray").T
    near = coo_matrix((np.ones(len(first)), (first, second)), shape=(len(points), len(points)))
    return connected_components(near, directed=False, return_labels=False) == 1


def describe(points: np.ndarray, filled: float) -> np.ndarray:
    """Return a descriptor of a shape that is invariant to size and orientation.

    It holds the proportions of the principal axes, the fraction of the hull that is filled, and the histogram of
    distances between random surface points (Osada et al. 2002, "D2").
    """
    half = len(points) // 2
    distances = np.linalg.norm(points[:half] - points[half:], axis=1)
    histogram = np.histogram(distances / distances.max(), bins=12, range=(0, 1))[0] / half
    centred = points - points.mean(axis=0)
    spread = np.ptp(centred @ np.linalg.svd(centred, full_matrices=False)[2].T, axis=0)
    return np.concatenate([3 * spread[1:] / spread[0], [2 * min(1.0, filled)], 4 * histogram])


def candidate(mesh_id: int, rng: np.random.Generator) -> tuple[Shape, np.ndarray] | None:
    """Return a mesh with a random diameter between 3.5 and 6 cm, not yet at rest, and its descriptor.

    Return None for a mesh with invalid numbers (168 has NaN) or with loose parts.
    """
    vertices = mesh_vertices(mesh_id)
    if not np.isfinite(vertices).all():
        return None
    hull = ConvexHull(vertices)
    hull_corners = vertices[hull.vertices]
    longest = np.linalg.norm(hull_corners[:, None] - hull_corners[None], axis=-1).max()
    corners = vertices[read_triangles(mesh_id)]
    points = surface_points(corners, 4096, rng)
    if not is_connected(points, longest):
        return None
    volume = float(np.linalg.det(corners).sum()) / 6
    x, y, z = hull_centroid(vertices).round(6).tolist()
    scale = float(f"{rng.uniform(SMALLEST, LARGEST) / longest:.6g}")
    shape = Shape(mesh_id, scale, (x, y, z), (0, 0, 0, 1), 0, (0, 0, 0), 0, tuple(np.sort(hull.vertices).tolist()))
    return shape, describe(points, volume / hull.volume)


def reset_table(client: BulletClient) -> None:
    """Set up the physics of the environments, with the table top at z = 0."""
    client.resetSimulation()
    client.setGravity(0, 0, -10)
    client.setPhysicsEngineParameter(numSolverIterations=150, deterministicOverlappingPairs=1)
    box = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[1, 1, TABLE_THICKNESS / 2])
    client.createMultiBody(0, box, -1, [0, 0, -TABLE_THICKNESS / 2])


def angle_between(first: np.ndarray, second: np.ndarray) -> float:
    """Return the angle between two directions, in degrees."""
    return math.degrees(math.acos(min(1.0, max(-1.0, float(first @ second)))))


def drop(client: BulletClient, shape: Shape, orientation: list[float]) -> tuple[list[float], float] | None:
    """Return the quaternion and height at rest, or None if the shape still moves after three seconds."""
    reset_table(client)
    points = np.array(hull_points(shape))
    turned = points @ np.reshape(pybullet.getMatrixFromQuaternion(orientation), (3, 3)).T
    body = add_body(client, shape, (0, 0, 0.003 - turned[:, 2].min()), orientation, (1, 1, 1))
    still_steps = 0
    for _ in range(3 * STEPS_PER_SECOND):
        client.stepSimulation()
        linear, angular = client.getBaseVelocity(body)
        still_steps = still_steps + 1 if np.linalg.norm(linear) < 1e-3 and np.linalg.norm(angular) < 0.02 else 0
        if still_steps == STEPS_PER_SECOND // 2:
            position, quaternion = client.getBasePositionAndOrientation(body)
            return list(quaternion), position[2]
    return None


def at_rest(client: BulletClient, shape: Shape, rng: np.random.Generator) -> Shape | None:
    """Return `shape` with its most frequent resting pose and its size in it, or None if no pose is frequent."""
    rests = [drop(client, shape, (start / np.linalg.norm(start)).tolist()) for start in rng.standard_normal((DROPS, 4))]
    settled = [rest for rest in rests if rest is not None]
    rotations = [np.reshape(pybullet.getMatrixFromQuaternion(quaternion), (3, 3)) for quaternion, _ in settled]
    downward = [rotation[2] for rotation in rotations]
    alike = [sum(angle_between(pose, other) < 5 for other in downward) for pose in downward]
    if not alike or max(alike) < MIN_AGREEMENT * DROPS:
        return None
    best = int(np.argmax(alike))
    quaternion, height = settled[best]
    turned = np.array(hull_points(shape)) @ rotations[best].T
    return replace(
        shape,
        rest_quaternion=tuple(round(float(value), 6) for value in quaternion),
        rest_height=round(height, 6),
        half_extents=tuple(round(float(value) / 2, 5) for value in np.ptp(turned, axis=0)),
        radius=math.ceil(1e5 * np.linalg.norm(turned[:, :2], axis=1).max()) / 1e5,
    )


def stays(client: BulletClient, shape: Shape, yaw: float) -> bool:
    """Return whether the shape rests for four seconds, longer than an episode, after `add_distractor`."""
    reset_table(client)
    body = add_distractor(client, shape, (0, 0), yaw, (1, 1, 1), 0.0)
    start, before = client.getBasePositionAndOrientation(body)
    for _ in range(4 * STEPS_PER_SECOND):
        client.stepSimulation()
    end, after = client.getBasePositionAndOrientation(body)
    turned = pybullet.getAxisAngleFromQuaternion(pybullet.getDifferenceQuaternion(before, after))[1]
    return math.dist(start, end) < 0.0005 and abs(math.remainder(turned, 2 * math.pi)) < math.radians(0.5)


def most_diverse(descriptions: np.ndarray, count: int) -> list[int]:
    """Select by farthest-point sampling, in this order: the most central one, then the farthest from all selected."""
    distances = np.linalg.norm(descriptions[:, None] - descriptions[None], axis=-1)
    chosen = [int(np.argmin(distances.sum(axis=0)))]
    nearest = distances[chosen[0]].copy()
    while len(chosen) < count:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, distances[chosen[-1]])
    return chosen


def choose_shapes() -> dict[str, list[Shape]]:
    """Return the most diverse shapes among the meshes with a stable resting pose; the last ones are for evaluation."""
    client = BulletClient(pybullet.DIRECT)
    shapes, descriptions = [], []
    for mesh_id in range(MESH_COUNT):
        rng = np.random.default_rng([COUNT, mesh_id])
        described = candidate(mesh_id, rng)
        shape = at_rest(client, described[0], rng) if described else None
        if described is None or shape is None or min(shape.half_extents) < THINNEST / 2:
            continue
        if all(stays(client, shape, yaw) for yaw in rng.uniform(0, 2 * math.pi, size=4)):
            shapes.append(shape)
            descriptions.append(described[1])
    client.disconnect()
    chosen = most_diverse(np.array(descriptions), COUNT + EVAL_COUNT)
    splits = {"train": chosen[:COUNT], "eval": chosen[COUNT:]}
    return {split: [shapes[index] for index in sorted(indices)] for split, indices in splits.items()}


def main() -> None:
    for split, shapes in choose_shapes().items():
        rows = ",\n".join(json.dumps(asdict(shape)) for shape in shapes)
        write_atomically(SHAPES_FILES[split], f"[\n{rows}\n]\n".encode())


if __name__ == "__main__":
    main()
