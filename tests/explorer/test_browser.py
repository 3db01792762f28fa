"""The page in a real browser: with the mouse, with the keyboard alone, on a phone, and when things go wrong."""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.explorer_server import ActsAsTheExpert, loaded, serving, wait_for, with_record

from gcb.explorer.episode import play
from gcb.explorer.loader import RunLoader

PATIENCE = 120_000
READY = "#do-it:not(:disabled)"
DONE = "#verdict.success, #verdict.failed"
HERE = "#scene=4&place=5"
"""A scene whose own task is to set the drawer, and an example."""


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page as a new visitor; a page that threw, or asked for anything from elsewhere, fails the test."""
    contexts, faults = [], []

    def open_page(url: str, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if _foreign(request.url, url) else None)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not faults


def until(page: Any, expression: str) -> None:
    """Wait in steps: a predicate inside the page would be a string that its own policy forbids to evaluate."""
    wait_for(lambda: page.evaluate(expression))


def _foreign(asked: str, url: str) -> bool:
    origin = re.match(r"http://[^/]+/", url)
    return not asked.startswith(("data:", origin.group() if origin else url))


def test_choose_an_example_run_it_and_see_what_became_of_it(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + HERE)
    page.wait_for_selector(READY)
    assert page.inner_text("#there-words").startswith(("open the drawer", "close the drawer"))
    assert page.inner_text("#facts").startswith("run")
    after = page.get_attribute("#after", "src")
    page.check("input[name=task][value=button]", force=True)
    until(page, "document.querySelector('#there-words').textContent.startsWith('press the button')")
    page.wait_for_selector(READY)
    assert page.get_attribute("#after", "src") != after
    assert "task=button" in page.url
    page.click("#do-it")
    page.wait_for_selector(DONE)
    assert re.search(r"Not done in 75 steps|Done at step \d+", page.inner_text("#verdict"))
    assert "The expert needs" in page.inner_text("#verdict")
    last = page.get_attribute("#agent", "src")
    page.evaluate("scrub.value = 1; scrub.dispatchEvent(new Event('input'))")
    assert page.get_attribute("#agent", "src") != last
    until(page, "document.querySelectorAll('#neighbours li').length === 6")
    page.click("#neighbours li:first-child button")
    until(page, "location.hash.includes('by=data')")
    page.wait_for_selector(READY)


def test_nothing_can_be_begun_before_a_change_is_shown(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + HERE)
    page.wait_for_selector(READY)
    begun = """() => {
        document.querySelector("input[name=task][value=button]").click();
        const button = document.getElementById("do-it");
        button.click();
        return [button.disabled, button.textContent];
    }"""
    assert page.evaluate(begun) == [True, "Do it"]
    page.wait_for_selector(READY)
    assert page.inner_text("#there-words").startswith("press the button")


def test_success_is_marked(
    visit: Callable[..., Any], url: str, explorer: RunLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def as_the_expert(stage: Any, brief: Any) -> Any:
        return play(ActsAsTheExpert(stage), stage, brief.here, goal=brief.here.after)  # pyright: ignore

    monkeypatch.setattr(explorer.show, "play", as_the_expert)
    page = visit(url + HERE)
    page.click(READY)
    page.wait_for_selector(DONE)
    assert re.search(r"Done at step (\d+), and left so. The expert needs \1 steps", page.inner_text("#verdict"))
    assert "done" in (page.get_attribute("#agent-figure", "class") or "")
    assert page.locator("#ribbon .reached").count() > 10
    assert "reached at step" in (page.get_attribute("#ribbon", "aria-label") or "")


def test_by_keyboard_alone(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + HERE)
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
    reach("#do-it")
    press("Space")
    page.wait_for_selector(DONE)
    reach("#scrub")
    press("ArrowLeft")
    assert page.evaluate("Number(scrub.value)") == 74
    assert page.get_attribute("#scrub", "aria-valuetext").startswith("step 74")
    page.wait_for_selector("#map-body:not([hidden])")
    reach("#map")
    press("ArrowRight")
    press("ArrowDown")
    assert "value" in page.inner_text("#point-words")
    press("Enter")
    until(page, "location.hash.includes('by=data')")


def test_a_point_shows_its_task_and_can_be_used(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + HERE)
    page.wait_for_selector(READY)
    page.wait_for_selector("#map-body:not([hidden])")
    page.locator("#map").scroll_into_view_if_needed()
    x, y = page.evaluate("""async () => {
        const points = await (await fetch('/api/map')).json();
        const [box, gap] = [document.getElementById('points').getBoundingClientRect(), 18];
        const [width, height] = [box.width - 2 * gap, box.height - 2 * gap];
        return [box.left + gap + points.x[7] * width, box.top + gap + (1 - points.y[7]) * height];
    }""")
    page.mouse.move(x, y)
    until(page, "document.querySelector('#point-goal').src.includes('/api/task/')")
    page.mouse.click(x, y)
    until(page, "location.hash.includes('by=data')")
    page.wait_for_selector(READY)
    assert page.is_checked("input[name=by][value=data]")


def test_a_phone_shows_all_without_scrolling_sideways(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + HERE, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    page.wait_for_selector(READY)
    page.wait_for_selector("#map-body:not([hidden])")
    until(page, "document.querySelectorAll('#neighbours li').length === 6")
    page.click("summary")
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_two_visitors_do_not_disturb_each_other(visit: Callable[..., Any], url: str) -> None:
    first, second = visit(url + HERE), visit(url + "#scene=5&place=6&by=goal")
    for page in (first, second):
        page.wait_for_selector(READY)
    shown = [page.get_attribute("#agent", "src") for page in (first, second)]
    assert shown[0] != shown[1]
    first.click("#do-it")
    second.click("#do-it")
    for page in (first, second):
        page.wait_for_selector(DONE)
        page.evaluate("scrub.value = 0; scrub.dispatchEvent(new Event('input'))")
    assert [page.get_attribute("#agent", "src") for page in (first, second)] == shown


def test_what_cannot_be_is_said_beside_the_controls(visit: Callable[..., Any], url: str) -> None:
    page = visit(url + "#scene=4&place=5&task=drawer&before=0.5&after=0.52")
    page.wait_for_selector("#there-error:not([hidden])")
    assert "must move by at least" in page.inner_text("#there-error")
    assert page.is_disabled("#do-it")
    page.click("#plain")
    page.wait_for_selector(READY)
    assert page.is_hidden("#there-error")


def test_waiting_failing_vanishing_and_no_answer_each_have_a_face(
    visit: Callable[..., Any], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gcb.explorer.loader.RETRY_SECONDS", 0.05)
    folder = tmp_path / "run"
    shutil.copytree(run, folder)
    (folder / "checkpoint.json").rename(tmp_path / "checkpoint.json")
    explorer = RunLoader(folder)
    with serving(explorer) as url:
        page = visit(url + HERE)
        page.wait_for_selector("text=No checkpoint yet")
        (folder / "checkpoint.json").write_text("{}")
        page.wait_for_selector("text=This run cannot be shown")
        (tmp_path / "checkpoint.json").rename(folder / "checkpoint.json")
        page.wait_for_selector(READY)
        loaded(explorer)
        shutil.rmtree(folder)
        page.wait_for_selector("text=is gone")
        wait_for(lambda: page.is_enabled("#do-it"))
    page.wait_for_selector("text=The server does not answer")


def test_a_run_of_another_world_says_why_nothing_moves(visit: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    folder = with_record(run, tmp_path / "run", lambda data: data["config"].update(env="Pendulum-v1"))
    explorer = RunLoader(folder)
    with serving(explorer) as url:
        page = visit(url)
        page.wait_for_selector("text=Nothing to act out")
        loaded(explorer)
        page.wait_for_timeout(1000)  # long enough for the page to ask again
        assert "its world is 'Pendulum-v1'" in page.inner_text("#curtain-text")
        assert page.is_hidden("#stage")


def test_an_agent_that_takes_no_examples_is_told_by_goal(
    visit: Callable[..., Any], trained: Callable[[str], Path]
) -> None:
    explorer = RunLoader(trained("gcbc"))
    with serving(explorer) as url:
        page = visit(url + "#scene=4")
        page.wait_for_selector(READY)
        assert "cannot be told what to do by an example" in page.inner_text("#notice")
        assert page.is_checked("input[name=by][value=goal]")
        assert page.is_disabled("input[name=by][value=example]")
