"""GCB: its two equations, where gradients stop, its target network, and the preset `paper`."""

from typing import Any

import pytest
import torch
from helpers.batches import encoder_gradient, fit, image_batch, make_method
from torch.nn import functional

from gcb.errors import GCBError
from gcb.models.losses import phi_loss, psi_loss
from gcb.runs.config import make_config

ONLY_PSI_LOSS = {"phi_weight": 0.0, "reward_decoder": False, "action_decoder": False, "policy_distance_weight": 0.0}
ABSOLUTE = {"relative_psi_loss": False}
CURRENT_PAIR = {"p_initial_pair": 0.0, "bottleneck_dim": None, "bottleneck_noise": 0.0}


def gradient(network: torch.nn.Module) -> float:
    return sum(float(weight.grad.abs().sum()) for weight in network.parameters() if weight.grad is not None)


def test_psi_loss_has_no_gradient_in_phi() -> None:
    method = make_method("gcb", **ONLY_PSI_LOSS, psi_weight=1.0, rl_gradient="none")
    method.compute_loss(image_batch(16)).loss.backward()
    assert gradient(method._phi) == 0
    assert gradient(method._psi) > 0


def test_phi_loss_has_no_gradient_in_psi() -> None:
    method = make_method("gcb", psi_weight=0.0, rl_gradient="none")
    method.compute_loss(image_batch(16)).loss.backward()
    assert gradient(method._phi) > 0
    assert gradient(method._psi) == 0


def test_loss_without_decoders_is_the_two_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    swap = torch.arange(8).flip(0)
    monkeypatch.setattr(torch, "randperm", lambda rows, device=None: swap)
    settings = {**ONLY_PSI_LOSS, **CURRENT_PAIR, **ABSOLUTE, "phi_weight": 3.0, "psi_weight": 5.0}
    method, batch = make_method("gcb", **settings, metric_discount=0.8, tau=None), image_batch()
    phi, phi_next = (method.phi(state, batch.goal) for state in (batch.state, batch.next_state))
    norms: dict[str, Any] = {"left_norm": "mean_l1", "right_norm": "mean_l1", "reward_weight": 0.2}
    metric, _ = phi_loss(phi, phi_next, batch.reward, swap, discount=0.8, **norms)
    arithmetic, _ = psi_loss(phi, method.phi(batch.goal, batch.goal), method.psi(batch.state), method.psi(batch.goal))
    assert method.compute_loss(batch).loss.item() == pytest.approx((3 * metric + 5 * arithmetic).item(), rel=1e-4)


def test_grounded_psi_loss_subtracts_phi_of_the_goal() -> None:
    batch, losses = image_batch(), {}
    for grounded in (True, False):
        settings = {**ONLY_PSI_LOSS, **CURRENT_PAIR, **ABSOLUTE, "psi_weight": 1.0, "grounded": grounded}
        method = make_method("gcb", **settings)
        origin = method.phi(batch.goal, batch.goal) if grounded else 0.0
        target = method.phi(batch.state, batch.goal) - origin
        expected = (target - (method.psi(batch.goal) - method.psi(batch.state))).square().sum(1).mean()
        losses[grounded] = method.compute_loss(batch).loss.item()
        assert losses[grounded] == pytest.approx(expected.item(), rel=1e-4)
    assert losses[True] != losses[False]


def test_relative_psi_loss_is_the_unexplained_fraction() -> None:
    """The gradient has the same direction, on a scale that does not depend on φ's."""
    gradients, batch = {}, image_batch()
    for relative in (True, False):
        settings = {**ONLY_PSI_LOSS, **CURRENT_PAIR, "psi_weight": 1.0, "relative_psi_loss": relative}
        method = make_method("gcb", **settings)
        features = method.compute_loss(batch)
        assert not relative or features.loss.item() == pytest.approx(features.logs["psi_unexplained"].item(), rel=1e-4)
        features.loss.backward()
        gradients[relative] = torch.cat([weight.grad.flatten() for weight in method._psi.parameters()])
    similarity = functional.cosine_similarity(gradients[True], gradients[False], dim=0)
    assert similarity.item() == pytest.approx(1.0, abs=1e-4)


