"""The methods: one file each, and a registry of all."""

import os
from importlib import import_module

from gcb.errors import GCBError, lookup
from gcb.methods.base import Method, MethodOutput, Shapes
from gcb.methods.bc import GoalAgnosticBC, GoalConditionedBC
from gcb.methods.cc_vae import CCVAE
from gcb.methods.cpc import CPC
from gcb.methods.cpv import CPV
from gcb.methods.cta import CTA
from gcb.methods.curl import CURL
from gcb.methods.gc_dbc import GCDBC
from gcb.methods.gcb import GCB
from gcb.methods.pixel import Pixel
from gcb.methods.rad import RAD
from gcb.methods.vae import VAE

# In the order of the paper's table, then the methods that it does not have.
_ALL = (GCB, CPV, GCDBC, CCVAE, VAE, CPC, CURL, RAD, Pixel, CTA, GoalConditionedBC, GoalAgnosticBC)
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}
PLUGINS = "GCB_PLUGINS"
"""Environment variable with a comma-separated list of modules that register further methods."""


def register(method: type[Method]) -> type[Method]:
    """Add a method to the registry, for the command line and `gcb.load`; can be used as a decorator."""
    METHODS[method.name] = method
    return method


def method_named(name: str) -> type[Method]:
    """Return the method of this name."""
    return lookup(METHODS, name, "method")


def _import_plugins(names: str) -> None:
    """Import the modules with a user's methods. Worker processes inherit the variable and import them too."""
    for name in filter(None, (part.strip() for part in names.split(","))):
        try:
            import_module(name)
        except ImportError as error:
            raise GCBError(f"{PLUGINS} names {name!r}, which cannot be imported: {error}.") from error


__all__ = ["METHODS", "Method", "MethodOutput", "Shapes", "method_named", "register"]

_import_plugins(os.environ.get(PLUGINS, ""))
