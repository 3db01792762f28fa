"""What the drawn goals are like: shares that docs/fidelity.md quotes."""

import numpy as np

from benchmarks.rows import Row
from gcb.envs import ENVS, make_env
from gcb.envs.layout import GRIPPER, TRAVEL
from gcb.envs.scene import sample_opening

DRAWS = 100_000
EPISODES = 200
PRESSES = 60


def run() -> list[Row]:
    return [_other_extreme(), *(_solved_at_the_start(env_id) for env_id in ENVS), _beside_the_button()]


def _other_extreme() -> Row:
    """How often the target is the opposite end, because the first one drawn would be no task."""
    rng = np.random.default_rng(0)
    extreme = sum(sample_opening(rng)[1] in (0.0, TRAVEL) for _ in range(DRAWS))
    return Row("drawer targets at the other extreme", extreme / DRAWS, None, f"of {DRAWS:,} draws")


def _solved_at_the_start(env_id: str) -> Row:
    """How often the first frame already counts as success."""
    env = make_env(env_id, image_size=8, task="drawer")
    solved = sum(env.reset(seed=seed)[1]["success"] for seed in range(EPISODES))
    env.close()
    name = f"{ENVS[env_id].name}: drawer episodes solved at the start"
    return Row(name, solved / EPISODES, None, f"{solved} of {EPISODES} episodes")


def _beside_the_button() -> Row:
    """Where the finger stands in goal images of the button task, from the middle of the cap (radius 30 mm)."""
    env = make_env("gcb/ButtonDrawer-v0", image_size=8, task="button")
    beside = []
    for seed in range(PRESSES):
        _, info = env.reset(seed=seed)
        beside.append(1e3 * np.linalg.norm(info["goal_state"][GRIPPER][:2] - env.scene.cabinet_xy))
    env.close()
    text = f"median of {PRESSES} goal images, at most {max(beside):.0f}"
    return Row("ButtonDrawer: finger from the button's middle, mm", float(np.median(beside)), None, text)