def test_target_follows_after_a_step_at_rate_tau() -> None:
    method = make_method("gcb", tau=0.25)
    target, source = next(method._target.parameters()), next(method._phi.parameters())
    before = target.clone()
    source.data += 1
    method.compute_loss(image_batch()).loss.backward()
    assert target.grad is None
    assert torch.equal(target, before)
    method.after_step()
    torch.testing.assert_close(target, before + 0.25)
    assert make_method("gcb", tau=None)._target is None


def test_phi_loss_bootstraps_from_the_target() -> None:
    method, batch = make_method("gcb", reward_decoder=False, p_initial_pair=0.0), image_batch()
    torch.manual_seed(0)
    before = method.compute_loss(batch).logs["phi_target"]
    for parameter in method._target.parameters():
        parameter.data *= 2
    torch.manual_seed(0)
    assert method.compute_loss(batch).logs["phi_target"] != before


def test_learned_dynamics_are_trained() -> None:
    for dynamics in ("deterministic", "probabilistic", "ensemble"):
        method, batch = make_method("gcb", dynamics=dynamics), image_batch(16)
        features = method.compute_loss(batch)
        assert torch.isfinite(features.loss)
        features.loss.backward()
        assert gradient(method.dynamics) > 0


def test_dynamics_loss_has_no_gradient_in_phi() -> None:
    settings = {**ONLY_PSI_LOSS, "psi_weight": 0.0, "dynamics": "deterministic", "rl_gradient": "none"}
    method = make_method("gcb", **settings)
    method.compute_loss(image_batch(16)).loss.backward()
    assert gradient(method._phi) == 0
    assert gradient(method.dynamics) > 0


def test_loss_of_one_batch_can_be_minimised() -> None:
    """The optimum is 0: rewards and actions are decoded, the metric is exact, and ψ(g) - ψ(s) explains φ."""
    method, batch = make_method("gcb", tau=None, p_initial_pair=0.0), image_batch()
    losses = fit(method, batch, 150)
    assert losses[0] > 0.3
    assert max(losses[-5:]) < 0.05


def test_goal_conditioned_policy_infers_the_goal_by_arithmetic() -> None:
    settings = {**CURRENT_PAIR, "condition": "goal", "output_norm": False}
    method, batch = make_method("gcb", **settings), image_batch()
    example = (batch.next_state, batch.goal)
    inferred = method.psi(batch.initial_state) + method.phi(*example) - method.phi(batch.goal, batch.goal)
    seen = method.analogy_features(batch.initial_state, batch.state, example)
    torch.testing.assert_close(seen, functional.layer_norm(inferred, (32,)))


def test_goal_features_use_the_initial_pair() -> None:
    method, batch = make_method("gcb", p_initial_pair=0.5), image_batch()
    assert not method.task_depends_on_state
    now, later = (
        method.goal_features(batch.initial_state, state, batch.goal) for state in (batch.state, batch.next_state)
    )
    assert torch.equal(now, later)
    current_pair = make_method("gcb", **CURRENT_PAIR)
    assert current_pair.task_depends_on_state
    assert current_pair.extra_frames == frozenset()


def test_rl_gradient_none_detaches_all_features() -> None:
    method = make_method("gcb", rl_gradient="none")
    features = method.compute_loss(image_batch())
    for output in (features.actor_state, features.actor_task, features.critic_state, features.critic_task):
        assert encoder_gradient(method, output) == 0


def test_paper_preset_has_the_papers_values() -> None:
    config = make_config("gcb", "paper")
    method, iql = config.method_config, config.iql
    text = {
        **{"encoder": "paper", "size": 256},  # "Architecture": six layers of 32 filters, 256 dimensions
        **{"left_norm": "l1", "right_norm": "l2", "metric_discount": 0.99},  # Eq. (phi_loss), the table
        **{"scale_reward": False, "policy_distance_weight": 0.0, "action_decoder": False, "tau": None},
        **{"grounded": True, "reward_decoder": True, "dynamics": "next_observation"},  # appendix: the variants kept
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
        ({"condition": "goal"}, "condition is 'goal'"),
    ],
)
def test_settings_are_checked(settings: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        make_config("gcb", "laptop", {"method_config": settings})
