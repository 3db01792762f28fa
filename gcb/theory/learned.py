"""Learned against exact: φ and ψ trained with the agent's own losses on a grid world, and the exact metric."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from gcb.models.config import Norm
from gcb.models.losses import distance, phi_loss, psi_loss
from gcb.models.networks import make_target, mlp, soft_update
from gcb.theory.builders import grid_world
from gcb.theory.check_arithmetic import best_psi
from gcb.theory.gcmdp import GCMDP, Floats, Integers, optimal_policy
from gcb.theory.metric import metric, reward_weight
from gcb.theory.process import TaskProcess, on_policy
from gcb.theory.verdicts import Tally, Verdict

PSI_LEARNING_RATE = 2e-3
WIDTHS = (128, 128, 64)  # of the layers of φ and ψ
MOST_PAIRS = 20_000
PLAN = (".....", ".##..", "...#.", ".#...", ".....")


@dataclass(frozen=True)
class Objective:
    """One way to train φ: the norms of Eq. (phi_loss), the network and the optimizer's settings."""

    name: str
    left_norm: Norm
    right_norm: Norm
    scaled: bool
    """Reward weight (1 - c) as in Proposition 1, or 1 as in Eq. (phi_loss)."""
    layer_norm: bool = False
    """A LayerNorm on φ's output, as the paper's encoder has."""
    tau: float = 1.0
    """Rate at which φ̄ follows φ, per step; 1 is the paper's stop-gradient."""
    action_weight: float = 0.0
    learning_rate: float = 2e-2
    """Learning rate of φ, which decays linearly to 0."""
    learns: bool = False
    """Whether φ is expected to come within 20 % of the metric; this is a measurement, not derived from theory."""


PAPER = Objective("paper: ℓ1 left, ℓ2 right, LayerNorm", "l1", "l2", scaled=False, layer_norm=True)
MIXED = replace(PAPER, name="mixed norms, no LayerNorm", layer_norm=False)
MIXED_EMA = replace(MIXED, name="mixed norms, EMA target", tau=0.01)
ONE_NORM = replace(MIXED, name="one norm", right_norm="l1")
ONE_NORM_EMA = Objective("one norm, EMA target", "mean_l1", "mean_l1", True, tau=0.01, learns=True)
WITH_ACTIONS = replace(ONE_NORM_EMA, name="one norm, EMA target, |π − π′|", action_weight=1.0)
LOW_RATE = replace(WITH_ACTIONS, name="the same at a twentieth of the learning rate", learning_rate=1e-3, learns=False)
OBJECTIVES = (PAPER, MIXED, MIXED_EMA, ONE_NORM, ONE_NORM_EMA, WITH_ACTIONS, LOW_RATE)
"""From the paper's objective to the learner's: norm alone, target alone, both; and a learning rate that is too low."""


@dataclass
class Curve:
    """What one objective learned; one entry for each measurement."""

    objective: Objective
    compared: tuple[Integers, Integers]
    """The pairs of tasks that are measured."""
    exact: Floats
    """The exact metric of the objective, one entry for each pair of tasks compared."""
    learned: Floats
    """||φ_i - φ_j|| at the end, for the same pairs."""
    steps: list[int] = field(default_factory=list)
    correlation: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    """Root mean square of learned - exact, as a share of that of exact."""
    phi_feature_std: list[float] = field(default_factory=list)
    """Standard deviation over tasks, mean over dimensions."""
    psi_feature_std: list[float] = field(default_factory=list)
    unexplained: list[float] = field(default_factory=list)
    """The share of φ(s, g) - φ(g, g) that ψ's arithmetic leaves unexplained."""
    best_unexplained: float = 1.0
    """The same at the end for the best ψ there is, given the φ that was learned."""
    effective_discount: float = 0.0
    """c times (right norm / left norm) of the learned differences: the discount that results from the norms."""
    effective_correlation: float = 0.0
    """Correlation with the exact metric of that discount."""


