"""The two manipulation worlds. Importing this package registers them with gymnasium."""

from typing import Any

import gymnasium as gym

from gcb.worlds.layout import BUTTON_DRAWER, DRAWER
from gcb.worlds.tabletop import Example, TabletopEnv

WORLDS = {"gcb/Drawer-v0": DRAWER, "gcb/ButtonDrawer-v0": BUTTON_DRAWER}


def make_drawer(**options: Any) -> TabletopEnv:
    """One drawer, to be opened or closed to a given opening."""
    return TabletopEnv(DRAWER, **options)


def make_button_drawer(**options: Any) -> TabletopEnv:
    """Two stacked drawers and a button: set the top drawer, or press the button that moves the bottom one."""
    return TabletopEnv(BUTTON_DRAWER, **options)


gym.register("gcb/Drawer-v0", entry_point="gcb.worlds:make_drawer")
gym.register("gcb/ButtonDrawer-v0", entry_point="gcb.worlds:make_button_drawer")

__all__ = ["WORLDS", "Example", "TabletopEnv", "make_button_drawer", "make_drawer"]
