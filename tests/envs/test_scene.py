"""Sampling of scenes: the rules of the paper, and values worked out by hand where the rules are our own."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
from helpers.simple_scene import simple_scene

from gcb.envs.backgrounds import open_bank
from gcb.envs.distractors import SHAPES
from gcb.envs.layout import BUTTON_DRAWER, DRAWER, TRAVEL
from gcb.envs.scene import (
    ANALOGIES,
    Distractor,
    _is_clear,
    reachable,
    sample_analogy,
    sample_opening,
    sample_scene,
)
from gcb.errors import GCBError

LAYOUTS = [DRAWER, BUTTON_DRAWER]
# The paper's area for the cabinet, intersected with the gripper's workspace: handle and button must be inside.
TOUCH_LOW, TOUCH_HIGH = np.array([0.5, -0.19]), np.array([0.84, 0.19])


def scenes(layout, count, seed=0, **options):
    rng = np.random.default_rng(seed)
    return [sample_scene(layout, rng, **options) for _ in range(count)]


def handle(scene, opening):
    direction = np.array([np.sin(scene.cabinet_yaw), -np.cos(scene.cabinet_yaw)])
    return np.array(scene.cabinet_xy) + (0.1375 + opening) * direction


def assert_reachable(layout, scene):
    assert np.all((np.array(scene.cabinet_xy) >= [0.46, -0.19]) & (np.array(scene.cabinet_xy) <= [0.84, 0.19]))
    touched = [handle(scene, 0.0), handle(scene, 0.1564)] + [np.array(scene.cabinet_xy)] * layout.has_button
    assert np.all((np.array(touched) >= TOUCH_LOW - 1e-9) & (np.array(touched) <= TOUCH_HIGH + 1e-9))


# ---- cabinet -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_scene_is_reachable_and_every_direction_occurs(layout):
    sampled = scenes(layout, 1000)
    for scene in sampled:
        assert_reachable(layout, scene)
        assert 0 <= scene.opening <= TRAVEL
        assert 0 <= scene.target <= TRAVEL
    eighths = np.histogram([scene.cabinet_yaw for scene in sampled], bins=8, range=(0, 2 * np.pi))[0]
    assert eighths.min() > 60
    assert abs(np.mean([scene.bottom_open for scene in sampled]) - 0.5) < 0.05
    assert {scene.task for scene in sampled} == set(layout.tasks)


def test_reachability_by_hand():
    """Facing -y at x = 0.6, the open handle is 0.2939 below the cabinet in y."""
    assert reachable(DRAWER, np.array([0.6, 0.1041]), 0.0)
    assert not reachable(DRAWER, np.array([0.6, 0.1037]), 0.0)  # the open handle below y = -0.19
    assert not reachable(DRAWER, np.array([0.6, 0.1901]), 0.0)  # the cabinet outside its own area
    assert reachable(DRAWER, np.array([0.47, 0.0]), np.pi / 2)  # facing +x from outside the workspace …
    assert not reachable(BUTTON_DRAWER, np.array([0.47, 0.0]), np.pi / 2)  # … where no finger reaches the button


def test_tasks_are_sampled_evenly_or_fixed():
    sampled = scenes(BUTTON_DRAWER, 1000)
    assert abs(np.mean([scene.task == "button" for scene in sampled]) - 0.5) < 0.05
    assert {scene.task for scene in scenes(BUTTON_DRAWER, 20, task="button")} == {"button"}


def test_scene_depends_on_the_seed_only_and_is_json():
    first, again = scenes(BUTTON_DRAWER, 20, seed=3), scenes(BUTTON_DRAWER, 20, seed=3)
    assert first == again
    assert first != scenes(BUTTON_DRAWER, 20, seed=4)
    stored = json.loads(json.dumps(first[0].to_dict()))
    assert stored["cabinet_xy"] == list(first[0].cabinet_xy)
    assert len(stored["distractors"]) == len(first[0].distractors)


def test_handle_and_button_stand_out():
    """The handle is nearly black or nearly white, the button is vivid, and cabinets have many colours."""
    sampled = scenes(BUTTON_DRAWER, 300)
    handles = np.array([scene.colors["handle"] for scene in sampled])
    assert np.all((handles < 0.16) | (handles > 0.89))
    buttons = np.array([scene.colors["button"] for scene in sampled])
    assert np.all(np.ptp(buttons, axis=1) > 0.7)
    frames = np.array([scene.colors["frame"] for scene in sampled])
    assert frames.std(axis=0).min() > 0.1
    assert all(scene.colors["drawer"] == scene.colors["bottom"] for scene in sampled)


# ---- goal ----------------------------------------------------------------------------------------------------


def test_targets_follow_the_rule():
    """In the same half and at least 0.06 away, or else the opposite extreme: no goal is reached at the start."""
    rng = np.random.default_rng(0)
    for opening, target in (sample_opening(rng) for _ in range(2000)):
        upper = opening > TRAVEL / 2
        if target == (0.0 if upper else TRAVEL):
            continue
        assert (target > TRAVEL / 2) == upper
        assert abs(target - opening) >= 0.06


def test_fraction_of_targets_at_the_opposite_extreme():
    """Two uniform points in a half h = 0.0782 are within d = 0.06 with probability 1 - ((h - d) / h)² = 0.95."""
    rng = np.random.default_rng(0)
    extreme = [target in (0.0, TRAVEL) for _, target in (sample_opening(rng) for _ in range(20_000))]
    assert np.mean(extreme) == pytest.approx(1 - ((0.0782 - 0.06) / 0.0782) ** 2, abs=0.01)


# ---- distractors ---------------------------------------------------------------------------------------------


def test_zero_to_four_different_distractors_evenly():
    sampled = scenes(DRAWER, 2000)
    counts = np.bincount([len(scene.distractors) for scene in sampled], minlength=5)
    assert len(counts) == 5
    assert np.abs(counts / 2000 - 0.2).max() < 0.03
    for scene in sampled:
        assert len({item.shape for item in scene.distractors}) == len(scene.distractors)
    assert {item.shape for scene in sampled for item in scene.distractors} == set(range(84))


@pytest.mark.parametrize("mode", ["", *ANALOGIES])
def test_shapes_of_the_evaluation_split(mode):
    shapes, rng = set(), np.random.default_rng(0)
    for _ in range(300):
        scene = sample_scene(DRAWER, rng, distractor_split="eval")
        scene = sample_analogy(scene, mode, DRAWER, rng, distractor_split="eval") if mode else scene
        shapes |= {item.shape for item in scene.distractors}
    assert shapes == set(range(84, 108))


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_distractors_are_clear_of_the_cabinet_and_of_each_other(layout):
    for scene in scenes(layout, 300, seed=1):
        cos, sin = np.cos(scene.cabinet_yaw), np.sin(scene.cabinet_yaw)
        for number, item in enumerate(scene.distractors):
            # In the cabinet's frame (x across, -y along the opening drawer), find the nearest point of its rectangle.
            offset = np.array(item.xy) - scene.cabinet_xy
            own = np.array([cos * offset[0] + sin * offset[1], -sin * offset[0] + cos * offset[1]])
            nearest = np.clip(own, [-0.09375, -0.3064], [0.09375, 0.08125])
            assert np.linalg.norm(own - nearest) > SHAPES[item.shape].radius + 0.029
            for other in scene.distractors[:number]:
                gap = np.linalg.norm(np.array(item.xy) - other.xy)
                assert gap > SHAPES[item.shape].radius + SHAPES[other.shape].radius + 0.005


def test_clearance_by_hand():
    cabinet, beside = np.array([0.68, 0.12]), Distractor(0, (0.5, 0.1), 0.0, (0, 0, 0))
    assert not _is_clear(np.array([0.68, 0.12]), 0.02, cabinet, 0.0, [])
    assert not _is_clear(np.array([0.68, -0.2]), 0.02, cabinet, 0.0, [])  # in front of the open handle
    assert _is_clear(np.array([0.68, -0.25]), 0.02, cabinet, 0.0, [])
    assert _is_clear(np.array([0.68, 0.26]), 0.02, cabinet, 0.0, [])  # behind
    assert _is_clear(np.array([0.5, 0.16]), 0.01, cabinet, 0.0, [])
    assert not _is_clear(np.array([0.5, 0.11]), 0.01, cabinet, 0.0, [beside])


# ---- analogies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_strict_analogies_keep_the_function_and_change_the_rest(layout):
    rng = np.random.default_rng(0)
    scene = sample_scene(layout, rng)
    sampled = [sample_analogy(scene, "strict", layout, rng) for _ in range(300)]
    for analogous in sampled:
        assert_reachable(layout, analogous)
        kept = ("task", "opening", "target", "bottom_open")
        assert all(getattr(analogous, name) == getattr(scene, name) for name in kept)
        assert analogous.cabinet_xy != scene.cabinet_xy
        assert analogous.colors != scene.colors
    assert len({len(analogous.distractors) for analogous in sampled}) == 5
    turns = np.degrees([analogous.cabinet_yaw - scene.cabinet_yaw for analogous in sampled])
    assert np.abs(turns).max() < 25  # five standard deviations


def test_pose_noise_is_as_large_as_stated():
    """The yaw has a standard deviation of 5°; that of x, 0.08 m, is truncated by the reach of the arm."""
    rng = np.random.default_rng(1)
    scene = simple_scene(cabinet_xy=(0.65, 0.15))
    sampled = [sample_analogy(scene, "strict", DRAWER, rng) for _ in range(1000)]
    turns = np.degrees([analogous.cabinet_yaw for analogous in sampled])
    assert turns.std() == pytest.approx(5, abs=0.5)
    across = np.array([analogous.cabinet_xy[0] for analogous in sampled]) - 0.65
    assert 0.05 < across.std() < 0.08


def test_loose_analogies_keep_only_the_task():
    rng = np.random.default_rng(2)
    scene = sample_scene(BUTTON_DRAWER, rng)
    sampled = [sample_analogy(scene, "loose", BUTTON_DRAWER, rng) for _ in range(200)]
    assert {analogous.task for analogous in sampled} == {scene.task}
    assert all(analogous.opening != scene.opening for analogous in sampled)
    assert {analogous.bottom_open for analogous in sampled} == {False, True}
    assert len({analogous.target for analogous in sampled}) > 10


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_free_analogies_keep_the_function_and_are_anywhere(layout):
    """The pose is distributed like that of a new scene, wherever the original cabinet is."""
    kept = ("task", "opening", "target", "bottom_open")
    for seed, (xy, yaw) in enumerate((((0.65, -0.15), np.pi), ((0.65, 0.15), 0.0))):
        scene, rng = simple_scene(cabinet_xy=xy, cabinet_yaw=yaw), np.random.default_rng(seed)
        sampled = [sample_analogy(scene, "free", layout, rng) for _ in range(1000)]
        for analogous in sampled:
            assert_reachable(layout, analogous)
            assert all(getattr(analogous, name) == getattr(scene, name) for name in kept)
            assert analogous.colors != scene.colors
        eighths = np.histogram([analogous.cabinet_yaw for analogous in sampled], bins=8, range=(0, 2 * np.pi))[0]
        assert eighths.min() > 60
        places = np.array([analogous.cabinet_xy for analogous in sampled])
        new = np.array([other.cabinet_xy for other in scenes(layout, 1000, seed=10 + seed)])
        np.testing.assert_allclose(places.mean(axis=0), new.mean(axis=0), atol=0.015)  # 3 standard errors
        np.testing.assert_allclose(places.std(axis=0), new.std(axis=0), atol=0.015)
        assert len({len(analogous.distractors) for analogous in sampled}) == 5


def test_free_analogies_have_the_pose_of_a_new_scene():
    """It does not depend on the original, and is sampled first, as in a new scene whose task is given."""
    new = sample_scene(BUTTON_DRAWER, np.random.default_rng(6), task="button")
    for scene in (simple_scene(), simple_scene(cabinet_xy=(0.6, -0.1), cabinet_yaw=3.0)):
        analogous = sample_analogy(scene, "free", BUTTON_DRAWER, np.random.default_rng(6))
        assert (analogous.cabinet_xy, analogous.cabinet_yaw) == (new.cabinet_xy, new.cabinet_yaw)


@pytest.mark.parametrize(
    ("mode", "opening", "shapes"),
    [("strict", 0.12844012463506466, 1), ("loose", 0.09450818710354249, 0)],
)
def test_the_same_seed_gives_the_same_analogy_in_every_version(mode, opening, shapes):
    """The values of version 0.1.0: stored results and videos refer to these scenes."""
    scene = sample_scene(BUTTON_DRAWER, np.random.default_rng(7))
    analogous = sample_analogy(scene, mode, BUTTON_DRAWER, np.random.default_rng(8))
    assert analogous.cabinet_xy == pytest.approx((0.6228912799326807, 0.13853640303371131), abs=1e-12)
    assert analogous.cabinet_yaw == pytest.approx(0.1587480499956599, abs=1e-12)
    assert analogous.opening == pytest.approx(opening, abs=1e-12)
    assert len(analogous.distractors) == shapes


def test_analogy_gets_its_own_clip():
    rng, bank = np.random.default_rng(3), open_bank("builtin", "train")
    scene = sample_scene(DRAWER, rng, bank=bank)
    assert scene.clip is not None
    for mode in ANALOGIES:
        clips = [sample_analogy(scene, mode, DRAWER, rng, bank).clip for _ in range(5)]
        assert scene.clip not in clips
        assert sample_analogy(scene, mode, DRAWER, rng).clip is None


def test_clip_does_not_change_the_rest_of_the_scene():
    """It is sampled last: the same seed gives the same scene with and without video."""
    bank = open_bank("builtin", "train")
    with_video = sample_scene(DRAWER, np.random.default_rng(4), bank=bank)
    assert replace(with_video, clip=None) == sample_scene(DRAWER, np.random.default_rng(4))
    assert asdict(with_video)["clip"]["name"]


def test_unknown_analogy():
    with pytest.raises(GCBError, match=r"analogy is 'wild'; accepted: strict, loose, free\."):
        sample_analogy(simple_scene(), "wild", DRAWER, np.random.default_rng(0))
