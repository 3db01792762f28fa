"""The two manipulation environments. Importing this package, or gcb, registers them with Gymnasium.

It does not import PyBullet: adapters, environment ids and constants work on Python versions without it.
"""

from typing import TYPE_CHECKING, Any

import gymnasium as gym

from gcb.envs.layout import BUTTON_DRAWER, DRAWER, Layout
from gcb.errors import GCBError, lookup

if TYPE_CHECKING:
    from gcb.envs.tabletop import TabletopEnv

ENVS = {"gcb/Drawer-v0": DRAWER, "gcb/ButtonDrawer-v0": BUTTON_DRAWER}


def make_tabletop(layout: Layout | str, **options: Any) -> "TabletopEnv":
    """Create the environment with this layout, or with that of an id: the entry point of every id in `ENVS`."""
    from gcb.envs.tabletop import TabletopEnv

    return TabletopEnv(layout if isinstance(layout, Layout) else lookup(ENVS, layout, "layout"), **options)


for _env_id in ENVS:
    # By name, not as an object, so that the specification can be written as JSON, as Minari does.
    gym.register(_env_id, entry_point="gcb.envs:make_tabletop", kwargs={"layout": _env_id})


def make_env(env_id: str, **options: Any) -> "TabletopEnv":
    """Create one of the environments in `ENVS`, without Gymnasium's wrappers."""
    if env_id not in ENVS:
        raise GCBError(f"there is no environment {env_id!r}; gcb has {', '.join(ENVS)}")
    try:
        # Gymnasium's checker costs time at every step; the tests run it.
        return gym.make(env_id, disable_env_checker=True, **options).unwrapped  # pyright: ignore[reportReturnType]
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise GCBError(f"{env_id} was given options {options}, but {error}") from error


__all__ = ["ENVS", "make_env", "make_tabletop"]
