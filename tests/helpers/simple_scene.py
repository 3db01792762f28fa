"""A scene in which every position can be worked out by hand."""

from typing import Any

from gcb.envs.scene import Scene

GREY = (0.5, 0.5, 0.5)


def simple_scene(**changes: Any) -> Scene:
    """Return a scene with only a cabinet, at (0.68, 0.12), whose drawers open towards -y."""
    fields: dict[str, Any] = dict(
        task="drawer",
        cabinet_xy=(0.68, 0.12),
        cabinet_yaw=0.0,
        opening=0.05,
        target=0.15,
        bottom_open=False,
        colors=dict.fromkeys(("frame", "drawer", "bottom", "handle", "button"), GREY),
        distractors=(),
    )
    return Scene(**{**fields, **changes})
