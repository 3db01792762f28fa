"""A trained agent that acts towards a goal image, or by analogy with an example pair."""

import os
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcb.agent.build import build, load_weights, pick_device
from gcb.agent.hub import download, is_hub_name
from gcb.errors import GCBError
from gcb.methods import Method, Shapes
from gcb.models.iql import IQL
from gcb.runs.find import find_run
from gcb.runs.run_dir import Run

Example = tuple[np.ndarray, np.ndarray]
DONE_THRESHOLD, DONE_WINDOW = 0.35, 10
"""The agent declares a task done when the mean of its last estimates of `done`, this many, reaches the threshold."""


class Agent:
    """A trained policy with its representation: numpy in, numpy out.

    Observations are single (shaped like one frame of the dataset) or batched (with a leading batch axis), and so are
    the results. A single goal or example applies to a whole batch of observations.
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
        """`load` builds an agent from a run directory; `step` is its number of training steps."""
        self.method, self.iql, self.shapes, self.device = method, iql, shapes, device
        self.run, self.step = run, step

    @property
    def has_value(self) -> bool:
        """Whether the agent has its value functions; bundled agents come without them, to be small."""
        return self.iql.policy("goal").value is not None

    def __repr__(self) -> str:
        source = f" {self.run.path}" if self.run else ""
        shape = "×".join(map(str, self.shapes.observation))
        steps = "" if self.step is None else f", {self.step:,} steps"
        tasks = "goals and examples" if self.method.supports_analogy else "goals"
        sizes = f"observations {shape}, actions {self.shapes.action}"
        return f"<Agent{source}: {self.method.name}{steps}, {sizes}, given {tasks}, on {self.device}>"

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
        """Return the mean action towards `goal`, or for the task that leads from example[0] to example[1].

        `initial_state` is the observation at the start of the task; if omitted, the task starts now. With `rng` the
        action is sampled from the policy with `eval_temperature` times its standard deviation. For whole episodes
        `start_task` is shorter, and faster: it encodes the task once.
        """
        policy = self.start_task(observation if initial_state is None else initial_state, goal=goal, example=example)
        noise = None
        if rng is not None:
            batch = np.shape(observation)[: np.ndim(observation) - len(self.shapes.observation)]
            noise = eval_temperature * rng.standard_normal((*batch, self.shapes.action))
        return policy.act(observation, noise)

    def start_task(
        self, initial_state: np.ndarray, *, goal: np.ndarray | None = None, example: Example | None = None
    ) -> "TaskPolicy":
        """Start a task (or a batch of tasks) at `initial_state`; return the policy for its steps."""
        return TaskPolicy(self, self._batch(initial_state, "initial_state"), self._task(goal, example))

    def value(
        self,
        observation: np.ndarray,
        *,
        goal: np.ndarray | None = None,
        example: Example | None = None,
        initial_state: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return V(s, task), IQL's estimate of the discounted probability of success."""
        policy = self.start_task(observation if initial_state is None else initial_state, goal=goal, example=example)
        return policy.value(observation)

    def done(
        self,
        observation: np.ndarray,
        *,
        goal: np.ndarray | None = None,
        example: Example | None = None,
        initial_state: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the estimated probability that the task is done in this observation."""
        policy = self.start_task(observation if initial_state is None else initial_state, goal=goal, example=example)
        return policy.done(observation)

    def phi(self, state: np.ndarray, goal: np.ndarray) -> np.ndarray:
        """Return the task embedding φ(s, g)."""
        with torch.inference_mode():
            states, goals = _paired(self._batch(state, "state"), self._batch(goal, "goal"))
            return self._out(_embed(self.method.phi, states, goals), state)

    def psi(self, state: np.ndarray) -> np.ndarray:
        """Return the state embedding ψ(s)."""
        with torch.inference_mode():
            return self._out(_embed(self.method.psi, self._batch(state, "state")), state)

    def distance(self, pair: Example, other: Example) -> np.ndarray:
        """Return the distance between two tasks: the mean of |φ(s, g) - φ(s', g')| over dimensions."""
        return np.abs(self.phi(*pair) - self.phi(*other)).mean(axis=-1)

    def save_pretrained(self, save_directory: str | os.PathLike[str]) -> Path:
        """Write the agent to a new or empty directory, from which `from_pretrained` and `gcb.load` read it."""
        from gcb.agent.export import export_agent

        return export_agent(self, save_directory)

    @classmethod
    def from_pretrained(
        cls,
        name_or_path: str | os.PathLike[str],
        *,
        revision: str | None = None,
        device: str = "cpu",
        cache_dir: str | os.PathLike[str] | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
    ) -> "Agent":
        """Load an agent from a directory, or from the Hugging Face Hub by its name there: owner/name."""
        if os.path.isdir(name_or_path):
            return load(name_or_path, device)
        cache = None if cache_dir is None else Path(cache_dir)
        options = {"revision": revision, "token": token, "local_files_only": local_files_only}
        return load(download(os.fspath(name_or_path), cache_dir=cache, **options), device)

    def push_to_hub(
        self,
        repo_id: str,
        *,
        private: bool | None = None,
        token: str | bool | None = None,
        revision: str | None = None,
        commit_message: str | None = None,
    ) -> str:
        """Upload the agent with its model card to the Hugging Face Hub; return the address of the commit.

        Without `token`, the one of `hf auth login` is used.
        """
        from gcb.agent.export import push_agent

        options = {"private": private, "token": token, "revision": revision, "commit_message": commit_message}
        return push_agent(self, repo_id, **options)

    def _task(self, goal: np.ndarray | None, example: Example | None) -> Tensor | tuple[Tensor, Tensor]:
        if (goal is None) == (example is None):
            raise GCBError("give either goal=… or example=(s_a, g_a), not both.")
        if goal is not None:
            return self._batch(goal, "goal")
        if not self.method.supports_analogy:
            raise GCBError(f"{self.method.name} does not support analogies; give it a goal.")
        if not isinstance(example, tuple | list) or len(example) != 2:
            raise GCBError("example is not a pair; accepted: (s_a, g_a), the observations before and after.")
        before, after = _paired(self._batch(example[0], "example[0]"), self._batch(example[1], "example[1]"))
        return before, after

    def _batch(self, observation: Any, name: str) -> Tensor:
        """Convert one or several observations to a batch on the device, after checking shape and type."""
        array = np.asarray(observation)
        shape = self.shapes.observation
        accepted = np.uint8 if len(shape) == 3 else np.floating
        single, batched = array.shape == shape, array.shape[1:] == shape and array.ndim == len(shape) + 1 and len(array)
        if not np.issubdtype(array.dtype, accepted) or not (single or batched):
            dtype = "uint8" if accepted is np.uint8 else "floating-point"
            raise GCBError(
                f"{name} is {array.dtype} {array.shape}; accepted: {dtype} {shape}, or a batch of them {('n', *shape)}."
            )
        array = np.ascontiguousarray(array[None] if single else array)
        if not array.flags.writeable:
            array = array.copy()
        tensor = torch.from_numpy(array).to(self.device)
        return tensor if accepted is np.uint8 else tensor.float()

    def _out(self, result: Tensor, like: Any) -> np.ndarray:
        """Convert to numpy, without the batch axis if the input had none."""
        array = result.float().cpu().numpy()
        return array[0] if np.ndim(like) == len(self.shapes.observation) and len(array) == 1 else array


class TaskPolicy:
    """The policy for one task, or a batch of tasks; what does not depend on the current state is computed once."""

    def __init__(self, agent: Agent, initial_state: Tensor, task: Tensor | tuple[Tensor, Tensor]) -> None:
        self._agent, method = agent, agent.method
        with torch.inference_mode():
            if isinstance(task, Tensor):
                self._prepared = method.prepare_goal(*_paired(initial_state, task))
                self._inputs_of, self._policy = method.goal_inputs, agent.iql.policy("goal")
            else:
                self._prepared = method.prepare_example(*_paired(initial_state, *task))
                self._inputs_of, self._policy = method.analogy_inputs, agent.iql.policy("analogy")

    def act(self, observation: np.ndarray, noise: np.ndarray | None = None) -> np.ndarray:
        """Return the mean action at this observation, in [-1, 1].

        With `noise`, standard normal numbers in the shape of the actions, return an action sampled from the policy.
        """
        with torch.inference_mode():
            return self._agent._out(self._act(self._inputs(observation), noise), observation)

    def done(self, observation: np.ndarray) -> np.ndarray:
        """Return the estimated probability that the task is done in this observation."""
        with torch.inference_mode():
            return self._agent._out(self._done(self._inputs(observation)), observation)

    def step(self, observation: np.ndarray, noise: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return `act` and `done` at this observation, from one pass of the encoders.

        The noise is scaled by the probability that the task is not done: actions approach the mean as it nears its end.
        """
        with torch.inference_mode():
            inputs = self._inputs(observation)
            done = self._done(inputs)
            if noise is not None:
                noise = np.reshape(noise, (len(inputs), -1)) * (1 - done.cpu().numpy()[:, None])
            return self._agent._out(self._act(inputs, noise), observation), self._agent._out(done, observation)

    def value(self, observation: np.ndarray) -> np.ndarray:
        """Return V(s, task) at this observation."""
        if not self._agent.has_value:
            raise GCBError("this agent comes without its value functions, which acting does not need.")
        with torch.inference_mode():
            return self._agent._out(self._policy.value(self._inputs(observation)).squeeze(-1), observation)

    def _act(self, inputs: Tensor, noise: np.ndarray | None) -> Tensor:
        if noise is None:
            return self._policy.actor(inputs)
        samples = torch.as_tensor(np.reshape(noise, (len(inputs), -1)), dtype=inputs.dtype, device=inputs.device)
        return self._policy.actor.sample(inputs, samples)

    def _done(self, inputs: Tensor) -> Tensor:
        return torch.sigmoid(self._policy.done(inputs)).squeeze(-1)

    def _inputs(self, observation: np.ndarray) -> Tensor:
        state, *prepared = _paired(self._agent._batch(observation, "observation"), *self._prepared)
        return self._inputs_of(state, *prepared)


class DoneMonitor:
    """Decides from the estimates of `TaskPolicy.step` when the agent declares its tasks done."""

    def __init__(self) -> None:
        self._recent: deque[np.ndarray] = deque(maxlen=DONE_WINDOW)

    def update(self, done: np.ndarray) -> np.ndarray:
        """Add the estimates of one step, a number or a batch; return for each whether the task is declared done."""
        self._recent.append(np.asarray(done))
        return (np.mean(self._recent, axis=0) >= DONE_THRESHOLD) & (len(self._recent) == DONE_WINDOW)


def load(run: str | os.PathLike[str], device: str = "cpu") -> Agent:
    """Load an agent: a run from its last checkpoint, one that comes with the package by its name, or hf://owner/name.

    Nothing in the directory is executed.
    """
    run_dir = Run(download(str(run)) if is_hub_name(run) else find_run(run))
    shapes = run_dir.dataset.shapes
    method, iql = build(run_dir.config, shapes)
    modules = torch.nn.ModuleDict({"method": method, "iql": iql})
    weights, checkpoint = run_dir.weights()
    try:
        load_weights(modules, weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise GCBError(f"the weights in {run_dir.path} do not fit its configuration: {reason}") from error
    torch_device = pick_device(device)
    modules.to(torch_device).eval().requires_grad_(False)
    return Agent(method, iql, shapes, torch_device, run_dir, checkpoint.step)


def _paired(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Expand tensors of one row to the length of the others."""
    lengths = {len(tensor) for tensor in tensors} - {1}
    if len(lengths) > 1:
        raise GCBError(f"batches of {' and '.join(map(str, sorted(lengths)))} do not match.")
    length = lengths.pop() if lengths else 1
    return tuple(tensor if len(tensor) == length else tensor.expand(length, *tensor.shape[1:]) for tensor in tensors)


def _embed(embed: Any, *inputs: Tensor) -> Tensor:
    """Return an embedding; raise GCBError if the method has none."""
    try:
        return embed(*inputs)
    except NotImplementedError as error:
        raise GCBError(f"{error}.") from error
