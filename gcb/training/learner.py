"""One gradient step of any method with IQL on top: Algorithm 1's loop body, the same for all."""

import warnings
from contextlib import nullcontext
from dataclasses import fields
from math import cos, pi
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gcb.agent.build import build
from gcb.errors import GCBError
from gcb.methods import Batch, Shapes
from gcb.models.iql import Transition
from gcb.runs.config import TrainConfig
from gcb.training.distributed import SINGLE, Distributed


class Learner:
    """A method, the policy's learner, and their optimiser."""

    def __init__(
        self, config: TrainConfig[Any], shapes: Shapes, device: torch.device, distributed: Distributed = SINGLE
    ):
        """Initial weights come from torch's global generator."""
        self.config, self.device, self.distributed = config, device, distributed
        self.method, self.iql = build(config, shapes)
        self.modules = nn.ModuleDict({"method": self.method, "iql": self.iql}).to(device)
        self.optimizer = torch.optim.AdamW(self._groups(), fused=device.type in ("cpu", "cuda"))
        self._rates = [group["lr"] for group in self.optimizer.param_groups]
        self.dtype = autocast_type(config.precision, device)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.dtype == torch.float16)
        losses = _compiled(self._plain_losses) if config.compile else self._plain_losses
        self._losses = distributed.averaged(self.modules, losses)

    def step(self, frames: Batch, number: int) -> dict[str, Tensor]:
        """One optimiser step, the `number`-th counted from 0; the losses and figures for the log, detached.

        `frames` are this process's rows of the batch.
        """
        scale = lr_multiplier(self.config, number)
        for group, rate in zip(self.optimizer.param_groups, self._rates, strict=True):
            group["lr"] = rate * scale
        self.optimizer.zero_grad(set_to_none=True)
        figures = self._gradient(frames, number)
        if self.config.max_grad_norm is not None:
            self.scaler.unscale_(self.optimizer)
            for group in self.optimizer.param_groups:
                nn.utils.clip_grad_norm_(group["params"], self.config.max_grad_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.method.after_step()
        self.iql.after_step()
        return self.distributed.mean(figures)

    def _gradient(self, frames: Batch, number: int) -> dict[str, Tensor]:
        """Leave the batch's mean gradient in the parameters, part by part; return the mean of the parts' figures."""
        count = self.config.microbatches // self.distributed.size
        parts = [frames] if count == 1 else _split(frames, count)
        found: list[dict[str, Tensor]] = []
        for index, part in enumerate(parts, start=self.distributed.rank * count):
            if self.config.microbatches > 1:
                # Its draws depend on the part alone: they are the same, whoever computes it.
                torch.manual_seed(_seed(self.config.seed, number, index))
            losses, logs = self._losses(part)
            self.scaler.scale(torch.stack(list(losses.values())).sum() / count).backward()
            found.append({name: torch.as_tensor(value).detach() for name, value in {**losses, **logs}.items()})
        if count == 1:
            return found[0]
        return {name: torch.stack([figures[name].float() for figures in found]).mean() for name in found[0]}

    def _plain_losses(self, frames: Batch) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The representation's loss and IQL's three. Half precision is for the encoders; IQL works in full."""
        with torch.autocast(self.device.type, self.dtype) if self.dtype else nullcontext():
            features = self.method.compute_loss(frames)
        transition = Transition(
            actor_inputs=torch.cat([features.actor_state, features.actor_task], -1).float(),
            inputs=torch.cat([features.critic_state, features.critic_task], -1).float(),
            next_inputs=torch.cat([features.next_state, features.next_task], -1).float().detach(),
            action=frames.action,
            reward=frames.reward,
            terminal=frames.terminal,
        )
        losses, logs = self.iql.losses(transition)
        return {"representation_loss": features.loss.float(), **losses}, {**_figures(features.logs), **logs}

    def _groups(self) -> list[dict[str, Any]]:
        """The method's groups, and one for the policy's learner; without weight decay AdamW is Adam."""
        own = [{**group, "params": list(group["params"])} for group in self.method.optimizer_groups()]
        policy = [parameter for parameter in self.iql.parameters() if parameter.requires_grad]
        covered = {id(parameter) for group in own for parameter in group["params"]}
        missing = [name for name, one in self.method.named_parameters() if one.requires_grad and id(one) not in covered]
        if missing:
            raise GCBError(f"{self.method.name}.optimizer_groups() leaves out {', '.join(missing[:3])}.")
        return [*own, {"params": policy, "lr": self.config.learning_rate, "weight_decay": 0.0}]


def _split(frames: Batch, count: int) -> list[Batch]:
    """Equal parts of a batch."""
    chunks = {one.name: getattr(frames, one.name) for one in fields(frames)}
    chunks = {name: tensor.chunk(count) for name, tensor in chunks.items() if tensor is not None}
    return [Batch(**{name: chunk[index] for name, chunk in chunks.items()}) for index in range(count)]


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


def lr_multiplier(config: TrainConfig[Any], step: int) -> float:
    """The share of the learning rates at a step (from 0): a linear rise, then the chosen fall."""
    if step < config.warmup_steps:
        return (step + 1) / (config.warmup_steps + 1)
    if config.lr_schedule == "none":
        return 1.0
    done = (step - config.warmup_steps) / (config.steps - config.warmup_steps)
    left = 1 - done if config.lr_schedule == "linear" else (1 + cos(pi * done)) / 2
    return config.min_lr_ratio + (1 - config.min_lr_ratio) * left


def autocast_type(precision: str, device: torch.device) -> torch.dtype | None:
    """The half-precision type of the encoders' passes; None for float32."""
    if precision == "auto":
        if device.type != "cuda":
            return None
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if precision == "float32":
        return None
    if device.type == "cpu":
        # Slower than float32 where it works; where a virtual machine forbids AMX, it kills the process.
        raise GCBError(f"precision is {precision!r}; on a CPU accepted: auto or float32, which is the faster there.")
    return getattr(torch, precision)


def _figures(logs: dict[str, Any]) -> dict[str, Any]:
    """What is a number; a method may hand out embeddings beside them."""
    return {name: value for name, value in logs.items() if not isinstance(value, Tensor) or value.ndim == 0}


def _compiled(function: Any) -> Any:
    """The function through torch.compile; as it was, with a warning, where compiling fails."""
    compiled: Any = torch.compile(function)

    def call(frames: Batch) -> Any:
        nonlocal compiled
        try:
            return compiled(frames)
        except Exception as error:
            if compiled is function:
                raise
            warnings.warn(f"torch.compile does not work here, going on without: {_briefly(error)}", stacklevel=3)
            compiled = function
            return function(frames)

    return call


def _briefly(error: Exception) -> str:
    return " ".join(str(error).splitlines()[:2]) or type(error).__name__
