"""Export an agent for sharing: safetensors weights, configuration and a model card, optionally ONNX graphs.

    DIR/README.md              the model card: training data, success rates, how to load it
    DIR/config.yaml  run.json  eval.json
    DIR/checkpoint.json        names the weights and their SHA-256
    DIR/weights-<step>.safetensors
    DIR/onnx/phi.onnx  psi.onnx  policy_goal.onnx  policy_analogy.onnx     on request

The directory is a run that cannot resume training; `gcb.load` and `gcb eval` accept it.
"""

import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

import gcb
from gcb.agent.agent import Agent, load
from gcb.agent.hub import CARD, PREFIX, check_installed, upload
from gcb.errors import GCBError, utf8
from gcb.methods import METHODS
from gcb.runs.evaluations import read_results
from gcb.runs.run_dir import CHECKPOINT, CONFIG, EVAL, RECORD, Checkpoint, Run
from gcb.utils.dataclass_io import to_dict
from gcb.utils.files import staged_dir, write_atomically, write_json
from gcb.utils.progress import duration
from gcb.utils.statistics import CRITERIA, Criterion
from gcb.utils.text_files import read_json


def export_run(run: str | os.PathLike[str], out: str | os.PathLike[str], *, onnx: bool = False) -> Path:
    """Write the agent of a run to a new directory, atomically; with `onnx` also as graphs (`gcb.agent.onnx`)."""
    return export_agent(load(run), out, onnx=onnx)


def export_agent(agent: Agent, out: str | os.PathLike[str], *, onnx: bool = False, address: str | None = None) -> Path:
    """Write an agent to a new or empty directory, atomically. The model card says how to load it, from `address`."""
    if agent.run is None:
        raise GCBError(
            "the agent was not loaded from a run, so its settings are not known; accepted: one from gcb.load"
        )
    path = Path(os.path.abspath(out))
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise GCBError(f"{path} already exists; name a new directory")
    with staged_dir(path) as staging:
        step = _copy_run(agent.run, staging)
        if step != agent.step:
            raise GCBError(
                f"{agent.run.path} has been trained on, from step {agent.step} to {step}; load the agent again"
            )
        if onnx:
            from gcb.agent.onnx import write_graphs

            write_graphs(agent, staging / "onnx")
        write_atomically(staging / CARD, utf8(model_card(agent, address or path.name, onnx)))
    return path


def push_agent(agent: Agent, repo_id: str, **options: Any) -> str:
    """Upload an agent to the Hugging Face Hub (`gcb.agent.hub.upload`); return the address of the commit."""
    check_installed()
    with TemporaryDirectory() as directory:
        return upload(export_agent(agent, directory, address=f"{PREFIX}{repo_id}"), repo_id, **options)


def _copy_run(run: Run, out: Path) -> int:
    """Copy the files that are needed to use a run, with the dataset's name instead of its path; return its steps."""
    content, checkpoint = run.weights_file()
    entry = checkpoint.weights
    path = run.dataset.path
    data = replace(run.dataset, path=None, name=Path(path).name if path else run.dataset.name)
    write_atomically(out / entry.name, content)
    write_atomically(out / CONFIG, (run.path / CONFIG).read_bytes())
    write_json(out / RECORD, {**read_json(run.path / RECORD), "data": to_dict(data)})
    if results := read_results(run.path):
        write_json(out / EVAL, results)
    write_json(out / CHECKPOINT, to_dict(replace(checkpoint, state=None)))
    return checkpoint.step


def model_card(agent: Agent, name: str, onnx: bool = False) -> str:
    """Return the model card of an agent, in Markdown."""
    run = agent.run
    assert run is not None, "a model card needs a run"
    checkpoint = run.checkpoint()
    assert checkpoint is not None, "a loaded agent has a checkpoint"
    head = yaml.safe_dump({"library_name": "gcb", "tags": ["reinforcement-learning", "goal-conditioned", "offline"]})
    parts = [
        "---",
        head.strip(),
        "---",
        f"# {name.removeprefix(PREFIX)}",
        "",
        *_summary(agent, checkpoint),
        "",
        "## Success",
        "",
    ]
    parts += [*_success(read_results(run.path)), "", "## Use", "", *_use(agent, name, onnx), "", "## Versions", ""]
    parts += [f"- {line}" for line in _versions(run)]
    return "\n".join([*parts, ""])