class Learner:
    """Trains φ and ψ on one-hot states and goals of one MDP, on all transitions of π*."""

    def __init__(
        self, mdp: GCMDP, process: TaskProcess, objective: Objective, *, c: float, steps: int, seed: int
    ) -> None:
        self.mdp, self.objective, self.c = mdp, objective, c
        self.generator = torch.Generator().manual_seed(seed)
        eye = torch.eye(mdp.states)
        self.states = eye
        self.goal_states = torch.from_numpy(mdp.goals)
        self.goals = eye[self.goal_states]
        self.pairs = torch.cat([eye.repeat_interleave(len(self.goals), 0), self.goals.repeat(mdp.states, 1)], dim=1)
        self.successor = torch.from_numpy(process.successors[0, :, 0])
        self.reward = torch.from_numpy(process.rewards[0]).float()
        assert process.policy is not None
        self.policy = torch.from_numpy(process.policy).float()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.phi = mlp([2 * mdp.states, *WIDTHS], final_norm=objective.layer_norm)
            self.psi = mlp([mdp.states, *WIDTHS])
        self.target = make_target(self.phi)
        groups = [(self.phi, objective.learning_rate), (self.psi, PSI_LEARNING_RATE)]
        self.optimizer = torch.optim.Adam([{"params": net.parameters(), "lr": rate} for net, rate in groups])
        self.schedule = torch.optim.lr_scheduler.LinearLR(self.optimizer, 1.0, 0.0, total_iters=steps + 1)

    def step(self, batch: int = 256) -> None:
        """One step of Algorithm 1 without the policy: L_φ on a permuted batch, L_ψ on the batch."""
        tasks = torch.randint(self.mdp.tasks, (batch,), generator=self.generator)
        permutation = torch.randperm(batch, generator=self.generator)
        phi = self.phi(self.pairs[tasks])
        loss, _ = phi_loss(
            phi,
            self.target(self.pairs[self.successor[tasks]]),
            self.reward[tasks],
            permutation,
            discount=self.c,
            left_norm=self.objective.left_norm,
            right_norm=self.objective.right_norm,
            reward_weight=reward_weight(self.c, self.objective.scaled),
            policy_distance=self._policy_distance(tasks, permutation),
        )
        self.optimizer.zero_grad()
        (loss + self._psi_loss(phi, tasks)[0]).backward()
        self.optimizer.step()
        self.schedule.step()
        soft_update(self.target, self.phi, self.objective.tau)

    def _policy_distance(self, tasks: Tensor, permutation: Tensor) -> Tensor | None:
        """The action term: `action_weight` times the total-variation distance of the two policies."""
        if not self.objective.action_weight:
            return None
        policy = self.policy[tasks]
        return self.objective.action_weight * (policy - policy[permutation]).abs().sum(dim=1) / 2

    def _psi_loss(self, phi: Tensor, tasks: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        with torch.no_grad():
            phi_gg = self.phi(torch.cat([self.goals, self.goals], dim=1))
        goal = tasks % len(self.goals)
        psi = self.psi(self.states)
        return psi_loss(phi, phi_gg[goal], psi[tasks // len(self.goals)], psi[self.goal_states[goal]])

    @torch.no_grad()
    def measure(self, curve: Curve, step: int) -> None:
        """Compare with the exact metric."""
        phi, psi = self.phi(self.pairs), self.psi(self.states)
        first, second = curve.compared
        curve.learned = distance(phi[first], phi[second], self.objective.left_norm).double().numpy()
        exact = curve.exact
        curve.steps.append(step)
        curve.correlation.append(_correlation(curve.learned, exact))
        curve.error.append(float(np.sqrt(((curve.learned - exact) ** 2).mean() / (exact**2).mean())))
        curve.phi_feature_std.append(_feature_std(phi))
        curve.psi_feature_std.append(_feature_std(psi))
        curve.unexplained.append(float(self._psi_loss(phi, torch.arange(self.mdp.tasks))[1]["psi_unexplained"]))
        right = distance(phi[first], phi[second], self.objective.right_norm).double().numpy()
        curve.effective_discount = float(self.c * right.mean() / max(curve.learned.mean(), 1e-12))


def _correlation(first: Floats, second: Floats) -> float:
    """Pearson's, and 0 when one side does not vary."""
    return float(np.corrcoef(first, second)[0, 1]) if first.std() > 1e-9 and second.std() > 1e-9 else 0.0


def _feature_std(embeddings: Tensor) -> float:
    return float(embeddings.std(dim=0).mean())


def _compared(tasks: int, seed: int) -> tuple[Integers, Integers]:
    """Every pair of different tasks, or a sample of them."""
    first, second = np.triu_indices(tasks, 1)
    chosen = np.random.default_rng(seed).permutation(len(first))[:MOST_PAIRS]
    return first[chosen], second[chosen]


def train(
    objective: Objective, *, steps: int, c: float = 0.9, seed: int = 0, every: int = 100, plan: Sequence[str] = PLAN
) -> Curve:
    """Train φ and ψ with one objective on a grid and measure every `every` steps."""
    mdp = grid_world(plan, gamma=c)
    process, pairs = on_policy(mdp, optimal_policy(mdp)), _compared(mdp.tasks, seed)
    d = metric(process, c, scaled=objective.scaled, action_weight=objective.action_weight)
    curve = Curve(objective, pairs, d[pairs], np.zeros(len(pairs[0])))
    learner = Learner(mdp, process, objective, c=c, steps=steps, seed=seed)
    for step in range(steps + 1):
        if step % every == 0:
            learner.measure(curve, step)
        learner.step()
    with torch.no_grad():
        curve.best_unexplained = best_psi(mdp, learner.phi(learner.pairs).double().numpy())[1]
    nearby = metric(process, curve.effective_discount, scaled=False, action_weight=objective.action_weight)
    curve.effective_correlation = _correlation(curve.learned, nearby[pairs])
    return curve


def check_learned(curve: Curve) -> Verdict:
    """Check whether ||φ_i - φ_j|| comes within 20 % of the exact distance."""
    claim = f"φ learns the exact metric to 20 %: {curve.objective.name}"
    tally = Tally("Eq. (phi_loss)", claim, expected=curve.objective.learns, tolerance=0.2)
    tally.add(curve.error[-1])
    note = f"correlation {curve.correlation[-1]:.2f}, feature std {curve.phi_feature_std[-1]:.3f}"
    if curve.objective.left_norm != curve.objective.right_norm:
        note += f", effective discount {curve.effective_discount:.2f} instead of 0.90"
    return tally.verdict(note)
