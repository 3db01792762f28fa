"""The page in a real browser: by mouse, by keyboard alone, on a phone, and with errors."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.explorer_browser import FINISHED, READY, TASK, until
from helpers.explorer_server import ExpertAgent, copy_run, serving, wait_for, wait_until_loaded

from gcb.explorer.episode import run_episode
from gcb.explorer.loader import RunLoader


def test_choose_an_example_run_the_agent_and_see_the_outcome(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + TASK)
    page.wait_for_selector(READY)
    assert page.inner_text("#example-label").startswith(("open the drawer", "close the drawer"))
    assert page.inner_text("#run-info").startswith("run")
    after = page.get_attribute("#after", "src")
    page.check("input[name=task][value=button]", force=True)
    until(page, "document.querySelector('#example-label').textContent.startsWith('press the button')")
    page.wait_for_selector(READY)
    assert page.get_attribute("#after", "src") != after
    assert "task=button" in page.url
    page.click("#run")
    page.wait_for_selector(FINISHED)
    assert re.search(r"No success in 75 steps|Success at step \d+", page.inner_text("#outcome"))
    assert "The expert needs" in page.inner_text("#outcome")
    last = page.get_attribute("#agent", "src")
    page.evaluate("step.value = 1; step.dispatchEvent(new Event('input'))")
    assert page.get_attribute("#agent", "src") != last
    until(page, "document.querySelectorAll('#neighbours li').length === 6")
    page.click("#neighbours li:first-child button")
    until(page, "location.hash.includes('by=dataset')")
    page.wait_for_selector(READY)


def test_run_is_disabled_until_a_change_is_shown(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + TASK)
    page.wait_for_selector(READY)
    click_twice = """() => {
        document.querySelector("input[name=task][value=button]").click();
        const button = document.getElementById("run");
        button.click();
        return [button.disabled, button.textContent];
    }"""
    assert page.evaluate(click_twice) == [True, "Run"]
    page.wait_for_selector(READY)
    assert page.inner_text("#example-label").startswith("press the button")


def test_success_is_marked(
    visit: Callable[..., Any], url: str, loader: RunLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_expert(simulators: Any, request: Any, spec: Any) -> Any:
        agent: Any = ExpertAgent(simulators)
        return run_episode([agent], simulators, spec.scene.scene, goal=spec.scene.after)

    monkeypatch.setattr(loader.session, "run_episode", run_expert)
    page = visit(url + TASK)
    page.click(READY)
    page.wait_for_selector(FINISHED)
    outcome = page.inner_text("#outcome")
    said = r"The agent rightly declares it done at step \d+\."
    assert re.search(rf"Success at step (\d+), kept until the end. {said} The expert needs \1 steps", outcome)
    assert "success" in (page.get_attribute("#agent-figure", "class") or "")
    assert page.locator("#timeline .success").count() > 10
    assert "Success at step" in (page.get_attribute("#timeline", "aria-label") or "")


def test_by_keyboard_alone(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + TASK)
    page.wait_for_selector(READY)
    press = page.keyboard.press

    def reach(selector: str) -> None:
        for _ in range(60):
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            press("Tab")
        raise AssertionError(f"{selector} cannot be reached by keyboard")

    reach("input[name=task]")
    press("ArrowRight")
    until(page, "location.hash.includes('task=button')")
    page.wait_for_selector(READY)
    reach("#run")
    press("Space")
    page.wait_for_selector(FINISHED)
    reach("#step")
    press("ArrowLeft")
    assert page.evaluate("Number(step.value)") == 74
    assert page.get_attribute("#step", "aria-valuetext").startswith("step 74")
    page.wait_for_selector("#map-body:not([hidden])")
    reach("#map")
    press("ArrowRight")
    press("ArrowDown")
    assert "value" in page.inner_text("#point-label")
    press("Enter")
    until(page, "location.hash.includes('by=dataset')")


def test_a_point_of_the_map_can_be_used_as_the_example(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + TASK)
    page.wait_for_selector(READY)
    page.wait_for_selector("#map-body:not([hidden])")
    # The nearest tasks stand above the map: once they are shown, it stays where it is.
    until(page, "document.querySelectorAll('#neighbours li').length === 6")
    x, y = page.evaluate("""async () => {
        const [points, canvas, gap] = [await (await fetch('/api/map')).json(), document.getElementById('points'), 18];
        const [width, height] = [canvas.clientWidth - 2 * gap, canvas.clientHeight - 2 * gap];
        return [gap + points.x[7] * width, gap + (1 - points.y[7]) * height];
    }""")
    page.locator("#points").hover(position={"x": x, "y": y})
    until(page, "document.querySelector('#point-goal').src.includes('/api/tasks/')")
    page.locator("#points").click(position={"x": x, "y": y})
    until(page, "location.hash.includes('by=dataset')")
    page.wait_for_selector(READY)
    assert page.is_checked("input[name=by][value=dataset]")


def test_a_phone_needs_no_horizontal_scrolling(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + TASK, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page.wait_for_selector(READY)
    page.wait_for_selector("#map-body:not([hidden])")
    until(page, "document.querySelectorAll('#neighbours li').length === 6")
    page.click("summary")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_visitors_are_independent(visit: Callable[..., Any], url: str) -> None:
    first, second = visit(url + TASK), visit(url + "#scene=5&example=6&by=goal")
    for page in (first, second):
        page.wait_for_selector(READY)
    images = [page.get_attribute("#agent", "src") for page in (first, second)]
    assert images[0] != images[1]
    first.click("#run")
    second.click("#run")
    for page in (first, second):
        page.wait_for_selector(FINISHED)
        page.evaluate("step.value = 0; step.dispatchEvent(new Event('input'))")
    assert [page.get_attribute("#agent", "src") for page in (first, second)] == images


def test_impossible_tasks_show_an_error(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + "#scene=4&example=5&task=drawer&before=0.5&after=0.52")
    page.wait_for_selector("#example-error:not([hidden])")
    assert "must move by at least" in page.inner_text("#example-error")
    assert page.is_disabled("#run")
    page.click("#paper")
    page.wait_for_selector(READY)
    assert page.is_hidden("#example-error")


def test_missing_checkpoints_failures_deletion_and_lost_connections_are_shown(
    visit: Callable[..., Any], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcb.explorer.loader.RETRY_SECONDS", 0.05)
    path = tmp_path / "run"
    shutil.copytree(run, path)
    (path / "checkpoint.json").rename(tmp_path / "checkpoint.json")
    loader = RunLoader([path])
    with serving(loader) as url:
        page = visit(url + TASK)
        page.wait_for_selector("text=No checkpoint yet")
        page.evaluate("location.hash = '#scene=4&example=6'")  # no reason for an error, even before the agent is loaded
        (path / "checkpoint.json").write_text("{}")
        page.wait_for_selector("text=This run cannot be loaded")
        (tmp_path / "checkpoint.json").rename(path / "checkpoint.json")
        page.wait_for_selector(READY)
        assert page.is_hidden("#notice")
        wait_until_loaded(loader)
        shutil.rmtree(path)
        page.wait_for_selector("text=was deleted")
        wait_for(lambda: page.is_enabled("#run"))
    page.wait_for_selector("text=The server does not respond")


def test_a_map_that_is_lost_on_its_way_is_fetched_again(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + TASK)
    mapped = "document.querySelector('#point-goal').src.includes('/api/tasks/')"
    until(page, mapped)  # otherwise it is the first page's request that is lost
    page.route("**/api/map", lambda route: route.abort(), times=1)
    page.reload()
    page.wait_for_selector("text=The server does not respond")
    page.wait_for_selector("#map-body:not([hidden])")
    until(page, mapped)
    page.wait_for_selector("#notice", state="hidden")


def test_an_unknown_environment_is_explained(visit: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    path = copy_run(run, tmp_path / "run", lambda data: data["config"].update(env="Pendulum-v1"))
    loader = RunLoader([path])
    with serving(loader) as url:
        page = visit(url)
        page.wait_for_selector("text=The agent cannot be run here")
        wait_until_loaded(loader)
        page.wait_for_timeout(1000)  # long enough for the page to poll again
        assert "environment is 'Pendulum-v1'" in page.inner_text("#loading-text")
        assert page.is_hidden("#explorer")


def test_a_method_without_analogies_is_given_a_goal_image(
    visit: Callable[..., Any], trained: Callable[[str], Path]
) -> None:
    loader = RunLoader([trained("gcbc")])
    with serving(loader) as url:
        page = visit(url + "#scene=4")
        page.wait_for_selector(READY)
        assert "cannot be conditioned on an example" in page.inner_text("#notice")
        assert page.is_checked("input[name=by][value=goal]")
        assert page.is_disabled("input[name=by][value=example]")
