"""Fixtures for both environments, created once per file; every test loads or resets its own scene."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from gcb.envs import ENVS, make_env

if TYPE_CHECKING:  # this file is read where PyBullet is missing, too
    from gcb.envs.tabletop import TabletopEnv

SMALL = 16  # pixels, for tests that are not about images


def _env(env_id: str, **options) -> Iterator["TabletopEnv"]:
    env = make_env(env_id, image_size=SMALL, **options)
    yield env
    env.close()


@pytest.fixture(scope="module")
def drawer() -> Iterator["TabletopEnv"]:
    yield from _env("gcb/Drawer-v0")


@pytest.fixture(scope="module")
def button_drawer() -> Iterator["TabletopEnv"]:
    yield from _env("gcb/ButtonDrawer-v0")


@pytest.fixture(scope="module", params=list(ENVS))
def env(request: pytest.FixtureRequest) -> Iterator["TabletopEnv"]:
    """Each of the two environments in turn."""
    yield from _env(request.param)
