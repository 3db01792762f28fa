"""GCB itself: where its gradients stop, what its target does, and that the preset `paper` is the paper's text."""

from typing import Any

import pytest
import torch
from helpers.batches import encoder_gradient, fit, image_batch, make_method
from torch.nn import functional

from gcb.errors import GCBError
from gcb.models.losses import phi_loss, psi_loss
from gcb.runs.config import make_config

ONLY_ARITHMETIC = {"phi_weight": 0.0, "reward_decoder": False, "action_decoder": False, "policy_distance_weight": 0.0}
PLAIN = {"relative_psi_loss": False}
PAIR_OF_NOW = {"p_initial_pair": 0.0, "bottleneck_dim": None, "bottleneck_noise": 0.0}


def gradient(network: torch.nn.Module) -> float:
    return sum(float(one.grad.abs().sum()) for one in network.parameters() if one.grad is not None)


def test_no_gradient_of_the_arithmetic_enters_phi() -> None:
    method = make_method("gcb", **ONLY_ARITHMETIC, psi_weight=1.0, rl_gradient="none")
    method.compute_loss(image_batch(16)).loss.backward()
    assert gradient(method._phi) == 0
    assert gradient(method._psi) > 0


def test_no_gradient_of_the_metric_enters_psi() -> None:
    method = make_method("gcb", psi_weight=0.0, rl_gradient="none")
    method.compute_loss(image_batch(16)).loss.backward()
    assert gradient(method._phi) > 0
    assert gradient(method._psi) == 0


def test_without_decoders_its_losses_are_the_two_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    swap = torch.arange(8).flip(0)
    monkeypatch.setattr(torch, "randperm", lambda rows, device=None: swap)
    settings = {**ONLY_ARITHMETIC, **PAIR_OF_NOW, **PLAIN, "phi_weight": 3.0, "psi_weight": 5.0}
    method, batch = make_method("gcb", **settings, metric_discount=0.8, tau=None), image_batch()
    phi, phi_next = (method.phi(state, batch.goal) for state in (batch.state, batch.next_state))
    norms: dict[str, Any] = {"left_norm": "mean_l1", "right_norm": "mean_l1", "reward_weight": 0.2}
    metric, _ = phi_loss(phi, phi_next, batch.reward, swap, discount=0.8, **norms)
    arithmetic, _ = psi_loss(phi, method.phi(batch.goal, batch.goal), method.psi(batch.state), method.psi(batch.goal))
    assert method.compute_loss(batch).loss.item() == pytest.approx((3 * metric + 5 * arithmetic).item(), rel=1e-4)


def test_grounded_or_not_is_a_matter_of_the_goals_own_pair() -> None:
    batch, losses = image_batch(), {}
    for grounded in (True, False):
        settings = {**ONLY_ARITHMETIC, **PAIR_OF_NOW, **PLAIN, "psi_weight": 1.0, "grounded": grounded}
        method = make_method("gcb", **settings)
        origin = method.phi(batch.goal, batch.goal) if grounded else 0.0
        wanted = method.phi(batch.state, batch.goal) - origin
        expected = (wanted - (method.psi(batch.goal) - method.psi(batch.state))).square().sum(1).mean()
        losses[grounded] = method.compute_loss(batch).loss.item()
        assert losses[grounded] == pytest.approx(expected.item(), rel=1e-4)
    assert losses[True] != losses[False]


def test_the_relative_arithmetic_is_the_share_left_unexplained() -> None:
    """The same direction of the gradient, in a unit that does not depend on the size of φ."""
    gradients, batch = {}, image_batch()
    for relative in (True, False):
        settings = {**ONLY_ARITHMETIC, **PAIR_OF_NOW, "psi_weight": 1.0, "relative_psi_loss": relative}
        method = make_method("gcb", **settings)
        features = method.compute_loss(batch)
        assert not relative or features.loss.item() == pytest.approx(features.logs["psi_unexplained"].item(), rel=1e-4)
        features.loss.backward()
        gradients[relative] = torch.cat([one.grad.flatten() for one in method._psi.parameters()])
    likeness = functional.cosine_similarity(gradients[True], gradients[False], dim=0)
    assert likeness.item() == pytest.approx(1.0, abs=1e-4)


def test_the_target_follows_at_its_rate_and_only_there() -> None:
    method = make_method("gcb", tau=0.25)
    slow, fast = next(method._target.parameters()), next(method._phi.parameters())
    before = slow.clone()
    fast.data += 1
    method.compute_loss(image_batch()).loss.backward()
    assert slow.grad is None
    assert torch.equal(slow, before)
    method.after_step()
    torch.testing.assert_close(slow, before + 0.25)
    assert make_method("gcb", tau=None)._target is None


