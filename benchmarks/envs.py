"""The environments against the bare simulator: overhead over physics and rendering, and memory growth."""

from pathlib import Path

import numpy as np

from benchmarks.rows import Row, cpu_seconds
from gcb.data import CollectConfig
from gcb.data.rollout import ExpertRunner
from gcb.envs import ENVS, make_env
from gcb.envs.bullet import pybullet
from gcb.envs.expert import Expert
from gcb.envs.layout import SUBSTEPS
from gcb.envs.scene import sample_scene
from gcb.envs.tabletop import TabletopEnv

SCENES = 12
STEPS = 20
RESETS = 2_000
WARM_UP = 300  # until every shape and background has been read once
COLLECTED = 25


def run() -> list[Row]:
    rows = []
    for env_id in ENVS:
        for video in (None, "builtin"):
            rows += _stepping(env_id, video)
        rows.append(_growth(env_id))
        rows.append(_collecting(env_id))
    return rows


def _stepping(env_id: str, video: str | None) -> list[Row]:
    """Alternate steps of the environment and of the bare simulator, over several scenes."""
    env = make_env(env_id, video=video)
    name = f"{env.layout.name}{' + video' if video else ''}"
    step, bare, reset = 0.0, 0.0, 0.0
    for seed in range(SCENES):
        env.reset(seed=seed)
        expert, rng = Expert(env), np.random.default_rng(seed)
        for _ in range(STEPS):
            action = expert.action() + 0.3 * rng.standard_normal(5)
            step += cpu_seconds(lambda action=action: env.step(action))
            bare += cpu_seconds(lambda: _bare_step(env))
        reset += cpu_seconds(lambda: (env.load_scene(env.scene), env.image(64)))
    env.close()
    step, bare, reset = step / (SCENES * STEPS), bare / (SCENES * STEPS), reset / SCENES
    rates = f"{1 / step:,.0f} steps/s per core, {1 / bare:,.0f} bare"
    reset_time = f"{1e3 * reset:.1f} ms to rebuild a scene and render its image"
    return [
        Row(f"{name}: step rate / bare simulator", bare / step, 0.6, rates, at_least=True),
        Row(f"{name}: reset without goal / step", reset / step, 20.0, reset_time),
    ]


def _bare_step(env: TabletopEnv) -> None:
    """Run the same substeps and render one image, and nothing else."""
    client = env._client
    for _ in range(SUBSTEPS):
        client.stepSimulation()
    flags = 0 if env._bank else pybullet.ER_NO_SEGMENTATION_MASK
    client.getCameraImage(64, 64, env._view, env._projection, shadow=0, renderer=pybullet.ER_TINY_RENDERER, flags=flags)


def _growth(env_id: str) -> Row:
    """Measure the growth of memory over many scenes."""
    env, rng = make_env(env_id), np.random.default_rng(0)

    def build(count: int) -> None:
        for _ in range(count):
            env.load_scene(sample_scene(env.layout, rng))
            env.image(64)

    build(WARM_UP)
    before = _resident_megabytes()
    build(RESETS)
    grown = _resident_megabytes() - before
    env.close()
    return Row(f"{env.layout.name}: memory growth, MB", grown, 20.0, f"over {RESETS:,} resets without goal images")


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def _collecting(env_id: str) -> Row:
    """Measure the collection of episodes, including the rollout for the goal image."""
    runner = ExpertRunner(CollectConfig(env_id))
    transitions = 0

    def play() -> None:
        nonlocal transitions
        transitions += sum(runner.run(index).length for index in range(COLLECTED))

    seconds = cpu_seconds(play)
    runner.close()
    rate = transitions / seconds
    text = f"per core, including rollouts for goals; 50,000 in {50_000 / rate / 2 / 60:.1f} minutes on two cores"
    return Row(f"{ENVS[env_id].name}: transitions/s collected", rate, None, text)
