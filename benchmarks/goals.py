"""Properties of the sampled goals that docs/fidelity.md quotes."""

import numpy as np

from benchmarks.rows import Row
from gcb.envs import ENVS, make_env
from gcb.envs.layout import GRIPPER, TRAVEL
from gcb.envs.scene import sample_opening

SAMPLES = 100_000
EPISODES = 200
PRESSES = 60


def run() -> list[Row]:
    return [_other_extreme(), *(_solved_at_the_start(env_id) for env_id in ENVS), _distance_from_button()]


def _other_extreme() -> Row:
    """Measure how often the target is the opposite end because the first sample would be solved at the start."""
    rng = np.random.default_rng(0)
    extreme = sum(sample_opening(rng)[1] in (0.0, TRAVEL) for _ in range(SAMPLES))
    return Row("drawer targets at the other extreme", extreme / SAMPLES, None, f"of {SAMPLES:,} samples")


def _solved_at_the_start(env_id: str) -> Row:
    """Measure how often the first frame already counts as success."""
    env = make_env(env_id, image_size=8, task="drawer")
    solved = sum(env.reset(seed=seed)[1]["success"] for seed in range(EPISODES))
    env.close()
    name = f"{ENVS[env_id].name}: drawer episodes solved at the start"
    return Row(name, solved / EPISODES, None, f"{solved} of {EPISODES} episodes")


def _distance_from_button() -> Row:
    """Measure how far the finger is from the middle of the cap (radius 30 mm) in goal images of the button task."""
    env = make_env("gcb/ButtonDrawer-v0", image_size=8, task="button")
    distances = []
    for seed in range(PRESSES):
        _, info = env.reset(seed=seed)
        distances.append(1e3 * np.linalg.norm(info["goal_state"][GRIPPER][:2] - env.scene.cabinet_xy))
    env.close()
    text = f"median of {PRESSES} goal images, at most {max(distances):.0f}"
    return Row("ButtonDrawer: finger from the button's middle, mm", float(np.median(distances)), None, text)
