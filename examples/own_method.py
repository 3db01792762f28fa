"""Your own method: one encoder f, and a policy that sees f(s) and f(g) - f(s), or f(g_a) - f(s_a) of an example.

A method says what is learned about states and goals, and what the policy sees of it. The rest is shared by all methods.
"""

from pathlib import Path

import torch
import tyro
from torch import Tensor

import gcb
from gcb.data import Batch, CollectConfig, collect
from gcb.evaluation.evaluate import evaluate
from gcb.methods import Method, MethodOutput, Shapes, register
from gcb.methods.bc import BCConfig
from gcb.models.networks import encoder
from gcb.runs.config import make_config
from gcb.training.trainer import train


@register
class Difference(Method):
    name, paper, summary = "difference", "examples/own_method.py", "one encoder f; the policy sees f(s) and f(g) - f(s)"
    config_type = BCConfig  # options of `gcb train`: encoder, size, learning rate; any frozen dataclass will do

    def __init__(self, config: BCConfig, shapes: Shapes) -> None:
        super().__init__()
        self.config, self.f = config, encoder(config.encoder, shapes.observation, config.size)
        self.input_sizes = {"goal": 2 * config.size}  # one policy, for goals and for analogies

    def compute_loss(self, batch: Batch[Tensor]) -> MethodOutput:
        state, goal, next_state = self.f(batch.state), self.f(batch.goal), self.f(batch.next_state)
        change = batch.expand(goal) - state  # the transitions of an episode share its goal
        inputs, next_inputs = torch.cat([state, change], -1), torch.cat([next_state, goal - next_state], -1)
        loss = 1e-4 * change.square().mean()
        return MethodOutput(loss, {"goal": inputs}, {"goal": inputs.detach()}, {"goal": next_inputs.detach()})

    def goal_inputs(self, state: Tensor, goal: Tensor) -> Tensor:
        return torch.cat([self.f(state), self.f(goal) - self.f(state)], -1)

    def prepare_example(self, initial_state: Tensor, before: Tensor, after: Tensor) -> tuple[Tensor, ...]:
        return (self.f(after) - self.f(before),)  # once for each task

    def analogy_inputs(self, state: Tensor, change: Tensor) -> Tensor:
        return torch.cat([self.f(state), change], -1)  # at every step


def main(out: Path = Path("own-method"), transitions: int = 3000, steps: int = 500, episodes: int = 20) -> None:
    """Collect data in Drawer, train the method, and measure its success by goal image and by analogy."""
    collect(CollectConfig("gcb/Drawer-v0", transitions), out / "data")
    train(make_config("difference", "laptop", {"steps": steps, "warmup_steps": 5}), out / "data", out / "run")
    for mode in ("goal", "strict"):
        print(mode, evaluate(gcb.load(out / "run"), mode=mode, episodes=episodes).rate())


if __name__ == "__main__":
    tyro.cli(main)
