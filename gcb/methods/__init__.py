"""The methods, one file each, and their registry, which imports a method's file (and PyTorch) when it is first used."""

import os
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gcb.errors import GCBError, lookup, suggestion
from gcb.methods.presets import SETTINGS, MethodSettings

if TYPE_CHECKING:
    from gcb.methods.base import Method, MethodOutput, Shapes

_CLASSES = {
    "gcb": "gcb:GCB",
    "cpv": "cpv:CPV",
    "gc_dbc": "gc_dbc:GCDBC",
    "cc_vae": "cc_vae:CCVAE",
    "vae": "vae:VAE",
    "cpc": "cpc:CPC",
    "curl": "curl:CURL",
    "rad": "rad:RAD",
    "pixel": "pixel:Pixel",
    "cta": "cta:CTA",
    "gcbc": "bc:GoalConditionedBC",
    "goal_agnostic_bc": "bc:GoalAgnosticBC",
}
PLUGINS = "GCB_PLUGINS"
"""Environment variable with a comma-separated list of modules that register further methods and environments."""


class _Methods(MutableMapping[str, "type[Method]"]):
    """Classes by name; those of the package are imported when they are looked up."""

    def __init__(self) -> None:
        self._registered: dict[str, type[Method] | None] = dict.fromkeys(SETTINGS)

    def __getitem__(self, name: str) -> "type[Method]":
        method = self._registered[name]
        if method is None:
            module, _, cls = _CLASSES[name].partition(":")
            method = self._registered[name] = getattr(import_module(f"gcb.methods.{module}"), cls)
        assert method is not None
        return method

    def __setitem__(self, name: str, method: "type[Method]") -> None:
        self._registered[name] = method

    def __delitem__(self, name: str) -> None:
        del self._registered[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._registered)

    def __len__(self) -> int:
        return len(self._registered)

    def __contains__(self, name: object) -> bool:
        return name in self._registered

    def settings(self, name: str) -> MethodSettings:
        """Return a method's settings; those of built-in methods do not need their networks to be imported."""
        method = self._registered[name]
        return SETTINGS[name] if method is None else MethodSettings(method.config_type, method.presets)


METHODS = _Methods()


def register(method: "type[Method]") -> "type[Method]":
    """Add a method to the registry, for the command line and `gcb.load`; can be used as a decorator."""
    METHODS[method.name] = method
    return method


def method_named(name: str) -> "type[Method]":
    """Return the method of this name."""
    return lookup(METHODS, name, "method")


def settings_of(name: str) -> MethodSettings:
    """Return the configuration type of the method of this name, and its changes of the presets."""
    if name not in METHODS:
        raise GCBError(f"There is no method {name!r}; {suggestion(name, METHODS)}")
    return METHODS.settings(name)


def _import_plugins(names: str) -> None:
    """Import the modules of a user. Worker processes inherit the variable and import them too."""
    for name in filter(None, (part.strip() for part in names.split(","))):
        try:
            import_module(name)
        except ImportError as error:
            raise GCBError(f"{PLUGINS} names {name!r}, which cannot be imported: {error}.") from error


def __getattr__(name: str) -> Any:
    """Import the base classes when they are first used."""
    if name in ("Method", "MethodOutput", "Shapes"):
        return getattr(import_module("gcb.methods.base"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = ["METHODS", "Method", "MethodOutput", "Shapes", "method_named", "register", "settings_of"]

_import_plugins(os.environ.get(PLUGINS, ""))
