"""A loaded run, or two: agents, simulators, a task index, and the answers to a visitor's requests."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gcb.agent.agent import Agent, Example, load
from gcb.analysis.embed import missing_embeddings, open_run_data
from gcb.envs import ENVS
from gcb.errors import GCBError
from gcb.evaluation.evaluate import env_spec_of
from gcb.explorer.choices import ByDataset, ByGoal, ByPictures, SceneChoice, SuccessRequest, TaskRequest
from gcb.explorer.display import data_url, decode_picture
from gcb.explorer.episode import Event, run_episode
from gcb.explorer.film import film
from gcb.explorer.scene_renderer import RenderedScene, SceneRenderer
from gcb.explorer.simulators import SimulatorPool, Simulators
from gcb.explorer.success import count_successes
from gcb.explorer.task_index import TaskIndex, build_index, draw_map
from gcb.runs.evaluations import read_results
from gcb.runs.find import is_bundled

NEIGHBOURS = 6
EPISODES = 8
"""Episodes kept for films, about 2 MB each."""


class NotAvailable(GCBError):
    """The request is valid, but this run cannot answer it, or not yet."""

    status = 409


@dataclass(frozen=True, eq=False)
class TaskSpec:
    """The task of the agent: its scene, and the images that condition it."""

    scene: RenderedScene
    example: Example | None
    """(s_a, g_a), or None if the agent is conditioned on the scene's goal image."""
    before_url: str
    """Image for the visitor, as a data URL."""
    after_url: str
    label: str

    @property
    def pair(self) -> Example:
        """The task as a pair of images: the example, or the scene and its goal."""
        return self.example or (self.scene.before, self.scene.after)


@dataclass
class MapStatus:
    """Progress of the map. "embedded": the tasks are embedded, and t-SNE is running."""

    state: Literal["preparing", "embedded", "ready", "unavailable"] = "preparing"
    detail: str = "waiting for the agent"
    progress: float = 0.0


