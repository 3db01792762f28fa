"""What a user holds: an agent that acts on a goal image, or on an example of what to do."""

import os
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcb.agent.build import build, pick_device
from gcb.errors import GCBError
from gcb.methods import Method, Shapes
from gcb.models.iql import IQL
from gcb.runs.run_dir import Run

Example = tuple[np.ndarray, np.ndarray]


class Agent:
    """A trained policy with its representation: numpy in, numpy out.

    Observations are single (as one frame of the dataset) or batched (with one axis more in front), and so are the
    results. A single goal or example serves a whole batch of observations.
    """

    def __init__(
        self,
        method: Method,
        iql: IQL,
        shapes: Shapes,
        device: torch.device,
        run: Run | None = None,
        step: int | None = None,
    ) -> None:
        """`load` builds one from a run's folder; `step` is the number of training steps behind it."""
        self.method, self.iql, self.shapes, self.device = method, iql, shapes, device
        self.run, self.step = run, step

    def act(
        self,
        observation: np.ndarray,
        *,
        goal: np.ndarray | None = None,
        example: Example | None = None,
        initial_state: np.ndarray | None = None,
        rng: np.random.Generator | None = None,
        eval_temperature: float = 1.0,
    ) -> np.ndarray:
        """The mean action towards `goal`, or for the task that leads from example[0] to example[1].

        `initial_state` is the observation at the start of the task; if omitted, the task starts now. With `rng` the
        action is sampled from the policy with `eval_temperature` times its standard deviation. For whole episodes
        `start_task` is shorter, and faster where the task features do not depend on the state.
        """
        pursuit = self.start_task(observation if initial_state is None else initial_state, goal=goal, example=example)
        noise = None
        if rng is not None:
            batch = np.shape(observation)[: np.ndim(observation) - len(self.shapes.observation)]
            noise = eval_temperature * rng.standard_normal((*batch, self.shapes.action))
        return pursuit.act(observation, noise)

    def start_task(
        self, initial_state: np.ndarray, *, goal: np.ndarray | None = None, example: Example | None = None
    ) -> "TaskPolicy":
        """Begin a task (or a batch of them) at `initial_state`; the `TaskPolicy` then acts step by step."""
        return TaskPolicy(self, self._batch(initial_state, "initial_state"), self._task(goal, example))

    def value(
        self,
        observation: np.ndarray,
        *,
        goal: np.ndarray | None = None,
        example: Example | None = None,
        initial_state: np.ndarray | None = None,
    ) -> np.ndarray:
        """V(s, task): the discounted probability of success, as IQL sees it."""
        pursuit = self.start_task(observation if initial_state is None else initial_state, goal=goal, example=example)
        return pursuit.value(observation)

    def phi(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """The task embedding φ(s, g)."""
        with torch.inference_mode():
            states, goals = _paired(self._batch(state, "state"), self._batch(goal, "goal"))
            return self._out(_offered(self.method.phi, states, goals), state)

    def psi(self, state: np.ndarray) -> np.ndarray:
        """The state embedding ψ(s)."""
        with torch.inference_mode():
            return self._out(_offered(self.method.psi, self._batch(state, "state")), state)

    def distance(self, pair: Example, other: Example) -> np.ndarray:
        """How different two tasks are: the mean of |φ(s, g) - φ(s', g')| over its dimensions."""
        return np.abs(self.phi(*pair) - self.phi(*other)).mean(axis=-1)

    def _task(self, goal: np.ndarray | None, example: Example | None) -> Tensor | tuple[Tensor, Tensor]:
        if (goal is None) == (example is None):
            raise GCBError("say what to do by goal=… or by example=(s_a, g_a): one of the two.")
        if goal is not None:
            return self._batch(goal, "goal")
        if not self.method.supports_analogy:
            raise GCBError(f"{self.method.name} cannot be told what to do by an example; give it a goal.")
        if not isinstance(example, tuple | list) or len(example) != 2:
            raise GCBError("example is not a pair; accepted: (s_a, g_a), what was there before and after.")
        before, after = _paired(self._batch(example[0], "example[0]"), self._batch(example[1], "example[1]"))
        return before, after

    def _batch(self, observation: Any, name: str) -> Tensor:
        """An observation, or several, as a batch on the device; says what is wrong with anything else."""
        array = np.asarray(observation)
        shape = self.shapes.observation
        accepted = np.uint8 if len(shape) == 3 else np.floating
        single, many = array.shape == shape, array.shape[1:] == shape and array.ndim == len(shape) + 1 and len(array)
        if not np.issubdtype(array.dtype, accepted) or not (single or many):
            kind = "uint8" if accepted is np.uint8 else "floating-point"
            raise GCBError(
                f"{name} is {array.dtype} {array.shape}; accepted: {kind} {shape}, or a batch of them {('n', *shape)}."
            )
        array = np.ascontiguousarray(array[None] if single else array)
        if not array.flags.writeable:
            array = array.copy()
        tensor = torch.from_numpy(array).to(self.device)
        return tensor if accepted is np.uint8 else tensor.float()

    def _out(self, result: Tensor, like: Any) -> np.ndarray:
        """As numpy, single where the input was."""
        array = result.float().cpu().numpy()
        return array[0] if np.ndim(like) == len(self.shapes.observation) and len(array) == 1 else array


class TaskPolicy:
    """A task under way, or a batch of them: what it asks is worked out once where that is all it needs."""

    def __init__(self, agent: Agent, initial_state: Tensor, task: Tensor | tuple[Tensor, Tensor]) -> None:
        self._agent, self._initial_state, self._task = agent, initial_state, task
        self._features: Tensor | None = None
        if not agent.method.task_depends_on_state:
            with torch.inference_mode():
                self._features = self._task_features(initial_state)

    def act(self, observation: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """The mean action at this observation, in [-1, 1].

        With `noise`, normal numbers in the shape of the actions, it is drawn from the policy: of variance 1 as it is.
        """
        with torch.inference_mode():
            actor, inputs = self._agent.iql.actor, self._inputs(observation)
            if noise is None:
                return self._agent._out(actor(inputs), observation)
            drawn = torch.as_tensor(np.reshape(noise, (len(inputs), -1)), dtype=inputs.dtype, device=inputs.device)
            return self._agent._out(actor.sample(inputs, drawn), observation)

    def value(self, observation: np.ndarray) -> np.ndarray:
        """V(s, task) at this observation."""
        with torch.inference_mode():
            return self._agent._out(self._agent.iql.value(self._inputs(observation)).squeeze(-1), observation)

    def _inputs(self, observation: np.ndarray) -> Tensor:
        state = self._agent._batch(observation, "observation")
        task = self._task_features(state) if self._features is None else self._features
        features = self._agent.method.state_features(state)
        if len(task) != len(features):
            features, task = _paired(features, task)
        return torch.cat([features, task], dim=-1)

    def _task_features(self, state: Tensor) -> Tensor:
        method = self._agent.method
        if isinstance(self._task, Tensor):
            initial_state, state, goal = _paired(self._initial_state, state, self._task)
            return method.goal_features(initial_state, state, goal)
        initial_state, state, before, after = _paired(self._initial_state, state, *self._task)
        return method.analogy_features(initial_state, state, (before, after))


def load(run: str | os.PathLike[str], device: str = "cpu") -> Agent:
    """The agent of a run, as its last checkpoint has it. Nothing in the folder is executed."""
    folder = Run(run)
    shapes = folder.dataset.shapes
    method, iql = build(folder.config, shapes)
    modules = torch.nn.ModuleDict({"method": method, "iql": iql})
    weights, checkpoint = folder.weights()
    try:
        modules.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise GCBError(f"the weights in {folder.path} do not fit its configuration: {reason}") from error
    where = pick_device(device)
    modules.to(where).eval().requires_grad_(False)
    return Agent(method, iql, shapes, where, folder, checkpoint.step)


def _paired(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors with one length: those of one row are repeated."""
    lengths = {len(tensor) for tensor in tensors} - {1}
    if len(lengths) > 1:
        raise GCBError(f"batches of {' and '.join(map(str, sorted(lengths)))} do not go together.")
    length = lengths.pop() if lengths else 1
    return tuple(tensor if len(tensor) == length else tensor.expand(length, *tensor.shape[1:]) for tensor in tensors)


def _offered(embed: Any, *inputs: Tensor) -> Tensor:
    """An embedding, or an error if the method has none."""
    try:
        return embed(*inputs)
    except NotImplementedError as error:
        raise GCBError(f"{error}.") from error
