"""φ, ψ and the policy as ONNX graphs: for programs that have no PyTorch.

Inputs are as an environment gives them, batch first: images uint8 with channels last, vectors float32.

    phi.onnx                 state, goal                           → φ(s, g)
    psi.onnx                 state                                 → ψ(s)
    policy_by_goal.onnx      initial_state, state, goal            → the mean action in [-1, 1]
    policy_by_example.onnx   initial_state, state, before, after   → the same, told by an example pair

`initial_state` is what was seen when the task began.
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
    """A function of an agent's networks, as a module that can be exported."""

    def __init__(self, agent: Agent, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.method, self.iql, self._function = agent.method, agent.iql, function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self._function(*inputs).float()


def graphs(agent: Agent) -> Iterator[tuple[str, tuple[str, ...], Graph]]:
    """Name, inputs and module of each graph that an agent has."""
    method, actor = agent.method, agent.iql.actor

    def act(state: Tensor, task: Callable[[], Tensor]) -> Tensor:
        # What a method leaves empty is not computed: an empty tensor would fix the size of the batch.
        features = [method.state_features(state)] if method.state_size else []
        return actor(torch.cat([*features, *([task()] if method.task_size else [])], -1))

    def by_goal(initial_state: Tensor, state: Tensor, goal: Tensor) -> Tensor:
        return act(state, lambda: method.goal_features(initial_state, state, goal))

    def supports_analogy(initial_state: Tensor, state: Tensor, before: Tensor, after: Tensor) -> Tensor:
        return act(state, lambda: method.analogy_features(initial_state, state, (before, after)))

    yield "phi", ("state", "goal"), Graph(agent, method.phi)
    yield "psi", ("state",), Graph(agent, method.psi)
    yield "policy_by_goal", ("initial_state", "state", "goal"), Graph(agent, by_goal)
    if method.supports_analogy:
        yield "policy_by_example", ("initial_state", "state", "before", "after"), Graph(agent, supports_analogy)


def write_graphs(agent: Agent, folder: Path) -> list[Path]:
    """Write every graph that the agent's method offers to a folder."""
    if missing := [name for name in PACKAGES if find_spec(name) is None]:
        raise GCBError(f"{', '.join(missing)} is not installed: pip install 'gcb[onnx]'.")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, inputs, graph in graphs(agent):
        examples = tuple(_example(agent) for _ in inputs)
        try:
            graph(*examples)
        except NotImplementedError:
            continue  # the method has no such embedding
        path = folder / f"{name}.onnx"
        _write(graph.eval(), inputs, examples, path)
        written.append(path)
    return written


def _example(agent: Agent) -> Tensor:
    """Any two observations: a batch of one would be taken for a constant."""
    shape = (2, *agent.shapes.observation)
    return torch.zeros(shape, dtype=torch.uint8) if len(shape) == 4 else torch.zeros(shape)


def _write(graph: Graph, inputs: tuple[str, ...], examples: tuple[Tensor, ...], path: Path) -> None:
    batch = torch.export.Dim("batch", min=1)
    with _quietly(), torch.no_grad():
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
    assert program is not None, "the exporter that builds on torch.export returns what it made"
    sizes = {one.name: one.shape[0] for one in program.model.graph.inputs if one.shape is not None}
    if fixed := {name: size for name, size in sizes.items() if isinstance(size, int)}:
        raise GCBError(
            f"{path.stem} could only be exported for batches of one size ({fixed}): len() of a tensor, perhaps"
        )


@contextmanager
def _quietly() -> Iterator[None]:
    """The exporter talks of its own affairs."""
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
