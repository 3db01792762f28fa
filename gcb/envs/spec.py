"""Specification of an environment for evaluation: its id, its options and its adapter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import gymnasium as gym

from gcb.envs.adapters import ADAPTERS, Adapter, adapter_name, get_adapter
from gcb.errors import GCBError

Mode = Literal["goal", "strict", "loose", "free"]
"""How the task is given: by a goal image, or by a strict, loose or free analogy (`gcb.envs.scene.sample_analogy`)."""
MODES: tuple[Mode, ...] = get_args(Mode)
DEFAULT_MODES: tuple[Mode, ...] = ("goal", "strict", "free")
"""The modes of an evaluation in which none are given."""
ENV_IDS = {"drawer": "gcb/Drawer-v0", "button_drawer": "gcb/ButtonDrawer-v0"}
"""Short names of the built-in environments, as sweeps and tables use them."""


@dataclass(frozen=True)
class EnvSpec:
    """A Gymnasium environment by id, with its options and its adapter."""

    env: str
    options: Mapping[str, Any] = field(default_factory=dict)
    adapter: Adapter = ADAPTERS["gcb"]

    def record(self) -> dict[str, Any]:
        """Return the entry that eval.json keeps."""
        record = {"env": self.env, "options": dict(self.options)}
        return record if (name := adapter_name(self.adapter)) == "gcb" else {**record, "adapter": name}

    def make(self, mode: str) -> gym.Env:
        """Create the environment for one evaluation mode."""
        options = self.adapter.env_options(self.options, mode)
        try:
            return gym.make(self.env, disable_env_checker=True, **options)
        except (gym.error.Error, ImportError) as error:
            raise GCBError(f"there is no environment {self.env!r} ({error})") from error
        except TypeError as error:
            if "unexpected keyword" not in str(error):
                raise
            hint = "" if adapter_name(self.adapter) != "gcb" else ". Other environments than gcb's need an adapter"
            raise GCBError(f"{self.env} was given options {options}, but {error}{hint}") from error


def recorded_env_spec(config: Mapping[str, Any]) -> EnvSpec:
    """Return the environment in which a dataset was collected, given the dataset's configuration."""
    if not isinstance(config.get("env"), str):
        raise GCBError("the agent's dataset does not name its environment; give one: EnvSpec(env, options)")
    return EnvSpec(config["env"], config.get("options", {}), get_adapter(config.get("adapter", "gcb")))
