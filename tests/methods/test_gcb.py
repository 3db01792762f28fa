"""GCB: its two equations, where gradients stop, partners' examples, its target network, and the preset `paper`."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from helpers.batches import NO_PARTNERS, VECTORS, encoder_gradient, fit, gradient, image_batch, make_method
from torch import Tensor, nn
from torch.nn import functional

from gcb.data import Batch
from gcb.errors import GCBError
from gcb.methods import Shapes
from gcb.methods.gcb import LINEAR_PSI_EVERY
from gcb.models.losses import phi_loss, psi_loss
from gcb.runs.config import make_config

ONLY_PSI_LOSS: dict[str, Any] = {
    "phi_weight": 0.0,
    "reward_decoder": False,
    "action_decoder": False,
    "policy_distance_weight": 0.0,
}
ABSOLUTE: dict[str, Any] = {"relative_psi_loss": False}
each_architecture = pytest.mark.parametrize("shared_trunk", [True, False])
each_group_size = pytest.mark.parametrize("group_size", [1, 2])
each_psi = pytest.mark.parametrize("linear_psi", [True, False])


# ---- the two equations ----------------------------------------------------------------------------------------------


class Times(nn.Module):
    """The first two numbers of the input, times a factor."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, inputs: Tensor) -> Tensor:
        return self.factor * inputs[:, :2]


class DifferencePlusOne(nn.Module):
    """φ(s, g) = g - s + 1, so that φ(g, g) is 1."""

    def forward(self, state: Tensor, goal: Tensor) -> Tensor:
        return (goal - state)[:, :2] + 1


@each_psi
@each_group_size
@each_architecture
def test_loss_by_hand(monkeypatch: pytest.MonkeyPatch, shared_trunk: bool, group_size: int, linear_psi: bool) -> None:
    settings = {**ONLY_PSI_LOSS, **ABSOLUTE, "phi_weight": 3.0, "psi_weight": 5.0, "metric_discount": 0.5, "size": 2}
    settings |= {"shared_trunk": shared_trunk, "linear_psi": linear_psi, "scale_reward": False, "bottleneck_dim": None}
    method = make_method("gcb", VECTORS, **settings)
    assert isinstance(method._trunk, nn.Identity) != shared_trunk
    if shared_trunk:
        method._trunk = Times(10.0)
    method._phi, method._psi = DifferencePlusOne(), Times(1.0 if linear_psi else 2.0)
    if linear_psi:
        method._arithmetic.weight.data = 2 * torch.eye(2)
    goal, state, next_state = torch.zeros(2, 7), torch.zeros(2, 7), torch.zeros(2, 7)
    goal[0, :2], next_state[0, :2] = torch.tensor([3.0, 5.0]), torch.tensor([1.0, 1.0])
    if shared_trunk:  # the same features
        goal, next_state = goal / 10, next_state / 10
    rows = torch.full((2 * group_size, 7), 9.0)
    rows[::group_size] = state  # the other rows take no part in these losses
    reward, action = torch.tensor([1.0, 0.0]), torch.zeros(2 * group_size, 2)
    final = torch.zeros(2 * group_size, dtype=torch.bool)
    monkeypatch.setattr(torch, "randperm", lambda count, device=None: torch.tensor([1, 0]))
    output = method.compute_loss(Batch(rows, next_state, goal, action, final, reward, reward.bool(), state))
    # L_φ: φ(s, g) is (4, 6) and (1, 1), at distance 4; φ(s', g) is (3, 5) and (1, 1), at distance 3.
    metric = (4 - 1 - 0.5 * 3) ** 2
    # L_ψ: φ(s, g) - φ(g, g) is (3, 5) and (0, 0); ψ(g) - ψ(s) is (6, 10) and (0, 0). A linear map sees the first.
    arithmetic = 3**2 + 5**2 if linear_psi else (3**2 + 5**2 + 0) / 2
    assert output.loss.item() == pytest.approx(3 * metric + 5 * arithmetic)
    assert output.logs["phi_loss"].item() == pytest.approx(3 * metric)
    assert output.logs["psi_loss"].item() == pytest.approx(5 * arithmetic)


