"""One gradient step: parameters, clipping, learning rates and precision."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.tiny import tiny_config, tiny_dataset
from torch import Tensor

import gcb.training.learner
from gcb.agent.build import pick_device
from gcb.data import Batch, Dataset, GoalSampling, Sampler
from gcb.errors import GCBError
from gcb.methods import METHODS
from gcb.methods.bc import GoalAgnosticBC
from gcb.runs.config import TrainConfig
from gcb.runs.dataset_record import shapes_of
from gcb.training.learner import Learner, autocast_dtype, lr_multiplier

PARTS = ("actor", "value", "done")
"""The networks of a policy."""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tiny_dataset()


def learner(config: TrainConfig[Any], data: Dataset) -> tuple[Learner, Batch[Tensor]]:
    torch.manual_seed(0)
    settings = {"group_size": config.transitions_per_episode, "p_final_state": config.p_final_state}
    sampler = Sampler(data, GoalSampling(), np.random.default_rng(0), **settings)
    batch = sampler.sample(8, extra_frames=["initial_state"]).to("cpu")
    return Learner(config, shapes_of(data), torch.device("cpu")), batch


def test_learning_rates_warm_up_and_decay() -> None:
    config = tiny_config("gcbc", steps=24, warmup_steps=4, lr_schedule="cosine", min_lr_ratio=0.1)
    rates = [lr_multiplier(config, step) for step in range(24)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[14] == pytest.approx(0.1 + 0.9 / 2)
    assert lr_multiplier(config, 24) == pytest.approx(0.1)
    linear = tiny_config("gcbc", steps=20, lr_schedule="linear")
    assert [lr_multiplier(linear, step) for step in (0, 5, 20)] == pytest.approx([1, 0.75, 0])
    assert lr_multiplier(tiny_config("gcbc", steps=20), 19) == 1


def test_clipping_bounds_the_gradient_of_each_group(data: Dataset) -> None:
    made, batch = learner(tiny_config("gcbc", max_grad_norm=1e-3), data)
    made.step(batch, 0)
    for group in made.optimizer.param_groups:
        norm = torch.stack([value.grad.norm() for value in group["params"] if value.grad is not None]).norm()
        assert norm == pytest.approx(1e-3, rel=1e-2)


def test_every_trained_parameter_changes(data: Dataset) -> None:
    made, batch = learner(tiny_config("gcbc"), data)
    before = {name: value.clone() for name, value in made.modules.named_parameters()}
    made.step(batch, 0)
    changed = {name for name, value in made.modules.named_parameters() if not torch.equal(value, before[name])}
    unchanged = before.keys() - changed
    parts = ("method.encoder", "iql.critics", "iql.targets", *(f"iql.policies.goal.{part}" for part in PARTS))
    assert all(name.startswith(parts) for name in changed)
    assert all(any(name.startswith(part) for name in changed) for part in parts)
    assert not [name for name in unchanged if "weight" in name]


def test_both_policies_are_trained_at_the_same_rate(data: Dataset) -> None:
    made, batch = learner(tiny_config("gcb", learning_rate=2e-3), data)
    assert batch.group_size == 2
    before = {name: value.clone() for name, value in made.iql.named_parameters()}
    made.step(batch, 0)
    for policy in ("goal", "analogy"):
        for part in PARTS:
            names = [name for name in before if name.startswith(f"policies.{policy}.{part}.")]
            steps = [(made.iql.get_parameter(name) - before[name]).abs().max().item() for name in names]
            assert max(steps) == pytest.approx(2e-3, rel=1e-3)  # Adam's first step


class Forgetful(GoalAgnosticBC):
    name = "forgetful"

    def optimizer_groups(self) -> list[dict[str, Any]]:
        return [{"params": [], "lr": 1e-3}]


def test_a_parameter_in_no_group_is_an_error(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "forgetful", Forgetful)
    with pytest.raises(GCBError, match=r"forgetful.optimizer_groups\(\) leaves out encoder"):
        learner(tiny_config("forgetful"), data)


def test_half_precision_stays_close(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    full, batch = learner(tiny_config("gcbc"), data)
    monkeypatch.setattr(gcb.training.learner, "autocast_dtype", lambda precision, device: torch.float16)
    half, _ = learner(tiny_config("gcbc"), data)
    assert half.scaler.is_enabled()
    before = [parameter.clone() for parameter in half.method.parameters()]
    expected, actual = full.step(batch, 0), half.step(batch, 0)
    for name in ("actor_loss", "critic_loss"):
        assert expected[name].dtype == actual[name].dtype == torch.float32
        assert expected[name].item() == pytest.approx(actual[name].item(), rel=0.05)
        assert expected[name].item() != actual[name].item()
    for number in range(1, 20):  # the scaler's first scales are too large, and those steps are skipped
        half.step(batch, number)
    assert not torch.equal(next(half.method.parameters()), before[0])


def test_half_precision_is_refused_on_a_cpu() -> None:
    cpu = torch.device("cpu")
    assert autocast_dtype("auto", cpu) is autocast_dtype("float32", cpu) is None
    with pytest.raises(GCBError, match=r"precision is 'bfloat16'.*accepted: auto or float32"):
        autocast_dtype("bfloat16", cpu)
    assert autocast_dtype("bfloat16", torch.device("mps")) == torch.bfloat16
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def _broken_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            raise RuntimeError("inductor raised:\nno compiler here\nand more lines")

        return call

    monkeypatch.setattr(gcb.training.learner.torch, "compile", compile)


@pytest.mark.usefixtures("_broken_compiler")
def test_without_a_compiler_training_continues_uncompiled(data: Dataset) -> None:
    eager, batch = learner(tiny_config("gcbc"), data)
    made, _ = learner(tiny_config("gcbc", compile=True), data)
    with pytest.warns(UserWarning, match=r"torch.compile does not work here.*: inductor raised: no compiler here$"):
        losses = made.step(batch, 0)
    assert losses["actor_loss"] == eager.step(batch, 0)["actor_loss"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.step(batch, 1)
