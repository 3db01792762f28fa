"""Specification of an environment for evaluation: its id, its options and its adapter."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import gymnasium as gym

from gcb.envs.adapters import ADAPTERS, Adapter, adapter_name, get_adapter
from gcb.errors import GCBError, short

Mode = Literal["goal", "strict", "loose", "free"]
"""How the task is given: by a goal image, or by a strict, loose or free analogy (`gcb.envs.scene.sample_analogy`)."""
MODES: tuple[Mode, ...] = get_args(Mode)
DEFAULT_MODES: tuple[Mode, ...] = ("goal", "strict", "free")
"""The modes of an evaluation in which none are given."""
ENV_IDS = {"drawer": "gcb/Drawer-v0", "button_drawer": "gcb/ButtonDrawer-v0"}
"""Short names of the built-in environments, as sweeps and tables use them."""
RESERVED = {"id", "max_episode_steps", "disable_env_checker"}
"""Arguments of `gymnasium.make` itself."""


@dataclass(frozen=True)
class EnvSpec:
    """A Gymnasium environment by id, with its options and its adapter."""

    env: str
    options: Mapping[str, Any] = field(default_factory=dict)
    adapter: Adapter = ADAPTERS["gcb"]
    from_file: bool = field(default=False, compare=False)
    """Whether a file names the environment, not the user: then a module in its id (module:id) is not imported."""

    def record(self) -> dict[str, Any]:
        """Return the entry that eval.json keeps."""
        record = {"env": self.env, "options": dict(self.options)}
        return record if (name := adapter_name(self.adapter)) == "gcb" else {**record, "adapter": name}

    def check_trusted(self) -> None:
        """Raise an error if the environment's module would be imported only because a file names it."""
        module, colon, _ = self.env.partition(":")
        if self.from_file and colon and module not in sys.modules:
            raise GCBError(
                f"the dataset's environment is {short(self.env)}, and a module that a file names is not imported. If "
                f"you trust it, name it yourself: --env {self.env}, or the environment variable GCB_PLUGINS={module}"
            )

    def make(self, mode: str) -> gym.Env:
        """Create the environment for one evaluation mode."""
        self.check_trusted()
        options = self.adapter.env_options(self.options, mode)
        if reserved := [name for name in options if name in RESERVED]:
            raise GCBError(f"options of {self.env} hold {reserved[0]!r}, which is not an option of the environment.")
        try:
            return gym.make(self.env, disable_env_checker=True, **options)
        except (gym.error.Error, ImportError) as error:
            raise GCBError(f"there is no environment {short(self.env)} ({error})") from error
        except GCBError:
            raise
        except Exception as error:  # options may come from a file and be anything
            unexpected = "unexpected keyword" in str(error)
            if not (self.options or unexpected):
                raise
            foreign = unexpected and adapter_name(self.adapter) == "gcb"
            hint = ". Other environments than gcb's need an adapter" if foreign else ""
            reason = f"{type(error).__name__}: {str(error).partition(' was raised from')[0]:.200}{hint}"
            raise GCBError(f"{self.env} was given options {short(options)}, but {reason}") from error


def recorded_env_spec(config: Mapping[str, Any]) -> EnvSpec:
    """Return the environment in which a dataset was collected, given the dataset's configuration."""
    if not isinstance(config.get("env"), str):
        raise GCBError("the agent's dataset does not name its environment; give one: EnvSpec(env, options)")
    adapter = get_adapter(config.get("adapter", "gcb"))
    return EnvSpec(config["env"], config.get("options") or {}, adapter, from_file=True)
