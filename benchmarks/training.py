"""Training, acting and evaluating against the bare encoder passes and environment steps that they need."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.rows import Row, cpu_medians
from gcb.agent.agent import Agent
from gcb.agent.build import build
from gcb.data import Batch, Dataset
from gcb.envs.spec import EnvSpec
from gcb.evaluation.evaluate import evaluate
from gcb.methods import Shapes
from gcb.models.networks import ImageEncoder
from gcb.runs.config import make_config
from gcb.training.trainer import Trainer

EPISODES, LENGTH = 40, 50
ROUNDS = {"laptop": 9, "paper": 4}
ACTS = 60
EVALUATED = 20


def run() -> list[Row]:
    data, peak = random_images(), _matmul_peak()
    rows = [row for preset in ROUNDS for row in _steps(preset, data, peak)]
    return [*rows, *_acting(), _evaluating()]


def _steps(preset: str, data: Dataset, peak: float) -> list[Row]:
    """Compare a whole training step, with sampling and augmentation, with the encoder passes alone.

    The limit applies to the six passes over whole batches that suffice for Algorithm 1; the step is also compared with
    the passes that it actually makes, which may be over fewer images.
    """
    config = make_config("gcb", preset, {"device": "cpu"})
    trainer = Trainer(config, data, torch.device("cpu"))
    batch, method = trainer.next_batch(), trainer.learner.method
    own_passes = _record_passes(method, lambda: trainer.learner.step(batch, 0))
    six_passes = _six_passes(method, batch)
    step, gradient_step, six, own = cpu_medians(
        lambda: trainer.learner.step(trainer.next_batch(), 0),
        lambda: trainer.learner.step(batch, 0),
        lambda: _replay(six_passes),
        lambda: _replay(own_passes),
        rounds=ROUNDS[preset],
    )
    rate, share = 1 / step, 2 * _multiply_adds(own_passes) / step / peak
    speed = f"{rate:.3g} steps/s, {rate * config.batch_size:,.0f} samples/s on one core"
    count = sum(len(images[0]) for _, images, _ in own_passes)
    calls = f"{len(own_passes)} encoder calls of {count} images"
    return [
        Row(f"{preset}: training step / six bare passes", step / six, 1.2, speed),
        Row(f"{preset}: training step / the passes it makes", step / own, None, f"{calls}; bare {1e3 * own:.0f} ms"),
        Row(
            f"{preset}: sampling and augmentation / training step",
            1 - gradient_step / step,
            None,
            f"of {1e3 * step:.0f} ms",
        ),
        Row(f"{preset}: share of the matmul peak", share, None, f"peak {peak / 1e9:.0f} GFLOP/s on one core"),
    ]


Pass = tuple[ImageEncoder, tuple[Tensor, ...], bool]
"""An encoder, its images, and whether the pass has a gradient."""


def _six_passes(method: Any, batch: Batch[Tensor]) -> list[Pass]:
    """Return the passes that suffice if no RL gradient enters ψ.

    ψ on s and g with a gradient and on s' without; φ on (s, g) with a gradient and on (s', g) and (g, g) without.
    """
    phi, psi = method._phi, method._psi
    state, next_state, goal = batch.state, batch.next_state, batch.goal
    return [
        (psi, (state,), True),
        (psi, (goal,), True),
        (psi, (next_state,), False),
        (phi, (state, goal), True),
        (phi, (next_state, goal), False),
        (phi, (goal, goal), False),
    ]


def _record_passes(method: nn.Module, step: Callable[[], object]) -> list[Pass]:
    """Return the encoder passes that a step makes."""
    passes: list[Pass] = []

    def record(encoder: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        assert isinstance(encoder, ImageEncoder)
        passes.append((encoder, inputs, output.requires_grad))

    encoders = [module for module in method.modules() if isinstance(module, ImageEncoder)]
    hooks = [encoder.register_forward_hook(record) for encoder in encoders]
    step()
    for hook in hooks:
        hook.remove()
    return passes


def _replay(passes: list[Pass]) -> None:
    """Run the passes and nothing else."""
    for encoder, images, with_gradient in passes:
        with torch.set_grad_enabled(with_gradient):
            output = encoder(*images)
        if with_gradient:
            encoder.zero_grad(set_to_none=True)
            output.sum().backward()


def _multiply_adds(passes: list[Pass]) -> float:
    """Return the multiply-adds of the passes; a pass with a gradient counts three times."""
    total = 0.0
    for encoder, images, with_gradient in passes:
        each = encoder.linear.in_features * encoder.linear.out_features
        height, width = images[0].shape[1:3]
        for layer in encoder.convolutions:
            assert isinstance(layer, nn.Conv2d)
            height, width = ((side - layer.kernel_size[0]) // layer.stride[0] + 1 for side in (height, width))
            each += height * width * layer.weight.numel()
        total += len(images[0]) * each * (3 if with_gradient else 1)
    return total


def _acting() -> list[Row]:
    """Compare acting on one observation through the agent with the networks alone."""
    rows = []
    image, goal = random_images(episodes=1).frames[:2]
    state, goals = torch.from_numpy(image[None].copy()), torch.from_numpy(goal[None].copy())
    for preset in ROUNDS:
        agent = _agent(preset)
        policy = agent.start_task(image, goal=goal)
        task = agent.method.goal_features(state, state, goals)

        def bare(agent: Agent = agent, task: Tensor = task) -> None:
            method = agent.method
            with torch.inference_mode():
                features = method.goal_features(state, state, goals) if method.task_depends_on_state else task
                agent.iql.actor(torch.cat([method.state_features(state), features], -1))

        acting, forward = cpu_medians(lambda policy=policy: policy.act(image), bare, rounds=ACTS)
        text = f"{1e3 * acting:.2f} ms for an action, {1e3 * forward:.2f} ms for the networks alone"
        rows.append(Row(f"{preset}: acting / bare forward pass", acting / forward, 2.0, text))
    return rows


def _evaluating() -> Row:
    """Compare whole episodes, with goal rollouts and the policy's passes, with the environments' own time."""
    agent = _agent("laptop")
    start = time.perf_counter()
    result = evaluate(agent, EnvSpec("gcb/ButtonDrawer-v0"), "strict", episodes=EVALUATED, batch=10, quiet=True)
    seconds = time.perf_counter() - start
    text = f"{EVALUATED} episodes in {seconds:.0f} s, {100 * seconds / EVALUATED:.0f} s for 100, one process"
    return Row("evaluation / its env steps", seconds / result.env_seconds, 2.0, text)


def _agent(preset: str) -> Agent:
    shapes = Shapes((64, 64, 3), 5)
    method, iql = build(make_config("gcb", preset), shapes)
    method.eval()
    return Agent(method.requires_grad_(False), iql.requires_grad_(False), shapes, torch.device("cpu"))


def _matmul_peak() -> float:
    """Return the floating-point operations per second of a large square matrix product, the processor's best case."""
    side = 1024
    left, right = torch.randn(side, side), torch.randn(side, side)
    (seconds,) = cpu_medians(lambda: left @ right, rounds=20)
    return 2 * side**3 / seconds


def random_images(episodes: int = EPISODES) -> Dataset:
    """Return a dataset of random images: what they show does not affect the time."""
    rng = np.random.default_rng(0)
    first = np.arange(episodes) * (LENGTH + 2)
    return Dataset.from_arrays(
        rng.integers(256, size=(episodes * (LENGTH + 2), 64, 64, 3), dtype=np.uint8),
        rng.uniform(-1, 1, (episodes * LENGTH, 5)).astype(np.float32),
        np.full(episodes, LENGTH),
        rewards=np.zeros(episodes * LENGTH, np.float32),
        episode_first_frame=first,
        episode_goal_frame=first + LENGTH + 1,
    )
