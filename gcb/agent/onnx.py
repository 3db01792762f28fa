"""Export φ, ψ and the policy as ONNX graphs, for programs without PyTorch.

Inputs are batches of observations: uint8 images with channels last, or float32 vectors.

    phi.onnx                 state, goal                           → φ(s, g)
    psi.onnx                 state                                 → ψ(s)
    policy_goal.onnx         initial_state, state, goal            → the mean action in [-1, 1]
    policy_analogy.onnx      initial_state, state, before, after   → the same, conditioned on an example pair

`initial_state` is the observation at the start of the task.
"""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from gcb.agent.agent import Agent
from gcb.errors import GCBError

PACKAGES = ("onnx", "onnxscript")


class Graph(nn.Module):
    """A function of an agent's networks as a module, which is what torch.onnx exports."""

    def __init__(self, agent: Agent, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.method, self.iql, self._function = agent.method, agent.iql, function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self._function(*inputs).float()


def graphs(agent: Agent) -> Iterator[tuple[str, tuple[str, ...], Graph]]:
    """Yield the name, inputs and module of each graph of an agent."""
    method = agent.method
    goal_actor, analogy_actor = agent.iql.policy("goal").actor, agent.iql.policy("analogy").actor

    def act_on_goal(initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return goal_actor(method.goal_inputs(state, *method.prepare_goal(initial_state, goal)))

    def act_on_analogy(initial_state: Tensor, state: Tensor, before: Tensor, after: Tensor) -> Tensor:
        return analogy_actor(method.analogy_inputs(state, *method.prepare_example(initial_state, before, after)))

    yield "phi", ("state", "goal"), Graph(agent, method.phi)
    yield "psi", ("state",), Graph(agent, method.psi)
    yield "policy_goal", ("initial_state", "state", "goal"), Graph(agent, act_on_goal)
    if method.supports_analogy:
        yield "policy_analogy", ("initial_state", "state", "before", "after"), Graph(agent, act_on_analogy)


def write_graphs(agent: Agent, out: Path) -> list[Path]:
    """Write all graphs that the agent's method supports to a directory."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise GCBError(f"{', '.join(missing)} is not installed: pip install 'gcb[onnx]'.")
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, inputs, graph in graphs(agent):
        examples = tuple(_example(agent) for _ in inputs)
        try:
            graph(*examples)
        except NotImplementedError:
            continue  # the method has no such embedding
        path = out / f"{name}.onnx"
        _write(graph.eval(), inputs, examples, path)
        written.append(path)
    return written


def _example(agent: Agent) -> Tensor:
    """Return a batch of two observations: the exporter would treat a batch of one as a constant."""
    shape = (2, *agent.shapes.observation)
    return torch.zeros(shape, dtype=torch.uint8) if len(shape) == 4 else torch.zeros(shape)


def _write(graph: Graph, inputs: tuple[str, ...], examples: tuple[Tensor, ...], path: Path) -> None:
    batch = torch.export.Dim("batch", min=1)
    with _quiet_exporter(), torch.no_grad():
        program = torch.onnx.export(
            graph,
            examples,
            str(path),
            input_names=list(inputs),
            output_names=[path.stem],
            dynamic_shapes=(tuple({0: batch} for _ in inputs),),
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    assert program is not None, "the exporter based on torch.export returns its program"
    sizes = {value.name: value.shape[0] for value in program.model.graph.inputs if value.shape is not None}
    if fixed := {name: size for name, size in sizes.items() if isinstance(size, int)}:
        raise GCBError(
            f"{path.stem} can only be exported with a fixed batch size ({fixed}); avoid len() of a tensor in the method"
        )


@contextmanager
def _quiet_exporter() -> Iterator[None]:
    """Silence the exporter's warnings and log messages."""
    names = ("torch.onnx", "onnxscript", "torch.export")
    before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).setLevel(level)
