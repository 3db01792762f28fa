"""The two worlds, built once per file; every test places or resets its own scene."""

from collections.abc import Iterator

import pytest

from gcb.envs import ENVS, TabletopEnv, make_env

SMALL = 16  # pixels: what is not about pictures need not draw large ones


def _world(env_id: str, **options) -> Iterator[TabletopEnv]:
    env = make_env(env_id, image_size=SMALL, **options)
    yield env
    env.close()


@pytest.fixture(scope="module")
def drawer() -> Iterator[TabletopEnv]:
    yield from _world("gcb/Drawer-v0")


@pytest.fixture(scope="module")
def button_drawer() -> Iterator[TabletopEnv]:
    yield from _world("gcb/ButtonDrawer-v0")


@pytest.fixture(scope="module", params=list(ENVS))
def env(request: pytest.FixtureRequest) -> Iterator[TabletopEnv]:
    """Each of the two worlds in turn."""
    yield from _world(request.param)
