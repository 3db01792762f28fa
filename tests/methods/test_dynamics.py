"""Learned dynamics in φ space: losses by hand, a standard deviation used as one, and the step forward."""

import math

import pytest
import torch
from torch import Tensor, nn

from gcb.methods.dynamics import MAX_STD, MEMBERS, MIN_STD, Dynamics, make_dynamics


class Says(nn.Module):
    """A network with one answer."""

    def __init__(self, *numbers: float) -> None:
        super().__init__()
        self.numbers = torch.tensor(numbers)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.numbers.expand(len(inputs), -1)


def saying(*answers: tuple[float, ...], probabilistic: bool = False) -> Dynamics:
    dynamics = Dynamics(1, 1, len(answers), probabilistic)
    dynamics.members = nn.ModuleList(Says(*answer) for answer in answers)
    return dynamics


def raw(std: float) -> float:
    """The network's output that stands for a standard deviation."""
    share = (std - MIN_STD) / (MAX_STD - MIN_STD)
    return math.log(share / (1 - share))


PHI, NEXT, ACTION = torch.tensor([[1.0]]), torch.tensor([[4.0]]), torch.zeros(1, 1)


def test_a_deterministic_model_predicts_the_step_forward() -> None:
    """The printed (f + φ' - φ)² would have f = -3 as its optimum; its use in L_φ asks for + 3."""
    assert saying((3.0,)).loss(PHI, NEXT, ACTION).item() == 0.0
    assert saying((1.0,)).loss(PHI, NEXT, ACTION).item() == pytest.approx((1 - 3) ** 2)
    assert saying((3.0,)).next(PHI, ACTION).item() == NEXT.item()


def test_a_standard_deviation_is_no_variance() -> None:
    """½ ((mean - step) / std)² + log std: with std 2 the square is divided by 4."""
    dynamics = saying((1.0, raw(2.0)), probabilistic=True)
    assert dynamics.loss(PHI, NEXT, ACTION).item() == pytest.approx(0.5 * (2 / 2) ** 2 + math.log(2), rel=1e-5)


def test_the_best_standard_deviation_is_the_error() -> None:
    losses = {
        std: saying((1.0, raw(std)), probabilistic=True).loss(PHI, NEXT, ACTION).item() for std in (1.0, 2.0, 4.0)
    }
    assert min(losses, key=lambda std: losses[std]) == 2.0


def test_side_by_side_mean_and_deviation_give_the_wasserstein_distance() -> None:
    """W₂² of diagonal Gaussians is |Δ mean|² + |Δ std|² (Zhang et al. 2021)."""
    one = saying((1.0, raw(2.0)), probabilistic=True).next(PHI, ACTION)
    other = saying((4.0, raw(6.0)), probabilistic=True).next(PHI, ACTION)
    torch.testing.assert_close(one, torch.tensor([[2.0, 2.0]]))
    assert torch.linalg.vector_norm(one - other).item() == pytest.approx(5.0, rel=1e-5)


def test_an_ensembles_loss_is_the_mean_and_each_row_has_its_member() -> None:
    dynamics = saying((3.0,), (1.0,))
    assert dynamics.loss(PHI, NEXT, ACTION).item() == pytest.approx((0 + 4) / 2)
    torch.manual_seed(0)
    predictions = dynamics.next(PHI.expand(40, 1), torch.zeros(40, 1))
    assert set(predictions.flatten().tolist()) == {2.0, 4.0}


def test_no_gradient_leaves_the_prediction() -> None:
    dynamics = Dynamics(3, 2, 1, probabilistic=True)
    phi = torch.randn(4, 3, requires_grad=True)
    assert not dynamics.next(phi, torch.randn(4, 2)).requires_grad


@pytest.mark.parametrize(
    ("kind", "members", "outputs"), [("deterministic", 1, 3), ("probabilistic", 1, 6), ("ensemble", MEMBERS, 3)]
)
def test_kinds(kind, members: int, outputs: int) -> None:
    dynamics = make_dynamics(kind, 3, 2)
    assert dynamics is not None
    assert len(dynamics.members) == members
    assert dynamics.members[0](torch.randn(1, 5)).shape == (1, outputs)


def test_the_next_observation_needs_no_model() -> None:
    assert make_dynamics("next_observation", 3, 2) is None