@dataclass
class Session:
    """Agents with their simulators, if their environment can be simulated, and the first one's task index once built.

    Usually there is one agent; a second one acts beside it, in the same scene on the same task.
    """

    agents: Sequence[Agent]
    simulators: SimulatorPool | None
    unavailable: str | None
    """Why there are no simulators; None if there are."""
    index: TaskIndex | None = None
    map: MapStatus = field(default_factory=MapStatus)
    _episodes: OrderedDict[TaskRequest, list[Event]] = field(default_factory=OrderedDict)
    """The last complete episodes, for films."""

    @property
    def agent(self) -> Agent:
        """The agent whose representation the page shows."""
        return self.agents[0]

    def status(self) -> dict[str, Any]:
        """Describe the agents for the page."""
        tasks = () if self.simulators is None else self.simulators.renderer.layout.tasks
        config = self.agent.run.dataset.config if self.agent.run else {}
        return {
            "runs": [_describe(agent, name) for agent, name in zip(self.agents, self.names(), strict=True)],
            "env": config.get("env"),
            "video": bool((config.get("options") or {}).get("video")),
            "image_size": list(self.agent.shapes.observation[:2]),
            "tasks": list(tasks),
            "supports_analogy": self._without_analogy() is None,
            "without_analogy": self._without_analogy(),
            "unavailable": self.unavailable,
            "map": asdict(self.map),
        }

    def names(self) -> list[str]:
        """Return the names of the runs, or their paths if two runs have the same name."""
        paths = [agent.run.path if agent.run else Path("agent") for agent in self.agents]
        return [path.name if len({path.name for path in paths}) == len(paths) else str(path) for path in paths]

    def task_spec(self, request: TaskRequest) -> TaskSpec:
        """Render the requested task."""
        renderer, task = self.pool().renderer, request.task
        if isinstance(task, ByDataset):
            return self._dataset_task(request.scene, task)
        scene = renderer.scene_with_task(request.scene, task.name, task.drawer_after)
        if isinstance(task, ByGoal):
            return TaskSpec(scene, None, scene.before_url, scene.after_url, scene.label)
        if isinstance(task, ByPictures):
            shape = self.agent.shapes.observation
            pair = decode_picture(task.before, "before", shape), decode_picture(task.after, "after", shape)
            return TaskSpec(scene, pair, data_url(pair[0], "png"), data_url(pair[1], "png"), "your pictures")
        example = renderer.example(request.scene, task)
        return TaskSpec(scene, (example.before, example.after), example.before_url, example.after_url, example.label)

    def analyse(self, request: TaskRequest) -> dict[str, Any]:
        """Return the task's nearest neighbours in φ and, for methods with analogy arithmetic, the inferred goal."""
        spec, index = self.task_spec(request), self.task_index()
        own = request.task.index if isinstance(request.task, ByDataset) else None
        answer: dict[str, Any] = {"neighbours": index.neighbours(spec.pair, NEIGHBOURS, own), "inferred_goal": None}
        if index.has_arithmetic:
            part, row = index.inferred_goal(spec.scene.before, spec.pair)
            button = spec.scene.scene.task == "button"
            score = index.score(part, row, spec.scene.hidden_goal, spec.scene.pose, button)
            answer["inferred_goal"] = {"index": row, "part": part, **score}
        return answer

    def prepare_episode(self, request: TaskRequest) -> TaskSpec:
        """Return the task of an episode, if the methods support it and the queue is not full."""
        self._check_ready(by_goal=isinstance(request.task, ByGoal))
        return self.task_spec(request)

    def run_episode(self, simulators: Simulators, request: TaskRequest, spec: TaskSpec) -> Iterator[Event]:
        """Yield the events of an episode, and remember them once it is complete."""
        goal, events = spec.scene.after if spec.example is None else None, []
        for event in run_episode(self.agents, simulators, spec.scene.scene, goal=goal, example=spec.example):
            events.append(event)
            yield event
        self._episodes[request] = events
        while len(self._episodes) > EPISODES:
            self._episodes.popitem(last=False)

    def recorded(self, request: TaskRequest) -> list[Event] | None:
        """Return the events of an episode that was run recently."""
        return self._episodes.get(request)

    def film(self, spec: TaskSpec, events: Sequence[Event]) -> bytes:
        """Return a film of an episode, as an MP4 file."""
        names = self.names() if len(self.agents) > 1 else ["agent"]
        return film(spec.before_url, spec.after_url, names, events)

    def prepare_success(self, request: SuccessRequest) -> SceneRenderer:
        """Return the renderer of the scenes, if the methods support the task and the queue is not full."""
        self._check_ready(by_goal=request.by == "goal")
        return self.pool().renderer

    def count_successes(self, simulators: Simulators, request: SuccessRequest) -> Iterator[Event]:
        """Yield the outcome in one scene after another."""
        return count_successes(self.agents, simulators, self.pool().renderer, request)

    def _check_ready(self, by_goal: bool) -> None:
        if not by_goal and (method := self._without_analogy()):
            raise GCBError(f"{method} cannot be conditioned on an example; use a goal image.")
        self.pool().check_queue()

    def _without_analogy(self) -> str | None:
        """Return the first method that cannot be conditioned on an example."""
        return next((agent.method.name for agent in self.agents if not agent.method.supports_analogy), None)

    def warm_up(self) -> None:
        """Start the first simulators and pass an image through the agents, while the visitor looks at the scene."""
        if self.simulators is not None:
            self.simulators.add_idle()
        for agent in self.agents:
            blank = np.zeros(agent.shapes.observation, np.uint8)
            agent.start_task(blank, goal=blank).step(blank)

    def map_points(self) -> dict[str, Any]:
        """Return the map: positions in the unit square, and the value, if known, name and label of each task."""
        index = self.task_index()
        if index.positions is None:
            raise NotAvailable(f"the map is not ready: {self.map.detail}.")
        low, high = index.positions.min(0), index.positions.max(0)
        x, y = ((index.positions - low) / (high - low)).astype(float).round(4).T.tolist()
        value = index.tasks.value.astype(float).round(4).tolist() if self.agent.has_value else None
        return {"x": x, "y": y, "value": value, "task": index.tasks.task.tolist(), "label": index.labels}

    def prepare_map(self, data: Path | None) -> None:
        """Embed tasks of the dataset and compute the map. `map` reports progress and problems."""

        def report(progress: float) -> None:
            self.map = MapStatus("preparing", "embedding tasks of the dataset", min(1.0, progress))

        try:
            if reason := missing_embeddings(self.agent).get("phi"):
                raise GCBError(f"{reason}, so there is no map")
            self.map.detail = "opening the dataset"
            assert self.agent.run is not None, "load sets the agent's run"
            dataset = open_run_data(self.agent.run, data)
            if dataset.frames.ndim != 4:
                raise GCBError(f"{dataset.path} has observations {dataset.frames.shape[1:]}; the map needs images")
            self.index = build_index(self.agent, dataset, report)
            self.map = MapStatus("embedded", "computing the map", 1.0)
            draw_map(self.index)
            self.map = MapStatus("ready", "", 1.0)
        except GCBError as error:
            state = "ready" if self.index is not None and self.index.positions is not None else "unavailable"
            self.map = MapStatus(state, str(error).rstrip("."), self.map.progress)

    def pool(self) -> SimulatorPool:
        if self.simulators is None:
            raise NotAvailable(f"{self.unavailable}.")
        return self.simulators

    def task_index(self) -> TaskIndex:
        if self.index is None:
            raise NotAvailable(f"the tasks of the dataset are not available: {self.map.detail}.")
        return self.index

    def _dataset_task(self, choice: SceneChoice, task: ByDataset) -> TaskSpec:
        index, renderer = self.task_index(), self.pool().renderer
        before, after = index.pair(task.index)
        name = str(index.tasks.task[task.index])
        known = name if name in renderer.layout.tasks else None
        scene = renderer.scene_with_task(choice, known, index.drawer_after(task.index) if known == "drawer" else None)
        return TaskSpec(
            scene, (before, after), data_url(before, "png"), data_url(after, "png"), index.labels[task.index]
        )