@each_group_size
@each_architecture
def test_loss_without_decoders_is_the_two_equations(
    monkeypatch: pytest.MonkeyPatch, shared_trunk: bool, group_size: int
) -> None:
    swap = torch.arange(8).flip(0)
    monkeypatch.setattr(torch, "randperm", lambda rows, device=None: swap)
    settings = {**ONLY_PSI_LOSS, **ABSOLUTE, "phi_weight": 3.0, "psi_weight": 5.0, "shared_trunk": shared_trunk}
    method, batch = make_method("gcb", **settings, metric_discount=0.8), image_batch(8 * group_size, 0, group_size)
    state = batch.first(batch.state)
    phi, phi_next = (method.phi(frames, batch.goal) for frames in (state, batch.next_state))
    norms: dict[str, Any] = {"left_norm": "mean_l1", "right_norm": "mean_l1", "reward_weight": 0.2}
    metric, _ = phi_loss(phi, phi_next, batch.reward, swap, discount=0.8, **norms)
    some, psi_state, psi_goal = slice(None, None, LINEAR_PSI_EVERY), method.psi(state), method.psi(batch.goal)
    phi_goal = method.phi(batch.goal, batch.goal)
    arithmetic, _ = psi_loss(phi[some], phi_goal[some], psi_state[some], psi_goal[some])
    assert method.compute_loss(batch).loss.item() == pytest.approx((3 * metric + 5 * arithmetic).item(), rel=1e-4)


# ---- where gradients stop -------------------------------------------------------------------------------------------


@each_architecture
def test_psi_loss_trains_the_linear_map_alone(shared_trunk: bool) -> None:
    settings = {**ONLY_PSI_LOSS, "psi_weight": 1.0, "shared_trunk": shared_trunk}
    method = make_method("gcb", **settings)
    method.compute_loss(image_batch(16, group_size=2)).loss.backward()
    assert gradient(method._arithmetic) > 0
    assert gradient(method._trunk) == gradient(method._phi) == gradient(method._psi) == 0


@each_architecture
def test_psi_loss_of_the_embedding_itself_has_no_gradient_in_phi(shared_trunk: bool) -> None:
    settings = {**ONLY_PSI_LOSS, "psi_weight": 1.0, "shared_trunk": shared_trunk, "linear_psi": False}
    method = make_method("gcb", **settings)
    method.compute_loss(image_batch(16, group_size=2)).loss.backward()
    assert gradient(method._phi) == 0
    assert gradient(method._psi) > 0
    assert (gradient(method._trunk) > 0) == shared_trunk


@each_architecture
def test_phi_loss_has_no_gradient_in_psi(shared_trunk: bool) -> None:
    method = make_method("gcb", psi_weight=0.0, shared_trunk=shared_trunk)
    method.compute_loss(image_batch(16, group_size=2)).loss.backward()
    assert gradient(method._phi) > 0
    assert (gradient(method._trunk) > 0) == shared_trunk
    assert gradient(method._psi) == gradient(method._arithmetic) == 0


@each_architecture
def test_rl_gradient_reaches_psi_phi_and_the_trunk(shared_trunk: bool) -> None:
    for policy in ("goal", "analogy"):
        method = make_method("gcb", shared_trunk=shared_trunk)
        method.compute_loss(image_batch(16, group_size=2)).actor_inputs[policy].square().sum().backward()
        assert gradient(method._psi) > 0
        assert gradient(method._phi) > 0
        assert (gradient(method._trunk) > 0) == shared_trunk
        assert gradient(method._arithmetic) == 0


