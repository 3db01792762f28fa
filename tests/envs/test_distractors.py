"""The distractor objects: their table, their resting poses, and the script that chose them."""

import math
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from gcb.envs.bullet import BulletClient, pybullet
from gcb.envs.distractors import SHAPES, SPLITS, add_distractor, hull_points, mesh_vertices
from scripts.choose_distractors import COUNT, angle_between, at_rest, candidate, is_connected, most_diverse

TABLE_Z = -0.3775


@pytest.fixture(scope="module")
def client():
    client = BulletClient(pybullet.DIRECT)
    yield client
    client.disconnect()


def build_table(client):
    client.resetSimulation()
    client.setGravity(0, 0, -10)
    client.setPhysicsEngineParameter(fixedTimeStep=1 / 240, numSolverIterations=150, deterministicOverlappingPairs=1)
    box = client.createCollisionShape(pybullet.GEOM_BOX, halfExtents=[0.6, 0.9, 0.02])
    client.createMultiBody(0, box, -1, [0, 0, TABLE_Z - 0.02])


def grid(spacing=0.12):
    """Return a position on the table for every shape."""
    return [(spacing * (index // 12 - 4), spacing * (index % 12 - 5.5)) for index in range(len(SHAPES))]


def resting_points(shape):
    rotation = np.reshape(pybullet.getMatrixFromQuaternion(shape.rest_quaternion), (3, 3))
    return np.array(hull_points(shape)) @ rotation.T


def test_the_listed_corners_are_those_of_the_convex_hull():
    for shape in SHAPES:
        assert list(shape.hull) == sorted(ConvexHull(mesh_vertices(shape.id)).vertices.tolist())


def test_84_shapes_for_training_and_24_others_for_evaluation():
    assert {split: len(indices) for split, indices in SPLITS.items()} == {"train": 84, "eval": 24}
    assert len(SHAPES) == len({shape.id for shape in SHAPES}) == 108


def test_shapes_have_3_to_6_centimetres():
    longest = []
    for shape in SHAPES:
        points = np.array(hull_points(shape))
        longest.append(np.linalg.norm(points[:, None] - points[None], axis=-1).max())
    assert min(longest) > 0.035
    assert max(longest) <= 0.06
    assert np.std(longest) > 0.004
    assert all(0.012 <= shape.height <= 0.06 for shape in SHAPES)


def test_table_of_shapes_matches_their_hulls():
    for shape in SHAPES:
        points = resting_points(shape)
        np.testing.assert_allclose(np.ptp(points, axis=0) / 2, shape.half_extents, atol=1e-5)
        assert 0 <= shape.radius - np.linalg.norm(points[:, :2], axis=1).max() < 2e-5
        # The collision margin of the hull keeps it 1 mm above the table.
        assert shape.rest_height + points[:, 2].min() == pytest.approx(0.001, abs=2e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_all_shapes_rest_for_a_second(client, seed):
    build_table(client)
    yaws = np.random.default_rng(seed).uniform(-math.pi, math.pi, len(SHAPES))
    bodies = [
        add_distractor(client, shape, xy, yaw, (1, 0, 0), TABLE_Z)
        for shape, xy, yaw in zip(SHAPES, grid(), yaws, strict=True)
    ]
    before = [client.getBasePositionAndOrientation(body) for body in bodies]
    for _ in range(240):
        client.stepSimulation()
    for shape, body, (position, quaternion) in zip(SHAPES, bodies, before, strict=True):
        now, turned = client.getBasePositionAndOrientation(body)
        angle = pybullet.getAxisAngleFromQuaternion(pybullet.getDifferenceQuaternion(quaternion, turned))[1]
        assert math.dist(position, now) < 0.003, shape
        assert abs(math.degrees(math.remainder(angle, 2 * math.pi))) < 3, shape


def test_placed_at_the_given_pose(client):
    build_table(client)
    shape = SHAPES[10]
    body = add_distractor(client, shape, (0.3, -0.2), math.pi / 2, (1, 0, 0), TABLE_Z)
    position, quaternion = client.getBasePositionAndOrientation(body)
    np.testing.assert_allclose(position, (0.3, -0.2, TABLE_Z + shape.rest_height), atol=1e-9)
    turned = np.reshape(pybullet.getMatrixFromQuaternion(quaternion), (3, 3))
    rest = np.reshape(pybullet.getMatrixFromQuaternion(shape.rest_quaternion), (3, 3))
    np.testing.assert_allclose(turned, [[0, -1, 0], [1, 0, 0], [0, 0, 1]] @ rest, atol=1e-6)
    assert client.getDynamicsInfo(body, -1)[:2] == (0.05, 0.6)


def test_rendered_in_its_color_and_within_its_radius(client):
    """Seen from straight above, the visual shape is where the collision shape is."""
    view = pybullet.computeViewMatrix([0, 0, TABLE_Z + 1], [0, 0, TABLE_Z], [0, 1, 0])
    projection = pybullet.computeProjectionMatrix(-0.02, 0.02, -0.02, 0.02, 0.5, 2)  # a pixel is 1 mm on the table
    for shape in SHAPES:
        client.resetSimulation()
        body = add_distractor(client, shape, (0, 0), 1.0, (0.1, 0.2, 0.9), TABLE_Z)
        _, _, pixels, _, segmentation = client.getCameraImage(
            80, 80, view, projection, shadow=0, renderer=pybullet.ER_TINY_RENDERER
        )
        mask = np.reshape(segmentation, (80, 80)) == body
        rows, columns = np.nonzero(mask)
        assert len(rows) > 80, shape
        reach = np.hypot(rows - 39.5, columns - 39.5).max() / 1000
        assert shape.radius * 0.93 - 0.0015 < reach < shape.radius * 1.07 + 0.0015, shape
        red, green, blue = np.reshape(pixels, (80, 80, 4))[mask][:, :3].mean(axis=0)
        assert blue > 3 * green > 3 * red > 0, shape


def test_physics_is_deterministic_after_a_reset(client):
    def play():
        build_table(client)
        bodies = [
            add_distractor(client, shape, (0, 0.03 * i), 0.5, (1, 0, 0), TABLE_Z + 0.1)
            for i, shape in enumerate(SHAPES[:4])
        ]
        for _ in range(240):
            client.stepSimulation()
        return [client.getBasePositionAndOrientation(body) for body in bodies]

    first = play()
    build_table(client)
    add_distractor(client, SHAPES[50], (0, 0), 0.1, (1, 1, 1), TABLE_Z + 0.3)
    for _ in range(100):
        client.stepSimulation()
    assert play() == first


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_rebuilding_is_fast_and_does_not_leak(client):
    def rebuild(cycles):
        seconds = 0.0
        for cycle in range(cycles):
            client.resetSimulation()
            start = time.process_time()
            for index in range(4):
                add_distractor(
                    client, SHAPES[(4 * cycle + index) % len(SHAPES)], (0, 0.1 * index), 1.0, (1, 0, 0), TABLE_Z
                )
            seconds += time.process_time() - start
        return seconds / (4 * cycles)

    rebuild(100)
    before = resident_bytes()
    assert rebuild(800) < 0.003  # 0.45 ms on an idle machine
    assert resident_bytes() - before < 3e6


@pytest.mark.parametrize("row", [0, 41, 83, 100])
def test_script_reproduces_the_table(client, row):
    shape = SHAPES[row]
    random = np.random.default_rng([COUNT, shape.id])
    described = candidate(shape.id, random)
    assert described is not None
    assert at_rest(client, described[0], random) == shape


def test_helpers_of_the_script():
    assert most_diverse(np.array([[0.0], [0.1], [1.0], [-3.0], [1.05]]), 3) == [1, 3, 4]
    assert angle_between(np.array([0.0, 0, 1]), np.array([0.0, 1, 0])) == pytest.approx(90)
    line = np.linspace(0, 1, 50)[:, None] * [1.0, 0, 0]
    assert is_connected(line, longest=1.0)
    assert not is_connected(np.delete(line, range(20, 30), axis=0), longest=1.0)
    assert candidate(168, np.random.default_rng(0)) is None  # its file contains NaN