def _summary(agent: Agent, checkpoint: Checkpoint) -> Iterator[str]:
    """Yield a description of the agent and its training data."""
    run = agent.run
    assert run is not None, "a model card needs a run"
    data, method = run.dataset, METHODS[run.config.method]
    env = data.config.get("env", "not recorded in the dataset")
    shape = "×".join(map(str, agent.shapes.observation))
    kind = f"{shape} images" if len(agent.shapes.observation) == 3 else f"vectors of size {shape}"
    task = "a goal, or an example pair (s_a, g_a)" if method.supports_analogy else "a goal"
    yield f"A policy for {kind} and {agent.shapes.action} action dimensions in [-1, 1], conditioned on {task}."
    yield "It was trained offline and is only expected to work in the environment, camera and tasks of its dataset."
    yield ""
    rows = {
        "method": f"{method.name}: {method.summary} ({method.paper})",
        "env": str(env),
        "dataset": f"{data.transitions:,} transitions{_collected(data.config)}",
        "dataset fingerprint": data.fingerprint,
        "training": f"{checkpoint.step:,} steps in {duration(checkpoint.seconds)}, seed {run.config.seed}",
    }
    yield from ("| | |", "|---|---|")
    yield from (f"| {key} | {value} |" for key, value in rows.items())


def _collected(config: Mapping[str, Any]) -> str:
    """Return how the dataset was made, if it is recorded."""
    if "source" in config:
        source = config["source"]
        return f", imported from {source if isinstance(source, str) else source.get('name')}"
    if "noise" not in config:
        return ""
    return f" of the scripted expert with noise {config['noise']:g}, seed {config.get('seed')}"


def _success(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table of evaluations, with intervals."""
    if not results:
        yield "Not evaluated yet; run `gcb eval`."
        return
    yield "Success rates with 95 % intervals, on seeds that no dataset uses, conditioned on a goal or an example pair"
    yield "from a strictly, loosely or freely analogous scene. Actions are sampled from the policy:"
    yield "`agent.start_task(…).step(observation, noise)`."
    criteria = _criteria(results)
    if "declared" in criteria:
        yield "If the agent never declares the task done, it is judged at the end of the episode."
    columns = ("mode", "task", *(CRITERIA[criterion] for criterion in criteria), "episodes", "training steps")
    yield from ("", f"| {' | '.join(columns)} |", "|" + "---|" * len(columns))
    for mode, result in results.items():
        tasks = {"all": result["all"], **(result["tasks"] if len(result["tasks"]) > 1 else {})}
        for task, rates in tasks.items():
            try:
                cells = [mode, task, *(_rate(rates, criterion) for criterion in criteria)]
                cells += [str(rates["any_step"]["of"]), str(result.get("step"))]
            except (LookupError, TypeError, ValueError) as error:
                raise GCBError(f"eval.json: {mode} is damaged ({error!r})") from error
            yield f"| {' | '.join(cells)} |"


def _criteria(results: Mapping[str, Any]) -> list[Criterion]:
    """Return the criteria that were measured: older evaluations lack "declared"."""
    declared = any("declared" in result["all"] for result in results.values())
    return [criterion for criterion in CRITERIA if criterion != "declared" or declared]


def _rate(rates: Mapping[str, Any], criterion: Criterion) -> str:
    if criterion == "declared" and criterion not in rates:
        return "–"
    low, high = rates[criterion]["interval"]
    return f"{rates[criterion]['rate']:.3f} [{low:.3f}, {high:.3f}]"


def _use(agent: Agent, name: str, onnx: bool) -> Iterator[str]:
    yield from ("```python", "import gcb", "", f'agent = gcb.load("{name}")')
    yield "action = agent.act(observation, goal=goal)"
    if agent.method.supports_analogy:
        yield "action = agent.act(observation, example=(before, after))"
    yield from ("```", "")
    yield "Loading executes no code from this directory: the weights are safetensors, the rest is YAML and JSON."
    if onnx:
        yield "`onnx/` holds the networks for ONNX Runtime; images are uint8 with channels last."


def _versions(run: Run) -> Iterator[str]:
    yield f"gcb {run.gcb_version} (training), {gcb.__version__} (export)"
    yield f"torch {version('torch')}, Python {platform.python_version()}"
    yield f"all settings are in {CONFIG}"
