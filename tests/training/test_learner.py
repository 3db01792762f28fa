"""One gradient step: whose gradient, how large, at which rate, in which precision."""

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


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tiny_dataset()


def learner(config: TrainConfig[Any], data: Dataset) -> tuple[Learner, Batch[Tensor]]:
    torch.manual_seed(0)
    sampler = Sampler(data, GoalSampling(), np.random.default_rng(0))
    batch = sampler.sample(8, extra_frames=["initial_state"]).to("cpu")
    return Learner(config, shapes_of(data), torch.device("cpu")), batch


def test_rates_rise_and_fall() -> None:
    config = tiny_config("gcbc", steps=24, warmup_steps=4, lr_schedule="cosine", min_lr_ratio=0.1)
    rates = [lr_multiplier(config, step) for step in range(24)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[14] == pytest.approx(0.1 + 0.9 / 2)
    assert lr_multiplier(config, 24) == pytest.approx(0.1)
    linear = tiny_config("gcbc", steps=20, lr_schedule="linear")
    assert [lr_multiplier(linear, step) for step in (0, 5, 20)] == pytest.approx([1, 0.75, 0])
    assert lr_multiplier(tiny_config("gcbc", steps=20), 19) == 1


def test_clipping_bounds_each_groups_gradient(data: Dataset) -> None:
    made, frames = learner(tiny_config("gcbc", max_grad_norm=1e-3), data)
    made.step(frames, 0)
    for group in made.optimizer.param_groups:
        norm = torch.stack([one.grad.norm() for one in group["params"] if one.grad is not None]).norm()
        assert norm == pytest.approx(1e-3, rel=1e-2)


def test_every_parameter_that_wants_training_gets_it(data: Dataset) -> None:
    made, frames = learner(tiny_config("gcbc"), data)
    before = {name: one.clone() for name, one in made.modules.named_parameters()}
    made.step(frames, 0)
    moved = {name for name, one in made.modules.named_parameters() if not torch.equal(one, before[name])}
    still = before.keys() - moved
    assert {name.split(".")[1] for name in moved} == {"encoder", "value", "critics", "targets", "actor"}
    assert not [name for name in still if "weight" in name]


class Forgetful(GoalAgnosticBC):
    name = "forgetful"

    def optimizer_groups(self) -> list[dict[str, Any]]:
        return [{"params": [], "lr": 1e-3}]


def test_a_parameter_left_out_is_an_error(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "forgetful", Forgetful)
    with pytest.raises(GCBError, match=r"forgetful.optimizer_groups\(\) leaves out encoder"):
        learner(tiny_config("forgetful"), data)


def test_half_precision_stays_close(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    full, frames = learner(tiny_config("gcbc"), data)
    monkeypatch.setattr(gcb.training.learner, "autocast_dtype", lambda precision, device: torch.float16)
    half, _ = learner(tiny_config("gcbc"), data)
    assert half.scaler.is_enabled()
    before = [parameter.clone() for parameter in half.method.parameters()]
    one, other = full.step(frames, 0), half.step(frames, 0)
    for name in ("actor_loss", "critic_loss"):
        assert one[name].dtype == other[name].dtype == torch.float32
        assert one[name].item() == pytest.approx(other[name].item(), rel=0.05)
        assert one[name].item() != other[name].item()
    for number in range(1, 20):  # the scaler's first guesses are too large, and those steps are skipped
        half.step(frames, number)
    assert not torch.equal(next(half.method.parameters()), before[0])


def test_devices_and_precisions_that_do_not_go_together() -> None:
    cpu = torch.device("cpu")
    assert autocast_dtype("auto", cpu) is autocast_dtype("float32", cpu) is None
    with pytest.raises(GCBError, match="precision is 'bfloat16'; on a CPU accepted: auto or float32"):
        autocast_dtype("bfloat16", cpu)
    assert autocast_dtype("bfloat16", torch.device("mps")) == torch.bfloat16
    assert pick_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def _broken_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def compile(function: Any) -> Any:
        def call(*arguments: Any) -> Any:
            raise RuntimeError("inductor raised:\nno compiler here\nand a long story")

        return call

    monkeypatch.setattr(gcb.training.learner.torch, "compile", compile)


@pytest.mark.usefixtures("_broken_compiler")
def test_without_a_compiler_it_goes_on_uncompiled(data: Dataset) -> None:
    plain, frames = learner(tiny_config("gcbc"), data)
    made, _ = learner(tiny_config("gcbc", compile=True), data)
    with pytest.warns(UserWarning, match=r"torch.compile does not work here.*: inductor raised: no compiler here$"):
        losses = made.step(frames, 0)
    assert losses["actor_loss"] == plain.step(frames, 0)["actor_loss"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.step(frames, 1)
