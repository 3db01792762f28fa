"""Success rates and other estimates, with confidence intervals."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from gcb.errors import GCBError
from gcb.utils.dataclass_io import check_interval

Z95 = 1.959963984540054
RESAMPLES = 1000

Criterion = Literal["any_step", "at_end", "declared"]
"""When the goal of an episode has to be reached to count as a success."""
CRITERIA: dict[Criterion, str] = {"any_step": "at any step", "at_end": "at the end", "declared": "when declared done"}
"""Every criterion with its name in texts and tables. Older results lack "declared"."""


@dataclass(frozen=True)
class Rate:
    """A success rate with its 95 % Wilson interval."""

    successes: int
    trials: int

    def __post_init__(self) -> None:
        check_interval("successes", self.successes, f"[0, {self.trials}]")

    @property
    def value(self) -> float:
        return self.successes / self.trials if self.trials else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The Wilson score interval, which unlike the normal approximation is valid near 0 and 1 and for few trials."""
        if not self.trials:
            return 0.0, 1.0
        rate, spread = self.value, Z95**2 / self.trials
        middle = (rate + spread / 2) / (1 + spread)
        half = Z95 / (1 + spread) * math.sqrt(rate * (1 - rate) / self.trials + spread / (4 * self.trials))
        return max(0.0, middle - half), min(1.0, middle + half)

    def to_dict(self) -> dict[str, Any]:
        """Return the rate as JSON values, as in eval.json."""
        return {"rate": self.value, "interval": list(self.interval), "successes": self.successes, "of": self.trials}

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} [{low:.3f}, {high:.3f}] ({self.successes}/{self.trials})"


@dataclass(frozen=True)
class Estimate:
    """A statistic with its 95 % interval and number of samples."""

    value: float
    interval: tuple[float, float]
    samples: int

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} [{low:.3f}, {high:.3f}]"


def bootstrap(
    statistic: Callable[..., float], *columns: np.ndarray, seed: int = 0, resamples: int = RESAMPLES
) -> Estimate:
    """Return a statistic of columns of equal length with its percentile interval over resampled rows.

    Resamples whose statistic is not finite (such as the correlation of a constant) are left out.
    """
    rng, rows = np.random.default_rng(seed), len(columns[0])
    if not rows:
        return Estimate(math.nan, (math.nan, math.nan), 0)
    chosen = (rng.integers(rows, size=rows) for _ in range(resamples))
    values = np.array([statistic(*(column[index] for column in columns)) for index in chosen])
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, [0.025, 0.975]) if len(values) else (math.nan, math.nan)
    return Estimate(float(statistic(*columns)), (float(low), float(high)), rows)


def paired_difference(first: ArrayLike, second: ArrayLike) -> Estimate:
    """Return how much more often the first agent succeeds than the second in the same episodes, with a 95 % interval.

    `first` and `second` hold the success of every episode, with shape (episodes,), or (seeds, episodes) for several
    training seeds. The episode is the unit: success is averaged over seeds first, which leaves one difference per
    episode. The interval is the normal approximation mean ± 1.96 · std / √episodes, with the sample standard deviation
    of these differences. It covers the choice of episodes and not that of training seeds, and is too narrow if only a
    few episodes differ.
    """
    rates = [np.atleast_2d(np.asarray(successes, float)).mean(axis=0) for successes in (first, second)]
    if rates[0].shape != rates[1].shape:
        raise GCBError(f"the agents have {len(rates[0])} and {len(rates[1])} episodes; they must have the same ones.")
    differences = rates[0] - rates[1]
    count = len(differences)
    if count < 2:
        raise GCBError(f"there are {count} episodes; an interval needs at least 2.")
    mean, half = float(differences.mean()), Z95 * float(differences.std(ddof=1)) / math.sqrt(count)
    return Estimate(mean, (max(-1.0, mean - half), min(1.0, mean + half)), count)
