"""What can be shown of a loaded run, and the answers to what a visitor asks."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gcb.agent.agent import Agent, Example, load
from gcb.analysis.embed import missing_embeddings
from gcb.data import open_dataset
from gcb.envs import ENVS
from gcb.errors import GCBError
from gcb.evaluation.evaluate import env_spec_of
from gcb.explorer.choices import ByDataset, ByExample, ByGoal, SceneChoice, TaskRequest
from gcb.explorer.episode import Event, play
from gcb.explorer.errors import NotThere
from gcb.explorer.images import data_url
from gcb.explorer.prepare import draw_map, prepare
from gcb.explorer.scene_renderer import SceneRenderer, View
from gcb.explorer.simulators import SimulatorPair, SimulatorPool
from gcb.explorer.task_index import TaskIndex, Wanted
from gcb.runs.run_dir import read_results

NEIGHBOURS = 6


@dataclass(frozen=True, eq=False)
class TaskSpec:
    """What the agent is asked to do, and by which pictures."""

    here: View
    example: Example | None
    """(s_a, g_a), or None if it is told by the scene's own goal image."""
    before: str
    """For the visitor, as the address of a picture."""
    after: str
    words: str

    @property
    def pair(self) -> Example:
        """The task as a pair: for a goal image, the scene and its goal."""
        return self.example or (self.here.before, self.here.after)


@dataclass
class MapStatus:
    """How far the map is. "neighbours": the tasks are embedded, the map is being drawn."""

    state: Literal["preparing", "neighbours", "ready", "unavailable"] = "preparing"
    what: str = "waiting for the agent"
    done: float = 0.0


