"""What is learned about states and goals: one file for each method, one registry for all."""

import os
from importlib import import_module

from gcb.errors import GCBError, lookup
from gcb.methods.base import Batch, Method, MethodOutput, Shapes
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

# In the order of the paper's table, then the yardsticks that it does not have.
_ALL = (GCB, CPV, GCDBC, CCVAE, VAE, CPC, CURL, RAD, Pixel, CTA, GoalConditionedBC, GoalAgnosticBC)
PLUGINS = "GCB_PLUGINS"
"""The environment variable that names modules with methods of one's own, separated by commas."""
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}


def register(method: type[Method]) -> type[Method]:
    """Make an own method known to the command line and to `gcb.load`; usable as a decorator."""
    METHODS[method.name] = method
    return method


def method_named(name: str) -> type[Method]:
    """The method of this name."""
    return lookup(METHODS, name, "method")


def _import_plugins(names: str) -> None:
    """Import the modules of a user's own methods; workers and Ray's tasks inherit the variable and do the same."""
    for name in filter(None, (part.strip() for part in names.split(","))):
        try:
            import_module(name)
        except ImportError as error:
            raise GCBError(f"{PLUGINS} names {name!r}, which cannot be imported: {error}.") from error


__all__ = ["METHODS", "Batch", "Method", "MethodOutput", "Shapes", "method_named", "register"]

_import_plugins(os.environ.get(PLUGINS, ""))
