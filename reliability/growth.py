"""Long runs: memory and open files must not grow with the number of steps or episodes."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gcb
from gcb.agent.agent import Agent
from gcb.data.rollout import CollectConfig, ExpertRunner
from gcb.evaluation.evaluate import evaluate
from gcb.training.trainer import train
from reliability import stage
from reliability.attempts import attempt
from reliability.rows import Row, row

LOOKS = 10
"""Times that a process is looked at; the first fifth is to warm up."""
MEGABYTES = 12.0
"""Growth that counts as none: what the allocator and caches still take after the warm-up."""
STEPS, EPISODES = {False: 10_000, True: 200}, {False: 1000, True: 10}
PAGE = os.sysconf("SC_PAGE_SIZE")

Look = Callable[[], None]


def run(folder: Path, quick: bool) -> Iterator[Row]:
    """Training, episodes of the real world, and evaluation, each in a process of its own."""
    data = stage.slide_data(folder / "data" / "slide")
    steps, episodes = STEPS[quick], EPISODES[quick]

    def training(look: Look) -> None:
        def at_checkpoint(agent: Agent, step: int) -> dict[str, float]:
            look()
            return {}

        every = steps // LOOKS
        config = stage.small_config(steps=steps, checkpoint_every=every, log_every=every)
        train(config, data, folder / "run", quiet=True, on_checkpoint=at_checkpoint)

    def playing(look: Look) -> None:
        runner = ExpertRunner(CollectConfig("gcb/ButtonDrawer-v0", options={"image_size": 16}))
        for number in range(episodes):
            runner.run(number)
            if (number + 1) % (episodes // LOOKS) == 0:
                look()

    def evaluating(look: Look) -> None:
        agent = gcb.load(folder / "run")
        for number in range(LOOKS):
            evaluate(agent, episodes=episodes // LOOKS, batch=10, seed=number, quiet=True)
            look()

    yield _watched("training steps", steps, training, folder)
    yield _watched("episodes of the expert in PyBullet", episodes, playing, folder)
    yield _watched("episodes of an evaluation", episodes, evaluating, folder)


def _watched(name: str, count: int, job: Callable[[Look], Any], folder: Path) -> Row:
    """Do a job that looks at its own process on the way; compare the later looks with the first after warming up."""
    path, looks = folder / "looks.json", []

    def watched() -> None:
        job(lambda: looks.append(_size_of_process()))
        path.write_text(json.dumps(looks))

    ended = attempt(watched)
    if ended.code:
        return row("growth", name, count, "", [f"code {ended.code}: {ended.said[-300:]}"])
    found = json.loads(path.read_text())[LOOKS // 5 - 1 :]
    (before, files), most, open_files = found[0], max(one[0] for one in found), max(one[1] for one in found)
    said = f"memory {before:.0f} MB after a fifth, at most {most:.0f} MB later; open files {files}, later {open_files}"
    wrong = [said] if most - before > MEGABYTES or open_files > files else []
    return row("growth", name, count, f"{said} (a growth above {MEGABYTES:.0f} MB, or of files, would be wrong)", wrong)


def _size_of_process() -> tuple[float, int]:
    """Memory in megabytes, and open files."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * PAGE / 1e6, len(os.listdir("/proc/self/fd"))
