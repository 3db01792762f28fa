"""Numbers with their uncertainty."""

import math
from dataclasses import dataclass

Z95 = 1.959963984540054


@dataclass(frozen=True)
class Rate:
    """A share of successes with its 95 % Wilson interval."""

    successes: int
    trials: int

    @property
    def value(self) -> float:
        return self.successes / self.trials if self.trials else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's score interval: unlike the usual one it is honest near 0 and 1 and for few trials."""
        if not self.trials:
            return 0.0, 1.0
        share, spread = self.value, Z95**2 / self.trials
        middle = (share + spread / 2) / (1 + spread)
        half = Z95 / (1 + spread) * math.sqrt(share * (1 - share) / self.trials + spread / (4 * self.trials))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} [{low:.3f}, {high:.3f}] ({self.successes}/{self.trials})"