def load_session(runs: Sequence[Path], clips: Path | None, device: str) -> Session:
    """Load the agents of one run or two and start their simulators; the task index is built later."""
    agents = [load(run, device) for run in runs]
    _check_alike(agents)
    try:
        env_spec = env_spec_of(agents[0])
        if env_spec.env not in ENVS:
            raise GCBError(f"its environment is {env_spec.env!r}; only {' and '.join(ENVS)} can be simulated here")
        renderer = SceneRenderer(env_spec.env, env_spec.options, clips)
    except GCBError as error:
        return Session(agents, None, f"the agent cannot be run: {error}".rstrip("."))
    return Session(agents, SimulatorPool(renderer, len(agents)), None)


def _check_alike(agents: Sequence[Agent]) -> None:
    """Raise an error unless all agents can act in one scene."""
    kinds = []
    for agent in agents:
        assert agent.run is not None, "load sets the agent's run"
        size = "×".join(map(str, agent.shapes.observation))
        kinds.append(f"{agent.run.path} acts in {agent.run.dataset.config.get('env')} on observations of {size}")
    if len({kind.partition(" acts in ")[2] for kind in kinds}) > 1:
        raise GCBError(f"{'; '.join(kinds)}: agents side by side need the same environment and observations")


def _describe(agent: Agent, name: str) -> dict[str, Any]:
    """Return what the page shows about a run."""
    path = agent.run.path if agent.run else Path()
    return {
        "run": name,
        "path": path.name if is_bundled(path) else str(path),
        "bundled": is_bundled(path),
        "method": agent.method.name,
        "summary": agent.method.summary,
        "steps": agent.step,
        "success": _success_rates(path),
    }


def _success_rates(run: Path) -> dict[str, float]:
    """Return the rates of the run's evaluation, none if its file is damaged."""
    try:
        return {mode: float(result["all"]["any_step"]["rate"]) for mode, result in read_results(run).items()}
    except (GCBError, KeyError, TypeError, ValueError):
        return {}
