"""Search partner episodes by a method's embedding of their tasks, every few hundred steps."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gcb.data import Sampler
from gcb.data.partners import CANDIDATES, Partners, find_partners, random_partners
from gcb.methods import Method
from gcb.runs.config import TrainConfig

CHUNK = 256
"""Episodes that are embedded at once."""
STAGES = (0.0, 0.5, 0.75, 0.95)
"""States of an episode that are compared, as fractions of its length; the task shows best towards the end."""
PIXEL_CELLS = 16
"""Images are averaged over a grid of this many cells per side before their pixels are compared."""


class PartnerSearch:
    """Decides when to search partners and finds them, according to a method's `PartnerConfig`.

    It depends only on the weights, the seed and the step, so that a resumed run and every process of a distributed one
    find the same partners.
    """

    def __init__(self, method: Method, sampler: Sampler, config: TrainConfig[Any], device: torch.device) -> None:
        self._method, self._sampler, self._seed, self._device = method, sampler, config.seed, device
        self.config = method.partners
        self._start = 0 if self.config is None else round(self.config.start * config.steps)
        self._steps = config.steps
        # The table of partners refers to episodes with their own goals only.
        self._possible = self.config is not None and config.goals.p_original > 0 and len(sampler.episodes) > 1

    def is_due(self, step: int) -> bool:
        """Return whether to search before step number `step`, counted from 0."""
        if not self._possible or self.config is None or step < self._start:
            return False
        if self.config.source in ("pixels", "random"):
            return self._sampler.partners is None  # they do not change
        return self._sampler.partners is None or (step - self._start) % self.config.every == 0

    def __call__(self, step: int) -> Partners:
        """Search the partners of the sampler's episodes."""
        assert self.config is not None, "only searched for when due"
        rng = np.random.default_rng([self._seed, 3, step])
        episodes = self._sampler.episodes
        if len(episodes) > CANDIDATES:
            episodes = np.sort(rng.choice(episodes, CANDIDATES, replace=False))
        if self.config.source == "random":
            return random_partners(episodes, rng)
        embed = self._pixels if self.config.source == "pixels" else self._phi
        chunks = np.array_split(episodes, -(-len(episodes) // CHUNK))
        embedding = np.concatenate([embed(chunk) for chunk in chunks])
        return find_partners(embedding, episodes, self.config.neighbors, self.max_hops(step), rng)

    def max_hops(self, step: int) -> float:
        """Return the length of the longest walk: it grows exponentially until two thirds of the remaining training."""
        assert self.config is not None
        progress = (step - self._start) / max(1, self._steps - self._start)
        learned = 1.0 if self.config.source == "pixels" else min(1.0, 1.5 * progress)
        return self.config.max_hops**learned

    def _phi(self, episodes: np.ndarray) -> np.ndarray:
        """Return φ(s, g) at several states along each episode, concatenated."""
        was_training = self._method.training
        self._method.eval()
        goal = torch.from_numpy(self._sampler.goals_of(episodes)).to(self._device)
        states = (torch.from_numpy(self._sampler.states_at(episodes, stage)).to(self._device) for stage in STAGES)
        embedding = torch.cat([self._method.phi(state, goal) for state in states], 1).float().cpu().numpy()
        self._method.train(was_training)
        return embedding

    def _pixels(self, episodes: np.ndarray) -> np.ndarray:
        """Return the images of (s_0, g), shrunk."""
        frames = (self._sampler.states_at(episodes, 0.0), self._sampler.goals_of(episodes))
        return np.concatenate([_shrink(frame) for frame in frames], axis=1)


def _shrink(observation: np.ndarray) -> np.ndarray:
    """Return images as vectors of block averages; vectors are returned unchanged."""
    if observation.ndim == 2:
        return observation.astype(np.float32)
    images = torch.from_numpy(observation).permute(0, 3, 1, 2).float()
    return functional.adaptive_avg_pool2d(images, PIXEL_CELLS).flatten(1).numpy()


def partners_to_tensors(partners: Partners | None) -> dict[str, Tensor] | None:
    """Return a table of partners as a checkpoint stores it."""
    if partners is None:
        return None
    return {"episodes": torch.from_numpy(partners.episodes), "table": torch.from_numpy(partners.table)}


def partners_from_tensors(state: Mapping[str, Tensor] | None) -> Partners | None:
    """Return the table that `partners_to_tensors` stored."""
    return None if state is None else Partners(state["episodes"].numpy(), state["table"].numpy())
