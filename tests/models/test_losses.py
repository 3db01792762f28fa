"""Eq. (phi_loss) and Eq. (psi_obj) against values worked out by hand."""

import pytest
import torch

from gcb.errors import GCBError
from gcb.models.losses import distance, phi_loss, psi_loss

PHI = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
NEXT = torch.tensor([[1.0, 1.0], [1.0, 3.0]])
REWARD = torch.tensor([1.0, 0.0])
SWAP = torch.tensor([1, 0])


@pytest.mark.parametrize(("norm", "expected"), [("l1", 7.0), ("l2", 5.0), ("mean_l1", 3.5)])
def test_distances(norm, expected):
    assert distance(PHI[:1], PHI[1:], norm).tolist() == [expected]


@pytest.mark.parametrize(
    ("left", "right", "options", "expected"),
    [
        ("l1", "l2", {}, (7 - 1 - 0.5 * 2) ** 2),  # the paper's
        ("l1", "l1", {}, (7 - 1 - 0.5 * 2) ** 2),
        ("l2", "l2", {}, (5 - 1 - 0.5 * 2) ** 2),
        ("mean_l1", "mean_l1", {}, (3.5 - 1 - 0.5 * 1) ** 2),
        ("mean_l1", "mean_l1", {"reward_weight": 0.5}, (3.5 - 0.5 - 0.5 * 1) ** 2),
        ("l1", "l2", {"policy_distance": torch.tensor([2.0, 2.0])}, (7 - 3 - 0.5 * 2) ** 2),
        ("l1", "l2", {"reward_weight": 0.5, "policy_distance": torch.tensor([2.0, 2.0])}, (7 - 1.5 - 0.5 * 2) ** 2),
    ],
)
def test_phi_loss_by_hand(left, right, options, expected):
    loss, info = phi_loss(PHI, NEXT, REWARD, SWAP, discount=0.5, left_norm=left, right_norm=right, **options)
    assert loss.item() == pytest.approx(expected)
    assert info["phi_distance"].item() - info["phi_target"].item() == pytest.approx(expected**0.5)


def test_pairs_of_equal_samples_have_no_loss():
    assert phi_loss(PHI, NEXT, REWARD, torch.tensor([0, 1]), discount=0.5)[0].item() == 0.0


def test_target_has_no_gradient_and_equal_points_a_finite_one():
    phi = torch.zeros(2, 3, requires_grad=True)
    target = torch.randn(2, 3, generator=torch.Generator().manual_seed(0)).requires_grad_()
    phi_loss(phi, target, REWARD, SWAP, discount=0.5, left_norm="l2")[0].backward()
    assert target.grad is None
    assert phi.grad is not None
    assert torch.isfinite(phi.grad).all()


def test_gradient_of_phi_by_hand():
    phi = PHI.clone().requires_grad_()
    phi_loss(phi, NEXT, REWARD, SWAP, discount=0.5)[0].backward()
    # Both orders of the pair: 2 · (7 - 2) · sign, twice, averaged over 2
    assert phi.grad is not None
    assert phi.grad.tolist() == [[-10.0, -10.0], [10.0, 10.0]]


def test_psi_loss_by_hand():
    phi_sg, phi_gg = torch.tensor([[3.0, 1.0], [0.0, 2.0]]), torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    psi_s, psi_g = torch.zeros(2, 2), torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    loss, info = psi_loss(phi_sg, phi_gg, psi_s, psi_g)
    assert loss.item() == pytest.approx(((1 + 1) + 0) / 2)  # (2, 0) - (1, 1) and (0, 1) - (0, 1)
    assert info["psi_unexplained"].item() == pytest.approx(2 / 5)
    assert psi_loss(phi_sg, None, psi_s, psi_g)[0].item() == pytest.approx((4 + 1) / 2)


def test_psi_loss_has_no_gradient_in_phi():
    phi_sg, phi_gg, psi_s, psi_g = (torch.ones(2, 2, requires_grad=True) for _ in range(4))
    psi_loss(3 * phi_sg, phi_gg, psi_s, psi_g)[0].backward()
    assert phi_sg.grad is None
    assert phi_gg.grad is None
    assert psi_s.grad is not None
    assert psi_g.grad is not None
    assert torch.equal(psi_s.grad, -psi_g.grad)


def test_wrong_norms_and_shapes_are_refused():
    with pytest.raises(GCBError, match="l1, l2, mean_l1"):
        distance(PHI, PHI, "l3")  # pyright: ignore[reportArgumentType]
    with pytest.raises(GCBError, match=r"shapes \(2, 2\) and \(2, 1\)"):
        distance(PHI, PHI[:, :1], "l1")
    with pytest.raises(GCBError, match="phi, reward and permutation"):
        phi_loss(PHI, NEXT, REWARD[:, None], SWAP, discount=0.5)
    with pytest.raises(GCBError, match="the same shape"):
        psi_loss(PHI, PHI, PHI[:, :1], PHI[:, :1])
