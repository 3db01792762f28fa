"""Scenes and examples depend on the visitor's choices alone."""

from dataclasses import replace

import numpy as np
import pytest

from gcb.analysis.geometry import openings
from gcb.envs.layout import TRAVEL
from gcb.errors import GCBError
from gcb.explorer.choices import ByExample, SceneChoice
from gcb.explorer.display import task_label
from gcb.explorer.scene_renderer import SceneRenderer

SCENE = SceneChoice(seed=4)  # its own task is "drawer", as the first test checks


def test_a_seed_gives_the_same_scene(renderer: SceneRenderer) -> None:
    view = renderer.scene(SCENE)
    renderer.scene(SceneChoice(seed=12))
    again = renderer._scene(SCENE)
    assert view.scene == again.scene
    assert view.scene.task == "drawer"
    assert np.array_equal(view.before, again.before)
    assert view.after_url == again.after_url
    assert not view.solved


def test_video_changes_only_the_background(renderer: SceneRenderer) -> None:
    plain, with_video = renderer.scene(SCENE), renderer.scene(SceneChoice(seed=4, video=True))
    assert with_video.scene.clip is not None
    assert replace(with_video.scene, clip=None) == plain.scene
    assert not np.array_equal(with_video.before, plain.before)


def test_an_example_is_the_same_task_in_another_scene(renderer: SceneRenderer) -> None:
    scene, example = renderer.scene(SCENE).scene, renderer.example(SCENE, ByExample(seed=5)).scene
    assert (example.task, example.opening, example.target) == (scene.task, scene.opening, scene.target)
    assert example.cabinet_xy != scene.cabinet_xy
    assert example.colors != scene.colors


def test_each_field_changes_only_its_own_part(renderer: SceneRenderer) -> None:
    example = renderer.example(SCENE, ByExample(seed=5)).scene
    recoloured = renderer.example(SCENE, ByExample(seed=5, color_seed=1)).scene
    assert replace(recoloured, colors=example.colors) == example
    assert recoloured.colors != example.colors
    rotated = renderer.example(SCENE, ByExample(seed=5, rotation=90.0)).scene
    # An analogy adds noise (σ 5°).
    assert np.degrees(rotated.cabinet_yaw - renderer.scene(SCENE).scene.cabinet_yaw) == pytest.approx(90, abs=25)
    moved = renderer.example(SCENE, ByExample(seed=5, drawer_before=0.1, drawer_after=0.9))
    assert (moved.scene.opening, moved.scene.target) == (0.1 * TRAVEL, 0.9 * TRAVEL)


def test_the_scene_takes_the_requested_task(renderer: SceneRenderer) -> None:
    pressed = renderer.scene_with_task(SCENE, "button", None)
    assert pressed.label.startswith("press the button: lower drawer ")
    opening = renderer.scene(SCENE).scene.opening
    assert renderer.scene_with_task(SCENE, "drawer", opening / TRAVEL).solved


def test_a_label_names_the_goal_that_is_judged(renderer: SceneRenderer) -> None:
    """The expert stops up to a centimetre short of the target; the picture and the success follow from where it did."""
    view = renderer.scene_with_task(SCENE, "drawer", 0.0)
    reached = openings(view.hidden_goal[None], view.pose[None])[0, 0] / TRAVEL
    assert 0.03 < reached < 0.07  # or this scene would not tell the two apart
    assert view.label.endswith(f" to {100 * reached:.0f} %")


def test_impossible_choices_are_rejected(renderer: SceneRenderer) -> None:
    with pytest.raises(GCBError, match=r"drawer moves by 10% .* at least 38%"):
        renderer.example(SCENE, ByExample(seed=5, drawer_before=0.5, drawer_after=0.6))
    with pytest.raises(GCBError, match=r"task is 'juggle'; .* drawer, button"):
        renderer.example(SCENE, ByExample(seed=5, name="juggle"))


def test_an_expert_that_always_fails_is_reported(renderer: SceneRenderer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(scene: object) -> None:
        raise GCBError("no")

    renderer.scene(SCENE)
    monkeypatch.setattr(renderer, "_play", fails)
    with pytest.raises(GCBError, match="failed in 50 scenes"):
        renderer._example(SCENE, ByExample(seed=999))


@pytest.mark.parametrize(
    ("task", "before", "after", "label"),
    [
        ("drawer", [0.0], [TRAVEL], "open the drawer: 0 to 100 %"),
        ("drawer", [TRAVEL, 0.0], [TRAVEL / 2, 0.0], "close the drawer: 100 to 50 %"),
        ("button", [0.0, 0.0], [0.0, TRAVEL], "press the button: lower drawer opens"),
        ("button", [0.0, TRAVEL], [0.0, 0.0], "press the button: lower drawer closes"),
    ],
)
def test_task_labels(task: str, before: list, after: list, label: str) -> None:
    assert task_label(task, before, after) == label
