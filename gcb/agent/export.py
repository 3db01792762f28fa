"""An agent to give away: a folder of safetensors, configuration and a model card, or its networks as ONNX.

    DIR/README.md              the model card: what it was trained on, how well it does, how to load it
    DIR/config.yaml  run.json  eval.json
    DIR/checkpoint.json        names the weights and their SHA-256
    DIR/weights-<step>.safetensors
    DIR/onnx/phi.onnx  psi.onnx  policy_by_goal.onnx  policy_by_example.onnx     if asked for

The folder is a run without what going on with the training would need: `gcb.load` and `gcb eval` take it.
"""

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

import gcb
from gcb.agent.agent import Agent, load
from gcb.errors import GCBError
from gcb.methods import METHODS
from gcb.runs.run_dir import CHECKPOINT, CONFIG, EVAL, RECORD, Checkpoint, Run, read_results
from gcb.utils.dataclass_io import to_dict
from gcb.utils.files import read_json, staged_dir, write_atomically, write_json
from gcb.utils.progress import duration

CARD = "README.md"


def export_run(run: str | os.PathLike[str], out: str | os.PathLike[str], *, onnx: bool = False) -> Path:
    """Write the agent of a run to a new folder, whole or not at all; with `onnx` also as graphs (`gcb.agent.onnx`)."""
    agent = load(run)
    folder = agent.run
    assert folder is not None, "load gives the agent its run"
    place = Path(os.path.abspath(out))
    if place.exists():
        raise GCBError(f"{place} is there already; name a new folder")
    with staged_dir(place) as staging:
        _fill(folder, staging)
        if onnx:
            from gcb.agent.onnx import write_graphs

            write_graphs(agent, staging / "onnx")
        write_atomically(staging / CARD, model_card(agent, place.name, onnx).encode())
    return place


def _fill(run: Run, folder: Path) -> None:
    """The files of a run that using it needs; of its dataset the name, not its place on this machine."""
    content, checkpoint = run.weights_file()
    entry = checkpoint.weights
    path = run.dataset.path
    data = replace(run.dataset, path=None, name=Path(path).name if path else None)
    write_atomically(folder / entry.name, content)
    write_atomically(folder / CONFIG, (run.path / CONFIG).read_bytes())
    write_json(folder / RECORD, {**read_json(run.path / RECORD), "data": to_dict(data)})
    if results := read_results(run.path):
        write_json(folder / EVAL, results)
    write_json(folder / CHECKPOINT, to_dict(replace(checkpoint, state=None)))


def model_card(agent: Agent, name: str, onnx: bool = False) -> str:
    """What a stranger must know of an agent, in Markdown."""
    run = agent.run
    assert run is not None, "a card needs a run"
    checkpoint = run.checkpoint()
    assert checkpoint is not None, "an agent that was loaded has one"
    head = yaml.safe_dump({"library_name": "gcb", "tags": ["reinforcement-learning", "goal-conditioned", "offline"]})
    parts = ["---", head.strip(), "---", f"# {name}", "", *_summary(agent, checkpoint), "", "## Success", ""]
    parts += [*_success(read_results(run.path)), "", "## Use", "", *_use(agent, name, onnx), "", "## Made with", ""]
    parts += [f"- {line}" for line in _versions(run)]
    return "\n".join([*parts, ""])


def _summary(agent: Agent, checkpoint: Checkpoint) -> Iterator[str]:
    """What it is and what it was trained on."""
    run = agent.run
    assert run is not None, "a card needs a run"
    data, method = run.dataset, METHODS[run.config.method]
    world = data.config.get("env", "a world that the dataset does not name")
    shape = "×".join(map(str, agent.shapes.observation))
    kind = f"images of {shape}" if len(agent.shapes.observation) == 3 else f"vectors of {shape} numbers"
    told = "a goal, or an example (s_a, g_a) of what to do" if method.supports_analogy else "a goal"
    yield f"A policy that acts on {kind}, in {agent.shapes.action} dimensions between -1 and 1, and is told by {told}."
    yield "It has learned from a fixed dataset and knows what that shows: its world, its camera, its tasks."
    yield ""
    rows = {
        "method": f"{method.name}: {method.summary} ({method.paper})",
        "env": str(world),
        "dataset": f"{data.transitions:,} transitions{_collected(data.config)}",
        "its fingerprint": data.fingerprint,
        "training": f"{checkpoint.step:,} steps in {duration(checkpoint.seconds)}, seed {run.config.seed}",
    }
    yield from ("| | |", "|---|---|")
    yield from (f"| {key} | {value} |" for key, value in rows.items())


def _collected(config: Mapping[str, Any]) -> str:
    """How the dataset came about, if it says so."""
    if "source" in config:
        return f", imported from {config['source'].get('name')}"
    return f" of an expert with noise {config['noise']:g}, seed {config['seed']}" if "noise" in config else ""


def _success(results: Mapping[str, Any]) -> Iterator[str]:
    """The evaluations' table, with the intervals."""
    if not results:
        yield "Not measured. `gcb eval` does it."
        return
    yield "Share of episodes with 95 % intervals, on seeds that no dataset uses; told by a goal, or by an example pair"
    yield "from a strictly or a loosely analogous scene. Actions were drawn from the policy: `act(…, rng=generator)`."
    yield from (
        "",
        "| told by | task | at any step | at the end | episodes | after steps |",
        "|---|---|---|---|---|---|",
    )
    for mode, found in results.items():
        tasks = {"all": found["all"], **(found["tasks"] if len(found["tasks"]) > 1 else {})}
        for task, rates in tasks.items():
            cells = [_rate(rates[at]) for at in ("any_step", "at_end")]
            yield f"| {mode} | {task} | {cells[0]} | {cells[1]} | {rates['any_step']['of']} | {found.get('step')} |"


def _rate(entry: Mapping[str, Any]) -> str:
    low, high = entry["interval"]
    return f"{entry['rate']:.3f} [{low:.3f}, {high:.3f}]"


def _use(agent: Agent, name: str, onnx: bool) -> Iterator[str]:
    yield from ("```python", "import gcb", "", f'agent = gcb.load("{name}")')
    yield "action = agent.act(observation, goal=goal)"
    if agent.method.supports_analogy:
        yield "action = agent.act(observation, example=(before, after))"
    yield from ("```", "")
    yield "Loading executes nothing in this folder: the weights are safetensors, the rest is YAML and JSON."
    if onnx:
        yield "`onnx/` has the networks for ONNX Runtime and the like; images go in as uint8, channels last."


def _versions(run: Run) -> Iterator[str]:
    yield f"gcb {run.gcb_version} (training), {gcb.__version__} (export)"
    yield f"torch {version('torch')}, Python {platform.python_version()}"
    yield f"every setting is in {CONFIG}"
