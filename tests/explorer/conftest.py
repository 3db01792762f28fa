"""A small run in a real environment, the explorer's server in this process, and a browser."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.explorer_server import serving, wait_until_loaded
from helpers.tiny import tiny_config

from gcb.data import CollectConfig, collect
from gcb.explorer.loader import RunLoader
from gcb.explorer.scene_renderer import SceneRenderer
from gcb.training.trainer import train

ENV = "gcb/ButtonDrawer-v0"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET_BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-gpu-watchdog",  # on a busy machine it would kill a slow browser
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]


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
def renderer() -> Iterator[SceneRenderer]:
    renderer = SceneRenderer(ENV, {"image_size": 64})
    yield renderer
    renderer.close()


@pytest.fixture(scope="session")
def loader(run: Path) -> RunLoader:
    return RunLoader(run)


@pytest.fixture(scope="session")
def url(loader: RunLoader) -> Iterator[str]:
    """The URL of a server whose run and map are loaded."""
    with serving(loader) as address:
        wait_until_loaded(loader)
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, which `make test` installs if it can. No other event loop may run while it is open."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=QUIET_BROWSER)
        yield browser
        browser.close()