@dataclass
class Session:
    """An agent, the world it acts in if that can be simulated, and its atlas once that is made."""

    agent: Agent
    studio: SceneRenderer | None
    theatre: SimulatorPool | None
    no_play: str | None
    """Why nothing can be acted out, if so."""
    success: Mapping[str, float]
    """By mode of evaluation."""
    atlas: TaskIndex | None = None
    map: MapStatus = field(default_factory=MapStatus)

    def facts(self) -> dict[str, Any]:
        """What the page says about the run."""
        agent, tasks = self.agent, () if self.studio is None else self.studio.layout.tasks
        config = agent.run.record["data"].get("config", {}) if agent.run else {}
        return {
            "method": agent.method.name,
            "summary": agent.method.summary,
            "steps": agent.step,
            "env": config.get("env"),
            "video": bool(config.get("options", {}).get("video")),
            "tasks": list(tasks),
            "supports_analogy": agent.method.supports_analogy,
            "no_play": self.no_play,
            "success": dict(self.success),
            "map": asdict(self.map),
        }

    def scene(self, choice: SceneChoice) -> View:
        return self._studio().scene(choice)

    def brief(self, asked: TaskRequest) -> TaskSpec:
        """What the agent is asked to do; an error if it cannot be asked so."""
        studio, told = self._studio(), asked.told
        if isinstance(told, ByExample):
            there, here = studio.there(asked.scene, told), studio.here(asked.scene, told.task, told.after)
            return TaskSpec(here, (there.before, there.after), there.large_before, there.large_after, there.words)
        if isinstance(told, ByGoal):
            here = studio.here(asked.scene, told.task, told.after)
            return TaskSpec(here, None, here.large_before, here.large_after, here.words)
        return self._brief_by_data(asked.scene, told)

    def understand(self, asked: TaskRequest) -> dict[str, Any]:
        """The tasks that the agent finds alike, and the goal that it infers."""
        brief, atlas = self.brief(asked), self._atlas()
        own = asked.told.index if isinstance(asked.told, ByDataset) else None
        found: dict[str, Any] = {"neighbours": atlas.neighbours(brief.pair, NEIGHBOURS, own), "inferred": None}
        if atlas.has_arithmetic:
            found["inferred"] = atlas.inferred(brief.here.before, brief.pair, _wanted(brief.here))
        return found

    def ask(self, asked: TaskRequest) -> TaskSpec:
        """The brief for an episode, if the agent can be told so and there is room for another visitor."""
        brief, method = self.brief(asked), self.agent.method
        if brief.example is not None and not method.supports_analogy:
            raise GCBError(f"{method.name} cannot be told what to do by an example; tell it by a goal image.")
        self.stages().check()
        return brief

    def stages(self) -> SimulatorPool:
        """Where episodes are played."""
        if self.theatre is None:
            raise NotThere(f"{self.no_play}.")
        return self.theatre

    def play(self, stage: SimulatorPair, brief: TaskSpec) -> Iterator[Event]:
        """The events of an episode."""
        here = brief.here
        if brief.example is None:
            return play(self.agent, stage, here, goal=here.after)
        return play(self.agent, stage, here, example=brief.example)

    def picture(self, index: int, part: Literal["state", "goal"]) -> np.ndarray:
        """s or g of a task of the dataset."""
        return self._atlas().pair(index)[part == "goal"]

    def points(self) -> dict[str, Any]:
        """The map: places in the unit square, the critic's value, the task's name and its words."""
        atlas = self._atlas()
        if atlas.places is None:
            raise NotThere(f"the map is not there: {self.map.what}.")
        low, high = atlas.places.min(0), atlas.places.max(0)
        x, y = ((atlas.places - low) / (high - low)).astype(float).round(4).T.tolist()
        value = atlas.tasks.value.astype(float).round(4).tolist()
        return {"x": x, "y": y, "value": value, "task": atlas.tasks.task.tolist(), "words": atlas.words}

    def prepare_map(self, data: Path | None) -> None:
        """Embed tasks of the dataset and draw the map; whatever is in the way is said in `map`."""
        try:
            if reason := missing_embeddings(self.agent).get("phi"):
                raise GCBError(f"{reason}: there is nothing to draw a map of")
            self.map.what = "opening the dataset"
            dataset = open_dataset(_data_folder(self.agent, data))
            if dataset.frames.ndim != 4 or dataset.frames.shape[1:] != self.agent.shapes.observation:
                raise GCBError(f"{dataset.path} has frames {dataset.frames.shape[1:]}, which cannot be shown")
            self.atlas = prepare(self.agent, dataset, self._report)
            self.map = MapStatus("neighbours", "drawing the map", 1.0)
            draw_map(self.atlas)
            self.map = MapStatus("ready", "", 1.0)
        except GCBError as error:
            state = "ready" if self.atlas is not None and self.atlas.places is not None else "unavailable"
            self.map = MapStatus(state, str(error).rstrip("."), self.map.done)

    def _report(self, what: str, done: float) -> None:
        self.map = MapStatus("preparing", what, min(1.0, done))

    def _brief_by_data(self, choice: SceneChoice, told: ByDataset) -> TaskSpec:
        atlas, studio = self._atlas(), self._studio()
        before, after = atlas.pair(told.index)
        task = str(atlas.tasks.task[told.index])
        known = task if task in studio.layout.tasks else None
        here = studio.here(choice, known, atlas.after(told.index) if known == "drawer" else None)
        return TaskSpec(
            here, (before, after), data_url(before, exact=True), data_url(after, exact=True), atlas.words[told.index]
        )

    def _studio(self) -> SceneRenderer:
        if self.studio is None:
            raise NotThere(f"{self.no_play}.")
        return self.studio

    def _atlas(self) -> TaskIndex:
        if self.atlas is None:
            raise NotThere(f"the dataset's tasks are not at hand: {self.map.what}.")
        return self.atlas


def load_session(run: Path, clips: Path | None, device: str) -> Session:
    """The agent of a run with its world; the atlas is made later."""
    agent = load(run, device)
    try:
        env_spec = env_spec_of(agent)
        if env_spec.env not in ENVS:
            raise GCBError(f"its world is {env_spec.env!r}; it can be only in {' or '.join(ENVS)}")
        studio = SceneRenderer(env_spec.env, env_spec.options, clips)
    except GCBError as error:
        return Session(agent, None, None, f"the agent cannot be watched: {error}".rstrip("."), _success(run))
    return Session(agent, studio, SimulatorPool(studio), None, _success(run))


def _success(run: Path) -> dict[str, float]:
    """Rates of the run's evaluation; a damaged file is no reason to show nothing."""
    try:
        return {mode: float(result["all"]["any_step"]["rate"]) for mode, result in read_results(run).items()}
    except (GCBError, KeyError, TypeError, ValueError):
        return {}


def _data_folder(agent: Agent, data: Path | None) -> Path:
    stored = agent.run.record["data"].get("path") if agent.run else None
    if data is not None:
        return data
    if stored is None:
        raise GCBError("the run does not know where its dataset lies; say it with --data")
    if not Path(stored).is_dir():
        raise GCBError(f"the run's dataset is no longer in {stored}; say with --data where it lies now")
    return Path(stored)


def _wanted(view: View) -> Wanted:
    scene = view.scene
    return Wanted(view.hidden_after, np.array([*scene.cabinet_xy, scene.cabinet_yaw]), scene.task == "button")
