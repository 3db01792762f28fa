"""Scenes and examples follow from what was chosen, and from nothing else."""

from dataclasses import replace

import numpy as np
import pytest

from gcb.envs.layout import TRAVEL
from gcb.errors import GCBError
from gcb.explorer.choices import ByExample, SceneChoice
from gcb.explorer.labels import words_of_change
from gcb.explorer.scene_renderer import SceneRenderer

SCENE = SceneChoice(seed=4)  # its own task is "drawer", as the first test sees


def test_a_scene_is_its_number(studio: SceneRenderer) -> None:
    view = studio.scene(SCENE)
    studio.scene(SceneChoice(seed=12))
    again = studio._scene(SCENE)
    assert view.scene == again.scene
    assert view.scene.task == "drawer"
    assert np.array_equal(view.before, again.before)
    assert view.large_after == again.large_after
    assert not view.done


def test_a_clip_changes_nothing_but_the_background(studio: SceneRenderer) -> None:
    plain, filmed = studio.scene(SCENE), studio.scene(SceneChoice(seed=4, video=True))
    assert filmed.scene.clip is not None
    assert replace(filmed.scene, clip=None) == plain.scene
    assert not np.array_equal(filmed.before, plain.before)


def test_an_example_is_the_same_task_elsewhere(studio: SceneRenderer) -> None:
    here, there = studio.scene(SCENE).scene, studio.there(SCENE, ByExample(seed=5)).scene
    assert (there.task, there.opening, there.target) == (here.task, here.opening, here.target)
    assert there.cabinet_xy != here.cabinet_xy
    assert there.colors != here.colors


def test_each_choice_changes_what_it_names(studio: SceneRenderer) -> None:
    there = studio.there(SCENE, ByExample(seed=5)).scene
    recoloured = studio.there(SCENE, ByExample(seed=5, colors=1)).scene
    assert replace(recoloured, colors=there.colors) == there
    assert recoloured.colors != there.colors
    turned = studio.there(SCENE, ByExample(seed=5, turn=90.0)).scene
    # The noise of an analogy (σ 5°) comes on top.
    assert np.degrees(turned.cabinet_yaw - studio.scene(SCENE).scene.cabinet_yaw) == pytest.approx(90, abs=25)
    moved = studio.there(SCENE, ByExample(seed=5, before=0.1, after=0.9))
    assert (moved.scene.opening, moved.scene.target) == (0.1 * TRAVEL, 0.9 * TRAVEL)
    assert moved.words == "open the drawer: 10 to 90 %"


def test_the_scene_takes_the_task_it_is_told(studio: SceneRenderer) -> None:
    pressed = studio.here(SCENE, "button", None)
    assert pressed.words.startswith("press the button: lower drawer ")
    opening = studio.scene(SCENE).scene.opening
    assert studio.here(SCENE, "drawer", opening / TRAVEL).done


def test_impossible_choices_are_named(studio: SceneRenderer) -> None:
    with pytest.raises(GCBError, match=r"must move by at least 38 % of its way"):
        studio.there(SCENE, ByExample(seed=5, before=0.5, after=0.6))
    with pytest.raises(GCBError, match="task is 'juggle'; accepted: drawer, button"):
        studio.there(SCENE, ByExample(seed=5, task="juggle"))


def test_an_expert_that_always_fails_is_reported(studio: SceneRenderer, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(scene: object) -> None:
        raise GCBError("no")

    monkeypatch.setattr(studio, "_look", fails)
    with pytest.raises(GCBError, match="the expert failed in 50 scenes"):
        studio._there(SCENE, ByExample(seed=999))


@pytest.mark.parametrize(
    ("task", "before", "after", "words"),
    [
        ("drawer", [0.0], [TRAVEL], "open the drawer: 0 to 100 %"),
        ("drawer", [TRAVEL, 0.0], [TRAVEL / 2, 0.0], "close the drawer: 100 to 50 %"),
        ("button", [0.0, 0.0], [0.0, TRAVEL], "press the button: lower drawer opens"),
        ("button", [0.0, TRAVEL], [0.0, 0.0], "press the button: lower drawer closes"),
    ],
)
def test_tasks_in_words(task: str, before: list, after: list, words: str) -> None:
    assert words_of_change(task, np.array(before), np.array(after)) == words