def test_the_metric_bootstraps_from_the_target() -> None:
    method, batch = make_method("gcb", reward_decoder=False, p_initial_pair=0.0), image_batch()
    torch.manual_seed(0)
    before = method.compute_loss(batch).logs["phi_target"]
    for parameter in method._target.parameters():
        parameter.data *= 2
    torch.manual_seed(0)
    assert method.compute_loss(batch).logs["phi_target"] != before


def test_learned_dynamics_take_the_place_of_the_next_observation() -> None:
    for kind in ("deterministic", "probabilistic", "ensemble"):
        method, batch = make_method("gcb", dynamics=kind), image_batch(16)
        features = method.compute_loss(batch)
        assert torch.isfinite(features.loss)
        features.loss.backward()
        assert gradient(method.dynamics) > 0


def test_the_dynamics_own_loss_does_not_shape_phi() -> None:
    settings = {**ONLY_ARITHMETIC, "psi_weight": 0.0, "dynamics": "deterministic", "rl_gradient": "none"}
    method = make_method("gcb", **settings)
    method.compute_loss(image_batch(16)).loss.backward()
    assert gradient(method._phi) == 0
    assert gradient(method.dynamics) > 0


def test_one_batch_can_be_fitted() -> None:
    """The optimum is 0: rewards and actions decoded, a metric of them, and ψ that subtracts to φ."""
    method, batch = make_method("gcb", tau=None, p_initial_pair=0.0), image_batch()
    losses = fit(method, batch, 150)
    assert losses[0] > 0.3
    assert max(losses[-5:]) < 0.05


def test_a_goal_policy_infers_its_goal_by_arithmetic() -> None:
    settings = {**PAIR_OF_NOW, "condition": "goal", "output_norm": False}
    method, batch = make_method("gcb", **settings), image_batch()
    example = (batch.next_state, batch.goal)
    inferred = method.psi(batch.initial_state) + method.phi(*example) - method.phi(batch.goal, batch.goal)
    seen = method.analogy_features(batch.initial_state, batch.state, example)
    torch.testing.assert_close(seen, functional.layer_norm(inferred, (32,)))


def test_acting_by_goal_the_pair_begins_at_the_first_frame() -> None:
    method, batch = make_method("gcb", p_initial_pair=0.5), image_batch()
    assert not method.task_depends_on_state
    one, other = (
        method.goal_features(batch.initial_state, state, batch.goal) for state in (batch.state, batch.next_state)
    )
    assert torch.equal(one, other)
    moving = make_method("gcb", **PAIR_OF_NOW)
    assert moving.task_depends_on_state
    assert moving.extra_frames == frozenset()


def test_no_policy_gradient_enters_by_the_papers_choice() -> None:
    method = make_method("gcb", rl_gradient="none")
    features = method.compute_loss(image_batch())
    for output in (features.actor_state, features.actor_task, features.critic_state, features.critic_task):
        assert encoder_gradient(method, output) == 0


def test_the_preset_paper_is_the_text() -> None:
    config = make_config("gcb", "paper")
    method, iql = config.method_config, config.iql
    text = {
        **{"encoder": "paper", "size": 256},  # "Architecture": six layers of 32 filters, 256 dimensions
        **{"left_norm": "l1", "right_norm": "l2", "metric_discount": 0.99},  # Eq. (phi_loss), the table
        **{"scale_reward": False, "policy_distance_weight": 0.0, "action_decoder": False, "tau": None},
        **{"grounded": True, "reward_decoder": True, "dynamics": "next_observation"},  # appendix: what was kept
        **{
            "rl_gradient": "none",
            "p_initial_pair": 0.0,
            "bottleneck_dim": None,
            "bottleneck_noise": 0.0,
            "condition": "pair",
        },
        **{"phi_learning_rate": 1e-4, "phi_weight_decay": 1e-3, "psi_learning_rate": 5e-4, "psi_weight_decay": 1e-4},
    }
    assert {name: getattr(method, name) for name in text} == text
    assert (config.batch_size, config.learning_rate, config.random_shift) == (256, 1e-4, 0)
    assert (iql.discount, iql.expectile, iql.tau) == (0.99, 0.7, 0.005)
    assert (iql.log_std_min, iql.log_std_max) == (-10.0, 2.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "method_config.size is 0"),
        ({"metric_discount": 1.0}, "method_config.metric_discount is 1.0"),
        ({"tau": 0.0}, "method_config.tau is 0.0"),
        ({"p_initial_pair": 1.0}, "method_config.p_initial_pair is 1.0"),
        ({"phi_weight": -1.0}, "method_config.phi_weight is -1.0"),
        ({"action_decoder": False}, "policy_distance_weight is .*action_decoder"),
        ({"condition": "goal"}, "condition is .goal.; it uses no pair"),
    ],
)
def test_contradictions_are_named(settings: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        make_config("gcb", "laptop", {"method_config": settings})
