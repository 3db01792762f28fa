"""Estimates with confidence intervals."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gcb.utils.dataclass_io import check_interval

Z95 = 1.959963984540054
RESAMPLES = 1000


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
