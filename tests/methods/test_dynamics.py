"""Learned dynamics in φ space: losses by hand, the standard deviation, and the sign of the step."""

import math

import pytest
import torch
from torch import Tensor, nn

from gcb.methods.dynamics import MAX_STD, MEMBERS, MIN_STD, Dynamics, make_dynamics


class ConstantOutput(nn.Module):
    """A network with a constant output."""

    def __init__(self, *numbers: float) -> None:
        super().__init__()
        self.numbers = torch.tensor(numbers)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.numbers.expand(len(inputs), -1)


def constant_dynamics(*outputs: tuple[float, ...], probabilistic: bool = False) -> Dynamics:
    dynamics = Dynamics(1, 1, len(outputs), probabilistic)
    dynamics.members = nn.ModuleList(ConstantOutput(*output) for output in outputs)
    return dynamics


def raw(std: float) -> float:
    """The network's raw output for a standard deviation."""
    fraction = (std - MIN_STD) / (MAX_STD - MIN_STD)
    return math.log(fraction / (1 - fraction))


PHI, NEXT, ACTION = torch.tensor([[1.0]]), torch.tensor([[4.0]]), torch.zeros(1, 1)


def test_deterministic_model_predicts_the_step_forwards() -> None:
    """The printed (f + φ' - φ)² has its optimum at f = -3; its use in L_φ requires + 3."""
    assert constant_dynamics((3.0,)).loss(PHI, NEXT, ACTION).item() == 0.0
    assert constant_dynamics((1.0,)).loss(PHI, NEXT, ACTION).item() == pytest.approx((1 - 3) ** 2)
    assert constant_dynamics((3.0,)).next(PHI, ACTION).item() == NEXT.item()


def test_likelihood_uses_the_standard_deviation() -> None:
    """½ ((mean - step) / std)² + log std: with std 2 the square is divided by 4."""
    dynamics = constant_dynamics((1.0, raw(2.0)), probabilistic=True)
    assert dynamics.loss(PHI, NEXT, ACTION).item() == pytest.approx(0.5 * (2 / 2) ** 2 + math.log(2), rel=1e-5)


def test_optimal_standard_deviation_is_the_error() -> None:
    losses = {
        std: constant_dynamics((1.0, raw(std)), probabilistic=True).loss(PHI, NEXT, ACTION).item()
        for std in (1.0, 2.0, 4.0)
    }
    assert min(losses, key=lambda std: losses[std]) == 2.0


def test_l2_distance_of_gaussians_is_the_wasserstein_distance() -> None:
    """W₂² of diagonal Gaussians is |Δ mean|² + |Δ std|² (Zhang et al. 2021)."""
    first = constant_dynamics((1.0, raw(2.0)), probabilistic=True).next(PHI, ACTION)
    second = constant_dynamics((4.0, raw(6.0)), probabilistic=True).next(PHI, ACTION)
    torch.testing.assert_close(first, torch.tensor([[2.0, 2.0]]))
    assert torch.linalg.vector_norm(first - second).item() == pytest.approx(5.0, rel=1e-5)


def test_ensemble_loss_is_the_mean_and_each_row_samples_a_member() -> None:
    dynamics = constant_dynamics((3.0,), (1.0,))
    assert dynamics.loss(PHI, NEXT, ACTION).item() == pytest.approx((0 + 4) / 2)
    torch.manual_seed(0)
    predictions = dynamics.next(PHI.expand(40, 1), torch.zeros(40, 1))
    assert set(predictions.flatten().tolist()) == {2.0, 4.0}


def test_prediction_has_no_gradient() -> None:
    dynamics = Dynamics(3, 2, 1, probabilistic=True)
    phi = torch.randn(4, 3, requires_grad=True)
    assert not dynamics.next(phi, torch.randn(4, 2)).requires_grad


@pytest.mark.parametrize(
    ("name", "members", "outputs"), [("deterministic", 1, 3), ("probabilistic", 1, 6), ("ensemble", MEMBERS, 3)]
)
def test_models_by_name(name, members: int, outputs: int) -> None:
    dynamics = make_dynamics(name, 3, 2)
    assert dynamics is not None
    assert len(dynamics.members) == members
    assert dynamics.members[0](torch.randn(1, 5)).shape == (1, outputs)


def test_next_observation_needs_no_model() -> None:
    assert make_dynamics("next_observation", 3, 2) is None