@each_architecture
def test_rl_gradient_none_detaches_all_inputs(shared_trunk: bool) -> None:
    method = make_method("gcb", rl_gradient="none", shared_trunk=shared_trunk)
    output = method.compute_loss(image_batch(group_size=2))
    for policy in ("goal", "analogy"):
        assert encoder_gradient(method, output.actor_inputs[policy]) == 0
        assert not output.critic_inputs[policy].requires_grad
    output.actor_inputs["analogy"].square().sum().backward()
    assert gradient(method.bottleneck) > 0  # it belongs to the policy


def test_grounded_psi_loss_subtracts_phi_of_the_goal() -> None:
    batch, losses = image_batch(), {}
    for grounded in (True, False):
        method = make_method("gcb", **ONLY_PSI_LOSS, **ABSOLUTE, psi_weight=1.0, grounded=grounded)
        origin = method.phi(batch.goal, batch.goal) if grounded else 0.0
        target = method.phi(batch.state, batch.goal) - origin
        error = target - (method.psi(batch.goal) - method.psi(batch.state))
        expected = error[::LINEAR_PSI_EVERY].square().sum(1).mean()
        losses[grounded] = method.compute_loss(batch).loss.item()
        assert losses[grounded] == pytest.approx(expected.item(), rel=1e-4)
    assert losses[True] != losses[False]


@each_psi
def test_relative_psi_loss_is_the_unexplained_fraction(linear_psi: bool) -> None:
    """The gradient has the same direction, on a scale that does not depend on φ's."""
    gradients, batch = {}, image_batch()
    for relative in (True, False):
        settings = {**ONLY_PSI_LOSS, "psi_weight": 1.0, "relative_psi_loss": relative, "linear_psi": linear_psi}
        method = make_method("gcb", **settings)
        output = method.compute_loss(batch)
        unexplained = output.logs["psi_unexplained"].item()
        assert unexplained > 1  # φ is small at first
        assert not relative or output.loss.item() == pytest.approx(1.0, rel=1e-4)
        output.loss.backward()
        trained = method._arithmetic if linear_psi else method._psi
        gradients[relative] = torch.cat([weight.grad.flatten() for weight in trained.parameters()])
    similarity = functional.cosine_similarity(gradients[True], gradients[False], dim=0)
    assert similarity.item() == pytest.approx(1.0, abs=1e-4)
    method.load_state_dict(
        {name: 100 * value if "_phi" in name else value for name, value in method.state_dict().items()}
    )
    large = make_method("gcb", **{**ONLY_PSI_LOSS, "psi_weight": 1.0, "linear_psi": linear_psi})
    large.load_state_dict(method.state_dict())
    output = large.compute_loss(batch)
    assert output.logs["psi_unexplained"] < 1.1
    assert output.loss.item() == pytest.approx(min(1.0, output.logs["psi_unexplained"].item()), rel=1e-4)


def test_psi_is_the_linear_map_of_the_policys_embedding() -> None:
    method, batch = make_method("gcb"), image_batch()
    embedding = method._psi(method._trunk(batch.state))
    torch.testing.assert_close(method.psi(batch.state), embedding @ method._arithmetic.weight.T)
    seen = method.compute_loss(batch).critic_inputs["goal"][:, :32]
    torch.testing.assert_close(seen, functional.layer_norm(embedding, (32,)))


# ---- partners -------------------------------------------------------------------------------------------------------


def swapped(groups: Tensor) -> Tensor:
    """Return the values of groups 2i and 2i + 1 in each other's place."""
    return groups.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)


