"""Which environment, with which options, played how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym

from gcb.envs.adapters import ADAPTERS, Adapter, adapter_name, get_adapter
from gcb.errors import GCBError

MODES = ("goal", "strict", "loose")
ENV_IDS = {"drawer": "gcb/Drawer-v0", "button_drawer": "gcb/ButtonDrawer-v0"}
"""Short names of the built-in environments, as sweeps and tables use them."""


@dataclass(frozen=True)
class EnvSpec:
    """A world by its gymnasium id, with its options and how it is played; `make` builds it for a mode of evaluation."""

    env: str
    options: Mapping[str, Any] = field(default_factory=dict)
    adapter: Adapter = ADAPTERS["gcb"]

    def record(self) -> dict[str, Any]:
        """What eval.json keeps of it."""
        plain = {"env": self.env, "options": dict(self.options)}
        return plain if (name := adapter_name(self.adapter)) == "gcb" else {**plain, "adapter": name}

    def make(self, mode: str) -> gym.Env:
        """The world as evaluation needs it."""
        options = self.adapter.env_options(self.options, mode)
        try:
            return gym.make(self.env, disable_env_checker=True, **options)
        except (gym.error.Error, ImportError) as error:
            raise GCBError(f"there is no world {self.env!r} ({error})") from error
        except TypeError as error:
            if "unexpected keyword" not in str(error):
                raise
            hint = "" if adapter_name(self.adapter) != "gcb" else ". For a world of another's making, name an adapter"
            raise GCBError(f"{self.env} was given options {options}, but {error}{hint}") from error


def recorded_env_spec(record: Mapping[str, Any]) -> EnvSpec:
    """The world that the dataset of a run with this record was collected in."""
    config = record.get("data", {}).get("config", {})
    if "env" not in config:
        raise GCBError("it is not known in which world the agent's data was collected; say it: EnvSpec(env, options)")
    return EnvSpec(config["env"], config.get("options", {}), get_adapter(config.get("adapter", "gcb")))
