"""The page in a real browser: own pictures, films, many scenes, two agents, an agent without its dataset."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.explorer_browser import FINISHED, READY, TASK, until
from helpers.explorer_server import serving, wait_until_loaded
from PIL import Image

from gcb.explorer.loader import RunLoader
from gcb.runs.find import DEFAULT_AGENT, find_run

Visit = Callable[..., Any]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("#scene-form input[name=seed]", "-3", "Seed must be a whole number from 0 to 2147483647."),
        ("#scene-form input[name=seed]", "", "Seed must be a whole number from 0 to 2147483647."),
        ("#example-form input[name=colorSeed]", "1.5", "Colours must be a whole number from 0 to 2147483647."),
    ],
)
def test_an_invalid_number_leaves_nothing_to_run(visit: Visit, url: str, field: str, value: str, message: str) -> None:
    page = visit(url + TASK)
    page.wait_for_selector(READY)
    page.fill(field, value)
    assert page.is_disabled("#run")
    assert page.is_disabled("#many")
    assert page.inner_text("#example-error") == page.inner_text("#outcome") == message
    page.wait_for_timeout(400)  # longer than a choice is delayed
    assert page.is_disabled("#run")
    page.fill(field, "7")
    page.wait_for_selector(READY)
    assert page.is_hidden("#example-error")
    assert page.is_enabled("#many")


def test_own_pictures_are_cropped_scaled_and_used(visit: Visit, url: str, tmp_path: Path) -> None:
    wide = np.zeros((90, 160, 3), np.uint8)
    wide[:, 35:125] = (200, 30, 30)  # the middle square
    Image.fromarray(wide).save(tmp_path / "wide.jpg", quality=95)
    Image.fromarray(np.full((64, 64, 3), 90, np.uint8)).save(tmp_path / "exact.png")
    (tmp_path / "notes.txt").write_text("no picture")
    page = visit(url + TASK)
    page.wait_for_selector(READY)
    page.check("input[name=by][value=pictures]", force=True)
    until(page, "outcome.textContent === 'Choose a picture for before and for after.'")
    assert page.is_disabled("#run")
    page.set_input_files("input[name=beforePicture]", tmp_path / "notes.txt")
    until(page, "outcome.textContent === 'notes.txt is not a picture that this browser can read.'")
    page.set_input_files("input[name=beforePicture]", tmp_path / "wide.jpg")
    until(page, "outcome.textContent === 'Choose a picture for after.'")
    page.set_input_files("input[name=afterPicture]", tmp_path / "exact.png")
    page.wait_for_selector(READY)
    said = page.inner_text("#pictures-status")
    assert said == (
        "before: wide.jpg (160×90), cropped to a square, scaled to 64×64. after: exact.png (64×64), as it is."
    )
    corner = """async (id) => {
        const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
        const image = document.getElementById(id);
        await image.decode();
        canvas.getContext("2d").drawImage(image, 0, 0);
        return [image.naturalWidth, ...canvas.getContext("2d").getImageData(2, 2, 1, 1).data];
    }"""
    assert page.evaluate(corner, "before") == pytest.approx([64, 200, 30, 30, 255], abs=8)
    assert page.evaluate(corner, "after") == [64, 90, 90, 90, 255]
    page.click("#run")
    page.wait_for_selector(FINISHED)


def test_the_film_of_an_episode_can_be_downloaded(visit: Visit, url: str, tmp_path: Path) -> None:
    page = visit(url + TASK)
    page.wait_for_selector(READY)
    assert page.is_disabled("#film")
    page.click("#run")
    page.wait_for_selector(FINISHED)
    said = page.inner_text("#outcome")
    with page.expect_download() as download:
        page.click("#film")
    assert download.value.suggested_filename == "gcb-scene-4.mp4"
    download.value.save_as(tmp_path / "film.mp4")
    assert (tmp_path / "film.mp4").read_bytes()[4:8] == b"ftyp"
    until(page, "!film.disabled")
    assert page.inner_text("#outcome") == said


def test_many_scenes_are_played_and_can_be_looked_at(visit: Visit, url: str) -> None:
    page = visit(url + TASK)
    page.wait_for_selector(READY)
    page.fill("#many-form input", "2")
    page.press("#many-form input", "Enter")
    until(page, "document.querySelectorAll('#squares button').length === 2")
    until(page, "many.textContent === 'Play them'")
    assert re.match(r"[012] of 2 scenes, (0|50|100) % \[\d+, \d+\]", page.inner_text("#rate"))
    page.click("#squares li:last-child button")
    until(page, "location.hash.includes('scene=5') && location.hash.includes('example=5')")
    page.wait_for_selector(READY)
    page.fill("#many-form input", "50")
    page.click("#many")
    until(page, "document.querySelectorAll('#squares button').length >= 1 && many.textContent === 'Stop'")
    page.click("#many")
    until(page, "many.textContent === 'Play them'")


def test_two_agents_are_shown_side_by_side(visit: Visit, trained: Callable[[str], Path]) -> None:
    loader = RunLoader([trained("gcb"), trained("rad")])
    with serving(loader) as url:
        page = visit(url + TASK)
        page.wait_for_selector(READY)
        assert page.inner_text("#agent-figure figcaption") == "gcb"
        assert page.inner_text("#agent-figure-2 figcaption") == "rad"
        page.click("#run")
        page.wait_for_selector(FINISHED)
        lines = page.inner_text("#outcome").splitlines()
        assert [line.partition(":")[0] for line in lines[:2]] == ["gcb", "rad"]
        images = [page.get_attribute(f"#{name}", "src") for name in ("agent", "agent-2", "expert")]
        assert len(set(images)) == 3
        assert page.is_visible("#timeline-2")
        assert page.locator("#timeline-2 .done").count() == 1
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        wait_until_loaded(loader)


def test_an_agent_that_comes_with_gcb_says_what_it_lacks(visit: Visit) -> None:
    loader = RunLoader([find_run(DEFAULT_AGENT)])
    with serving(loader) as url:
        page = visit(url + TASK)
        page.wait_for_selector(READY)
        assert "button-drawer, which comes with gcb" in page.inner_text("#run-info")
        until(page, "document.getElementById('analysis-status').textContent.includes('comes without its dataset')")
        assert page.inner_text("#analysis-status code").startswith("gcb collect --env gcb/ButtonDrawer-v0")
        assert page.is_hidden("#map-card")
        page.click("#run")
        page.wait_for_selector(FINISHED)