@each_group_size
@each_architecture
def test_a_partners_pair_replaces_the_own_one_where_chance_says(
    monkeypatch: pytest.MonkeyPatch, shared_trunk: bool, group_size: int
) -> None:
    method = make_method("gcb", shared_trunk=shared_trunk, partners={"probability": 0.5}).eval()
    has_partner = torch.tensor([True, True, False, False, True, True, True, True])
    batch = replace(image_batch(8 * group_size, 0, group_size), has_partner=has_partner)
    draws = torch.tensor([0.1, 0.9, 0.1, 0.9, 0.6, 0.49, 0.0, 0.2])
    monkeypatch.setattr(torch, "rand", lambda count, device=None: draws[:count])
    chosen = torch.tensor([True, False, False, False, False, True, True, True])
    before, after = (
        torch.where(chosen[:, None, None, None], swapped(own), own) for own in (batch.initial_state, batch.goal)
    )
    assert not torch.equal(after, batch.goal)
    output = method.compute_loss(batch)
    prepared = method.prepare_example(batch.initial_state, before, after)
    rows = (batch.expand(part) for part in prepared)
    torch.testing.assert_close(output.critic_inputs["analogy"], method.analogy_inputs(batch.state, *rows))
    torch.testing.assert_close(output.next_inputs["analogy"], method.analogy_inputs(batch.next_state, *prepared))
    # Without partners every example is the own one; the policy for goals never sees another goal.
    alone = method.compute_loss(replace(batch, has_partner=None))
    own = (batch.expand(part) for part in method.prepare_example(batch.initial_state, batch.initial_state, batch.goal))
    torch.testing.assert_close(alone.critic_inputs["analogy"], method.analogy_inputs(batch.state, *own))
    assert torch.equal(alone.critic_inputs["goal"], output.critic_inputs["goal"])


def test_the_policys_gradient_enters_the_partners_pair() -> None:
    method = make_method("gcb", partners={"probability": 1.0})
    batch = replace(image_batch(4), has_partner=torch.ones(4, dtype=torch.bool))
    pairs = torch.randn(4, 32, requires_grad=True)
    method._examples(batch, pairs)[1].sum().backward()
    assert pairs.grad is not None
    assert pairs.grad.abs().sum(1).nonzero().flatten().tolist() == [0]


def test_only_a_policy_for_analogies_has_partners() -> None:
    assert make_method("gcb").partners is not None
    assert make_method("gcb", policies="analogy").partners is not None
    assert make_method("gcb", **NO_PARTNERS).partners is None
    assert make_method("gcb", policies="goal", **NO_PARTNERS).partners is None


# ---- the order in memory --------------------------------------------------------------------------------------------


