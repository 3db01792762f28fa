"""How much of a representation is left: its spread and its effective rank, and a warning when they collapse.

The letter of the paper's objective is at its smallest when φ maps everything to one point, and a policy that sees one
point sees nothing. The losses look fine then: only these figures show it.
"""

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from gcb.methods import Batch, Method

MIN_FEATURE_STD = 0.01
"""Collapsed if features vary by less than this share of their own size. A collapsed φ (behind a layer norm, so of size
1) had .004 in our prototype and a working one .4; untrained encoders begin at .02 to .1. It is a share because a metric
chooses its own unit, and because a policy sees features normalised or learns their scale."""
MIN_RANK = 2.0
"""Collapsed if features lie nearly on a line: then they are one number, such as the time to the goal, whatever their
dimension. One direction before a tail of 250 with 5 % of the singular values' sum has an effective rank of 1.6."""


class CollapseWarning(UserWarning):
    """A representation no longer tells its inputs apart."""


def feature_std(features: Tensor) -> Tensor:
    """The standard deviation over a batch (batch, dimension), averaged over dimensions."""
    return features.std(dim=0).mean()


def effective_rank(features: Tensor) -> Tensor:
    """exp of the entropy of the normalised singular values of the centred features (Roy & Vetterli 2007).

    It is k if the features vary equally in k directions; 1 on a line, and 1 for a single point.
    """
    centred = (features - features.mean(dim=0)).double().cpu()
    values = torch.linalg.svdvals(centred)
    shares = values / values.sum().clamp_min(1e-300)
    return torch.special.entr(shares).sum().exp()


@torch.no_grad()
def representation_metrics(method: Method, batch: Batch) -> dict[str, float]:
    """Spread, relative spread and effective rank of φ(s, g) and ψ(s) on a batch, for what the method has of them."""
    was_training = method.training
    method.eval()
    figures = {}
    for name, features in _embeddings(method, batch):
        features = features.float()
        size = features.square().mean().sqrt()
        figures[f"{name}_feature_std"] = float(feature_std(features))
        figures[f"{name}_relative_feature_std"] = float(feature_std(features) / size.clamp_min(1e-30))
        figures[f"{name}_rank"] = float(effective_rank(features))
    method.train(was_training)
    return figures


def _embeddings(method: Method, batch: Batch) -> Iterator[tuple[str, Tensor]]:
    for name, embed in (("phi", lambda: method.phi(batch.state, batch.goal)), ("psi", lambda: method.psi(batch.state))):
        try:
            yield name, embed()
        except NotImplementedError:
            continue


class CollapseAlarm:
    """Warns once for each representation that collapses."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def check(self, figures: dict[str, float], step: int) -> None:
        """Look at the figures of `representation_metrics` after `step` steps."""
        for name in ("phi", "psi"):
            if f"{name}_rank" not in figures or name in self._warned:
                continue
            share, rank = figures[f"{name}_relative_feature_std"], figures[f"{name}_rank"]
            if share < MIN_FEATURE_STD or rank < MIN_RANK:
                self._warned.add(name)
                message = (
                    f"{'φ' if name == 'phi' else 'ψ'} has collapsed at step {step}: it varies by {share:.2g} of its "
                    f"size (healthy: above {MIN_FEATURE_STD}), its effective rank is {rank:.2f} (healthy: above "
                    f"{MIN_RANK:g}). A policy that sees it sees next to nothing"
                )
                warnings.warn(message, CollapseWarning, stacklevel=2)
