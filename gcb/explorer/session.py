"""A loaded run: its agent, its simulators, its task index, and the answers to a visitor's requests."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gcb.agent.agent import Agent, Example, load
from gcb.analysis.embed import missing_embeddings, open_run_data
from gcb.envs import ENVS
from gcb.errors import GCBError
from gcb.evaluation.evaluate import env_spec_of
from gcb.explorer.choices import ByDataset, ByGoal, SceneChoice, TaskRequest
from gcb.explorer.display import data_url
from gcb.explorer.episode import Event, run_episode
from gcb.explorer.scene_renderer import RenderedScene, SceneRenderer
from gcb.explorer.simulators import SimulatorPair, SimulatorPool
from gcb.explorer.task_index import TaskIndex, build_index, draw_map
from gcb.runs.run_dir import read_results

NEIGHBOURS = 6


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
    """An agent with its simulators, if its environment can be simulated, and its task index once it is built."""

    agent: Agent
    simulators: SimulatorPool | None
    unavailable: str | None
    """Why there are no simulators, if so."""
    success: Mapping[str, float]
    """Success rate by mode of evaluation."""
    index: TaskIndex | None = None
    map: MapStatus = field(default_factory=MapStatus)

    def status(self) -> dict[str, Any]:
        """Describe the run for the page."""
        agent, tasks = self.agent, () if self.simulators is None else self.simulators.renderer.layout.tasks
        config = agent.run.dataset.config if agent.run else {}
        return {
            "method": agent.method.name,
            "summary": agent.method.summary,
            "steps": agent.step,
            "env": config.get("env"),
            "video": bool(config.get("options", {}).get("video")),
            "tasks": list(tasks),
            "supports_analogy": agent.method.supports_analogy,
            "unavailable": self.unavailable,
            "success": dict(self.success),
            "map": asdict(self.map),
        }

    def task_spec(self, request: TaskRequest) -> TaskSpec:
        """Render the requested task."""
        renderer, task = self.pool().renderer, request.task
        if isinstance(task, ByDataset):
            return self._dataset_task(request.scene, task)
        if isinstance(task, ByGoal):
            scene = renderer.scene_with_task(request.scene, task.name, task.drawer_after)
            return TaskSpec(scene, None, scene.before_url, scene.after_url, scene.label)
        example = renderer.example(request.scene, task)
        scene = renderer.scene_with_task(request.scene, task.name, task.drawer_after)
        return TaskSpec(scene, (example.before, example.after), example.before_url, example.after_url, example.label)

    def analyse(self, request: TaskRequest) -> dict[str, Any]:
        """Return the task's nearest neighbours in φ and, for methods with analogy arithmetic, the inferred goal."""
        spec, index = self.task_spec(request), self.task_index()
        own = request.task.index if isinstance(request.task, ByDataset) else None
        answer: dict[str, Any] = {"neighbours": index.neighbours(spec.pair, NEIGHBOURS, own), "inferred_goal": None}
        if index.has_arithmetic:
            scene = spec.scene.scene
            pose = np.array([*scene.cabinet_xy, scene.cabinet_yaw])
            part, row = index.inferred_goal(spec.scene.before, spec.pair)
            score = index.score(part, row, spec.scene.hidden_goal, pose, scene.task == "button")
            answer["inferred_goal"] = {"index": row, "part": part, **score}
        return answer

    def prepare_episode(self, request: TaskRequest) -> TaskSpec:
        """Return the task of an episode, if the method supports it and the queue is not full."""
        if not isinstance(request.task, ByGoal) and not self.agent.method.supports_analogy:
            raise GCBError(f"{self.agent.method.name} cannot be conditioned on an example; use a goal image.")
        spec = self.task_spec(request)
        self.pool().check_queue()
        return spec

    def run_episode(self, simulators: SimulatorPair, spec: TaskSpec) -> Iterator[Event]:
        """Yield the events of an episode."""
        goal = spec.scene.after if spec.example is None else None
        return run_episode(self.agent, simulators, spec.scene, goal=goal, example=spec.example)

    def map_points(self) -> dict[str, Any]:
        """Return the map: positions in the unit square, and the critic's value, name and label of each task."""
        index = self.task_index()
        if index.positions is None:
            raise NotAvailable(f"the map is not ready: {self.map.detail}.")
        low, high = index.positions.min(0), index.positions.max(0)
        x, y = ((index.positions - low) / (high - low)).astype(float).round(4).T.tolist()
        value = index.tasks.value.astype(float).round(4).tolist()
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


def load_session(run: Path, clips: Path | None, device: str) -> Session:
    """Load the agent of a run and start its simulators; the task index is built later."""
    agent = load(run, device)
    try:
        env_spec = env_spec_of(agent)
        if env_spec.env not in ENVS:
            raise GCBError(f"its environment is {env_spec.env!r}; only {' and '.join(ENVS)} can be simulated here")
        renderer = SceneRenderer(env_spec.env, env_spec.options, clips)
    except GCBError as error:
        return Session(agent, None, f"the agent cannot be run: {error}".rstrip("."), _success_rates(run))
    return Session(agent, SimulatorPool(renderer), None, _success_rates(run))


def _success_rates(run: Path) -> dict[str, float]:
    """Return the rates of the run's evaluation, none if its file is damaged."""
    try:
        return {mode: float(result["all"]["any_step"]["rate"]) for mode, result in read_results(run).items()}
    except (GCBError, KeyError, TypeError, ValueError):
        return {}