def test_feature_maps_and_their_gradients_stay_channels_last() -> None:
    """Otherwise convolutions and ReLU are slower."""
    method, rows = make_method("gcb", Shapes((64, 64, 3), 2)), image_batch(8, 0, 2)
    batch = replace(rows, **{name: frame.new_zeros(len(frame), 64, 64, 3) for name, frame in rows.frames().items()})
    maps: list[Tensor] = []

    def keep(network: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        if output.requires_grad:
            output.register_hook(maps.append)
        maps.append(output)

    for part in (method._trunk, method._phi.fuse[0]):
        part.register_forward_hook(keep)
    output = method.compute_loss(batch)
    (output.loss + sum(inputs.sum() for inputs in output.actor_inputs.values())).backward()
    assert {tuple(each.shape[1:]) for each in maps} == {(64, 5, 5)}
    assert len(maps) == 7  # two passes of each with a gradient or without, one more of φ(g, g), and two gradients
    assert all(each.is_contiguous(memory_format=torch.channels_last) for each in maps)


# ---- the target network, dynamics -----------------------------------------------------------------------------------


@each_architecture
def test_target_follows_after_a_step_at_rate_tau(shared_trunk: bool) -> None:
    method = make_method("gcb", tau=0.25, shared_trunk=shared_trunk)
    sources = [*method._trunk.parameters(), *method._phi.parameters()]
    targets = list(method._target.parameters())
    before = [target.clone() for target in targets]
    for source in sources:
        source.data += 1
    method.compute_loss(image_batch()).loss.backward()
    assert all(target.grad is None and not target.requires_grad for target in targets)
    assert all(torch.equal(target, old) for target, old in zip(targets, before, strict=True))
    method.after_step()
    for target, old in zip(targets, before, strict=True):
        torch.testing.assert_close(target, old + 0.25)
    assert len(targets) == len(sources)
    assert make_method("gcb", tau=None)._target is None


@each_architecture
def test_phi_loss_bootstraps_from_the_target(shared_trunk: bool) -> None:
    method, batch = make_method("gcb", reward_decoder=False, tau=0.01, shared_trunk=shared_trunk), image_batch()
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
    assert gradient(method._phi) == gradient(method._trunk) == 0
    assert gradient(method.dynamics) > 0


@each_architecture
@pytest.mark.parametrize(
    ("settings", "steps", "rate"),
    [({"psi_weight": 0.0}, 200, 1e-3), ({**ONLY_PSI_LOSS, "psi_weight": 1.0}, 100, 1e-2)],
    ids=["phi", "psi"],
)
def test_losses_of_one_batch_can_be_minimised(
    settings: dict[str, Any], steps: int, rate: float, shared_trunk: bool
) -> None:
    """The optimum is 0: rewards and actions are decoded, the metric is exact, and ψ(g) - ψ(s) explains φ."""
    losses = fit(make_method("gcb", **settings, shared_trunk=shared_trunk), image_batch(), steps, rate)
    assert losses[0] > 0.99
    assert max(losses[-5:]) < 0.1


def test_the_papers_loss_of_one_batch_can_be_minimised() -> None:
    losses = fit(make_method("gcb", shared_trunk=False, linear_psi=False), image_batch(), 200, 1e-3)
    assert losses[0] > 1.0
    assert max(losses[-5:]) < 0.1


# ---- the policies ---------------------------------------------------------------------------------------------------


def test_policies_see_phi_of_the_state_or_the_code_of_the_example_and_where_it_started() -> None:
    method, batch = make_method("gcb").eval(), image_batch()
    output = method.compute_loss(batch)
    by_goal = functional.layer_norm(method.phi(batch.state, batch.goal), (32,))
    torch.testing.assert_close(output.critic_inputs["goal"][:, 32:], by_goal)
    start = functional.layer_norm(method._psi(method._trunk(batch.initial_state)), (32,))
    code = method.bottleneck(functional.layer_norm(method.phi(batch.initial_state, batch.goal), (32,)))
    torch.testing.assert_close(output.critic_inputs["analogy"][:, 32:], torch.cat([code, start], -1))
    assert code.shape == (8, 16)


@each_architecture
def test_a_policy_can_be_conditioned_on_the_goals_embedding(shared_trunk: bool) -> None:
    method, batch = make_method("gcb", goal_condition="goal", shared_trunk=shared_trunk).eval(), image_batch(8, 0, 2)
    goal = functional.layer_norm(method._psi(method._trunk(batch.goal)), (32,))
    output = method.compute_loss(batch)
    torch.testing.assert_close(output.critic_inputs["goal"][:, 32:], batch.expand(goal))
    torch.testing.assert_close(output.next_inputs["goal"][:, 32:], goal)
    by_goal = method.goal_inputs(batch.next_state, *method.prepare_goal(batch.initial_state, batch.goal))
    torch.testing.assert_close(by_goal, output.next_inputs["goal"])


@pytest.mark.parametrize("grounded", [True, False])
def test_goal_conditioned_policy_infers_the_goal_by_arithmetic(grounded: bool) -> None:
    settings = {**NO_PARTNERS, "policies": "goal", "goal_condition": "goal", "linear_psi": False, "grounded": grounded}
    method, batch = make_method("gcb", **settings).eval(), image_batch()
    inferred = method.psi(batch.initial_state) + method.phi(batch.next_state, batch.goal)
    inferred = inferred - method.phi(batch.goal, batch.goal) if grounded else inferred
    prepared = method.prepare_example(batch.initial_state, batch.next_state, batch.goal)
    seen = method.analogy_inputs(batch.state, *prepared)
    torch.testing.assert_close(seen[:, 32:], functional.layer_norm(inferred, (32,)))


def test_a_policy_for_goals_alone_is_given_phi_of_the_example() -> None:
    method, batch = make_method("gcb", policies="goal", **NO_PARTNERS).eval(), image_batch()
    assert method.bottleneck is None
    assert method.extra_frames == frozenset()
    prepared = method.prepare_example(batch.initial_state, batch.next_state, batch.goal)
    seen = method.analogy_inputs(batch.state, *prepared)
    torch.testing.assert_close(seen[:, 32:], functional.layer_norm(method.phi(batch.next_state, batch.goal), (32,)))


def test_only_the_actors_code_is_noisy() -> None:
    for width, noisy in ((16, True), (None, False)):
        method, batch = make_method("gcb", bottleneck_dim=width, bottleneck_noise=0.5), image_batch()
        torch.manual_seed(0)
        first, second = method.compute_loss(batch), method.compute_loss(batch)
        assert torch.equal(first.actor_inputs["analogy"], second.actor_inputs["analogy"]) == (not noisy)
        assert torch.equal(first.critic_inputs["analogy"], second.critic_inputs["analogy"])
        assert torch.equal(first.actor_inputs["goal"], first.critic_inputs["goal"])


def test_paper_preset_has_the_papers_values() -> None:
    config = make_config("gcb", "paper")
    method, iql = config.method_config, config.iql
    text = {
        **{"encoder": "paper", "size": 256},  # "Architecture": six layers of 32 filters, 256 dimensions
        **{"left_norm": "l1", "right_norm": "l2", "metric_discount": 0.99},  # Eq. (phi_loss), the table
        **{"scale_reward": False, "policy_distance_weight": 0.0, "action_decoder": False, "tau": None},
        **{"grounded": True, "reward_decoder": True, "dynamics": "next_observation"},  # appendix: the variants kept
        **{"relative_psi_loss": False, "output_norm": True, "phi_weight": 1.0, "psi_weight": 1.0},
        # One policy on φ(s, g), ψ trained by L_ψ itself, an encoder for each, no RL gradient.
        **{"rl_gradient": "none", "policies": "goal", "goal_condition": "pair"},
        **{"shared_trunk": False, "linear_psi": False},
        **{"phi_learning_rate": 1e-4, "phi_weight_decay": 1e-3, "psi_learning_rate": 5e-4, "psi_weight_decay": 1e-4},
    }
    assert {name: getattr(method, name) for name in text} == text
    assert method.partners.source == "none"
    assert (config.batch_size, config.transitions_per_episode) == (256, 1)
    assert (config.learning_rate, config.random_shift) == (1e-4, 0)
    assert (iql.discount, iql.expectile, iql.tau) == (0.99, 0.7, 0.005)
    assert (iql.log_std_min, iql.log_std_max) == (-10.0, 2.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "method_config.size is 0"),
        ({"metric_discount": 1.0}, "method_config.metric_discount is 1.0"),
        ({"tau": 0.0}, "method_config.tau is 0.0"),
        ({"bottleneck_dim": 0}, "method_config.bottleneck_dim is 0"),
        ({"phi_weight": -1.0}, "method_config.phi_weight is -1.0"),
        ({"action_decoder": False}, "policy_distance_weight is .*action_decoder"),
        ({"policies": "goal"}, "partners.source is 'metric'; partners need the policy for analogies"),
        ({"policies": "goal", "goal_condition": "goal", **NO_PARTNERS}, "linear_psi is True"),
        ({"policies": "neither"}, "method_config.policies is 'neither'"),
    ],
)
def test_settings_are_checked(settings: dict, message: str) -> None:
    with pytest.raises(GCBError, match=message):
        make_config("gcb", "laptop", {"method_config": settings})
