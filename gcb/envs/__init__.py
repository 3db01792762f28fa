"""The two manipulation worlds. Importing this package registers them with gymnasium."""

from typing import Any

import gymnasium as gym

from gcb.envs.layout import BUTTON_DRAWER, DRAWER
from gcb.envs.tabletop import Example, TabletopEnv
from gcb.errors import GCBError

ENVS = {"gcb/Drawer-v0": DRAWER, "gcb/ButtonDrawer-v0": BUTTON_DRAWER}


def make_drawer(**options: Any) -> TabletopEnv:
    """One drawer, to be opened or closed to a given opening."""
    return TabletopEnv(DRAWER, **options)


def make_button_drawer(**options: Any) -> TabletopEnv:
    """Two stacked drawers and a button: set the top drawer, or press the button that moves the bottom one."""
    return TabletopEnv(BUTTON_DRAWER, **options)


gym.register("gcb/Drawer-v0", entry_point="gcb.envs:make_drawer")
gym.register("gcb/ButtonDrawer-v0", entry_point="gcb.envs:make_button_drawer")


def make_env(env_id: str, **options: Any) -> TabletopEnv:
    """The world itself, without gymnasium's wrappers, or an error that names the id or the option it does not have."""
    if env_id not in ENVS:
        raise GCBError(f"there is no world {env_id!r}; gcb has {', '.join(ENVS)}")
    try:
        # The checker would cost time at every step; the tests run it.
        env = gym.make(env_id, disable_env_checker=True, **options).unwrapped
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise GCBError(f"{env_id} was given options {options}, but {error}") from error
    assert isinstance(env, TabletopEnv)
    return env


__all__ = ["ENVS", "Example", "TabletopEnv", "make_button_drawer", "make_drawer", "make_env"]
