"""A small run in a real environment, the explorer's server in this process, and a browser."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from helpers.browser import browser  # noqa: F401 (a fixture)
from helpers.tiny import tiny_config

from gcb.data import CollectConfig, collect
from gcb.training.trainer import train

if TYPE_CHECKING:  # the fixtures import what needs PyBullet: without it they are skipped, which this file cannot be
    from gcb.explorer.loader import RunLoader
    from gcb.explorer.scene_renderer import SceneRenderer

ENV = "gcb/ButtonDrawer-v0"


@pytest.fixture(scope="session", autouse=True)
def _small_images() -> Iterator[None]:
    """Render images for people as small as the agent's: TinyRenderer would otherwise take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gcb.explorer.scene_renderer.DISPLAY_SIZE", 64)
        patch.setattr("gcb.explorer.episode.EPISODE_SIZE", 64)
        yield


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("explorer") / "data"
    collect(CollectConfig(ENV, 240, options={"image_size": 64, "video": None}), path, workers=1)
    return path


@pytest.fixture(scope="session")
def trained(data: Path) -> Callable[[str], Path]:
    """Train a method for a few steps."""

    def make(method: str) -> Path:
        path = data.parent / method
        if not path.exists():
            train(tiny_config(method, steps=3, checkpoint_every=3, log_every=3), data, path, quiet=True)
        return path

    return make


@pytest.fixture(scope="session")
def run(trained: Callable[[str], Path]) -> Path:
    return trained("gcb")


@pytest.fixture(scope="session")
def renderer() -> Iterator["SceneRenderer"]:
    from gcb.explorer.scene_renderer import SceneRenderer

    renderer = SceneRenderer(ENV, {"image_size": 64})
    yield renderer
    renderer.close()


@pytest.fixture(scope="session")
def loader(run: Path) -> "RunLoader":
    from gcb.explorer.loader import RunLoader

    return RunLoader([run])


@pytest.fixture(scope="session")
def url(loader: "RunLoader") -> Iterator[str]:
    """The URL of a server whose run and map are loaded."""
    from helpers.explorer_server import serving, wait_until_loaded

    with serving(loader) as address:
        wait_until_loaded(loader)
        yield address


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:  # noqa: F811 (that fixture)
    """Open a page as a new visitor. An uncaught error, or a request to another site, fails the test."""
    from helpers.explorer_browser import TIMEOUT_MS, foreign

    contexts, problems = [], []

    def open_page(url: str, **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda request: problems.append(request.url) if foreign(request.url, url) else None)
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not problems
