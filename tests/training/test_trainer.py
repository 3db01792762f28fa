"""The training loop: a resumed run matches an uninterrupted one, and a run that diverges says where."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.tiny import tiny_config, tiny_dataset
from torch import Tensor

import gcb.training.clock
import gcb.training.collapse
import gcb.training.learner
import gcb.training.trainer
from gcb.data import Batch, Dataset, write_dataset
from gcb.errors import GCBError
from gcb.methods import METHODS, MethodOutput
from gcb.methods.bc import GoalAgnosticBC
from gcb.runs.config import read_config, write_config
from gcb.runs.run_dir import Run
from gcb.training.collapse import CollapseWarning
from gcb.training.learner import Learner
from gcb.training.loggers import read_metrics
from gcb.training.trainer import Trainer, TrainResult, train
from gcb.utils.files import directory_lock


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tiny_dataset()


def weights(path: Path) -> dict[str, Tensor]:
    return Run(path).weights()[0]


def assert_equal_runs(actual: Path, expected: Path) -> None:
    """Compare bit for bit: networks, optimizer, generators, and all metrics except the time."""
    first, second = weights(actual), weights(expected)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    states = [Run(path).state() for path in (actual, expected)]
    for part in ("sampler", "augmenter", "loss_monitor"):
        assert states[0][part] == states[1][part]
    assert torch.equal(states[0]["torch"], states[1]["torch"])
    moments = [state["optimizer"]["state"] for state in states]
    for index, moment in moments[0].items():
        assert torch.equal(moment["exp_avg_sq"], moments[1][index]["exp_avg_sq"])
    rows = [[{**row, "seconds": 0} for row in read_metrics(path)] for path in (actual, expected)]
    assert rows[0] == rows[1]


class Stopped(Exception):
    pass


def stop_after(monkeypatch: pytest.MonkeyPatch, steps: int) -> None:
    """Make the learner raise after some steps, without a checkpoint, as a kill would."""
    real, taken = Learner.step, []

    def step(self: Learner, batch: Batch, number: int) -> dict[str, Tensor]:
        if len(taken) == steps:
            raise Stopped
        taken.append(number)
        return real(self, batch, number)

    monkeypatch.setattr(Learner, "step", step)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_resumed_twice_matches_an_uninterrupted_one(
    tmp_path: Path, data: Dataset, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(method, lr_schedule="cosine", warmup_steps=3, max_grad_norm=1.0)
    train(config, data, tmp_path / "whole", quiet=True)
    for steps in (7, 6):  # stops after 7 of 12 with a checkpoint at 5, then after 11 with one at 10
        with monkeypatch.context() as patch:
            stop_after(patch, steps)
            with pytest.raises(Stopped):
                train(config, data, tmp_path / "parts", quiet=True)
    result = train(config, data, tmp_path / "parts", quiet=True)
    assert (result.start_step, result.step) == (10, 12)
    assert_equal_runs(tmp_path / "whole", tmp_path / "parts")
    assert [row["step"] for row in read_metrics(tmp_path / "parts")] == [4, 8, 12]


def test_the_same_seed_gives_the_same_run(tmp_path: Path, data: Dataset) -> None:
    torch.manual_seed(77)
    before = torch.get_rng_state()
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        train(tiny_config(seed=seed), data, tmp_path / name, quiet=True)
    assert torch.equal(torch.get_rng_state(), before)  # the caller's generator is untouched
    assert_equal_runs(tmp_path / "one", tmp_path / "same")
    one, other = weights(tmp_path / "one"), weights(tmp_path / "other")
    name = "iql.policies.goal.value.0.weight"
    assert not torch.equal(one[name], other[name])


COMMAND = """
import os, sys
os.fsync = lambda descriptor: None
from gcb.runs.config import read_config
from gcb.training.trainer import train
train(read_config(sys.argv[1]), sys.argv[2], sys.argv[3], quiet=True)
"""


def start(path: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", COMMAND, *(str(path / name) for name in ("config.yaml", "data", "run"))]
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE)


@pytest.fixture
def long_run(tmp_path: Path, data: Dataset) -> Path:
    """A directory with a dataset, the configuration of a run of a few seconds, and that run, uninterrupted."""
    write_dataset(data, tmp_path / "data")
    config = tiny_config(steps=60, checkpoint_every=3, threads=1)
    write_config(tmp_path / "config.yaml", config)
    train(config, tmp_path / "data", tmp_path / "whole", quiet=True)
    return tmp_path


def wait_for_checkpoint(process: "subprocess.Popen[bytes]", run: Path, beyond: int) -> int:
    """Return the step of the first checkpoint beyond a step."""
    until = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < until:
        if (run / "checkpoint.json").exists():
            step = json.loads((run / "checkpoint.json").read_bytes())["step"]
            if step > beyond:
                return step
        time.sleep(0.001)
    pytest.fail("the run ended before it could be stopped")


@pytest.mark.filterwarnings("ignore:φ has collapsed")  # it is too small to learn anything
def test_interrupted_and_killed_runs_resume_from_their_checkpoint(long_run: Path) -> None:
    process = start(long_run)
    wait_for_checkpoint(process, long_run / "run", 0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert b"KeyboardInterrupt" in errors
    interrupted = Run(long_run / "run").checkpoint()
    assert interrupted is not None
    assert 3 <= interrupted.step < 60

    process = start(long_run)
    step = wait_for_checkpoint(process, long_run / "run", interrupted.step)
    process.kill()
    process.communicate()
    killed = Run(long_run / "run").checkpoint()
    assert killed is not None
    assert step <= killed.step < 60

    train(read_config(long_run / "config.yaml"), long_run / "data", long_run / "run", quiet=True)
    assert_equal_runs(long_run / "whole", long_run / "run")


def test_a_finished_run_is_left_unchanged(tmp_path: Path, data: Dataset) -> None:
    train(tiny_config("gcbc"), data, tmp_path / "run", quiet=True)
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}
    result = train(tiny_config("gcbc"), data, tmp_path / "run", quiet=True)
    assert result == TrainResult(tmp_path / "run", 12, result.seconds, start_step=12)
    assert before == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").iterdir()}


def test_the_time_limit_applies_at_a_checkpoint(tmp_path: Path, data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    now, real = [0.0], Learner.step

    def step(self: Learner, batch: Batch, number: int) -> dict[str, Tensor]:
        now[0] += 2.0
        return real(self, batch, number)

    monkeypatch.setattr(Learner, "step", step)
    monkeypatch.setattr(gcb.training.clock.time, "monotonic", lambda: now[0])
    config = tiny_config("gcbc", minutes=9 / 60)
    result = train(config, data, tmp_path / "run", quiet=True)
    assert (result.step, result.seconds) == (5, 10.0)
    assert train(config, data, tmp_path / "run", quiet=True).start_step == 5


def test_training_time_adds_up_over_calls(tmp_path: Path, data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny_config("gcbc")
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        with pytest.raises(Stopped):
            train(config, data, tmp_path / "run", quiet=True)
    kept = Run(tmp_path / "run").checkpoint()
    assert kept is not None
    assert train(config, data, tmp_path / "run", quiet=True).seconds > kept.seconds > 0


class Breaking(GoalAgnosticBC):
    """A method whose loss diverges at step 8."""

    name = "breaking"
    value = float("nan")
    steps = 0

    def compute_loss(self, batch: Batch) -> MethodOutput:
        output = super().compute_loss(batch)
        type(self).steps += 1
        if self.steps == 8:
            output.logs["own_loss"] = torch.tensor(self.value)
            output.loss = output.loss + self.value
        return output


@pytest.mark.parametrize(
    ("value", "shown"), [(float("nan"), "nan"), (float("inf"), "inf"), (1e7, r"1e\+07 .*max_loss")]
)
def test_a_diverging_run_names_the_step(
    tmp_path: Path, data: Dataset, monkeypatch: pytest.MonkeyPatch, value: float, shown: str
) -> None:
    monkeypatch.setitem(METHODS, "breaking", Breaking)
    monkeypatch.setattr(Breaking, "value", value)
    monkeypatch.setattr(Breaking, "steps", 0)
    with pytest.raises(GCBError, match=f"representation_loss is {shown.split()[0]} at step 8") as error:
        train(tiny_config("breaking"), data, tmp_path / "run", quiet=True)
    assert "step 5" in str(error.value)
    assert Run(tmp_path / "run").weights()[1].step == 5


def test_another_dataset_is_refused(tmp_path: Path, data: Dataset) -> None:
    train(tiny_config("gcbc"), data, tmp_path / "run", quiet=True)
    with pytest.raises(GCBError, match="dataset's fingerprint is"):
        train(tiny_config("gcbc"), tiny_dataset(seed=1), tmp_path / "run", quiet=True)
    with pytest.raises(GCBError, match=r"shapes.observation is \[32, 32, 3\].*\[40, 40, 3\]"):
        train(tiny_config("gcbc"), tiny_dataset(size=40), tmp_path / "run", quiet=True)
    with pytest.raises(GCBError, match=r"shapes.action is 2.* 3"):
        train(tiny_config("gcbc"), tiny_dataset(actions=3), tmp_path / "run", quiet=True)
    with pytest.raises(GCBError, match=r"steps is 12.* 13"):
        train(tiny_config("gcbc", steps=13), data, tmp_path / "run", quiet=True)


def test_unsuitable_data_is_refused_before_a_directory_is_created(tmp_path: Path, data: Dataset) -> None:
    for wrong, message in (
        (tmp_path / "nowhere", "nowhere"),
        (Dataset.from_arrays(np.zeros((3, 8, 8, 3), np.float32), np.zeros((2, 2), np.float32), [2]), "accepted: uint8"),
        (Dataset.from_arrays(np.zeros((3, 8, 8, 3), np.uint8), np.zeros((2, 2), int), [2]), "floating point"),
        (tiny_dataset(size=16), "too small for this encoder"),
        (Dataset.from_arrays(data.frames, data.actions, data.episode_length), "have no goal of their own"),
    ):
        with pytest.raises(GCBError, match=message):
            train(tiny_config("gcbc"), wrong, tmp_path / "run", quiet=True)
    with pytest.raises(GCBError, match=r"device is 'cuda'.* cpu"):
        train(tiny_config("gcbc", device="cuda"), data, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_damaged_dataset_is_refused_before_a_directory_is_created(tmp_path: Path, data: Dataset) -> None:
    write_dataset(data, tmp_path / "data")
    with open(tmp_path / "data" / "frames.npy", "r+b") as frames:
        frames.seek(5000)
        frames.write(b"\0\1\2\3")
    with pytest.raises(GCBError, match=r"frames\.npy"):
        train(tiny_config("gcbc"), tmp_path / "data", tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_locked_run_directory_is_refused(tmp_path: Path, data: Dataset) -> None:
    (tmp_path / "run").mkdir()
    with directory_lock(tmp_path / "run"), pytest.raises(GCBError, match="is in use"):
        train(tiny_config("gcbc"), data, tmp_path / "run", quiet=True)


def test_on_checkpoint_is_called_at_every_checkpoint(tmp_path: Path, data: Dataset) -> None:
    seen = []

    def on_checkpoint(agent: Any, step: int) -> dict[str, float]:
        seen.append(step)
        assert agent.act(data.frames[0], goal=data.frames[3]).shape == (2,)
        assert not agent.method.training
        return {"eval_goal": 0.5} if step == 10 else {}

    train(tiny_config(), data, tmp_path / "run", quiet=True, on_checkpoint=on_checkpoint)
    assert seen == [5, 10, 12]
    assert {"step": 10, "eval_goal": 0.5} in read_metrics(tmp_path / "run")
    train(tiny_config(), data, tmp_path / "unseen", quiet=True)
    assert all(
        torch.equal(weights(tmp_path / "run")[name], value) for name, value in weights(tmp_path / "unseen").items()
    )


class Constant(GoalAgnosticBC):
    """A method whose ψ is constant."""

    name = "constant"

    def psi(self, state: Tensor) -> Tensor:
        return torch.ones(len(state), 4)


def test_a_collapse_gives_one_warning(tmp_path: Path, data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "constant", Constant)
    monkeypatch.setattr(gcb.training.collapse, "FIRST_STEP", 1)
    with pytest.warns(CollapseWarning, match="ψ has collapsed at step 4") as caught:
        train(tiny_config("constant"), data, tmp_path / "run", quiet=True)
    assert len([warning for warning in caught if warning.category is CollapseWarning]) == 1
    assert read_metrics(tmp_path / "run")[0]["psi_feature_std"] == 0


def test_batches_have_the_configured_groups(data: Dataset) -> None:
    for method, per_episode, shifted_independently in (("gcb", 4, set()), ("cpc", 1, {"next_state"})):
        config = tiny_config(method, transitions_per_episode=per_episode, random_shift=4)
        trainer = Trainer(config, data, torch.device("cpu"))
        batch = trainer.next_batch()
        assert (len(batch.state), batch.group_size) == (8, per_episode)
        assert batch.initial_state is not None
        assert any(trainer.next_batch().final.any() for _ in range(20)) == (per_episode > 1)
        assert trainer.augmenter._alone == shifted_independently


def test_all_metrics_are_logged(tmp_path: Path, data: Dataset) -> None:
    train(tiny_config(), data, tmp_path / "run", quiet=True)
    rows = read_metrics(tmp_path / "run")
    assert [row["step"] for row in rows] == [4, 8, 12]
    for name in (
        "seconds",
        "representation_loss",
        "critic_loss",
        "value_loss",
        "actor_loss",
        "done_loss",
        "phi_rank",
        "psi_feature_std",
    ):
        assert np.isfinite(rows[-1][name])


@pytest.mark.parametrize(("method", "low", "high"), [("gcbc", 0.8, 1.0), ("goal_agnostic_bc", 0.0, 0.65)])
def test_only_a_method_that_sees_the_goal_learns_where_to_go(
    tmp_path: Path, method: str, low: float, high: float
) -> None:
    """The direction of the bar depends on state and goal together."""
    data = tiny_dataset(episodes=20)
    settings = {"learning_rate": 1e-3, "method_config": {"learning_rate": 1e-3, "size": 64}, "random_shift": 0}
    config = tiny_config(
        method, steps=200, batch_size=64, goals={"p_original": 1.0, "p_future": 0, "p_next_frame": 0}, **settings
    )
    train(config, data, tmp_path / "run", quiet=True)
    agent = gcb.load(tmp_path / "run")
    new = tiny_dataset(episodes=20, seed=1)
    goals = new.frames[new.episode_goal_frame[new.episode_of_transition]]
    actions = agent.act(new.frames[new.frame_of_transition], goal=goals)
    right = (np.sign(actions[:, 0]) == np.sign(new.actions[:, 0])).mean()
    assert low <= right <= high


def test_vector_observations_train_in_the_same_loop(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vectors = Dataset.from_arrays(rng.normal(size=(22, 5)), rng.uniform(-1, 1, (20, 2)), [10, 10])
    config = tiny_config(goals={"p_original": 0.0, "p_future": 0.9, "p_next_frame": 0.1})
    assert train(config, vectors, tmp_path / "run", quiet=True).step == 12
