"""Collect metrics during training, average them for the log, and stop a run that has diverged."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from gcb.errors import GCBError
from gcb.runs.run_dir import Run


class LossMonitor:
    """Collects the metrics of every step on their device; `check` reads them.

    Reading from a GPU waits for it, so many steps are read at once; an error still names the step that diverged. A
    metric whose name ends in "loss" must stay finite and within `max_loss`.
    """

    def __init__(self, max_loss: float) -> None:
        self.max_loss = max_loss
        self._names: list[str] = []
        self._pending: list[tuple[int, Tensor]] = []
        self._sums: dict[str, float] = {}
        self._count = 0
        self._latest: dict[str, float] = {}

    def add(self, step: int, metrics: Mapping[str, Tensor]) -> None:
        """Add the metrics of one step."""
        self._names = list(metrics)
        self._pending.append((step, torch.stack([value.float() for value in metrics.values()])))

    def check(self, run: Run) -> None:
        """Read the metrics added since the last call; raise if a loss has diverged."""
        if not self._pending:
            return
        rows = torch.stack([values for _, values in self._pending]).tolist()
        for (step, _), row in zip(self._pending, rows, strict=True):
            metrics = dict(zip(self._names, row, strict=True))
            for name, value in metrics.items():
                if name.endswith("loss") and not abs(value) <= self.max_loss:
                    limit = "" if not math.isfinite(value) else f", beyond max_loss {self.max_loss:g}"
                    raise GCBError(f"{name} is {value:g} at step {step}{limit}: the run has diverged. {run.advice()}")
                self._sums[name] = self._sums.get(name, 0.0) + value
            self._count += 1
            self._latest = metrics
        self._pending.clear()

    def latest(self, names: Sequence[str]) -> dict[str, float]:
        """Return some losses of the last step that was read, for a progress bar."""
        return {name.removesuffix("_loss"): self._latest[name] for name in names if name in self._latest}

    def means(self) -> dict[str, float]:
        """Return the mean of each metric since the last call."""
        means = {name: total / max(self._count, 1) for name, total in self._sums.items()}
        self._sums, self._count = {}, 0
        return means

    def state_dict(self) -> dict[str, Any]:
        return {"sums": dict(self._sums), "count": self._count}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._sums, self._count = dict(state["sums"]), int(state["count"])
