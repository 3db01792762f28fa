"""One gradient step of a method and of IQL on its features: the loop body of Algorithm 1, the same for all methods."""

import warnings
from contextlib import nullcontext
from math import cos, pi
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gcb.agent.build import build
from gcb.data import Batch
from gcb.errors import GCBError
from gcb.methods import Shapes
from gcb.models.iql import Transition
from gcb.runs.config import TrainConfig
from gcb.training.distributed import SINGLE, Distributed


class Learner:
    """A method, IQL, and their optimizer."""

    def __init__(
        self, config: TrainConfig[Any], shapes: Shapes, device: torch.device, distributed: Distributed = SINGLE
    ):
        """Initial weights are sampled from torch's global generator."""
        self.config, self.device, self.distributed = config, device, distributed
        self.method, self.iql = build(config, shapes)
        self.modules = nn.ModuleDict({"method": self.method, "iql": self.iql}).to(device)
        self.optimizer = torch.optim.AdamW(self._parameter_groups(), fused=device.type in ("cpu", "cuda"))
        self._learning_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.dtype = autocast_dtype(config.precision, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.dtype == torch.float16)
        losses = _compile(self._eager_losses) if config.compile else self._eager_losses
        self._losses = distributed.average_gradients(self.modules, losses)

    def step(self, batch: Batch[Tensor], step: int) -> dict[str, Tensor]:
        """Take optimizer step number `step`, counted from 0; return the losses and metrics for the log, detached.

        `batch` holds this process's rows.
        """
        multiplier = lr_multiplier(self.config, step)
        for group, learning_rate in zip(self.optimizer.param_groups, self._learning_rates, strict=True):
            group["lr"] = learning_rate * multiplier
        self.optimizer.zero_grad(set_to_none=True)
        metrics = self._backward(batch, step)
        if self.config.max_grad_norm is not None:
            self.scaler.unscale_(self.optimizer)
            for group in self.optimizer.param_groups:
                nn.utils.clip_grad_norm_(group["params"], self.config.max_grad_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.method.after_step()
        self.iql.after_step()
        return self.distributed.mean(metrics)

    def _backward(self, batch: Batch[Tensor], step: int) -> dict[str, Tensor]:
        """Accumulate the mean gradient over the microbatches; return the means of their metrics."""
        count = self.config.microbatches // self.distributed.size
        rows: list[dict[str, Tensor]] = []
        for index, part in enumerate(batch.split(count) if count > 1 else [batch], self.distributed.rank * count):
            if self.config.microbatches > 1:
                # Random numbers depend on the microbatch alone, not on the process that computes it.
                torch.manual_seed(_seed(self.config.seed, step, index))
            losses, logs = self._losses(part)
            self.scaler.scale(torch.stack(list(losses.values())).sum() / count).backward()
            rows.append({name: torch.as_tensor(value).detach() for name, value in {**losses, **logs}.items()})
        if count == 1:
            return rows[0]
        return {name: torch.stack([row[name].float() for row in rows]).mean() for name in rows[0]}

    def _eager_losses(self, batch: Batch[Tensor]) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the representation's loss and IQL's, and metrics. Only the encoders run in half precision."""
        with torch.autocast(self.device.type, self.dtype) if self.dtype else nullcontext():
            output = self.method.compute_loss(batch)
        transition = Transition(
            actor_inputs=_as_float(output.actor_inputs),
            critic_inputs=_as_float(output.critic_inputs),
            next_inputs=_as_float(output.next_inputs),
            action=batch.action,
            final=batch.final,
            reward=batch.reward,
            terminal=batch.terminal,
        )
        losses, logs = self.iql.losses(transition)
        return {"representation_loss": output.loss.float(), **losses}, {**_scalars(output.logs), **logs}

    def _parameter_groups(self) -> list[dict[str, Any]]:
        """Return the method's parameter groups and one for IQL, which has no weight decay: there AdamW is Adam."""
        groups = [{**group, "params": list(group["params"])} for group in self.method.optimizer_groups()]
        covered = {id(parameter) for group in groups for parameter in group["params"]}
        trained = {name: value for name, value in self.method.named_parameters() if value.requires_grad}
        if missing := [name for name, parameter in trained.items() if id(parameter) not in covered]:
            raise GCBError(f"{self.method.name}.optimizer_groups() leaves out {', '.join(missing[:3])}.")
        policy = [parameter for parameter in self.iql.parameters() if parameter.requires_grad]
        return [*groups, {"params": policy, "lr": self.config.learning_rate, "weight_decay": 0.0}]


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def lr_multiplier(config: TrainConfig[Any], step: int) -> float:
    """Return the factor of all learning rates at a step, counted from 0: linear warm-up, then the schedule's decay."""
    if step < config.warmup_steps:
        return (step + 1) / (config.warmup_steps + 1)
    if config.lr_schedule == "none":
        return 1.0
    progress = (step - config.warmup_steps) / (config.steps - config.warmup_steps)
    decay = 1 - progress if config.lr_schedule == "linear" else (1 + cos(pi * progress)) / 2
    return config.min_lr_ratio + (1 - config.min_lr_ratio) * decay


def autocast_dtype(precision: str, device: torch.device) -> torch.dtype | None:
    """Return the half-precision dtype of the encoders' forward passes, or None for float32."""
    if precision == "auto":
        if device.type != "cuda":
            return None
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if precision == "float32":
        return None
    if device.type == "cpu":
        # Slower than float32 where it works; on virtual machines that forbid AMX, it kills the process.
        raise GCBError(f"precision is {precision!r}; on a CPU accepted: auto or float32, which is faster there.")
    return getattr(torch, precision)


def _as_float(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    return {policy: values.float() for policy, values in inputs.items()}


def _scalars(logs: dict[str, Any]) -> dict[str, Any]:
    """Keep the numbers: a method may return embeddings beside them."""
    return {name: value for name, value in logs.items() if not isinstance(value, Tensor) or value.ndim == 0}


def _compile(function: Any) -> Any:
    """Compile a function; if that fails, warn and run it uncompiled."""
    compiled: Any = torch.compile(function)

    def call(batch: Batch[Tensor]) -> Any:
        nonlocal compiled
        try:
            return compiled(batch)
        except Exception as error:
            if compiled is function:
                raise
            reason = " ".join(str(error).splitlines()[:2]) or type(error).__name__
            warnings.warn(f"torch.compile does not work here, continuing without it: {reason}", stacklevel=3)
            compiled = function
            return function(batch)

    return call
