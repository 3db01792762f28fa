"""A small run in a real world, the explorer's server in this process, and Debian's browser."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.explorer_server import loaded, serving
from helpers.tiny import tiny_config

from gcb.data import CollectConfig, collect
from gcb.explorer.loader import RunLoader
from gcb.explorer.scene_renderer import SceneRenderer
from gcb.training.trainer import train

WORLD = "gcb/ButtonDrawer-v0"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUIET_BROWSER = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-gpu-watchdog",  # on a busy machine it takes slow for dead, and ends the browser
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]


@pytest.fixture(scope="session", autouse=True)
def _small_pictures() -> Iterator[None]:
    """Pictures for people as small as the agent's: TinyRenderer would otherwise take most of these tests' time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gcb.explorer.scene_renderer.DISPLAY_SIZE", 64)
        patch.setattr("gcb.explorer.episode.EPISODE_SIZE", 64)
        yield


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explorer") / "data"
    collect(CollectConfig(WORLD, 240, options={"image_size": 64, "video": None}), folder, workers=1)
    return folder


@pytest.fixture(scope="session")
def trained(data: Path) -> Callable[[str], Path]:
    """A run of a few steps of any method; it has learned next to nothing."""

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
def studio() -> Iterator[SceneRenderer]:
    made = SceneRenderer(WORLD, {"image_size": 64})
    yield made
    made.close()


@pytest.fixture(scope="session")
def explorer(run: Path) -> RunLoader:
    return RunLoader(run)


@pytest.fixture(scope="session")
def url(explorer: RunLoader) -> Iterator[str]:
    """A server on which everything is ready."""
    with serving(explorer) as found:
        loaded(explorer)
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's Chromium, which `make test` installs where it can. While it is open, no other event loop may run."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(BROWSERS)} is installed (apt-get install chromium)")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=program, args=QUIET_BROWSER)
        yield opened
        opened.close()
