"""Memory and open files must not grow with the number of steps or episodes."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from helpers.faults import run_forked
from helpers.small_runs import train_small

import gcb
from gcb.agent.agent import Agent
from gcb.data.rollout import CollectConfig, ExpertRunner
from gcb.evaluation.evaluate import evaluate

SAMPLES = 10
"""Measurements of a process; the first fifth is warm-up."""
TOLERANCE = 12.0
"""Megabytes that the allocator and caches may still take after the warm-up."""

Measure = Callable[[], None]


@pytest.fixture
def check_growth(tmp_path: Path, record: Callable) -> Callable[[str, int, Callable[[Measure], None]], None]:
    """Run a job that measures its own process on the way; compare later measurements with the one after warm-up."""

    def check_growth(name: str, count: int, job: Callable[[Measure], None]) -> None:
        path, samples = tmp_path / "samples.json", []

        def measured() -> None:
            job(lambda: samples.append(_megabytes_and_files()))
            path.write_text(json.dumps(samples))

        ended = run_forked(measured)
        assert ended.code == 0, ended.output
        (megabytes, files), *later = json.loads(path.read_text())[SAMPLES // 5 - 1 :]
        most, most_files = max(sample[0] for sample in later), max(sample[1] for sample in later)
        memory = f"memory {megabytes:.0f} MB after a fifth, at most {most:.0f} MB later"
        assert most - megabytes <= TOLERANCE, memory
        assert most_files <= files, f"{files} open files, later {most_files}"
        record(
            "memory growth", name, count, f"{memory} (limit: +{TOLERANCE:.0f} MB); open files {files}, no more later"
        )

    return check_growth


def _megabytes_and_files() -> tuple[float, int]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6, len(os.listdir("/proc/self/fd"))


def test_training(check_growth: Callable, data: Path, tmp_path: Path, full: bool) -> None:
    steps = 10_000 if full else 200

    def job(measure: Measure) -> None:
        def on_checkpoint(agent: Agent, step: int) -> Mapping[str, float]:
            measure()
            return {}

        interval = steps // SAMPLES
        train_small(
            tmp_path / "run", data, on_checkpoint, steps=steps, checkpoint_every=interval, log_every=interval
        )  # fmt: skip

    check_growth("training steps", steps, job)


def test_simulation(check_growth: Callable, full: bool) -> None:
    pytest.importorskip("pybullet")
    episodes = 1000 if full else 10

    def job(measure: Measure) -> None:
        runner = ExpertRunner(CollectConfig("gcb/ButtonDrawer-v0", options={"image_size": 16}))
        for episode in range(episodes):
            runner.run(episode)
            if (episode + 1) % (episodes // SAMPLES) == 0:
                measure()

    check_growth("episodes of the expert in PyBullet", episodes, job)


def test_evaluation(check_growth: Callable, data: Path, tmp_path: Path, full: bool) -> None:
    episodes, run = 1000 if full else 10, train_small(tmp_path / "run", data, steps=1)

    def job(measure: Measure) -> None:
        agent = gcb.load(run)
        for seed in range(SAMPLES):
            evaluate(agent, episodes=episodes // SAMPLES, batch=10, seed=seed, quiet=True)
            measure()

    check_growth("episodes of an evaluation", episodes, job)
