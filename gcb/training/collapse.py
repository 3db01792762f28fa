"""Detect representation collapse: feature standard deviation and effective rank of φ and ψ.

The objective as written in the paper is minimal when φ maps everything to one point, which is useless for a policy. The
losses do not show it; these metrics do.
"""

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from gcb.data import Batch
from gcb.methods import Method

MIN_FEATURE_STD = 0.01
"""Collapsed if the standard deviation is below this share of the features' root mean square. Typical values: .004 for a
collapsed φ, .4 for a working one, .02 to .1 for untrained encoders. The threshold is relative because the scale of a
metric is arbitrary, and because a policy sees normalised features or learns their scale."""
MIN_RANK = 2.0
"""Collapsed if features lie nearly on a line: then they hold one number, such as the time to the goal, whatever their
dimension. One direction before a tail of 250 with 5 % of the singular values' sum has an effective rank of 1.6."""

FIRST_STEP = 50
"""Steps before the first warning: features of networks that have hardly been trained may differ as little."""


class CollapseWarning(UserWarning):
    """A representation no longer distinguishes its inputs."""


def feature_std(features: Tensor) -> Tensor:
    """Return the standard deviation over a batch (batch, dimension), averaged over dimensions."""
    return features.std(dim=0).mean()


def effective_rank(features: Tensor) -> Tensor:
    """Return exp of the entropy of the normalised singular values of the centred features (Roy & Vetterli 2007).

    It is k if the features vary equally in k directions, and 1 on a line or at a single point.
    """
    centred = (features - features.mean(dim=0)).double().cpu()
    values = torch.linalg.svdvals(centred)
    return torch.special.entr(values / values.sum().clamp_min(1e-300)).sum().exp()


@torch.no_grad()
def representation_metrics(method: Method, batch: Batch[Tensor]) -> dict[str, float]:
    """Return feature_std, its ratio to the features' size, and rank of φ(s, g) and ψ(s), where the method has them."""
    was_training = method.training
    method.eval()
    metrics = {}
    for name, features in _embeddings(method, batch):
        features = features.float()
        size = features.square().mean().sqrt()
        metrics[f"{name}_feature_std"] = float(feature_std(features))
        metrics[f"{name}_relative_feature_std"] = float(feature_std(features) / size.clamp_min(1e-30))
        metrics[f"{name}_rank"] = float(effective_rank(features))
    method.train(was_training)
    return metrics


def _embeddings(method: Method, batch: Batch[Tensor]) -> Iterator[tuple[str, Tensor]]:
    for name, embed in (
        ("phi", lambda: method.phi(batch.first(batch.state), batch.goal)),
        ("psi", lambda: method.psi(batch.state)),
    ):
        try:
            yield name, embed()
        except NotImplementedError:
            continue


class CollapseAlarm:
    """Warns once about each representation that collapses."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def check(self, metrics: dict[str, float], step: int) -> None:
        """Check the result of `representation_metrics` after `step` steps."""
        if step < FIRST_STEP:
            return
        for name, symbol in (("phi", "φ"), ("psi", "ψ")):
            if f"{name}_rank" not in metrics or name in self._warned:
                continue
            ratio, rank = metrics[f"{name}_relative_feature_std"], metrics[f"{name}_rank"]
            if ratio < MIN_FEATURE_STD or rank < MIN_RANK:
                self._warned.add(name)
                message = (
                    f"{symbol} has collapsed at step {step}: its relative feature std is {ratio:.2g} (healthy: above "
                    f"{MIN_FEATURE_STD}) and its effective rank {rank:.2f} (healthy: above {MIN_RANK:g}). The policy "
                    "cannot learn from it"
                )
                warnings.warn(message, CollapseWarning, stacklevel=2)
