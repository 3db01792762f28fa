"""Training, acting and evaluating against the bare network passes and environment steps that they need."""

import time
from collections.abc import Callable
from dataclasses import dataclass
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
from gcb.models.iql import Transition
from gcb.models.networks import Encoder, ImageTrunk, PairHead, StateHead
from gcb.runs.config import make_config
from gcb.training.learner import Learner
from gcb.training.trainer import Trainer

EPISODES, LENGTH = 40, 50
ROUNDS = {"laptop": 15, "paper": 4}
ACTS = 60
EVALUATED = 20


def run() -> list[Row]:
    data = random_images()
    return [*_laptop(data), _paper(data), *_acting(), _evaluating()]


def _laptop(data: Dataset) -> list[Row]:
    """Compare GCB's whole step with the passes that it makes, and with the step of plain cloning.

    The passes are those of the encoders and of the policies' networks, forwards and backwards.
    """
    trainer, cloning = (_trainer(method, "laptop", data) for method in ("gcb", "gcbc"))
    learner, batch = trainer.learner, trainer.next_batch()
    passes = _record_passes(learner.method, lambda: learner.step(batch, 0))
    heads = _iql_pass(learner, batch)
    step, cloned, bare, sampling, iql, optimizer = cpu_medians(
        lambda: learner.step(trainer.next_batch(), 0),
        lambda: cloning.learner.step(cloning.next_batch(), 0),
        lambda: _replay(passes),
        trainer.next_batch,
        heads,
        lambda: _update(learner),
        rounds=ROUNDS["laptop"],
    )
    parts = {"sampling": sampling, "encoders": bare, "IQL": iql, "optimizer": optimizer}
    shares = ", ".join(f"{name} {seconds / step:.0%}" for name, seconds in parts.items())
    return [
        Row("laptop: training step / its bare passes", step / (bare + iql), 1.2, f"{step / bare:.2f} of the encoders'"),
        Row("laptop: training step / plain cloning's", step / cloned, 2.0, _speed(step, trainer)),
        Row("laptop: rest of the step", 1 - sum(parts.values()) / step, None, f"{shares} of {1e3 * step:.0f} ms"),
    ]


def _paper(data: Dataset) -> Row:
    """Compare GCB's whole step with the six passes over whole batches that suffice for Algorithm 1."""
    trainer = _trainer("gcb", "paper", data)
    learner, batch = trainer.learner, trainer.next_batch()
    passes = _six_passes(learner.method, batch)
    step, six = cpu_medians(
        lambda: learner.step(trainer.next_batch(), 0), lambda: _replay(passes), rounds=ROUNDS["paper"]
    )
    return Row("paper: training step / six bare passes", step / six, 1.2, _speed(step, trainer))


def _trainer(method: str, preset: str, data: Dataset) -> Trainer:
    return Trainer(make_config(method, preset, {"device": "cpu"}), data, torch.device("cpu"))


def _speed(step: float, trainer: Trainer) -> str:
    return f"{1 / step:.3g} steps/s, {trainer.config.batch_size / step:,.0f} states/s on one core"


@dataclass
class Pass:
    """A call of an encoder or of a part of one."""

    network: nn.Module
    inputs: tuple[Tensor, ...]
    with_gradient: bool
    """Whether it has a backward pass, which also enters the inputs that require it."""

    def __post_init__(self) -> None:
        wanted = [part.requires_grad and self.with_gradient for part in self.inputs]
        self.inputs = tuple(part.detach().requires_grad_(flag) for part, flag in zip(self.inputs, wanted, strict=True))


def _six_passes(method: Any, batch: Batch[Tensor]) -> list[Pass]:
    """Return the passes that suffice if no RL gradient enters ψ.

    ψ on s and g with a gradient and on s' without; φ on (s, g) with a gradient and on (s', g) and (g, g) without.
    """
    phi, psi = method._phi, method._psi
    assert isinstance(phi, Encoder)
    assert isinstance(psi, Encoder)
    state, next_state, goal = batch.state, batch.next_state, batch.goal
    return [
        Pass(psi, (state,), True),
        Pass(psi, (goal,), True),
        Pass(psi, (next_state,), False),
        Pass(phi, (state, goal), True),
        Pass(phi, (next_state, goal), False),
        Pass(phi, (goal, goal), False),
    ]


def _record_passes(method: nn.Module, step: Callable[[], object]) -> list[Pass]:
    """Return the passes through encoders, trunks and heads that a step makes; those inside another are left out."""
    passes: list[Pass] = []

    def record(network: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        passes.append(Pass(network, inputs, output.requires_grad))

    networks = [part for part in method.modules() if isinstance(part, Encoder | ImageTrunk | PairHead | StateHead)]
    inner = {id(part) for network in networks for part in network.modules() if part is not network}
    hooks = [network.register_forward_hook(record) for network in networks if id(network) not in inner]
    step()
    for hook in hooks:
        hook.remove()
    return passes


def _replay(passes: list[Pass]) -> None:
    """Run the passes and nothing else."""
    for each in passes:
        with torch.set_grad_enabled(each.with_gradient):
            output = each.network(*each.inputs)
        if each.with_gradient:
            each.network.zero_grad(set_to_none=True)
            for part in each.inputs:
                part.grad = None
            output.sum().backward()


def _iql_pass(learner: Learner, batch: Batch[Tensor]) -> Callable[[], None]:
    """Return a function that runs IQL's losses and their backward pass as in a step, and nothing else."""
    output, iql = learner.method.compute_loss(batch), learner.iql

    def leaves(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        return {name: part.detach().requires_grad_(part.requires_grad) for name, part in inputs.items()}

    transition = Transition(
        *(leaves(inputs) for inputs in (output.actor_inputs, output.critic_inputs, output.next_inputs)),
        action=batch.action,
        final=batch.final,
        reward=batch.reward,
        terminal=batch.terminal,
    )

    def call() -> None:
        iql.zero_grad(set_to_none=True)
        torch.stack(list(iql.losses(transition)[0].values())).sum().backward()

    return call


def _update(learner: Learner) -> None:
    """Update weights and target networks."""
    for parameter in learner.modules.parameters():
        if parameter.requires_grad and parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    learner.optimizer.step()
    learner.method.after_step()
    learner.iql.after_step()


def _acting() -> list[Row]:
    """Compare a step of a task through the agent with the networks alone."""
    rows = []
    image, goal = random_images(episodes=1).frames[:2]
    state, goals = torch.from_numpy(image[None].copy()), torch.from_numpy(goal[None].copy())
    for preset in ROUNDS:
        agent = _agent(preset)
        task, policy = agent.start_task(image, goal=goal), agent.iql.policy("goal")
        prepared = agent.method.prepare_goal(state, goals)

        def bare(agent: Agent = agent, policy: Any = policy, prepared: tuple[Tensor, ...] = prepared) -> None:
            with torch.inference_mode():
                inputs = agent.method.goal_inputs(state, *prepared)
                policy.actor(inputs)
                policy.done(inputs)

        acting, forward = cpu_medians(lambda task=task: task.step(image), bare, rounds=ACTS)
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
