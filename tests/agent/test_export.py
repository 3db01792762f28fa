"""An exported agent acts like the original: loaded from its directory, or as ONNX graphs without PyTorch."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from helpers.slide_env import ENV
from helpers.tiny import tiny_config, tiny_dataset

import gcb
import gcb.agent.export
from gcb.agent.export import export_run
from gcb.analysis.embed import open_run_data
from gcb.cli.main import main
from gcb.data import Dataset, write_dataset
from gcb.errors import GCBError
from gcb.evaluation.evaluate import evaluate_run
from gcb.runs.run_dir import Run
from gcb.training.trainer import train

TOLERANCE = 1e-5
"""Largest difference between a graph's output and the agent's, from another order of summation."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tiny_dataset()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, data: Dataset) -> Path:
    path = tmp_path_factory.mktemp("export")
    dataset = Dataset.from_arrays(**data.arrays(), config={"env": ENV, "options": {"check_actions": False}})
    stored = write_dataset(dataset, path / "data")
    train(tiny_config(steps=6, checkpoint_every=3), stored, path / "run", quiet=True)
    return path / "run"


def test_a_loaded_export_acts_alike(run: Path, data: Dataset, tmp_path: Path) -> None:
    evaluate_run(run, ["goal"], episodes=8, quiet=True, videos=False)
    export_run(run, tmp_path / "shared").rename(tmp_path / "moved")
    agent, other = gcb.load(run), gcb.load(tmp_path / "moved")
    np.testing.assert_array_equal(
        agent.act(data.frames[:4], goal=data.frames[9]), other.act(data.frames[:4], goal=data.frames[9])
    )
    assert sorted(os.listdir(tmp_path / "moved")) == [
        *("README.md", "checkpoint.json", "config.yaml", "eval.json", "run.json", "weights-00000006.safetensors")
    ]
    assert str(run.parent) not in (tmp_path / "moved" / "run.json").read_text()  # no paths of this machine
    assert evaluate_run(tmp_path / "moved", ["goal"], episodes=2, quiet=True)["goal"].step == 6


def test_an_export_of_an_export_lacks_the_same_dataset(run: Path, tmp_path: Path) -> None:
    again = export_run(export_run(run, tmp_path / "shared"), tmp_path / "again")
    assert Run(again).dataset == Run(tmp_path / "shared").dataset
    lacks = r"again comes without its dataset, [\d,]+ transitions named data; pass it with --data DATA"
    with pytest.raises(GCBError, match=lacks):
        open_run_data(Run(again))


def test_the_model_card_describes_the_agent(run: Path, tmp_path: Path) -> None:
    evaluate_run(run, ["goal"], episodes=8, quiet=True, videos=False)
    text = (export_run(run, tmp_path / "mover") / "README.md").read_text()
    results = json.loads((run / "eval.json").read_bytes())
    rates = [results["goal"]["all"][criterion] for criterion in ("any_step", "at_end", "declared")]
    cells = [f"{rate['rate']:.3f} [{rate['interval'][0]:.3f}, {rate['interval'][1]:.3f}]" for rate in rates]
    assert "| mode | task | at any step | at the end | when declared done | episodes | training steps |" in text
    assert f"| goal | all | {' | '.join(cells)} | 8 | 6 |" in text
    assert "never declares the task done" in text
    transitions = Run(run).dataset.transitions
    for part in (
        "# mover",
        'gcb.load("mover")',
        "32×32×3",
        ENV,
        f"{transitions} transitions",
        "6 steps",
        f"gcb {gcb.__version__}",
    ):
        assert part in text, part
    older = {"all": {name: rate for name, rate in results["goal"]["all"].items() if name != "declared"}, "tasks": {}}
    (run / "eval.json").write_text(json.dumps({"goal": older}))
    text = (export_run(run, tmp_path / "older") / "README.md").read_text()
    assert "| mode | task | at any step | at the end | episodes | training steps |" in text
    assert f"| goal | all | {' | '.join(cells[:2])} | 8 | None |" in text
    assert "declare" not in text
    (run / "eval.json").write_text(json.dumps({"goal": results["goal"], "strict": older}))
    text = (export_run(run, tmp_path / "mixed") / "README.md").read_text()
    assert f"| strict | all | {' | '.join(cells[:2])} | – | 8 | None |" in text
    (run / "eval.json").write_text(json.dumps({"goal": {"all": {"any_step": 1}, "tasks": {}}}))
    with pytest.raises(GCBError, match=r"eval\.json is damaged: goal\.all\.any_step is 1"):
        export_run(run, tmp_path / "damaged")
    (run / "eval.json").unlink()
    assert "Not evaluated" in (export_run(run, tmp_path / "unevaluated") / "README.md").read_text()


def test_an_export_cannot_resume_and_replaces_nothing(run: Path, data: Dataset, tmp_path: Path) -> None:
    shared = export_run(run, tmp_path / "shared")
    with pytest.raises(GCBError, match="has no state"):
        Run(shared).state()
    with pytest.raises(GCBError, match="already exists"):
        export_run(run, shared)
    with pytest.raises(GCBError, match="is not a directory"):
        export_run(tmp_path / "nowhere", tmp_path / "other")


def test_damage_is_detected(run: Path, tmp_path: Path) -> None:
    shared = export_run(run, tmp_path / "shared")
    weights = shared / "weights-00000006.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    with pytest.raises(GCBError, match="is damaged"):
        gcb.load(shared)


def test_a_failed_export_leaves_nothing(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(gcb.agent.export, "model_card", full)
    with pytest.raises(GCBError, match="No space left on device"):
        export_run(run, tmp_path / "shared")
    assert list(tmp_path.iterdir()) == []


def test_onnx_graphs_match_the_agent(run: Path, data: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="pip install 'gcb[onnx]'")
    pytest.importorskip("onnxscript", reason="pip install 'gcb[onnx]'")
    main(["export", str(run), "--out", str(tmp_path / "shared"), "--format", "onnx"])
    assert "policy_analogy.onnx" in " ".join(capsys.readouterr().out.split())
    agent, frames = gcb.load(run), data.frames
    for rows in (1, 5):
        initial_state, state, goal, before, after = (frames[at : at + rows] for at in (0, 3, 8, 12, 20))
        task = agent.start_task(initial_state, example=(before, after))
        wanted = {
            "phi": agent.phi(state, goal),
            "psi": agent.psi(state),
            "policy_goal": agent.act(state, goal=goal, initial_state=initial_state),
            "policy_analogy": task.act(state),
        }
        given = {"initial_state": initial_state, "state": state, "goal": goal, "before": before, "after": after}
        for name, expected in wanted.items():
            session = runtime.InferenceSession(str(tmp_path / "shared" / "onnx" / f"{name}.onnx"))
            inputs = {value.name: given[value.name] for value in session.get_inputs()}
            assert all(array.dtype == np.uint8 for array in inputs.values())
            (output,) = session.run(None, inputs)
            np.testing.assert_allclose(output, np.atleast_2d(expected), atol=TOLERANCE, rtol=TOLERANCE)


def test_missing_onnx_packages_are_reported(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gcb.agent.onnx.find_spec", lambda name: None)
    with pytest.raises(GCBError, match=r"onnx, onnxscript is not installed: pip install 'gcb\[onnx\]'"):
        export_run(run, tmp_path / "shared", onnx=True)
    assert list(tmp_path.iterdir()) == []
