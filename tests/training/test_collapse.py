"""Feature standard deviation and effective rank by hand, and the warning on collapse."""

import math
import warnings

import pytest
import torch
from torch import Tensor

from gcb.data import Batch
from gcb.training.collapse import (
    FIRST_STEP,
    CollapseAlarm,
    CollapseWarning,
    effective_rank,
    feature_std,
    representation_metrics,
)


def test_feature_std_by_hand() -> None:
    features = torch.tensor([[0.0, 5.0], [2.0, 5.0]])
    assert feature_std(features).item() == pytest.approx((math.sqrt(2) + 0) / 2)


def test_effective_rank_counts_equal_directions() -> None:
    corners = torch.cat([torch.eye(6), -torch.eye(6)])
    assert effective_rank(corners).item() == pytest.approx(6)
    assert effective_rank(corners @ torch.randn(6, 40).svd().V.T).item() == pytest.approx(6, abs=1e-4)


def test_effective_rank_by_hand() -> None:
    # Centred, singular values 3√2 and √2: shares ¾ and ¼.
    features = torch.tensor([[3.0, 0, 0], [-3, 0, 0], [0, 1, 0], [0, -1, 0]]) + 7
    expected = math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    assert effective_rank(features).item() == pytest.approx(expected, abs=1e-5)


def test_a_line_and_a_point_have_rank_one() -> None:
    assert effective_rank(torch.arange(10.0)[:, None] * torch.randn(1, 8) + 3).item() == pytest.approx(1, abs=1e-3)
    assert effective_rank(torch.zeros(10, 8)).item() == 1


class Embedding(torch.nn.Module):
    """The part of a method that the metrics use."""

    def phi(self, state: Tensor, goal: Tensor) -> Tensor:
        assert not self.training
        return state + goal

    def psi(self, state: Tensor) -> Tensor:
        raise NotImplementedError


def test_only_the_embeddings_a_method_has_are_measured() -> None:
    method, state = Embedding(), torch.randn(50, 4)
    zeros = torch.zeros(50)
    for rows in (state, state.repeat_interleave(2, 0) * torch.tensor([1.0, 9.0]).repeat(50)[:, None]):
        batch = Batch(
            rows, state, state, zeros, zeros, zeros, zeros
        )  # of a group, the first state is embedded with the goal
        metrics = representation_metrics(method, batch)  # pyright: ignore[reportArgumentType]
        assert metrics.keys() == {"phi_feature_std", "phi_relative_feature_std", "phi_rank"}
        assert metrics["phi_feature_std"] == pytest.approx(2 * feature_std(state).item(), rel=1e-5)
        assert method.training


HEALTHY = {"phi_feature_std": 0.4, "phi_relative_feature_std": 0.4, "phi_rank": 20.0}


@pytest.mark.parametrize("broken", [{"phi_relative_feature_std": 0.004}, {"phi_rank": 1.2}])
def test_a_collapse_warns_once(broken: dict[str, float]) -> None:
    alarm = CollapseAlarm()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alarm.check(HEALTHY, 100)
        alarm.check({**HEALTHY, **broken}, FIRST_STEP - 1)  # hardly trained yet
    with pytest.warns(CollapseWarning, match="φ .* step 200"):
        alarm.check({**HEALTHY, **broken}, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alarm.check({**HEALTHY, **broken}, 300)
